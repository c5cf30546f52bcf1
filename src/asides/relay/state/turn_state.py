"""The state of one turn of a model that its provider wants back (`TurnState`), and the digests by which its parts are
recognised.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from asides.dialects.message_encoder import STAND_IN
from asides.history.redact import redact, redact_thought
from asides.providers.find import find_row
from asides.providers.provider import Provider
from asides.values.learned import Learned
from asides.values.messages import Message
from asides.values.parts import Commentary, Part, ServerTool, Text, ToolCall, UnknownPart
from asides.values.thinking import Effort, Origin, Seal, Thought, ThoughtKind, ThoughtSource

StateMode = Literal["off", "carry-only", "memory", "store"]
"""off: nothing is kept. carry-only: state travels with the client. memory, store: what cannot travel is stored."""
HAS_STORE: tuple[StateMode, ...] = ("memory", "store")
StateSource = Literal["vault", "envelope", ""]
"""Where the state of an earlier turn was; "": it was not found."""

_DIGEST_BYTES = 16


class PartState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept of one part: no text of the answer, and no arguments of a call."""

    block: int
    """Its place among the parts of the turn."""
    what: Literal["thought", "text", "call", "whole", "summary"]
    seals: tuple[Seal, ...] = ()
    digest: bytes = b""
    size: int = 0
    """The number of characters of a text. For a thought: how many characters of the answer were before it."""
    id: str = ""
    """For a call: its id as the caller knows it."""
    own_id: str = ""
    """For a call: its id at the provider, where that is another one."""
    custom: bool = False
    """For a call: its arguments are free text."""
    text: str | None = None
    """For a thought: its text, where the provider wants it back and the caller may not return it. For a summary of a
    conversation: the summary."""
    needs_text: bool = False
    """For a thought: the provider does not take it back without its text."""
    kind: ThoughtKind = "raw"
    source: ThoughtSource = "field"
    via: str | None = None
    whole: ServerTool | UnknownPart | Commentary | None = None
    """A part that callers cannot show, where they carry it whole, as front ends do; or where a record has it whole."""

    def __repr__(self) -> str:
        return f"PartState({self.what}, block={self.block}, seals={len(self.seals)})"


class RestoredTurn(msgspec.Struct, frozen=True):
    """An earlier turn whose state was looked for."""

    message: int
    """Its place among the messages of the restored prompt."""
    source: StateSource

    @property
    def is_found(self) -> bool:
        """Whether its state was put back."""
        return self.source != ""


def place_turns(looked: Iterable[tuple[int, StateSource, int]]) -> tuple[RestoredTurn, ...]:
    """The turns at their places in the restored prompt. Each is given with its place in the caller's, where its state
    was, and how many messages it became fewer.
    """
    turns: list[RestoredTurn] = []
    fewer = 0
    for start, source, less in looked:
        turns.append(RestoredTurn(start - fewer, source))
        fewer += less
    return tuple(turns)


class TurnState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of a turn, or of a part of it."""

    parts: tuple[PartState, ...] = ()
    origin: Origin | None = None
    prefix: str = ""
    learned: tuple[Learned, ...] = ()
    effort: Effort | None = None
    stored: str = ""
    """The id under which the provider has stored the turn."""
    text: bytes = b""
    """The digest of its whole text, in a record."""
    ref: str = ""
    """The state is in the vault, under this reference."""
    more: bool = False
    """The vault may know more about the turn."""

    def __repr__(self) -> str:
        return f"TurnState({len(self.parts)} parts)"


_encoder = msgspec.msgpack.Encoder(enc_hook=repr)
_decoder = msgspec.msgpack.Decoder(TurnState)
_UNWRITABLE = (UnicodeEncodeError, OverflowError)
"""Half a character, or an integer of more than 64 bits, neither of which a provider sends in a seal."""


def encode_state(state: TurnState) -> bytes:
    """Encode a state."""
    try:
        return _encoder.encode(state)
    except _UNWRITABLE:
        parts = tuple(part for part in state.parts if _can_be_written(part))
        return _encoder.encode(msgspec.structs.replace(state, parts=parts))


def decode_state(data: bytes) -> TurnState | None:
    """Decode a state; None if it is not one."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _can_be_written(part: PartState) -> bool:
    try:
        _encoder.encode(part)
    except _UNWRITABLE:
        return False
    return True


DETAILS = "reasoning_details"
"""The kind of seal, or its prefix, of thoughts whose details are all sent back."""


# --- parts ------------------------------------------------------------------------------------------------------------


def make_thought_state(
    thought: Thought, block: int, *, needs_text: bool, keeps_text: bool, is_stored: bool = False, before: int = 0
) -> PartState:
    """The state of a thought, `before` characters of the answer ahead of it. Its text is in it only if it is needed and
    `keeps_text`. If `is_stored`, text inside of its seals is not in it either, where the thought works without.
    """
    seals = thought.seals
    if is_stored and not needs_text:
        seals = redact_thought(thought).seals
    return PartState(
        block,
        "thought",
        _drop_origins(seals, thought.origin),
        digest_thought(thought.text),
        before,
        text=thought.text if needs_text and keeps_text else None,
        needs_text=needs_text,
        kind=thought.kind,
        source=thought.source,
        via=thought.via,
    )


def make_call_state(call: ToolCall, block: int, origin: Origin | None, caller_id: str = "") -> PartState:
    """The state of a call. `caller_id` is its id as the caller knows it, where that is another one."""
    shown = caller_id or call.id
    own_id = call.id if shown != call.id else ""
    seals = _drop_origins(call.seals, origin)
    return PartState(block, "call", seals, digest_call(call), id=shown, own_id=own_id, custom=call.custom)


def make_text_state(text: Text, block: int, origin: Origin | None) -> PartState:
    """The state of a text."""
    return PartState(block, "text", _drop_origins(text.seals, origin), digest_text((text.text,)), len(text.text))


def make_whole_state(part: ServerTool | UnknownPart | Commentary, block: int) -> PartState:
    """The state of a part that is carried whole."""
    return PartState(block, "whole", whole=part)


def is_opaque(seal: Seal) -> bool:
    """Whether a seal must be sent back unchanged. One without a value is open, except that of all details of a thought
    none may be missing.
    """
    return bool(seal.value) or seal.kind.startswith(DETAILS)


# The two words that Gemini documents, plain and as base64: ai.google.dev gemini-api/docs/thought-signatures (2026-11).
_WORDS = (STAND_IN, "context_engineering_is_the_way_to_go")
_STAND_INS = frozenset({*_WORDS, *(b64encode(word.encode()).decode().rstrip("=") for word in _WORDS)})


def is_stand_in(seal: Seal) -> bool:
    """Whether a client wrote a placeholder where it has no seal: Gemini CLI does that when it resumes a session."""
    return seal.value.rstrip("=") in _STAND_INS


def restore_seals(seals: Sequence[Seal], origin: Origin | None) -> tuple[Seal, ...]:
    """The seals with the origin that they have in common."""
    return tuple(seal if seal.origin else msgspec.structs.replace(seal, origin=origin) for seal in seals)


def _drop_origins(seals: Iterable[Seal], origin: Origin | None) -> tuple[Seal, ...]:
    return tuple(msgspec.structs.replace(seal, origin=None) if seal.origin == origin else seal for seal in seals)


# --- what a provider wants back -----------------------------------------------------------------------------------


def find_origin_row(origin: Origin | None, rows: Sequence[Provider]) -> Provider | None:
    """The row of the provider that made a turn; None if it is not known."""
    return None if origin is None else find_row(origin.provider, rows)


def find_thoughts_with_text(
    parts: Sequence[Part], rows: Sequence[Provider] = (), *, has_calls: bool = True
) -> frozenset[int]:
    """The places of the thoughts that their provider takes back, and only with their text. `has_calls`: the turn may
    call tools; some take thinking back only then.
    """
    thoughts = {place: part for place, part in enumerate(parts) if isinstance(part, Thought)}
    taken = [place for place, thought in thoughts.items() if thought.text and _takes_text(thought, rows, has_calls)]
    if not taken:
        return frozenset()
    # A saved conversation has the same question: it marks each thought that is lost without its text.
    if len(thoughts) == 1:
        return frozenset(taken) if redact_thought(thoughts[taken[0]]).withheld else frozenset()
    (bare,) = redact((Message("assistant", tuple(thoughts.values())),), rows=rows)
    left = dict(zip(thoughts, bare.parts, strict=True))
    return frozenset(place for place in taken if isinstance(part := left[place], Thought) and part.withheld)


def _takes_text(thought: Thought, rows: Sequence[Provider], has_calls: bool) -> bool:
    row = find_origin_row(thought.origin, rows)
    if row is None or thought.origin is None:
        return bool(thought.seals)
    match row.replay_rule(thought.origin.model).when:
        case "never":
            return False
        case "all":
            return True
        case "sealed":
            return any(seal.value for seal in thought.seals)
        case "tool_turns" | "since_last_user":
            return has_calls


# --- digests ----------------------------------------------------------------------------------------------------------


def digest_thought(text: str) -> bytes:
    """The digest of a thought, to the last blank: seals are made over it."""
    return _digest(text.encode("utf-8", "surrogatepass"))


def digest_text(texts: Iterable[str]) -> bytes:
    """The digest of an answer. Clients strip blanks from its ends, and join its blocks."""
    return _digest("".join(texts).strip().encode("utf-8", "surrogatepass"))


def digest_call(call: ToolCall) -> bytes:
    """The digest of a call without its id: its name and its arguments, in whatever order and spelling of numbers."""
    if call.raw_arguments is not None:
        arguments = call.raw_arguments.strip().encode("utf-8", "surrogatepass")
    else:
        arguments = _encode_sorted(_unify_numbers(call.arguments))
    return _digest(call.name.encode("utf-8", "surrogatepass") + b"\0" + arguments)


def digest_turn(text: bytes, calls: Iterable[bytes]) -> bytes:
    """The digest of what a caller sees of a turn: of the digests of its text and of its calls."""
    return _digest(text + b"".join(calls))


def extend_chain(chain: bytes, said: bytes) -> bytes:
    """The digest of everything before, and of what was said next."""
    return _digest(chain + said)


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST_BYTES).digest()


def _encode_sorted(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value, order="sorted")
    except (TypeError, ValueError, OverflowError, RecursionError):
        return json.dumps(value, sort_keys=True, default=repr).encode()


def _unify_numbers(value: Any) -> Any:
    """Write 1.0 as 1, as clients in JavaScript do."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, dict):
        return {name: _unify_numbers(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_unify_numbers(item) for item in value]
    return value
