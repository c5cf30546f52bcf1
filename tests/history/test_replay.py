"""Thoughts are left out where a provider refuses them, though their seals are valid."""

from __future__ import annotations

import msgspec
import pytest

from asides.history.replay import add_stand_ins, drop_open_thoughts, fit_thoughts
from asides.providers.find import find_target
from asides.providers.quirks import Restrictions
from asides.values.messages import Message, Prompt, assistant, user
from asides.values.notices import Notice
from asides.values.parts import Part, Refusal, Text, ToolCall, ToolResult
from asides.values.thinking import Thought

HM = Thought("hm", source="block")
CALL = ToolCall("c1", "look", {})
RESULT = Message("tool", (ToolResult("c1", "blue", "look"),))


def count_thoughts(prompt: Prompt) -> list[int]:
    return [sum(isinstance(part, Thought) for part in message.parts) for message in prompt.messages]


@pytest.mark.parametrize(
    ("parts", "left"),
    [
        ((HM, Text("ok")), 1),
        ((Text("ok"), HM, CALL), 0),
        ((Text("\n"), HM, CALL), 1),
        ((Refusal("no"), HM, CALL), 1),
        ((CALL, HM, Text("ok")), 0),
    ],
)
def test_a_turn_that_does_not_begin_with_its_thinking_goes_without(parts: tuple[Part, ...], left: int) -> None:
    notices: list[Notice] = []
    fit = fit_thoughts(Prompt((user("?"), Message("assistant", parts))), notices, joins=False, leads=True)
    assert count_thoughts(fit) == [0, left]
    assert len(notices) == (not left)


def test_turns_in_a_row_are_one_message_that_must_begin_with_thinking() -> None:
    messages = (user("?"), assistant("One."), assistant(HM, "Two."), user("?"), assistant(HM, "Three."))
    fit = fit_thoughts(Prompt(messages), [], joins=True, leads=True)
    assert count_thoughts(fit) == [0, 0, 0, 0, 1]


def test_thoughts_among_those_of_another_reply_are_left_out() -> None:
    messages = (user("?"), assistant(HM, "One."), assistant(HM, "Two."))
    assert count_thoughts(fit_thoughts(Prompt(messages), [], joins=True, leads=False)) == [0, 1, 0]
    assert count_thoughts(fit_thoughts(Prompt(messages), [], joins=False, leads=False)) == [0, 1, 1]


def test_a_turn_of_nothing_but_thinking_does_not_cost_the_next_one_its_own() -> None:
    messages = (user("?"), assistant(HM), assistant(HM, Text("One."), CALL), RESULT)
    assert count_thoughts(fit_thoughts(Prompt(messages), [], joins=True, leads=True)) == [0, 1, 0]


def test_a_turn_of_nothing_but_thinking_is_gone_with_it() -> None:
    messages = (user("?"), assistant(HM, "One."), assistant(HM))
    assert len(fit_thoughts(Prompt(messages), [], joins=True, leads=False).messages) == 2


def test_only_the_current_turn_loses_its_thoughts_while_nothing_thinks() -> None:
    notices: list[Notice] = []
    messages = (user("?"), assistant(HM, "One."), user("!"), assistant(HM, CALL), RESULT)
    assert count_thoughts(drop_open_thoughts(Prompt(messages), notices)) == [0, 1, 0, 0, 0]
    assert [notice.code for notice in notices] == ["reasoning_not_sent"]
    # A question ends the turn.
    ended = Prompt((*messages, user("And?")))
    assert drop_open_thoughts(ended, notices) is ended


def test_turns_that_call_tools_get_a_stand_in_for_lost_thinking() -> None:
    notices: list[Notice] = []
    prompt = Prompt((user("?"), assistant(CALL), RESULT, assistant(HM, CALL), RESULT, assistant("ok"), user("!")))
    target = find_target("anthropic:claude-opus-4-5")
    assert add_stand_ins(prompt, target, notices) is prompt
    strict = msgspec.structs.replace(target, restrictions=Restrictions(missing_thinking="."))
    fit = add_stand_ins(prompt, strict, notices)
    assert count_thoughts(fit) == [0, 1, 0, 1, 0, 0, 0]
    assert [notice.code for notice in notices] == ["thinking_stand_in"]
    assert add_stand_ins(fit, strict, notices) is fit
