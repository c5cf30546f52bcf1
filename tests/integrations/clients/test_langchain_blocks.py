"""A message carries what its next turn needs, whatever LangChain does to it; a changed block loses its own seal."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

pytest.importorskip("langchain_core")

from langchain_core.load import dumps, loads
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    filter_messages,
    merge_message_runs,
    message_to_dict,
    messages_from_dict,
    trim_messages,
)

from asides import (
    Message,
    Text,
    Thought,
    ToolCall,
    user,
)
from asides.integrations.langchain_replies import build_message
from tests.integrations.clients.langchain_samples import MESSAGE, REPLY, THOUGHT, TURN, read, read_codes

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


# --- messages that somebody changed -----------------------------------------------------------------------------------

VOID = ["seal_void"]


def test_a_call_with_other_arguments_loses_its_seal_and_says_so() -> None:
    edited = MESSAGE.model_copy(deep=True)
    edited.tool_calls[0]["args"] = {"a": 9}
    (message,) = read(edited)
    assert message.tool_calls[0] == ToolCall("call_1", "add", {"a": 9})
    assert message.parts[0] == THOUGHT
    assert read_codes(edited) == VOID


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
    assert read_codes(edited) == ["seal_void", "thinking_left_out"]


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
    assert read_codes(lost) == ["thinking_left_out"]


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
    assert [type(part) for part in message.parts] == [Thought, Text, ToolCall, ToolCall, Thought]
    assert message.text == "Let me add.Wait.\nTwice."
    assert message.tool_calls == REPLY.tool_calls


def test_a_trimmed_or_filtered_history_keeps_what_it_keeps() -> None:
    history = [HumanMessage("old"), AIMessage("old"), HumanMessage("1 + 2?"), MESSAGE]
    trimmed = trim_messages(history, max_tokens=2, token_counter=len, start_on="human")
    assert read(*trimmed) == (user("1 + 2?"), TURN)
    (left,) = filter_messages([MESSAGE], exclude_tool_calls=["call_1"])
    assert [call.id for call in read(left)[0].tool_calls] == ["call_2"]
