"""The tools of an MCP server as the model sees them: their selection, their names and their results. Pure."""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from asides.agents.tools.results import NOTHING
from asides.values.errors import ConfigError
from asides.values.parts import File, Image, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from mcp.types import BlobResourceContents, CallToolResult, ContentBlock, ResourceLink, TextResourceContents

MAX_NAME_LENGTH = 64
"""Every provider accepts tool names with up to this many characters of a-z A-Z 0-9 _ and -."""

_REFUSED_CHARACTER = re.compile(r"[^a-zA-Z0-9_-]")
_DIGEST_LENGTH = 8
_NO_REASON = "the tool failed, and the server gave no reason"


def sanitize_name(name: str) -> str:
    """Replace each character that providers refuse by `_`."""
    return _REFUSED_CHARACTER.sub("_", name)


def is_selected(name: str, allow: Sequence[str], deny: Sequence[str]) -> bool:
    """Whether the server's name of a tool matches a pattern of `allow` and none of `deny`."""
    return any(fnmatchcase(name, pattern) for pattern in allow) and not any(
        fnmatchcase(name, pattern) for pattern in deny
    )


def build_public_names(server: str, names: Iterable[str]) -> dict[str, str]:
    """Map the server's name of each tool to the one the model sees: `server__tool`, or `tool` without a server.

    A name that providers would refuse is sanitized and cut. A name that was cut, or that collides with another, ends in
    a digest of the full name, so that it is the same in every run.
    """
    full = {name: f"{server}__{name}" if server else name for name in names}
    counts: dict[str, int] = {}
    for name in full.values():
        counts[sanitize_name(name)] = counts.get(sanitize_name(name), 0) + 1
    return {own: _fit_name(name, is_unique=counts[sanitize_name(name)] == 1) for own, name in full.items()}


def _fit_name(full: str, *, is_unique: bool) -> str:
    name = sanitize_name(full)
    if len(name) <= MAX_NAME_LENGTH and (is_unique or name == full):
        return name
    digest = hashlib.sha256(full.encode()).hexdigest()[:_DIGEST_LENGTH]
    return f"{name[: MAX_NAME_LENGTH - _DIGEST_LENGTH - 1]}_{digest}"


def convert_result(call: ToolCall, result: CallToolResult) -> ToolResult:
    """Convert the server's result of a call: to plain text if it is only text, else to its parts in order.

    Structured content is added as JSON, unless the text already has it.
    """
    parts = [_convert_block(block) for block in result.content]
    if result.structured_content is not None and not _has_structured(parts, result.structured_content):
        parts.append(Text(msgspec.json.encode(result.structured_content).decode()))
    if not parts:
        parts.append(Text(_NO_REASON if result.is_error else NOTHING))
    texts = [part.text for part in parts if isinstance(part, Text)]
    content = "\n".join(texts) if len(texts) == len(parts) else tuple(parts)
    return ToolResult(call.id, content, name=call.name, is_error=result.is_error)


def build_error(call: ToolCall, text: str) -> ToolResult:
    """Build an error result for the model."""
    return ToolResult(call.id, text, name=call.name, is_error=True)


def _convert_block(block: ContentBlock) -> Text | Image | File:
    match block.type:
        case "text":
            return Text(block.text)
        case "image":
            data = _decode_base64(block.data)
            return _build_unreadable("image") if data is None else _build_image(data, block.mime_type)
        case "audio":
            data = _decode_base64(block.data)
            name = f"audio.{block.mime_type.rpartition('/')[2]}"
            return File(name, data, media_type=block.mime_type) if data else _build_unreadable("audio")
        case "resource_link":
            return Text(_describe_link(block))
        case "resource":
            return _convert_resource(block.resource)


def _convert_resource(resource: TextResourceContents | BlobResourceContents) -> Text | Image | File:
    blob: str | None = getattr(resource, "blob", None)
    if blob is None:
        # The address comes first, so that the model can distinguish several resources.
        return Text(f"{resource.uri}\n{getattr(resource, 'text', '')}")
    data = _decode_base64(blob)
    if not data:
        return _build_unreadable("resource")
    media_type = resource.mime_type or "application/octet-stream"
    if media_type.startswith("image/"):
        return _build_image(data, media_type)
    address = urlsplit(str(resource.uri))
    name = f"{address.netloc}/{address.path}".rstrip("/").rpartition("/")[2]
    return File(name or "file", data, media_type=media_type)


def _build_image(data: bytes, media_type: str) -> Text | Image:
    try:
        return Image(data=data, media_type=media_type)
    except ConfigError:  # it is empty, or something else than a picture
        return _build_unreadable("image")


def _describe_link(link: ResourceLink) -> str:
    # Text and not a file by URL: a provider would fetch any address that the server names.
    description = f": {link.description}" if link.description else ""
    kind = f" ({link.mime_type})" if link.mime_type else ""
    return f"{link.title or link.name}{kind} at {link.uri}{description}"


def _decode_base64(data: str) -> bytes | None:
    try:
        return b64decode("".join(data.split()), validate=True)
    except ValueError:
        return None


def _build_unreadable(what: str) -> Text:
    return Text(f"({what}: the data that the server sent cannot be decoded)")


def _has_structured(parts: list[Text | Image | File], structured: Any) -> bool:
    """Whether the text already holds the structured content.

    For older clients, servers repeat it as text: as JSON of the whole, of its `result`, or of each item of the result.
    """
    texts = [part.text for part in parts if isinstance(part, Text)]
    values = [structured]
    if isinstance(structured, dict) and list(structured) == ["result"]:
        values.append(structured["result"])
    return any(
        (len(texts) == 1 and _is_same(texts[0], value))
        or (isinstance(value, list) and len(texts) == len(value) and all(map(_is_same, texts, value)))
        for value in values
    )


def _is_same(text: str, value: Any) -> bool:
    if text == value:
        return True
    try:
        return bool(msgspec.json.decode(text) == value)
    except (msgspec.DecodeError, RecursionError):
        return False
