"""Errors as responses: the status, the words and the codes that the caller's dialect has for each of our errors."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from asides.dialects import find_dialect
from asides.relay.translate.translate_fields import UntranslatableField
from asides.values.errors import (
    AsidesError,
    AuthError,
    BadRequest,
    ConfigError,
    ConnectTimeout,
    ContentFiltered,
    ContextTooLong,
    IdleTimeout,
    MissingKey,
    NotFound,
    Overloaded,
    ProtocolError,
    ProviderError,
    RateLimited,
    TransportError,
    UnknownModel,
    UnknownProvider,
)

_OPENAI = ("openai_chat", "openai_responses")
_BUSY = 503
# Anthropic's own status for "overloaded"; its clients know both.
_OVERLOADED = {"anthropic": 529}


class RelayRefusal(ConfigError):
    """The relay refuses a request: with this status and, where the dialect has codes, this code."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        code: str | None = None,
        param: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param
        """The field of the request that is wrong."""
        self.headers = headers or {}


MALFORMED = (AttributeError, LookupError, TypeError, ValueError, RecursionError)
"""What a reader raises that trusted the type of a field."""


def refuse_malformed() -> RelayRefusal:
    """The error of a request with a field of another type than its dialect says."""
    return RelayRefusal(
        "a field of the request has an unexpected type. Compare the request with the documentation of its API."
    )


class ErrorResponse(msgspec.Struct, frozen=True):
    """An error as the caller gets it."""

    status: int
    headers: dict[str, str]
    body: bytes
    message: str
    kind: str | None
    """The dialect's own word for it; None: that of the status."""


def write_error_response(error: AsidesError, dialect: str) -> ErrorResponse:
    """Write an error in a dialect. It shows no key and no prompt, as the error itself shows none."""
    status, kind = choose_status(error, dialect), choose_kind(error, dialect)
    found = find_dialect(dialect)
    message = _choose_words(error, dialect)
    more: dict[str, Any] = {}
    if dialect in _OPENAI and isinstance(error, (RelayRefusal, UntranslatableField)) and error.param is not None:
        more["param"] = error.param
    if dialect == "anthropic" and isinstance(error, UntranslatableField) and error.details is not None:
        more["details"] = error.details
    body = found.write_error(status, message, kind, **more)
    headers = {"content-type": "application/json"}
    write_headers = getattr(found, "write_error_headers", None)
    if write_headers is not None:
        headers |= write_headers(status, kind)
    wait = getattr(error, "retry_after", None)
    if wait is not None and wait >= 0 and math.isfinite(wait):
        headers["retry-after"] = str(math.ceil(wait))
    if isinstance(error, RelayRefusal):
        headers |= error.headers
    return ErrorResponse(status, headers, body, message, kind)


def write_stream_error(writer: Any, response: ErrorResponse) -> bytes:
    """The end of a stream that has begun and failed, in the form that the dialect has for it."""
    write = getattr(writer, "write_error", None)
    return b"" if write is None else write(response.status, response.message, response.kind)


def choose_status(error: AsidesError, dialect: str) -> int:
    """The status that the servers of a dialect answer with."""
    match error:
        case RelayRefusal():
            return error.status
        case UnknownModel() | UnknownProvider() | NotFound():
            return 404
        case MissingKey():
            return 401
        case AuthError():
            return 403 if error.status == 403 else 401
        case RateLimited():
            return 429
        case ProviderError() if error.status is not None and not 200 <= error.status < 600:
            return 502  # no status of HTTP
        case Overloaded():
            if error.status in (None, 408, 409, 200, 503, 529):
                return _OVERLOADED.get(dialect, _BUSY)
            return 504 if error.status in (504, 524) else error.status if error.status in (500, 502) else _BUSY
        case BadRequest():
            return error.status if error.status in (413, 422) else 400
        case ContentFiltered():
            return 400
        case ConnectTimeout() | IdleTimeout():
            return 504
        case TransportError() | ProtocolError() | ProviderError():
            return 502
        case ConfigError():
            return 400
        case _:
            return 500


def choose_kind(error: AsidesError, dialect: str) -> str | None:
    """The code that clients of a dialect match on; None where the status says all."""
    if isinstance(error, RelayRefusal):
        return error.code if dialect in _OPENAI else None
    if dialect not in _OPENAI:
        return None
    match error:
        case UnknownModel() | UnknownProvider() | NotFound():
            return "model_not_found"
        case ContextTooLong():
            return "context_length_exceeded"
        case RateLimited():
            return "insufficient_quota" if _has_no_credit(error) else "rate_limit_exceeded"
        case MissingKey() | AuthError():
            return "invalid_api_key"
        case ContentFiltered():
            return "content_filter"
        case Overloaded():
            return "server_is_overloaded" if choose_status(error, dialect) == _BUSY else None
        case _:
            return None


def _has_no_credit(error: RateLimited) -> bool:
    return error.status == 402 or any(word in (error.code or "") for word in ("insufficient", "balance", "credit"))


def _choose_words(error: AsidesError, dialect: str) -> str:
    # Clients of this dialect look for these words, to compact a conversation.
    if dialect == "anthropic" and isinstance(error, ContextTooLong):
        return f"prompt is too long: {error}"
    return str(error)
