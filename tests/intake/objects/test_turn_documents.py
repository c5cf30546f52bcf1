"""A turn in pieces is the response of each dialect: decoded, it says the same; in a history, its message does."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import asides
from asides.intake.documents import parse_items
from asides.intake.objects.turn_documents import (
    Piece,
    Tokens,
    Turn,
    build_response,
    encode_redacted,
    find_dialect_of,
    list_messages,
)
from asides.values.parts import ToolCall

SEALED = {"anthropic": "signature", "bedrock": "signature", "openai_responses": "encrypted", "gemini": None}
DIALECTS = ("openai_chat", *SEALED)
ARGUMENTS: dict[str, Any] = {"city": "Kyoto", "unit": None}


def make_turn(**changes: Any) -> Turn:
    pieces = [
        Piece("thought", "why", "c2VhbA==", id="rs_1"),
        Piece("text", "so", id="msg_1"),
        Piece("call", id="c1", item_id="fc_1", name="weather", arguments=ARGUMENTS),
    ]
    return msgspec.structs.replace(Turn(pieces, "a-model", "r1", "", Tokens(10, 5, 3, 4)), **changes)


def decode(dialect: str, turn: Turn) -> asides.Reply:
    return asides.decode(dialect, msgspec.json.encode(build_response(dialect, turn)))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_response_says_what_the_turn_said(dialect: str) -> None:
    reply = decode(dialect, make_turn())
    assert reply.thinking
    assert (reply.text, reply.thinking.text, reply.outcome) == ("so", "why", "tool_calls")
    assert [(call.id, call.name, call.arguments) for call in reply.tool_calls] == [("c1", "weather", ARGUMENTS)]
    assert (reply.stop.reason, reply.usage.input, reply.usage.output, reply.usage.cached) == ("tool_calls", 10, 5, 4)
    assert reply.usage.thinking == (None if dialect == "bedrock" else 3)
    assert reply.warnings == ()
    assert [seal.value for seal in reply.seals] == ([] if dialect == "openai_chat" else ["c2VhbA=="])
    if dialect != "bedrock":  # which names neither
        assert (reply.model, reply.id) == ("a-model", "r1")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_its_message_in_a_history_holds_the_same(dialect: Any) -> None:
    (message,) = parse_items(list_messages(dialect, build_response(dialect, make_turn())), dialect)
    thought, text, call = message.parts
    assert isinstance(thought, asides.Thought)
    assert isinstance(text, asides.Text)
    assert isinstance(call, ToolCall)
    assert (thought.text, text.text, call.id, call.arguments) == ("why", "so", "c1", ARGUMENTS)
    assert [seal.value for seal in thought.seals] == ([] if dialect == "openai_chat" else ["c2VhbA=="])


@pytest.mark.parametrize(
    ("stop", "reason"), [("stop", "stop"), ("length", "length"), ("content_filter", "content_filter")]
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_how_it_ended_is_in_the_words_of_the_dialect(dialect: str, stop: str, reason: str) -> None:
    reply = decode(dialect, Turn([Piece("text", "so")], stop=stop))
    expected = "refusal" if (dialect, stop) == ("anthropic", "content_filter") else reason
    assert (reply.stop.reason, reply.warnings) == (expected, ())


def test_thoughts_without_text_keep_their_data() -> None:
    for dialect in ("anthropic", "bedrock"):
        reply = decode(dialect, Turn([Piece("thought", seal="ZGF0YQ==", redacted=True), Piece("text", "so")]))
        assert [(seal.kind, seal.value) for seal in reply.seals] == [("redacted", "ZGF0YQ==")]
    assert encode_redacted("data") == "ZGF0YQ=="


def test_pieces_with_one_id_are_one_item() -> None:
    pieces = [
        Piece("thought", "one", "x", id="rs_1", raw={"content": [{"type": "reasoning_text", "text": "raw"}]}),
        Piece("thought", "two", id="rs_1"),
        Piece("thought", "", "y"),
        Piece("text", "a", id="m"),
        Piece("text", "b", id="m"),
        Piece("refusal", "no"),
    ]
    summaries = [{"type": "summary_text", "text": text} for text in ("one", "two")]
    texts = [{"type": "output_text", "text": text, "annotations": []} for text in "ab"]
    raw = {"content": [{"type": "reasoning_text", "text": "raw"}]}
    assert build_response("openai_responses", Turn(pieces))["output"] == [
        {"type": "reasoning", "id": "rs_1", "summary": summaries, "encrypted_content": "x", **raw},
        {"type": "reasoning", "summary": [], "encrypted_content": "y"},
        {"type": "message", "id": "m", "role": "assistant", "content": texts},
        {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
    ]


def test_arguments_that_no_json_reads_stay_as_they_are() -> None:
    for dialect in DIALECTS[:3]:
        (call,) = decode(dialect, Turn([Piece("call", id="c1", name="f", arguments='{"a":')])).tool_calls
        assert call.raw_arguments is not None
        assert '{"a":' in call.raw_arguments.replace("\\", "")


def test_details_and_other_parts_of_chat_completions() -> None:
    details = [{"type": "reasoning.text", "text": "why", "signature": "s"}]
    part = {"type": "image_url", "image_url": {"url": "https://h/a.png"}}
    turn = Turn([Piece("text", "so"), Piece("raw", raw=part), Piece("refusal", "no")], details=details)
    message = build_response("openai_chat", turn)["choices"][0]["message"]
    assert message == {
        "role": "assistant",
        "content": [{"type": "text", "text": "so"}, part],
        "reasoning_details": details,
        "refusal": "no",
    }


def test_the_dialect_of_a_named_provider() -> None:
    found = [find_dialect_of(name) for name in ("anthropic", "google", "deepseek", "ollama", "nobody", "")]
    assert found == ["anthropic", "gemini", "openai_chat", "openai_chat", None, None]
