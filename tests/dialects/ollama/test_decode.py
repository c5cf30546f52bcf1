"""Decode Ollama's lines: thinking, calls, counts, stop reasons, and streams that break."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.dialects import find_dialect
from asides.providers.find import find_provider
from asides.providers.provider import Target
from asides.values.errors import BadRequest, ConnectionLost, NotFound, ProtocolError, ProviderError
from asides.values.events import StopReason
from asides.values.parts import Image, Text, ToolCall
from asides.values.reply import Reply
from asides.values.thinking import Thought
from asides.values.usage import Usage
from tests import decoding

ROW = find_provider("ollama")


def target(model: str = "llama3.2") -> Target:
    return Target(ROW, model, ROW.base_url, ROW.rule(model))


def line(message: dict[str, Any] | None = None, **fields: Any) -> bytes:
    sent = {"role": "assistant", "content": "", **(message or {})}
    return (
        json.dumps({"model": "llama3.2", "message": sent, "done": False, **fields}, ensure_ascii=False).encode() + b"\n"
    )


def lines(*messages: dict[str, Any], **end: Any) -> bytes:
    return b"".join(map(line, messages)) + line(None, done=True, **{"done_reason": "stop", **end})


def decoded(body: bytes, model: str = "llama3.2") -> Reply:
    return decoding.decoded(body, target(model), "ollama")


def test_a_stream_and_a_whole_body_are_the_same_reply() -> None:
    counts = {"prompt_eval_count": 12, "eval_count": 30}
    streamed = decoded(lines({"thinking": "pl"}, {"thinking": "an"}, {"content": "4"}, {"content": "2é"}, **counts))
    whole = decoded(lines({}, **counts).replace(b'"content": ""', b'"content": "42\xc3\xa9", "thinking": "plan"', 1))
    single = line({"content": "42é", "thinking": "plan"}, done=True, done_reason="stop", **counts)
    assert streamed == decoded(single) == decoded(single.strip())
    assert streamed.text == whole.text == "42é"
    assert streamed.parts == (
        Thought("plan", "raw", "field", streamed.origin, via="thinking"),
        Text("42é"),
    )
    assert streamed.usage == Usage(12, 30, None, None, 42, "derived")
    assert streamed.stop == StopReason("stop", "stop")
    assert streamed.model == "llama3.2"


def test_calls_have_objects_for_arguments_and_ids_where_the_server_gives_them() -> None:
    given = {"id": "call_1", "function": {"index": 0, "name": "look", "arguments": {"at": "é", "n": [1]}}}
    unnamed = {"function": {"name": "look", "arguments": {}}}
    reply = decoded(lines({"thinking": "hm"}, {"tool_calls": [given]}, {"tool_calls": [unnamed, unnamed]}))
    first, second, third = reply.tool_calls
    assert first == ToolCall("call_1", "look", {"at": "é", "n": [1]})
    assert len({first.id, second.id, third.id}) == 3
    assert reply.stop == StopReason("tool_calls", "stop")
    assert reply.outcome == "tool_calls"
    again = decoded(line({"thinking": "hm", "tool_calls": [given, unnamed, unnamed]}, done=True, done_reason="stop"))
    assert again.tool_calls == reply.tool_calls


def test_arguments_that_are_text_are_read_as_text() -> None:
    call = {"function": {"name": "look", "arguments": '{"at": 1}'}}
    assert decoded(lines({"tool_calls": [call]})).tool_calls[0].arguments == {"at": 1}


def test_tags_that_the_server_left_in_are_taken_out() -> None:
    reply = decoded(lines({"content": "<thi"}, {"content": "nk>plan</think>4"}, {"content": "2"}), "qwen3:latest")
    assert (reply.text, reply.metadata["thinking"], reply.metadata["thinking_source"]) == ("42", "plan", "tags")


def test_a_closing_tag_alone_ends_a_thought_that_the_template_began() -> None:
    reply = decoded(lines({"content": "plan"}, {"content": "</think>"}, {"content": "42"}), "qwen3:4b")
    assert (reply.text, reply.metadata["thinking"]) == ("42", "plan")


def test_the_model_in_the_body_decides_the_rules() -> None:
    body = lines({"content": "plan"}, {"content": "</think>"}, {"content": "42"}).replace(b"llama3.2", b"qwen3:4b")
    named = decoded(body, "")
    assert (named.text, named.model, named.warnings) == ("42", "qwen3:4b", ())
    other = decoded(body, "llama3.2")
    assert (other.text, [notice.code for notice in other.warnings]) == ("42", ["text_reclassified"]), (
        "what the caller names counts: nothing says that the template of this model opens a tag"
    )


def test_without_any_tag_such_a_text_is_the_answer() -> None:
    reply = decoded(lines({"content": "forty"}, {"content": "-two"}), "qwen3:4b")
    assert (reply.text, reply.thinking.text) == ("forty-two", "")


def test_a_thought_in_the_field_and_again_in_tags_comes_once() -> None:
    body = lines({"thinking": "plan"}, {"content": "<think>plan</think>42"})
    assert (decoded(body).text, decoded(body).metadata["thinking"]) == ("42", "plan")
    other = decoded(lines({"thinking": "plan"}, {"content": "<think>more</think>42"}))
    assert (other.text, other.metadata["thinking"]) == ("42", "plan\n\nmore")


def test_a_limit_that_ends_a_thought_leaves_it_incomplete() -> None:
    reply = decoded(lines({"thinking": "plan and"}, done_reason="length"))
    assert (reply.outcome, reply.text) == ("starved", "")
    assert reply.thinking
    assert not reply.thinking.complete
    assert decoded(lines({"thinking": "plan"}, {"content": "4"}, done_reason="length")).parts[0].complete  # type: ignore[union-attr]


def test_the_text_of_generate_is_read_too() -> None:
    body = b'{"model":"m","response":"4","thinking":"hm","done":false}\n{"model":"m","response":"2","done":true}\n'
    reply = decoded(body)
    assert (reply.text, reply.metadata["thinking"]) == ("42", "hm")


def test_pictures_are_parts() -> None:
    reply = decoded(lines({"images": ["aGk="]}, {"images": ["?"]}))
    assert reply.parts == (Image(data=b"hi"),)
    assert [notice.code for notice in reply.warnings] == ["malformed_field"]


def test_an_error_in_the_stream_is_raised_with_the_partial_reply() -> None:
    with pytest.raises(ProviderError, match="an error was encountered while running the model") as caught:
        decoded(line({"content": "half"}) + b'{"error":"an error was encountered while running the model"}\n')
    assert caught.value.partial is not None
    assert caught.value.partial.text == "half"


def test_a_stream_without_its_last_line_was_cut() -> None:
    with pytest.raises(ConnectionLost, match="ended before the reply did") as caught:
        decoded(line({"content": "half"}) + line({"content": " of"}))
    assert caught.value.partial is not None
    assert caught.value.partial.text == "half of"
    with pytest.raises(ConnectionLost):
        decoded(line({"content": "half"}))
    with pytest.raises(ConnectionLost, match="empty body"):
        decoded(b"")


def test_a_single_document_without_done_is_a_whole_reply() -> None:
    assert decoded(b'{"model":"m","message":{"content":"42"}}').text == "42"


def test_a_body_that_is_not_json_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError) as caught:
        decoded(line({"content": "half"}) + b"{broken\n" + line(done=True))
    assert caught.value.dialect == "ollama"
    with pytest.raises(ProtocolError, match="base URL"):
        decoded(b"<html>not found</html>")


def test_unknown_content_neither_crashes_nor_is_dropped_without_a_warning() -> None:
    body = (
        line({"content": "4", "news": {"a": 1}}, context=[1, 2])
        + b'{"model":"m","done":false}\n'
        + lines({"content": "2", "tool_calls": 3}, done_reason="exhausted", eval_count="many")
    )
    reply = decoded(body)
    assert reply.text == "42"
    codes = {notice.code for notice in reply.warnings}
    assert codes == {"malformed_field", "unknown_line", "unknown_stop_reason"}


def test_an_error_repeats_the_message_of_the_server() -> None:
    dialect = find_dialect("ollama")
    error = dialect.error(400, {}, b'{"error":"\\"llama3\\" does not support thinking"}', target())
    assert isinstance(error, BadRequest)
    assert "does not support thinking" in str(error)
    missing = dialect.error(
        404, {"x-request-id": "r1"}, b'{"error":{"message":"model not found","code":"nf"}}', target()
    )
    assert isinstance(missing, NotFound)
    assert (missing.code, missing.request_id) == ("nf", "r1")
    assert isinstance(dialect.error(502, {}, b"<html>", target()), ProviderError)
