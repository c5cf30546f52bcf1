"""Write replies and errors as a server of Ollama's chat does."""

from __future__ import annotations

import json

from asides.dialects import find_dialect
from asides.values.events import (
    Event,
    PartArrived,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageReported,
)
from asides.values.fold import fold
from asides.values.parts import Image
from asides.values.usage import Usage
from tests.decoding import reply_of, target

DIALECT = find_dialect("ollama")


EVENTS: list[Event] = [
    ReplyStarted("m"),
    ThinkingDelta("plan", 0),
    ThinkingDelta("more", 1),
    TextDelta("42", 2),
    RefusalDelta("!", 3),
    ToolCallDelta(4, None, "look", '{"n":'),
    ToolCallDelta(4, arguments="1}"),
    PartArrived(Image(data=b"hi"), 5),
    UsageReported(Usage(1, None)),
    UsageReported(Usage(None, 2)),
    ReplyEnded(StopReason("tool_calls")),
]


def test_lines_are_written_as_they_come_and_calls_whole() -> None:
    writer = DIALECT.writer(model="m", stream=True)
    pieces = [writer.write([event]) for event in EVENTS]
    assert writer.content_type == "application/x-ndjson"
    assert json.loads(pieces[1])["message"] == {"role": "assistant", "content": "", "thinking": "plan"}
    assert json.loads(pieces[2])["message"]["thinking"] == "\n\nmore"
    assert pieces[5:10] == [b""] * 5
    calls, last = (json.loads(line) for line in pieces[10].splitlines())
    assert calls["message"]["tool_calls"][0]["function"] == {"index": 0, "name": "look", "arguments": {"n": 1}}
    assert (last["done"], last["done_reason"], last["prompt_eval_count"], last["eval_count"]) == (True, "stop", 1, 2)
    assert writer.write([TextDelta("late")]) == b""


def test_whole_and_streamed_are_the_same_reply() -> None:
    replies = []
    for stream in (True, False):
        writer = DIALECT.writer(model="m", stream=stream)
        replies.append(reply_of([writer.write(EVENTS)], target(), "ollama")[0])
    assert replies[0] == replies[1]
    assert replies[0].text == "42!"
    assert replies[0].tool_calls == fold(EVENTS).tool_calls
    assert Image(data=b"hi") in replies[0].parts


def test_an_error_body_is_a_sentence() -> None:
    assert json.loads(DIALECT.write_error(404, "no such model", "nf")) == {"error": "no such model"}
