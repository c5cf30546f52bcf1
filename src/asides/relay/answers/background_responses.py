"""Responses that run in the background, `background: true`, for providers that cannot: their records before the reply.

The gateway runs the request. Its client polls `responses/{id}`, and reads the record of `stored_responses` at the end.
"""

from __future__ import annotations

import secrets
from typing import Any

import msgspec

from asides.dialects import find_dialect
from asides.dialects.dialect import ServedRequest
from asides.dialects.openai_responses.server.write_reply import echo_settings
from asides.providers.endpoint import RESPONSES
from asides.relay.answers.stored_responses import (
    StoredResponseRecord,
    can_store,
    list_input_items,
    make_record,
    refuse_previous,
)
from asides.relay.error_response import RelayRefusal
from asides.relay.relay_config import Caller
from asides.relay.relay_request import RelayRequest
from asides.relay.state.caller_state import CallerState
from asides.relay.state.relay_keys import TenantKeys
from asides.relay.steps import StoredRecord

FIELD = "background"


class RunsInBackground(RelayRefusal):
    """The request has to run after its response has left, which only a gateway can do: it catches this error."""

    def __init__(self) -> None:
        super().__init__("background needs a gateway. Leave it out.", param=FIELD)


def refuse_foreground(caller: Caller, state: CallerState, asked: ServedRequest, *, compacts: bool) -> None:
    """Raise RunsInBackground for a request whose provider does not run it, or RelayRefusal if it cannot run here."""
    if state.has_unknown_previous:
        raise refuse_previous(str(asked.prompt.state.previous_response_id), caller.dialect)
    if not can_store(caller, state):
        raise RelayRefusal(
            "background needs a stored response. Leave out store, or ask the operator of this gateway to keep "
            "reasoning state.",
            param=FIELD,
        )
    if asked.stream:
        raise RelayRefusal("background responses are polled here. Leave out stream.", param="stream")
    if compacts:
        raise RelayRefusal("compaction does not run in the background.", param=FIELD)
    raise RunsInBackground


def make_response_id() -> str:
    """A new id of a response."""
    return f"resp_{secrets.token_hex(24)}"


def write_document(request: RelayRequest, response_id: str, now: float) -> dict[str, Any]:
    """The response to a request that has just begun."""
    served = find_dialect(RESPONSES).read(request.body)
    return {
        "id": response_id,
        "object": "response",
        "created_at": int(now),
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "model": served.model,
        **echo_settings(served.prompt),
        FIELD: True,
        "output": [],
        "usage": None,
    }


def fail_document(document: dict[str, Any], code: str, message: str) -> dict[str, Any]:
    """The response to a request that has failed."""
    return {**document, "status": "failed", "error": {"code": code, "message": message}}


def make_background_record(
    keys: TenantKeys, request: RelayRequest, document: dict[str, Any], now: float
) -> StoredRecord:
    """The record of a request in the background: that it runs, or that it has ended without a reply."""
    record = StoredResponseRecord(
        document["id"],
        (),
        (),
        None,
        list_input_items(request.body, document["id"]),
        msgspec.Raw(msgspec.json.encode(document)),
        document["status"],
        now,
    )
    return make_record(keys, record)
