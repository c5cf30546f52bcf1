"""Settings fitted to a model's rule: the amount of thinking in a form the model takes, and the sampling it accepts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.history.fit_request import (
    Contradiction,
    Finding,
    ends_with_assistant,
    fit_sampling,
    fit_thinking,
    lacks_thinking,
)
from asides.providers.provider import ModelRule
from asides.values.messages import Message, Sampling, assistant, user
from asides.values.notices import Notice
from asides.values.parts import ServerTool, Text, ToolCall, ToolResult
from asides.values.thinking import Thinking, Thought

BUDGET = ModelRule(thinking="optional", forms=("enabled", "disabled"), budget=(1024, None), max_output=64_000)
ADAPTIVE = ModelRule(thinking="optional", forms=("adaptive", "disabled"), efforts=("low", "medium", "high"))
BOTH = ModelRule(thinking="optional", forms=("adaptive", "enabled"), efforts=("low",), budget=(1024, None))


def chosen(asked: str, tokens: int) -> Notice:
    code = "budget_chosen" if asked == "on" else "effort_mapped"
    return Notice(code, "this model thinks with a budget", "thinking", asked, str(tokens))


def mapped(asked: int, sent: str, nearest: str) -> Contradiction:
    message = "this model takes an effort, not a budget"
    return Contradiction("budget_mapped", message, "thinking", str(asked), sent, f"use thinking={nearest!r}")


@pytest.mark.parametrize(
    ("rule", "asked", "limit", "sent", "found"),
    [
        # Nothing to fit: no form is known, nothing is asked, or the form fits.
        (ModelRule(), Thinking(effort="high"), None, Thinking(effort="high"), []),
        (BUDGET, Thinking(), None, Thinking(), []),
        (BUDGET, Thinking(mode="off"), None, Thinking(mode="off"), []),
        (BUDGET, Thinking(budget=5000), None, Thinking(budget=5000), []),
        (BOTH, Thinking(effort="low"), None, Thinking(effort="low"), []),
        (BOTH, Thinking(budget=5000), None, Thinking(budget=5000), []),
        # An effort becomes a budget, which leaves room for the answer and is never below the model's minimum.
        (BUDGET, Thinking(mode="on"), None, Thinking(budget=8192), [chosen("on", 8192)]),
        (BUDGET, Thinking(effort="high"), None, Thinking(budget=16_384), [chosen("high", 16_384)]),
        (BUDGET, Thinking(effort="high"), 10_000, Thinking(budget=5904), [chosen("high", 5904)]),
        (BUDGET, Thinking(effort="high"), 6000, Thinking(budget=3000), [chosen("high", 3000)]),
        (BUDGET, Thinking(effort="high"), 1000, Thinking(budget=1024), [chosen("high", 1024)]),
        # A budget becomes the lowest effort that stands for at least as many tokens.
        (ADAPTIVE, Thinking(budget=2048), None, Thinking(effort="low"), [mapped(2048, "low", "low")]),
        (ADAPTIVE, Thinking(budget=2049), None, Thinking(effort="medium"), [mapped(2049, "medium", "medium")]),
        (ADAPTIVE, Thinking(budget=99_999), None, Thinking(effort="high"), [mapped(99_999, "high", "high")]),
        (
            ADAPTIVE,
            Thinking(budget=99_999, effort="low"),
            None,
            Thinking(effort="low"),
            [mapped(99_999, "low", "high")],
        ),
        (
            ADAPTIVE,
            Thinking(mode="between_tools"),
            None,
            Thinking(mode="auto"),
            [
                Contradiction(
                    "form_adjusted",
                    "this model cannot be asked to think only between calls of tools",
                    "thinking",
                    "between_tools",
                    "auto",
                    "use thinking='auto'",
                )
            ],
        ),
    ],
)
def test_the_amount_is_put_in_a_form_that_the_model_takes(
    rule: ModelRule, asked: Thinking, limit: int | None, sent: Thinking, found: list[Finding]
) -> None:
    assert fit_thinking(asked, rule, limit) == (sent, found)


def test_an_effort_that_the_model_also_takes_stays_beside_its_budget() -> None:
    rule = ModelRule(forms=("enabled",), budget=(1024, None), efforts=("low", "high"))
    assert fit_thinking(Thinking(effort="low"), rule, None)[0] == Thinking(effort="low", budget=2048)
    assert fit_thinking(Thinking(effort="max"), rule, None)[0] == Thinking(budget=32_768)


def dropped(name: str, when: str, advice: str) -> Contradiction:
    return Contradiction("setting_dropped", f"{name} is not accepted {when}", name, "set", "nothing", advice)


PICKY = ModelRule(forbids=("temperature", "stop"), refuses=("top_k",), temperature=1.0, top_p=(0.95, 1.0))
NO_TOP_K = dropped("top_k", "by this model", "leave top_k out")
NO_TEMPERATURE = dropped("temperature", "while this model thinks", "leave temperature or thinking out")


@pytest.mark.parametrize(
    ("asked", "thinks", "sent", "found"),
    [
        (Sampling(seed=7, top_p=0.95), True, Sampling(seed=7, top_p=0.95), []),
        (Sampling(top_k=5, seed=7), False, Sampling(seed=7), [NO_TOP_K]),
        (Sampling(temperature=0.5), False, Sampling(temperature=0.5), []),
        (Sampling(temperature=0.5, top_k=5), True, Sampling(), [NO_TOP_K, NO_TEMPERATURE]),
        (Sampling(temperature=1.0), True, Sampling(temperature=1.0), []),
        (Sampling(top_p=0.5), False, Sampling(top_p=0.5), []),
        (
            Sampling(top_p=0.5),
            True,
            Sampling(top_p=0.95),
            [
                Contradiction(
                    "setting_adjusted",
                    "top_p is 0.95 to 1 while this model thinks",
                    "top_p",
                    "0.5",
                    "0.95",
                    "change it or leave it out",
                )
            ],
        ),
    ],
)
def test_sampling_is_what_the_model_accepts(
    asked: Sampling, thinks: bool, sent: Sampling, found: list[Contradiction]
) -> None:
    assert fit_sampling(asked, PICKY, thinks=thinks) == (sent, found)


@pytest.mark.parametrize(
    ("messages", "ends"),
    [
        ((), False),
        ((user("?"),), False),
        ((user("?"), assistant("The answer is")), True),
        ((user("?"), assistant(Thought("t"))), False),
        ((user("?"), assistant("I look.", ServerTool("web_search_call"))), False),
        ((user("?"), assistant("a"), user("!")), False),
    ],
)
def test_only_a_text_of_the_assistant_at_the_end_asks_the_model_to_go_on(
    messages: tuple[Message, ...], ends: bool
) -> None:
    assert ends_with_assistant(messages) is ends


CALL, THOUGHT = ToolCall("c1", "f"), Thought("t")
RESULT = Message("tool", (ToolResult("c1", "42"),))


@pytest.mark.parametrize(
    ("messages", "lacks"),
    [
        ((user("?"),), False),
        ((user("?"), assistant("a")), False),
        ((user("?"), assistant(CALL), RESULT), True),
        ((user("?"), assistant(THOUGHT, CALL), RESULT), False),
        ((user("?"), assistant("I look.", CALL), RESULT), True),
        # The turn begins with its first message, whatever its later ones begin with.
        ((user("?"), assistant(CALL), RESULT, assistant(THOUGHT, CALL), RESULT), True),
        ((user("?"), assistant(THOUGHT, CALL), RESULT, assistant(CALL), RESULT), False),
        # An empty message begins nothing, and a turn that is over does not count.
        ((user("?"), assistant(), assistant(THOUGHT, CALL), RESULT), False),
        ((user("?"), assistant(CALL), RESULT, assistant("a"), user("!")), False),
        # Results and the next question are one message of the user.
        ((user("?"), assistant(CALL), RESULT, user("!")), True),
        ((user("?"), assistant(CALL), RESULT, user("!"), user("?")), True),
        ((user("?"), assistant(THOUGHT, CALL), RESULT, user("!")), False),
        ((user("?"), assistant(CALL), user("!")), False),
    ],
)
def test_a_turn_with_calls_lacks_thinking_unless_it_begins_with_it(messages: tuple[Message, ...], lacks: bool) -> None:
    assert lacks_thinking(messages) is lacks


def lacks_thinking_by_the_words(messages: tuple[Message, ...]) -> bool:
    """The same from the front: collect the messages of the current turn, then look at them."""
    end = 1 + max((place for place, message in enumerate(messages) if message.role == "assistant"), default=-1)
    if not any(isinstance(part, ToolResult) for message in messages[end:] for part in message.parts):
        end = len(messages)
    turn: list[Message] = []
    for message in messages[:end]:
        if message.role == "assistant":
            turn += [message] if message.parts else []
        elif any(not isinstance(part, ToolResult) for part in message.parts):
            turn = []
    return any(message.tool_calls for message in turn) and not isinstance(turn[0].parts[0], Thought)


_MESSAGES = [
    user("?"),
    Message("user"),
    Message("user", (ToolResult("c1", "42"),)),
    Message("user", (ToolResult("c1", "42"), Text("and?"))),
    RESULT,
    Message("tool"),
    Message("system", (Text("s"),)),
    assistant(),
    assistant("a"),
    assistant(CALL),
    assistant(THOUGHT, CALL),
    assistant(THOUGHT),
    assistant("a", THOUGHT, CALL),
]


@settings(max_examples=500)
@given(st.lists(st.sampled_from(_MESSAGES), min_size=1, max_size=6).map(tuple))
def test_a_turn_of_any_messages_lacks_thinking_by_the_words(messages: tuple[Message, ...]) -> None:
    assert lacks_thinking(messages) is lacks_thinking_by_the_words(messages)
