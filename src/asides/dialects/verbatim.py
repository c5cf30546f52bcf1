"""Verbatim unless changed: the JSON that a message or a request was read from, and its way back into a request of the
same dialect.

Readers call `keep_source`, and `keep_request` for the fields beside the history. Encoders encode the message as always
and call `write_source`: the JSON goes back if it says all that the encoder would write. `write_fields` does that for
fields. Unknown fields survive, and structured results stay structured. A source may come from a file that others
wrote, so it is never trusted: it cannot change who speaks, what is said, called or thought.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from asides.providers.quirks import THINKING_FIELDS
from asides.values.messages import Message, Prompt, RequestSource, Source
from asides.values.notices import Notice
from asides.values.parts import ToolCall
from asides.values.thinking import ENVELOPES
from asides.values.tools import Tool, report_names

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

_PLAIN_FIELDS = frozenset(map(frozenset, ({"role", "content"}, {"type", "text"}, {"text"})))
_SYSTEM_ROLES = ("system", "developer")
_CALL_IDS = ("id", "tool_call_id", "call_id", "tool_use_id", "toolUseId")
_DELIMITERS = ("{", "[")
_TEXT_TYPES = ("text", "input_text", "output_text")
_TEXT_FIELDS = ("", "content", "output", "arguments", "parts", "system")  # "": an item of a list
_JOINED_BY = ("", "\n", "\n\n")
"""Separators between the texts of a list where an encoder joins them."""


# --- reading ----------------------------------------------------------------------------------------------------------


def keep_source(
    message: Message,
    dialect: str,
    objects: Iterable[Any],
    turn: Mapping[str, Any] | None = None,
    *,
    always: bool = False,
    absent: tuple[str, ...] = (),
) -> Message:
    """Return the message with the JSON that it was read from: its objects, or the blocks of its turn and the fields
    beside them. A plain text has no source: it is written as it was. `always`: its place would be lost.
    `absent`: the fields that the turn did not have, though encoders write them.
    """
    found = list(objects)
    beside = {name: value for name, value in (turn or {}).items() if value is False or not _is_empty(value)}
    beside |= dict.fromkeys(absent)
    if not always and not beside and all(map(_is_plain, found)):
        return message
    try:
        text = msgspec.json.encode(found).decode()
        fields = msgspec.json.encode(beside).decode() if beside else ""
    except (TypeError, ValueError, RecursionError):
        return message  # objects of a library, which are not JSON
    return msgspec.structs.replace(message, source=Source(dialect, text, fields))


def _is_plain(found: Any) -> bool:
    if not isinstance(found, (dict, Mapping)) or frozenset(found) not in _PLAIN_FIELDS or found.get("text") == "":
        return False  # an empty text is left out, unless it was read
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


def read_turn_fields(
    source: Source,
    turn: Mapping[str, Any],
    accepts: Accepts | None = None,
    roles: tuple[str, tuple[str, ...]] = ("", ()),
) -> dict[str, Any]:
    """Return the fields of a source beside the blocks of its turn. `turn` has the fields that were encoded; None: the
    source had no such field. `roles` are a role and its other names.
    """
    if not source.turn:
        return {}
    try:
        beside = msgspec.json.decode(source.turn, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return {}
    own, others = roles
    kept = {
        name: value
        for name, value in beside.items()
        if name not in turn and name not in _SAID and (accepts is None or accepts(turn, name))
    }
    if own and turn.get("role") == own and "role" in beside and (beside["role"] is None or beside["role"] in others):
        kept["role"] = beside["role"]
    if own and turn.get("parts") == [] and "parts" in beside and kept:
        kept["parts"] = None
    return kept


def read_source(message: Message, dialect: str) -> dict[str, Any]:
    """Return the first object that a message was read from in this dialect; {} if it has no source."""
    source = find_source(message, dialect)
    try:
        found = [] if source is None else msgspec.json.decode(source.json, type=list[Any])
    except (msgspec.DecodeError, RecursionError):
        return {}  # from a file that was edited
    return found[0] if found and isinstance(found[0], dict) else {}


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
        if name == "role" and ours in _SYSTEM_ROLES and theirs in _SYSTEM_ROLES:
            return ours  # the one that the host accepts
        if name in _CALL_IDS and isinstance(ours, str) and isinstance(theirs, str):
            return ours  # as the host takes it
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
            return {name: value for name, value in theirs.items() if self._is_kept(theirs, name, value)}
        return theirs

    def _is_kept(self, holder: dict[str, Any], name: str, value: Any) -> bool:
        """Whether a field that we do not write is kept as it was. A False value counts as absent."""
        return (name not in _SAID or value is False) and (self._accepts is None or self._accepts(holder, name))

    def _wants_empty(self, value: Any) -> bool:  # noqa: ARG002 - for subclasses
        """Whether an empty field that only we write is written: some hosts want it."""
        return True

    def _is_default(self, name: str, value: Any) -> bool:  # noqa: ARG002 - for subclasses
        """Whether a field that only we write is what its lack means."""
        return False

    def _is_repeated_thinking(self, ours: dict[str, Any], theirs: dict[str, Any], name: str) -> bool:
        """Whether a field is a second name for thinking that goes back: some hosts write two."""
        if name not in THINKING_FIELDS or ours.keys().isdisjoint((*THINKING_FIELDS, "reasoning_details")):
            return False
        return self._accepts is None or self._accepts(theirs, name)

    def _is_blank(self, theirs: dict[str, Any]) -> bool:
        """Whether a content is a list of blank texts, and the host accepts those."""
        texts = _list_texts(theirs["content"]) if isinstance(theirs["content"], list) else None
        is_blank = texts is not None and not any(text.strip() for text in texts)
        return is_blank and (self._accepts is None or self._accepts(theirs, "content"))

    def _merge_fields(self, ours: dict[str, Any], theirs: dict[str, Any]) -> Any:
        merged: dict[str, Any] = {}
        for name, value in theirs.items():
            if name == "content" and name in ours and _is_empty(ours[name]) and self._is_blank(theirs):
                merged[name] = value
            elif name in ours:
                merged[name] = self.merge(ours[name], value, name)
                if merged[name] is _DIFFERENT:
                    return _DIFFERENT
            elif name == "content" and not _is_empty(value):
                # The encoder dropped it. Blank text has no meaning, and some hosts refuse it.
                texts = _list_texts(value)
                if (
                    texts is None
                    or any(text.strip() for text in texts)
                    or (self._accepts is not None and not self._accepts(theirs, name))
                ):
                    return _DIFFERENT
                merged[name] = value
            elif (value is False or not _is_empty(value)) and (
                self._is_kept(theirs, name, value) or self._is_repeated_thinking(ours, theirs, name)
            ):
                merged[name] = value
        for name, value in ours.items():
            if name in theirs or value is None or self._is_default(name, value):
                continue
            if _is_empty(value) or name in self._added:
                if self._wants_empty(value):
                    merged[name] = value
            elif self._same is None or not self._same(name, value, None):
                return _DIFFERENT
        return merged


def _is_empty(value: Any) -> bool:
    return value is None or value is False or value in ("", [], {})


def _is_same_text(ours: Any, theirs: Any) -> bool:
    """Whether both are the same text: one as a string and one as a list of texts, or as JSON and its text."""
    texts, others = _list_texts(ours), _list_texts(theirs)
    if texts is None or texts == others:
        return texts is not None
    if others is not None and len(texts) == 1 and any(texts == [by.join(others)] for by in _JOINED_BY):
        return True
    one, other = "\n".join(texts), None if others is None else "\n".join(others)
    try:
        meant = msgspec.json.decode(one) if one.startswith(_DELIMITERS) else None
        if meant is None or other is not None:
            return meant is not None and bool(meant == msgspec.json.decode(other or ""))
    except msgspec.DecodeError:
        return False
    inner = theirs[0] if isinstance(theirs, list) and len(theirs) == 1 else theirs
    return meant in (theirs, inner) or (isinstance(inner, dict) and list(inner.values()) == [meant])


def _list_texts(value: Any) -> list[str] | None:
    """The texts of a string, of a block of text, or of a list of such blocks; None for anything else. Of a list, blank
    texts do not count: encoders leave them out.
    """
    match value:
        case str():
            return [value]
        case {"text": str() as text, **beside} if beside.get("type", "text") in _TEXT_TYPES:
            return [text]
        case [_, *_]:
            found = [None if isinstance(item, str) else _list_texts(item) for item in value]
            texts = [text for each in found if each is not None for text in each]
            return None if None in found else [text for text in texts if text.strip()] or texts[:1]
        case _:
            return None


# --- the fields of a request ------------------------------------------------------------------------------------------

_STREAM_DEFAULTS = {"cohere": False, "ollama": True}
"""By dialect, what the lack of the field `stream` means, where encoders always write it."""
_HISTORIES = frozenset({"messages", "contents", "input"})
_COPIED_LEVELS = 3


class WholeFields(msgspec.Struct, frozen=True):
    """The fields of a dialect's requests that its reader reads as a whole, so that nothing of them is in `extra`."""

    paths: tuple[str, ...]
    other_names: Mapping[str, str] = {}
    """By the name that the encoder writes, another name of the same field."""
    schemas: frozenset[str] = frozenset()
    """Fields with a JSON schema. The encoder may leave parts of it out, so they come back whole or not at all."""
    same: Same | None = None
    defaults: tuple[Any, ...] = ()
    """Values that say what is usual: the encoder leaves them out, and they come back."""


_LEFT_OUT = frozenset({"strict", "cache_control", "cachePoint", "defer_loading", "allowed_callers", "input_examples"})
"""Fields of tools that readers read. Encoders leave them out where the host does not take them."""
_CACHE_MARKS = ("cache_control", "cachePoint")


def keep_request(dialect: str, fields: Mapping[str, Any]) -> RequestSource:
    """Return the source of a prompt: the fields of its request, without the history."""
    return RequestSource(dialect, {name: _copy(value) for name, value in fields.items() if name not in _HISTORIES})


def _copy(value: Any, levels: int = _COPIED_LEVELS) -> Any:
    """Copy objects: readers take fields out of them."""
    if not isinstance(value, dict) or not levels:
        return value
    return {name: _copy(inner, levels - 1) for name, inner in value.items()}


def write_fields(
    prompt: Prompt,
    body: dict[str, Any],
    dialect: str,
    whole: WholeFields,
    notices: list[Notice],
    accepts: Accepts | None = None,
) -> dict[str, Any]:
    """Return the body with the fields that the prompt was read from, where they say the same; a field of a tool that is
    left out is a notice.

    Fields that the encoder did not write stay away: it left them out on purpose, or they are in `extra`.
    """
    source = prompt.source
    if source is None or source.dialect != dialect:
        return body
    comparison = _FieldComparison(whole, accepts)
    written = dict(body)
    if source.fields.get("stream") is False and not prompt.stream:
        written.setdefault("stream", False)
    elif "stream" not in source.fields and written.get("stream") is _STREAM_DEFAULTS.get(dialect):
        written.pop("stream", None)
    for path in whole.paths:
        *parents, leaf = path.split(".")
        theirs = _find_object(source.fields, parents)
        if theirs is None:
            continue
        own = _find_object(written, parents)
        name = leaf if leaf in theirs else whole.other_names.get(leaf, leaf)
        if name in theirs and theirs[name] in whole.defaults and (own is None or leaf not in own):
            _add(written, parents, name, theirs[name])
        if own is None or leaf not in own or name not in theirs:
            continue
        found = comparison.merge_field(own[leaf], theirs[name], leaf)
        if found is not _DIFFERENT:
            _put(written, parents, leaf, name, found)
    if comparison.left_out:
        notices.append(report_names(comparison.left_out))
    return written


def _find_object(fields: Mapping[str, Any], path: list[str]) -> Mapping[str, Any] | None:
    for name in path:
        inner = fields.get(name)
        if not isinstance(inner, Mapping):
            return None
        fields = inner
    return fields


def _add(fields: dict[str, Any], path: list[str], name: str, value: Any) -> None:
    for parent in path:
        fields[parent] = dict(fields.get(parent) or {})
        fields = fields[parent]
    fields[name] = value


def _put(fields: dict[str, Any], path: list[str], old: str, new: str, value: Any) -> None:
    """Replace a field by another, in its place. Inner objects are copied: they may be the caller's."""
    for name in path:
        fields[name] = dict(fields[name])
        fields = fields[name]
    renamed = {new if name == old else name: value if name == old else inner for name, inner in fields.items()}
    fields.clear()
    fields.update(renamed)


class _FieldComparison(_Comparison):
    """Compares the fields of a request with those that it was read from."""

    def __init__(self, whole: WholeFields, accepts: Accepts | None) -> None:
        super().__init__(whole.same, accepts, frozenset())
        self._whole = whole
        self.left_out: set[str] = set()
        """The names of the fields of tools that are not written. Cache marks have a notice of their own."""

    def merge_field(self, ours: Any, theirs: Any, name: str) -> Any:
        """Like `merge`, but of a list of tools each item counts by itself."""
        if not (isinstance(ours, list) and isinstance(theirs, list)) or ours == theirs:
            return self.merge(ours, theirs, name)
        if _is_same_text(ours, theirs):
            return self.merge(ours, theirs, name)
        if len(ours) == len(theirs):
            found = [self.merge(one, other) for one, other in zip(ours, theirs, strict=True)]
        else:
            named = {key: item for item in theirs if (key := _find_name(item)) is not None}
            found = [self.merge(one, named[key]) if (key := _find_name(one)) in named else one for one in ours]
        return [one if other is _DIFFERENT else other for one, other in zip(ours, found, strict=True)]

    def merge(self, ours: Any, theirs: Any, name: str = "") -> Any:
        """Return their value, without fields that we leave out; `_DIFFERENT` if it says something else than ours."""
        if name in self._whole.schemas:
            is_same = ours == theirs or (self._same is not None and self._same(name, ours, theirs))
            return theirs if is_same else _DIFFERENT
        return super().merge(ours, theirs, name)

    def _is_default(self, name: str, value: Any) -> bool:
        # A function without a schema takes no arguments.
        return name in self._whole.schemas and value == Tool("").parameters

    def _wants_empty(self, value: Any) -> bool:
        # If tools are strict by default, tools without the field were meant to be strict.
        return value is not False

    def _is_kept(self, holder: dict[str, Any], name: str, value: Any) -> bool:
        if name in _LEFT_OUT and value is not False:
            if name not in _CACHE_MARKS:
                self.left_out.add(name)
            return False
        return self._accepts is None or self._accepts(holder, name)

    def _merge_fields(self, ours: dict[str, Any], theirs: dict[str, Any]) -> Any:
        names = self._whole.other_names
        renamed = {name: other for name, other in names.items() if name in ours and name not in theirs}
        if not any(other in theirs for other in renamed.values()):
            return super()._merge_fields(ours, theirs)
        back = {other: name for name, other in renamed.items() if other in theirs}
        merged = super()._merge_fields(ours, {back.get(name, name): value for name, value in theirs.items()})
        if merged is _DIFFERENT:
            return merged
        return {renamed[name] if name in back.values() else name: value for name, value in merged.items()}


def _find_name(tool: Any) -> str | None:
    """The name of a tool, in any dialect."""
    if not isinstance(tool, dict):
        return None
    inner = tool.get("function", tool.get("toolSpec", tool))
    name = inner.get("name") if isinstance(inner, dict) else None
    return name if isinstance(name, str) else None
