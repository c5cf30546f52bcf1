"""The way out: which events change, what callers get in place of seals, and that nothing else costs anything."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec
import pytest

from asides.dialects import DIALECTS
from asides.providers.find import find_target
from asides.relay.state import relay_keys
from asides.relay.state.carry_state import StateCarrier
from asides.relay.state.envelope import MOST_CHARACTERS, is_envelope, open_envelope
from asides.relay.state.relay_keys import RelayKeys
from asides.relay.state.turn_state import StateMode, TurnState
from asides.values.events import (
    Event,
    ReplyEnded,
    ReplyStarted,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
)
from asides.values.fold import fold
from asides.values.learned import Learned
from asides.values.messages import user
from asides.values.thinking import Origin, Seal
from asides.values.usage import Usage
from tests.relay.relayed_turns import write_reply

KEYS = RelayKeys((b"k" * 32,)).find_tenant("a")


def origin_of(model: str) -> Origin:
    return find_target(model).origin


CLAUDE = origin_of("anthropic:claude-sonnet-4-5")
GEMINI = origin_of("gemini:gemini-3-pro-preview")
DEEPSEEK = origin_of("deepseek:deepseek-reasoner")

CARRYING = ("anthropic", "bedrock", "gemini", "gemini_interactions", "openai_responses")
KINDS = {
    "anthropic": ("signature", "redacted"),
    "bedrock": ("signature", "redacted"),
    "gemini_interactions": ("step_signature", "step_signature"),
    "gemini": ("thought_signature", "thought_signature"),
    "openai_responses": ("encrypted", "encrypted"),
}


def carry(
    dialect: str, batches: Sequence[list[Event]], mode: StateMode = "memory", *, details: bool = False
) -> list[Event]:
    carrier = StateCarrier(dialect, KEYS, mode, details=details)
    return [event for batch in batches for event in carrier.carry(batch)]


def seals_of(events: Sequence[Event]) -> list[tuple[int, str]]:
    return [(event.block, event.seal.kind) for event in events if isinstance(event, ThoughtSealed)]


def states_of(events: Sequence[Event]) -> list[TurnState]:
    opened = [open_envelope(event.seal.value, KEYS).state for event in events if isinstance(event, ThoughtSealed)]
    return [state for state in opened if state is not None]


def signed_turn() -> list[list[Event]]:
    """A turn of Claude: a signed thought, a redacted one, words, a call."""
    return [
        [ReplyStarted("m", "r", CLAUDE)],
        [ThinkingDelta("plan ", 0, "summary", "block", "thinking")],
        [ThinkingDelta("more", 0, "summary", "block", "thinking")],
        [ThoughtSealed(Seal("signature", "REALSEAL", CLAUDE), 0, "summary", "block")],
        [ThoughtSealed(Seal("redacted", "REALDATA", CLAUDE), 1, "hidden", "block")],
        [TextDelta("Let me see.", 2)],
        [ToolCallDelta(3, "call_123456789", "look_up"), ToolCallDelta(3, arguments="{}")],
        [ReplyEnded()],
    ]


@pytest.mark.parametrize("dialect", CARRYING)
def test_seals_of_the_provider_become_envelopes_in_the_callers_dialect(dialect: str) -> None:
    events = carry(dialect, signed_turn())
    seals = [event.seal for event in events if isinstance(event, ThoughtSealed)]
    signature, redacted = KINDS[dialect]
    assert [seal.kind for seal in seals][:2] == [signature, redacted]
    assert all(is_envelope(seal.value) for seal in seals)
    assert fold(events).text == "Let me see."
    assert fold(events).thinking


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("mode", ["memory", "carry-only"])
def test_no_caller_sees_a_seal_of_the_provider(dialect: str, stream: bool, mode: StateMode) -> None:
    written = write_reply(dialect, [carry(dialect, signed_turn(), mode)], stream=stream)
    assert b"REAL" not in written
    assert b"Let me see." in written
    assert (b"asd1." in written or b"YXNkMS" in written) == (dialect in CARRYING)


@pytest.mark.parametrize("dialect", ["anthropic", "bedrock"])
def test_every_thought_is_signed_also_without_a_seal_of_the_provider(dialect: str) -> None:
    turn: list[list[Event]] = [
        [ReplyStarted("m", "r", DEEPSEEK), ThinkingDelta("hm", 0, via="reasoning_content")],
        [TextDelta("42", 1)],
        [ReplyEnded()],
    ]
    events = carry(dialect, turn)
    assert [type(event) for event in events] == [ReplyStarted, ThinkingDelta, ThoughtSealed, TextDelta, ReplyEnded]
    assert seals_of(events) == [(0, "signature")]


def test_a_thought_that_ends_the_reply_is_signed_before_the_end() -> None:
    turn: list[list[Event]] = [[ReplyStarted("m", "r", DEEPSEEK), ThinkingDelta("hm", 0)], [ReplyEnded()]]
    assert [type(event) for event in carry("anthropic", turn)][-2:] == [ThoughtSealed, ReplyEnded]


def test_a_blank_thought_without_a_seal_is_not_signed() -> None:
    turn: list[list[Event]] = [
        [ReplyStarted("m", "r", DEEPSEEK), ThinkingDelta(" \n", 0), TextDelta("42", 1), ReplyEnded()]
    ]
    assert seals_of(carry("anthropic", turn)) == []


def test_batches_that_only_go_on_are_returned_as_they_are() -> None:
    carrier = StateCarrier("anthropic", KEYS, "memory")
    carrier.carry([ReplyStarted("m", "r", CLAUDE), ThinkingDelta("a", 0)])
    for batch in ([ThinkingDelta("b", 0), ThinkingDelta("c", 0)], [ThinkingDelta("d", 0)]):
        given: list[Event] = [*batch]
        assert carrier.carry(given) is given
    first = carrier.carry([TextDelta("e", 1)])
    (state,) = states_of(first)
    assert (
        state.parts[0].digest
        == states_of(carry("anthropic", [[ThinkingDelta("abcd", 0), TextDelta("e", 1)]]))[0].parts[0].digest
    )
    more: list[Event] = [TextDelta("f", 1)]
    assert carrier.carry(more) is more


def test_the_mode_off_changes_nothing() -> None:
    for batch in signed_turn():
        assert StateCarrier("anthropic", KEYS, "off").carry(batch) is batch
    assert StateCarrier("anthropic", KEYS, "off").finish(fold([e for b in signed_turn() for e in b]), ()) is None


@pytest.mark.parametrize("dialect", ["anthropic", "bedrock", "openai_responses"])
def test_the_seal_of_a_call_rides_in_a_thought_before_it(dialect: str) -> None:
    turn: list[list[Event]] = [
        [ReplyStarted("m", "r", GEMINI), TextDelta("I look.", 0)],
        [
            ToolCallDelta(1, "call_123456789", "look_up"),
            ToolCallDelta(1, arguments='{"n": 1}'),
            ThoughtSealed(Seal("thought_signature", "REALSEAL", GEMINI), 1),
            ToolCallDelta(2, "call_987654321", "look_up"),
        ],
        [ReplyEnded()],
    ]
    events = carry(dialect, turn)
    kinds = [type(event) for event in events]
    assert kinds.index(ThoughtSealed) < kinds.index(ToolCallDelta)
    ((block, kind),) = seals_of(events)
    assert block < 0
    assert kind == KINDS[dialect][1]
    (state,) = states_of(events)
    assert [(part.what, part.id, part.seals[0].value) for part in state.parts] == [
        ("call", "call_123456789", "REALSEAL")
    ]


def test_the_seal_of_a_call_that_comes_later_is_left_to_the_vault() -> None:
    turn: list[list[Event]] = [
        [ReplyStarted("m", "r", GEMINI), ToolCallDelta(1, "call_123456789", "look_up")],
        [ToolCallDelta(1, arguments="{}")],
        [ThoughtSealed(Seal("thought_signature", "REALSEAL", GEMINI), 1)],
        [ReplyEnded()],
    ]
    assert seals_of(carry("anthropic", turn)) == []
    carrier = StateCarrier("anthropic", KEYS, "memory")
    for batch in turn:
        carrier.carry(batch)
    assert carrier.finish(fold([event for batch in turn for event in batch]), (user("hi"),)) is not None
    # Without a vault it travels at the end.
    assert seals_of(carry("anthropic", turn, "carry-only")) == [(-2, "redacted")]


def test_callers_of_gemini_get_what_is_pending_on_the_call() -> None:
    events = carry("gemini", signed_turn())
    assert seals_of(events)[-1] == (3, "thought_signature")
    last = states_of(events)[-1]
    assert [(part.what, part.block) for part in last.parts] == [("thought", 0), ("thought", 1)]


def test_callers_of_gemini_get_what_is_pending_on_the_last_text() -> None:
    turn = signed_turn()
    del turn[-2]
    events = carry("gemini", turn)
    assert seals_of(events)[-1] == (2, "thought_signature")
    assert isinstance(events[-1], ReplyEnded)


@pytest.mark.parametrize("dialect", ["openai_chat", "ollama", "cohere"])
def test_dialects_without_an_opaque_field_get_no_envelope(dialect: str) -> None:
    assert seals_of(carry(dialect, signed_turn())) == []


def test_callers_of_chat_get_details_if_they_are_set() -> None:
    events = carry("openai_chat", signed_turn(), details=True)
    assert {kind for _, kind in seals_of(events)} == {"reasoning_details"}
    written = write_reply("openai_chat", [events])
    assert b'"reasoning_details":[{"type":"reasoning.encrypted","data":"asd1.' in written


def test_what_is_not_opaque_passes() -> None:
    cited = ThoughtSealed(Seal("citations", "", CLAUDE, "[]"), 0, "hidden", "block")
    events = carry("anthropic", [[ReplyStarted("m", "r", CLAUDE), TextDelta("a", 0)], [cited], [ReplyEnded()]])
    assert cited in events


def test_the_facts_of_the_turn_are_in_each_envelope() -> None:
    carrier = StateCarrier("anthropic", KEYS, "memory")
    learned = (Learned("kind", "https://api.example"),)
    carrier.set_turn_facts(prefix="0a", learned=learned, effort="low")
    events = [event for batch in signed_turn() for event in carrier.carry(batch)]
    assert len(states_of(events)) == 2
    for state in states_of(events):
        assert (state.origin, state.prefix, state.learned, state.effort) == (CLAUDE, "0a", learned, "low")


def test_a_large_state_is_in_the_vault_under_its_reference() -> None:
    turn = signed_turn()
    turn[3] = [ThoughtSealed(Seal("signature", "S" * MOST_CHARACTERS, CLAUDE), 0, "summary", "block")]
    carrier = StateCarrier("anthropic", KEYS, "memory")
    events = [event for batch in turn for event in carrier.carry(batch)]
    references = {state.ref for state in states_of(events) if state.ref}
    assert len(references) == 1
    record = carrier.finish(fold([event for batch in turn for event in batch]), ())
    assert record is not None
    assert KEYS.make_lookup_key("ref", references.pop()) in record.keys
    assert all(not state.ref for state in states_of(carry("anthropic", turn, "carry-only")))


def test_without_cryptography_a_signature_is_a_reference_and_carry_only_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    relay_keys.can_encrypt.cache_clear()
    try:
        states = states_of(carry("anthropic", signed_turn()))
        assert {bool(state.ref) for state in states} == {True}
        notices = StateCarrier("anthropic", KEYS, "carry-only").notices
        assert [notice.code for notice in notices] == ["relay_state_not_carried"]
        assert "asides[relay]" in notices[0].detail
        assert StateCarrier("anthropic", KEYS, "memory").notices == ()
    finally:
        relay_keys.can_encrypt.cache_clear()


def test_other_events_pass_in_their_places() -> None:
    usage = UsageReported(Usage(input=1))
    events = carry(
        "anthropic", [[ReplyStarted("m", "r", CLAUDE), usage, ThinkingDelta("a", 0), usage, TextDelta("b", 1)]]
    )
    assert [type(event) for event in events] == [
        ReplyStarted,
        UsageReported,
        ThinkingDelta,
        UsageReported,
        ThoughtSealed,
        TextDelta,
    ]


def test_a_thought_that_goes_on_gets_an_envelope_for_all_of_it() -> None:
    turn: list[list[Event]] = [
        [ReplyStarted("m", "r", DEEPSEEK), ThinkingDelta("a", 0), TextDelta("b", 1)],
        [ThinkingDelta("c", 0), TextDelta("d", 1)],
    ]
    first, second = states_of(carry("anthropic", turn))
    whole = states_of(
        carry("anthropic", [[ReplyStarted("m", "r", DEEPSEEK), ThinkingDelta("ac", 0), TextDelta("b", 1)]])
    )
    assert first != second
    assert msgspec.structs.replace(second) == whole[0]
