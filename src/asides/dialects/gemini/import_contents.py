"""Imports contents, as clients write them: `import_contents(contents)`.

Lenient, but an object that is not a content is refused.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from asides.dialects.gemini.decode import SERVER_TOOLS, SIGNATURE, build_file
from asides.dialects.message_encoder import STAND_IN
from asides.dialects.verbatim import keep_source
from asides.values.errors import ConfigError
from asides.values.messages import Message, Role
from asides.values.parts import File, Image, Part, ServerTool, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Seal, Thought
from asides.wire.lenient import is_marked, read_base64, unify_base64

USER_ROLES = ("function", "tool")
"""Other names of the role of a turn with results."""
PLACEHOLDERS = (STAND_IN, "context_engineering_is_the_way_to_go")
"""The documented words in place of a signature, for calls that have none."""


def import_contents(contents: Iterable[Any], waiting: Iterable[ToolCall] = ()) -> tuple[Message, ...]:
    """Import a history. Raises ConfigError with the index of the content that is wrong.

    `waiting` are calls before it that have no result yet.
    """
    importer = _Importer(list(waiting))
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


def has_other_parts(content: Any) -> bool:
    """Whether a system instruction has parts that are not text."""
    return any(not isinstance(part.get("text"), str) for part in _read_parts(content))


class _Importer:
    """Contents in order. A result without an id belongs to the first call of its function that has no result yet.

    A result that comes a second time is left out: some clients resume a history with every result twice.
    """

    def __init__(self, waiting: list[ToolCall]) -> None:
        self._waiting = waiting
        self._answered: dict[str, Mapping[str, Any]] = {}
        """The results so far of the last turn with calls, by the id of the call."""
        self._nameless: set[str] = set()
        """The ids that were made up for calls without one."""
        self._is_model_turn = False
        self._calls = 0

    def import_content(self, content: Any) -> list[Message]:
        text = _find_only_text(content)
        if text and content["role"] == "user":
            self._is_model_turn = False
            return [Message("user", (Text(text),))]
        if text and content["role"] == "model":
            self._begin_model_turn()
            return [Message("assistant", (Text(text),))]
        parts = _read_parts(content)
        match content.get("role", "user"):
            case "model":
                self._begin_model_turn()
                message = Message("assistant", tuple(self._import_model_part(part) for part in parts))
                return [keep_source(message, "gemini", parts, _list_beside(content), absent=_find_absent(content))]
            case "user" | "function" | "tool":
                self._is_model_turn = False
                return self._import_user(parts, content)
            case role:
                raise ConfigError(f"the role {role!r} is not known; use user or model.")

    def _begin_model_turn(self) -> None:
        if not self._is_model_turn:  # a stream may come back with a content for each of its chunks
            self._waiting, self._answered = [], {}
        self._is_model_turn = True

    def _import_user(self, parts: list[dict[str, Any]], content: Mapping[str, Any]) -> list[Message]:
        results: list[tuple[Part, Any]] = []
        others: list[tuple[Part, Any]] = []
        repeated = False
        for part in parts:
            answer = part.get("functionResponse")
            if not isinstance(answer, Mapping):
                others.append((_import_user_part(part), part))
            elif (result := self._import_tool_result(answer)) is not None:
                results.append((result, part))
            else:
                repeated = True
        has_user = others or not (results or repeated)
        split: list[tuple[Role, list[tuple[Part, Any]]]] = []
        if results:
            split.append(("tool", results))
        if has_user:
            split.append(("user", others))
        beside, absent = _list_beside(content), _find_absent(content)
        if content.get("role") in USER_ROLES:
            beside["role"] = content["role"]
        return [
            keep_source(
                Message(role, tuple(part for part, _ in some)),
                "gemini",
                [raw for _, raw in some],
                beside,
                absent=absent,
            )
            for role, some in split
        ]

    def _import_tool_result(self, answer: Mapping[str, Any]) -> ToolResult | None:
        """Import a result; None if it is a duplicate."""
        name, given_id = answer.get("name"), answer.get("id")
        if not isinstance(name, str):
            raise ConfigError("a functionResponse has no name.")
        given_id = given_id if isinstance(given_id, str) and given_id else None
        call = self._find_call(name, given_id)
        if call is None and self._is_repeated(answer, name, given_id):
            return None
        if call is not None:
            self._waiting.remove(call)
        call_id = call.id if call is not None else given_id or f"call_{name}"
        self._answered[call_id] = answer
        response = answer.get("response")
        text, is_error = read_response(response)
        media = _import_result_media(answer.get("parts"))
        content: Any = text if not media else (*((Text(text),) if text else ()), *media)
        is_json = isinstance(response, Mapping) and text not in response.values()
        return ToolResult(call_id, content, name, is_error=is_error, is_json=is_json)

    def _find_call(self, name: str, given_id: str | None) -> ToolCall | None:
        """Find the call of a result: by its id, or by its function if one of the two has no id."""
        waiting = [call for call in self._waiting if call.name == name]
        if given_id is None:
            return next(iter(waiting), None)
        found = next((call for call in waiting if call.id == given_id), None)
        return found or next((call for call in waiting if call.id in self._nameless), None)

    def _is_repeated(self, answer: Mapping[str, Any], name: str, given_id: str | None) -> bool:
        if given_id is not None and given_id in self._answered:
            return True
        said = (name, answer.get("response"))
        return any((before.get("name"), before.get("response")) == said for before in self._answered.values())

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
        if not isinstance(call_id, str) or not call_id:
            call_id = f"call_{self._calls}_{name}"
            self._nameless.add(call_id)
        imported = ToolCall(call_id, name, dict(arguments) if isinstance(arguments, Mapping) else {}, seals=seals)
        self._waiting.append(imported)
        return imported


def _import_result_media(parts: Any) -> list[Image | File]:
    """Import the pictures and files beside the JSON of a result."""
    if not isinstance(parts, list):
        return []
    found = [_import_media(part) for part in parts if isinstance(part, dict)]
    return [media for media in found if media is not None]


def _list_beside(content: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name not in ("role", "parts")}


def _find_absent(content: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(name for name in ("role", "parts") if name not in content)


def read_response(response: Any) -> tuple[str, bool]:
    """Read the text of a result, and whether it is an error. A text alone is often wrapped in an object."""
    match response:
        case {"output": str() as text, **beside} | {"result": str() as text, **beside} if not beside:
            return text, False
        case {"name": str(), "content": str() as text, **beside} if not beside:
            return text, False
        case {"error": str() as text, **beside} if not beside:
            return text, True
        case None:
            return "", False
        case _:
            return msgspec.json.encode(response).decode(), False


def _find_only_text(content: Any) -> str | None:
    """The text of a content that is a role and a text, as most are: it needs no source. None for any other."""
    if type(content) is not dict or len(content) != 2 or "role" not in content:
        return None
    match content.get("parts"):
        case [{"text": str() as text, **more}] if not more:
            return text
        case _:
            return None


def _read_parts(content: Any) -> list[dict[str, Any]]:
    if not isinstance(content, Mapping):
        raise ConfigError("a content is an object with a role and parts.")
    parts: Any = content.get("parts", [])
    if isinstance(parts, dict):
        parts = [parts]  # the API accepts one part without its list
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
            data = read_base64(encoded)
            if data is None:
                raise ConfigError("the data of an inlineData part is not base64.")
            if media_type.startswith("image/"):
                return Image(data=data, media_type=media_type)
            return File(data=data, media_type=media_type)
        case {"fileData": {"fileUri": str() as address, **described}}:
            media_type = str(described.get("mimeType") or "")
            if "://" in address and media_type.startswith("image/"):
                return Image(url=address, media_type=media_type)
            return build_file(address, media_type)
        case _:
            return None


def _make_seals(part: dict[str, Any]) -> tuple[Seal, ...]:
    signature = part.get("thoughtSignature")
    return (Seal(SIGNATURE, unify_signature(signature)),) if isinstance(signature, str) and signature else ()


def unify_signature(signature: str) -> str:
    """Return a signature in the standard alphabet, with padding: clients write it in either alphabet.

    A placeholder stays a word. Clients that hold signatures as bytes encode it too.
    """
    if signature in PLACEHOLDERS:
        return signature
    data = read_base64(signature)
    if (word := next((word for word in PLACEHOLDERS if word.encode() == data), None)) is not None:
        return word
    standard = "" if data is None else b64encode(data).decode()
    # Text that only looks like base64 does not come back as itself.
    is_same = unify_base64(standard) == unify_base64(signature)
    return standard if is_same else signature
