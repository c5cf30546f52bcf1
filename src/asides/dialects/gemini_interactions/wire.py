"""Private structs for the fields that are read from interactions; also step types, usage, stop states and errors.

The structs are lenient, minimal and made for the hot path. The types are those of google-genai 3.3 (2026-11).
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.dialects.gemini.wire import build_error, decode_error
from asides.providers.provider import Target
from asides.values.errors import ProviderError
from asides.values.events import StopKind
from asides.values.usage import Usage, normalise_usage

__all__ = ["build_error", "decode_error"]

NOTHING = msgspec.Raw(b"null")

SAMPLING = {"temperature": "temperature", "top_p": "top_p", "seed": "seed"}
"""Our sampling settings and their names in a request."""

DIALECT = "gemini_interactions"
SIGNATURE = "step_signature"
"""The seal of a thought. It has a name of its own: a signature of generateContent belongs to another kind of part."""
CITED = "citations"
"""The seal of a text that holds its annotations."""

SERVER_TOOLS = (
    *("google_search_call", "google_search_result", "google_maps_call", "google_maps_result"),
    *("code_execution_call", "code_execution_result", "url_context_call", "url_context_result"),
    *("file_search_call", "file_search_result", "mcp_server_tool_call", "mcp_server_tool_result"),
    *("retrieval_call", "retrieval_result", "processing_call", "processing_result"),
)
"""The steps of tools that the provider runs: each call, and each result."""
MEDIA = ("image", "audio", "video", "document")
"""The kinds of content that are not text."""


class Content(msgspec.Struct, gc=False):
    """A text, a picture or another file inside a step."""

    type: str | None = None
    text: str | None = None
    annotations: msgspec.Raw = NOTHING
    data: str | None = None
    mime_type: str | None = None
    uri: str | None = None


class Delta(msgspec.Struct, gc=False):
    """More of a step: of a text, a thought, arguments, or the fields of a tool of the provider."""

    type: str | None = None
    text: str | None = None
    content: Content | None = None
    signature: str | None = None
    arguments: Any = None
    annotations: msgspec.Raw = NOTHING
    data: str | None = None
    mime_type: str | None = None
    uri: str | None = None


class Step(msgspec.Struct):
    """The fields that are read from a step of any type."""

    type: str | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: Any = None
    content: list[msgspec.Raw] | None = None
    summary: list[msgspec.Raw] | None = None
    signature: str | None = None
    is_error: Any = None
    error: Any = None


class WireUsage(msgspec.Struct, gc=False):
    """The counts of tokens."""

    total_input_tokens: int | None = None
    total_output_tokens: int | None = None
    total_thought_tokens: int | None = None
    total_cached_tokens: int | None = None
    total_tool_use_tokens: int | None = None
    total_tokens: int | None = None
    grounding_tool_count: Any = None


class Metadata(msgspec.Struct, gc=False):
    """Fields of a delta about the whole interaction."""

    total_usage: WireUsage | None = None


class Interaction(msgspec.Struct):
    """An interaction: a whole body, or a field of the first and the last event of a stream."""

    id: str | None = None
    model: str | None = None
    agent: str | None = None
    object: Any = None
    status: str | None = None
    steps: list[msgspec.Raw] | None = None
    usage: WireUsage | None = None
    service_tier: Any = None
    continuation_token: str | None = None
    error: Any = None
    errors: Any = None


class StreamEvent(msgspec.Struct, gc=False):
    """One event of a stream. One struct for all types, since the type is known only after reading."""

    event_type: str | None = None
    index: int | None = None
    delta: Delta | None = None
    step: msgspec.Raw = NOTHING
    interaction: Interaction | None = None
    interaction_id: str | None = None
    status: str | None = None
    usage: WireUsage | None = None
    metadata: Metadata | None = None
    error: Any = None


EVENTS = msgspec.json.Decoder(StreamEvent)
INTERACTIONS = msgspec.json.Decoder(Interaction)
STEPS = msgspec.json.Decoder(Step)
CONTENTS = msgspec.json.Decoder(Content)


def read_usage(usage: WireUsage, tier: Any = None) -> Usage:
    """Normalise the counts: the output excludes thinking, and what tools put into the prompt is counted beside it."""
    used = usage.total_input_tokens
    if used is not None and usage.total_tool_use_tokens:
        used += usage.total_tool_use_tokens
    return normalise_usage(
        input=used,
        output=usage.total_output_tokens,
        thinking=usage.total_thought_tokens,
        cached=usage.total_cached_tokens,
        total=usage.total_tokens,
        excludes_thinking=True,
        tool_requests=_count_requests(usage.grounding_tool_count),
        tiers=(tier,),
    )


def _count_requests(counts: Any) -> int:
    """How often tools of the provider were asked, of all kinds: each search has a price."""
    found = [count.get("count") for count in counts if isinstance(count, dict)] if isinstance(counts, list) else []
    return sum(count for count in found if type(count) is int)


# --- states and errors ------------------------------------------------------------------------------------------------

CONTINUES = "requires_continuation"
"""The status of an interaction that stops at the limit of one request."""
# Our stop reasons by the status of an interaction; "stop" is "tool_calls" where there are calls.
_STOPS: dict[str, StopKind] = {
    "completed": "stop",
    "requires_action": "stop",
    "incomplete": "length",
    "budget_exceeded": "length",
    CONTINUES: "length",
    "in_progress": "unknown",
    "queued": "unknown",
}
UNDER_WAY = ("in_progress", "queued")
"""States of an unfinished interaction: a stream continues, or a background task has begun."""
FAILED = ("failed", "cancelled")
STATUSES = (*_STOPS, *FAILED)


def map_status(status: str, *, has_calls: bool) -> StopKind | None:
    """Return our stop reason for a status; None for an unknown one."""
    reason = _STOPS.get(status)
    return "tool_calls" if reason == "stop" and has_calls else reason


def find_failure(interaction: Interaction, payload: bytes, target: Target) -> ProviderError | None:
    """Return the error of an interaction that failed; None for others. `errors` of others are only diagnostics."""
    error = interaction.error
    if not error and interaction.status in FAILED:
        found = interaction.errors
        error = next((one for one in found if isinstance(one, dict)), None) if isinstance(found, list) else None
        error = error or {"message": f"the interaction ended as {interaction.status}", "code": interaction.status}
    return build_error(200, {}, error, payload, target) if error else None
