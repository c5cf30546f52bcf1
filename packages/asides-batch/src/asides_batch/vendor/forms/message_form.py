"""Message batches: `/messages/batches`, as Anthropic has them.

The vendor keeps no name of ours: a batch whose creation was not acknowledged is found by its time, its size and the ids
in its results. From platform.claude.com/docs/en/build-with-claude/batch-processing, 2026-11-16.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from asides.dialects.dialect import HttpRequest
from asides.values.errors import ProtocolError
from asides_batch.vendor.forms import (
    ListedBatch,
    ListPage,
    RowOutcome,
    Upload,
    VendorRow,
    VendorStatus,
    build_request,
    get_path,
    parse_object,
    parse_time,
    take_count,
    take_id,
    take_name,
    take_text,
)

_COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")
_PAGE = 100
# The status that a live call has for each type of error (platform.claude.com/docs/en/api/errors, 2026-11-16).
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class _MessageForm:
    """The form."""

    has_marker = False
    most_inline_rows = 0

    def group(self, row: VendorRow) -> tuple[Any, ...]:
        """The requests of a batch share its headers, which name betas."""
        return row.request.url, tuple(sorted(row.request.headers.items()))

    def encode_row(self, row: VendorRow) -> bytes:
        return msgspec.json.encode({"custom_id": row.custom_id, "params": msgspec.Raw(row.request.body)})

    def upload(self, row: VendorRow, marker: str, lines: Sequence[bytes], most_inline: int) -> Upload:
        del row, marker, lines, most_inline
        yield from ()
        return None

    def create(self, row: VendorRow, marker: str, lines: Sequence[bytes], file: str | None) -> HttpRequest:
        del marker, file
        body = b"".join((b'{"requests":[', b",".join(lines), b"]}"))
        return build_request(row, "POST", f"{get_path(row)}/batches", body=body)

    def show(self, row: VendorRow, batch_id: str) -> HttpRequest:
        return build_request(row, "GET", f"{get_path(row)}/batches/{batch_id}")

    def cancel(self, row: VendorRow, batch_id: str) -> HttpRequest:
        return build_request(row, "POST", f"{get_path(row)}/batches/{batch_id}/cancel")

    def list(self, row: VendorRow, after: str | None) -> HttpRequest:
        query: dict[str, str | int] = {"limit": _PAGE} if after is None else {"limit": _PAGE, "after_id": after}
        return build_request(row, "GET", f"{get_path(row)}/batches", query=query)

    def fetch(self, row: VendorRow, status: VendorStatus) -> tuple[HttpRequest, ...]:
        # Its address is built, not taken from the response: the key goes to no other host.
        return (build_request(row, "GET", f"{get_path(row)}/batches/{status.id}/results"),)

    def read_status(self, body: bytes) -> VendorStatus:
        batch = parse_object(body, "the description of the batch")
        name, state = take_id(batch, "id"), take_text(batch, "processing_status")
        if name is None or state is None:
            raise ProtocolError("the description of the batch has no id or no status.")
        total, done = _count(batch)
        is_ended = state == "ended"
        is_archived = batch.get("archived_at") is not None
        error = "its results are older than the vendor keeps them" if is_archived else ""
        return VendorStatus(name, is_ended, state, total, done, error, (), is_ended and not is_archived)

    def read_list(self, body: bytes) -> ListPage:
        page = parse_object(body, "the list of batches")
        entries = page.get("data")
        batches = tuple(
            ListedBatch(name, None, _count(entry)[0], parse_time(take_text(entry, "created_at")))
            for entry in (entries if isinstance(entries, list) else ())
            if (name := take_id(entry, "id")) is not None
        )
        return ListPage(batches, batches[-1].id if page.get("has_more") is True and batches else None)

    def read_entry(self, entry: bytes) -> RowOutcome:
        found = parse_object(entry, "an entry of the results")
        name, result = take_name(found, "custom_id"), found.get("result")
        match take_text(result, "type"):
            case "succeeded" if isinstance(result, dict):
                return RowOutcome(name, "answered", 200, msgspec.json.encode(result.get("message")))
            case "errored" if isinstance(result, dict):
                return _read_error(name, result.get("error"))
            case "expired":
                return RowOutcome(name, "expired", 0, message="the batch expired before this request was run")
            case "canceled":
                return RowOutcome(name, "cancelled", 0, message="the batch was cancelled before this request was run")
            case other:
                return RowOutcome(name, "unreadable", 0, message=f"the result has an unknown type: {other or 'none'}")

    def split(self, body: bytes) -> Sequence[bytes]:
        del body
        return ()

    def has_lines(self, status: VendorStatus) -> bool:
        del status
        return True


def _read_error(name: str, error: Any) -> RowOutcome:
    inner = error.get("error") if isinstance(error, dict) else None
    # Older results have the error itself in this place.
    inner = inner if isinstance(inner, dict) else error
    status = _STATUSES.get(take_text(inner, "type") or "", 500)
    return RowOutcome(name, "failed", status, msgspec.json.encode({"type": "error", "error": inner}))


def _count(batch: dict[str, Any]) -> tuple[int | None, int | None]:
    counts = batch.get("request_counts")
    found = [take_count(counts, name) for name in _COUNTS]
    if any(count is None for count in found):
        return None, None
    total = sum(count or 0 for count in found)
    return total, total - (found[0] or 0)


FORM = _MessageForm()
