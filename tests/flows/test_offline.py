"""Recorded bytes as a reply, and the request that would be sent. Nothing touches the network."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, cast

import pytest

import asides
from asides import dialects
from asides.flows.retry import decode_error
from asides.flows.steps import Head
from asides.providers.provider import Provider, Target
from asides.values.messages import Message
from asides.values.thinking import Origin
from tests.decoding import chunk, sse, stream, whole

HERE = "http://127.0.0.1:9/v1"
BODY = stream({"reasoning_content": "plan"}, {"content": "4"}, {"content": "2"})


# --- decode -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        BODY,
        BODY.decode(),
        bytearray(BODY),
        memoryview(BODY),
        [BODY[:9], b"", BODY[9:]],
        (BODY[place : place + 1] for place in range(len(BODY))),
    ],
    ids=["bytes", "text", "bytearray", "memoryview", "pieces", "generator"],
)
def test_bytes_in_any_pieces_are_a_reply(body: Any) -> None:
    reply = asides.decode("openai_chat", body)
    assert (reply.text, reply.streamed) == ("42", True)
    assert reply.thinking
    assert reply.thinking.text == "plan"


@pytest.mark.parametrize("streaming", [True, False])
def test_the_bytes_say_whether_they_are_a_stream(streaming: bool) -> None:
    streamed = asides.decode("openai_chat", BODY, streaming=streaming)
    at_once = asides.decode("openai_chat", whole({"reasoning_content": "plan", "content": "42"}), streaming=streaming)
    assert (streamed.streamed, at_once.streamed) == (True, False)
    assert streamed == at_once


def test_a_provider_gives_the_quirks_and_the_origin() -> None:
    reply = asides.decode("openai_chat", BODY, provider="DeepSeek", model="deepseek-reasoner")
    assert reply.origin is not None
    assert (reply.origin.provider, reply.origin.model) == ("deepseek", "deepseek-reasoner")


def test_a_provider_in_place_of_a_dialect_means_its_dialect() -> None:
    assert asides.decode("deepseek", BODY).origin == asides.decode("openai_chat", BODY, provider="deepseek").origin


def test_a_row_of_ones_own_can_be_given() -> None:
    row = asides.Provider(name="mine", quirks=asides.Quirks(thinking_in=("musing",)))
    reply = asides.decode("openai_chat", stream({"musing": "hm", "content": "42"}), provider=row)
    assert reply.thinking
    assert (reply.thinking.text, reply.thinking.via) == ("hm", "musing")


def test_a_provider_that_nobody_knows_is_read_as_plain_with_a_notice() -> None:
    reply = asides.decode("openai_chat", BODY, provider="some-new-host")
    assert reply.text == "42"
    assert [notice.code for notice in reply.warnings] == ["unknown_provider"]
    assert reply.origin == Origin("some-new-host", "", "")


def test_a_name_that_is_neither_a_dialect_nor_a_provider_is_an_error() -> None:
    with pytest.raises(asides.Unsupported, match="'smoke_signals' is neither a dialect nor a provider"):
        asides.decode("smoke_signals", BODY)


def test_a_bad_status_raises_what_a_call_would_raise() -> None:
    body = json.dumps({"error": {"message": "slow down", "code": "rate_limit_exceeded"}})
    with pytest.raises(asides.RateLimited, match="slow down") as limited:
        asides.decode("openai_chat", body, status=429, headers={"Retry-After": "7", "X-Request-Id": "req_1"})
    assert (limited.value.retry_after, limited.value.request_id, limited.value.partial) == (7.0, "req_1", None)


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        (sse(chunk({"content": "half"}), done=False), asides.ConnectionLost, "half"),
        (sse(chunk({"content": "half"}), {"error": {"message": "x", "code": 503}}), asides.Overloaded, "half"),
        (sse(chunk({"content": "half"})) + b"data: {nonsense\n\n", asides.ProtocolError, "half"),
        (sse({"error": {"message": "no such model", "code": "model_not_found"}}), asides.NotFound, None),
        (b"<html>", asides.ProtocolError, None),
        (b"", asides.ConnectionLost, None),
    ],
)
def test_a_broken_recording_raises_what_a_call_would_raise(
    body: bytes, kind: type[asides.AsidesError], text: str | None
) -> None:
    pieces: Iterable[Iterable[bytes]] = ([body], [body[place : place + 1] for place in range(len(body))])
    for each in pieces:
        with pytest.raises(kind) as broken:
            asides.decode("openai_chat", each)
        partial = broken.value.partial
        assert (partial.text if partial is not None else None) == text


# --- explain ------------------------------------------------------------------------------------------------------


def test_the_request_is_shown_as_it_would_go_and_the_key_is_not() -> None:
    shown = asides.explain("deepseek:deepseek-chat", "Why?", system="be brief", max_tokens=7, api_key="sk-hidden-key")
    assert (shown.method, shown.url) == ("POST", "https://api.deepseek.com/chat/completions")
    assert shown.headers["Authorization"] == "Bearer ***"
    assert shown.body["messages"] == [{"role": "system", "content": "be brief"}, {"role": "user", "content": "Why?"}]
    assert "stream" not in shown.body or shown.body["stream"] is False
    assert shown.missing_key is None
    assert "sk-hidden-key" not in repr(shown) + shown.to_text()


def test_the_request_is_shown_without_a_key_too() -> None:
    shown = asides.explain("deepseek:deepseek-chat", "?")
    assert shown.missing_key == ("DEEPSEEK_API_KEY",)
    assert "Authorization" not in shown.headers
    assert "set DEEPSEEK_API_KEY" in shown.to_text()


def test_dropped_and_adjusted_parts_are_listed_with_their_reason() -> None:
    foreign = asides.Thought("a foreign thought", origin=Origin("else", "http://x", "m"))
    history = [asides.user("one"), Message("assistant", (foreign, asides.Text("1"))), asides.user("two")]
    shown = asides.explain("deepseek:deepseek-reasoner", history, temperature=0.5, on_conflict="adjust")
    assert [(decision.action, decision.what) for decision in shown.decisions] == [("drop", "thought")]
    assert "setting_dropped" in [notice.code for notice in shown.notices]
    text = shown.to_text()
    assert "message 1, part 0: drop the thought: another provider or endpoint made it" in text
    assert "setting_dropped" in text
    assert "a foreign thought" not in text


def test_a_contradiction_is_raised_as_a_call_would_raise_it() -> None:
    row = asides.Provider(name="mine", base_url="http://127.0.0.1:9/v1", models=(asides.ModelRule(thinking="never"),))
    with pytest.raises(asides.InvalidThinking):
        asides.explain("mine:model", "?", thinking="high", providers=[row])
    shown = asides.explain("mine:model", "?", thinking="high", providers=[row], on_conflict="adjust")
    assert [notice.code for notice in shown.notices] == ["thinking_unsupported"]


@pytest.mark.parametrize("provider", [None, "mistral", "made-up", "openai", "anthropic", "google", "bedrock", "cohere"])
def test_a_provider_that_stands_for_its_dialect_does_so_whoever_sent_the_bytes(provider: str | None) -> None:
    assert asides.decode("mistral", whole({"content": "A"}), provider=provider).text == "A"


def test_a_dialect_that_nobody_speaks_is_named_also_beside_a_provider() -> None:
    with pytest.raises(asides.Unsupported, match="'morse' is neither a dialect nor a provider"):
        asides.decode("morse", b"{}", provider="groq")


@pytest.mark.parametrize(("dialect", "provider"), [(5, None), (None, 5), ("openai_chat", 5)])
def test_what_names_no_dialect_or_provider_is_a_type_error(dialect: Any, provider: Any) -> None:
    with pytest.raises(TypeError, match="by name"):
        asides.decode(dialect, b"{}", provider=provider)


@pytest.mark.parametrize(
    "body", [None, 5, {"choices": []}, ["text"], [1], object(), [None]], ids=lambda body: type(body).__name__
)
def test_a_body_that_is_no_bytes_is_a_config_error(body: Any) -> None:
    with pytest.raises(asides.ConfigError, match="decode takes"):
        asides.decode("openai_chat", body)


def test_text_with_half_a_character_is_decoded() -> None:
    reply = asides.decode("openai_chat", whole({"content": "A!"}).decode().replace("!", "\ud800"))
    assert reply.text.startswith("A")


@pytest.mark.parametrize("dialect", dialects.DIALECTS)
@pytest.mark.parametrize(
    "body",
    [
        b"[" * 5000 + b"]" * 5000,
        b'{"error":' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"error":{"message":"m","details":1,"code":1e999}}',
        b'{"error":{"message":"m","details":{"a":1},"code":' + b"9" * 5000 + b"}}",
        b"\xff\xfe\x00",
    ],
    ids=["deep", "a deep field", "details", "digits", "no text"],
)
def test_any_error_body_is_the_error_of_its_status(dialect: str, body: bytes) -> None:
    with pytest.raises(asides.RateLimited):
        asides.decode(dialect, body, status=429)


def test_a_mistake_in_reading_an_error_leaves_the_error_of_the_status() -> None:
    class Careless:
        name = "careless"

        def error(self, *_: object) -> None:
            raise KeyError("x")

    row = Provider(name="example", base_url=HERE)
    error = decode_error(cast("Any", Careless()), Head(401, {}), b"{}", Target(row, "m", HERE))
    assert isinstance(error, asides.AuthError)
    assert isinstance(error.__cause__, KeyError)
