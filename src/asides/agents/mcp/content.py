"""What a server's tool gave back, as the result that a model is told. Pure. Not here: the call."""

from __future__ import annotations

from base64 import b64decode
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from asides.agents.tools.results import NOTHING
from asides.values.messages import File, Image, Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from mcp.types import BlobResourceContents, CallToolResult, ContentBlock, ResourceLink, TextResourceContents

_SILENT_FAILURE = "it failed, and the server does not say why"


def convert_result(call: ToolCall, given: CallToolResult) -> ToolResult:
    """The result of `call`: plain text where there is only text, else the parts in their order.

    Structured content goes along as JSON, unless the text says the same already.
    """
    parts = [_part(block) for block in given.content]
    if given.structured_content is not None and not _says(parts, given.structured_content):
        parts.append(Text(msgspec.json.encode(given.structured_content).decode()))
    if not parts:
        parts.append(Text(_SILENT_FAILURE if given.is_error else NOTHING))
    texts = [part.text for part in parts if isinstance(part, Text)]
    content = "\n".join(texts) if len(texts) == len(parts) else tuple(parts)
    return ToolResult(call.id, content, name=call.name, is_error=given.is_error)


def failed(call: ToolCall, words: str) -> ToolResult:
    """A result that tells the model why there is none."""
    return ToolResult(call.id, words, name=call.name, is_error=True)


def _part(block: ContentBlock) -> Text | Image | File:
    match block.type:
        case "text":
            return Text(block.text)
        case "image":
            data = _bytes(block.data)
            return Image(data=data, media_type=block.mime_type) if data is not None else _unreadable("image")
        case "audio":
            data = _bytes(block.data)
            name = f"audio.{block.mime_type.rpartition('/')[2]}"
            return File(name, data, media_type=block.mime_type) if data is not None else _unreadable("audio")
        case "resource_link":
            return Text(_link(block))
        case "resource":
            return _resource(block.resource)


def _resource(resource: TextResourceContents | BlobResourceContents) -> Text | Image | File:
    blob: str | None = getattr(resource, "blob", None)
    if blob is None:
        # Its address in front, since the model may be given several and asked about one.
        return Text(f"{resource.uri}\n{getattr(resource, 'text', '')}")
    data = _bytes(blob)
    if data is None:
        return _unreadable("resource")
    media_type = resource.mime_type or "application/octet-stream"
    if media_type.startswith("image/"):
        return Image(data=data, media_type=media_type)
    address = urlsplit(str(resource.uri))
    name = f"{address.netloc}/{address.path}".rstrip("/").rpartition("/")[2]
    return File(name or "file", data, media_type=media_type)


def _link(link: ResourceLink) -> str:
    # As words and not as a file by address: a provider would fetch whatever address the server names.
    described = f": {link.description}" if link.description else ""
    kind = f" ({link.mime_type})" if link.mime_type else ""
    return f"{link.title or link.name}{kind} at {link.uri}{described}"


def _bytes(data: str) -> bytes | None:
    try:
        return b64decode("".join(data.split()), validate=True)
    except ValueError:
        return None


def _unreadable(what: str) -> Text:
    return Text(f"({what}: the data that the server sent does not read)")


def _says(parts: list[Text | Image | File], structured: Any) -> bool:
    """Whether the text is the structured content already: its JSON, or the JSON or the words of its one value, or of
    the items of that, as servers write it for clients that know no structured content."""
    texts = [part.text for part in parts if isinstance(part, Text)]
    meant = [structured]
    if isinstance(structured, dict) and list(structured) == ["result"]:
        meant.append(structured["result"])
    return any(
        (len(texts) == 1 and _is(texts[0], value))
        or (isinstance(value, list) and len(texts) == len(value) and all(map(_is, texts, value)))
        for value in meant
    )


def _is(text: str, value: Any) -> bool:
    if text == value:
        return True
    try:
        return bool(msgspec.json.decode(text) == value)
    except (msgspec.DecodeError, RecursionError):
        return False
