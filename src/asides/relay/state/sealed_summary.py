"""Compacted conversations of Responses clients: a summary sealed into a `compaction` item, and back into a message.

The item is the client's memory of its conversation; it looks like that of the maker of the dialect. An item of ours
goes to no provider, and one that we cannot read goes only to a host that makes such items.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import msgspec

from asides.flows.steps import Flow
from asides.history.summary import make_summary_message
from asides.providers.endpoint import RESPONSES
from asides.providers.provider import Target
from asides.relay.state.envelope import FAILURES, is_envelope, make_envelope, make_reference, open_envelope
from asides.relay.state.relay_keys import TenantKeys
from asides.relay.state.turn_state import PartState, TurnState, encode_state
from asides.relay.state.vault_records import open_turn_record, write_payload
from asides.relay.steps import ReadRecords, StoredRecord
from asides.values.messages import Message, user
from asides.values.notices import Notice
from asides.values.parts import Part, UnknownPart
from asides.wire.lenient import read_part_json

KIND, TRIGGER = "compaction", "compaction_trigger"
# The same item under names that some versions of a client write.
_KINDS = frozenset({KIND, "compaction_summary", "context_compaction"})
UNREADABLE = "compaction_unreadable"
_LOST = "(The earlier part of this conversation was compacted elsewhere. Its summary cannot be read here.)"


class SealedSummary(msgspec.Struct, frozen=True):
    """A summary as an item that the client carries."""

    item: UnknownPart
    record: StoredRecord | None
    """What the store must hold, before the client gets the item."""


class OpenedMessages(msgspec.Struct, frozen=True):
    """Messages with summaries in place of the items that hold them."""

    messages: tuple[Message, ...]
    notices: tuple[Notice, ...] = ()
    is_changed: bool = False


def make_item_id() -> str:
    """Make the id of an item."""
    return f"cmp_{uuid4().hex}"


def seal_summary(summary: str, keys: TenantKeys, item_id: str, *, has_store: bool) -> SealedSummary:
    """Seal a summary. A long one is in the store, and the item refers to it."""
    state = TurnState((PartState(0, "summary", text=summary),))
    reference = make_reference()
    sealed, must_store = make_envelope(state, keys, has_vault=has_store, reference=reference)
    record = None
    if must_store:
        record_id = f"sum_{secrets.token_hex(16)}"
        payload = write_payload(encode_state(state), record_id, keys)
        record = StoredRecord(record_id, (keys.make_lookup_key("ref", reference),), payload)
    document = {"type": KIND, "id": item_id, "encrypted_content": sealed}
    return SealedSummary(UnknownPart(msgspec.json.encode(document).decode()), record)


# --- the way back -----------------------------------------------------------------------------------------------------


def read_item(part: Part) -> dict[str, Any] | None:
    """The item of a compaction, or of a request for one; None for other parts."""
    if not isinstance(part, UnknownPart) or "compaction" not in part.json:
        return None
    document = read_part_json(part.json)
    is_item = isinstance(document, dict) and document.get("type") in (*_KINDS, TRIGGER)
    return document if is_item else None


def split_trigger(messages: tuple[Message, ...]) -> tuple[tuple[Message, ...], bool]:
    """The messages without the last item, if that asks for a compaction; and whether it does."""
    last = messages[-1] if messages else None
    item = read_item(last.parts[-1]) if last is not None and last.parts else None
    if last is None or item is None or item.get("type") != TRIGGER:
        return messages, False
    parts = last.parts[:-1]
    return (*messages[:-1], *([msgspec.structs.replace(last, parts=parts)] if parts else [])), True


def has_foreign_compaction(messages: Sequence[Message]) -> bool:
    """Whether there is a compaction that we cannot read: it is for the provider that made it."""
    found = (read_item(part) for message in messages if message.role == "assistant" for part in message.parts)
    return any(item is not None and item.get("type") in _KINDS for item in found)


def takes_compactions(target: Target) -> bool:
    """Whether a host makes such items itself."""
    return target.dialect == RESPONSES and target.quirks.compacts


def open_summaries(messages: tuple[Message, ...], keys: TenantKeys, *, has_store: bool) -> Flow[OpenedMessages]:
    """Put summaries in place of the items that we sealed. Asks for at most one read."""
    opened: dict[str, TurnState | str] = {}
    for message in messages if any(message.role == "assistant" for message in messages) else ():
        for part in message.parts:
            item = read_item(part)
            sealed = None if item is None else item.get("encrypted_content")
            if isinstance(sealed, str) and is_envelope(sealed):
                found = open_envelope(sealed, keys)
                opened[sealed] = found.state or FAILURES[found.failure or "malformed"]
    if not opened:
        return OpenedMessages(messages)
    references = [state.ref for state in opened.values() if isinstance(state, TurnState) and state.ref]
    stored: dict[str, TurnState] = {}
    if references and has_store:
        keys_of = {key: reference for reference in references for key in keys.list_lookup_keys("ref", reference)}
        records = yield ReadRecords(keys.tenant, tuple(keys_of))
        for record in records or ():
            if (state := open_turn_record(record, keys)) is not None:
                stored |= {keys_of[key]: state for key in record.keys if key in keys_of}
    notices: list[Notice] = []

    def read(item: dict[str, Any]) -> Message | None:
        sealed = item.get("encrypted_content")
        state = opened.get(sealed) if isinstance(sealed, str) else None
        if state is None:
            return None
        why = state if isinstance(state, str) else "the summary of a compacted conversation is no longer stored"
        state = stored.get(state.ref) if isinstance(state, TurnState) and state.ref else state
        parts = state.parts if isinstance(state, TurnState) else ()
        summary = next((part.text for part in parts if part.what == "summary" and part.text), None)
        if summary is not None:
            return make_summary_message(summary)
        notices.append(Notice(UNREADABLE, f"{why}; the model gets a note that it is missing", "input"))
        return user(_LOST)

    return OpenedMessages(_replace_items(messages, read), tuple(dict.fromkeys(notices)), is_changed=True)


def drop_foreign_compactions(messages: tuple[Message, ...], notices: list[Notice]) -> tuple[Message, ...]:
    """The messages for a host that makes no such items: it reads that something is missing."""
    if not has_foreign_compaction(messages):
        return messages
    detail = "only the provider that compacted this conversation can read it; the model gets a note that it is missing"
    notices.append(Notice(UNREADABLE, detail, "input"))
    return _replace_items(messages, lambda item: user(_LOST) if item.get("type") in _KINDS else None)


def _replace_items(
    messages: tuple[Message, ...], read: Callable[[dict[str, Any]], Message | None]
) -> tuple[Message, ...]:
    """The messages with what `read` makes of an item in its place; None leaves it."""
    replaced: list[Message] = []
    for message in messages:
        parts: list[Part] = []
        found = False
        for part in message.parts:
            item = read_item(part) if message.role == "assistant" else None
            new = None if item is None else read(item)
            if new is None:
                parts.append(part)
                continue
            found = True
            replaced += [msgspec.structs.replace(message, parts=tuple(parts))] if parts else []
            replaced.append(new)
            parts = []
        if not found:
            replaced.append(message)
        elif parts:
            replaced.append(msgspec.structs.replace(message, parts=tuple(parts)))
    return tuple(replaced)
