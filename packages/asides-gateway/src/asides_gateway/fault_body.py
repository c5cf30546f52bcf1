"""The body of an error that no handler wrote: `write_fault(message, status, path)`."""

from __future__ import annotations

import msgspec

from asides.relay.endpoints import NoEndpoint, find_endpoint
from asides.relay.error_response import RelayRefusal, write_error_response


def write_fault(message: str, status: int, path: str = "", method: str = "POST") -> bytes:
    """An error in the dialect of a path for replies; for any other path, in a form that most clients read."""
    dialect = _find_dialect(method, path)
    if dialect is not None:
        return write_error_response(RelayRefusal(message, status=status), dialect).body
    kind = "api_error" if status >= 500 else "invalid_request_error"
    return msgspec.json.encode(
        {"type": "error", "error": {"type": kind, "message": message, "code": None, "param": None}}
    )


def _find_dialect(method: str, path: str) -> str | None:
    """The dialect of a path for replies or their like; None for others."""
    if path in ("", "/"):
        return None
    try:
        return find_endpoint(method, path, "", {}).dialect
    except NoEndpoint as problem:
        return problem.dialect
