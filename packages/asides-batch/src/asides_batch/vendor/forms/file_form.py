"""Batches over an uploaded file of JSON lines: `/files` and `/batches`, as OpenAI has them.

The results are two files, of replies and of errors. From platform.openai.com/docs/api-reference/batch, 2026-11-16.
"""

from __future__ import annotations

import secrets
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
    encode_error,
    get_path,
    parse_object,
    take_count,
    take_id,
    take_name,
    take_text,
)

_ENDINGS = ("/chat/completions", "/responses")
_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_MARKER = "asides_batch"
_PAGE = 100
# Codes of a batch that failed only because too much is waiting: later it is accepted.
_LIMITS = frozenset({"token_limit_exceeded", "rate_limit_exceeded", "request_limit_exceeded"})
# Codes of rows that were not run.
_NOT_RUN = {"batch_expired": "expired", "batch_cancelled": "cancelled"}


class _FileForm:
    """The form."""

    has_marker = True
    most_inline_rows = 0

    def group(self, row: VendorRow) -> tuple[Any, ...]:
        """One file has one model and one endpoint."""
        return row.request.url, msgspec.json.decode(row.request.body, type=_Model).model

    def encode_row(self, row: VendorRow) -> bytes:
        return msgspec.json.encode(
            {
                "custom_id": row.custom_id,
                "method": "POST",
                "url": _split_path(row)[1],
                "body": msgspec.Raw(row.request.body),
            }
        )

    def upload(self, row: VendorRow, marker: str, lines: Sequence[bytes], most_inline: int) -> Upload:
        del most_inline
        boundary = f"asides-{secrets.token_hex(16)}"
        start = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{marker}.jsonl"\r\n'
            "Content-Type: application/jsonl\r\n\r\n"
        )
        body = b"".join((start.encode(), b"\n".join(lines), b"\n", f"\r\n--{boundary}--\r\n".encode()))
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        answered = yield build_request(row, "POST", f"{_split_path(row)[0]}/files", body=body, headers=headers)
        file = take_id(parse_object(answered.body, "the description of the uploaded file"), "id")
        if file is None:
            raise ProtocolError("the description of the uploaded file has no id.", payload=answered.body[:2000])
        return file

    def create(self, row: VendorRow, marker: str, lines: Sequence[bytes], file: str | None) -> HttpRequest:
        del lines
        root, endpoint = _split_path(row)
        body = msgspec.json.encode(
            {
                "input_file_id": file,
                "endpoint": endpoint,
                "completion_window": "24h",
                "metadata": {_MARKER: marker},
            }
        )
        return build_request(row, "POST", f"{root}/batches", body=body)

    def show(self, row: VendorRow, batch_id: str) -> HttpRequest:
        return build_request(row, "GET", f"{_split_path(row)[0]}/batches/{batch_id}")

    def cancel(self, row: VendorRow, batch_id: str) -> HttpRequest:
        return build_request(row, "POST", f"{_split_path(row)[0]}/batches/{batch_id}/cancel")

    def list(self, row: VendorRow, after: str | None) -> HttpRequest:
        query: dict[str, str | int] = {"limit": _PAGE} if after is None else {"limit": _PAGE, "after": after}
        return build_request(row, "GET", f"{_split_path(row)[0]}/batches", query=query)

    def fetch(self, row: VendorRow, status: VendorStatus) -> tuple[HttpRequest, ...]:
        root = _split_path(row)[0]
        return tuple(build_request(row, "GET", f"{root}/files/{file}/content") for file in status.results)

    def read_status(self, body: bytes) -> VendorStatus:
        return _read_batch(parse_object(body, "the description of the batch"))

    def read_list(self, body: bytes) -> ListPage:
        page = parse_object(body, "the list of batches")
        entries = page.get("data")
        batches = tuple(
            ListedBatch(
                name, take_text(entry.get("metadata"), _MARKER), _count(entry)[0], take_count(entry, "created_at")
            )
            for entry in (entries if isinstance(entries, list) else ())
            if (name := take_id(entry, "id")) is not None
        )
        return ListPage(batches, batches[-1].id if page.get("has_more") is True and batches else None)

    def read_entry(self, entry: bytes) -> RowOutcome:
        result = parse_object(entry, "an entry of the results")
        name = take_name(result, "custom_id")
        response, error = result.get("response"), result.get("error")
        if isinstance(error, dict):
            code, message = take_text(error, "code") or "", take_text(error, "message") or ""
            match _NOT_RUN.get(code):
                case "expired":
                    return RowOutcome(name, "expired", 0, message=message)
                case "cancelled":
                    return RowOutcome(name, "cancelled", 0, message=message)
                case _:
                    return RowOutcome(name, "failed", 500, encode_error(message, code=code))
        if not isinstance(response, dict):
            return RowOutcome(name, "unreadable", 0, message="the result has neither a response nor an error")
        status = take_count(response, "status_code") or 200
        body = msgspec.json.encode(response.get("body"))
        return RowOutcome(name, "answered" if 200 <= status < 300 else "failed", status, body)

    def split(self, body: bytes) -> Sequence[bytes]:
        del body
        return ()

    def has_lines(self, status: VendorStatus) -> bool:
        del status
        return True


class _Model(msgspec.Struct):
    model: Any = None


def _split_path(row: VendorRow) -> tuple[str, str]:
    """The path of the API, and the endpoint of a row as the vendor names it."""
    path = get_path(row)
    ending = next((each for each in _ENDINGS if path.endswith(each)), None)
    if ending is None:
        raise ProtocolError(f"{path} is not an endpoint of batches.")
    return path.removesuffix(ending), f"/v1{ending}"


def _count(batch: dict[str, Any]) -> tuple[int | None, int | None]:
    counts = batch.get("request_counts")
    completed, failed = take_count(counts, "completed"), take_count(counts, "failed")
    done = None if completed is None and failed is None else (completed or 0) + (failed or 0)
    return take_count(counts, "total"), done


def _read_batch(batch: dict[str, Any]) -> VendorStatus:
    name, state = take_id(batch, "id"), take_text(batch, "status")
    if name is None or state is None:
        raise ProtocolError("the description of the batch has no id or no status.")
    files = tuple(file for field in ("output_file_id", "error_file_id") if (file := take_id(batch, field)))
    errors = batch.get("errors")
    problems = errors.get("data") if isinstance(errors, dict) else None
    error = "; ".join(
        f"line {place}: {words}" if (place := take_count(problem, "line")) is not None else words
        for problem in (problems if isinstance(problems, list) else ())[:3]
        if (words := take_text(problem, "message")) is not None
    )
    total, done = _count(batch)
    error = (error or "the vendor gives no reason") if state == "failed" else ""
    codes = {take_text(problem, "code") for problem in (problems if isinstance(problems, list) else ())}
    is_limit = bool(codes & _LIMITS)
    return VendorStatus(name, state in _ENDED, state, total, done, error, files, bool(files), is_limit)


FORM = _FileForm()
