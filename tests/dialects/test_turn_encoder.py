"""Histories as turns of blocks, encoded with minimal functions for the parts."""

from __future__ import annotations

import pytest

from asides.dialects import find_dialect
from asides.dialects.message_encoder import Wire
from asides.dialects.turn_encoder import SILENT_FAILURE, BlockFormat, encode_turns, make_call_id
from asides.providers.find import find_target
from asides.values.messages import Message, Prompt, assistant, user
from asides.values.notices import Notice
from asides.values.parts import Refusal, Text, ToolCall, ToolResult
from asides.values.thinking import Thought


def finish_turn(role: str, blocks: list[object]) -> Wire:
    return {role: blocks}


PLAIN = BlockFormat(
    text=lambda text: {"text": text},
    image=lambda _: {"image": ""},
    file=lambda _: {"file": ""},
    tool_result=lambda _, call_id, blocks: {"result": call_id, "blocks": blocks},
    thought=lambda thought: [{"thought": thought.text}],
    answer=lambda part: {"answer": part.text},
    tool_call=lambda _, call_id: {"call": call_id},
    mark_cache=lambda block, _: [block, {"mark": ""}],
    plain=lambda role, text: {role: [{"text": text}]},
    finish_turn=finish_turn,
    merges=(),
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


@pytest.mark.parametrize("name", ["anthropic:claude-sonnet-4-5", "bedrock:us.anthropic.claude-sonnet-4-5"])
def test_a_failed_result_is_never_empty(name: str) -> None:
    target = find_target(name, environ={"AWS_REGION": "us-east-1"})
    call, failed = ToolCall("1", "look", {}), ToolResult("1", "", "look", is_error=True)
    prompt = Prompt((user("a"), Message("assistant", (call,)), Message("tool", (failed,))), max_tokens=100)
    body = find_dialect(target.dialect).encode(prompt, target)[0].body
    assert SILENT_FAILURE.encode() in body
