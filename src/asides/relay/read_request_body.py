"""Read the body of a request for a reply; of one that our reader refuses, what decides where it goes (`read_shallow`).

A request that is forwarded need not be understood: its provider may know more than we do.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

import msgspec

from asides.dialects import find_facts
from asides.dialects.dialect import ServedRequest
from asides.relay.endpoints import ReadRequest
from asides.relay.error_response import MALFORMED, RelayRefusal, refuse_malformed
from asides.relay.relay_config import Caller
from asides.relay.routes import refuse_unnamed
from asides.relay.splice_body import find_members
from asides.values.errors import ConfigError
from asides.values.messages import Prompt, ProviderState

_MODEL_IN_PATH = re.compile(r"/models?/(.+?)(?::\w+|/converse(?:-stream)?)$")
_STREAMS = (":streamGenerateContent", "/converse-stream")

_HISTORIES = frozenset({"messages", "contents", "input"})
MAX_MESSAGES = 20_000
MAX_OBJECTS = 100_000
"""Objects and lists of a body. Planning takes up to 80 µs for a message (2026-11-19)."""
MAX_VALUES = 400_000
"""Members and items of a body, with its objects and lists. Up to 10 µs each (2026-11-19); a request for embeddings has
up to 300,000 tokens."""


def refuse_many(body: bytes) -> None:
    """Raise RelayRefusal for more messages, or values, than a caller may let us plan. Parses only large bodies."""
    if (opened := body.count(b"{") + body.count(b"[")) > MAX_MESSAGES:
        refuse_messages(_count_messages(body))
    if opened > MAX_OBJECTS or opened + body.count(b",") > MAX_VALUES:
        # Most are in texts.
        objects, values = _count_values(body)
        if objects > MAX_OBJECTS:
            raise _refuse(f"{MAX_OBJECTS} objects and lists")
        if values > MAX_VALUES:
            raise _refuse(f"{MAX_VALUES} fields and values")


def _refuse(what: str) -> RelayRefusal:
    return RelayRefusal(f"the request has more than {what}. Send fewer parts, tools or fields.", status=413)


def _count_values(body: bytes) -> tuple[int, int]:
    """The objects and lists of a body, and all its values. Not with a pattern, which would stop all other threads."""
    bare = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    # A value and its name have four.
    if (quotes := bare.count(b'"')) > 4 * MAX_VALUES:
        return 0, quotes // 4
    outside = b"".join(bare.split(b'"')[::2])
    objects = outside.count(b"{") + outside.count(b"[")
    return objects, objects + outside.count(b",")


def _count_messages(body: bytes) -> int:
    """The messages of a request; 0 if its reader has to say what is wrong."""
    count = 0
    try:
        members = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        for name in _HISTORIES & members.keys():
            if bytes(members[name]).startswith(b"["):
                count = max(count, len(msgspec.json.decode(members[name], type=list[msgspec.Raw])))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    return count


def refuse_messages(count: int) -> None:
    """Raise RelayRefusal for more messages than a caller may let us plan."""
    if count > MAX_MESSAGES:
        raise RelayRefusal(
            f"the conversation has {count} messages, and this relay takes {MAX_MESSAGES}. Leave the oldest out, or sum "
            "them up.",
            status=413,
        )


def read_request(read: ReadRequest, caller: Caller) -> tuple[ServedRequest | None, ConfigError | None]:
    """The request, or the reason why it cannot be read. One that is forwarded need not be."""
    try:
        return read(caller.request.body, caller.endpoint.path), None
    except ConfigError as problem:
        if find_members(caller.request.body) is None:
            raise
        return None, problem
    except MALFORMED:
        # A reader that trusted the type of a field. The provider may know better.
        return None, refuse_malformed()


def read_shallow(caller: Caller) -> ServedRequest:
    """A request without messages that could not be read: its model, whether it streams, and what it continues at its
    provider. Raises RelayRefusal if it names no model.
    """
    try:
        fields = msgspec.json.decode(caller.request.body, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        fields = {}
    path = caller.endpoint.path
    from_path = _MODEL_IN_PATH.search(unquote(path))
    model = from_path[1] if from_path is not None else _read_field(fields, "model")
    if not isinstance(model, str) or not model:
        raise refuse_unnamed()
    prompt = Prompt((), state=_read_state(fields, find_facts(caller.dialect).previous_field))
    return ServedRequest(prompt, model, _read_field(fields, "stream") is True or path.endswith(_STREAMS))


def _read_field(fields: dict[str, msgspec.Raw], name: str) -> Any:
    """Return the value of a field; None if it is missing or malformed."""
    try:
        return msgspec.json.decode(fields[name]) if name in fields else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def _read_state(fields: dict[str, msgspec.Raw], previous_field: str) -> ProviderState:
    named = _read_field(fields, "conversation")
    given = (_read_field(fields, previous_field), named.get("id") if isinstance(named, dict) else named)
    # Values that are not ids become text, which has no owner.
    previous, conversation = (None if each is None else str(each) for each in given)
    return ProviderState(previous_response_id=previous, conversation=conversation)
