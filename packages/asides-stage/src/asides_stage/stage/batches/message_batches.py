"""Message batches (`/v1/messages/batches`), as Anthropic has them.

The list of requests is checked immediately, the parameters of each only while the batch runs: bad ones are an error of
their row. Facts from platform.claude.com/docs/en/build-with-claude/batch-processing and its API reference, 2026-11-16.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from asides.dialects.server_half import RequestFields
from asides_stage.stage.batches import BatchRow, PlayedBatch, RowResult, make_id
from asides_stage.stage.response_plan import ResponsePlan
from asides_stage.stage.rules import read_account
from asides_stage.stage.side_endpoints import Answer, EndpointCall, answer_json

_MOST_REQUESTS = 100_000
_MOST_BYTES = 256 * 1024 * 1024
_WINDOW_SECONDS = 24 * 60 * 60
_CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_VERSION = "anthropic-version"


def _demand_version(handler: Callable[[EndpointCall], Answer]) -> Callable[[EndpointCall], Answer]:
    """Refuse requests without the header that names the version of the API."""

    def answer(call: EndpointCall) -> Answer:
        if _VERSION not in call.request.headers:
            return call.refuse(400, f"{_VERSION}: header is required")
        return handler(call)

    return answer


def _create_batch(call: EndpointCall) -> Answer:
    limit = call.batches.script.most_bytes or _MOST_BYTES
    if len(call.request.body) > limit:
        return call.refuse(413, "Request exceeds the maximum allowed number of bytes.", "request_too_large")
    requests = RequestFields.parse_body(call.request.body).take("requests", list)
    if requests is None:
        return call.refuse(400, "requests: Field required")
    most = call.batches.script.most_requests or _MOST_REQUESTS
    if not requests or len(requests) > most:
        return call.refuse(400, f"requests: List should have at least 1 and at most {most} items")
    rows: list[BatchRow] = []
    seen: set[str] = set()
    for place, request in enumerate(requests):
        row = _read_row(request, place)
        if isinstance(row, str):
            return call.refuse(400, row)
        if row.id in seen:
            return call.refuse(400, f"requests: custom_id must be unique; found duplicate: {row.id}")
        seen.add(row.id)
        rows.append(row)
    if call.batches.limits_creation():
        return call.refuse(429, "Too many batches were created. Try again later.")
    account = read_account(call.request)
    batch = call.batches.add("messages", make_id("msgbatch_"), account, rows, call.answer_row)
    if call.batches.loses_creation():
        return Answer(ResponsePlan(None, ending="cut"))
    return answer_json(_write_batch(batch, call))


def _read_row(request: Any, place: int) -> BatchRow | str:
    """Return the row of a request, or what is wrong with it."""
    if not isinstance(request, dict):
        return f"requests.{place}: Input should be a valid dictionary"
    name, params = request.get("custom_id"), request.get("params")
    if name is None:
        return f"requests.{place}.custom_id: Field required"
    if not isinstance(name, str) or not _CUSTOM_ID.fullmatch(name):
        return f"requests.{place}.custom_id: String should match pattern '^{_CUSTOM_ID.pattern}$'"
    if not isinstance(params, dict):
        return f"requests.{place}.params: Field required"
    if unknown := sorted(request.keys() - {"custom_id", "params"}):
        return f"requests.{place}.{unknown[0]}: Extra inputs are not permitted"
    return BatchRow(name, "/v1/messages", msgspec.json.encode(params))


def _write_time(moment: float | None) -> str | None:
    return None if moment is None else datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")


def _write_batch(batch: PlayedBatch, call: EndpointCall) -> dict[str, Any]:
    phase = batch.advance()
    is_ended = phase == "ended"
    host = call.request.headers.get("host", "")
    # Counts move only when the whole batch has ended.
    counts = {
        "processing": 0 if is_ended else len(batch.rows),
        "succeeded": batch.count("answered") if is_ended else 0,
        "errored": batch.count("failed") if is_ended else 0,
        "canceled": batch.count("cancelled") if is_ended else 0,
        "expired": batch.count("expired") if is_ended else 0,
    }
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": "ended" if is_ended else "canceling" if phase == "cancelling" else "in_progress",
        "request_counts": counts,
        "ended_at": _write_time(batch.ended_at),
        "created_at": _write_time(batch.created_at),
        "expires_at": _write_time(batch.created_at + _WINDOW_SECONDS),
        "archived_at": None,
        "cancel_initiated_at": _write_time(batch.cancelled_at),
        "results_url": f"http://{host}/v1/messages/batches/{batch.id}/results" if is_ended else None,
    }


def _find_batch(call: EndpointCall) -> PlayedBatch | None:
    return call.batches.find("messages", call.names["batch"], read_account(call.request))


def _refuse_batch(call: EndpointCall) -> Answer:
    return call.refuse(404, f"Message Batch {call.names['batch']} not found.")


def _show_batch(call: EndpointCall) -> Answer:
    batch = _find_batch(call)
    return _refuse_batch(call) if batch is None else answer_json(_write_batch(batch, call))


def _cancel_batch(call: EndpointCall) -> Answer:
    batch = _find_batch(call)
    if batch is None:
        return _refuse_batch(call)
    batch.cancel()
    if batch.cancelled_at is None:
        return call.refuse(400, f"Batch {batch.id} cannot be canceled because it has already ended.")
    return answer_json(_write_batch(batch, call))


def _delete_batch(call: EndpointCall) -> Answer:
    batch = _find_batch(call)
    if batch is None:
        return _refuse_batch(call)
    if batch.advance() != "ended":
        return call.refuse(400, f"Batch {batch.id} cannot be deleted while it is in progress.")
    call.batches.delete(batch)
    return answer_json({"id": batch.id, "type": "message_batch_deleted"})


def _list_batches(call: EndpointCall) -> Answer:
    query = dict(parse_qsl(call.request.query))
    batches = call.batches.list("messages", read_account(call.request))
    ids = [batch.id for batch in batches]
    limit = int(query.get("limit", "20"))
    if not 1 <= limit <= 1000:
        return call.refuse(400, "limit: Input should be at least 1 and at most 1000")
    if (after := query.get("after_id")) is not None:
        batches = batches[ids.index(after) + 1 :] if after in ids else []
    elif (before := query.get("before_id")) is not None:
        batches = batches[: ids.index(before)] if before in ids else []
    page = [_write_batch(batch, call) for batch in batches[:limit]]
    ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {"first_id": None, "last_id": None}
    return answer_json({"data": page, "has_more": len(batches) > limit, **ends})


def _read_results(call: EndpointCall) -> Answer:
    batch = _find_batch(call)
    if batch is None:
        return _refuse_batch(call)
    if batch.advance() != "ended":
        return call.refuse(404, f"Batch {batch.id} has no available results.")
    body = b"".join(msgspec.json.encode(_write_result(result)) + b"\n" for result in batch.results)
    return Answer(ResponsePlan(200, {"content-type": "application/x-jsonl"}, (body,), len(body)))


def _write_result(result: RowResult) -> dict[str, Any]:
    written: dict[str, Any]
    match result.kind:
        case "answered":
            written = {"type": "succeeded", "message": msgspec.Raw(result.body)}
        case "failed" if result.body:
            written = {"type": "errored", "error": msgspec.Raw(result.body)}
        case "failed":
            error = {"type": "api_error", "message": "Internal server error"}
            written = {"type": "errored", "error": {"type": "error", "error": error, "request_id": None}}
        case "expired":
            written = {"type": "expired"}
        case "cancelled":
            written = {"type": "canceled"}
    return {"custom_id": result.id, "result": written}


_BATCH = r"/messages/batches/(?P<batch>[^/]+)"
ENDPOINTS = (
    ("POST", r"/messages/batches$", _demand_version(_create_batch)),
    ("GET", r"/messages/batches$", _demand_version(_list_batches)),
    ("GET", rf"{_BATCH}$", _demand_version(_show_batch)),
    ("DELETE", rf"{_BATCH}$", _demand_version(_delete_batch)),
    ("POST", rf"{_BATCH}/cancel$", _demand_version(_cancel_batch)),
    ("GET", rf"{_BATCH}/results$", _demand_version(_read_results)),
)
