"""A turn from what the caller sent and from its state: order, texts, ids, and what does not fit."""

from __future__ import annotations

from asides.relay.state.rebuild_turn import (
    drop_lost,
    fits_turn,
    merge_states,
    rebuild_from_envelopes,
    rebuild_from_record,
)
from asides.relay.state.turn_state import PartState, TurnState, digest_call, digest_thought
from asides.relay.state.vault_records import collect_state, find_turns
from asides.values.messages import Message
from asides.values.parts import Image, Part, Refusal, Text, ToolCall
from asides.values.reply import Reply
from asides.values.thinking import Origin, Seal, Thought

MAKER = Origin("anthropic", "https://api.anthropic.com/v1", "claude-sonnet-4-5")


def signed(text: str) -> Thought:
    return Thought(text, "summary", "block", MAKER, (Seal("signature", f"seal of {text}", MAKER),), "thinking")


def call(name: str, **arguments: int) -> ToolCall:
    return ToolCall(f"call_{name}", "look_up", dict(arguments))


SAID: tuple[Part, ...] = (
    signed("one"),
    Text("First. "),
    call("a", n=1),
    signed("two"),
    Text("Second."),
    call("b", n=2),
)
STATE = collect_state(Reply(SAID, origin=MAKER), (), {})


def fits(*parts: Part) -> bool:
    (turn,) = find_turns([Message("assistant", parts)])
    return fits_turn(turn, STATE)


def test_a_turn_fits_with_its_text_or_without_and_with_some_of_its_calls() -> None:
    assert fits(*SAID)
    assert fits(Text("First. Second."), call("a", n=1), call("b", n=2))
    assert fits(Text(" First. Second.\n"), call("b", n=2))
    assert fits(call("a", n=1))
    assert fits(Text("First. Second."), ToolCall("mine1", "look_up", {"n": 1}), ToolCall("mine2", "look_up", {"n": 2}))


def test_a_turn_does_not_fit_with_other_words_other_arguments_or_without_any_call() -> None:
    assert not fits(Text("First. Third."), call("a", n=1), call("b", n=2))
    assert not fits(Text("First. Second."), call("a", n=2), call("b", n=2))
    assert not fits(Text("First. Second."))
    assert not fits(Text("First. Second."), call("a", n=1), call("c", n=3))
    assert not fits(Text("First. Second."), ToolCall("mine1", "look_up", {"n": 1}))


def test_the_order_of_the_record_counts() -> None:
    joined = (Text("First. Second.", cache=True), call("a", n=1), call("b", n=2))
    rebuilt, ids = rebuild_from_record(joined, STATE, keeps_ids=False)
    assert rebuilt == (*SAID[:4], Text("Second.", cache=True), SAID[5])
    assert ids == {}


def test_text_that_was_stripped_stays_in_one_piece() -> None:
    rebuilt, _ = rebuild_from_record((Text("First. Second"), call("a", n=1)), STATE, keeps_ids=False)
    assert rebuilt == (SAID[0], Text("First. Second"), SAID[2], SAID[3])


def test_parts_that_no_record_knows_stay() -> None:
    picture = Image(url="https://a.example/b.png")
    rebuilt, _ = rebuild_from_record((picture, Refusal("no"), call("a", n=1)), STATE, keeps_ids=False)
    assert rebuilt == (SAID[0], picture, Refusal("no"), SAID[2], SAID[3])


def test_ids_of_the_provider_replace_those_of_the_caller_unless_they_are_kept() -> None:
    own = Reply((ToolCall("f:0", "look_up", {"n": 1}),), origin=MAKER)
    state = collect_state(own, (), {"f:0": "call_a"})
    assert rebuild_from_record((call("a", n=1),), state, keeps_ids=False) == (own.parts, {"call_a": "f:0"})
    assert rebuild_from_record((call("a", n=1),), state, keeps_ids=True) == ((call("a", n=1),), {})
    # A caller with ids of its own keeps them: results name them.
    mine = ToolCall("mine", "look_up", {"n": 1})
    assert rebuild_from_record((mine,), state, keeps_ids=False) == ((mine,), {})


def thought_state(text: str, block: int, *seals: Seal, needs_text: bool = False) -> PartState:
    return PartState(
        block, "thought", seals, digest_thought(text), needs_text=needs_text, kind="summary", source="block"
    )


def test_a_later_envelope_knows_more_about_a_thought() -> None:
    early = TurnState((thought_state("plan", 0),), MAKER)
    late = TurnState((thought_state("plan", 0, Seal("reasoning_details", "S")),), MAKER)
    parts = (Thought("plan", source="block"), Text("a"), Thought("", "hidden", "block"))
    rebuilt, is_whole = rebuild_from_envelopes(parts, {0: early, 2: late})
    assert is_whole
    assert rebuilt == (Thought("plan", "summary", "block", MAKER, (Seal("reasoning_details", "S", MAKER),)), Text("a"))
    assert merge_states((early, late)).parts == late.parts


def test_the_more_complete_envelope_counts_wherever_the_caller_has_it() -> None:
    """A whole response sorts its items, and has the envelope before a call first."""
    early = TurnState((thought_state("plan", 0),), MAKER)
    late = TurnState((thought_state("plan", 0, Seal("reasoning_details", "S")),), MAKER)
    parts = (Thought("", "hidden", "block"), Thought("plan", source="block"), Text("a"))
    rebuilt, _ = rebuild_from_envelopes(parts, {0: late, 1: early})
    assert rebuilt == (Thought("plan", "summary", "block", MAKER, (Seal("reasoning_details", "S", MAKER),)), Text("a"))


def test_a_thought_whose_text_changed_is_not_sent_and_one_that_needs_none_is() -> None:
    seal = Seal("signature", "S")
    parts = (Thought("edited", source="block"), Text("a"))
    needing = {0: TurnState((thought_state("plan", 0, seal, needs_text=True),), MAKER)}
    rebuilt, is_whole = rebuild_from_envelopes(parts, needing)
    assert not is_whole
    assert rebuilt == (Thought("edited", source="block", replayable=False), Text("a"))
    free = {0: TurnState((thought_state("plan", 0, seal),), MAKER)}
    rebuilt, is_whole = rebuild_from_envelopes(parts, free)
    assert is_whole
    assert rebuilt[0] == Thought("", "hidden", "block", MAKER, (Seal("signature", "S", MAKER),))


def test_seals_go_onto_the_call_that_they_were_made_for() -> None:
    seal = Seal("thought_signature", "S")
    state = TurnState((PartState(1, "call", (seal,), digest_call(call("a", n=1)), id="call_a"),), MAKER)
    hidden = Thought("", "hidden", "block")
    rebuilt, is_whole = rebuild_from_envelopes((hidden, call("b", n=2), call("a", n=1)), {0: state})
    assert is_whole
    assert rebuilt == (
        call("b", n=2),
        ToolCall("call_a", "look_up", {"n": 1}, None, (Seal("thought_signature", "S", MAKER),)),
    )
    rebuilt, is_whole = rebuild_from_envelopes((hidden, call("a", n=9)), {0: state})
    assert not is_whole
    assert rebuilt == (call("a", n=9),)


def test_a_seal_of_the_callers_own_beside_envelopes_stays() -> None:
    own = Thought("mine", "summary", "block", None, (Seal("signature", "real"),))
    state = TurnState((thought_state("plan", 0),), MAKER)
    rebuilt, _ = rebuild_from_envelopes((own, Thought("plan", source="block"), Text("a")), {1: state})
    assert rebuilt == (own, Thought("plan", "summary", "block", MAKER), Text("a"))


def test_thoughts_without_a_seal_are_shown_and_not_sent() -> None:
    parts = (Thought("plan"), Thought("  "), Text("a"))
    assert drop_lost(parts) == (Thought("plan", replayable=False), Text("a"))
