"""A history as a JSON document of its own form: `to_document(messages) → bytes`, `from_document(bytes) → Document`.

The form has a version; what a later one adds is kept as it came, or refused with advice, and never lost unseen. What
has its default is not written. Not here: where documents are kept (store), and other people's forms (shapes).
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import msgspec

from asides.history.redact import withheld
from asides.providers.provider import Provider
from asides.values.errors import ConfigError
from asides.values.messages import Message, Part, UnknownPart
from asides.values.notices import Notice
from asides.values.thinking import Origin

VERSION = 1
"""The version of the form that is written here, and the newest that is read."""

_NAME = "asides"
_FIELDS = (_NAME, "system", "keeps_thinking", "metadata", "messages")
_TAGS: dict[str, type[msgspec.Struct]] = {str(kind.__struct_config__.tag): kind for kind in get_args(Part)}
_MESSAGE_FIELDS = frozenset(Message.__struct_fields__)
# Whose a part is that a later version wrote: nobody's that a request could go to.
_LATER = Origin(f"{_NAME}-document", "", "")
_WHERE = re.compile(r"`(\$[^`]*)`")


class Document(msgspec.Struct, frozen=True):
    """What a document holds."""

    messages: tuple[Message, ...]
    system: str | None = None
    metadata: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    """What the writer put beside the messages."""
    keeps_thinking: bool = False
    """Whether readable thinking was kept."""
    notices: tuple[Notice, ...] = ()
    """What of it is from a later version, and was kept without being understood."""

    def __repr__(self) -> str:
        return f"Document(messages={len(self.messages)}, keeps_thinking={self.keeps_thinking})"


def to_document(
    messages: Sequence[Message],
    *,
    system: str | None = None,
    keep_thinking: bool = False,
    metadata: Mapping[str, Any] | None = None,
    rows: Sequence[Provider] = (),
) -> bytes:
    """The messages as JSON, with what their providers want back; readable thinking only if it is to be kept.

    `metadata` is the caller's: a mapping of JSON values that comes back as it is. `rows` are the caller's own.
    """
    kept = tuple(messages) if keep_thinking else withheld(messages, rows=rows)
    document: dict[str, Any] = {_NAME: VERSION}
    if system is not None:
        document["system"] = system
    if keep_thinking:
        document["keeps_thinking"] = True
    if metadata:
        document["metadata"] = dict(metadata)
    document["messages"] = [_written(message) for message in kept]
    return _encoded(document)


def write_message(message: Message) -> bytes:
    """One message as it stands in a document, with all that is in it: for who keeps messages one by one."""
    return _encoded(_written(message))


def from_document(document: bytes | str) -> Document:
    """What a document holds. Raises ConfigError, without repeating any of it, when it is none that can be read."""
    fields = _object_in(document)
    version = fields.get(_NAME)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ConfigError(
            "this is no saved conversation: it names no version. To do: pass what to_document wrote; lists of messages "
            "in other forms are for import_messages."
        )
    if version > VERSION:
        raise ConfigError(
            f"this conversation was saved by a later asides (version {version} of the document; this one reads up to "
            f"{VERSION}). To do: upgrade asides, or save it again with the older one."
        )
    notices = [_later("field", name) for name in fields if name not in _FIELDS]
    told = fields.get("messages")
    if not isinstance(told, list):
        raise ConfigError("the saved conversation has no list of messages. To do: look whether the file was cut.")
    messages = tuple(_read(message, f"messages[{place}]", notices) for place, message in enumerate(told))
    try:
        head = msgspec.convert({name: fields[name] for name in _FIELDS[1:-1] if name in fields}, _Head)
    except msgspec.ValidationError as problem:
        raise _misread("the head of the saved conversation", problem) from None
    return Document(messages, head.system, head.metadata, head.keeps_thinking, tuple(dict.fromkeys(notices)))


def read_message(message: bytes | str) -> tuple[Message, tuple[Notice, ...]]:
    """The message that `write_message` wrote, and what of it is from a later version."""
    notices: list[Notice] = []
    return _read(_object_in(message), "the saved message", notices), tuple(dict.fromkeys(notices))


class _Head(msgspec.Struct):
    system: str | None = None
    metadata: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    keeps_thinking: bool = False


# --- writing ------------------------------------------------------------------------------------------------------


def _encoded(value: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise ConfigError(
            "the conversation cannot be written as JSON. To do: look in metadata and in the arguments of calls for a "
            "value of a type that JSON has not, or for text with half a character (a lone surrogate)."
        ) from None


def _written(value: Any) -> Any:
    """A value in JSON's types, without what is as it would be anyway: later fields do not change earlier documents."""
    if isinstance(value, UnknownPart) and value.origin == _LATER:
        return msgspec.Raw(value.json.encode())
    if isinstance(value, msgspec.Struct):
        fields: dict[str, Any] = {}
        if (tag := type(value).__struct_config__.tag) is not None:
            fields["type"] = tag
        for field in msgspec.structs.fields(value):
            held = getattr(value, field.name)
            default = field.default_factory() if callable(field.default_factory) else field.default
            if held != default or type(held) is not type(default):
                fields[field.encode_name] = _written(held)
        return fields
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return [_written(item) for item in value] if isinstance(value, tuple) else value


# --- reading ------------------------------------------------------------------------------------------------------


def _object_in(document: bytes | str) -> dict[str, Any]:
    try:
        fields = msgspec.json.decode(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ConfigError(
            "the saved conversation is not JSON. To do: look whether the file was cut or edited."
        ) from None
    if not isinstance(fields, dict):
        raise ConfigError("the saved conversation is no JSON object. To do: pass what to_document wrote.")
    return fields


def _read(told: object, where: str, notices: list[Notice]) -> Message:
    if not isinstance(told, dict):
        raise ConfigError(f"{where} is no object. To do: look whether the file was edited.")
    notices += [_later("field", name) for name in told if name not in _MESSAGE_FIELDS]
    parts = told.get("parts", [])
    if not isinstance(parts, list):
        raise ConfigError(f"{where} has no list of parts. To do: look whether the file was edited.")
    try:
        message = msgspec.convert({**told, "parts": []}, Message)
    except msgspec.ValidationError as problem:
        raise _misread(where, problem) from None
    read = tuple(_part(part, f"{where}.parts[{place}]", notices) for place, part in enumerate(parts))
    return msgspec.structs.replace(message, parts=read)


def _part(told: object, where: str, notices: list[Notice]) -> Part:
    if not isinstance(told, dict) or not isinstance(tag := told.get("type"), str):
        raise ConfigError(f"{where} has no type. To do: look whether the file was edited.")
    kind = _TAGS.get(tag)
    if kind is None:
        notices.append(_later("part", tag))
        return UnknownPart(msgspec.json.encode(told).decode(), _LATER)
    notices += [_later("field", name) for name in told if name != "type" and name not in kind.__struct_fields__]
    try:
        part: Part = msgspec.convert(told, Part)
    except msgspec.ValidationError as problem:
        raise _misread(where, problem) from None
    return part


def _later(what: str, name: str) -> Notice:
    if what == "part":
        return Notice("later_part", f"a part of type {name[:40]!r} is from a later version; it is kept and not sent")
    return Notice("later_field", f"the field {name[:40]!r} is from a later version and was left out")


def _misread(where: str, problem: msgspec.ValidationError) -> ConfigError:
    # Its own words may repeat the value.
    found = _WHERE.search(str(problem))
    place = f" at {found[1]}" if found else ""
    return ConfigError(f"{where} does not read{place}. To do: look whether the file was edited.")
