"""Replies become messages of LangChain and come back as they were, whole or in pieces, and whatever LangChain does to
them on the way.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("langchain_core")

from langchain_core.load import dumps, loads
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    filter_messages,
    merge_message_runs,
    message_chunk_to_message,
    message_to_dict,
    messages_from_dict,
    trim_messages,
)

from asides import (
    ConfigError,
    File,
    Image,
    Message,
    Origin,
    Refusal,
    Reply,
    Seal,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    Usage,
    user,
)
from asides.integrations.langchain_messages import read_history
from asides.integrations.langchain_replies import ChunkWriter, build_message
from asides.values.events import Event, StopReason, TextDelta
from asides.values.fold import fold, simulate
from asides.values.messages import StoredResponse
from asides.values.notices import Notice
from tests.laws.replies import chat_events
from tests.laws.test_anthropic import blocks
from tests.laws.test_gemini import contents
from tests.laws.test_responses import responses_events

ORIGIN = Origin("anthropic", "https://api.anthropic.com", "claude-opus-5-5", "a1")
THOUGHT = Thought("The sum is 3.", "summary", "block", ORIGIN, (Seal("signature", "c2VhbA==", ORIGIN),), "thinking")
CALL = ToolCall("call_1", "add", {"a": 1, "b": [2.5, None, "é"]}, None, (Seal("thought_signature", "cw==", ORIGIN),))
REPLY: Reply[Any] = Reply(
    (THOUGHT, Text("Let me add."), CALL, Text("Wait."), ToolCall("call_2", "add", {"a": 1})),
    Usage(30, 9, 4, 10, 39, cache_written=15),
    StopReason("tool_calls", "tool_use"),
    (Notice("effort_mapped", "no xhigh here", "thinking", "xhigh", "high"),),
    "claude-opus-5-5",
    "msg_1",
    ORIGIN,
    effort="high",
    prefix="0a1b",
)
TURN = REPLY.to_message()
MESSAGE = build_message(REPLY)
_SLOW_TO_START = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
EVERY = chat_events() | blocks() | contents() | responses_events()


def add_up(events: list[Event], reply: Reply[Any]) -> AIMessageChunk:
    writer = ChunkWriter()
    pieces = [piece for event in events if (piece := writer.write(event)) is not None]
    messages = [piece.message for piece in (*pieces, *writer.finish(reply))]
    chunks = [message for message in messages if isinstance(message, AIMessageChunk)]
    return chunks[0] if len(chunks) == 1 else chunks[0] + chunks[1:]


def read(*messages: BaseMessage) -> tuple[Message, ...]:
    return read_history(messages)[0]


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
    whole, streamed = build_message(reply), add_up(events, reply)
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
    again = add_up(simulate(reply, size), reply)
    assert again.content_blocks == build_message(reply).content_blocks


WAYS: dict[str, Callable[[AIMessage], Any]] = {
    "dumps and loads": lambda message: loads(dumps(message), allowed_objects="messages"),
    "a dict": lambda message: messages_from_dict(json.loads(json.dumps([message_to_dict(message)])))[0],
    "model_dump": lambda message: AIMessage(**message.model_dump()),
    "JSON of pydantic": lambda message: AIMessage.model_validate_json(message.model_dump_json()),
    "a copy": lambda message: message.model_copy(deep=True, update={"id": "mine"}),
    "its blocks": lambda message: AIMessage(content_blocks=message.content_blocks),
    "blocks as content": lambda message: AIMessage(content=message.content_blocks, tool_calls=message.tool_calls),  # type: ignore[arg-type]
}


@pytest.mark.filterwarnings("ignore::langchain_core._api.beta_decorator.LangChainBetaWarning")
@pytest.mark.parametrize("way", WAYS)
def test_a_message_survives(way: str) -> None:
    carried = WAYS[way](MESSAGE)
    assert read(carried) == (TURN,)
    assert carried.content_blocks == MESSAGE.content_blocks


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
    for message in (build_message(reply), add_up(simulate(reply, 3), reply)):
        assert message.tool_calls == [
            {"type": "tool_call", "id": "c", "name": "shell", "args": {"__arg1": 'echo "é"\n'}}
        ]
        assert read(message) == (Message("assistant", reply.parts),)


def test_a_refusal_is_told() -> None:
    reply: Reply[Any] = Reply((Refusal("I would rather not."),))
    for message in (build_message(reply), add_up(simulate(reply, 4), reply)):
        assert message.content == ""
        assert message.additional_kwargs["refusal"] == "I would rather not."
        assert read(message) == (Message("assistant", reply.parts),)


def test_the_facts_of_a_turn_go_with_it() -> None:
    turn = Message("assistant", (Text("ok"),), None, StoredResponse("resp_1", ORIGIN), "0a1b", effort="low")
    reply: Reply[Any] = Reply(turn.parts, id="resp_1", origin=ORIGIN, stored=True, prefix="0a1b", effort="low")
    assert read(build_message(reply)) == read(add_up(simulate(reply), reply)) == (turn,)


# --- messages that somebody changed -----------------------------------------------------------------------------------

VOID = ["seal_void"]


def codes(*messages: BaseMessage) -> list[str]:
    return [notice.code for notice in read_history(messages)[1]]


def test_a_call_with_other_arguments_loses_its_seal_and_says_so() -> None:
    edited = MESSAGE.model_copy(deep=True)
    edited.tool_calls[0]["args"] = {"a": 9}
    (message,) = read(edited)
    assert message.tool_calls[0] == ToolCall("call_1", "add", {"a": 9})
    assert message.parts[0] == THOUGHT
    assert codes(edited) == VOID


def test_a_call_that_was_taken_out_does_not_go_back() -> None:
    edited = MESSAGE.model_copy(update={"tool_calls": MESSAGE.tool_calls[1:]})
    assert [call.id for call in read(edited)[0].tool_calls] == ["call_2"]
    listed = AIMessage(content=MESSAGE.content_blocks, tool_calls=MESSAGE.tool_calls[1:])  # type: ignore[arg-type]
    assert [call.id for call in read(listed)[0].tool_calls] == ["call_2"]


def test_another_answer_keeps_the_thinking() -> None:
    edited = MESSAGE.model_copy(update={"content": "Better so."})
    (message,) = read(edited)
    assert message.text == "Better so."
    assert message.parts[0] == THOUGHT
    assert [part for part in message.parts if isinstance(part, ToolCall)] == list(REPLY.tool_calls)


def test_thinking_that_was_edited_is_no_longer_the_models_and_does_not_go_back() -> None:
    changed: list[Any] = [{**MESSAGE.content_blocks[0], "reasoning": "Mine."}, *MESSAGE.content_blocks[1:]]
    edited = AIMessage(content=changed)
    assert not any(isinstance(part, Thought) for part in read(edited)[0].parts)
    assert codes(edited) == ["seal_void", "thinking_left_out"]


def test_extras_that_are_lost_are_found_beside_the_blocks() -> None:
    shown: list[Any] = MESSAGE.content_blocks
    bare = [{name: value for name, value in block.items() if name != "extras"} for block in shown]
    listed = MESSAGE.model_copy(update={"content": bare, "response_metadata": {"output_version": "v1"}})
    assert read(listed) == (TURN,)


def test_a_message_without_all_that_it_carried_is_text_and_calls() -> None:
    bare = AIMessage(content=MESSAGE.content, tool_calls=MESSAGE.tool_calls)
    calls = [msgspec.structs.replace(call, seals=()) for call in REPLY.tool_calls]
    assert read(bare) == (Message("assistant", (Text("Let me add.Wait."), *calls)),)
    shown: list[Any] = [{"type": "reasoning", "reasoning": "The sum is 3."}, {"type": "text", "text": "3"}]
    lost = AIMessage(content=shown)
    assert read(lost) == (Message("assistant", (Text("3"),)),)
    assert codes(lost) == ["thinking_left_out"]


@pytest.mark.parametrize("garbage", ["", "{", "[]", '{"of": 1}', '{"of":"x","message":{}}', "\ud800", "{}{}"])
def test_what_cannot_be_read_is_as_if_it_were_not_there(garbage: str) -> None:
    shown: list[Any] = [{"type": "text", "text": "3", "extras": {"asides": garbage}}]
    carried = {"asides": {"blocks": [7, {"type": "text", "extras": 5}], "turn": garbage}}
    assert read(AIMessage(content=shown, additional_kwargs=carried)) == (Message("assistant", (Text("3"),)),)
    own = AIMessage(content="3", additional_kwargs=carried, response_metadata={"model_provider": "asides"})
    assert read(own) == (Message("assistant", (Text("3"),)),)


def test_merged_messages_keep_the_seals_of_both() -> None:
    other = build_message(msgspec.structs.replace(REPLY, parts=(THOUGHT, Text("Twice."))))
    (merged,) = merge_message_runs([build_message(REPLY), other])
    assert isinstance(merged, AIMessage)
    (message,) = read(merged)
    assert [part for part in message.parts if isinstance(part, Thought)] == [THOUGHT, THOUGHT]
    assert message.text == "Let me add.Wait.\nTwice."
    assert message.tool_calls == REPLY.tool_calls


def test_a_trimmed_or_filtered_history_keeps_what_it_keeps() -> None:
    history = [HumanMessage("old"), AIMessage("old"), HumanMessage("1 + 2?"), MESSAGE]
    trimmed = trim_messages(history, max_tokens=2, token_counter=len, start_on="human")
    assert read(*trimmed) == (user("1 + 2?"), TURN)
    (left,) = filter_messages([MESSAGE], exclude_tool_calls=["call_1"])
    assert [call.id for call in read(left)[0].tool_calls] == ["call_2"]


# --- messages of others -----------------------------------------------------------------------------------------------

PNG = b"\x89PNG\r\n\x1a\n0"
PDF = b"%PDF-1.4"


def encode(data: bytes) -> str:
    return b64encode(data).decode()


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ({"type": "text", "text": "a"}, Text("a")),
        ({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, Text("a", cache=True)),
        ({"type": "text", "text": "a", "extras": {"cache_control": {"ttl": "1h"}}}, Text("a", cache="1h")),
        ({"type": "image", "url": "https://a.example/b.png"}, Image(url="https://a.example/b.png")),
        ({"type": "image", "base64": encode(PNG), "mime_type": "image/png"}, Image(data=PNG, media_type="image/png")),
        ({"type": "image", "url": f"data:image/png;base64,{encode(PNG)}"}, Image(data=PNG, media_type="image/png")),
        (
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{encode(PNG)}"}},
            Image(data=PNG, media_type="image/png"),
        ),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": encode(PNG)}},
            Image(data=PNG, media_type="image/png"),
        ),
        (
            {"type": "image", "source_type": "base64", "mime_type": "image/png", "data": encode(PNG)},
            Image(data=PNG, media_type="image/png"),
        ),
        (
            {"type": "file", "base64": encode(PDF), "mime_type": "application/pdf", "filename": "a.pdf"},
            File(data=PDF, name="a.pdf", media_type="application/pdf"),
        ),
        ({"type": "file", "file_id": "file_1"}, File(id="file_1")),
        (
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": encode(PDF)}},
            File(data=PDF, media_type="application/pdf"),
        ),
        (
            {"type": "audio", "base64": encode(b"RIFF0000WAVE"), "mime_type": "audio/wav"},
            File(data=b"RIFF0000WAVE", media_type="audio/wav"),
        ),
        (
            {"type": "video", "url": "https://a.example/b"},
            File(url="https://a.example/b", media_type="video/mp4"),
        ),
        (
            {"type": "text-plain", "text": "long", "mime_type": "text/plain", "title": "notes"},
            File(data=b"long", name="notes", media_type="text/plain"),
        ),
    ],
)
def test_content_of_a_user_is_read(block: dict[str, Any], part: Any) -> None:
    assert read(HumanMessage(content=[block])) == (Message("user", (part,)),)


def test_a_path_in_a_message_is_no_file_of_this_machine() -> None:
    with pytest.raises(ConfigError, match="takes a URL, and '/etc/hostname' is none"):
        read(HumanMessage(content=[{"type": "image", "url": "/etc/hostname"}]))


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (HumanMessage(content=[{"type": "image", "base64": "?"}]), "base64 of the image cannot be decoded"),
        (HumanMessage(content=[{"type": "image", "url": "data:,"}]), "is empty: there is nothing to send"),
        (HumanMessage(content=[{"type": "image"}]), "the image has no content"),
        (HumanMessage(content=[{"type": "tool_result"}]), "'tool_result' cannot be read"),
        (ChatMessage(role="narrator", content="x"), "the role 'narrator' is not known"),
        (RemoveMessage(id="1"), "cannot be sent to a model"),
    ],
)
def test_what_cannot_be_sent_is_told(message: BaseMessage, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        read(HumanMessage("a"), message)
    assert str(caught.value).startswith("messages[1]: ")


def test_every_kind_of_message_is_read() -> None:
    assert read(
        SystemMessage("Be brief."),
        ChatMessage(role="developer", content="Be kind."),
        HumanMessage("hi", name="ann"),
        AIMessage("hello", name="bot"),
        ToolMessage("3", tool_call_id="c", name="add", status="error"),
        ToolMessage(content=[{"type": "text", "text": "3"}, {"value": 4}], tool_call_id="c"),
        HumanMessage(content=[{"type": "tool_result", "tool_use_id": "t", "content": "5"}, "and?"]),
    ) == (
        Message("system", "Be brief."),
        Message("system", "Be kind."),
        Message("user", "hi", "ann"),
        Message("assistant", "hello", "bot"),
        Message("tool", (ToolResult("c", "3", "add", is_error=True),)),
        Message("tool", (ToolResult("c", (Text("3"), Text('{"value": 4}'))),)),
        Message("tool", (ToolResult("t", "5"),)),
        Message("user", "and?"),
    )


def test_calls_without_ids_get_them() -> None:
    called = AIMessage("", additional_kwargs={"function_call": {"name": "add", "arguments": '{"a": 1}'}})
    first, second = read(called, FunctionMessage(content="2", name="add"))
    assert first.tool_calls == (ToolCall("call_add_1", "add", {"a": 1}),)
    assert second.parts == (ToolResult("call_add_1", "2"),)
    (unnamed,) = read(AIMessage("", tool_calls=[{"name": "add", "args": {}, "id": None}]))
    assert unnamed.tool_calls == (ToolCall("call_add_1", "add", {}),)


def test_thinking_of_claude_from_another_chat_model_keeps_its_signature() -> None:
    given_by_claude = AIMessage(
        content=[
            {"type": "thinking", "thinking": "Sum.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "ZGF0YQ=="},
            {"type": "text", "text": "3"},
            {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1}},
        ],
        tool_calls=[{"name": "add", "args": {"a": 1}, "id": "toolu_1"}],
        response_metadata={"model_provider": "anthropic"},
    )
    expected = (
        Thought("Sum.", "summary", "block", None, (Seal("signature", "c2ln"),), "thinking"),
        Thought("", "hidden", "block", None, (Seal("redacted", "ZGF0YQ=="),)),
        Text("3"),
        ToolCall("toolu_1", "add", {"a": 1}),
    )
    assert read(given_by_claude) == (Message("assistant", expected),)
    # The same without the name of its maker, as people write it by hand.
    assert read(given_by_claude.model_copy(update={"response_metadata": {}})) == (Message("assistant", expected),)


def test_thinking_of_another_chat_model_goes_back_to_its_own_provider_only() -> None:
    thought = AIMessage(
        "3", additional_kwargs={"reasoning_content": "Sum."}, response_metadata={"model_provider": "deepseek"}
    )
    assert read_history([thought], "deepseek") == ((Message("assistant", (Thought("Sum."), Text("3"))),), ())
    assert read_history([thought], "moonshot")[0] == (Message("assistant", (Text("3"),)),)


def test_a_tool_that_another_provider_ran_is_left_out_and_told() -> None:
    ran: list[Any] = [
        {"type": "server_tool_call", "id": "s", "name": "web_search", "args": {}},
        {"type": "text", "text": "It rains."},
    ]
    assert read(AIMessage(content=ran)) == (Message("assistant", (Text("It rains."),)),)
    assert codes(AIMessage(content=ran)) == ["block_left_out"]
