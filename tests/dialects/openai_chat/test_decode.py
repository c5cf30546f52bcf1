"""Chat completions that break the specification, as some servers send them: no reply is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

import asides


def _stream(*deltas: str) -> bytes:
    chunks = [f'{{"model":"m","choices":[{{"index":0,"delta":{delta}}}]}}' for delta in deltas]
    chunks.append('{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}')
    return "".join(f"data: {chunk}\n\n" for chunk in chunks).encode("utf-8", "surrogateescape")


def _whole(**message: Any) -> bytes:
    return json.dumps({"model": "m", "choices": [{"message": message, "finish_reason": "stop"}]}).encode()


def _codes(reply: asides.Reply) -> list[str]:
    return [notice.code for notice in reply.warnings]


@pytest.mark.parametrize(
    "deltas",
    [
        # an emoji of four bytes, cut after two of them
        (b'{"content":"a\xf0\x9f"}'.decode("utf-8", "surrogateescape"), '{"content":"b"}'),
        # the same emoji as a pair of escapes, cut between them; an escaped backslash in front is no escape
        (r'{"content":"a\ud83d"}', '{"content":"b"}'),
    ],
)
def test_a_character_cut_between_two_deltas_costs_that_character_and_not_the_reply(deltas: tuple[str, ...]) -> None:
    body = _stream(*deltas)
    reply = asides.decode("openai_chat", body)
    assert reply.text == "a\ufffdb"
    assert (_codes(reply), reply.model, reply.outcome) == (["invalid_text"], "m", "answered")
    assert asides.decode("openai_chat", [body[place : place + 1] for place in range(len(body))]) == reply


def test_whole_characters_beside_a_broken_one_stay() -> None:
    body = b'{"choices":[{"message":{"content":"\\ud83d\\ude00 \\\\ud83d \\ude00 \xff"},"finish_reason":"stop"}]}'
    assert asides.decode("openai_chat", body).text == "\U0001f600 \\ud83d \ufffd \ufffd"


@pytest.mark.parametrize("odd", [[], {}, [1], {"a": 1}])
@pytest.mark.parametrize("name", ["index", "type", "id"])
def test_an_entry_of_reasoning_details_with_an_odd_key_is_stored_unchanged(name: str, odd: Any) -> None:
    entry = {"type": "reasoning.text", "text": "thought", "index": 0, "id": "r1", name: odd}
    reply = asides.decode("openai_chat", _whole(content="answer", reasoning_details=[entry]), streaming=False)
    assert reply.text == "answer"
    assert reply.thinking
    assert reply.thinking.text == "thought"


@pytest.mark.parametrize(
    "extra", [b'{"google":{"thought_signature":"\xff"}}', b'{"note":"\xff","google":{"thought_signature":"sig"}}']
)
def test_a_signature_beside_invalid_bytes_costs_no_reply(extra: bytes) -> None:
    call = b'{"id":"c","function":{"name":"f","arguments":"{}"},"extra_content":%b}' % extra
    for message in (b'{"tool_calls":[%b]}' % call, b'{"content":"x","extra_content":%b}' % extra):
        reply = asides.decode("openai_chat", b'{"choices":[{"message":%b,"finish_reason":"stop"}]}' % message)
        assert reply.outcome in ("tool_calls", "answered")


def test_a_stream_that_is_cut_anywhere_is_a_lost_connection_with_a_partial_reply() -> None:
    body = _stream('{"reasoning_content":"thought"}', '{"content":"an"}', '{"content":"swer"}')
    for place in range(len("data: {"), body.index(b"finish_reason")):
        with pytest.raises(asides.ConnectionLost) as caught:
            asides.decode("openai_chat", body[:place])
        partial = caught.value.partial
        if partial is None:
            assert place < body.index(b"\n\n")
            continue
        assert "answer".startswith(partial.text)
        assert partial.thinking
        assert not partial.complete
        assert all(isinstance(document, dict) for document in partial.raw)


def test_a_stream_that_is_cut_after_its_end_is_complete() -> None:
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":1}}\n\ndata: [DONE]\n\n'
    body = _stream('{"content":"answer"}')
    for place in range(len(usage)):
        assert asides.decode("openai_chat", body + usage[:place]).text == "answer"


@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        ('{"type":"error","message":"it broke"}', asides.ProviderError),
        ('{"object":"error","message":"too long","code":400}', asides.BadRequest),
        ('{"code":"Throttling.RateLimit","message":"slow down","request_id":"r"}', asides.RateLimited),
    ],
)
def test_an_error_in_a_stream_is_recognised_without_the_key_error(sent: str, kind: type[asides.ProviderError]) -> None:
    body = f'data: {{"choices":[{{"index":0,"delta":{{"content":"an"}}}}]}}\n\ndata: {sent}\n\ndata: [DONE]\n\n'
    with pytest.raises(kind) as caught:
        asides.decode("openai_chat", body)
    assert caught.value.partial is not None
    assert caught.value.partial.text == "an"


def test_a_progress_notice_is_no_error() -> None:
    body = b'data: {"type":"ping","message":"still there"}\n\n' + _stream('{"content":"answer"}')
    assert asides.decode("openai_chat", body).text == "answer"


@pytest.mark.parametrize("body", [b": ping\n\n: ping\n\n", b"event: ping\n\n", b"retry: 5\n\n"])
def test_a_stream_of_nothing_but_signs_of_life_is_a_lost_connection(body: bytes) -> None:
    with pytest.raises(asides.ConnectionLost, match=r"[Kk]eep-alive lines"):
        asides.decode("openai_chat", body)


@pytest.mark.parametrize(
    ("part", "seals"),
    [
        ({"type": "thinking", "thinking": "plan"}, []),
        ({"type": "thinking", "thinking": [{"type": "text", "text": "plan"}], "signature": "s"}, ["s"]),
        ({"type": "thinking", "thinking": ["pl", "an"]}, []),
        ({"type": "thinking", "thinking": {"text": "plan"}}, []),
        ({"type": "thinking", "content": "plan"}, []),
        ({"type": "reasoning", "reasoning": "plan"}, []),
        ({"type": "reasoning", "content": [{"type": "reasoning_text", "text": "plan"}]}, []),
        ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "plan", "signature": "s"}]}, ["s"]),
        ({"type": "text", "text": "plan", "thought": True}, []),
    ],
)
def test_a_thinking_part_is_thinking_in_any_shape(part: dict[str, Any], seals: list[str]) -> None:
    reply = asides.decode("openai_chat", _whole(content=[part, {"type": "text", "text": "answer"}]))
    assert (reply.text, _codes(reply), [seal.value for seal in reply.seals]) == ("answer", [], seals)
    assert reply.thinking
    assert (reply.thinking.text, reply.thinking.source) == ("plan", "block")


def test_a_text_without_a_type_is_text() -> None:
    body = _whole(content=[{"text": "an"}, {"type": "text", "text": "swer"}])
    assert asides.decode("openai_chat", body).text == "answer"


@pytest.mark.parametrize("kind", [5, [], {}])
def test_a_part_of_an_unknown_type_is_left_out_with_a_warning(kind: Any) -> None:
    body = _whole(content=[{"type": kind, "text": "odd"}, {"type": "text", "text": "answer"}])
    reply = asides.decode("openai_chat", body)
    assert (reply.text, _codes(reply)) == ("answer", ["unknown_content_part"])


def test_a_redacted_part_is_a_hidden_thought() -> None:
    body = _whole(content=[{"type": "redacted_thinking", "data": "sealed"}, {"type": "text", "text": "answer"}])
    reply = asides.decode("openai_chat", body)
    assert (reply.text, [(seal.kind, seal.value) for seal in reply.seals]) == ("answer", [("redacted", "sealed")])
    assert reply.thinking
    assert reply.thinking.kind == "hidden"


def test_a_seal_beside_the_text_is_no_text() -> None:
    reply = asides.decode("openai_chat", _whole(content="answer", reasoning_opaque="sealed", reasoning_text="plan"))
    assert reply.thinking
    assert (reply.thinking.text, [seal.value for seal in reply.seals]) == ("plan", ["sealed"])


@pytest.mark.parametrize(
    "name", ["reasoning_signature", "encrypted_reasoning", "reasoning_id", "reasoning_type", "reasoning_effort"]
)
def test_not_every_field_whose_name_mentions_thinking_is_thinking(name: str) -> None:
    reply = asides.decode("openai_chat", _whole(content="answer", **{name: "x1"}))
    assert (reply.text, reply.thinking.text, _codes(reply)) == ("answer", "", ["unknown_field"])


def test_calls_in_one_list_with_one_id_are_two_calls() -> None:
    listed = [
        {"id": "same", "type": "function", "function": {"name": "look", "arguments": f'{{"at": {number}}}'}}
        for number in (1, 2)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": listed}
    body = {"id": "c1", "model": "m", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    reply = asides.decode("openai_chat", json.dumps(body).encode())
    assert [call.arguments for call in reply.tool_calls] == [{"at": 1}, {"at": 2}]


@pytest.mark.parametrize("streaming", [False, True])
def test_content_in_the_channel_of_analysis_is_thinking(streaming: bool) -> None:
    message = {"role": "assistant", "content": "the plan", "channel": "analysis"}
    name = "delta" if streaming else "message"
    document = json.dumps({"choices": [{"index": 0, name: message, "finish_reason": "stop"}]})
    body = f"data: {document}\n\ndata: [DONE]\n\n" if streaming else document
    reply = asides.decode("openai_chat", body.encode(), streaming=streaming, provider="vllm")
    assert (reply.text, reply.thinking.text, reply.outcome) == ("", "the plan", "unterminated")
