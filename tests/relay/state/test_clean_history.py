"""A history without envelopes, in every format that people have on their disks."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.dialects import find_dialect, plain_row
from asides.history.document import write_message
from asides.providers.find import find_target
from asides.providers.provider import Target
from asides.relay.state.clean_history import clean_document
from asides.values.messages import Message, Prompt
from asides.values.parts import Text, ToolCall
from asides.values.reply import Reply
from asides.values.thinking import Seal, Thought
from tests.relay.relayed_turns import Caller

CLAUDE = find_target("anthropic:claude-sonnet-4-5").origin
ENVELOPE = "asd1.0a0b0c0d.AAAA"
CARRYING = ("anthropic", "bedrock", "gemini", "openai_responses")


def carried(dialect: str) -> tuple[Message, ...]:
    caller = Caller(dialect, mode="carry-only")
    caller.say("hi")
    thought = Thought("plan", "summary", "block", CLAUDE, (Seal("signature", "S", CLAUDE),), "thinking")
    hidden = Thought("", "hidden", "block", CLAUDE, (Seal("redacted", "R", CLAUDE),))
    call = ToolCall("call_123456789", "look_up", {"n": 1})
    caller.hear(Reply((thought, hidden, Text("I look."), call), origin=CLAUDE, id="r", model="m"))
    return caller.history


def body_of(dialect: str, messages: tuple[Message, ...]) -> Any:
    target = Target(plain_row(dialect), "m", "http://127.0.0.1:9/v1")
    return msgspec.json.decode(find_dialect(dialect).encode(Prompt(messages), target)[0].body)


@pytest.mark.parametrize("dialect", CARRYING)
def test_a_request_of_each_dialect_is_cleaned_and_still_reads(dialect: str) -> None:
    body = body_of(dialect, carried(dialect))
    cleaned = clean_document(body)
    assert cleaned.envelopes >= 2
    written = msgspec.json.encode(cleaned.document)
    assert b"asd1" not in written
    assert b"YXNkMS" not in written
    assert b"I look." in written
    assert b"look_up" in written
    again = find_dialect(dialect).read(
        written, "/v1beta/models/m:generateContent" if dialect == "gemini" else "/model/m/converse"
    )
    calls = [call for message in again.prompt.messages for call in message.tool_calls]
    assert [call.arguments for call in calls] == [{"n": 1}]
    assert clean_document(cleaned.document).document is cleaned.document


@pytest.mark.parametrize("dialect", CARRYING)
def test_saved_conversations_are_cleaned(dialect: str) -> None:
    history = carried(dialect)
    saved = [msgspec.json.decode(write_message(message)) for message in history]
    written = msgspec.json.encode(clean_document({"messages": saved}).document)
    assert b"asd1" not in written
    assert b"YXNkMS" not in written


def test_a_history_without_envelopes_is_the_same_object() -> None:
    document = {
        "messages": [{"role": "assistant", "content": [{"type": "thinking", "thinking": "a", "signature": "S"}]}]
    }
    assert clean_document(document).document is document
    assert clean_document(document).envelopes == 0


def test_words_that_look_like_an_envelope_stay() -> None:
    document = [
        {"role": "user", "content": ENVELOPE},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": ENVELOPE},
                {"type": "tool_use", "id": "t", "name": "f", "input": {"signature": ENVELOPE, "value": ENVELOPE}},
            ],
            "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": ENVELOPE}}],
        },
        {"role": "tool", "content": ENVELOPE, "tool_call_id": ENVELOPE},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"thoughtSignature": ENVELOPE}}}]},
        {"kind": "a kind", "data": ENVELOPE},
    ]
    assert clean_document(document).document is document


def test_a_turn_with_nothing_left_goes_and_a_line_of_a_session_stays() -> None:
    block = {"type": "thinking", "thinking": "plan", "signature": ENVELOPE}
    cleaned = clean_document([{"role": "user", "content": "hi"}, {"role": "assistant", "content": [block]}])
    assert cleaned.document == [{"role": "user", "content": "hi"}]
    assert (cleaned.envelopes, cleaned.thoughts) == (1, 1)
    line = {"uuid": "1", "message": {"role": "assistant", "content": [block]}}
    assert clean_document([line]).document == [{"uuid": "1", "message": {"role": "assistant", "content": []}}]


def test_formats_of_other_libraries_lose_the_field_and_keep_the_rest() -> None:
    document = [
        {"role": "assistant", "content": "a", "reasoning_details": [{"type": "reasoning.encrypted", "data": ENVELOPE}]},
        {"type": "reasoning", "text": "plan", "providerMetadata": {"anthropic": {"signature": ENVELOPE}}},
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "extra_content": {"google": {"thought_signature": ENVELOPE}}}],
        },
    ]
    cleaned = clean_document(document)
    assert cleaned.document == [
        {"role": "assistant", "content": "a", "reasoning_details": []},
        {"type": "reasoning", "text": "plan", "providerMetadata": {"anthropic": {}}},
        {"role": "assistant", "tool_calls": [{"id": "c", "extra_content": {"google": {}}}]},
    ]
    assert (cleaned.envelopes, cleaned.thoughts) == (3, 0)


def test_facts_of_a_page_that_hold_no_envelope_stay() -> None:
    document = [
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "text": "", "providerMetadata": {}},
                {"type": "text", "text": "a", "providerMetadata": {"asides": {"state": "open"}, "x": {"y": 1}}},
            ],
        }
    ]
    assert clean_document(document).document is document
