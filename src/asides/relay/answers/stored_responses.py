"""Replies that the relay stores itself, since their provider cannot: `previous_response_id`, and `responses/{id}`; for
Interactions `previous_interaction_id`, and `interactions/{id}`.

Each record holds what one request added and the ids of the responses before it.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from asides.dialects import find_dialect, find_facts
from asides.dialects.dialect import ServedRequest, Writer
from asides.flows.steps import Emit, Flow, Now
from asides.providers.endpoint import RESPONSES
from asides.relay.error_response import RelayRefusal
from asides.relay.forward import forward_to_host
from asides.relay.relay_config import Caller
from asides.relay.relay_request import RelayOutcome
from asides.relay.state.caller_state import CallerState
from asides.relay.state.relay_keys import TenantKeys
from asides.relay.state.response_owners import forget_owner, read_owner
from asides.relay.state.turn_state import is_opaque
from asides.relay.state.vault_records import read_payload, write_payload
from asides.relay.steps import DeleteRecords, ReadRecords, StoredRecord
from asides.values.events import ReplyStarted
from asides.values.fold import simulate
from asides.values.messages import Message
from asides.values.parts import Commentary, Part, Text, ToolCall
from asides.values.reply import Reply
from asides.values.thinking import Thought
from asides.values.visibility import Sink, Visibility

_MOST_ITEMS = 100
_USUAL_ITEMS = 20


MOST_BACKGROUND_SECONDS = 3600.0
"""How long a response may run in the background. If it is still missing then, its gateway was lost."""

BackgroundStatus = Literal["completed", "in_progress", "cancelled", "failed"]
# Of several records of one response the first of these counts.
_STATUSES: tuple[BackgroundStatus, ...] = ("cancelled", "completed", "failed", "in_progress")


class StoredResponseRecord(msgspec.Struct, frozen=True):
    """What is stored of one response."""

    id: str
    ancestors: tuple[str, ...]
    """The ids of the responses before it, the first one first."""
    input: tuple[Message, ...]
    """What its request added."""
    output: Message | None
    items: list[Any]
    """The items of its request, for `input_items`."""
    document: msgspec.Raw
    """The response as the caller got it."""
    status: BackgroundStatus = "completed"
    """Others: it runs in the background, or ended there without a reply."""
    began: float = 0.0
    """When it began in the background, in seconds since 1970."""
    dialect: str = RESPONSES
    """The dialect of its document."""


# --- continuing -------------------------------------------------------------------------------------------------------


def read_previous(keys: TenantKeys, response_id: str) -> Flow[tuple[StoredResponseRecord, ...] | None]:
    """The records of a response and of all before it, in order; None if one of them is not there."""
    last = yield from _read(keys, response_id)
    if last is None:
        return None
    if last.output is None and last.status != "completed":
        raise RelayRefusal(
            f"Previous response with id '{response_id[:100]}' is {last.status}: only a completed one can be continued.",
            param="previous_response_id",
        )
    if not last.ancestors:
        return (last,)
    wanted = [key for ancestor in last.ancestors for key in _list_keys(keys, ancestor)]
    found = yield ReadRecords(keys.tenant, tuple(wanted))
    records = {record.id: record for each in found or () if (record := _open(each, keys)) is not None}
    if not records.keys() >= set(last.ancestors):
        return None
    return (*(records[ancestor] for ancestor in last.ancestors), last)


def join_messages(records: Sequence[StoredResponseRecord]) -> tuple[Message, ...]:
    """The conversation of these records."""
    messages: list[Message] = []
    for record in records:
        messages += record.input
        messages += [] if record.output is None else [record.output]
    return tuple(messages)


def refuse_previous(response_id: str, dialect: str) -> RelayRefusal:
    """The error of a previous reply that is not there, in the words of the dialect's maker (2026-11)."""
    facts = find_facts(dialect)
    return RelayRefusal(
        facts.unknown_previous.format(id=response_id[:100]),
        code="previous_response_not_found",
        param=facts.previous_field or "previous_response_id",
    )


def refuse_conversation(conversation: str) -> RelayRefusal:
    """The error of a conversation that is not there, or not the caller's own."""
    return RelayRefusal(
        f"Conversation with id '{conversation[:100]}' not found.",
        status=404,
        code="conversation_not_found",
        param="conversation",
    )


# --- storing ----------------------------------------------------------------------------------------------------------


def can_store(caller: Caller, state: CallerState) -> bool:
    """Whether the response of a translated request will be stored. A conversation that its provider has stored so far
    is stored there.
    """
    return (
        bool(find_facts(caller.dialect).stored_as)
        and caller.config.stores_responses
        and state.has_store
        and state.wants_storing
        and not state.has_unknown_previous
    )


def store_response(
    caller: Caller,
    state: CallerState,
    served: ServedRequest,
    reply: Reply,
    writer: Writer,
    ids: Mapping[str, str],
    *,
    visibility: Visibility,
) -> Flow[None]:
    """Store a translated response for `previous_response_id`. `ids`: by the caller's id of a call, the provider's.
    `visibility`: what the caller saw of its thinking; later it sees no more.
    """
    if not can_store(caller, state):
        return
    if is_background := bool(caller.request.background_id):
        extra = {**served.prompt.extra, "background": True}
        served = msgspec.structs.replace(served, prompt=msgspec.structs.replace(served.prompt, extra=extra))
    given = {own: mine for mine, own in ids.items()}
    parts = tuple(
        msgspec.structs.replace(part, id=given.get(part.id, part.id)) if isinstance(part, ToolCall) else part
        for part in reply.parts
    )
    reply = msgspec.structs.replace(reply, parts=parts)
    response_id = str(getattr(writer, "reply_id", "") or reply.id or "")
    record = StoredResponseRecord(
        response_id,
        state.ancestors,
        state.history[state.stored_count :],
        reply.to_message(),
        list_input_items(caller.request.body, response_id) if caller.dialect == RESPONSES else [],
        msgspec.Raw(
            _write_document(
                caller.dialect,
                served,
                _select_visible(reply, visibility, caller.config.sink),
                response_id,
                getattr(writer, "created", 0),
            )
        ),
        began=(caller.now or 1.0) if is_background else 0.0,
        dialect=caller.dialect,
    )
    yield from state.write(make_record(state.keys, record))


def make_record(keys: TenantKeys, record: StoredResponseRecord) -> StoredRecord:
    """The record of a response as a store keeps it."""
    record_id = f"resp_{secrets.token_hex(16)}"
    payload = write_payload(msgspec.json.encode(record), record_id, keys)
    return StoredRecord(record_id, (_make_key(keys, record.id),), payload)


def _select_visible(reply: Reply, visibility: Visibility, sink: Sink) -> Reply:
    """The reply as a caller may see it: with readable thinking, without the provider's tokens."""
    parts: list[Part] = []
    for part in reply.parts:
        if isinstance(part, Thought) and not (part.text and visibility.allows(sink, part.kind)):
            continue
        if part.seals:
            # A thought's open seals hold its words once more.
            open_seals = [] if isinstance(part, Thought) else [seal for seal in part.seals if not is_opaque(seal)]
            part = msgspec.structs.replace(part, seals=tuple(open_seals))
        parts.append(part)
    return msgspec.structs.replace(reply, parts=tuple(parts))


def _write_document(dialect: str, served: ServedRequest, reply: Reply, response_id: str, created: int) -> bytes:
    writer: Any = find_dialect(dialect).writer(model=served.model, stream=False)
    writer.created = created
    if hasattr(writer, "serve"):
        writer.serve(served, {}, foreign=False)
    # A text without words only carries a seal.
    parts = tuple(part for part in reply.parts if not isinstance(part, (Text, Commentary)) or part.text)
    events = simulate(msgspec.structs.replace(reply, parts=parts), max(len(reply.text), 1))
    started = ReplyStarted(served.model, response_id, None, stored=True)
    document: bytes = writer.write([started, *events[1:]])
    return document


def list_input_items(body: bytes, response_id: str) -> list[Any]:
    """The items of a request, each with an id."""
    try:
        given = msgspec.json.decode(body).get("input")
    except (msgspec.DecodeError, AttributeError, UnicodeDecodeError, RecursionError):
        return []
    if isinstance(given, str):
        given = [{"role": "user", "content": [{"type": "input_text", "text": given}]}]
    items = [item for item in given if isinstance(item, dict)] if isinstance(given, list) else []
    return [
        {"type": "message", "id": f"item_{response_id.removeprefix('resp_')}_{number}", **_drop_unset(item)}
        for number, item in enumerate(items)
    ]


def _drop_unset(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if not (name in ("id", "type") and value is None)}


# --- records ------------------------------------------------------------------------------------------------------


def _make_key(keys: TenantKeys, response_id: str) -> str:
    return keys.make_lookup_key("resp", f"response:{response_id}")


def _list_keys(keys: TenantKeys, response_id: str) -> tuple[str, ...]:
    return keys.list_lookup_keys("resp", f"response:{response_id}")


def _read(keys: TenantKeys, response_id: str) -> Flow[StoredResponseRecord | None]:
    found = yield ReadRecords(keys.tenant, _list_keys(keys, response_id))
    opened = [_open(record, keys) for record in found or ()]
    ours = [record for record in opened if record is not None and record.id == response_id]
    return min(ours, key=lambda record: _STATUSES.index(record.status), default=None)


def _open(record: StoredRecord, keys: TenantKeys) -> StoredResponseRecord | None:
    data = read_payload(record, keys)
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=StoredResponseRecord)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


# --- endpoints ----------------------------------------------------------------------------------------------------


def answer_stored(caller: Caller) -> Flow[RelayOutcome]:
    """Answer a request about a stored response. One that is not ours may be at the home provider."""
    response_id, action = caller.endpoint.names["response"], caller.endpoint.action
    state = CallerState(caller)
    record = (yield from _read(state.keys, response_id)) if state.has_store else None
    if record is None or record.dialect != caller.dialect:
        return (yield from _ask_provider(caller, state, response_id))
    document: Any = record.document
    match action:
        case "delete_response":
            yield DeleteRecords(state.keys.tenant, _list_keys(state.keys, response_id))
            is_response = caller.dialect == RESPONSES
            document = {"id": response_id, "object": "response", "deleted": True} if is_response else {}
        case "cancel_response":
            if not record.began:
                name = _name_kind(caller)
                raise RelayRefusal(f"Cannot cancel a synchronous {name}.", param=f"{name}_id")
            if record.status == "in_progress":
                document = {**msgspec.json.decode(record.document), "status": "cancelled"}
                ended = msgspec.structs.replace(
                    record, status="cancelled", document=msgspec.Raw(msgspec.json.encode(document))
                )
                yield from state.write(make_record(state.keys, ended))
        case "list_input":
            document = _list_page(record.items, caller.endpoint.query)
        case _:
            if record.status == "in_progress" and (yield Now()) > record.began + MOST_BACKGROUND_SECONDS:
                error = {"code": "server_error", "message": "the gateway ended before the response was complete"}
                document = {**msgspec.json.decode(record.document), "status": "failed", "error": error}
    yield Emit([*caller.start(200, {"content-type": "application/json"}), msgspec.json.encode(document)])
    return RelayOutcome(200, "own", "the relay stored this response")


def _ask_provider(caller: Caller, state: CallerState, response_id: str) -> Flow[RelayOutcome]:
    """Ask the provider that stores a response. A tenant reaches those alone that are its own."""
    owner = (yield from read_owner(state.keys, response_id)) if state.has_store else None
    forwarded = None
    if owner is not None or not caller.request.tenant:
        forwarded = forward_to_host(caller, "" if owner is None else owner.provider)
    if forwarded is None:
        raise RelayRefusal(f"{_name_kind(caller).capitalize()} with id '{response_id[:100]}' not found.", status=404)
    outcome = yield from forwarded
    if owner is not None and caller.endpoint.action == "delete_response" and outcome.status < 300:
        yield from forget_owner(state.keys, response_id)
    return outcome


def _name_kind(caller: Caller) -> str:
    return find_facts(caller.dialect).stored_as


def _list_page(items: list[Any], query: Mapping[str, str]) -> dict[str, Any]:
    ordered = items if query.get("order") == "asc" else items[::-1]
    names = [item.get("id") for item in ordered]
    after, limit = query.get("after"), query.get("limit", "")
    start = names.index(after) + 1 if after in names else 0
    size = min(max(int(limit), 1), _MOST_ITEMS) if limit.isdecimal() and len(limit) < 6 else _USUAL_ITEMS
    page = ordered[start : start + size]
    ends = (
        {"first_id": page[0].get("id"), "last_id": page[-1].get("id")} if page else {"first_id": None, "last_id": None}
    )
    return {"object": "list", "data": page, **ends, "has_more": start + size < len(ordered)}
