"""Histories without readable thinking: no word of it anywhere, and what suffices alone is there."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from asides.history.redact import withheld
from asides.values.messages import Message, Part, StoredResponse, Text, ToolCall, UnknownPart, assistant, user
from asides.values.thinking import Seal, Thought
from tests.history.any_messages import MESSAGES

CANARY = "canary-5c2e"


def left_of(part: Part, *, stored: bool = False) -> Part | None:
    message = Message("assistant", (part, Text("a")), stored=StoredResponse("r_1") if stored else None)
    kept = withheld((message,))[0].parts
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
    assert left_of(both) == Thought("", "hidden", "block", seals=(Seal("redacted", "r"),))
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
    assert [part.withheld for part in withheld((apart,))[0].parts if isinstance(part, Thought)] == [True, True]


def test_a_picture_inside_a_thought_goes_and_other_parts_stay() -> None:
    assert left_of(UnknownPart(json.dumps({"inlineData": {"data": CANARY}, "thought": True}))) is None
    new = UnknownPart('{"type":"new","thought":"no mark"}')
    call = ToolCall("c", "f", seals=(Seal("thought_signature", "s"),))
    history = (user("?"), assistant(new, call, "a"))
    assert withheld(history) == history


@given(messages=MESSAGES)
@settings(max_examples=40, deadline=None)
def test_doing_it_twice_changes_nothing_and_no_thought_has_words(messages: tuple[Message, ...]) -> None:
    kept = withheld(messages)
    assert withheld(kept) == kept
    thoughts = [part for message in kept for part in message.parts if isinstance(part, Thought)]
    assert not any(thought.text for thought in thoughts)
    assert [message.role for message in kept] == [message.role for message in messages]
