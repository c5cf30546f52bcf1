"""The law of thinking switches: what is written for a setting is read back as that setting, at every host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import msgspec
import pytest

from asides.dialects import DIALECTS, find_dialect, plain_row
from asides.providers.find import list_providers
from asides.providers.provider import AskBy, ModelRule, Provider, Target
from asides.providers.switches.read import read
from asides.providers.switches.table import CHAT_BUDGETS, SWITCHES, Switch, find_switch, list_switches
from asides.providers.switches.write import write
from asides.values.messages import Prompt, user
from asides.values.thinking import EFFORTS, Effort, Thinking

MODES = (Thinking(), Thinking(mode="off"), Thinking(mode="on"), Thinking(mode="auto"), Thinking(mode="between_tools"))
BUDGETS = (Thinking(budget=1024), Thinking(budget=4000), Thinking(budget=30_000))
SHOWN = tuple(
    msgspec.structs.replace(asked, show="none") for asked in (MODES[2], Thinking(effort="high"), Thinking(budget=4000))
)


def list_targets(row: Provider) -> Iterator[Target]:
    for dialect in (row.dialect, *(variant.dialect for variant in row.also)):
        own = row.with_dialect(dialect)
        assert own is not None
        for rule in (*own.models, ModelRule()):
            yield Target(own, "model", own.base_url or "https://host.test/v1", rule)


def list_settings(rule: ModelRule) -> Iterator[Thinking]:
    """The settings that a plan lets through to such a model."""
    efforts: tuple[Effort, ...] = EFFORTS if rule.efforts is None else rule.efforts
    yield from (*MODES, *BUDGETS, *(Thinking(effort=effort) for effort in efforts))
    yield from (asked for asked in SHOWN if asked.effort is None or asked.effort in efforts)


@pytest.mark.parametrize("row", list_providers(), ids=lambda row: row.name)
def test_what_is_written_is_read_back(row: Provider) -> None:
    for target in list_targets(row):
        for asked in list_settings(target.rule):
            fields, notices = write(asked, target, target.dialect)
            sent = bool(fields)
            arrived = read(target.dialect, fields)
            case = f"{target.dialect} {target.rule.models}: {asked}"
            assert fields == {}, f"{case}: not taken out"
            if notices:
                continue  # the wire could not say all of it, and a notice says so
            if not sent:
                # The host's default, which needs no field: always thinking, never thinking, or as the model decides.
                assert not arrived.asked, case
                continue
            assert (arrived.mode == "off") == (asked.mode == "off"), case
            assert (arrived.effort, arrived.budget) == (asked.effort, asked.budget), case
            if asked.mode in ("auto", "between_tools") and target.facts.ask_by == "thinking_toggle":
                assert_form(asked, arrived, target)
            if target.facts.ask_by == "reasoning_object" and target.dialect == "openai_chat":
                assert (arrived.show, arrived.summary) == (asked.show, asked.summary), case
            # A host that sends its raw reasoning unasked has no summary to ask for.
            shows = target.dialect == "gemini" or target.quirks.raw_reasoning != "shown"
            if target.dialect in ("gemini", "openai_responses") and asked.wanted and shows:
                assert arrived.show == asked.show, case


def assert_form(asked: Thinking, arrived: Thinking, target: Target) -> None:
    """Only `thinking.type` of Messages has words for these modes; elsewhere both are "on"."""
    takes = asked.mode == "between_tools" or not target.rule.forms or "adaptive" in target.rule.forms
    if target.dialect in ("anthropic", "bedrock") and takes:
        assert arrived.mode == asked.mode


@pytest.mark.parametrize("row", list_providers(), ids=lambda row: row.name)
def test_the_field_for_a_budget_of_a_chat_row_can_be_read(row: Provider) -> None:
    if row.dialect == "openai_chat" and row.quirks.budget_in is not None:
        assert row.quirks.budget_in in CHAT_BUDGETS


def test_every_way_of_asking_has_a_switch_in_some_dialect() -> None:
    found = {ask_by for ask_by in get_args(AskBy) if any(find_switch(dialect, ask_by) for dialect in SWITCHES)}
    assert found == set(get_args(AskBy)) - {"nothing"}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_has_a_switch_that_the_probe_tries(dialect: str) -> None:
    assert list_switches(dialect, "on")


@pytest.mark.parametrize("switch", list_switches("openai_chat", "off"), ids=lambda switch: switch.name)
def test_a_row_writes_the_switch_that_was_tried(switch: Switch) -> None:
    """What turns thinking off in a probe is what the pasted row sends for `thinking="off"`."""
    rule = ModelRule(thinking="optional", default="on", ask_by=switch.ask_by, **switch.rule)
    target = Target(plain_row("openai_chat"), "m", "http://127.0.0.1:1/v1", rule)
    request, _ = find_dialect("openai_chat").encode(Prompt((user("?"),), thinking=Thinking(mode="off")), target)
    assert switch.ask("off").items() <= msgspec.json.decode(request.body).items()
