"""Reads what front ends post: fields, pictures and files, and returned state (`TurnReader`).

Everything here was in a browser: nothing is believed but what a token proves, and no address is opened.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from asides.history.turns import make_ids_unique
from asides.intake.objects.plain_values import to_plain
from asides.integrations.ui_state import PostedState
from asides.values.attachments import split_data_url
from asides.values.error_words import describe_type
from asides.values.errors import ConfigError
from asides.values.messages import Message
from asides.values.parts import File, Image, Part, Text, ToolCall, ToolResult, is_too_deep
from asides.values.thinking import Thought, ThoughtKind

_NOT_BASE64 = "the data of a picture or a file is not base64."
_WEB = re.compile(r"(?i)https?://")


class TurnReader:
    """One turn of the model as it is read: its parts in order, then the results of its calls."""

    def __init__(self, state: PostedState) -> None:
        self._state = state
        self._parts: list[Part] = []
        self._results: list[ToolResult] = []

    def add(self, part: Part) -> None:
        """Add a part that came without state."""
        self._parts.append(part)

    def add_result(self, result: ToolResult) -> None:
        """Add the result of a call."""
        self._results.append(result)

    def add_thought(self, text: str, kind: object, token: object) -> None:
        """Add a thought, or the token of a part that the reader did not see. A thought without a token has its text
        alone, which is enough for providers that ask for the text back.
        """
        seals = self._state.read_token(token)
        if seals or text.strip():
            known: ThoughtKind = "summary" if kind == "summary" else "raw"
            # Text beside a token that is not ours: no provider may get it as its own.
            replayable = bool(seals) or not isinstance(token, str)
            self._parts.append(Thought(text, known, "field", seals=seals, replayable=replayable))

    def add_text(self, text: str, token: object) -> None:
        """Add text of the answer."""
        seals = self._state.read_token(token)
        if text or seals:
            self._parts.append(Text(text, seals))

    def add_call(self, call: ToolCall, token: object) -> None:
        """Add a call."""
        self._parts.append(msgspec.structs.replace(call, seals=self._state.read_token(token)))

    def add_server_tool(self, token: object) -> None:
        """Add a tool that the provider ran, if its state was returned. Without it the tool cannot be sent."""
        self.add_thought("", None, token)

    def build(self) -> list[Message]:
        """The messages of the turn. Tools that ran side by side may have finished in any order."""
        order = {part.id: place for place, part in enumerate(self._parts) if isinstance(part, ToolCall)}
        self._results.sort(key=lambda result: order.get(result.call_id, len(self._parts)))
        turns = self._state.restore(Message("assistant", tuple(self._parts))) if self._parts else ()
        return [*filter(None, map(_drop_empty, turns)), *(Message("tool", (result,)) for result in self._results)]


def _drop_empty(turn: Message) -> Message | None:
    """The turn without texts that were nothing but a place for a token."""
    parts = tuple(part for part in turn.parts if not isinstance(part, Text) or part.text or part.seals)
    return msgspec.structs.replace(turn, parts=parts) if parts else None


def finish_history(messages: list[Message]) -> tuple[Message, ...]:
    """The history, with ids of calls that differ: some models count them from the start in every turn."""
    if not messages:
        raise ConfigError("there is no message. Pass the messages that the front end posted.")
    return tuple(make_ids_unique(messages))


# --- fields -----------------------------------------------------------------------------------------------------------


def open_model(value: object) -> Any:
    """A value of a protocol's own package as plain JSON; others unchanged."""
    return to_plain(value) if hasattr(type(value), "model_dump") else value


def find_messages(given: object) -> list[Any]:
    """The list of messages: itself, or in the body of a request."""
    value: Any = open_model(given)
    if isinstance(value, (bytes, bytearray, str)):
        value = _read_json(value)
    if isinstance(value, Mapping):
        value = value.get("messages")
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)):
        return [open_model(message) for message in value]
    raise ConfigError(
        f"a front end posts a list of messages, or an object that holds it, not {describe_type(value)}. Pass "
        "the body of its request."
    )


def _read_json(text: bytes | bytearray | str) -> Any:
    try:
        encoded = text.encode() if isinstance(text, str) else bytes(text)
        if not is_too_deep(encoded):
            return msgspec.json.decode(encoded)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        pass
    raise ConfigError("the body of the request is not JSON. Pass the body as the front end posted it.")


def get_text(holder: Mapping[str, Any], field: str) -> str:
    """A text that must be there."""
    value = holder.get(field)
    if not isinstance(value, str):
        raise ConfigError(f"{field} is text, not {describe_type(value)}.")
    return value


def get_mapping(holder: object, field: str) -> Mapping[str, Any]:
    """An object; an empty one where there is none."""
    value = holder.get(field) if isinstance(holder, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def encode_json(value: object) -> str:
    """A value as JSON text."""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        raise ConfigError("a value cannot be written as JSON.") from None


def make_call(call_id: str, name: str, given: object, *, custom: bool = False) -> ToolCall:
    """A call with these arguments: an object, or text that is not one."""
    if given is None:
        return ToolCall(call_id, name)
    if isinstance(given, Mapping):
        return ToolCall(call_id, name, dict(given))
    raw = given if isinstance(given, str) else encode_json(given)
    return ToolCall(call_id, name, {}, raw, custom=custom)


# --- pictures and files -----------------------------------------------------------------------------------------------


def read_media(url: str, media_type: object, name: object = None) -> Image | File:
    """A picture or a file from its address. The address is given to the provider and never opened here."""
    kind = media_type if isinstance(media_type, str) else ""
    if url[:5].lower() == "data:":
        if (source := split_data_url(url)) is None or source.data is None:
            raise ConfigError(_NOT_BASE64)
        return make_media(source.data, kind or source.media_type or "", name)
    if not _WEB.match(url):
        raise ConfigError("the url of a file is https:, http: or data:. Upload the file, or inline it.")
    file_name = name if isinstance(name, str) and name else "file"
    if kind.startswith("image/"):
        return Image(url=url, media_type=kind)
    return File(name=file_name, url=url, media_type=kind or "application/octet-stream")


def make_media(data: bytes, media_type: str, name: object = None) -> Image | File:
    """A picture or a file from its bytes."""
    if media_type.startswith("image/"):
        return Image(data=data, media_type=media_type)
    file_name = name if isinstance(name, str) and name else "file"
    return File(name=file_name, data=data, media_type=media_type or "application/octet-stream")


def read_base64(text: str) -> bytes:
    """The bytes of base64."""
    try:
        return b64decode(text, validate=True)
    except (NotBase64, ValueError):
        raise ConfigError(_NOT_BASE64) from None
