"""The suite: `examine` for a report, `checks` for one callable per check, `ProviderSuite` for a class of tests."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import ClassVar
from unittest import SkipTest

import msgspec

from asides import dialects
from asides.dialects.dialect import Dialect
from asides.providers.provider import Provider
from asides.values.errors import ConfigError, Unsupported, split_advice
from asides_stage.conformance import check_next_turn, check_replies, check_requests, check_sockets, check_surprises
from asides_stage.conformance.case import Case, Example, build_case, find_thinking_model
from asides_stage.conformance.report import CheckFailed, CheckSkipped, Finding, Nonconformance, Report

_CHECKS: tuple[Callable[[Case], None], ...] = (
    check_requests.the_row_is_valid,
    check_requests.the_capability_is_declared,
    check_requests.a_request_is_read_by_the_server_half,
    check_requests.thinking_can_be_asked_for,
    check_requests.thinking_can_be_switched_off,
    check_requests.an_amount_is_sent_or_reported,
    check_requests.models_can_be_listed,
    check_replies.thinking_is_extracted,
    check_replies.thinking_is_filtered_from_the_answer,
    check_replies.thinking_is_in_the_metadata,
    check_replies.nothing_leaks,
    check_replies.deltas_add_up,
    check_replies.streamed_is_whole,
    check_replies.any_chunking_is_the_same,
    check_replies.the_server_half_inverts,
    check_replies.usage_is_normalised,
    check_next_turn.the_next_turn_follows_the_replay_rule,
    check_next_turn.foreign_thinking_is_not_sent,
    check_next_turn.a_call_and_its_result_go_back,
    check_next_turn.seals_return,
    check_surprises.unknown_fields_change_nothing,
    check_surprises.unknown_events_are_reported,
    check_surprises.values_of_other_types_crash_nothing,
    check_surprises.broken_bodies_are_typed_errors,
    check_surprises.a_cut_stream_is_never_silently_short,
    check_surprises.bytes_after_the_end_change_nothing,
    check_surprises.errors_are_typed,
    check_replies.examples_are_read,
    check_sockets.sync_is_async,
    check_sockets.a_server_accepts_the_next_turn,
    check_sockets.errors_carry_the_partial_reply,
)
_BY_NAME = {check.__name__: check for check in _CHECKS}
CHECKS = tuple(_BY_NAME)
"""The names of the checks, in order."""
NETWORK = tuple(check.__name__ for check in _CHECKS if check.__module__ == check_sockets.__name__)
"""The names of the checks that open sockets, on this machine only."""


class ProviderCheck:
    """One check of one provider. A call raises `Nonconformance` if the provider fails it, and `unittest.SkipTest` if
    there is nothing to examine.
    """

    def __init__(
        self, name: str, build: Callable[[], Case], register: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self.name = name
        self._build = build
        self._register = register

    @property
    def requirement(self) -> str:
        """The requirement that the check examines."""
        return describe(self.name)

    def __call__(self) -> None:
        """Run the check."""
        __tracebackhide__ = True  # For pytest: the message says enough.
        finding, problem = self._run()
        if finding.verdict == "failed":
            raise Nonconformance(f"{self.requirement}\n{finding}") from problem
        if finding.verdict == "skipped":
            raise SkipTest(finding.reason)

    def find(self) -> Finding:
        """Run the check and return what it found."""
        return self._run()[0]

    def _run(self) -> tuple[Finding, Exception | None]:
        try:
            with self._register():
                _BY_NAME[self.name](self._build())
        except CheckSkipped as reason:
            return Finding(self.name, "skipped", reason=str(reason)), None
        except CheckFailed as problem:
            return Finding(self.name, "failed", problem.expected, problem.actual, problem.to_do), problem
        except (ConfigError, Unsupported) as problem:
            # These name what is missing, such as a method of the dialect, and hold no content.
            message, to_do = split_advice(str(problem))
            actual = f"{type(problem).__name__} was raised: {message}"
            return Finding(self.name, "failed", self.requirement, actual, to_do or "see what raised it."), problem
        except Exception as problem:  # noqa: BLE001 - the author needs to see what their code raises
            actual = f"{type(problem).__name__} was raised, at {_find_place(problem)}"
            return Finding(self.name, "failed", self.requirement, actual, "see what raised it."), problem
        return Finding(self.name, "passed"), None

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


def _find_place(problem: Exception) -> str:
    frames = traceback.extract_tb(problem.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "an unknown place"


def _find_name(dialect: Dialect | str | None) -> str | None:
    return dialect if dialect is None or isinstance(dialect, str) else dialect.name


def describe(name: str) -> str:
    """Return the requirement that the check of this name examines."""
    return " ".join((_BY_NAME[name].__doc__ or "").split())


def checks(
    provider: Provider,
    *,
    model: str | None = None,
    dialect: Dialect | str | None = None,
    examples: Iterable[Example] = (),
    network: bool = True,
    quick: bool = False,
    skip: Collection[str] = (),
) -> tuple[ProviderCheck, ...]:
    """Return the checks of a provider, to be called one by one:

        @pytest.mark.parametrize("check", asides_stage.checks(mine), ids=str)
        def test_my_provider(check):
            check()

    The arguments are those of `examine`.
    """
    if unknown := sorted(set(skip) - set(CHECKS)):
        raise ValueError(f"unknown check {unknown[0]!r}; the checks are {', '.join(CHECKS)}.")
    example_list = tuple(examples)
    row, dialect_name = provider, _find_name(dialect)
    if dialect_name is not None and not isinstance(dialect, str) and row.with_dialect(dialect_name) is None:
        row = msgspec.structs.replace(row, dialect=dialect_name)

    def register() -> AbstractContextManager[None]:
        if dialect is None or isinstance(dialect, str):
            return nullcontext()
        return dialects.register_temporarily(dialect.name, dialect)

    def build() -> Case:
        return build_case(row, model=model, dialect=dialect_name, examples=example_list, quick=quick)

    names = [name for name in CHECKS if name not in skip and (network or name not in NETWORK)]
    return tuple(ProviderCheck(name, build, register) for name in names)


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
    """Run every check on a provider and return a report. Nothing is sent to the provider.

    `model` is one of its models, by default one that thinks. `dialect` is a name, for a row with several dialects, or a
    dialect object, which is registered during the examination. `examples` are replies of the real host.
    `network=False` leaves out the checks that open sockets (on loopback). `quick` tries fewer replies. `skip` names
    checks to leave out.
    """
    suite = checks(provider, model=model, dialect=dialect, examples=examples, network=network, quick=quick, skip=skip)
    findings = tuple(check.find() for check in suite)
    dialect_name = _find_name(dialect) or provider.dialect
    row = provider.with_dialect(dialect_name) or provider
    return Report(provider.name, model or find_thinking_model(row), dialect_name, findings)


# --- as a class of tests ----------------------------------------------------------------------------------------------


class ProviderSuite:
    """Every check as a test, for pytest and unittest; neither is imported here. A subclass names the provider:

        class TestMine(asides_stage.ProviderSuite):
            provider = mine

    The attributes are the arguments of `examine`. A check with nothing to examine is skipped, with the reason. For
    unittest, add `unittest.TestCase` as a second base class.
    """

    provider: ClassVar[Provider]
    model: ClassVar[str | None] = None
    dialect: ClassVar[Dialect | str | None] = None
    examples: ClassVar[Iterable[Example]] = ()
    network: ClassVar[bool] = True
    quick: ClassVar[bool] = False
    skip: ClassVar[Collection[str]] = ()

    @classmethod
    def run_check(cls, name: str) -> None:
        """Run the check of this name. Raises `Nonconformance` or `unittest.SkipTest`."""
        __tracebackhide__ = True
        if not hasattr(cls, "provider"):
            raise TypeError(f"{cls.__name__} names no provider. Write `provider = …` in it.")
        if name in cls.skip or (name in NETWORK and not cls.network):
            raise SkipTest(f"{cls.__name__} leaves {name} out")
        suite = checks(
            cls.provider, model=cls.model, dialect=cls.dialect, examples=cls.examples, quick=cls.quick, skip=cls.skip
        )
        next(check for check in suite if check.name == name)()


def _build_test(name: str) -> Callable[[ProviderSuite], None]:
    def test(self: ProviderSuite) -> None:
        __tracebackhide__ = True
        self.run_check(name)

    test.__name__ = f"test_{name}"
    test.__qualname__ = f"ProviderSuite.test_{name}"
    test.__doc__ = describe(name)
    return test


for _name in CHECKS:
    setattr(ProviderSuite, f"test_{_name}", _build_test(_name))
