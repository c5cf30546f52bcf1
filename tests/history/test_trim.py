"""Trimmed histories: what is dropped first, what never, and that whatever remains is accepted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.history.estimate_tokens import estimator_for
from asides.history.redact import invalidate_seals
from asides.history.trim import trimmed, turns, units
from asides.providers.provider import ModelRule, Provider
from asides.values.messages import Image, Message, Text, ToolCall, ToolResult, assistant, system, user
from asides.values.thinking import Origin, Seal, Thought
from tests.history.strict_stages import MODELS, Model, StrictRules, question

CALL = Message("assistant", (Thought("t"), ToolCall("c1", "f")))
RESULT = Message("tool", (ToolResult("c1", "42", "f"),))


def by_parts(messages: Sequence[Message]) -> int:
    """A measure that anybody can check: ten for each part."""
    return sum(10 * len(message.parts) for message in messages)


def by_letters(messages: Sequence[Message]) -> int:
    return len(msgspec.json.encode(messages))


# --- what belongs together ------------------------------------------------------------------------------------------


def test_calls_stay_with_their_results_and_turns_begin_with_a_person() -> None:
    answer, mixed = assistant("a"), user(ToolResult("c1", "x"), "and?")
    history = (system("s"), user("1"), CALL, RESULT, answer, user("2"), CALL, mixed, answer)
    assert units(history) == (
        (history[0],),
        (history[1],),
        (CALL, RESULT),
        (answer,),
        (history[5],),
        (CALL, mixed),
        (answer,),
    )
    assert turns(history) == ((history[0],), history[1:5], history[5:])
    assert (units(()), turns(())) == ((), ())


def test_results_that_no_call_asked_for_belong_to_nothing() -> None:
    history = (user("1"), RESULT, assistant("a"), RESULT)
    assert units(history) == tuple((message,) for message in history)


# --- what is dropped first ------------------------------------------------------------------------------------------


def test_a_history_that_fits_stays_as_it_is() -> None:
    history = (user("1"), CALL, RESULT, assistant("a"))
    kept = trimmed(history, 50, by_parts)
    assert (kept.messages, kept.tokens, kept.fits, kept.dropped, kept.notices) == (history, 50, True, 0, ())


@pytest.mark.requirement("pain G2")
def test_pain_G2_thoughts_of_turns_that_are_over_go_before_any_word() -> None:
    blob = Thought("", "hidden", "block", None, (Seal("redacted", "x" * 4000),))
    signed = Text("", (Seal("thought_signature", "y" * 4000),))
    told = Text("b", (Seal("citations", "", None, "[1]"),))
    open_turn = Message("assistant", (blob, ToolCall("c2", "f")))
    result = Message("tool", (ToolResult("c2", "42", "f"),))
    history = (user("1"), Message("assistant", (blob, told, signed)), user("2"), open_turn, result)
    kept = trimmed(history, 5000, by_letters)
    assert kept.messages == (user("1"), Message("assistant", (told,)), user("2"), open_turn, result)
    assert (kept.fits, kept.dropped, [notice.code for notice in kept.notices]) == (True, 0, ["history_trimmed"])


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
        kept = trimmed(history, tokens, by_parts)
        assert kept.messages == messages, tokens
        assert kept.fits is (tokens >= 50), tokens
        assert kept.dropped == len(history) - len(messages)


@pytest.mark.requirement("P2", "FT-48")
@pytest.mark.parametrize("last", [user("q"), assistant("a"), system("s"), RESULT])
def test_P2_the_system_words_and_the_last_message_stay_and_it_ends_over_budget(last: Message) -> None:
    history = (system("be brief"), user("1"), assistant("a"), user("2"), CALL, last)
    kept = trimmed(history, 0, lambda _: 10**9)
    assert kept.messages[0] == system("be brief")
    assert kept.messages[-1] == last
    assert kept.messages[1].role == "user"
    assert (kept.fits, kept.tokens) == (False, 10**9)
    assert [notice.code for notice in kept.notices] == ["history_trimmed", "history_over_budget"]
    for only in ((), (system("s"),), (last,), (system("s"), last)):
        assert trimmed(only, -1, by_parts).messages == only


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
    kept = trimmed(history, tokens, by_letters)
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
    again = trimmed(kept.messages, tokens, by_letters)
    assert again.messages == kept.messages
    # More room never means less history.
    roomier = trimmed(history, tokens + 200, by_letters)
    assert len(roomier.messages) >= len(kept.messages)


# --- seals that hold to the past ------------------------------------------------------------------------------------


@pytest.mark.requirement("pain C2", "pain C3", "pain C5", "pain G2")
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_pain_G2_every_trimmed_history_is_accepted(model: Model) -> None:
    """Three questions and a loop under way, trimmed to every size there is."""
    house = StrictRules(model)
    history = (*house.conversation(3), question(3))
    history = (*history, *house.answered(history)[len(history) : len(history) + 2])
    measure = estimator_for(house.prompt(()), house.target)
    whole = measure(history)
    least = trimmed(history, 0, measure).tokens
    seen = set()
    for tokens in range(least, whole + 1, max(1, (whole - least) // 25)):
        kept = trimmed(history, tokens, measure)
        assert kept.fits
        assert house.refusal(kept.messages) is None, tokens
        further = house.answered(kept.messages)
        assert house.refusal((*further, question(4))) is None, tokens
        seen.add(len(kept.messages))
    assert len(seen) >= 4


@pytest.mark.requirement("pain C3")
@pytest.mark.parametrize("model", ["anthropic:claude-opus-5-5", "anthropic:claude-sonnet-4-5"])
def test_pain_C3_an_edited_past_takes_only_the_seals_with_it_that_hold_to_it(model: str) -> None:
    house = StrictRules(Model(model, "low"))
    history = (*house.conversation(3), question(3))
    edited = (*history[:4], user("another question"), *history[5:])
    bound = model.endswith("5-5")
    assert ("Invalid `signature`" in str(house.refusal(edited))) is bound
    mended = invalidate_seals(edited, 5)
    assert house.refusal(mended) is None
    whole = [all(part.complete for part in message.parts if isinstance(part, Thought)) for message in mended]
    assert whole[:5] == [True] * 5
    assert all(whole) is not bound
    further = house.answered(mended)
    assert house.refusal((*further, question(4))) is None


def test_whose_seals_hold_to_what_is_a_fact_of_rows_and_unknown_makers_are_left_alone() -> None:
    def made_by(provider: str | None, model: str) -> tuple[Message, ...]:
        origin = None if provider is None else Origin(provider, "", model)
        return (
            Message("assistant", (Thought("t", origin=origin, seals=(Seal("signature", "s", origin),)), Text("a"))),
        )

    def is_loose(messages: tuple[Message, ...], **options: Any) -> bool:
        thought = invalidate_seals(messages, 0, **options)[0].parts[0]
        assert isinstance(thought, Thought)
        return not thought.complete

    assert is_loose(made_by("anthropic", "claude-opus-5-5"))
    assert not is_loose(made_by("anthropic", "claude-opus-4-5"))
    assert not is_loose(made_by(None, "claude-opus-5-5"))
    assert not is_loose(made_by("nobody-knows", "claude-opus-5-5"))
    own = Provider(name="nobody-knows", base_url="http://x", models=(ModelRule(models="c*", prefix_bound=True),))
    assert is_loose(made_by("nobody-knows", "claude-opus-5-5"), rows=[own])
    messages = made_by("anthropic", "claude-opus-5-5")
    assert invalidate_seals(messages, 1) == messages
    unsealed = (assistant(Thought("t", origin=Origin("anthropic", "", "claude-opus-5-5")), "a"),)
    assert invalidate_seals(unsealed, 0) == unsealed


# --- how much it is -------------------------------------------------------------------------------------------------


def measured(model: Model, messages: Sequence[Message], **more: Any) -> int:
    house = StrictRules(model)
    return estimator_for(house.prompt((), **more), house.target)(messages)


@pytest.mark.requirement("H11")
def test_H11_what_is_not_sent_costs_nothing_and_what_is_sent_does() -> None:
    claude, qwen = Model("anthropic:claude-opus-4-6", "high"), Model("qwen:qwen3-max", None)
    bare = (user("1"), assistant("a"), user("2"))
    thought = (user("1"), assistant(Thought("t" * 4000), "a"), user("2"))
    signed = Thought("t" * 2000, "summary", "block", None, (Seal("signature", "s" * 2000),), "thinking")
    sealed = (user("1"), assistant(signed, "a"), user("2"))
    assert measured(qwen, thought) == measured(qwen, bare)
    assert measured(claude, thought) == measured(claude, bare)
    assert 950 < measured(claude, sealed) - measured(claude, bare) < 1050
    withheld_one = msgspec.structs.replace(signed, withheld=True)
    assert measured(claude, (user("1"), assistant(withheld_one, "a"), user("2"))) == measured(claude, bare)


def test_H11_the_system_prompt_and_the_tools_are_counted_and_pictures_have_a_price() -> None:
    model = Model("anthropic:claude-opus-4-6", "high")
    bare = measured(model, [user("1")])
    assert 950 < measured(model, [user("1")], system="s" * 4000) - bare < 1050
    assert measured(model, [user("1")], tools=()) < bare
    small, large = (measured(model, [user("1", Image(data=b"x" * size))]) for size in (10, 1_000_000))
    assert small == large
    assert 1500 < small - bare < 1700
    shown = Message("tool", (ToolResult("c1", (Text("a"), Image(data=b"x" * 1_000_000)), "f"),))
    assert measured(model, [user("1"), CALL, shown]) < 3000
