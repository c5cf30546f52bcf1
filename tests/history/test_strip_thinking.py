"""Which thoughts a caller lets go at all, before any rule of a model."""

from __future__ import annotations

import pytest

from asides.history.plan import plan
from asides.history.strip_thinking import Strip, strip_thinking
from asides.providers.provider import Provider, ReplayRule, Target
from asides.values.messages import Message, Prompt, ToolCall, ToolResult, assistant, user
from asides.values.thinking import Thinking, Thought
from tests.history.strict_stages import MODELS, Model, StrictRules, question

ROW = Provider(name="example", base_url="http://127.0.0.1:9/v1", replay=(ReplayRule(when="all"),))
TARGET = Target(ROW, "m", ROW.base_url)
HISTORY = (
    user("1"),
    assistant(Thought("T1"), "answer 1"),
    user("2"),
    assistant(Thought("T2"), "answer 2"),
    user("3"),
    assistant(Thought("T3"), "answer 3"),
    user("4"),
)


def sent(messages: tuple[Message, ...], thinking: Thinking | None = None) -> list[str]:
    planned = plan(Prompt(messages, thinking=thinking or Thinking()), TARGET).prompt
    return [part.text for message in planned.messages for part in message.parts if isinstance(part, Thought)]


@pytest.mark.requirement("H2")
@pytest.mark.parametrize(("strip", "goes"), [("none", ["T1", "T2", "T3"]), ("all_but_last", ["T3"]), ("all", [])])
def test_H2_thoughts_go_by_the_policy_and_what_was_given_stays_as_it_was(strip: Strip, goes: list[str]) -> None:
    before = repr([message.parts for message in HISTORY])
    kept = strip_thinking(HISTORY, strip)
    assert sent(kept) == goes
    assert [message.text for message in kept] == [message.text for message in HISTORY]
    assert (repr([message.parts for message in HISTORY]), sent(HISTORY)) == (before, ["T1", "T2", "T3"])


@pytest.mark.requirement("H3")
@pytest.mark.parametrize("strip", ["none", "all_but_last", "all"])
def test_H3_what_is_not_to_be_replayed_is_not_whatever_the_policy(strip: Strip) -> None:
    assert sent(strip_thinking(HISTORY, strip), Thinking(replay="never")) == []


def test_the_last_turn_is_all_of_it_and_a_turn_of_nothing_but_thinking_goes() -> None:
    call, result = assistant(Thought("a"), ToolCall("c", "f")), Message("tool", (ToolResult("c", "42"),))
    history = (user("1"), assistant(Thought("old")), user("2"), call, result, assistant(Thought("b"), "x"))
    assert strip_thinking(history, "all_but_last") == (history[0], *history[2:])


@pytest.mark.parametrize("strip", ["none", "all_but_last", "all"])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_whatever_is_stripped_is_accepted(model: Model, strip: Strip) -> None:
    house = StrictRules(model)
    history = house.conversation(2)
    for end in (3, 5, len(history)):
        kept = strip_thinking(history[:end], strip)
        assert house.refusal(kept if end == 3 else (*kept, question(9))) is None
