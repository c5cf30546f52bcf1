"""Write replies and errors as a server of generateContent does: signatures, calls, stop reasons, usage."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from asides.dialects.gemini import dialect
from asides.providers.find import find_target
from asides.values.events import (
    Event,
    PartArrived,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    StopKind,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
    Warned,
)
from asides.values.fold import fold
from asides.values.notices import Notice
from asides.values.parts import Image, ServerTool
from asides.values.thinking import Seal
from asides.values.usage import Usage

END = ReplyEnded(StopReason("stop"))


def seal(value: str, block: int, kind: str = "thought_signature") -> ThoughtSealed:
    return ThoughtSealed(Seal(kind, value), block)


def whole(*events: Event) -> dict[str, Any]:
    written: dict[str, Any] = json.loads(dialect.writer(model="m", stream=False).write(events))
    return written


def parts(*events: Event) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = whole(*events, END)["candidates"][0]["content"]["parts"]
    return found


def test_a_signature_goes_into_the_part_before_it() -> None:
    assert parts(
        ThinkingDelta("plan", 0),
        TextDelta("4", 1),
        TextDelta("2", 1),
        seal("s1", 1),
        seal("other dialect", 1, "signature"),
        seal("s2", 2),
        TextDelta("", 3),
        seal("s3", 3),
    ) == [
        {"text": "plan", "thought": True},
        {"text": "42", "thoughtSignature": "s1"},
        {"text": "", "thought": True, "thoughtSignature": "s2"},
        {"text": "", "thoughtSignature": "s3"},
    ]


def test_a_whole_response_has_one_part_for_each_run_of_text() -> None:
    assert parts(
        *(ThinkingDelta(piece, 0) for piece in "plan"),
        *(TextDelta(piece, 1) for piece in "forty-two"),
        ToolCallDelta(2, "a", "look", "{}"),
        *(TextDelta(piece, 3) for piece in "then"),
        *(TextDelta(piece, 4) for piece in "more"),
    ) == [
        {"text": "plan", "thought": True},
        {"text": "forty-two"},
        {"functionCall": {"id": "a", "name": "look", "args": {}}},
        {"text": "then"},
        {"text": "more"},
    ]


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (StopReason("refusal"), "SAFETY"),
        (StopReason("stop"), "SAFETY"),
        (StopReason("stop", "STOP"), "SAFETY"),
        (StopReason("content_filter", "PROHIBITED_CONTENT"), "PROHIBITED_CONTENT"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_a_refusal_reads_back_through_our_own_decoder(stop: StopReason, reason: str, stream: bool) -> None:
    writer = dialect.writer(model="m", stream=stream)
    body = writer.write([RefusalDelta("I would ", 0), RefusalDelta("rather not.", 0), ReplyEnded(stop)])
    decoder = dialect.decoder(find_target("google:gemini-3-pro-preview"))
    reply = fold([*decoder.feed(body), *decoder.finish()])
    assert (reply.refusal, reply.text, reply.outcome) == ("I would rather not.", "", "filtered")
    assert reply.stop.raw == reason


def test_a_second_signature_of_a_block_gets_a_separate_part() -> None:
    assert parts(TextDelta("42", 0), seal("s1", 0), seal("s2", 0)) == [
        {"text": "42", "thoughtSignature": "s1"},
        {"text": "", "thought": True, "thoughtSignature": "s2"},
    ]


def test_calls_are_written_whole_in_their_position() -> None:
    written = parts(
        TextDelta("so", 0),
        ToolCallDelta(1, "a", "look", '{"at":'),
        ToolCallDelta(2, None, "look", "{}"),
        ToolCallDelta(1, arguments='"x"}'),
        seal("s1", 1),
        PartArrived(Image(data=b"hi"), 3),
        seal("s2", 3),
        TextDelta("then", 4),
    )
    made_up = written[2]["functionCall"].pop("id")
    assert made_up.startswith("call_")
    assert written == [
        {"text": "so"},
        {"functionCall": {"id": "a", "name": "look", "args": {"at": "x"}}, "thoughtSignature": "s1"},
        {"functionCall": {"name": "look", "args": {}}},
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}, "thoughtSignature": "s2"},
        {"text": "then"},
    ]


def test_tools_of_the_server_go_where_they_were() -> None:
    document = whole(
        PartArrived(ServerTool("executableCode", json='{"executableCode":{"code":"1"}}'), 0),
        PartArrived(ServerTool("of another dialect", json="{}"), 1),
        PartArrived(ServerTool("groundingMetadata", json='{"a":1}'), 2),
        END,
    )
    candidate = document["candidates"][0]
    assert candidate["content"]["parts"] == [{"executableCode": {"code": "1"}}]
    assert candidate["groundingMetadata"] == {"a": 1}


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (StopReason("stop"), "STOP"),
        (StopReason("tool_calls"), "STOP"),
        (StopReason("length"), "MAX_TOKENS"),
        (StopReason("content_filter", "RECITATION"), "RECITATION"),
        (StopReason("content_filter", "content_filter"), "SAFETY"),
        (StopReason("refusal"), "SAFETY"),
        (StopReason(), "OTHER"),
    ],
)
def test_the_finish_reasons(stop: StopReason, reason: StopKind) -> None:
    assert whole(ReplyEnded(stop))["candidates"][0]["finishReason"] == reason


def test_output_excludes_thinking_and_counts_not_reported_are_absent() -> None:
    document = whole(UsageReported(Usage(10, 35, 30, None, 45)), END)
    assert document["usageMetadata"] == {
        "promptTokenCount": 10,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 30,
        "totalTokenCount": 45,
    }
    assert "usageMetadata" not in whole(END)


def test_a_stream_has_a_chunk_for_each_part_and_names_its_model() -> None:
    writer = dialect.writer(model="m", stream=True)
    events: list[Event] = [
        ReplyStarted("gemini-9", "r1"),
        Warned(Notice("a")),
        TextDelta("4", 0),
        TextDelta("2", 0),
        RefusalDelta("no", 1),
        END,
        TextDelta("late", 2),
    ]
    assert writer.content_type == "text/event-stream"
    lines = writer.write(events).decode().split("\r\n\r\n")
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line]
    assert [chunk["candidates"][0]["content"]["parts"] for chunk in chunks] == [[{"text": "4"}], [{"text": "2"}]]
    assert [chunk["candidates"][0].get("finishMessage") for chunk in chunks] == [None, "no"]
    assert {(chunk["modelVersion"], chunk["responseId"]) for chunk in chunks} == {("gemini-9", "r1")}


@pytest.mark.parametrize("stream", [True, False])
def test_every_reply_has_an_id_of_its_own(stream: bool) -> None:
    bodies = [dialect.writer(model="m", stream=stream).write([TextDelta("42"), TextDelta("!"), END]) for _ in range(3)]
    ids = [set(re.findall(rb'"responseId":"([^"]+)"', body)) for body in bodies]
    assert [len(found) for found in ids] == [1, 1, 1]
    assert len(set.union(*ids)) == 3


def test_an_error_body_has_the_status_names_of_the_dialect() -> None:
    assert json.loads(dialect.write_error(429, "slower")) == {
        "error": {"code": 429, "message": "slower", "status": "RESOURCE_EXHAUSTED"}
    }
    assert json.loads(dialect.write_error(502, "gone"))["error"]["status"] == "INTERNAL"
    assert json.loads(dialect.write_error(400, "no", "FAILED"))["error"]["status"] == "FAILED"


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_what_comes_late_for_a_call_that_was_written_makes_no_second_call(stream: bool) -> None:
    call = ToolCallDelta(5, "call_1", "look_up", "{}")
    late = (ToolCallDelta(5, "call_1"), ThoughtSealed(Seal("thought_signature", "bGF0ZQ=="), 5))
    writer = dialect.writer(model="m", stream=stream)
    thought = ThoughtSealed(Seal("thought_signature", "c2VhbA=="), 0)
    written = writer.write([ReplyStarted("m"), call, thought, *late, ReplyEnded(StopReason("tool_calls"))])
    chunks = [json.loads(line[6:]) for line in written.splitlines() if line.startswith(b"data: ")]
    parts = [
        part
        for chunk in (chunks if stream else [json.loads(written)])
        for part in chunk["candidates"][0]["content"]["parts"]
    ]
    assert [part["functionCall"]["name"] for part in parts if "functionCall" in part] == ["look_up"]
