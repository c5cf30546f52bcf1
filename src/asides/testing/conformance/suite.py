"""The suite: every check by name, `checks` to call them one by one, and `examine` for a report.

Not here: what the checks look at, and the suite as a class of tests (provider_suite).
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from unittest import SkipTest

import msgspec

from asides import dialects
from asides.dialects.dialect import Dialect
from asides.providers.provider import Provider
from asides.testing.conformance import check_next_turn as turns
from asides.testing.conformance import check_replies as laws
from asides.testing.conformance import check_replies as recorded
from asides.testing.conformance import check_requests as asking
from asides.testing.conformance import check_requests as rows
from asides.testing.conformance import check_sockets as sockets
from asides.testing.conformance import check_surprises as surprises
from asides.testing.conformance.case import Case, Example, build_case, thinking_model
from asides.testing.conformance.report import Broken, Finding, Nonconformance, NotHere, Report

_CHECKS: tuple[Callable[[Case], None], ...] = (
    rows.the_row_reads,
    rows.the_capability_is_declared,
    asking.a_request_is_read_by_the_server_half,
    asking.thinking_can_be_asked_for,
    asking.thinking_can_be_switched_off,
    asking.an_amount_is_sent_or_told,
    asking.models_can_be_listed,
    laws.thinking_is_extracted,
    laws.thinking_is_filtered_from_the_answer,
    laws.thinking_is_in_the_metadata,
    laws.nothing_leaks,
    laws.deltas_add_up,
    laws.streamed_is_whole,
    laws.any_chunking_is_the_same,
    laws.the_server_half_inverts,
    laws.usage_is_normalised,
    turns.the_next_turn_follows_the_replay_rule,
    turns.foreign_thinking_stays_behind,
    turns.a_call_and_its_result_go_back,
    turns.seals_return,
    surprises.unknown_fields_change_nothing,
    surprises.unknown_events_are_told,
    surprises.values_of_other_kinds_crash_nothing,
    surprises.broken_bodies_are_typed_errors,
    surprises.a_cut_stream_is_never_silently_short,
    surprises.a_surprise_behind_the_end_changes_nothing,
    surprises.errors_are_typed,
    recorded.examples_are_read,
    sockets.blocking_is_awaiting,
    sockets.a_server_accepts_the_next_turn,
    sockets.errors_carry_what_had_come,
)
_BY_NAME = {check.__name__: check for check in _CHECKS}
CHECKS = tuple(_BY_NAME)
"""The names of the checks, in their order."""
NETWORK = tuple(check.__name__ for check in _CHECKS if check.__module__ == sockets.__name__)
"""Those that open sockets, on this machine alone."""


class Check:
    """One check of one provider. Call it: it raises `Nonconformance` where the provider does not hold it, and
    `unittest.SkipTest` where there is nothing to look at.
    """

    def __init__(self, name: str, case: Callable[[], Case], within: Callable[[], AbstractContextManager[None]]) -> None:
        self.name = name
        self._case = case
        self._within = within

    @property
    def asks(self) -> str:
        """What has to hold."""
        return describe(self.name)

    def __call__(self) -> None:
        """Run it."""
        __tracebackhide__ = True  # for pytest: what went wrong is in the message
        finding, problem = self._examined()
        if finding.verdict == "failed":
            raise Nonconformance(f"{self.asks}\n{finding}") from problem
        if finding.verdict == "skipped":
            raise SkipTest(finding.why)

    def find(self) -> Finding:
        """Run it, and say what was found."""
        return self._examined()[0]

    def _examined(self) -> tuple[Finding, Exception | None]:
        try:
            with self._within():
                _BY_NAME[self.name](self._case())
        except NotHere as reason:
            return Finding(self.name, "skipped", why=str(reason)), None
        except Broken as problem:
            finding = Finding(self.name, "failed", problem.expected, problem.came, problem.to_do)
            return finding, problem
        except Exception as problem:  # noqa: BLE001 - what the author's code raises is what the author has to see
            came = f"{type(problem).__name__} was raised, at {_place(problem)}"
            return Finding(self.name, "failed", self.asks, came, "see what raised it."), problem
        return Finding(self.name, "passed"), None

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


def _name_of(dialect: Dialect | str | None) -> str | None:
    return dialect if dialect is None or isinstance(dialect, str) else dialect.name


def describe(name: str) -> str:
    """What has to hold for the check of this name."""
    return " ".join((_BY_NAME[name].__doc__ or "").split())


def _place(problem: Exception) -> str:
    frames = traceback.extract_tb(problem.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "a place unknown"


def checks(
    provider: Provider,
    *,
    model: str | None = None,
    dialect: Dialect | str | None = None,
    examples: Iterable[Example] = (),
    network: bool = True,
    quick: bool = False,
    skip: Collection[str] = (),
) -> tuple[Check, ...]:
    """The checks of a provider, to be called one by one:

        @pytest.mark.parametrize("check", asides.testing.conformance.checks(mine), ids=str)
        def test_my_provider(check):
            check()

    The arguments are those of `examine`.
    """
    if unknown := sorted(set(skip) - set(CHECKS)):
        raise ValueError(f"{unknown[0]!r} is no check; there are {', '.join(CHECKS)}.")
    brought = tuple(examples)
    row, spoken = provider, _name_of(dialect)
    if spoken is not None and not isinstance(dialect, str) and row.with_dialect(spoken) is None:
        row = msgspec.structs.replace(row, dialect=spoken)

    def within() -> AbstractContextManager[None]:
        if dialect is None or isinstance(dialect, str):
            return nullcontext()
        return dialects.register_temporarily(dialect.name, dialect)

    def case() -> Case:
        return build_case(row, model=model, dialect=spoken, examples=brought, quick=quick)

    left = [name for name in CHECKS if name not in skip and (network or name not in NETWORK)]
    return tuple(Check(name, case, within) for name in left)


def examine(
    provider: Provider,
    *,
    model: str | None = None,
    dialect: Dialect | str | None = None,
    examples: Iterable[Example] = (),
    network: bool = True,
    quick: bool = False,
    skip: Collection[str] = (),
) -> Report:
    """Hold a provider to the laws that every provider of asides holds; what was found, check by check.

    `model` is one of its models; left out, one that its row knows to think. `dialect` is the dialect that is spoken: a
    name, for a row that speaks several, or an object, which is registered while it is examined. `examples` are replies
    of the host itself. `network=False` opens no sockets (the others are on loopback), `quick` tries fewer replies,
    `skip` names checks to leave out. Nothing is sent to the provider.
    """
    made = checks(provider, model=model, dialect=dialect, examples=examples, network=network, quick=quick, skip=skip)
    findings = tuple(check.find() for check in made)
    named = _name_of(dialect) or provider.dialect
    row = provider.with_dialect(named) or provider
    return Report(provider.name, model or thinking_model(row), named, findings)
