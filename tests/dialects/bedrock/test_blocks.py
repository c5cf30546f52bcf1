"""Content blocks while they arrive: thoughts with their seals, calls, and blocks that go back unchanged."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from asides.dialects.bedrock.blocks import CallBlock, RawBlock, ThoughtBlock, build_raw_part, is_provider_block
from asides.dialects.bedrock.wire import ReasoningDelta
from asides.values.events import Event, PartArrived, ThinkingDelta, ThoughtSealed, ToolCallDelta
from asides.values.parts import ServerTool, UnknownPart
from asides.values.thinking import Origin, Seal

ORIGIN = Origin("bedrock", "https://example", "m")


def thought(*deltas: dict[str, str]) -> list[Event]:
    opened, events = ThoughtBlock(1, "summary", ORIGIN), list[Event]()
    for delta in deltas:
        opened.feed(msgspec.convert(delta, ReasoningDelta), events)
    opened.finish(events)
    assert opened.is_sealed is any("text" not in delta for delta in deltas)
    return events


def seal(kind: str, value: str) -> ThoughtSealed:
    return ThoughtSealed(Seal(kind, value, ORIGIN), 1, "hidden" if kind == "redacted" else "summary", "block")


@pytest.mark.parametrize(
    ("deltas", "events"),
    [
        ([{"text": "so"}], [ThinkingDelta("so", 1, "summary", "block", "reasoningContent")]),
        (
            [{"text": "so"}, {"signature": "a"}, {"signature": "b"}],
            [ThinkingDelta("so", 1, "summary", "block", "reasoningContent"), seal("signature", "ab")],
        ),
        ([{"redactedContent": "eA"}, {"redactedContent": "=="}], [seal("redacted", "eA==")]),
        # Pieces that are padded each are joined as bytes: "x" and "y".
        ([{"redactedContent": "eA=="}, {"redactedContent": "eQ=="}], [seal("redacted", "eHk=")]),
        ([{"redactedContent": "%="}, {"redactedContent": "eQ=="}], [seal("redacted", "%=eQ==")]),
    ],
)
def test_a_thought_has_text_and_a_signature_or_data_of_the_provider(
    deltas: list[dict[str, str]], events: list[Event]
) -> None:
    assert thought(*deltas) == events


@pytest.mark.parametrize(
    ("call", "first"),
    [
        (("c1", "f", ""), ToolCallDelta(2, "c1", "f")),
        (("c1", "f", '{"a":1}'), ToolCallDelta(2, "c1", "f", '{"a":1}')),
        (("", "", ""), ToolCallDelta(2)),
        ((None, None, ""), ToolCallDelta(2)),
    ],
)
def test_a_call_has_its_arguments_whole_or_in_deltas(
    call: tuple[str | None, str | None, str], first: ToolCallDelta
) -> None:
    events: list[Event] = []
    opened = CallBlock(2, *call, events)
    opened.feed("", events)
    opened.feed("{}", events)
    assert events == [first, ToolCallDelta(2, arguments="{}")]


@pytest.mark.parametrize(
    ("kind", "fields", "deltas", "grown"),
    [
        (
            "toolUse",
            {"type": "server_tool_use"},
            [{"input": '{"q":'}, {"input": "1}"}],
            {"type": "server_tool_use", "input": {"q": 1}},
        ),
        ("toolUse", {"type": "server_tool_use"}, [{"input": "{q"}], {"type": "server_tool_use", "input": "{q"}),
        (
            "toolResult",
            {"toolUseId": "c1"},
            [[{"text": "a"}], [{"text": "b"}]],
            {"toolUseId": "c1", "content": [{"text": "a"}, {"text": "b"}]},
        ),
        ("novel", {"a": 1}, [{"b": 2}], {"a": 1, "b": 2}),
        ("novel", 3, [4], 4),
    ],
)
def test_a_block_that_goes_back_grows_by_its_deltas(kind: str, fields: Any, deltas: list[Any], grown: Any) -> None:
    opened, events = RawBlock(3, kind, fields, ORIGIN), list[Event]()
    for delta in deltas:
        opened.feed(delta)
    opened.finish(events)
    assert events == [PartArrived(build_raw_part(kind, grown, ORIGIN), 3)]
    assert opened.is_known is (kind != "novel")


@pytest.mark.parametrize(
    ("kind", "fields", "part"),
    [
        ("novel", {"b": 1, "a": 2}, UnknownPart('{"novel":{"a":2,"b":1}}', ORIGIN)),
        ("toolUse", {"name": "f"}, UnknownPart('{"toolUse":{"name":"f"}}', ORIGIN)),
        (
            "toolUse",
            {"type": "server_tool_use", "name": "search", "toolUseId": "s1"},
            ServerTool(
                "search", "s1", None, '{"toolUse":{"name":"search","toolUseId":"s1","type":"server_tool_use"}}', ORIGIN
            ),
        ),
        (
            "toolResult",
            {"status": "error"},
            ServerTool("toolResult", None, "error", '{"toolResult":{"status":"error"}}', ORIGIN),
        ),
    ],
)
def test_the_part_of_a_block_that_goes_back(kind: str, fields: Any, part: ServerTool | UnknownPart) -> None:
    assert build_raw_part(kind, fields, ORIGIN) == part
    assert is_provider_block(kind, fields) is isinstance(part, ServerTool)


@pytest.mark.parametrize(
    "text", ["[REDACTED]", " [REDACTED]\n[REDACTED]", "[RED ACTED]", "[REDACTED][REDA", "[REDACTED] x"]
)
@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_placeholder_is_recognised_in_any_pieces(text: str, size: int) -> None:
    events = thought(*({"text": text[start : start + size]} for start in range(0, len(text), size)))
    whole = thought({"text": text})
    if isinstance(whole[0], ThinkingDelta):
        assert "".join(event.text for event in events if isinstance(event, ThinkingDelta)) == text
    else:
        assert events == whole


def test_a_placeholder_that_never_ends_costs_what_its_pieces_cost() -> None:
    events = thought(*({"text": "[REDACTED]"} for _ in range(20_000)))
    assert [type(event) for event in events] == [ThoughtSealed]


def test_items_of_the_content_are_added_in_place() -> None:
    block = RawBlock(0, "toolResult", {"content": [0]}, ORIGIN)
    for number in range(1, 20_000):
        block.feed([number])
    events: list[Event] = []
    block.finish(events)
    (arrived,) = events
    assert isinstance(arrived, PartArrived)
    assert isinstance(arrived.part, ServerTool)
    assert json.loads(arrived.part.json)["toolResult"]["content"] == [*range(20_000)]
