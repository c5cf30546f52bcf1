"""Finds the endpoint of a vendor's batches and files at a path, and answers the rows of a batch."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from urllib.parse import unquote

import msgspec

from asides_stage.stage.batches import BatchRow, RowResult
from asides_stage.stage.http_requests import Request
from asides_stage.stage.side_endpoints import Answer, EndpointCall, SideEndpoint

# The module of each dialect's batches. It is imported with the first request that may be for one.
_MODULES = {
    "anthropic": "message_batches",
    "gemini": "content_batches",
    "openai_chat": "file_batches",
    "openai_responses": "file_batches",
}
_MAY_BE = re.compile(r"/(?:batches|files)(?:[/:]|$)|:batchGenerateContent$")


def find_batch_endpoints(dialect: str, path: str) -> list[tuple[SideEndpoint, dict[str, str]]]:
    """Return the endpoints of a dialect at this path, one for each method, with the named parts of the path."""
    if dialect not in _MODULES or _MAY_BE.search(path) is None:
        return []
    endpoints: tuple[tuple[str, str, Callable[[EndpointCall], Answer]], ...]
    endpoints = import_module(f"asides_stage.stage.batches.{_MODULES[dialect]}").ENDPOINTS
    return [
        (SideEndpoint(method, handler), {name: unquote(value) for name, value in match.groupdict().items()})
        for method, pattern, handler in endpoints
        if (match := re.search(pattern, path)) is not None
    ]


def is_upload(path: str, query: str) -> bool:
    """Return whether a request continues an upload of Gemini: its id is its credential."""
    return path.startswith("/upload/") and "upload_id=" in query


def answer_row(answer: Callable[[Request], Answer], request: Request, row: BatchRow) -> RowResult:
    """Answer one row as a live request of the batch's creator."""
    headers = {**request.headers, "content-type": "application/json"}
    plan = answer(Request("POST", row.path, "", headers, row.body)).plan
    body = b"".join(plan.pieces)
    if plan.ending == "hang":
        return RowResult(row.id, "expired")
    if plan.status is None or plan.ending != "whole":
        return RowResult(row.id, "failed")
    try:
        # A result is one line, and only JSON fits in.
        body = msgspec.json.encode(msgspec.json.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return RowResult(row.id, "failed")
    return RowResult(row.id, "answered" if 200 <= plan.status < 300 else "failed", plan.status, body)
