"""Histories without readable thinking: no text of it stays, and seals that work without it do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings

from asides.history.redact import invalidate_seals, redact
from asides.providers.provider import ModelRule, Provider
from asides.values.messages import Message, StoredResponse, assistant, user
from asides.values.parts import Part, Text, ToolCall, UnknownPart
from asides.values.thinking import Origin, Seal, Thought
from tests.history.any_messages import MESSAGES
from tests.history.strict_stages import Model, StrictRules, question

CANARY = "canary-5c2e"


def left_of(part: Part, *, stored: bool = False) -> Part | None:
    message = Message("assistant", (part, Text("a")), stored=StoredResponse("r_1") if stored else None)
    kept = redact((message,))[0].parts
    assert CANARY not in str([json.dumps(entry) for entry in _entries(kept)])
    return kept[0] if len(kept) > 1 else None


def _entries(parts: tuple[Part, ...]) -> list[str]:
    return [str(getattr(part, "text", "")) + str([seal.entry for seal in getattr(part, "seals", ())]) for part in parts]


def item(value: str = "", **fields: object) -> Seal:
    entry = {"type": "reasoning", "id": "rs_1", **fields}
    return Seal("encrypted" if value else "item", value, None, json.dumps(entry))


def detail(kind: str, **fields: object) -> Seal:
    return Seal("reasoning_details", "", None, json.dumps({"type": f"reasoning.{kind}", "index": 0, **fields}))


SUMMARY = [{"type": "summary_text", "text": CANARY}]
RAW = [{"type": "reasoning_text", "text": CANARY}]


@pytest.mark.requirement("S0-09", "pain B6")
def test_S0_09_words_go_and_a_thought_that_needs_them_is_marked() -> None:
    gone = Thought("", "hidden", withheld=True)
    assert left_of(Thought(CANARY)) == gone
    assert left_of(Thought(CANARY, "raw", "field", via="reasoning_content")) == Thought(
        "", "hidden", "field", via="reasoning_content", withheld=True
    )
    signed = Thought(CANARY, "summary", "block", seals=(Seal("signature", "s"),), via="thinking")
    assert left_of(signed) == Thought("", "hidden", "block", via="thinking", withheld=True)
    assert left_of(Thought(CANARY, seals=(Seal("reasoning_opaque", "s"),))) == gone
    in_part = Thought(CANARY, "summary", "block", seals=(Seal("thought_signature", "s"),))
    assert left_of(in_part) == Thought("", "hidden", "block", withheld=True)


def test_a_thought_that_was_hidden_to_begin_with_stays_as_it_is() -> None:
    for seal in (Seal("signature", "s"), Seal("redacted", "s"), Seal("thought_signature", "s"), item(summary=[])):
        thought = Thought("", "hidden", "block", seals=(seal,))
        assert left_of(thought) == thought


def test_state_that_suffices_alone_stays_without_the_words_in_it() -> None:
    thought = Thought(CANARY, "summary", "responses_summary", seals=(item("gAAA", summary=SUMMARY, content=RAW),))
    assert left_of(thought) == Thought(
        "",
        "hidden",
        "responses_summary",
        seals=(Seal("encrypted", "gAAA", None, '{"type":"reasoning","id":"rs_1","summary":[]}'),),
    )
    both = Thought(CANARY, "summary", "block", seals=(Seal("signature", "s"), Seal("redacted", "r")))
    assert left_of(both) == Thought("", "hidden", "block", withheld=True), "all of its seals, or none"
    of_message = Thought(CANARY, seals=(Seal("thought_signature", "s"),))
    assert left_of(of_message) == Thought("", "hidden", seals=(Seal("thought_signature", "s"),))


def test_an_item_by_its_id_suffices_where_the_provider_has_stored_it() -> None:
    thought = Thought(CANARY, "raw", "responses_raw", seals=(item(summary=[], content=RAW),))
    assert left_of(thought) == Thought("", "hidden", "responses_raw", withheld=True)
    kept = Seal("item", "", None, '{"type":"reasoning","id":"rs_1","summary":[]}')
    assert left_of(thought, stored=True) == Thought("", "hidden", "responses_raw", seals=(kept,))


@pytest.mark.requirement("pain C10")
def test_pain_C10_details_stay_all_together_or_not_at_all() -> None:
    token = detail("encrypted", data="x")
    assert left_of(Thought(CANARY, seals=(token,))) == Thought("", "hidden", seals=(token,))
    for worded in (detail("summary", summary=CANARY), detail("text", text=CANARY, signature="s")):
        assert left_of(Thought(CANARY, seals=(worded, token))) == Thought("", "hidden", withheld=True)
    apart = assistant(Thought(CANARY, seals=(detail("text", text=CANARY),)), Thought(CANARY, seals=(token,)), "a")
    assert [part.withheld for part in redact((apart,))[0].parts if isinstance(part, Thought)] == [True, True]


def test_a_picture_inside_a_thought_goes_and_other_parts_stay() -> None:
    assert left_of(UnknownPart(json.dumps({"inlineData": {"data": CANARY}, "thought": True}))) is None
    new = UnknownPart('{"type":"new","thought":"no mark"}')
    call = ToolCall("c", "f", seals=(Seal("thought_signature", "s"),))
    history = (user("?"), assistant(new, call, "a"))
    assert redact(history) == history


SIGNED = Thought(CANARY, "summary", "block", seals=(Seal("signature", "s"),))
HIDDEN = Thought("", "hidden", "block", seals=(Seal("redacted", "r"),))
OMITTED = Thought("", "hidden", "block", seals=(Seal("signature", "o"),))

ELSEWHERE = Origin("elsewhere", "", "m")


@pytest.mark.parametrize(
    ("history", "kept"),
    [
        ([assistant(SIGNED, HIDDEN, "a")], [0, 0]),
        ([assistant(HIDDEN, SIGNED, OMITTED, "a")], [0, 0, 0]),
        ([assistant(HIDDEN, "a"), assistant(OMITTED, "b")], [1, 1]),
        ([user("?"), assistant(HIDDEN, ToolCall("c", "f")), Message("tool"), assistant(SIGNED, "a")], [0, 0]),
        ([user("?"), assistant(SIGNED, "a"), user("!"), assistant(HIDDEN, OMITTED, "a")], [0, 1, 1]),
        ([assistant(SIGNED, msgspec.structs.replace(HIDDEN, origin=ELSEWHERE), "a")], [0, 1]),
        ([assistant(Thought(CANARY), HIDDEN, "a")], [0, 0]),
    ],
    ids=["beside", "between", "none readable", "after a call", "in another turn", "of another maker", "unsealed"],
)
def test_the_thoughts_of_a_turn_stay_together_or_not_at_all(history: list[Message], kept: list[int]) -> None:
    saved = redact(history)
    assert [int(thought.can_replay) for thought in _thoughts(saved)] == kept
    assert all(bool(thought.seals) is thought.can_replay for thought in _thoughts(saved))
    assert redact(saved) == saved


def _thoughts(messages: Sequence[Message]) -> list[Thought]:
    return [part for message in messages for part in message.parts if isinstance(part, Thought)]


@given(messages=MESSAGES)
@settings(max_examples=40, deadline=None)
def test_doing_it_twice_changes_nothing_and_no_thought_has_words(messages: tuple[Message, ...]) -> None:
    kept = redact(messages)
    assert redact(kept) == kept
    thoughts = [part for message in kept for part in message.parts if isinstance(part, Thought)]
    assert not any(thought.text for thought in thoughts)
    assert [message.role for message in kept] == [message.role for message in messages]


# --- void seals -----------------------------------------------------------------------------------------------------


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
    whole = [all(part.can_replay for part in message.parts if isinstance(part, Thought)) for message in mended]
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
        assert thought.complete
        return not thought.replayable

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
