"""Two made-up providers pass the suite: one that is only a row, and one with its own dialect.

An author of a provider runs the suite like this.
"""

from __future__ import annotations

import pytest

import asides
from asides_stage import Example, ProviderCheck, ProviderSuite, checks, examine
from tests.testing.conformance.toy import TOY, dialect

# A host that speaks chat completions with quirks; the row is all of it.
ROW_ONLY = asides.Provider(
    name="ponder-host",
    base_url="https://ponder.example/v1",
    key_env=("PONDER_API_KEY",),
    quirks=asides.Quirks(thinking_in=("inner_voice",), ask_by="thinking_toggle", replay_field="inner_voice"),
    models=(
        asides.ModelRule(models="plain-*", thinking="never"),
        asides.ModelRule(models="ponder-*", thinking="optional", default="on", budget=(1024, None)),
    ),
    replay=(asides.ReplayRule(when="tool_turns"),),
)
RECORDED = Example(
    name="a sum",
    whole=b'{"id":"1","model":"ponder-1","choices":[{"index":0,"message":{"role":"assistant","content":"42",'
    b'"inner_voice":"six times seven"},"finish_reason":"stop"}]}',
    stream=b'data: {"id":"1","model":"ponder-1","choices":[{"index":0,"delta":{"inner_voice":"six times "}}]}\n\n'
    b'data: {"id":"1","model":"ponder-1","choices":[{"index":0,"delta":{"inner_voice":"seven"}}]}\n\n'
    b'data: {"id":"1","model":"ponder-1","choices":[{"index":0,"delta":{"content":"42"},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n",
    text="42",
    thinking="six times seven",
    tool_calls=(),
    seals=(),
    stop="stop",
    outcome="answered",
)


class TestRowOnly(ProviderSuite):
    """A row and an example of its host's answers."""

    provider = ROW_ONLY
    examples = (RECORDED,)


class TestModelThatNeverThinks(ProviderSuite):
    """Another model of the same row."""

    provider = ROW_ONLY
    model = "plain-1"
    quick = True


class TestToy(ProviderSuite):
    """A dialect of its own, registered during the examination."""

    provider = TOY
    dialect = dialect


@pytest.mark.parametrize("check", checks(TOY, dialect=dialect, network=False, quick=True), ids=str)
def test_the_checks_one_by_one(check: ProviderCheck) -> None:
    if check.name != "examples_are_read":
        check()


def test_nothing_is_skipped_without_a_reason() -> None:
    assert [finding.check for finding in examine(TOY, dialect=dialect, quick=True).skipped] == ["examples_are_read"]
    row_only = {finding.check: finding.reason for finding in examine(ROW_ONLY, examples=[RECORDED], quick=True).skipped}
    assert list(row_only) == ["seals_return"]
    assert "request_rules" in row_only["seals_return"]
