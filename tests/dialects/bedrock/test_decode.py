"""Decode Converse responses: frames, lines and whole bodies; signatures and redacted thoughts; broken streams."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from asides.dialects import find_dialect
from asides.providers.find import find_provider
from asides.providers.provider import Target
from asides.values.errors import (
    AuthError,
    BadRequest,
    ConnectionLost,
    Overloaded,
    ProtocolError,
    ProviderError,
    RateLimited,
)
from asides.values.events import StopReason
from asides.values.messages import Message, Prompt
from asides.values.parts import ServerTool, Text, ToolCall, UnknownPart
from asides.values.reply import Reply
from asides.values.thinking import Seal, Thought
from asides.values.usage import Usage
from asides.wire.aws_frames import write_frame
from tests import decoding

ROW = find_provider("bedrock")
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NOVA = "us.amazon.nova-micro-v1:0"
USAGE = {"inputTokens": 10, "outputTokens": 20, "totalTokens": 30}

Event = tuple[str, dict[str, Any]]


def target(model: str) -> Target:
    return Target(ROW, model, "https://bedrock-runtime.us-east-1.amazonaws.com", ROW.rule(model))


def frame(name: str, payload: object, **headers: str) -> bytes:
    sent = {":event-type": name, ":content-type": "application/json", ":message-type": "event", **headers}
    return write_frame(sent, json.dumps(payload, ensure_ascii=False).encode())


def delta(index: int, **sent: Any) -> Event:
    return "contentBlockDelta", {"contentBlockIndex": index, "delta": sent, "p": "abcd"}


def thought(index: int, **sent: str) -> Event:
    return delta(index, reasoningContent=sent)


def start(index: int, **sent: Any) -> Event:
    return "contentBlockStart", {"contentBlockIndex": index, "start": sent}


def stop(index: int) -> Event:
    return "contentBlockStop", {"contentBlockIndex": index}


def events(*sent: Event, reason: str = "end_turn", usage: Any = USAGE) -> list[Event]:
    ending: list[Event] = [("messageStop", {"stopReason": reason}), ("metadata", {"usage": usage, "metrics": {}})]
    return [("messageStart", {"role": "assistant"}), *sent, *ending]


def stream(*sent: Event, reason: str = "end_turn", usage: Any = USAGE) -> bytes:
    return b"".join(frame(name, payload) for name, payload in events(*sent, reason=reason, usage=usage))


def whole(*content: dict[str, Any], reason: str = "end_turn", usage: Any = USAGE) -> bytes:
    message = {"role": "assistant", "content": list(content)}
    sent = {"output": {"message": message}, "stopReason": reason, "usage": usage, "metrics": {"latencyMs": 1}}
    return json.dumps(sent, ensure_ascii=False).encode()


def decoded(body: bytes, model: str = CLAUDE) -> Reply:
    return decoding.decoded(body, target(model), "bedrock")


SIGNED = (thought(0, text="pl"), thought(0, text="an"), thought(0, signature="c2ln"), stop(0))


def test_frames_lines_wrapped_chunks_and_a_whole_body_are_the_same_reply() -> None:
    sent = (*SIGNED, delta(1, text="4"), delta(1, text="2é"), stop(1))
    expected = decoded(stream(*sent))
    reasoning = {"reasoningContent": {"reasoningText": {"text": "plan", "signature": "c2ln"}}}
    assert expected == decoded(whole(reasoning, {"text": "42é"}))
    documents = [json.dumps({name: payload}, ensure_ascii=False).encode() for name, payload in events(*sent)]
    assert expected == decoded(b"\n".join(documents))
    wrapped = [frame("chunk", {"bytes": b64encode(document).decode()}) for document in documents]
    assert expected == decoded(b"".join(wrapped))
    assert expected == decoded(json.dumps(json.loads(whole(reasoning, {"text": "42é"})), indent=2).encode())
    origin = expected.origin
    assert expected.parts == (
        Thought("plan", "summary", "block", origin, (Seal("signature", "c2ln", origin),), "reasoningContent"),
        Text("42é"),
    )
    assert expected.usage == Usage(10, 20, None, None, 30)
    assert (expected.stop, expected.model) == (StopReason("stop", "end_turn"), CLAUDE)


def test_F3_F4_thoughts_between_texts_have_their_signatures() -> None:
    sent = (*SIGNED, delta(1, text="a"), thought(2, text="more"), thought(2, signature="bW9yZQ=="), delta(3, text="b"))
    reply = decoded(stream(*sent))
    assert [type(part) for part in reply.parts] == [Thought, Text, Thought, Text]
    assert [seal.value for seal in reply.seals] == ["c2ln", "bW9yZQ=="]


def test_F5_a_redacted_thought_in_pieces_is_put_together() -> None:
    plain = (thought(0, redactedContent="QUJD"), thought(0, redactedContent="REVG"), stop(0), delta(1, text="42"))
    padded = (thought(0, redactedContent="QQ=="), thought(0, redactedContent="QkNERUY="), stop(0), delta(1, text="42"))
    expected = decoded(whole({"reasoningContent": {"redactedContent": "QUJDREVG"}}, {"text": "42"}))
    assert decoded(stream(*plain)) == decoded(stream(*padded)) == expected
    assert [(seal.kind, seal.value) for seal in expected.seals] == [("redacted", "QUJDREVG")]
    assert expected.thinking
    assert (expected.thinking.kind, expected.thinking.text) == ("hidden", "")
    broken = decoded(stream(thought(0, redactedContent="?="), thought(0, redactedContent="?")))
    assert broken.seals[0].value == "?=?"


def test_F7_a_signature_without_text_is_stored() -> None:
    reply = decoded(stream(thought(0, signature="c2ln"), stop(0), delta(1, text="42")))
    assert reply == decoded(
        whole({"reasoningContent": {"reasoningText": {"text": "", "signature": "c2ln"}}}, {"text": "42"})
    )
    assert [seal.value for seal in reply.seals] == ["c2ln"]


def test_calls_are_put_together_from_pieces_of_json() -> None:
    call = start(1, toolUse={"toolUseId": "t1", "name": "look"})
    pieces = [delta(1, toolUse={"input": piece}) for piece in ('{"at"', ': "é', '"}', "")]
    second = start(2, toolUse={"toolUseId": "t2", "name": "look"})
    reply = decoded(stream(delta(0, text="Let me see."), stop(0), call, *pieces, stop(1), second, reason="tool_use"))
    sent = [{"toolUse": {"toolUseId": "t1", "name": "look", "input": {"at": "é"}}}]
    sent += [{"toolUse": {"toolUseId": "t2", "name": "look", "input": {}}}]
    assert reply == decoded(whole({"text": "Let me see."}, *sent, reason="tool_use"))
    assert reply.tool_calls == (ToolCall("t1", "look", {"at": "é"}), ToolCall("t2", "look"))
    assert reply.stop == StopReason("tool_calls", "tool_use")


def test_tools_that_the_provider_runs_are_no_calls_and_are_stored_unchanged() -> None:
    own = {"toolUseId": "t1", "name": "run", "type": "server_tool_use"}
    ran = {"toolUseId": "t1", "type": "run_result", "status": "success"}
    result = [{"json": {"out": "é"}}]
    streamed = decoded(
        stream(
            start(0, toolUse=own),
            delta(0, toolUse={"input": '{"code":'}),
            delta(0, toolUse={"input": '"1"}'}),
            stop(0),
            start(1, toolResult=ran),
            delta(1, toolResult=result),
            stop(1),
        )
    )
    assert streamed == decoded(
        whole({"toolUse": {**own, "input": {"code": "1"}}}, {"toolResult": {**ran, "content": result}})
    )
    assert streamed.tool_calls == ()
    first, second = streamed.parts
    assert isinstance(first, ServerTool)
    assert isinstance(second, ServerTool)
    assert (first.name, second.name, second.status) == ("run", "run_result", "success")
    assert json.loads(first.json) == {"toolUse": {**own, "input": {"code": "1"}}}


def test_tags_are_taken_out_also_where_every_delta_is_a_block() -> None:
    pieces = ["<think", "ing> pl", "an </thin", "king>", "\n4", "2"]
    scattered = stream(*(one for place, text in enumerate(pieces) for one in (delta(place, text=text), stop(place))))
    together = whole({"text": "".join(pieces)})
    reply = decoded(scattered, NOVA)
    assert reply == decoded(together, NOVA)
    assert (reply.text, reply.metadata["thinking"]) == ("42", " plan ")


def test_without_tags_the_texts_of_a_model_stay_separate_and_unchanged() -> None:
    reply = decoded(stream(delta(0, text="<thinking>"), stop(0), delta(1, text="is a tag")))
    assert [part.text for part in reply.parts if isinstance(part, Text)] == ["<thinking>", "is a tag"]


def test_citations_go_with_their_text() -> None:
    citation = {"title": "é", "location": {"documentChar": {"start": 0, "end": 2}}}
    reply = decoded(stream(delta(0, text="42"), delta(0, citation=citation), stop(0)))
    assert reply == decoded(whole({"citationsContent": {"content": [{"text": "42"}], "citations": [citation]}}))
    text = reply.parts[0]
    assert isinstance(text, Text)
    assert json.loads(text.seals[0].entry or "") == [citation]
    assert reply.seals == ()


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}, Usage(10, 5, None, None, 15)),
        (
            {
                "inputTokens": 10,
                "outputTokens": 5,
                "totalTokens": 45,
                "cacheReadInputTokens": 20,
                "cacheWriteInputTokens": 10,
            },
            Usage(40, 5, None, 20, 45, cache_written=10),
        ),
        ({"inputTokens": 10, "outputTokens": 5, "cacheReadInputTokens": 20}, Usage(30, 5, None, 20, 35, "derived")),
        (
            {"inputTokens": 30, "outputTokens": 5, "totalTokens": 35, "cacheReadInputTokens": 20},
            Usage(30, 5, None, 20, 35),
        ),
        (
            {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15, "cacheReadInputTokenCount": 0},
            Usage(10, 5, None, 0, 15),
        ),
    ],
)
def test_tokens_that_the_cache_read_and_wrote_are_input(usage: dict[str, int], expected: Usage) -> None:
    assert decoded(stream(delta(0, text="42"), usage=usage)).usage == expected


@pytest.mark.parametrize(
    ("raw", "reason", "outcome"),
    [
        ("stop_sequence", "stop", "answered"),
        ("max_tokens", "length", "answered"),
        ("model_context_window_exceeded", "length", "answered"),
        ("guardrail_intervened", "content_filter", "filtered"),
        ("content_filtered", "content_filter", "filtered"),
        ("malformed_tool_use", "error", "answered"),
        ("news", "unknown", "answered"),
    ],
)
def test_every_stop_reason_has_our_name(raw: str, reason: str, outcome: str) -> None:
    reply = decoded(stream(delta(0, text="42"), reason=raw))
    assert (reply.stop, reply.outcome) == (StopReason(reason, raw), outcome)  # type: ignore[arg-type]
    assert bool(reply.warnings) == (reason in ("error", "unknown"))


def test_a_limit_that_ends_a_thought_leaves_it_incomplete() -> None:
    cut = decoded(stream(thought(0, text="plan and"), reason="max_tokens"))
    assert cut.outcome == "starved"
    assert cut.thinking
    assert not cut.thinking.complete
    signed = decoded(stream(*SIGNED, reason="max_tokens"))
    assert signed.thinking
    assert signed.thinking.complete


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("throttlingException", RateLimited),
        ("validationException", BadRequest),
        ("modelStreamErrorException", Overloaded),
        ("internalServerException", Overloaded),
        ("serviceUnavailableException", Overloaded),
    ],
)
def test_an_exception_in_the_stream_is_raised_with_the_partial_reply(name: str, kind: type[ProviderError]) -> None:
    begun = frame("messageStart", {"role": "assistant"}) + frame(*delta(0, text="half"))
    sent = {":message-type": "exception", ":exception-type": name}
    with pytest.raises(kind, match="too much") as caught:
        decoded(begun + frame("", {"message": "too much"}, **sent) + frame(*delta(0, text=" more")))
    assert caught.value.partial is not None
    assert caught.value.partial.text == "half"
    lines = b'{"messageStart":{}}\n{"contentBlockDelta":{"delta":{"text":"half"}}}\n'
    with pytest.raises(kind, match="too much"):
        decoded(lines + json.dumps({name: {"message": "too much"}}).encode())


def test_a_stream_without_its_end_was_cut() -> None:
    body = stream(delta(0, text="half"))
    with pytest.raises(ConnectionLost) as caught:
        decoded(body[: body.index(b"messageStop") - 25])
    assert caught.value.partial is not None
    assert caught.value.partial.text == "half"
    for cut in range(body.index(b"metadata"), len(body)):
        with pytest.raises(ConnectionLost):
            decoding.decoded(body[:cut], target(CLAUDE), "bedrock")


def test_a_changed_byte_is_a_protocol_error_with_the_partial_reply() -> None:
    body = stream(delta(0, text="half"), delta(0, text=" more"))
    with pytest.raises(ProtocolError, match="checksum") as caught:
        decoded(body.replace(b" more", b" mare"))
    assert caught.value.dialect == "bedrock"
    assert caught.value.partial is not None
    assert caught.value.partial.text == "half"


def test_unknown_content_gives_a_warning_and_no_crash() -> None:
    reply = decoded(
        stream(
            ("news", {"a": 1}),
            delta(0, text="42"),
            delta(1, hologram={"depth": 1}),
            stop(1),
            start(2, image={"format": "png"}),
            delta(2, image={"source": {"bytes": "aGk="}}),
            stop(2),
            delta(3, text=7),
            ("contentBlockStart", {"contentBlockIndex": 4}),
        )
    )
    assert reply.text == "42"
    assert reply.parts[1:] == (
        UnknownPart('{"hologram":{"depth":1}}', reply.origin),
        UnknownPart('{"image":{"format":"png","source":{"bytes":"aGk="}}}', reply.origin),
    )
    assert {notice.code for notice in reply.warnings} == {"unknown_event", "unknown_content_part", "malformed_field"}
    again = decoded(whole({"text": "42"}, {"hologram": {"depth": 1}}))
    assert again.parts == reply.parts[:2]
    assert decoded(b'{"stopReason":"end_turn"}').to_message() is None


def test_an_error_repeats_the_message_of_the_service() -> None:
    dialect = find_dialect("bedrock")
    headers = {"x-amzn-errortype": "AccessDeniedException:http://internal", "x-amzn-requestid": "r1"}
    error = dialect.error(403, headers, b'{"Message":"no access to the model"}', target(CLAUDE))
    assert isinstance(error, AuthError)
    assert (error.code, error.request_id) == ("AccessDeniedException", "r1")
    assert "no access to the model" in str(error)
    named = dialect.error(400, {}, b'{"__type":"com.amazon#ValidationException","message":"bad"}', target(CLAUDE))
    assert named.code == "ValidationException"
    with pytest.raises(ProviderError, match="the model failed"):
        decoded(b'{"message":"the model failed","originalStatusCode":500}')


def test_a_broken_frame_before_a_cut_one_is_the_error() -> None:
    body = (
        frame("messageStart", {"role": "assistant"}) + frame("chunk", {"nothing": 1}) + frame(*delta(0, text="x"))[:9]
    )
    with pytest.raises(ProtocolError, match="cannot be unwrapped"):
        decoded(body)


@pytest.mark.parametrize("content", [7, "words", {"a": 1}])
@pytest.mark.parametrize("fields", ["words", 7, [1], {"content": 7}])
def test_a_tool_result_of_another_form_is_stored_unchanged(fields: Any, content: Any) -> None:
    assert decoded(whole({"toolResult": fields}, {"text": "42"})).text == "42"
    result = (start(0, toolResult=fields), delta(0, toolResult=content), delta(0, toolResult=[{"text": "a"}]), stop(0))
    assert decoded(stream(*result, delta(1, text="42"), stop(1))).text == "42"


def test_a_frame_that_holds_no_json_breaks_the_dialect_in_any_chunking() -> None:
    broken = write_frame({":event-type": "contentBlockDelta", ":message-type": "event"}, b'{"contentBlockIndex": 0')
    ending = frame("messageStop", {"stopReason": "end_turn"})
    with pytest.raises(ProtocolError):
        decoded(frame("messageStart", {"role": "assistant"}) + broken + ending)


@pytest.mark.parametrize(
    "texts",
    [["[REDACTED]"], ["[REDA", "CTED]"], list("[REDACTED]"), ["[REDACTED]", "[REDACTED]"], ["[REDACTED]\n"]],
    ids=repr,
)
def test_a_placeholder_for_thinking_is_hidden_thinking(texts: list[str]) -> None:
    reasoning = [{"contentBlockDelta": {"delta": {"reasoningContent": {"text": text}}}} for text in texts]
    answer = {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"text": "42"}}}
    streamed = b"".join(
        json.dumps(line).encode() + b"\n"
        for line in (
            *reasoning,
            {"contentBlockStop": {"contentBlockIndex": 0}},
            answer,
            {"messageStop": {"stopReason": "end_turn"}},
            {"metadata": {}},
        )
    )
    content = [{"reasoningContent": {"reasoningText": {"text": "".join(texts)}}}, {"text": "42"}]
    body = {"output": {"message": {"content": content}}, "stopReason": "end_turn", "usage": {}}
    for sent in (streamed, json.dumps(body).encode()):
        reply = decoding.decoded(sent, target(NOVA), "bedrock")
        assert reply.thinking
        assert (reply.text, reply.thinking.kind, reply.thinking.text) == ("42", "hidden", "")
        said = reply.to_message()
        assert said is not None
        prompt = Prompt((Message("user", (Text("?"),)), said, Message("user", (Text("more"),))))
        assert "REDACTED" not in find_dialect("bedrock").encode(prompt, target(NOVA))[0].body.decode()


@pytest.mark.parametrize("text", ["[REDACTED] is what I must not say", "[RED", "x [REDACTED]"])
def test_thinking_that_mentions_the_placeholder_is_thinking(text: str) -> None:
    content = [{"reasoningContent": {"reasoningText": {"text": text}}}, {"text": "42"}]
    body = {"output": {"message": {"content": content}}, "stopReason": "end_turn", "usage": {}}
    reply = decoding.decoded(json.dumps(body).encode(), target(NOVA), "bedrock")
    assert reply.thinking
    assert (reply.text, reply.thinking.text) == ("42", text)
