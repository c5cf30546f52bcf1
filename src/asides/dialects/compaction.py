"""The compaction that providers do themselves: the fields that ask for it, and the request and response of a compaction
on its own.

Anthropic: `context_management.edits` (platform.claude.com build-with-claude/compaction and context-editing, 2026-11).
OpenAI: `context_management` of a response, and `/responses/compact` (developers.openai.com api/docs/guides/compaction,
2026-11). What they return is a part of the reply like any other that a provider made: it goes back verbatim, and only
there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from asides.dialects.dialect import HttpRequest
from asides.providers.provider import Target
from asides.values.errors import ProtocolError
from asides.values.messages import Message
from asides.values.notices import Notice
from asides.values.parts import ServerTool
from asides.values.usage import Usage, normalise_usage

Compaction: TypeAlias = Literal["provider"] | int
"""At the provider's own number of tokens, or at this one."""

_COMPACT_EDIT = "compact_20260112"
_LEAST_TRIGGER = 50_000
"""The lowest number of tokens at which Anthropic compacts."""
_DEFAULT_THRESHOLD = 200_000
"""OpenAI has no default. This is about half of the smallest context of the models that compact."""
_BETAS = {
    _COMPACT_EDIT: "compact-2026-01-12",
    "clear_tool_uses_20250919": "context-management-2025-06-27",
    "clear_thinking_20251015": "context-management-2025-06-27",
}


def encode_edits(compaction: Compaction, notices: list[Notice]) -> dict[str, Any]:
    """The field that lets Anthropic summarize earlier messages, once a request has this many tokens."""
    edit: dict[str, Any] = {"type": _COMPACT_EDIT}
    if not isinstance(compaction, str):
        tokens = max(compaction, _LEAST_TRIGGER)
        edit["trigger"] = {"type": "input_tokens", "value": tokens}
        if tokens != compaction:
            detail = "the minimum of this provider"
            notices.append(Notice("compaction_adjusted", detail, "compaction", str(compaction), str(tokens)))
    return {"context_management": {"edits": [edit]}}


def find_betas(body: Mapping[str, Any], messages: Sequence[Message]) -> list[str]:
    """The betas that the edits of a request need, also those that the caller wrote, and the blocks that go back."""
    management = body.get("context_management")
    edits: Any = management.get("edits") if isinstance(management, dict) else None
    kinds = [edit.get("type") for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else []
    if any(map(_has_compaction, messages)):
        kinds.append(_COMPACT_EDIT)
    return list(dict.fromkeys(_BETAS[kind] for kind in kinds if kind in _BETAS))


def _has_compaction(message: Message) -> bool:
    if message.role != "assistant":
        return False
    return any(isinstance(part, ServerTool) and part.name == "compaction" for part in message.parts)


def encode_threshold(compaction: Compaction) -> dict[str, Any]:
    """The field that lets OpenAI compact, once a request has this many tokens."""
    tokens = _DEFAULT_THRESHOLD if isinstance(compaction, str) else compaction
    return {"context_management": [{"type": "compaction", "compact_threshold": tokens}]}


# --- a compaction on its own ------------------------------------------------------------------------------------------

_COMPACT_PATH = "/compact"
_COMPACT_FIELDS = ("model", "input", "instructions", "previous_response_id")


def build_compact_request(request: HttpRequest) -> HttpRequest:
    """The request that compacts the input of a request for a response."""
    body = msgspec.json.decode(request.body, type=dict[str, msgspec.Raw])
    kept = {name: body[name] for name in _COMPACT_FIELDS if name in body}
    address, mark, query = request.url.partition("?")
    headers = {**request.headers, "Accept": "application/json"}
    return HttpRequest(
        request.method,
        f"{address}{_COMPACT_PATH}{mark}{query}",
        headers,
        msgspec.json.encode(kept),
        credential_header=request.credential_header,
        direct=request.direct,
    )


class _Counts(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None


class _Compacted(msgspec.Struct):
    output: list[dict[str, Any]]
    usage: _Counts | None = None


def read_compacted(body: bytes, target: Target) -> tuple[list[dict[str, Any]], Usage]:
    """The items that replace the sent ones, and the usage. Raises ProtocolError for anything else."""
    try:
        read = msgspec.json.decode(body, type=_Compacted)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        read = None
    if read is None or not read.output:
        raise ProtocolError(
            f"the response of {target.provider.name} is not a compaction. Check the base URL; this server may not "
            "have one. conversation.compact(over) asks a model for a summary.",
            dialect=target.dialect,
        )
    counts = read.usage or _Counts()
    return read.output, normalise_usage(
        input=counts.input_tokens, output=counts.output_tokens, total=counts.total_tokens
    )
