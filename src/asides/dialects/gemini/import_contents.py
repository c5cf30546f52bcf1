"""Imports contents, as clients write them: `import_contents(contents)`.

Lenient, but an object that is not a content is refused. Not here: the rest of a request (server/read_request), and
whether the history can be sent as it is (history/plan).
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from asides.dialects.gemini.decode import SERVER_TOOLS, SIGNATURE
from asides.values.errors import ConfigError
from asides.values.messages import File, Image, Message, Part, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Seal, Thought
from asides.wire.lenient import is_marked


def import_contents(contents: Iterable[Any]) -> tuple[Message, ...]:
    """Import a history. Raises ConfigError with the index of the content that is wrong."""
    importer = _Importer()
    imported: list[Message] = []
    for place, content in enumerate(contents):
        try:
            imported += importer.import_content(content)
        except ConfigError as problem:
            raise ConfigError(f"contents[{place}]: {problem}") from None
    return tuple(imported)


def import_texts(content: Any) -> list[str]:
    """Import the texts of a system instruction: a content, or a plain text."""
    if isinstance(content, str):
        return [content] if content else []
    texts = [part.get("text") for part in _read_parts(content)]
    return [text for text in texts if isinstance(text, str) and text]


class _Importer:
    """Contents in order. A result without an id belongs to the first call of its function that has no result yet."""

    def __init__(self) -> None:
        self._waiting: list[ToolCall] = []
        self._calls = 0

    def import_content(self, content: Any) -> list[Message]:
        parts = _read_parts(content)
        match content.get("role", "user"):
            case "model":
                self._waiting = []
                return [Message("assistant", tuple(self._import_model_part(part) for part in parts))]
            case "user" | "function" | "tool":
                return self._import_user(parts)
            case role:
                raise ConfigError(f"the role {role!r} is not known; use user or model.")

    def _import_user(self, parts: list[dict[str, Any]]) -> list[Message]:
        results: list[Part] = []
        others: list[Part] = []
        for part in parts:
            answer = part.get("functionResponse")
            if isinstance(answer, Mapping):
                results.append(self._import_tool_result(answer))
            else:
                others.append(_import_user_part(part))
        messages = [Message("tool", tuple(results))] if results else []
        return [*messages, Message("user", tuple(others))] if others or not results else messages

    def _import_tool_result(self, answer: Mapping[str, Any]) -> ToolResult:
        name, call_id = answer.get("name"), answer.get("id")
        if not isinstance(name, str):
            raise ConfigError("a functionResponse has no name.")
        call = next((one for one in self._waiting if one.name == name and call_id in (None, one.id)), None)
        if call is not None:
            self._waiting.remove(call)
        call_id = call_id if isinstance(call_id, str) else call.id if call is not None else f"call_{name}"
        response = answer.get("response")
        match response:
            case {"output": str() as text, **beside} | {"result": str() as text, **beside} if not beside:
                return ToolResult(call_id, text, name)
            case {"error": str() as text, **beside} if not beside:
                return ToolResult(call_id, text, name, is_error=True)
            case _:
                return ToolResult(call_id, msgspec.json.encode(response).decode() if response is not None else "", name)

    def _import_model_part(self, part: dict[str, Any]) -> Part:
        seals = _make_seals(part)
        text, call = part.get("text"), part.get("functionCall")
        if isinstance(call, Mapping):
            return self._import_tool_call(call, seals)
        if isinstance(text, str):
            if is_marked(part.get("thought")):
                return Thought(text, "summary" if text.strip() else "hidden", "block", seals=seals)
            return Text(text, seals)
        media = _import_media(part)
        if media is not None:
            return msgspec.structs.replace(media, seals=seals)
        raw = msgspec.json.encode(part).decode()
        name = next((name for name in SERVER_TOOLS if name in part), None)
        return UnknownPart(raw, seals=seals) if name is None else ServerTool(name, json=raw, seals=seals)

    def _import_tool_call(self, call: Mapping[str, Any], seals: tuple[Seal, ...]) -> ToolCall:
        name, call_id, arguments = call.get("name"), call.get("id"), call.get("args")
        if not isinstance(name, str):
            raise ConfigError("a functionCall has no name.")
        self._calls += 1
        imported = ToolCall(
            call_id if isinstance(call_id, str) and call_id else f"call_{self._calls}_{name}",
            name,
            dict(arguments) if isinstance(arguments, Mapping) else {},
            seals=seals,
        )
        self._waiting.append(imported)
        return imported


def _read_parts(content: Any) -> list[dict[str, Any]]:
    if not isinstance(content, Mapping):
        raise ConfigError("a content is an object with a role and parts.")
    parts: Any = content.get("parts", [])
    if isinstance(parts, dict):
        parts = [parts]  # the API takes one part without its list
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise ConfigError("parts is a list of objects.")
    return parts


def _import_user_part(part: dict[str, Any]) -> Part:
    text = part.get("text")
    if isinstance(text, str):
        return Text(text)
    return _import_media(part) or UnknownPart(msgspec.json.encode(part).decode())


def _import_media(part: dict[str, Any]) -> Image | File | None:
    match part:
        case {"inlineData": {"mimeType": str() as media_type, "data": str() as encoded}}:
            try:
                data = b64decode(encoded.replace("-", "+").replace("_", "/"), validate=True)
            except (NotBase64, ValueError):
                raise ConfigError("the data of an inlineData part is not base64.") from None
            if media_type.startswith("image/"):
                return Image(data=data, media_type=media_type)
            return File(data=data, media_type=media_type)
        case {"fileData": {"fileUri": str() as address, **described}}:
            media_type = str(described.get("mimeType", "application/pdf"))
            if media_type.startswith("image/"):
                return Image(url=address, media_type=media_type)
            return File(url=address, media_type=media_type)
        case _:
            return None


def _make_seals(part: dict[str, Any]) -> tuple[Seal, ...]:
    signature = part.get("thoughtSignature")
    return (Seal(SIGNATURE, signature),) if isinstance(signature, str) and signature else ()
