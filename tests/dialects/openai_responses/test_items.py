"""Output items while they arrive: each emits its events once, from deltas or whole, and its seal at the end."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides.dialects.openai_responses.items import (
    CallState,
    ItemState,
    MessageState,
    RawReasoning,
    ReasoningState,
    ServerToolState,
    UnknownState,
    build_message_entry,
)
from asides.dialects.openai_responses.wire import Entry, Item
from asides.dialects.tagged_text import TaggedText
from asides.values.events import (
    Event,
    PartArrived,
    RefusalDelta,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    Warned,
)
from asides.values.parts import ServerTool, UnknownPart
from asides.values.thinking import Origin, Seal
from tests.responses import target

ORIGIN = Origin("example", "https://example", "m")


def end(state: ItemState, item: dict[str, Any]) -> list[Event]:
    """What the whole item adds."""
    events: list[Event] = []
    state.end(msgspec.convert(item, Item), Entry(json.dumps(item).encode(), item), events)
    return events


def sealed(item: dict[str, Any], block: int, value: str = "") -> ThoughtSealed:
    return ThoughtSealed(Seal("encrypted" if value else "item", value, ORIGIN, json.dumps(item)), block)


SUMMARY = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}],
    "encrypted_content": "e1",
}
RAW = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "raw"}]}
BOTH = {**SUMMARY, "content": [{"type": "reasoning_text", "text": "raw"}]}


def summary(text: str) -> ThinkingDelta:
    return ThinkingDelta(text, 1000, "summary", "responses_summary", "summary")


def raw(text: str) -> ThinkingDelta:
    return ThinkingDelta(text, 1000, "raw", "responses_raw", "reasoning_text")


@pytest.mark.parametrize(
    ("use", "item", "thoughts"),
    [
        ("aside", SUMMARY, [summary("one"), summary("\n\n"), summary("two")]),
        ("aside", RAW, []),
        ("aside", BOTH, [summary("one"), summary("\n\n"), summary("two")]),
        ("alone", RAW, [raw("raw")]),
        ("alone", BOTH, [summary("one"), summary("\n\n"), summary("two")]),
        ("shown", BOTH, [raw("raw")]),
        ("shown", SUMMARY, [summary("one"), summary("\n\n"), summary("two")]),
    ],
)
def test_a_reasoning_item_shows_its_summary_or_its_raw_text(
    use: RawReasoning, item: dict[str, Any], thoughts: list[Event]
) -> None:
    *found, seal = end(ReasoningState(1000, ORIGIN, use), item)
    assert found == thoughts
    assert isinstance(seal, ThoughtSealed)
    value = item.get("encrypted_content", "")
    assert (seal.seal.kind, seal.seal.value) == ("encrypted" if value else "item", value)
    kept = json.loads(seal.seal.entry or "")
    assert kept == ({name: part for name, part in item.items() if name != "content"} if use == "aside" else item)


def test_deltas_come_out_at_once_and_the_whole_item_adds_only_the_rest() -> None:
    state, events = ReasoningState(1000, ORIGIN, "aside"), list[Event]()
    state.feed("summary", 0, "on", events)
    state.feed_whole("summary", 0, "one", events, "whole")
    state.feed("summary", 1, " ", events)
    assert events == [summary("on"), summary("e")], "a blank part is none, so blanks wait for text"
    state.feed("summary", 1, "x", events)
    assert events[2:] == [summary("\n\n"), summary(" "), summary("x")]
    assert end(state, SUMMARY) == [
        ThoughtSealed(Seal("encrypted", "e1", ORIGIN, json.dumps(SUMMARY)), 1000, "hidden", "responses_summary")
    ], "a whole text that contradicts what is out adds nothing"


def test_raw_reasoning_that_waits_is_shown_when_its_item_never_ends() -> None:
    state, events = ReasoningState(1000, ORIGIN, "alone"), list[Event]()
    state.feed("raw", 0, "so", events)
    assert events == []
    state.flush(events)
    assert events == [raw("so")]


MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "content": [
        {"type": "output_text", "text": "Hello", "annotations": [], "logprobs": []},
        {"type": "refusal", "refusal": "No"},
    ],
}
ENTRY = '{"type":"message","id":"msg_1","content":[{"type":"output_text","annotations":[]},{"type":"refusal"}]}'


def message_state() -> MessageState:
    return MessageState(target().origin, TaggedText(1000, target()))


def test_a_message_has_texts_and_refusals_and_a_seal_without_either() -> None:
    origin = target().origin
    events = end(message_state(), MESSAGE)
    assert events == [
        TextDelta("Hello", 1000),
        RefusalDelta("No", 1001),
        ThoughtSealed(Seal("item", "", origin, ENTRY), 1000),
    ]
    state, streamed = message_state(), list[Event]()
    state.feed(0, "Hel", streamed)
    state.feed(0, "", streamed)
    assert streamed == [TextDelta("Hel", 1000)]
    assert end(state, MESSAGE)[0] == TextDelta("lo", 1000)


@pytest.mark.parametrize(
    ("part", "code"),
    [({"type": "output_text", "text": 3}, "malformed_field"), ({"type": "hologram"}, "unknown_content_part")],
)
def test_a_part_that_cannot_be_shown_is_noticed(part: dict[str, Any], code: str) -> None:
    (warned,) = end(message_state(), {"type": "message", "content": [part, None]})
    assert isinstance(warned, Warned)
    assert warned.notice.code == code


CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": '{"a":1}'}


def test_a_call_comes_whole_or_in_deltas_and_says_its_name_once() -> None:
    whole = end(CallState(2000, "function_call", ORIGIN), CALL)
    assert whole == [ToolCallDelta(2000, "c1", "f"), ToolCallDelta(2000, arguments='{"a":1}'), sealed(CALL, 2000)]
    state, events = CallState(2000, "function_call", ORIGIN), list[Event]()
    state.begin(Item(type="function_call", call_id="c1", name="f"), Entry(b"{}", {}), events)
    state.feed('{"a"', events)
    assert events == [ToolCallDelta(2000, "c1", "f"), ToolCallDelta(2000, arguments='{"a"')]
    assert end(state, CALL) == [ToolCallDelta(2000, arguments=":1}"), sealed(CALL, 2000)]


@pytest.mark.parametrize(
    ("kind", "item", "events"),
    [
        ("function_call", {"id": "fc_1", "name": "f"}, [ToolCallDelta(0, "fc_1", "f")]),
        ("function_call", {}, [ToolCallDelta(0)]),
        (
            "function_call",
            {"call_id": "c1", "name": "f", "arguments": {"a": 1}},
            [ToolCallDelta(0, "c1", "f"), ToolCallDelta(0, arguments='{"a":1}')],
        ),
        (
            "custom_tool_call",
            {"call_id": "c1", "name": "f", "input": "free text"},
            [ToolCallDelta(0, "c1", "f", custom=True), ToolCallDelta(0, arguments="free text", custom=True)],
        ),
    ],
)
def test_a_call_with_less_or_other_fields(kind: str, item: dict[str, Any], events: list[Event]) -> None:
    assert end(CallState(0, kind, ORIGIN), item) == [*events, sealed(item, 0)]


def test_a_tool_of_the_provider_reports_each_status_once() -> None:
    state, events = ServerToolState(3000, "web_search_call", ORIGIN), list[Event]()
    item = {"type": "web_search_call", "id": "ws_1", "status": "in_progress"}
    state.begin(msgspec.convert(item, Item), Entry(json.dumps(item).encode(), item), events)
    begun = ServerTool("web_search_call", "ws_1", "in_progress", json.dumps(item), ORIGIN)
    state.emit_progress("in_progress", events)
    state.emit_progress("searching", events)
    searching = msgspec.structs.replace(begun, status="searching")
    assert events == [PartArrived(begun, 3000), PartArrived(searching, 3000)]


@pytest.mark.parametrize(("kind", "codes"), [("hologram", ["unknown_item"]), ("compaction", [])])
def test_an_item_of_an_unknown_type_goes_back_with_a_warning_unless_it_is_state(kind: str, codes: list[str]) -> None:
    part, *warned = end(UnknownState(0, kind, ORIGIN), {"type": kind})
    assert part == PartArrived(UnknownPart(json.dumps({"type": kind}), ORIGIN), 0)
    assert [event.notice.code for event in warned if isinstance(event, Warned)] == codes


@pytest.mark.parametrize(
    ("item", "entry"),
    [
        (MESSAGE, ENTRY),
        ({"type": "message", "content": "bare", "phase": "commentary"}, '{"type":"message","phase":"commentary"}'),
        ({"type": "message", "content": []}, None),
        ({"type": "message", "id": None}, None),
    ],
)
def test_the_entry_of_a_message_has_its_fields_without_the_texts(item: dict[str, Any], entry: str | None) -> None:
    assert build_message_entry(item) == entry
