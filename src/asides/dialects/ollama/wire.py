"""Private structs for the fields that are read from chat lines; also stop reasons and errors.

The structs are lenient, minimal and made for the hot path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from asides.providers.provider import Target
from asides.providers.provider_errors import from_status
from asides.values.errors import ProviderError
from asides.values.events import StopKind
from asides.wire.lenient import parse_or_none

NOTHING = msgspec.Raw(b"null")

SAMPLING = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "repetition_penalty": "repeat_penalty",
    "seed": "seed",
}
"""Our sampling settings and their names in `options`."""
SAMPLING_BESIDE = {"logprobs": "logprobs", "top_logprobs": "top_logprobs"}
"""Those beside `options`."""


class Function(msgspec.Struct):
    """The called function. Arguments are an object, or text from the templates of some models."""

    name: str | None = None
    arguments: msgspec.Raw = NOTHING


class Call(msgspec.Struct):
    """A call, always in one piece. Older servers send no id."""

    id: str | None = None
    function: Function | None = None


class Message(msgspec.Struct, gc=False):
    """The message, or a piece of it."""

    content: str | None = None
    thinking: Any = None
    tool_calls: list[Call] | None = None
    images: list[str] | None = None


class Line(msgspec.Struct):
    """One line of a stream, or a whole response. `/api/generate` puts its text in `response` and `thinking`."""

    model: str | None = None
    message: Message | None = None
    response: str | None = None
    thinking: Any = None
    done: bool | None = None
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None
    error: Any = None


LINES = msgspec.json.Decoder(Line)


# --- stop reasons and errors ------------------------------------------------------------------------------------------

# A request without messages stops with "load" or "unload".
_STOPS: dict[str, StopKind] = {"stop": "stop", "length": "length", "load": "stop", "unload": "stop"}


def map_stop_reason(raw: str, *, has_calls: bool) -> StopKind:
    """Return our name for a reason. This dialect has no reason for tool calls: it sends "stop" for them too."""
    reason = _STOPS.get(raw.lower(), "unknown")
    return "tool_calls" if has_calls and reason == "stop" else reason


def decode_error(status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
    """Build the error for a response with this status."""
    document = parse_or_none(body)
    error = document.get("error") if isinstance(document, dict) else None
    return build_error(status, headers, error, body, target)


def build_error(status: int, headers: Mapping[str, str], error: Any, body: bytes, target: Target) -> ProviderError:
    """Build an error from a sentence, or from the object of a proxy before the server."""
    code: str | None = None
    if isinstance(error, dict):
        code = next((str(error[name]) for name in ("code", "type") if error.get(name)), None)
        error = error.get("message")
    return from_status(
        status,
        provider=target.provider.name,
        message=error if isinstance(error, str) else "",
        code=code,
        request_id=headers.get("x-request-id") or headers.get("cf-ray"),
        body=body,
    )
