"""Trimmed histories: the order of dropping, the messages that stay, and that providers accept the rest."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import takewhile

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.history.plan import plan
from asides.history.trim import Strip, build_token_counter, strip_thinking, trim
from asides.history.turns import split_turns, split_units
from asides.providers.provider import Provider, ReplayRule, Target
from asides.values.messages import Message, Prompt, assistant, system, user
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.thinking import Seal, Thinking, Thought
from tests.history.strict_stages import MODELS, Model, StrictRules, question

CALL = Message("assistant", (Thought("t"), ToolCall("c1", "f")))
RESULT = Message("tool", (ToolResult("c1", "42", "f"),))


def by_parts(messages: Sequence[Message]) -> int:
    """A counter that is easy to check: ten for each part."""
    return sum(10 * len(message.parts) for message in messages)


def by_letters(messages: Sequence[Message]) -> int:
    """The size of what the messages say, whatever fields a message may have besides."""
    return len(msgspec.json.encode([(message.role, message.parts) for message in messages]))


# --- what belongs together ------------------------------------------------------------------------------------------


def test_calls_stay_with_their_results_and_turns_begin_with_a_person() -> None:
    answer, mixed = assistant("a"), user(ToolResult("c1", "x"), "and?")
    history = (system("s"), user("1"), CALL, RESULT, answer, user("2"), CALL, mixed, answer)
    assert split_units(history) == (
        (history[0],),
        (history[1],),
        (CALL, RESULT),
        (answer,),
        (history[5],),
        (CALL, mixed),
        (answer,),
    )
    assert split_turns(history) == ((history[0],), history[1:5], history[5:])
    assert (split_units(()), split_turns(())) == ((), ())


def test_results_that_no_call_asked_for_belong_to_nothing() -> None:
    history = (user("1"), RESULT, assistant("a"), RESULT)
    assert split_units(history) == tuple((message,) for message in history)


# --- what is dropped first ------------------------------------------------------------------------------------------


def test_a_history_that_fits_stays_as_it_is() -> None:
    history = (user("1"), CALL, RESULT, assistant("a"))
    kept = trim(history, 50, by_parts)
    assert (kept.messages, kept.tokens, kept.fits, kept.dropped, kept.notices) == (history, 50, True, 0, ())


@pytest.mark.requirement("pain G2")
def test_pain_G2_thoughts_of_turns_that_are_over_go_before_any_word() -> None:
    blob = Thought("", "hidden", "block", None, (Seal("redacted", "x" * 4000),))
    signed = Text("", (Seal("thought_signature", "y" * 4000),))
    cited = Text("b", (Seal("citations", "", None, "[1]"),))
    open_turn = Message("assistant", (blob, ToolCall("c2", "f")))
    result = Message("tool", (ToolResult("c2", "42", "f"),))
    history = (user("1"), Message("assistant", (blob, cited, signed)), user("2"), open_turn, result)
    kept = trim(history, 5000, by_letters)
    assert kept.messages == (user("1"), Message("assistant", (cited,)), user("2"), open_turn, result)
    assert (kept.fits, kept.dropped, [notice.code for notice in kept.notices]) == (True, 0, ["history_trimmed"])


def test_pain_G2_seals_of_turns_that_are_over_go_before_readable_thoughts() -> None:
    sealed = Thought("why", "summary", "block", None, (Seal("signature", "x" * 4000),))
    plain = Thought("because")
    call = ToolCall("c1", "f", seals=(Seal("thought_signature", "y" * 4000),))
    first = (user("1"), Message("assistant", (sealed, plain, call)), RESULT, assistant("a"))
    open_turn = (user("2"), Message("assistant", (sealed, msgspec.structs.replace(call, id="c2"))))
    result = Message("tool", (ToolResult("c2", "42", "f"),))
    kept = trim((*first, *open_turn, result), 12_000, by_letters)
    unsealed = Thought("why", "summary", "block", replayable=False)
    assert kept.messages[1] == Message("assistant", (unsealed, plain, ToolCall("c1", "f")))
    assert kept.messages[4:] == (*open_turn, result)
    assert (kept.dropped, kept.notices[0].detail) == (0, "seals of finished turns were left out")
    # Then the readable ones; the open turn keeps all of its own.
    least = trim((*first, *open_turn, result), kept.tokens - 1, by_letters)
    assert least.messages[1] == Message("assistant", (ToolCall("c1", "f"),))
    assert least.messages[4:] == (*open_turn, result)
    assert (least.dropped, least.notices[0].detail) == (0, "thoughts of finished turns were left out")


def test_messages_without_parts_go_with_the_thoughts() -> None:
    empty = Message("assistant")
    kept = trim((user("1"), empty, assistant("a"), user("2")), 7, lambda messages: 2 * len(messages))
    assert kept.messages == (user("1"), assistant("a"), user("2"))


def test_then_the_oldest_turns_whole_and_then_the_oldest_calls_of_the_last() -> None:
    first, second, last = user("1"), user("2"), user("3")
    history = (
        system("s"),
        first,
        CALL,
        RESULT,
        assistant("a"),
        second,
        assistant("b"),
        last,
        CALL,
        RESULT,
        CALL,
        RESULT,
    )
    bare = Message("assistant", CALL.parts[1:])
    begun = (last, CALL, RESULT, CALL, RESULT)
    expected = {
        140: (system("s"), first, bare, RESULT, assistant("a"), second, assistant("b"), *begun),
        130: (system("s"), second, assistant("b"), *begun),
        100: (system("s"), second, assistant("b"), *begun),
        99: (system("s"), *begun),
        79: (system("s"), last, CALL, RESULT),
        49: (system("s"), last, CALL, RESULT),
        0: (system("s"), last, CALL, RESULT),
    }
    for tokens, messages in expected.items():
        kept = trim(history, tokens, by_parts)
        assert kept.messages == messages, tokens
        assert kept.fits is (tokens >= 50), tokens
        assert kept.dropped == len(history) - len(messages)


@pytest.mark.requirement("P2", "FT-48")
@pytest.mark.parametrize("last", [user("q"), assistant("a"), system("s"), RESULT])
def test_P2_the_system_words_and_the_last_message_stay_and_it_ends_over_budget(last: Message) -> None:
    history = (system("be brief"), user("1"), assistant("a"), user("2"), CALL, last)
    kept = trim(history, 0, lambda _: 10**9)
    assert kept.messages[0] == system("be brief")
    assert kept.messages[-1] == last
    assert kept.messages[1].role == "user"
    assert (kept.fits, kept.tokens) == (False, 10**9)
    assert [notice.code for notice in kept.notices] == ["history_trimmed", "history_over_budget"]
    for only in ((), (system("s"),), (last,), (system("s"), last)):
        assert trim(only, -1, by_parts).messages == only


WORDS = st.text("abc ", min_size=1, max_size=30)


@st.composite
def histories(draw: st.DrawFn) -> tuple[Message, ...]:
    """Turns of any kind, with loops, system words in between, and an end anywhere."""
    numbers = iter(range(1000))
    messages = [system(draw(WORDS)) for _ in range(draw(st.integers(0, 2)))]
    if draw(st.booleans()):
        messages.append(assistant("welcome"))
    for _ in range(draw(st.integers(1, 5))):
        messages.append(user(draw(WORDS)))
        for _ in range(draw(st.integers(0, 3))):
            names = [f"c{next(numbers)}" for _ in range(draw(st.integers(1, 2)))]
            thoughts = [Thought(draw(WORDS))] if draw(st.booleans()) else []
            messages.append(Message("assistant", (*thoughts, *(ToolCall(name, "f") for name in names))))
            if draw(st.booleans()):
                messages.append(Message("tool", tuple(ToolResult(name, draw(WORDS)) for name in names)))
            else:
                messages += [Message("tool", (ToolResult(name, draw(WORDS)),)) for name in names]
        if draw(st.booleans()):
            messages.append(assistant(Thought(draw(WORDS)), draw(WORDS)))
        if draw(st.integers(0, 5)) == 0:
            messages.append(system(draw(WORDS)))
    return tuple(messages)


@pytest.mark.requirement("P2", "pain C5", "pain G2")
@given(history=histories(), tokens=st.integers(0, 3000))
@settings(max_examples=100, deadline=None)
def test_P2_whatever_remains_is_whole_and_as_large_as_it_may_be(history: tuple[Message, ...], tokens: int) -> None:
    kept = trim(history, tokens, by_letters)
    assert kept.tokens == by_letters(kept.messages)
    assert kept.fits is (kept.tokens <= tokens)
    assert kept.messages[-1] == history[-1]
    leading = list(takewhile(lambda message: message.role == "system", history))
    assert list(kept.messages[: len(leading)]) == leading
    said = kept.messages[len(leading) :]
    assert kept.dropped == 0 or said[0].role == "user"
    calls = [call.id for message in said for call in message.tool_calls]
    results = [part.call_id for message in said for part in message.parts if isinstance(part, ToolResult)]
    assert calls == results
    again = trim(kept.messages, tokens, by_letters)
    assert again.messages == kept.messages
    # More room never means less history.
    roomier = trim(history, tokens + 200, by_letters)
    assert len(roomier.messages) >= len(kept.messages)


# --- every model -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("pain C2", "pain C3", "pain C5", "pain G2")
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_pain_G2_every_trimmed_history_is_accepted(model: Model) -> None:
    """Three questions and a loop under way, trimmed to every size there is."""
    house = StrictRules(model)
    history = (*house.conversation(3), question(3))
    history = (*history, *house.answered(history)[len(history) : len(history) + 2])
    measure = build_token_counter(house.prompt(()), house.target)
    whole = measure(history)
    least = trim(history, 0, measure).tokens
    seen = set()
    for tokens in range(least, whole + 1, max(1, (whole - least) // 25)):
        kept = trim(history, tokens, measure)
        assert kept.fits
        assert house.refusal(kept.messages) is None, tokens
        further = house.answered(kept.messages)
        assert house.refusal((*further, question(4))) is None, tokens
        seen.add(len(kept.messages))
    assert len(seen) >= 4


# --- thoughts -------------------------------------------------------------------------------------------------------

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


@pytest.mark.requirement("S4-REQ-010.1")
@pytest.mark.parametrize(
    ("tokens", "line"),
    [
        (9, "trim: 3 of 3 messages stay, 3 tokens of 9 allowed"),
        (1, "trim: 1 of 3 messages stay, 1 tokens of 1 allowed"),
        (0, "trim: 1 of 3 messages stay, 1 tokens of 0 allowed; no shorter history can be sent"),
    ],
)
def test_S4_REQ_010_1_the_decision_is_logged_without_content(
    tokens: int, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    history = (user("canary one"), assistant(Thought("canary two"), "canary three"), user("canary four"))
    with caplog.at_level(logging.DEBUG, "asides"):
        trim(history, tokens, len)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [("DEBUG", line)]
    assert "canary" not in caplog.text
