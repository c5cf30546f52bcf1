"""Private structs for the fields that are read from messages and their events; also usage, stop reasons and errors.

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
from asides.values.usage import Usage, normalise_usage
from asides.wire.lenient import parse_or_none

NOTHING = msgspec.Raw(b"null")

SAMPLING = {"temperature": "temperature", "top_p": "top_p", "top_k": "top_k"}
"""Our sampling settings and their names in a request."""


class OutputDetails(msgspec.Struct):
    """The only detail that is read."""

    thinking_tokens: int | None = None


class CacheCreation(msgspec.Struct):
    """What was written to the cache, by how long it stays; the rest stays for minutes."""

    ephemeral_1h_input_tokens: int | None = None


class Iteration(msgspec.Struct):
    """Counts of one of the runs of a model that made the message."""

    type: str | None = None
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation: CacheCreation | None = None


class ServerToolUse(msgspec.Struct):
    """Requests of tools that the provider ran. It bills searches; fetched pages only cost their tokens."""

    web_search_requests: int | None = None


class WireUsage(msgspec.Struct):
    """Counts of a message. In a stream each report covers the whole message so far and may omit fields."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation: CacheCreation | None = None
    output_tokens_details: OutputDetails | None = None
    iterations: list[Iteration] | None = None
    server_tool_use: ServerToolUse | None = None
    service_tier: Any = None
    speed: Any = None


class StopDetails(msgspec.Struct):
    """Details of the stop reason."""

    explanation: str | None = None


class Container(msgspec.Struct):
    """Where the provider runs code for the message."""

    id: str | None = None


class Delta(msgspec.Struct, gc=False):
    """A delta of a block, or (in `message_delta`) the end of the message."""

    type: str = ""
    text: Any = None
    thinking: Any = None
    signature: str | None = None
    partial_json: str | None = None
    citation: msgspec.Raw = NOTHING
    stop_reason: str | None = None
    stop_details: StopDetails | None = None
    container: Container | None = None


class Block(msgspec.Struct):
    """A content block. Of a block of an unknown type, the document has the other fields."""

    type: str = ""
    text: Any = None
    thinking: Any = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = NOTHING
    caller: msgspec.Raw = NOTHING
    toolset_name: str | None = None
    citations: list[msgspec.Raw] | None = None


class Message(msgspec.Struct):
    """A whole message, or its beginning in `message_start`."""

    id: str | None = None
    model: str | None = None
    content: list[Block] | str | None = None
    usage: WireUsage | None = None
    stop_reason: str | None = None
    stop_details: StopDetails | None = None
    container: Container | None = None
    input_transformations: Any = None
    context_management: Any = None


class Document(msgspec.Struct, gc=False):
    """One JSON document of a body: an event of a stream, a whole message, or an error.

    The fields of a delta come first, and the collector does not track it: both make a delta a fifth cheaper.
    """

    type: str = ""
    index: int = 0
    delta: Delta | None = None
    content_block: Block | None = None
    message: Message | str | None = None
    """The message that begins; some errors have a sentence here."""
    error: Any = None
    id: str | None = None
    model: str | None = None
    content: list[Block] | str | None = None
    usage: WireUsage | None = None
    stop_reason: str | None = None
    stop_details: StopDetails | None = None
    container: Container | None = None
    input_transformations: Any = None
    context_management: Any = None


DOCUMENTS = msgspec.json.Decoder(Document)


def is_given(raw: msgspec.Raw) -> bool:
    """Whether a field is present and not null."""
    return raw is not NOTHING and bytes(raw) != b"null"


# --- usage ------------------------------------------------------------------------------------------------------------


class UsageSoFar:
    """The counts of one message, merged from its reports."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: WireUsage | None = None

    def merge(self, later: WireUsage) -> Usage:
        """Merge a later report; return the normalised counts.

        In this dialect `input_tokens` does not include tokens read from the cache or written to it.
        """
        counts = self._counts
        if counts is None:
            counts = self._counts = later
        else:
            for name in WireUsage.__struct_fields__:
                value = getattr(later, name)
                if value is not None:
                    setattr(counts, name, value)
        # The counts of the message leave out what compaction read and wrote, which is billed too (platform.claude.com,
        # compaction, 2026-10). They include every other run of this model; an advisor is another model.
        compactions = [run for run in counts.iterations or () if run.type == "compaction"]
        total_input = counts.input_tokens
        if total_input is not None or compactions:
            total_input = _sum_input(counts) + sum(map(_sum_input, compactions))
        details = counts.output_tokens_details
        # Clients require the two numbers, so a server writes two zeros while both are unknown.
        is_known = bool(total_input or counts.output_tokens or details or counts.cache_read_input_tokens is not None)
        return normalise_usage(
            input=total_input if is_known else None,
            output=_add_counts(counts.output_tokens, [run.output_tokens for run in compactions]) if is_known else None,
            thinking=None if details is None else details.thinking_tokens,
            cached=_add_counts(counts.cache_read_input_tokens, [run.cache_read_input_tokens for run in compactions]),
            cache_written=_add_counts(
                counts.cache_creation_input_tokens, [run.cache_creation_input_tokens for run in compactions]
            ),
            cache_written_hour=_add_counts(_find_hour(counts), [_find_hour(run) for run in compactions]),
            tool_requests=None if counts.server_tool_use is None else counts.server_tool_use.web_search_requests,
            tiers=(counts.speed, counts.service_tier),
        )

    def list_others(self) -> list[str]:
        """Describe what other models used for the message: the counts leave it out."""
        runs = [] if self._counts is None else self._counts.iterations or []
        others = [run for run in runs if run.type == "advisor_message"]
        answered = next((run.model for run in runs if run.type == "fallback_message"), None)
        if answered is not None:
            others += [run for run in runs if run.type == "message" and run.model not in (None, answered)]
        return [
            f"{run.model or 'another model'} used {_sum_input(run)} input and {run.output_tokens or 0} output tokens"
            for run in others
        ]


def _find_hour(counts: WireUsage | Iteration) -> int | None:
    """What was written to the cache for an hour; None if nothing was."""
    return None if counts.cache_creation is None else counts.cache_creation.ephemeral_1h_input_tokens or None


def _sum_input(counts: WireUsage | Iteration) -> int:
    cached = (counts.cache_read_input_tokens or 0) + (counts.cache_creation_input_tokens or 0)
    return (counts.input_tokens or 0) + cached


def _add_counts(count: int | None, more: list[int | None]) -> int | None:
    """Add the known counts; None if none is known."""
    known = [each for each in (count, *more) if each is not None]
    return sum(known) if known else None


# --- stop reasons and errors ------------------------------------------------------------------------------------------

# Our stop reasons by theirs, as documented up to 2026-11. Compaction is a beta: the client calls again after it.
_STOPS: dict[str, StopKind] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    # anthropic 2.9, 2026-11-18.
    "max_messages": "length",
    "steered": "pause",
    "pause_turn": "pause",
    "compaction": "pause",
    "refusal": "refusal",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
}

# The status that an error inside a stream would have had.
STATUSES = {
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
    # One cloud wraps the stream in its own frames and sends errors as exceptions.
    "validationexception": 400,
    "accessdeniedexception": 403,
    "throttlingexception": 429,
    "internalserverexception": 500,
    "modelstreamerrorexception": 500,
    "serviceunavailableexception": 503,
    "modeltimeoutexception": 504,
}

_REQUEST_IDS = ("request-id", "x-request-id", "x-amzn-requestid", "x-goog-request-id", "cf-ray")


def map_stop_reason(raw: str) -> StopKind:
    """Return our name for a stop reason."""
    return _STOPS.get(raw.lower(), "unknown")


def decode_error(status: int, headers: Mapping[str, str], body: bytes, target: Target) -> ProviderError:
    """Build the error for a response with this status, whatever its body looks like."""
    document = parse_or_none(body)
    if isinstance(document, list) and document:
        document = document[0]
    error: Any = document
    request_id: str | None = None
    if isinstance(document, dict):
        error = document.get("error") or document.get("Message") or document
        request_id = _to_text(document.get("request_id"))
    return build_error(status, headers, error, body, target, request_id)


def build_error(
    status: int, headers: Mapping[str, str], error: Any, body: bytes, target: Target, request_id: str | None = None
) -> ProviderError:
    """Build an error from the server's error object or sentence. Status 200 means an error inside a stream."""
    message, code = _read_message_and_code(error)
    if status < 400 and code is not None:
        status = STATUSES.get(code.lower(), status)
    return from_status(
        status,
        provider=target.provider.name,
        message=message,
        code=code,
        request_id=request_id or next((headers[name] for name in _REQUEST_IDS if name in headers), None),
        body=body,
    )


def _read_message_and_code(error: Any) -> tuple[str, str | None]:
    if not isinstance(error, dict):
        return (error if isinstance(error, str) else "", None)
    message = error.get("message") or error.get("detail") or error.get("error") or ""
    if isinstance(message, dict):
        return _read_message_and_code(message)
    code = next((error[name] for name in ("type", "code", "status") if error.get(name) not in (None, "")), None)
    return message if isinstance(message, str) else msgspec.json.encode(message).decode(), _to_text(code)


def _to_text(value: object) -> str | None:
    return None if value is None else str(value)
