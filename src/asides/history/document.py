"""A history as a JSON document in our own format: `to_document(messages) → bytes`, `from_document(bytes) → Document`.

The format has a version. Parts that a later version adds are stored unchanged; other additions are reported or refused
with advice. Fields with their default value are not written.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal, get_args

import msgspec

from asides.history.redact import redact
from asides.providers.provider import Provider
from asides.values.errors import ConfigError
from asides.values.messages import Message, Source
from asides.values.notices import Notice
from asides.values.parts import Part, UnknownPart
from asides.values.thinking import SAVED_THOUGHT_FIELDS, Origin, Thought
from asides.values.visibility import ALL_VISIBLE, DEFAULT_VISIBILITY, Visibility

VERSION = 1
"""The version of the format that is written, and the newest that can be read."""

_NAME = "asides"
_FIELDS = (_NAME, "system", "keeps_thinking", "metadata", "messages")
_TAGS: dict[str, type[msgspec.Struct]] = {str(kind.__struct_config__.tag): kind for kind in get_args(Part)}
# Documents of version 0.1 have this tag.
_TAGS["thought"] = Thought
_MESSAGE_FIELDS = frozenset(Message.__struct_fields__)
# The origin of parts that a later version wrote. No provider has this name, so they are never sent.
_LATER = Origin(f"{_NAME}-document", "", "")
_WHERE = re.compile(r"`(\$[^`]*)`")


class Document(msgspec.Struct, frozen=True):
    """The content of a document."""

    messages: tuple[Message, ...]
    system: str | None = None
    metadata: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    """The JSON values that the writer put beside the messages."""
    keeps_thinking: bool = False
    """Whether it was written with readable thinking."""
    notices: tuple[Notice, ...] = ()
    """Notices about fields and parts of a later version, which this one does not understand."""

    def __repr__(self) -> str:
        return f"Document(messages={len(self.messages)}, keeps_thinking={self.keeps_thinking})"


def to_document(
    messages: Sequence[Message],
    *,
    system: str | None = None,
    keep_thinking: bool = False,
    metadata: Mapping[str, Any] | None = None,
    rows: Sequence[Provider] = (),
    visibility: Visibility = DEFAULT_VISIBILITY,
) -> bytes:
    """Encode the messages as JSON, with the seals that their providers require; readable thinking only with
    `keep_thinking`. `visibility` may allow less of either.

    `metadata` is a mapping of JSON values, which `from_document` returns unchanged. `rows` are providers of the caller.
    """
    kept = visibility.find_saved(keep_thinking=keep_thinking)
    keep_thinking = bool(kept - {"sealed"})
    saved = tuple(messages) if len(kept) == len(ALL_VISIBLE) else redact(messages, rows=rows, keep=kept)
    document: dict[str, Any] = {_NAME: VERSION}
    if system is not None:
        document["system"] = system
    if keep_thinking:
        document["keeps_thinking"] = True
    if metadata:
        document["metadata"] = dict(metadata)
    document["messages"] = [_to_builtins(message) for message in saved]
    return _encode(document)


def write_message(message: Message) -> bytes:
    """Encode one message in the document's format, without redaction. For stores that hold messages one by one."""
    return _encode(_to_builtins(message))


def from_document(document: bytes | str) -> Document:
    """Decode a document. Raises a ConfigError, which quotes none of the content, when it cannot be read."""
    fields = _parse_object(document)
    version = fields.get(_NAME)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ConfigError(
            "this is not a saved conversation: it has no version. Pass a document of to_document; for lists of "
            "messages in other formats use import_messages."
        )
    if version > VERSION:
        raise ConfigError(
            f"this conversation was saved by a later asides (version {version} of the document; this one reads up to "
            f"{VERSION}). Upgrade asides, or save it again with the older one."
        )
    notices = [_build_later_notice("field", name) for name in fields if name not in _FIELDS]
    found = fields.get("messages")
    if not isinstance(found, list):
        raise ConfigError("the saved conversation has no list of messages. Check whether the file was cut.")
    messages = tuple(_parse_message(each, f"messages[{place}]", notices) for place, each in enumerate(found))
    try:
        head = msgspec.convert({name: fields[name] for name in _FIELDS[1:-1] if name in fields}, _Head)
    except msgspec.ValidationError as problem:
        raise _build_read_error("the head of the saved conversation", problem) from None
    return Document(messages, head.system, head.metadata, head.keeps_thinking, tuple(dict.fromkeys(notices)))


def read_message(message: bytes | str) -> tuple[Message, tuple[Notice, ...]]:
    """Decode a message of `write_message`. Returns it with notices about fields and parts of a later version."""
    notices: list[Notice] = []
    return _parse_message(_parse_object(message), "the saved message", notices), tuple(dict.fromkeys(notices))


class _Head(msgspec.Struct):
    system: str | None = None
    metadata: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    keeps_thinking: bool = False


# --- writing ------------------------------------------------------------------------------------------------------


def _encode(value: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise ConfigError(
            "the conversation cannot be written as JSON. Look in metadata and in the arguments of calls for a "
            "value that JSON cannot hold, or for text with a lone surrogate (half a character)."
        ) from None


def _to_builtins(value: Any) -> Any:
    """Convert a value to JSON types, without fields that have their default. So new fields change no old document."""
    if isinstance(value, UnknownPart) and value.origin == _LATER:
        return msgspec.Raw(value.json.encode())
    if isinstance(value, msgspec.Struct):
        fields: dict[str, Any] = {}
        if (tag := type(value).__struct_config__.tag) is not None:
            fields["type"] = tag
        for name, encoded_name, default in _list_fields(type(value)):
            content = getattr(value, name)
            if content != default or type(content) is not type(default):
                fields[encoded_name] = _to_builtins(content)
        return fields
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return [_to_builtins(item) for item in value] if isinstance(value, tuple) else value


@cache
def _list_fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, str, Any], ...]:
    """The name, the name in JSON and the default of each field. Cached: msgspec resolves annotations for it."""
    return tuple(
        (field.name, field.encode_name, field.default_factory() if callable(field.default_factory) else field.default)
        for field in msgspec.structs.fields(kind)
        if kind is not Thought or field.name in SAVED_THOUGHT_FIELDS
    )


# --- reading ------------------------------------------------------------------------------------------------------


def _parse_object(document: bytes | str) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ConfigError("the saved conversation is not JSON. Check whether the file was cut or edited.") from None
    if not isinstance(fields, dict):
        raise ConfigError("the saved conversation is not a JSON object. Pass a document of to_document.")
    return fields


def _parse_message(value: object, where: str, notices: list[Notice]) -> Message:
    if not isinstance(value, dict):
        raise ConfigError(f"{where} is not an object. Check whether the file was edited.")
    notices += [_build_later_notice("field", name) for name in value if name not in _MESSAGE_FIELDS]
    parts = value.get("parts", [])
    if not isinstance(parts, list):
        raise ConfigError(f"{where} has no list of parts. Check whether the file was edited.")
    try:
        message = msgspec.convert({**value, "parts": [], "source": None}, Message)
        source = None if value.get("source") is None else msgspec.convert(value["source"], Source)
    except msgspec.ValidationError as problem:
        raise _build_read_error(where, problem) from None
    parsed = tuple(_parse_part(part, f"{where}.parts[{place}]", notices) for place, part in enumerate(parts))
    return msgspec.structs.replace(message, parts=parsed, source=source)


def _parse_part(value: object, where: str, notices: list[Notice]) -> Part:
    if not isinstance(value, dict) or not isinstance(tag := value.get("type"), str):
        raise ConfigError(f"{where} has no type. Check whether the file was edited.")
    kind = _TAGS.get(tag)
    if kind is None:
        notices.append(_build_later_notice("part", tag))
        return UnknownPart(msgspec.json.encode(value).decode(), _LATER)
    notices += [
        _build_later_notice("field", name) for name in value if name != "type" and name not in kind.__struct_fields__
    ]
    try:
        # Not to `Part`: msgspec would read the annotations of the whole union each time.
        part: Part = msgspec.convert({**value, "type": kind.__struct_config__.tag}, kind)  # type: ignore[assignment]
    except msgspec.ValidationError as problem:
        raise _build_read_error(where, problem) from None
    return part


def _build_later_notice(what: Literal["part", "field"], name: str) -> Notice:
    if what == "part":
        return Notice("later_part", f"a part of type {name[:40]!r} is from a later version; it is stored and not sent")
    return Notice("later_field", f"the field {name[:40]!r} is from a later version and was left out")


def _build_read_error(where: str, problem: msgspec.ValidationError) -> ConfigError:
    # The text of the problem may quote the value, so only the place is taken from it.
    found = _WHERE.search(str(problem))
    place = f" at {found[1]}" if found else ""
    return ConfigError(f"{where} cannot be read{place}. Check whether the file was edited.")
