"""Envelopes: the state of a turn as a text that clients carry in an opaque field and give back.

    asd1.<key id>.<base64url(nonce ‖ AES-GCM(state))>      bound to the tenant
    asd1.ref.<base64url(reference ‖ its HMAC)>             where nothing can be encrypted: the state is in the vault

Some fields hold bytes; there the whole text is base64 once more. Nothing here raises for what a client sends.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from typing import Literal

import msgspec

from asides.relay.state.relay_keys import TenantKeys, can_encrypt
from asides.relay.state.turn_state import TurnState, decode_state, encode_state
from asides.values.thinking import ENVELOPES

# "asd1.", and its beginning in base64, which both alphabets spell alike.
PREFIX, _PREFIX_IN_BASE64 = ENVELOPES
MOST_CHARACTERS = 16 * 1024
"""A longer envelope becomes a reference into the vault, where there is one."""

_REFERENCE = "ref"
_REFERENCE_BYTES = 16
_TO_STANDARD = str.maketrans("-_", "+/")

Failure = Literal["malformed", "unknown_key", "no_package", "not_ours", "off"]
FAILURES: dict[Failure, str] = {
    "malformed": "an envelope with reasoning state is damaged",
    "unknown_key": "an envelope with reasoning state was made with a key that is not known here",
    "no_package": "an envelope with reasoning state cannot be opened without the package cryptography",
    "not_ours": "an envelope with reasoning state was changed, or made for another tenant",
    "off": "an envelope with reasoning state was not used, since none is kept here",
}


class OpenedEnvelope(msgspec.Struct, frozen=True):
    """A state, or the reason why there is none."""

    state: TurnState | None = None
    failure: Failure | None = None


def make_envelope(state: TurnState, keys: TenantKeys, *, has_vault: bool, reference: str) -> tuple[str, bool]:
    """Make an envelope. Returns it, and whether the vault must hold the state, under this reference."""
    if not can_encrypt():
        return _make_plain_reference(reference, keys), True
    sealed = _seal(encode_state(state), keys)
    if len(sealed) <= MOST_CHARACTERS or not has_vault:
        return sealed, False
    return _seal(encode_state(TurnState(ref=reference)), keys), True


def make_reference() -> str:
    """Make a reference unlike any other."""
    return secrets.token_bytes(_REFERENCE_BYTES).hex()


def open_envelope(text: str, keys: TenantKeys) -> OpenedEnvelope:
    """Open an envelope. Of several in a row the last one counts: it replaced the earlier ones."""
    if text.startswith(_PREFIX_IN_BASE64):
        unwrapped = _unwrap(text)
        if unwrapped is None:
            return OpenedEnvelope(failure="malformed")
        text = unwrapped
    key_id, dot, data = text.rpartition(PREFIX)[2].partition(".")
    raw = _decode(data) if dot and text.startswith(PREFIX) else None
    if raw is None:
        return OpenedEnvelope(failure="malformed")
    if key_id == _REFERENCE:
        return _open_plain_reference(raw, keys)
    if not keys.has_key(key_id):
        return OpenedEnvelope(failure="unknown_key")
    if not can_encrypt():
        return OpenedEnvelope(failure="no_package")
    opened = keys.decrypt(raw, key_id, "envelope", PREFIX.encode())
    if opened is None:
        return OpenedEnvelope(failure="not_ours")
    state = decode_state(opened)
    return OpenedEnvelope(state, None if state is not None else "malformed")


def is_envelope(value: object) -> bool:
    """Whether the value of an opaque field is an envelope, or was one before it was damaged."""
    if not isinstance(value, str):
        return False
    # Tokens of providers do not contain this word, so it may follow a blank or another token.
    return PREFIX in value or (value.startswith(_PREFIX_IN_BASE64) and _unwrap(value) is not None)


def may_hold_envelope(body: bytes) -> bool:
    """Whether a request may hold an envelope; a quick check, which a text with the same beginning passes too."""
    return PREFIX.encode() in body or _PREFIX_IN_BASE64.encode() in body


def wrap_in_base64(envelope: str) -> str:
    """The envelope for a field that holds bytes."""
    return b64encode(envelope.encode()).decode()


def _unwrap(text: str) -> str | None:
    standard = text.translate(_TO_STANDARD).rstrip("=")
    try:
        data = b64decode(standard + "=" * (-len(standard) % 4), validate=True)
        inner = data.decode("ascii")
    except (NotBase64, ValueError):
        return None
    is_same = b64encode(data).decode().rstrip("=") == standard
    return inner if is_same and inner.startswith(PREFIX) else None


def _seal(data: bytes, keys: TenantKeys) -> str:
    encrypted = keys.encrypt(data, "envelope", PREFIX.encode())
    return f"{PREFIX}{keys.current_id}.{_encode(encrypted)}"


def _encode(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes | None:
    """The bytes; None if the text is not exactly what `_encode` writes for them."""
    if not text.isascii():
        return None
    try:
        data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (NotBase64, ValueError):
        return None
    return data if _encode(data) == text else None


# --- references without encryption ------------------------------------------------------------------------------------


def _make_plain_reference(reference: str, keys: TenantKeys) -> str:
    raw = bytes.fromhex(reference)
    tag = bytes.fromhex(keys.make_lookup_key("ref", b"tag" + raw))
    return f"{PREFIX}{_REFERENCE}.{_encode(raw + tag)}"


def _open_plain_reference(raw: bytes, keys: TenantKeys) -> OpenedEnvelope:
    reference, tag = raw[:_REFERENCE_BYTES], raw[_REFERENCE_BYTES:]
    expected = keys.list_lookup_keys("ref", b"tag" + reference)
    if any(hmac.compare_digest(bytes.fromhex(each), tag) for each in expected):
        return OpenedEnvelope(TurnState(ref=reference.hex()))
    return OpenedEnvelope(failure="not_ours")
