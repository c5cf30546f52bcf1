"""Batches of contents: `models/…:batchGenerateContent` and `batches/…`, as Gemini has them.

A small batch is created with its requests in the body, and its results are in the description of the batch; a larger
one has files. From ai.google.dev/gemini-api/docs/batch-api and ai.google.dev/api/batch-api, 2026-11-16.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

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
    encode_error,
    get_path,
    parse_object,
    parse_time,
    take_count,
    take_id,
    take_name,
    take_text,
)

_LIVE, _BATCH = ":generateContent", ":batchGenerateContent"
# The same states have two spellings, in the REST reference and in the guide.
_PREFIXES = ("BATCH_STATE_", "JOB_STATE_")
_ENDED = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED"})
_INLINE = "inline"
# The results of a batch without files come in one document, which must fit in memory.
_MOST_INLINE = 1000 * 1000
_MOST_INLINE_ROWS = 100
_PAGE = 100
# Codes of google.rpc.Status, the status of HTTP and the word that a live call has for each.
_CODES = {
    1: (499, "CANCELLED"),
    3: (400, "INVALID_ARGUMENT"),
    4: (504, "DEADLINE_EXCEEDED"),
    5: (404, "NOT_FOUND"),
    7: (403, "PERMISSION_DENIED"),
    8: (429, "RESOURCE_EXHAUSTED"),
    9: (400, "FAILED_PRECONDITION"),
    11: (400, "OUT_OF_RANGE"),
    12: (501, "UNIMPLEMENTED"),
    13: (500, "INTERNAL"),
    14: (503, "UNAVAILABLE"),
    16: (401, "UNAUTHENTICATED"),
}


class _ContentForm:
    """The form."""

    has_marker = True
    most_inline_rows = _MOST_INLINE_ROWS

    def group(self, row: VendorRow) -> tuple[Any, ...]:
        """The model is in the address."""
        return (row.request.url,)

    def encode_row(self, row: VendorRow) -> bytes:
        return msgspec.json.encode({"key": row.custom_id, "request": msgspec.Raw(row.request.body)})

    def upload(self, row: VendorRow, marker: str, lines: Sequence[bytes], most_inline: int) -> Upload:
        size = sum(map(len, lines)) + len(lines)
        if size <= min(most_inline, _MOST_INLINE) and len(lines) <= _MOST_INLINE_ROWS:
            return None
        body = b"\n".join(lines) + b"\n"
        path = f"/upload{_find_root(row)}/files"
        started = yield build_request(
            row,
            "POST",
            path,
            body=msgspec.json.encode({"file": {"displayName": marker}}),
            headers={
                "Content-Type": "application/json",
                "X-Goog-Upload-Protocol": "resumable",
                "X-Goog-Upload-Command": "start",
                "X-Goog-Upload-Header-Content-Length": str(len(body)),
                "X-Goog-Upload-Header-Content-Type": "application/jsonl",
            },
        )
        address = urlsplit(started.headers.get("x-goog-upload-url", ""))
        if not address.query:
            raise ProtocolError("the upload has no address.")
        # At the host that we know, whatever host the address names: content goes to no other.
        query = dict(parse_qsl(address.query))
        finished = yield build_request(
            row,
            "POST",
            address.path,
            query=query,
            body=body,
            headers={
                "Content-Type": "application/jsonl",
                "X-Goog-Upload-Offset": "0",
                "X-Goog-Upload-Command": "upload, finalize",
            },
        )
        file = take_id(parse_object(finished.body, "the description of the uploaded file").get("file"), "name")
        if file is None:
            raise ProtocolError("the description of the uploaded file has no name.", payload=finished.body[:2000])
        return file

    def create(self, row: VendorRow, marker: str, lines: Sequence[bytes], file: str | None) -> HttpRequest:
        config: Any = {"fileName": file}
        if file is None:
            given = [msgspec.json.decode(line, type=_Line) for line in lines]
            config = {"requests": {"requests": [{"request": r.request, "metadata": {"key": r.key}} for r in given]}}
        body = msgspec.json.encode({"batch": {"displayName": marker, "inputConfig": config}})
        return build_request(row, "POST", get_path(row).removesuffix(_LIVE) + _BATCH, body=body)

    def show(self, row: VendorRow, batch_id: str) -> HttpRequest:
        return build_request(row, "GET", f"{_find_root(row)}/{batch_id}")

    def cancel(self, row: VendorRow, batch_id: str) -> HttpRequest:
        return build_request(row, "POST", f"{_find_root(row)}/{batch_id}:cancel")

    def list(self, row: VendorRow, after: str | None) -> HttpRequest:
        query: dict[str, str | int] = {"pageSize": _PAGE} if after is None else {"pageSize": _PAGE, "pageToken": after}
        return build_request(row, "GET", f"{_find_root(row)}/batches", query=query)

    def fetch(self, row: VendorRow, status: VendorStatus) -> tuple[HttpRequest, ...]:
        root = _find_root(row)
        if not self.has_lines(status):
            return (self.show(row, status.id),)
        return tuple(
            build_request(row, "GET", f"{root}/{file}:download", query={"alt": "media"}) for file in status.results
        )

    def read_status(self, body: bytes) -> VendorStatus:
        operation = _parse_leniently(body, "the description of the batch")
        batch = operation.get("metadata")
        name, state = take_id(operation, "name"), _read_state(batch)
        if name is None or not isinstance(batch, dict):
            raise ProtocolError("the description of the batch has no name or no metadata.")
        total, done = _count(batch)
        output = batch.get("output") or operation.get("response")
        file = take_id(output, "responsesFile")
        is_inline = isinstance(output, dict) and "inlinedResponses" in output
        is_ended = state in _ENDED or operation.get("done") is True
        problem = take_text(operation.get("error"), "message") or ""
        error = (problem or "the vendor gives no reason") if state == "FAILED" else ""
        results = (file,) if file else (_INLINE,) if is_inline else ()
        return VendorStatus(name, is_ended, state or "UNSPECIFIED", total, done, error, results, bool(results))

    def read_list(self, body: bytes) -> ListPage:
        page = _parse_leniently(body, "the list of batches")
        entries = page.get("operations")
        batches = tuple(
            ListedBatch(
                name,
                take_text(batch, "displayName"),
                _count(batch)[0],
                parse_time(take_text(batch, "createTime")),
            )
            for entry in (entries if isinstance(entries, list) else ())
            if (name := take_id(entry, "name")) is not None and isinstance(batch := entry.get("metadata"), dict)
        )
        return ListPage(batches, take_text(page, "nextPageToken"))

    def read_entry(self, entry: bytes) -> RowOutcome:
        result = parse_object(entry, "an entry of the results")
        # In the description of a batch, the key is in the metadata of each result.
        return _read_result(take_name({**_take_object(result, "metadata"), **result}, "key"), result)

    def split(self, body: bytes) -> Sequence[bytes]:
        operation = _parse_leniently(body, "the description of the batch")
        batch = operation.get("metadata")
        output = (batch.get("output") if isinstance(batch, dict) else None) or operation.get("response")
        inlined = output.get("inlinedResponses") if isinstance(output, dict) else None
        results = inlined.get("inlinedResponses") if isinstance(inlined, dict) else None
        if not isinstance(results, list):
            raise ProtocolError("the description of the batch has no list of results.", payload=body[:2000])
        # What only a lenient parser takes is found in its own entry again.
        return [_encode_entry(result) for result in results]

    def has_lines(self, status: VendorStatus) -> bool:
        return status.results != (_INLINE,)


class _Line(msgspec.Struct):
    key: str
    request: msgspec.Raw


def _find_root(row: VendorRow) -> str:
    """The path of the API: all before the model."""
    root, found, _ = get_path(row).rpartition("/models/")
    if not found or not get_path(row).endswith(_LIVE):
        raise ProtocolError(f"{get_path(row)} is not an endpoint of batches.")
    return root


def _read_state(batch: Any) -> str:
    state = take_text(batch, "state") or ""
    return next((state.removeprefix(prefix) for prefix in _PREFIXES if state.startswith(prefix)), state)


def _count(batch: dict[str, Any]) -> tuple[int | None, int | None]:
    stats = batch.get("batchStats")
    total = take_count(stats, "requestCount")
    good, bad = take_count(stats, "successfulRequestCount"), take_count(stats, "failedRequestCount")
    return total, None if total is None else (good or 0) + (bad or 0)


def _take_object(fields: dict[str, Any], name: str) -> dict[str, Any]:
    found = fields.get(name)
    return found if isinstance(found, dict) else {}


def _encode_entry(result: Any) -> bytes:
    try:
        return json.dumps(result).encode()
    except RecursionError:
        return b""  # No result is nested like that: its own row is lost, and no other.


def _parse_leniently(body: bytes, what: str) -> dict[str, Any]:
    """Parse a description, which may have results in it. A result that is not valid JSON (a lone surrogate or NaN) must
    not affect the others.
    """
    try:
        return parse_object(body, what)
    except ProtocolError:
        try:
            parsed = json.loads(body.decode("utf-8", "surrogateescape"), strict=False)
        except (ValueError, RecursionError):
            parsed = None
        if not isinstance(parsed, dict):
            raise
        return parsed


def _read_result(name: str, result: dict[str, Any]) -> RowOutcome:
    response, error = result.get("response"), result.get("error")
    if isinstance(response, dict):
        return RowOutcome(name, "answered", 200, msgspec.json.encode(response))
    if not isinstance(error, dict):
        return RowOutcome(name, "unreadable", 0, message="the result has neither a response nor an error")
    code = take_count(error, "code")
    message = take_text(error, "message") or "the vendor gives no reason"
    status, word = _CODES.get(code or 13, (500, "INTERNAL"))
    return RowOutcome(name, "failed", status, encode_error(message, code=status, status=word))


FORM = _ContentForm()
