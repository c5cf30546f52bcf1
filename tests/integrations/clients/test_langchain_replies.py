"""Replies become messages of LangChain: the pieces of a stream add up to the whole, and all comes back as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("langchain_core")

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    message_chunk_to_message,
)

from asides import (
    Message,
    Refusal,
    Reply,
    Seal,
    Text,
    Thought,
    ToolCall,
)
from asides.integrations.langchain_messages import read_history
from asides.integrations.langchain_replies import ChunkWriter, build_message
from asides.values.events import (
    Event,
    ReplyEnded,
    StopReason,
    TextDelta,
    TextReclassified,
    ThinkingDelta,
    ThoughtSealed,
)
from asides.values.fold import fold, simulate
from asides.values.messages import StoredResponse
from asides.values.reply import CallContext
from tests.integrations.clients.langchain_samples import MESSAGE, ORIGIN, read
from tests.laws.replies import chat_events
from tests.laws.test_anthropic import blocks
from tests.laws.test_gemini import contents
from tests.laws.test_responses import responses_events

_SLOW_TO_START = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
EVERY = chat_events() | blocks() | contents() | responses_events()


def write(events: list[Event], reply: Reply[Any]) -> AIMessageChunk:
    writer = ChunkWriter()
    pieces = [piece for event in events if (piece := writer.write(event)) is not None]
    messages = [piece.message for piece in (*pieces, *writer.finish(reply))]
    chunks = [message for message in messages if isinstance(message, AIMessageChunk)]
    return chunks[0] if len(chunks) == 1 else chunks[0] + chunks[1:]


def strip_indexes(message: AIMessage) -> Any:
    """What a message carries, without the names of its blocks, of which no two replies have the same."""
    carried = json.loads(json.dumps(message.additional_kwargs))
    if entries := carried.get("asides", {}).get("blocks"):
        entries.sort(key=lambda entry: entry["place"])
        for entry in entries:
            del entry["index"]
            entry.pop("call", None)
    return carried


# --- laws -------------------------------------------------------------------------------------------------------------


@_SLOW_TO_START
@given(EVERY)
def test_a_reply_comes_back_as_it_was(events: list[Event]) -> None:
    reply = fold(events)
    turn = reply.to_message()
    assert turn is not None
    assert read_history([build_message(reply)]) == ((turn,), ())


@_SLOW_TO_START
@given(EVERY)
def test_the_pieces_of_a_reply_add_up_to_the_whole(events: list[Event]) -> None:
    reply = fold(events)
    whole, streamed = build_message(reply), write(events, reply)
    assert streamed.chunk_position == "last"
    assert streamed.content == whole.content == reply.text
    assert streamed.content_blocks == whole.content_blocks
    assert streamed.tool_calls == whole.tool_calls
    assert streamed.usage_metadata == whole.usage_metadata
    assert streamed.response_metadata == whole.response_metadata
    assert strip_indexes(streamed) == strip_indexes(whole)
    assert read(streamed) == read(message_chunk_to_message(streamed)) == read(whole)


@_SLOW_TO_START
@given(EVERY, st.integers(1, 9))
def test_a_reply_that_arrives_in_other_pieces_is_the_same(events: list[Event], size: int) -> None:
    reply = fold(events)
    again = write(simulate(reply, size), reply)
    assert again.content_blocks == build_message(reply).content_blocks


# --- what a message shows ---------------------------------------------------------------------------------------------


def test_a_message_has_the_answer_in_its_content_and_all_in_its_blocks() -> None:
    assert MESSAGE.content == "Let me add.Wait."
    shown: list[Any] = MESSAGE.content_blocks
    assert [{name: value for name, value in block.items() if name != "extras"} for block in shown] == [
        {"type": "reasoning", "reasoning": "The sum is 3."},
        {"type": "text", "text": "Let me add."},
        {"type": "tool_call", "id": "call_1", "name": "add", "args": {"a": 1, "b": [2.5, None, "é"]}},
        {"type": "text", "text": "Wait."},
        {"type": "tool_call", "id": "call_2", "name": "add", "args": {"a": 1}},
    ]
    assert MESSAGE.usage_metadata == {
        "input_tokens": 30,
        "output_tokens": 9,
        "total_tokens": 39,
        "input_token_details": {"cache_read": 10, "cache_creation": 15},
        "output_token_details": {"reasoning": 4},
    }
    assert MESSAGE.response_metadata == {
        "model_provider": "asides",
        "model_name": "claude-opus-5-5",
        "finish_reason": "tool_calls",
        "outcome": "tool_calls",
        "provider": "anthropic",
        "stop_reason": "tool_use",
        "id": "msg_1",
        "notices": [
            {
                "code": "effort_mapped",
                "detail": "no xhigh here",
                "setting": "thinking",
                "asked": "xhigh",
                "sent": "high",
            }
        ],
    }


def test_a_plain_reply_carries_nothing_opaque() -> None:
    message = build_message(fold([TextDelta("Hello")]))
    assert message.content_blocks == [{"type": "text", "text": "Hello"}]
    assert strip_indexes(message) == {"asides": {"blocks": [{"type": "text", "length": 5, "place": 0}]}}
    assert message.usage_metadata is None


def test_arguments_that_do_not_parse_are_an_invalid_call_and_go_back_as_they_were() -> None:
    reply: Reply[Any] = Reply((ToolCall("c", "add", {}, '{"a": '),))
    message = build_message(reply)
    assert message.tool_calls == []
    assert message.invalid_tool_calls == [
        {"type": "invalid_tool_call", "id": "c", "name": "add", "args": '{"a": ', "error": None}
    ]
    assert read(message) == (Message("assistant", reply.parts),)


def test_free_text_for_a_tool_is_one_argument() -> None:
    reply: Reply[Any] = Reply((ToolCall("c", "shell", {}, 'echo "é"\n', custom=True),))
    for message in (build_message(reply), write(simulate(reply, 3), reply)):
        assert message.tool_calls == [
            {"type": "tool_call", "id": "c", "name": "shell", "args": {"__arg1": 'echo "é"\n'}}
        ]
        assert read(message) == (Message("assistant", reply.parts),)


def test_a_refusal_is_told() -> None:
    reply: Reply[Any] = Reply((Refusal("I would rather not."),))
    for message in (build_message(reply), write(simulate(reply, 4), reply)):
        assert message.content == ""
        assert message.additional_kwargs["refusal"] == "I would rather not."
        assert read(message) == (Message("assistant", reply.parts),)


def test_texts_that_arrive_out_of_order_lose_no_seal() -> None:
    events: list[Event] = [
        TextDelta("b", 1),
        TextDelta("a", 0),
        ThoughtSealed(Seal("signature", "cw=="), 2),
        TextDelta("B", 1),
    ]
    reply = fold(events)
    assert reply.text == "abB"
    streamed = write(events, reply)
    assert streamed.content == "baB"
    assert streamed.content_blocks[0] == {"type": "text", "text": "baB"}
    (message,) = read(streamed)
    assert message.text == "baB"
    assert [part for part in message.parts if isinstance(part, Thought)] == [reply.parts[2]]


def test_a_blank_thought_with_a_seal_is_kept_as_it_is() -> None:
    events: list[Event] = [ThinkingDelta(" ", 0), ThinkingDelta("\n", 0), ThoughtSealed(Seal("signature", "cw=="), 0)]
    reply = fold([*events, TextDelta("a", 1)])
    assert read(write([*events, TextDelta("a", 1)], reply)) == read(build_message(reply)) == (reply.to_message(),)
    blank = fold(events[:2])
    assert write(events[:2], blank).content_blocks == build_message(blank).content_blocks == []


def test_the_facts_of_a_turn_go_with_it() -> None:
    turn = Message("assistant", (Text("ok"),), None, StoredResponse("resp_1", ORIGIN), "0a1b", effort="low")
    reply: Reply[Any] = Reply(
        turn.parts, id="resp_1", origin=ORIGIN, stored=True, call=CallContext(prefix="0a1b", effort="low")
    )
    assert read(build_message(reply)) == read(write(simulate(reply), reply)) == (turn,)


def test_text_that_turns_out_to_be_thinking_is_carried_as_a_thought() -> None:
    """Chunks can only be added, so the content keeps it; the blocks say what it is."""
    events: list[Event] = [
        TextDelta("hidden", 0),
        TextReclassified("hidden", 0),
        TextDelta("answer", 1),
        ReplyEnded(StopReason("stop")),
    ]
    message = write(events, fold(events))
    entries = [entry for entry in message.additional_kwargs["asides"]["blocks"] if "place" in entry]
    assert [(entry["place"], entry["type"]) for entry in entries] == [(0, "reasoning"), (1, "text")]
    assert entries[0]["reasoning"] == "hidden"
