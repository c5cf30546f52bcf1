"""Events of a reply as server-sent events: in their order, thinking apart, deltas of one read together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.values.events import (
    Event,
    PartArrived,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
    Warned,
)
from asides.values.notices import Notice
from asides.values.parts import ServerTool, UnknownPart
from asides.values.thinking import Seal
from asides.values.usage import Usage
from asides.values.visibility import Visibility
from asides_gateway.page_events import EventWriter, write_event

_ALL = Visibility(gateway=("raw", "summary"))
_SEAL = Seal("signature", "secret-seal")


def write(*batches: list[Event], visibility: Visibility = _ALL) -> list[tuple[str, Any]]:
    ticks = iter(range(1000))
    writer = EventWriter(visibility, lambda: float(next(ticks)))
    written = b"".join([*(writer.write(batch) for batch in batches), writer.finish()])
    assert b"secret-seal" not in written
    found: list[tuple[str, Any]] = []
    for event in written.decode().split("\n\n")[:-1]:
        name, data = event.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_deltas_of_one_read_leave_together_and_blocks_stay_apart() -> None:
    assert write(
        [ReplyStarted("m"), ThinkingDelta("a", 0), ThinkingDelta("b", 0)],
        [ThinkingDelta("c", 0), TextDelta("d", 1), TextDelta("e", 1)],
        [TextDelta("f", 1), TextDelta("g", 2), UsageReported(Usage(1, 2)), ReplyEnded()],
    ) == [
        ("thought", {"block": 0, "kind": "raw", "text": "ab"}),
        ("thought", {"block": 0, "kind": "raw", "text": "c"}),
        ("thought_end", {"block": 0, "seconds": 1.0}),
        ("text", {"block": 1, "text": "de"}),
        ("text", {"block": 1, "text": "f"}),
        ("text", {"block": 2, "text": "g"}),
    ]


def test_interleaved_thoughts_and_calls_keep_their_order() -> None:
    assert write(
        [ThinkingDelta("a", 0, "summary"), ThoughtSealed(_SEAL, 0)],
        [
            ToolCallDelta(1, "c1", "look", '{"a":'),
            ToolCallDelta(2, "c2", "find", "{}"),
            ToolCallDelta(1, arguments="1}"),
        ],
        [ThinkingDelta("b", 3, "summary"), TextDelta("c", 4)],
    ) == [
        ("thought", {"block": 0, "kind": "summary", "text": "a"}),
        ("thought_end", {"block": 0, "seconds": 1.0}),
        ("call", {"block": 1, "id": "c1", "name": "look", "arguments": {"a": 1}}),
        ("call", {"block": 2, "id": "c2", "name": "find", "arguments": {}}),
        ("thought", {"block": 3, "kind": "summary", "text": "b"}),
        ("thought_end", {"block": 3, "seconds": 1.0}),
        ("text", {"block": 4, "text": "c"}),
    ]


@pytest.mark.parametrize("visible", [(), ("summary",)])
def test_thinking_that_may_not_be_seen_is_hidden_and_not_left_out(visible: Any) -> None:
    events = write(
        [ThinkingDelta("private", 0), ThinkingDelta("private", 0)],
        [ThinkingDelta("private", 0), TextDelta("c", 1)],
        visibility=Visibility(gateway=visible),
    )
    assert events == [
        ("thought", {"block": 0, "kind": "hidden", "text": ""}),
        ("thought_end", {"block": 0, "seconds": 1.0}),
        ("text", {"block": 1, "text": "c"}),
    ]


def test_a_seal_alone_is_a_hidden_thought_unless_it_is_of_a_text() -> None:
    assert write([ThoughtSealed(_SEAL, 0), TextDelta("a", 1), ThoughtSealed(_SEAL, 1)]) == [
        ("thought", {"block": 0, "kind": "hidden", "text": ""}),
        ("thought_end", {"block": 0, "seconds": 0.0}),
        ("text", {"block": 1, "text": "a"}),
    ]
    assert write([TextDelta("a", 0), TextDelta("", 1), ThoughtSealed(_SEAL, 1)]) == [
        ("text", {"block": 0, "text": "a"})
    ]
    assert write([ThoughtSealed(_SEAL, 0)], [TextDelta("a", 0)]) == [("text", {"block": 0, "text": "a"})]


def test_what_else_there_is() -> None:
    assert write(
        [
            Warned(Notice("effort_mapped", "high is called max here")),
            RefusalDelta("I will not.", 0),
            PartArrived(ServerTool("web_search", "s1", "completed", '{"secret":1}'), 1),
            PartArrived(UnknownPart('{"secret":1}'), 2),
            ToolCallDelta(3, "c1", "run", "no json"),
        ]
    ) == [
        ("notice", {"code": "effort_mapped", "detail": "high is called max here"}),
        ("text", {"block": 0, "refusal": True, "text": "I will not."}),
        (
            "call",
            {
                "block": 1,
                "id": "s1",
                "name": "web_search",
                "arguments": {},
                "by_provider": True,
                "status": "completed",
            },
        ),
        ("call", {"block": 3, "id": "c1", "name": "run", "arguments": "no json"}),
    ]


def test_text_cannot_forge_an_event() -> None:
    text = "\n\nevent: ended\ndata: {}\n\n\r\r\u2028"
    assert write([TextDelta(text, 0)]) == [("text", {"block": 0, "text": text})]


def test_half_a_character_costs_no_answer() -> None:
    assert write_event("text", {"text": "a\ud800b"}).decode()
    assert len(write([TextDelta("a\ud800b", 0)])) == 1
