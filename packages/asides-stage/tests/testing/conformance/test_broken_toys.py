"""The suite finds what is broken: for each check there is a toy that fails it, and the finding says why."""

from __future__ import annotations

import pytest

from asides.history.plan import Plan
from asides.providers.provider import Provider, Target
from asides.values.messages import Prompt
from asides_stage import CHECKS, Example, checks
from tests.testing.conformance.broken_toys import BROKEN
from tests.testing.conformance.toy import TOY, ToyDialect, dialect


def test_every_check_has_a_toy_that_fails_it() -> None:
    assert {check for _, check, *_ in BROKEN} == set(CHECKS)


@pytest.mark.parametrize(
    ("check", "provider", "spoken", "examples"),
    [entry[1:] for entry in BROKEN],
    ids=[f"{entry[1]}-{entry[0].replace(' ', '_')}" for entry in BROKEN],
)
def test_the_right_check_fails(
    check: str, provider: Provider, spoken: ToyDialect, examples: tuple[Example, ...]
) -> None:
    made = {one.name: one for one in checks(provider, dialect=spoken, examples=examples)}
    finding = made[check].find()
    assert finding.verdict == "failed", finding
    assert finding.expected
    assert finding.actual
    assert finding.to_do
    # The sound toy passes the same check.
    whole = (Example(whole=b'{"by":"pondering-1","says":"42","over":"done"}', text="42"),)
    sound = {one.name: one for one in checks(TOY, dialect=dialect, examples=whole)}
    assert sound[check].find().verdict == "passed"


def test_foreign_thinking_is_found_where_the_plan_lets_it_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """No dialect can break this alone, since plan() removes such thinking; so plan() is broken here."""

    def keep_everything(prompt: Prompt, target: Target, *, on_conflict: str = "raise") -> Plan:
        del target, on_conflict
        return Plan(prompt)

    monkeypatch.setattr("asides_stage.conformance.case.plan", keep_everything)
    made = {one.name: one for one in checks(TOY, dialect=dialect)}
    finding = made["foreign_thinking_is_not_sent"].find()
    assert (finding.verdict, finding.actual) == ("failed", "the request contains it")
