"""Which ids of a provider's calls a caller gets, and how targets take the ids of others on both sides of a pair."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from asides.dialects import DIALECTS, find_dialect, plain_row
from asides.providers.find import find_target
from asides.providers.provider import Target
from asides.relay.translate.call_ids import CallerIds, can_pass, mint_call_id
from asides.values.events import Event, ReplyStarted, TextDelta, ToolCallDelta
from asides.values.messages import Message, Prompt, user
from asides.values.parts import ToolCall, ToolResult
from asides.values.tools import Tool

RANDOM = (
    "call_9hQvL2mXbT7sYwKdPz31RfGc",
    "toolu_01A09q90qw90lq917835lq9",
    "tooluse_kZJMlvQmRJ6eAyJE5GIl7Q",
    "D681PevKs",
    "chatcmpl-tool-4f3c1a9b7d2e4c81",
    "fc_0a1b2c3d4e5f60718293a4b5c6d7",
    "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
    "call_00_Xy7Kq2Lm9Pz4",
)
PLAIN = (
    "",
    "call_0",
    "call_1_get_weather",
    "get_weather",
    "call_get_current_weather",
    "functions.get_weather:0",
    "123456789",
    "call_123456789012",
    "weather_lookup_42",
    "call_" + "aB3" * 20,
    "call_9hQvL2mX bT7sYw",
)


@pytest.mark.parametrize("call_id", RANDOM)
def test_a_random_id_passes(call_id: str) -> None:
    assert can_pass(call_id)


@pytest.mark.parametrize("call_id", PLAIN)
def test_an_id_that_may_come_again_or_that_a_dialect_refuses_does_not_pass(call_id: str) -> None:
    assert not can_pass(call_id)


def test_ours_pass_and_no_two_are_alike() -> None:
    minted = {mint_call_id() for _ in range(1000)}
    assert len(minted) == 1000
    assert all(can_pass(each) and re.fullmatch(r"[A-Za-z0-9_]{29}", each) for each in minted)


def ids_of(events: Any) -> list[str | None]:
    return [event.id for event in events if isinstance(event, ToolCallDelta)]


def test_a_good_id_stays_and_nothing_is_copied() -> None:
    events: list[Event] = [
        ReplyStarted("m"),
        TextDelta("a"),
        ToolCallDelta(1, RANDOM[0], "f"),
        ToolCallDelta(1, arguments="{}"),
    ]
    ids = CallerIds()
    assert ids.fit(events) is events
    assert ids.originals == {}


def test_a_counted_id_is_replaced_and_its_original_kept() -> None:
    ids = CallerIds()
    first, second = ids.fit([ToolCallDelta(1, "call_0", "f"), ToolCallDelta(1, arguments="{}")])
    (given,) = ids_of([first])
    assert given is not None
    assert can_pass(given)
    assert ids.originals == {given: "call_0"}
    assert second == ToolCallDelta(1, arguments="{}")
    other = CallerIds()
    assert ids_of(other.fit([ToolCallDelta(1, "call_0", "f")])) != [given]


def test_a_call_without_an_id_gets_one_at_once_and_a_late_id_is_its_original() -> None:
    ids = CallerIds()
    (begun,) = ids.fit([ToolCallDelta(2, None, "f", '{"a":1}')])
    (late,) = ids.fit([ToolCallDelta(2, "call_derived")])
    (given,) = ids_of([begun])
    assert given is not None
    assert ids_of([late]) == [given]
    assert ids.originals == {given: "call_derived"}


def test_two_calls_with_one_id_are_two_calls_for_the_caller() -> None:
    ids = CallerIds()
    events = ids.fit([ToolCallDelta(1, RANDOM[0], "f"), ToolCallDelta(2, RANDOM[0], "g")])
    first, second = ids_of(events)
    assert first == RANDOM[0] != second
    assert ids.originals == {second: RANDOM[0]}


# --- what targets get -------------------------------------------------------------------------------------------------

LONG = "call_" + "x" * 70
ODD = "functions.get_weather:0"
GRAMMARS = {
    "anthropic": r"[a-zA-Z0-9_-]{1,64}",
    "bedrock": r"[a-zA-Z0-9_-]{1,64}",
    "openai_chat": r".{1,40}",
    "openai_responses": r".{1,64}",
}


def find_pairs(body: Any) -> tuple[list[str], list[str]]:
    """Return the ids of all calls and of all results in a body, in order."""
    calls: list[str] = []
    results: list[str] = []

    def visit(node: Any) -> None:
        if isinstance(node, list):
            for each in node:
                visit(each)
        if not isinstance(node, dict):
            return
        kind = node.get("type")
        if kind == "tool_use" or (kind == "function" and "id" in node):
            calls.append(node["id"])
        elif kind == "function_call":
            calls.append(node["call_id"])
        elif kind in ("tool_result", "function_call_output"):
            results.append(node.get("tool_use_id") or node["call_id"])
        elif node.get("role") == "tool":
            results.append(node["tool_call_id"])
        for name, inner in node.items():
            if name == "toolUse":
                calls.append(inner["toolUseId"])
            elif name == "toolResult":
                results.append(inner["toolUseId"])
            else:
                visit(inner)

    visit(body)
    return calls, results


def encode_history(target: Target) -> Any:
    calls = [
        ToolCall(call_id, "get_weather", {"n": number})
        for number, call_id in enumerate((LONG, LONG + "y", ODD, "plain"))
    ]
    results = tuple(ToolResult(call.id, "42", call.name) for call in calls)
    prompt = Prompt(
        (user("?"), Message("assistant", tuple(calls)), Message("tool", results)), tools=(Tool("get_weather"),)
    )
    return json.loads(find_dialect(target.dialect).encode(prompt, target)[0].body)


@pytest.mark.parametrize("dialect", sorted(GRAMMARS))
def test_ids_fit_the_grammar_of_a_dialect_and_both_sides_of_a_pair_are_alike(dialect: str) -> None:
    row = plain_row(dialect)
    calls, results = find_pairs(encode_history(Target(row, "m", row.base_url or "http://localhost:9")))
    assert calls == results
    assert len(set(calls)) == 4
    assert all(re.fullmatch(GRAMMARS[dialect], each) for each in calls)
    assert "plain" in calls


def test_a_host_that_wants_nine_characters_gets_nine() -> None:
    calls, results = find_pairs(encode_history(find_target("mistral:mistral-large-latest")))
    assert calls == results
    assert len(set(calls)) == 4
    assert all(re.fullmatch(r"[a-zA-Z0-9]{9}", each) for each in calls)


def test_every_dialect_is_looked_at() -> None:
    # The others take any text as an id.
    assert set(DIALECTS) - set(GRAMMARS) == {"cohere", "gemini", "gemini_interactions", "ollama"}
