"""The contents of a request, as clients write them, as messages: `read_contents(list)`. Lenient, except with nonsense.

Not here: the rest of a request (read_request), and whether the history can be sent as it is (plan).
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


def import_contents(contents: Iterable[Any]) -> tuple[Message, ...]:
    """A history. An error names the content that is wrong by its place."""
    reader = _Reader()
    read: list[Message] = []
    for place, content in enumerate(contents):
        try:
            read += reader.read(content)
        except ConfigError as problem:
            raise ConfigError(f"contents[{place}]: {problem}") from None
    return tuple(read)


def import_texts(content: Any) -> list[str]:
    """The texts of a system instruction: a content, or a plain text."""
    if isinstance(content, str):
        return [content] if content else []
    texts = [part.get("text") for part in _parts_of(content)]
    return [text for text in texts if isinstance(text, str) and text]


class _Reader:
    """Contents in order: answers without an id belong to the calls that wait for one, first come first served."""

    def __init__(self) -> None:
        self._waiting: list[ToolCall] = []
        self._calls = 0

    def read(self, content: Any) -> list[Message]:
        parts = _parts_of(content)
        match content.get("role", "user"):
            case "model":
                self._waiting = []
                return [Message("assistant", tuple(self._model_part(part) for part in parts))]
            case "user" | "function" | "tool":
                return self._user(parts)
            case role:
                raise ConfigError(f"the role {role!r} is not known; use user or model.")

    def _user(self, parts: list[dict[str, Any]]) -> list[Message]:
        results: list[Part] = []
        said: list[Part] = []
        for part in parts:
            answer = part.get("functionResponse")
            if isinstance(answer, Mapping):
                results.append(self._result(answer))
            else:
                said.append(_said(part))
        messages = [Message("tool", tuple(results))] if results else []
        return [*messages, Message("user", tuple(said))] if said or not results else messages

    def _result(self, answer: Mapping[str, Any]) -> ToolResult:
        name, call_id = answer.get("name"), answer.get("id")
        if not isinstance(name, str):
            raise ConfigError("a functionResponse has no name.")
        waits = (call for call in self._waiting if call.name == name and call_id in (None, call.id))
        call = next(waits, None)
        if call is not None:
            self._waiting.remove(call)
        call_id = call_id if isinstance(call_id, str) else call.id if call is not None else f"call_{name}"
        told = answer.get("response")
        match told:
            case {"output": str() as text, **beside} | {"result": str() as text, **beside} if not beside:
                return ToolResult(call_id, text, name)
            case {"error": str() as text, **beside} if not beside:
                return ToolResult(call_id, text, name, is_error=True)
            case _:
                return ToolResult(call_id, msgspec.json.encode(told).decode() if told is not None else "", name)

    def _model_part(self, part: dict[str, Any]) -> Part:
        seals = _seals(part)
        text, call = part.get("text"), part.get("functionCall")
        if isinstance(call, Mapping):
            return self._call(call, seals)
        if isinstance(text, str):
            if part.get("thought") is True:
                return Thought(text, "summary" if text.strip() else "hidden", "block", seals=seals)
            return Text(text, seals)
        media = _media(part)
        if media is not None:
            return msgspec.structs.replace(media, seals=seals)
        raw = msgspec.json.encode(part).decode()
        name = next((name for name in SERVER_TOOLS if name in part), None)
        return UnknownPart(raw, seals=seals) if name is None else ServerTool(name, json=raw, seals=seals)

    def _call(self, call: Mapping[str, Any], seals: tuple[Seal, ...]) -> ToolCall:
        name, call_id, arguments = call.get("name"), call.get("id"), call.get("args")
        if not isinstance(name, str):
            raise ConfigError("a functionCall has no name.")
        self._calls += 1
        read = ToolCall(
            call_id if isinstance(call_id, str) and call_id else f"call_{self._calls}_{name}",
            name,
            dict(arguments) if isinstance(arguments, Mapping) else {},
            seals=seals,
        )
        self._waiting.append(read)
        return read


def _parts_of(content: Any) -> list[dict[str, Any]]:
    if not isinstance(content, Mapping):
        raise ConfigError("a content is an object with a role and parts.")
    parts: Any = content.get("parts", [])
    if isinstance(parts, dict):
        parts = [parts]  # the API takes one part without its list
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise ConfigError("parts is a list of objects.")
    return parts


def _said(part: dict[str, Any]) -> Part:
    text = part.get("text")
    if isinstance(text, str):
        return Text(text)
    return _media(part) or UnknownPart(msgspec.json.encode(part).decode())


def _media(part: dict[str, Any]) -> Image | File | None:
    match part:
        case {"inlineData": {"mimeType": str() as media_type, "data": str() as told}}:
            try:
                data = b64decode(told.replace("-", "+").replace("_", "/"), validate=True)
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


def _seals(part: dict[str, Any]) -> tuple[Seal, ...]:
    signature = part.get("thoughtSignature")
    return (Seal(SIGNATURE, signature),) if isinstance(signature, str) and signature else ()
