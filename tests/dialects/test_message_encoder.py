"""Histories as flat lists and as turns, encoded with minimal functions for the parts."""

from __future__ import annotations

import pytest

import asides
from asides.dialects.message_encoder import (
    BlockFormat,
    Wire,
    encode_flat,
    encode_turns,
    make_call_id,
    put_system_first,
    simplify_content,
    split_data_url,
)
from asides.values.messages import Message, Part, Prompt, Refusal, Text, ToolCall, ToolResult, assistant, system, user
from asides.values.notices import Notice
from asides.values.thinking import Thought


def flat(prompt: Prompt) -> list[Wire]:
    def encode_user(message: Message, parts: list[Part]) -> Wire:
        return {message.role: len(parts)}

    return encode_flat(
        put_system_first(prompt),
        user=encode_user,
        assistant=lambda message: [{"assistant": message.text}],
        tool_result=lambda result: {"result": result.call_id},
    )


def test_results_come_before_the_other_parts_of_their_message() -> None:
    mixed = Message("user", (Text("and"), ToolResult("c1"), Text("more")))
    assert flat(Prompt((mixed,), system="be brief")) == [
        {"role": "system", "content": "be brief"},
        {"result": "c1"},
        {"user": 2},
    ]


def test_blank_system_messages_are_left_out_and_an_empty_user_message_is_not() -> None:
    assert flat(Prompt((system(" "), Message("user")), system="\n")) == [{"user": 0}]
    assert flat(Prompt((Message("tool"), Message("tool", (ToolResult("c1"),))))) == [{"result": "c1"}]


def test_a_tool_message_holds_results_only() -> None:
    with pytest.raises(asides.Unsupported, match="holds ToolResult parts"):
        flat(Prompt((Message("tool", (Text("?"),)),)))


def add_turn(turns: list[Wire], role: str, blocks: list[object]) -> None:
    turns.append({role: blocks})


PLAIN = BlockFormat(
    text=lambda text: {"text": text},
    image=lambda _: {"image": ""},
    file=lambda _: {"file": ""},
    tool_result=lambda _, call_id, blocks: {"result": call_id, "blocks": blocks},
    thought=lambda thought: [{"thought": thought.text}],
    answer=lambda part: {"answer": part.text},
    tool_call=lambda _, call_id: {"call": call_id},
    mark_cache=lambda block, _: [block, {"mark": ""}],
    add_turn=add_turn,
)


def turns(*messages: Message) -> tuple[list[Wire], list[str]]:
    notices: list[Notice] = []
    return encode_turns(Prompt(messages), PLAIN, notices).turns, [notice.code for notice in notices]


def test_a_thought_is_sent_before_the_block_that_followed_it() -> None:
    message = assistant(Thought("a"), Text(" "), Thought("b"), "42", Thought("c"))
    encoded, codes = turns(user("?"), message)
    assert encoded[1] == {"assistant": [{"thought": "a"}, {"thought": "b"}, {"answer": "42"}]}
    assert codes == ["reasoning_not_sent"]


def test_the_user_begins() -> None:
    encoded, codes = turns(assistant("42"))
    assert [list(turn) for turn in encoded] == [["user"], ["assistant"]]
    assert codes == ["turn_added"]


def test_a_repeated_call_id_is_changed_together_with_its_result() -> None:
    call, result = assistant(ToolCall("call_0", "look")), Message("tool", (ToolResult("call_0", "there"),))
    encoded, _ = turns(user("?"), call, result, call, result)
    assert [block[0] for turn in encoded[1:] for block in turn.values()] == [
        {"call": "call_0"},
        {"result": "call_0", "blocks": [{"text": "there"}]},
        {"call": "call_0_2"},
        {"result": "call_0_2", "blocks": [{"text": "there"}]},
    ]


def test_a_cache_breakpoint_follows_its_block() -> None:
    assert turns(user(Text("?", cache=True)))[0] == [{"user": [{"text": "?"}, {"mark": ""}]}]


def test_parts_that_cannot_be_sent_give_one_notice_each() -> None:
    encoded, codes = turns(user("?", Refusal("no"), Refusal("no")))
    assert encoded == [{"user": [{"text": "?"}]}]
    assert codes == ["part_not_sent"]


def test_call_ids_have_only_accepted_characters() -> None:
    assert make_call_id("call_1") == "call_1"
    assert make_call_id("bad id!") == make_call_id("bad id!") != make_call_id("bad id?")
    assert make_call_id("x" * 65).startswith("call_")


def test_values() -> None:
    assert simplify_content([], "text") == ""
    assert simplify_content([{"type": "text", "text": "a"}], "text") == "a"
    assert simplify_content([{"type": "text", "text": "a"}], "input_text") == [{"type": "text", "text": "a"}]
    assert split_data_url("data:image/png;base64,AQI=") == ("image/png", "AQI=")
    assert split_data_url("https://x.test/a.png") is None
