"""The records of the vault: one for each turn of a model, under keys that its content gives.

A turn is what the model said between two messages of others, in however many messages a client gives it back.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec

from asides.history.turns import find_model_runs
from asides.providers.provider import Provider
from asides.relay.state.relay_keys import TenantKeys, can_encrypt
from asides.relay.state.turn_state import (
    PartState,
    TurnState,
    decode_state,
    digest_call,
    digest_text,
    digest_turn,
    encode_state,
    extend_chain,
    find_origin_row,
    find_thoughts_with_text,
    make_call_state,
    make_text_state,
    make_thought_state,
    make_whole_state,
)
from asides.relay.steps import PENDING, StoredRecord, UnconfirmedRecord
from asides.relay.translate.call_ids import can_pass
from asides.values.messages import Message
from asides.values.parts import Commentary, Part, Text, ToolCall
from asides.values.reply import Reply
from asides.values.thinking import Thought

_PLAIN, _ENCRYPTED = b"\0", b"\1"
_KEY_ID_BYTES = 8
HEAD_BYTES = 1 + _KEY_ID_BYTES
"""The bytes of a payload that say which key encrypted it."""
# A shorter text alone says nothing about the conversation that it is from.
_SHORTEST_ALONE = 24


# --- turns ------------------------------------------------------------------------------------------------------------


class Turn(msgspec.Struct, frozen=True):
    """One turn of the model in a history, and the digests by which it is found."""

    start: int
    end: int
    """The messages of the turn are those from `start` to before `end`."""
    parts: tuple[Part, ...]
    text: bytes
    """The digest of its text."""
    calls: tuple[bytes, ...]
    """The digests of its calls."""
    chained: bytes
    """The digest of the whole history up to the end of this turn."""
    near: bytes
    """The digest of this turn and of what was said just before it."""
    alone: bytes
    """The digest of this turn by itself; b"" if it is too short to distinguish conversations."""

    @property
    def call_ids(self) -> tuple[str, ...]:
        """The ids of its calls, as the caller knows them."""
        return tuple([part.id for part in self.parts if isinstance(part, ToolCall)]) if self.calls else ()

    @property
    def is_silent(self) -> bool:
        """Whether it has neither text nor calls."""
        return self.text == _NO_TEXT and not self.calls


_NO_TEXT = digest_text(())


# The turns of a conversation come again with each of its requests.
_MAX_KNOWN_TURNS = 8192


@lru_cache(maxsize=_MAX_KNOWN_TURNS)
def _extend(chain: bytes, before: bytes, text: bytes, calls: tuple[bytes, ...]) -> tuple[bytes, bytes, bytes]:
    """The digests of a turn after all that was said, after the words before it, and alone."""
    seen = digest_turn(text, calls)
    return extend_chain(chain, b"model" + seen), extend_chain(before, seen), seen


class HistoryChain:
    """The digests of a history as it grows: of all that was said so far, and of what was said last."""

    def __init__(self) -> None:
        self._chain = b""
        self._before = b""

    def add(self, message: Message) -> None:
        """Add a message that is not the model's. Results of tools do not count: clients shorten old ones."""
        if message.role == "user":
            parts = message.parts
            text = only.text if len(parts) == 1 and type(only := parts[0]) is Text else message.text
            self._before = digest_text((text,))
            self._chain = extend_chain(self._chain, b"user" + self._before)

    def add_turn(self, start: int, end: int, parts: tuple[Part, ...]) -> Turn:
        """Add a turn of the model."""
        texts = [part.text for part in parts if isinstance(part, Text)]
        calls = tuple([digest_call(part) for part in parts if isinstance(part, ToolCall)])
        text = digest_text(texts)
        self._chain, near, seen = _extend(self._chain, self._before, text, calls)
        says_enough = bool(calls) or sum(map(len, texts)) >= _SHORTEST_ALONE
        # A second turn after the same words of the user follows another turn.
        self._before = near
        return Turn(start, end, parts, text, calls, self._chain, near, seen if says_enough else b"")


def find_turns(messages: Sequence[Message], chain: HistoryChain | None = None) -> Iterator[Turn]:
    """The turns of the model in a history. `chain`: has the digests of the whole history after the last turn."""
    chain = HistoryChain() if chain is None else chain
    place = 0
    for run in find_model_runs(messages):
        for message in messages[place : run.start]:
            chain.add(message)
        place = run.stop
        parts = messages[run.start].parts
        if place - run.start > 1:
            parts = tuple([part for message in messages[run.start : place] for part in message.parts])
        yield chain.add_turn(run.start, place, parts)
    for message in messages[place:]:
        chain.add(message)


def list_levels(turn: Turn, keys: TenantKeys, reference: str = "") -> tuple[frozenset[str], ...]:
    """The keys under which the record of a turn may be, the surest first. Keys of one level are equally sure.

    A turn whose calls have unique ids is found by them, or by its whole history. If neither finds it, its
    record is missing, and one with the same words is that of another conversation.
    """
    return _list_levels(keys, turn.call_ids, turn.chained, turn.near, turn.alone, turn.is_silent, reference)


# The keys of a tenant are its own.
@lru_cache(maxsize=_MAX_KNOWN_TURNS)
def _list_levels(
    keys: TenantKeys,
    call_ids: tuple[str, ...],
    chained: bytes,
    near: bytes,
    alone: bytes,
    is_silent: bool,
    reference: str,
) -> tuple[frozenset[str], ...]:
    has_own_ids = _are_own_ids(call_ids)
    levels = [
        keys.list_lookup_keys("ref", reference) if reference else (),
        [key for call_id in call_ids for key in keys.list_lookup_keys("call", call_id)],
        keys.list_lookup_keys("chained", chained),
        [] if has_own_ids else keys.list_lookup_keys("near", near),
        keys.list_lookup_keys("text", alone) if alone and not has_own_ids else [],
    ]
    if is_silent:
        levels[2:] = []
    return tuple(frozenset(level) for level in levels if level)


def _are_own_ids(call_ids: Sequence[str]) -> bool:
    """Whether there are ids of calls, and each is unique."""
    return bool(call_ids) and all(map(can_pass, call_ids))


# --- records ----------------------------------------------------------------------------------------------------------


def make_turn_record(
    reply: Reply,
    history: Sequence[Message],
    keys: TenantKeys,
    *,
    rows: Sequence[Provider] = (),
    caller_ids: Mapping[str, str] | None = None,
    reference: str = "",
    returns_ids: bool = True,
    asked_ago: float | None = None,
    digest_request: Callable[[], bytes] = bytes,
    chain: HistoryChain | None = None,
) -> StoredRecord | None:
    """The record of a reply; None if there is nothing to keep of it, or it broke off.

    `history` is what the caller sent before it. `caller_ids` are the ids of calls as the caller gets them, by the
    provider's ids. `reference` is the one that envelopes of the reply name. `returns_ids`: whether clients of its
    dialect give the ids of calls back. `asked_ago`: how many seconds ago the request came, if its delivery will be
    confirmed. `digest_request`: a digest of all that a client repeats when it asks again. `chain`: the
    digests of `history`, where they are known.
    """
    if not reply.complete or (not reference and not _is_worth_keeping(reply, rows, caller_ids or {})):
        return None
    state = collect_state(reply, rows, caller_ids or {})
    if chain is None:
        chain = HistoryChain()
        for _ in find_turns(history, chain):
            pass
    turn = chain.add_turn(0, 0, reply.parts)
    call_ids = [part.id for part in state.parts if part.what == "call"]
    found_by = [keys.make_lookup_key("call", call_id) for call_id in call_ids]
    if not turn.is_silent:
        found_by.append(keys.make_lookup_key("chained", turn.chained))
        found_by.append(keys.make_lookup_key("near", turn.near))
        if turn.alone:
            found_by.append(keys.make_lookup_key("text", turn.alone))
    if reference:
        found_by.append(keys.make_lookup_key("ref", reference))
    if not found_by:
        return None
    if asked_ago is not None and not turn.is_silent and not (returns_ids and _are_own_ids(call_ids)):
        # A second attempt has the same words, and so may another conversation, whose request is hardly the same.
        found_by.append(PENDING + keys.make_lookup_key("pending", turn.chained + digest_request()))
    record_id = f"turn_{secrets.token_hex(16)}"
    payload = write_payload(encode_state(state), record_id, keys)
    return StoredRecord(record_id, tuple(dict.fromkeys(found_by)), payload, asked_ago or 0.0)


def collect_state(reply: Reply, rows: Sequence[Provider], caller_ids: Mapping[str, str]) -> TurnState:
    """The state of a whole reply: every text and call by its digest, every thought that can go back."""
    with_text = find_thoughts_with_text(reply.parts, rows, has_calls=bool(reply.tool_calls))
    parts: list[PartState] = []
    for place, part in enumerate(reply.parts):
        match part:
            case Text():
                parts.append(make_text_state(part, place, reply.origin))
            case Commentary():
                # Clients of most dialects never see it, so none of them can send it back.
                parts.append(make_whole_state(part, place))
            case ToolCall():
                parts.append(make_call_state(part, place, reply.origin, caller_ids.get(part.id, "")))
            case Thought() if part.can_replay:
                needs_text = place in with_text
                parts.append(make_thought_state(part, place, needs_text=needs_text, keeps_text=True, is_stored=True))
            case _:
                pass
    stored = reply.id if reply.stored and reply.id else ""
    text = digest_text(part.text for part in reply.parts if isinstance(part, Text))
    return TurnState(tuple(parts), reply.origin, reply.prefix, reply.learned, reply.effort, stored, text)


def _is_worth_keeping(reply: Reply, rows: Sequence[Provider], caller_ids: Mapping[str, str]) -> bool:
    """Whether a later request may put something of it back."""
    if reply.prefix or reply.learned:
        return True
    has_thought = False
    for part in reply.parts:
        match part:
            case Thought() if part.can_replay:
                has_thought = True
            case ToolCall() if caller_ids.get(part.id, part.id) != part.id:
                return True
            case Text() | Commentary() | ToolCall():
                pass
            case _:
                continue
        if part.seals:
            return True
    return has_thought and not _takes_no_thinking(reply, rows)


def _takes_no_thinking(reply: Reply, rows: Sequence[Provider]) -> bool:
    """Whether the provider that made a reply never takes thinking back."""
    row = find_origin_row(reply.origin, rows)
    return row is not None and reply.origin is not None and row.replay_rule(reply.origin.model).when == "never"


def open_turn_record(record: StoredRecord, keys: TenantKeys) -> TurnState | None:
    """The state in a record; None if it cannot be read."""
    data = read_payload(record, keys)
    return None if data is None else decode_state(data)


class FoundStates:
    """The states of the records that were read."""

    def __init__(self, records: Sequence[StoredRecord], keys: TenantKeys) -> None:
        self.by_key: dict[str, list[TurnState]] = {}
        self._keys = keys
        self._pending: dict[int, StoredRecord] = {}
        """Unconfirmed records, by the ids of their states in memory."""
        for record in records:
            if (state := open_turn_record(record, keys)) is not None:
                for key in record.keys:
                    self.by_key.setdefault(key, []).append(state)
                if record.pending:
                    self._pending[id(state)] = record

    def list_unconfirmed(self, state: TurnState, turn: Turn) -> list[UnconfirmedRecord]:
        """The record of a state, if it is still unconfirmed and the turn shows that its reply was delivered."""
        record = self._pending.get(id(state))
        if record is None or set(record.keys).isdisjoint(self._keys.list_lookup_keys("chained", turn.chained)):
            return []
        return [UnconfirmedRecord(self._keys.tenant, record.id, record.pending)]


# --- payloads ---------------------------------------------------------------------------------------------------------


def write_payload(data: bytes, record_id: str, keys: TenantKeys) -> bytes:
    """Encrypt the content of a record, bound to its id. Without `cryptography` it stays as it is: for memory alone."""
    if not can_encrypt():
        return _PLAIN + data
    return _ENCRYPTED + keys.current_id.encode() + keys.encrypt(data, "record", record_id.encode())


def read_payload(record: StoredRecord, keys: TenantKeys) -> bytes | None:
    """The content of a record; None if it was changed, or encrypted with a key that is not there."""
    kind, rest = record.payload[:1], record.payload[1:]
    if kind == _PLAIN:
        # A store on disk never holds plain records: write access to it must not be enough to inject one.
        return None if can_encrypt() else rest
    if kind != _ENCRYPTED or not can_encrypt():
        return None
    data = rest[_KEY_ID_BYTES:]
    return keys.decrypt(data, read_key_id(record.payload), "record", record.id.encode("utf-8", "replace"))


def read_key_id(payload: bytes) -> str:
    """The id of the key that encrypted a payload, from its first bytes; "" if it is not encrypted."""
    return payload[1:HEAD_BYTES].decode("ascii", "replace") if payload[:1] == _ENCRYPTED else ""
