"""Envelopes: they open for whom they were made, and are absent for everybody else, never an error."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.relay.state import envelope, relay_keys
from asides.relay.state.envelope import (
    MOST_CHARACTERS,
    is_envelope,
    make_envelope,
    make_reference,
    may_hold_envelope,
    open_envelope,
    wrap_in_base64,
)
from asides.relay.state.relay_keys import RelayKeys
from asides.relay.state.turn_state import PartState, TurnState
from asides.values.learned import Learned
from asides.values.thinking import Origin, Seal

KEYS = RelayKeys((b"k" * 32,))
TENANT = KEYS.find_tenant("a")
STATE = TurnState(
    (PartState(0, "thought", (Seal("signature", "SIG"),), b"digest", kind="summary", source="block", via="thinking"),),
    Origin("anthropic", "https://api.example", "claude", "acc"),
    prefix="0a0b",
    learned=(Learned("kind", "https://api.example", changes=(("a", (1, 2)),)),),
    effort="high",
    more=True,
)
REFERENCE = make_reference()


def make(state: TurnState = STATE, *, has_vault: bool = True) -> str:
    return make_envelope(state, TENANT, has_vault=has_vault, reference=REFERENCE)[0]


def test_an_envelope_holds_the_state_and_opens_again() -> None:
    sealed = make()
    assert open_envelope(sealed, TENANT).state == STATE
    assert open_envelope(wrap_in_base64(sealed), TENANT).state == STATE
    assert sealed.startswith("asd1.")
    assert is_envelope(sealed)
    assert is_envelope(wrap_in_base64(sealed))
    assert may_hold_envelope(b'{"signature": "' + sealed.encode() + b'"}')
    assert may_hold_envelope(b'{"data": "' + wrap_in_base64(sealed).encode() + b'"}')


def test_no_two_envelopes_are_alike_and_none_shows_what_is_in_it() -> None:
    assert make() != make()
    assert "SIG" not in make()
    assert "claude" not in make()


@pytest.mark.parametrize("wrapped", [False, True])
def test_an_envelope_with_any_byte_changed_is_absent(wrapped: bool) -> None:
    # Clients write base64 with and without its padding.
    sealed = wrap_in_base64(make()).rstrip("=") if wrapped else make()
    for place in range(len(sealed)):
        for other in ("A" if sealed[place] != "A" else "B", ".", "\u00e9"):
            changed = sealed[:place] + other + sealed[place + 1 :]
            assert changed == sealed or open_envelope(changed, TENANT).state is None, place
        assert open_envelope(sealed[:place], TENANT).state is None
        assert open_envelope(sealed[:place] + sealed[place + 1 :], TENANT).state is None


@pytest.mark.parametrize("prefix", ["", "0", "00"])
def test_there_is_one_spelling_of_an_envelope(prefix: str) -> None:
    sealed = make(TurnState(prefix=prefix))
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    others = [sealed[:-1] + last for last in alphabet if last != sealed[-1]]
    others += [
        f"{sealed}=",
        f"{sealed}\n",
        f" {sealed}",
        sealed[:20] + "!" + sealed[20:],
        sealed.replace("_", "/") + "/",
    ]
    assert [other for other in others if open_envelope(other, TENANT).state is not None] == []


def test_the_reason_is_a_word() -> None:
    sealed = make()
    assert open_envelope(sealed, KEYS.find_tenant("b")).failure == "not_ours"
    assert open_envelope(sealed, RelayKeys((b"x" * 32,)).find_tenant("a")).failure == "unknown_key"
    assert open_envelope("asd1.nothing", TENANT).failure == "malformed"
    # A key of the same id, which only its owner could have made.
    ring = RelayKeys((b"x" * 32, b"k" * 32)).find_tenant("a")
    assert open_envelope(sealed, ring).state == STATE


@given(st.one_of(st.text(), st.text().map(lambda text: f"asd1.{TENANT.current_id}.{text}"), st.binary().map(repr)))
def test_nothing_that_a_client_sends_is_an_error(text: str) -> None:
    assert open_envelope(text, TENANT).state is None
    assert open_envelope(f"asd1.{text}", TENANT).state is None
    is_envelope(text)


@given(st.binary(max_size=200))
def test_an_envelope_of_ours_that_holds_something_else_is_absent(data: bytes) -> None:
    sealed = envelope._seal(data, TENANT)
    opened = open_envelope(sealed, TENANT)
    assert (opened.state is None) == (opened.failure is not None)


def test_the_last_one_counts_where_several_stand_in_a_row() -> None:
    first, second = make(TurnState(prefix="1")), make(TurnState(prefix="2"))
    opened = open_envelope(first + second, TENANT)
    assert opened.state is not None
    assert opened.state.prefix == "2"


def test_one_that_is_too_long_becomes_a_reference_if_there_is_a_vault() -> None:
    state = TurnState((PartState(0, "thought", text="x" * MOST_CHARACTERS),))
    sealed, is_referenced = make_envelope(state, TENANT, has_vault=True, reference=REFERENCE)
    assert is_referenced
    assert len(sealed) < 200
    assert open_envelope(sealed, TENANT).state == TurnState(ref=REFERENCE)
    carried, is_referenced = make_envelope(state, TENANT, has_vault=False, reference=REFERENCE)
    assert not is_referenced
    assert open_envelope(carried, TENANT).state == state


def test_without_cryptography_it_is_a_reference_that_only_its_tenant_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    full = make()
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    relay_keys.can_encrypt.cache_clear()
    try:
        sealed, is_referenced = make_envelope(STATE, TENANT, has_vault=True, reference=REFERENCE)
        assert is_referenced
        assert open_envelope(sealed, TENANT).state == TurnState(ref=REFERENCE)
        assert open_envelope(sealed, KEYS.find_tenant("b")).failure == "not_ours"
        assert open_envelope(sealed[:-1] + ("A" if sealed[-1] != "A" else "B"), TENANT).state is None
        assert open_envelope(full, TENANT).failure == "no_package"
    finally:
        relay_keys.can_encrypt.cache_clear()
