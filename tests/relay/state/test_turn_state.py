"""States of turns: they survive encoding, and digests see what matters and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.providers.find import find_target
from asides.providers.provider import Provider, ReplayRule
from asides.relay.state.turn_state import (
    PartState,
    RestoredTurn,
    TurnState,
    decode_state,
    digest_call,
    digest_text,
    digest_thought,
    digest_turn,
    encode_state,
    find_thoughts_with_text,
    is_stand_in,
    place_turns,
)
from asides.values.learned import Learned
from asides.values.parts import Text, ToolCall
from asides.values.thinking import Origin, Seal, Thought

_words = st.text(st.characters(codec="utf-8"))
_seals = st.lists(st.builds(Seal, _words, _words, st.none(), st.none() | _words), max_size=2).map(tuple)
_parts = st.builds(PartState, st.integers(-9, 10**7), st.sampled_from(["thought", "text", "call"]), _seals, st.binary())


@given(st.builds(TurnState, st.lists(_parts, max_size=3).map(tuple), st.none(), prefix=_words, ref=_words))
def test_a_state_comes_back_as_it_was(state: TurnState) -> None:
    assert decode_state(encode_state(state)) == state


def test_what_a_refusal_taught_comes_back_as_it_was() -> None:
    learned = Learned("kind", "https://api.example", changes=(("a", ("b", 1)), ("c", None)), refused=("d",))
    state = TurnState(origin=Origin("p", "https://api.example", "m"), learned=(learned,), effort="high")
    assert decode_state(encode_state(state)) == state


@given(st.binary())
def test_no_bytes_are_an_error(data: bytes) -> None:
    decode_state(data)


@pytest.mark.parametrize(
    "other", [PartState(1, "thought", (Seal("signature", "\ud800"),)), PartState(2**80, "thought")]
)
def test_half_a_character_or_a_vast_index_costs_its_part_and_nothing_else(other: PartState) -> None:
    good = PartState(0, "thought", (Seal("signature", "S"),))
    state = TurnState((good, other), prefix="0a")
    assert decode_state(encode_state(state)) == TurnState((good,), prefix="0a")


_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=5), _values, max_size=4))
def test_the_order_of_arguments_and_the_id_of_a_call_do_not_count(arguments: dict[str, Any]) -> None:
    turned = dict(reversed(list(arguments.items())))
    assert digest_call(ToolCall("one", "f", arguments)) == digest_call(ToolCall("two", "f", turned))
    assert digest_call(ToolCall("one", "f", arguments)) != digest_call(ToolCall("one", "g", arguments))
    assert digest_call(ToolCall("one", "f", {**arguments, "more!": 1})) != digest_call(ToolCall("one", "f", arguments))


def test_numbers_count_as_clients_write_them() -> None:
    assert digest_call(ToolCall("a", "f", {"n": [1.0, -0.0]})) == digest_call(ToolCall("a", "f", {"n": [1, 0]}))
    assert digest_call(ToolCall("a", "f", {"n": 1.5})) != digest_call(ToolCall("a", "f", {"n": 1}))
    assert digest_call(ToolCall("a", "f", {"n": True})) != digest_call(ToolCall("a", "f", {"n": 1}))


def test_blanks_count_in_thoughts_and_not_at_the_ends_of_an_answer() -> None:
    assert digest_text(["\n a ", "b "]) == digest_text(["a b"])
    assert digest_text(["a b"]) != digest_text(["ab"])
    assert digest_thought("a ") != digest_thought("a")
    assert digest_turn(b"a", [b"1"]) != digest_turn(b"a", [])
    assert digest_text(["\ud800"]) != digest_text([""])


ROWS = tuple(
    Provider(name=f"acme-{when}", replay=(ReplayRule(when=when),)) for when in ("never", "all", "tool_turns", "sealed")
)


@pytest.mark.parametrize(
    ("when", "with_calls", "without"), [("never", 0, 0), ("all", 1, 1), ("tool_turns", 1, 0), ("sealed", 0, 0)]
)
def test_the_rule_of_a_provider_says_whether_its_thinking_is_kept(when: str, with_calls: int, without: int) -> None:
    thought = Thought("plan", origin=Origin(f"acme-{when}", "https://api.example", "m"))
    assert len(find_thoughts_with_text((thought,), ROWS)) == with_calls
    assert len(find_thoughts_with_text((thought,), ROWS, has_calls=False)) == without


def test_seals_say_whether_a_thought_works_without_its_text() -> None:
    claude = find_target("anthropic:claude-sonnet-4-5").origin
    signed = Thought("plan", "summary", "block", claude, (Seal("signature", "S", claude),))
    hidden = Thought("", "hidden", "block", claude, (Seal("redacted", "S", claude),))
    assert find_thoughts_with_text((Text("a"), signed, hidden)) == {1}
    openai = find_target("openai-responses:gpt-5").origin
    sealed = Thought("plan", "summary", "responses_summary", openai, (Seal("encrypted", "S", openai),))
    assert find_thoughts_with_text((sealed,)) == frozenset()


def test_reprs_show_nothing() -> None:
    part = PartState(0, "thought", (Seal("signature", "SECRET"),), text="SECRET")
    assert "SECRET" not in f"{part!r} {TurnState((part,))!r}"


def test_turns_stand_where_the_restored_prompt_has_them() -> None:
    looked = [(1, "vault", 2), (5, "", 0), (7, "envelope", 1), (10, "vault", 0)]
    placed = place_turns(looked)  # type: ignore[arg-type]
    assert placed == (
        RestoredTurn(1, "vault"),
        RestoredTurn(3, ""),
        RestoredTurn(5, "envelope"),
        RestoredTurn(7, "vault"),
    )
    assert [turn.is_found for turn in placed] == [True, False, True, True]


@pytest.mark.parametrize(
    ("value", "is_one"),
    [
        ("skip_thought_signature_validator", True),
        ("c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=", True),
        ("context_engineering_is_the_way_to_go", True),
        ("gAAAA", False),
        ("", False),
    ],
)
def test_a_placeholder_of_a_client_is_no_seal(value: str, is_one: bool) -> None:
    assert is_stand_in(Seal("thought_signature", value)) is is_one
