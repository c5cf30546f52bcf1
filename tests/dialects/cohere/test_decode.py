"""Decode Cohere's v2 chat: items in order, the plan and the citations with their parts, broken streams."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.dialects import find_dialect
from asides.providers.find import find_provider
from asides.providers.provider import Target
from asides.values.errors import AuthError, ConnectionLost, ProtocolError, ProviderError
from asides.values.events import StopReason
from asides.values.parts import Text, ToolCall, UnknownPart
from asides.values.reply import Reply
from asides.values.thinking import Seal, Thought
from asides.values.usage import Usage
from tests import decoding

ROW = find_provider("cohere")
MODEL = "command-a-reasoning-08-2025"
TARGET = Target(ROW, MODEL, ROW.base_url, ROW.rule(MODEL))
USAGE = {
    "billed_units": {"input_tokens": 8.0, "output_tokens": 50},
    "tokens": {"input_tokens": 1394, "output_tokens": 54, "reasoning_tokens": 38},
    "cached_tokens": 1360,
}


def event(kind: str, message: dict[str, Any] | None = None, index: int | None = None, **more: Any) -> bytes:
    sent: dict[str, Any] = {"type": kind, **more}
    if index is not None:
        sent["index"] = index
    if message is not None:
        sent["delta"] = {"message": message}
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), json.dumps(sent, ensure_ascii=False).encode())


def item(index: int, kind: str, *pieces: str) -> bytes:
    begun = event("content-start", {"content": {"type": kind, kind: ""}}, index)
    deltas = [event("content-delta", {"content": {kind: piece}}, index) for piece in pieces]
    return begun + b"".join(deltas) + event("content-end", index=index)


def call(index: int, *pieces: str) -> bytes:
    started = {"id": f"look_{index}", "type": "function", "function": {"name": "look", "arguments": ""}}
    deltas = [event("tool-call-delta", {"tool_calls": {"function": {"arguments": one}}}, index) for one in pieces]
    return (
        event("tool-call-start", {"tool_calls": started}, index)
        + b"".join(deltas)
        + event("tool-call-end", index=index)
    )


def plan(*pieces: str) -> bytes:
    return b"".join(event("tool-plan-delta", {"tool_plan": piece}) for piece in pieces)


def stream(*events: bytes, finish: str = "COMPLETE", **end: Any) -> bytes:
    start = event("message-start", {"role": "assistant", "content": [], "tool_calls": [], "citations": []}, id="r1")
    sent = {"finish_reason": finish, "usage": USAGE, **end}
    return start + b"".join(events) + event("message-end", delta=sent)


def whole(finish: str = "COMPLETE", **message: Any) -> bytes:
    sent = {"id": "r1", "message": {"role": "assistant", **message}, "finish_reason": finish, "usage": USAGE}
    return json.dumps(sent, ensure_ascii=False).encode()


def decoded(body: bytes) -> Reply:
    return decoding.decoded(body, TARGET, "cohere")


def test_a_stream_and_a_whole_body_are_the_same_reply() -> None:
    streamed = decoded(stream(item(0, "thinking", "pl", "an"), item(1, "text", "4", "2é")) + b"data: [DONE]\n\n")
    content = [{"type": "thinking", "thinking": "plan"}, {"type": "text", "text": "42é"}]
    assert streamed == decoded(whole(content=content))
    assert streamed.parts == (Thought("plan", "raw", "block", streamed.origin, via="content"), Text("42é"))
    assert streamed.usage == Usage(1394, 54, 38, 1360, 1448, "derived")
    assert (streamed.id, streamed.model, streamed.stop) == ("r1", MODEL, StopReason("stop", "COMPLETE"))


def test_two_thoughts_and_two_texts_stay_apart() -> None:
    items = [("thinking", "a"), ("text", "b"), ("thinking", "c"), ("text", "d")]
    body = stream(*(item(index, kind, text) for index, (kind, text) in enumerate(items)))
    assert decoded(body) == decoded(whole(content=[{"type": kind, kind: text} for kind, text in items]))
    assert [type(part) for part in decoded(body).parts] == [Thought, Text, Thought, Text]


def test_the_plan_is_neither_answer_nor_thinking_and_goes_with_the_first_call() -> None:
    body = stream(plan("I will ", 'look "it" up.'), call(0, '{"n"', ":1}"), call(1, "{}"), finish="TOOL_CALL")
    reply = decoded(body)
    calls = [
        {"id": f"look_{place}", "function": {"name": "look", "arguments": raw}}
        for place, raw in enumerate(('{"n":1}', "{}"))
    ]
    assert reply == decoded(whole("TOOL_CALL", tool_plan='I will look "it" up.', tool_calls=calls))
    seal = Seal("tool_plan", "", reply.origin, '"I will look \\"it\\" up."')
    assert reply.tool_calls == (ToolCall("look_0", "look", {"n": 1}, None, (seal,)), ToolCall("look_1", "look"))
    assert (reply.text, reply.thinking.text, reply.seals) == ("", "", ())
    assert reply.stop == StopReason("tool_calls", "TOOL_CALL")


def test_citations_go_with_the_text_that_they_are_of() -> None:
    first = {"start": 0, "end": 1, "text": "4", "sources": [{"id": "é"}], "content_index": 1}
    second = {"start": 1, "end": 2, "text": "2"}
    cited = event("citation-start", {"citations": first}, 0) + event("citation-end", index=0)
    cited += event("citation-start", {"citations": second}, 1) + event("citation-end", index=1)
    reply = decoded(stream(item(0, "thinking", "plan"), item(1, "text", "42"), cited))
    content = [{"type": "thinking", "thinking": "plan"}, {"type": "text", "text": "42"}]
    assert reply == decoded(whole(content=content, citations=[first, second]))
    text = reply.parts[1]
    assert isinstance(text, Text)
    assert [json.loads(seal.entry or "") for seal in text.seals] == [[first], [second]]
    assert reply.seals == ()


def test_a_limit_that_ends_a_thought_leaves_it_incomplete() -> None:
    reply = decoded(stream(item(0, "thinking", "plan and"), finish="MAX_TOKENS"))
    assert reply.outcome == "starved"
    assert reply.thinking
    assert not reply.thinking.complete


def test_the_first_version_is_still_read() -> None:
    sent = {
        "text": "42",
        "generation_id": "g1",
        "tool_calls": [{"name": "look", "parameters": {"n": 1}}],
        "meta": {"billed_units": {"input_tokens": 23, "output_tokens": 60}},
        "citations": [],
    }
    reply = decoded(json.dumps(sent).encode())
    assert (reply.text, reply.id, reply.usage.input, reply.usage.output) == ("42", "g1", 23, 60)
    assert [(one.name, one.arguments) for one in reply.tool_calls] == [("look", {"n": 1})]


def test_a_stream_of_the_first_version_is_the_same_reply_as_its_whole() -> None:
    calls = [{"name": "look", "parameters": {"n": 1}}]
    meta = {"tokens": {"input_tokens": 23, "output_tokens": 60}}
    cited = [{"start": 0, "end": 2, "text": "42", "document_ids": ["é"]}]
    sent = {"text": "42", "generation_id": "g1", "tool_calls": calls, "citations": cited, "meta": meta}
    lines: list[dict[str, Any]] = [
        {"is_finished": False, "event_type": "stream-start", "generation_id": "g1"},
        {"is_finished": False, "event_type": "text-generation", "text": "4"},
        {"is_finished": False, "event_type": "text-generation", "text": "2"},
        {"is_finished": False, "event_type": "citation-generation", "citations": cited},
        {"is_finished": False, "event_type": "tool-calls-chunk", "tool_call_delta": {"name": "look"}},
        {"is_finished": False, "event_type": "tool-calls-generation", "tool_calls": calls},
        {"is_finished": False, "event_type": "news"},
        {"is_finished": True, "event_type": "stream-end", "finish_reason": "COMPLETE", "response": sent},
    ]
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    reply = decoded(body)
    whole = decoded(json.dumps({**sent, "finish_reason": "COMPLETE"}).encode())
    assert (reply.parts, reply.usage, reply.stop, reply.id) == (whole.parts, whole.usage, whole.stop, whole.id)
    assert (reply.text, reply.stop) == ("42", StopReason("stop", "COMPLETE"))
    assert [notice.code for notice in reply.warnings] == ["unknown_event"]
    with pytest.raises(ConnectionLost):
        decoded(body[: body.index(b'{"is_finished": true')])


def test_content_that_is_text_is_text() -> None:
    assert decoded(whole(content="42")).text == "42"


@pytest.mark.parametrize(
    ("raw", "reason"),
    [("STOP_SEQUENCE", "stop"), ("ERROR_TOXIC", "content_filter"), ("ERROR_LIMIT", "length"), ("NEWS", "unknown")],
)
def test_every_finish_reason_has_our_name(raw: str, reason: str) -> None:
    reply = decoded(stream(item(0, "text", "42"), finish=raw))
    assert reply.stop == StopReason(reason, raw)  # type: ignore[arg-type]
    assert bool(reply.warnings) == (reason == "unknown")


def test_an_error_at_the_end_is_raised_with_the_partial_reply() -> None:
    with pytest.raises(ProviderError, match="the model broke") as caught:
        decoded(stream(item(0, "text", "half"), finish="ERROR", error="the model broke"))
    assert caught.value.partial is not None
    assert caught.value.partial.text == "half"
    with pytest.raises(ProviderError, match="ended with TIMEOUT"):
        decoded(stream(finish="TIMEOUT"))
    with pytest.raises(ProviderError, match="invalid api token"):
        decoded(b'{"message":"invalid api token"}')


def test_a_stream_without_its_end_was_cut() -> None:
    body = stream(item(0, "text", "half"))
    with pytest.raises(ConnectionLost) as caught:
        decoded(body[: body.index(b"event: message-end")])
    assert caught.value.partial is not None
    assert caught.value.partial.text == "half"


def test_a_body_that_is_not_json_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError) as caught:
        decoded(b"data: {broken\n\n")
    assert caught.value.dialect == "cohere"


def test_unknown_content_gives_a_warning_and_no_crash() -> None:
    sound = {"type": "sound", "data": [1]}
    news = event("news", {"content": 3}) + event("content-start", {"content": sound}, 1)
    reply = decoded(stream(item(0, "text", "42"), news, plan("alone"), event("content-delta", {"content": 7}, 0)))
    assert reply.text == "42"
    assert reply.parts[1] == UnknownPart('{"type":"sound","data":[1]}', reply.origin)
    assert sorted(notice.code for notice in reply.warnings) == [
        "malformed_field",
        "tool_plan_alone",
        "unknown_content_part",
        "unknown_event",
    ]
    again = decoded(whole(content=[{"type": "text", "text": "42"}, sound]))
    assert again.parts == reply.parts
    assert decoded(b'{"id":"r1"}').to_message() is None


def test_an_error_repeats_the_message_of_the_server() -> None:
    error = find_dialect("cohere").error(401, {"x-debug-trace-id": "t1"}, b'{"message":"no api key supplied"}', TARGET)
    assert isinstance(error, AuthError)
    assert "no api key supplied" in str(error)
    assert error.request_id == "t1"
