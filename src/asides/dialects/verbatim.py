"""Verbatim unless changed: the JSON that a message was read from, and its way back into a request of the same dialect.

Readers call `keep_source`. Encoders encode the message as always and call `write_source`: the JSON goes back if it says
all that the encoder would write. Unknown fields survive, and structured results stay structured. A source may come from
a file that others wrote, so it is never trusted: it cannot change who speaks, what is said, called or thought.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from asides.providers.quirks import THINKING_FIELDS
from asides.values.messages import Message, Source
from asides.values.parts import ToolCall
from asides.values.thinking import ENVELOPES

Same = Callable[[str, Any, Any], bool]
"""Whether two values of a field mean the same in a dialect. Arguments: its name, our value, theirs."""

Accepts = Callable[[Mapping[str, Any], str], bool]
"""Whether a host accepts a field that the encoder did not write. Arguments: the object, the name of the field."""

_SAID = frozenset(
    {
        *("role", "parts", "tool_calls", "function_call", "functionCall", "functionResponse", "tool_call_id", "images"),
        *("thinking", "thinking_blocks", "redacted_thinking", "thought", "tool_plan"),
        *("reasoning", "reasoning_content", "reasoning_details", "reasoning_text", "reasoning_opaque"),
        *("signature", "thoughtSignature", "thought_signature", "extra_content", "encrypted_content"),
    }
)
"""Fields that readers read: roles, calls, thinking and its seals. The encoder left them out on purpose."""

_PLAIN_FIELDS = ({"role", "content"}, {"type", "text"}, {"text"})
_DELIMITERS = ("{", "[")
_TEXT_TYPES = ("text", "input_text", "output_text")
_TEXT_FIELDS = ("", "content", "output", "arguments")  # "": an item of a list


# --- reading ----------------------------------------------------------------------------------------------------------


def keep_source(
    message: Message, dialect: str, objects: Iterable[Any], turn: Mapping[str, Any] | None = None
) -> Message:
    """Return the message with the JSON that it was read from: its objects, or the blocks of its turn and the fields
    beside them. A plain text has no source: it is written as it was.
    """
    found = list(objects)
    beside = {name: value for name, value in (turn or {}).items() if not _is_empty(value)}
    if not beside and all(map(_is_plain, found)):
        return message
    try:
        text = msgspec.json.encode(found).decode()
        fields = msgspec.json.encode(beside).decode() if beside else ""
    except (TypeError, ValueError, RecursionError):
        return message  # objects of a library, which are not JSON
    return msgspec.structs.replace(message, source=Source(dialect, text, fields))


def _is_plain(found: Any) -> bool:
    if not isinstance(found, Mapping) or set(found) not in _PLAIN_FIELDS:
        return False
    return all(isinstance(value, str) or _is_empty(value) for value in found.values())


# --- writing ----------------------------------------------------------------------------------------------------------


def write_source(
    message: Message,
    encoded: list[Any],
    dialect: str,
    *,
    same: Same | None = None,
    accepts: Accepts | None = None,
    added: frozenset[str] = frozenset(),
) -> list[Any]:
    """Return the JSON that a message was read from, or what was encoded if that says something else.

    Fields that the host does not accept are left out. `added` are fields that the JSON may lack.
    """
    source = find_source(message, dialect)
    if source is None:
        return encoded
    try:
        theirs = msgspec.json.decode(source.json, type=list[Any])
    except (msgspec.DecodeError, RecursionError):
        return encoded  # from a file that was edited
    written = [_Comparison(same, accepts, added).merge(one, other) for one, other in zip(encoded, theirs, strict=False)]
    is_same = len(encoded) == len(theirs) and not any(each is _DIFFERENT for each in written)
    return written if is_same else encoded


def read_turn_fields(source: Source, turn: Mapping[str, Any], accepts: Accepts | None = None) -> dict[str, Any]:
    """Return the fields of a source beside the blocks of its turn. `turn` has the fields that were encoded."""
    if not source.turn:
        return {}
    try:
        beside = msgspec.json.decode(source.turn, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return {}
    return {
        name: value
        for name, value in beside.items()
        if name not in turn and name not in _SAID and (accepts is None or accepts(turn, name))
    }


def find_source(message: Message, dialect: str) -> Source | None:
    """Return the source of a message in this dialect; None if it has none."""
    source = message.source
    if source is None or source.dialect != dialect:
        return None
    if any(mark in source.json or mark in source.turn for mark in ENVELOPES):
        return None  # sealed state of a relay, perhaps in a field that was not read: no provider may see it
    if any(isinstance(part, ToolCall) for part in message.parts) and source.digest != message.digest_content():
        return None  # arguments are dicts, which a caller may have changed in place
    return source


_DIFFERENT = object()


class _Comparison:
    """Compares what an encoder wrote with what it was read from."""

    def __init__(self, same: Same | None, accepts: Accepts | None, added: frozenset[str]) -> None:
        self._same = same
        self._accepts = accepts
        self._added = added

    def merge(self, ours: Any, theirs: Any, name: str = "") -> Any:
        """Return their value, without fields that we leave out; `_DIFFERENT` if it says something else than ours."""
        if isinstance(ours, msgspec.Raw):
            ours = msgspec.json.decode(ours)
        if ours == theirs:
            return theirs
        if _is_empty(ours) and _is_empty(theirs):
            return theirs
        if isinstance(ours, dict) and isinstance(theirs, dict):
            merged = self._merge_fields(ours, theirs)
            if merged is not _DIFFERENT:
                return merged
        elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
            items = [self.merge(one, other) for one, other in zip(ours, theirs, strict=True)]
            if not any(item is _DIFFERENT for item in items):
                return items
        if self._same is not None and self._same(name, ours, theirs):
            return theirs
        return self._drop_from(theirs) if name in _TEXT_FIELDS and _is_same_text(ours, theirs) else _DIFFERENT

    def _drop_from(self, theirs: Any) -> Any:
        """Drop fields from blocks of text; other objects are data of a tool."""
        if isinstance(theirs, list):
            return [self._drop_from(item) for item in theirs]
        if isinstance(theirs, dict) and isinstance(theirs.get("text"), str):
            return {name: value for name, value in theirs.items() if self._is_kept(theirs, name)}
        return theirs

    def _is_kept(self, holder: dict[str, Any], name: str) -> bool:
        """Whether a field that we do not write is written as it was."""
        return name not in _SAID and (self._accepts is None or self._accepts(holder, name))

    def _is_repeated_thinking(self, ours: dict[str, Any], theirs: dict[str, Any], name: str) -> bool:
        """Whether a field is a second name for thinking that goes back: some hosts write two."""
        if name not in THINKING_FIELDS or ours.keys().isdisjoint((*THINKING_FIELDS, "reasoning_details")):
            return False
        return self._accepts is None or self._accepts(theirs, name)

    def _merge_fields(self, ours: dict[str, Any], theirs: dict[str, Any]) -> Any:
        merged: dict[str, Any] = {}
        for name, value in theirs.items():
            if name in ours:
                merged[name] = self.merge(ours[name], value, name)
                if merged[name] is _DIFFERENT:
                    return _DIFFERENT
            elif name == "content" and not _is_empty(value):
                return _DIFFERENT  # the encoder has left it out
            elif (value is False or not _is_empty(value)) and (
                self._is_kept(theirs, name) or self._is_repeated_thinking(ours, theirs, name)
            ):
                merged[name] = value
        for name, value in ours.items():
            if name in theirs or value is None:
                continue
            if _is_empty(value) or name in self._added:
                merged[name] = value  # some hosts want an empty field
            elif self._same is None or not self._same(name, value, None):
                return _DIFFERENT
        return merged


def _is_empty(value: Any) -> bool:
    return value is None or value is False or value in ("", [], {})


def _is_same_text(ours: Any, theirs: Any) -> bool:
    """Whether both are the same text: one as a string and one as a list of texts, or as JSON and its text."""
    one, other = _read_text(ours), _read_text(theirs)
    if one is None or one == other:
        return one is not None
    try:
        meant = msgspec.json.decode(one) if one.startswith(_DELIMITERS) else None
        if meant is None or other is not None:
            return meant is not None and bool(meant == msgspec.json.decode(other or ""))
    except msgspec.DecodeError:
        return False
    inner = theirs[0] if isinstance(theirs, list) and len(theirs) == 1 else theirs
    return meant in (theirs, inner) or (isinstance(inner, dict) and list(inner.values()) == [meant])


def _read_text(value: Any) -> str | None:
    """The text of a string, of a block of text, or of a list of such blocks; None for anything else."""
    match value:
        case str():
            return value
        case {"text": str() as text, **beside} if beside.get("type", "text") in _TEXT_TYPES:
            return text
        case [_, *_]:
            texts = [None if isinstance(item, str) else _read_text(item) for item in value]
            return None if None in texts else "\n".join(text for text in texts if text is not None)
        case _:
            return None
