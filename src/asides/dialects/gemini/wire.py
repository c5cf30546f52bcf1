"""The parts of a generateContent response that are read, as private structs: lenient, minimal, made for the hot path.

Not here: what the fields mean.
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.values.usage import Usage, normalise_usage

NOTHING = msgspec.Raw(b"null")


class PartialArg(msgspec.Struct, rename="camel"):
    """A piece of one argument of a call that is still being made."""

    json_path: str = "$"
    string_value: str | None = None
    number_value: float | int | None = None
    bool_value: bool | None = None
    null_value: Any = msgspec.UNSET
    will_continue: bool | None = None


class FunctionCall(msgspec.Struct, rename="camel"):
    """A call, whole, or a piece of one."""

    name: str | None = None
    id: str | None = None
    args: Any = None
    partial_args: list[PartialArg] | None = None
    will_continue: bool | None = None


class Blob(msgspec.Struct, rename="camel"):
    """Bytes inside a response."""

    mime_type: str = ""
    data: str = ""


class FileData(msgspec.Struct, rename="camel"):
    """Bytes somewhere else."""

    mime_type: str = ""
    file_uri: str = ""


class Part(msgspec.Struct, rename="camel"):
    """One part of the content. What has none of these is looked at again, as it came."""

    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: FunctionCall | None = None
    inline_data: Blob | None = None
    file_data: FileData | None = None


class Content(msgspec.Struct):
    """What the model said so far, or more of it."""

    parts: list[Part] | None = None


class Candidate(msgspec.Struct, rename="camel"):
    """One answer of possibly several."""

    index: int | None = None
    content: Content | None = None
    finish_reason: str | None = None
    grounding_metadata: msgspec.Raw = NOTHING
    url_context_metadata: msgspec.Raw = NOTHING
    citation_metadata: msgspec.Raw = NOTHING


class WireUsage(msgspec.Struct, rename="camel"):
    """The counts; each chunk of a stream has all that are known by then."""

    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    cached_content_token_count: int | None = None
    total_token_count: int | None = None


class PromptFeedback(msgspec.Struct, rename="camel"):
    """Why a prompt was not answered."""

    block_reason: str | None = None
    block_reason_message: str | None = None


class Chunk(msgspec.Struct, rename="camel"):
    """A whole response, or one event of a stream: they are the same."""

    candidates: list[Candidate] | None = None
    prompt_feedback: PromptFeedback | None = None
    usage_metadata: WireUsage | None = None
    model_version: str | None = None
    response_id: str | None = None
    error: Any = None


CHUNKS = msgspec.json.Decoder(Chunk)


class _RawContent(msgspec.Struct):
    parts: list[msgspec.Raw] = []


class _RawCandidate(msgspec.Struct):
    content: _RawContent | None = None


class _RawChunk(msgspec.Struct):
    candidates: list[_RawCandidate] = []


_RAW_CHUNKS = msgspec.json.Decoder(_RawChunk)


def compact(raw: msgspec.Raw) -> str:
    """JSON as it came, without the white space, which whole bodies have and streams have not."""
    return msgspec.json.format(bytes(raw), indent=-1).decode()


def raw_part(payload: bytes, candidate: int, place: int) -> str:
    """A part as it came, in the compact form; "{}" where it cannot be found again."""
    try:
        content = _RAW_CHUNKS.decode(payload).candidates[candidate].content
        return compact(content.parts[place]) if content is not None else "{}"
    except (msgspec.ValidationError, IndexError):
        return "{}"


def usage_of(usage: WireUsage) -> Usage:
    """The counts in our one meaning of them: here the thinking stands outside the output."""
    return normalise_usage(
        input=usage.prompt_token_count,
        output=usage.candidates_token_count,
        thinking=usage.thoughts_token_count,
        cached=usage.cached_content_token_count,
        total=usage.total_token_count,
        excludes_thinking=True,
    )
