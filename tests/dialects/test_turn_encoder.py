"""Histories as turns of blocks, encoded with minimal functions for the parts."""

from __future__ import annotations

import pytest

from asides.dialects import find_dialect
from asides.dialects.message_encoder import NINE_ALPHANUMERICS, WORD_ID, Wire, fit_call_id
from asides.dialects.turn_encoder import SILENT_FAILURE, BlockFormat, encode_turns
from asides.providers.find import find_target
from asides.values.messages import Message, Prompt, assistant, user
from asides.values.notices import Notice
from asides.values.parts import Refusal, Text, ToolCall, ToolResult
from asides.values.thinking import Thought


def finish_turn(role: str, blocks: list[object]) -> Wire:
    return {role: blocks}


PLAIN = BlockFormat(
    dialect="made-up",
    text=lambda text: {"text": text},
    image=lambda _: {"image": ""},
    file=lambda _: {"file": ""},
    tool_result=lambda _, call_id, blocks: {"result": call_id, "blocks": blocks},
    thought=lambda thought: [{"thought": thought.text}],
    answer=lambda part: {"answer": part.text},
    tool_call=lambda _, call_id: {"call": call_id},
    mark_cache=lambda block, _: [block, {"mark": ""}],
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


def test_a_cache_breakpoint_follows_its_block() -> None:
    assert turns(user(Text("?", cache=True)))[0] == [{"user": [{"text": "?"}, {"mark": ""}]}]


def test_parts_that_cannot_be_sent_give_one_notice_each() -> None:
    encoded, codes = turns(user("?", Refusal("no"), Refusal("no")))
    assert encoded == [{"user": [{"text": "?"}]}]
    assert codes == ["part_not_sent"]


def test_call_ids_have_only_accepted_characters() -> None:
    assert fit_call_id("call_1", WORD_ID) == "call_1"
    assert fit_call_id("bad id!", WORD_ID) == fit_call_id("bad id!", WORD_ID) != fit_call_id("bad id?", WORD_ID)
    assert fit_call_id("x" * 65, WORD_ID).startswith("call_")
    assert NINE_ALPHANUMERICS.fullmatch(fit_call_id("call_1", NINE_ALPHANUMERICS))


@pytest.mark.parametrize("name", ["anthropic:claude-sonnet-4-5", "bedrock:us.anthropic.claude-sonnet-4-5"])
def test_a_failed_result_is_never_empty(name: str) -> None:
    target = find_target(name, environ={"AWS_REGION": "us-east-1"})
    call, failed = ToolCall("1", "look", {}), ToolResult("1", "", "look", is_error=True)
    prompt = Prompt((user("a"), Message("assistant", (call,)), Message("tool", (failed,))), max_tokens=100)
    body = find_dialect(target.dialect).encode(prompt, target)[0].body
    assert SILENT_FAILURE.encode() in body
