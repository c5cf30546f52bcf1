"""Decodes the thinking of a chat message outside its text: fields, `reasoning_details`, signatures, content parts.

Each reply has one thought from its fields. The field that comes first provides the text; the others only repeat it.
Not here: thinking in tags inside the content (decode).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from asides.dialects.openai_chat.wire import ChunkReader, is_nothing, read_signature
from asides.providers.provider import Target
from asides.values.events import Event, ThinkingDelta, ThoughtSealed, Warned
from asides.values.notices import Notice
from asides.values.thinking import Origin, Seal, ThoughtKind
from asides.wire.deduplicate import RepeatFilter, SharedText, SnapshotFilter
from asides.wire.lenient import THOUGHT_FIELDS, is_marked, names_thinking, read_thought_text

FIELD_BLOCK = 0
DETAILS = "reasoning_details"


class ThinkingDecoder:
    """Decodes the thinking in the fields of one reply's messages.

    `shown` receives the text emitted from fields; `tagged` is the thinking emitted from tags in the content.
    """

    __slots__ = ("_details", "_filters", "_kind", "_repeat", "_shown", "_tagged", "_target", "sole_field")

    def __init__(self, target: Target, kind: ThoughtKind, shown: list[str], tagged: list[str]) -> None:
        self._target = target
        self._kind: ThoughtKind = kind
        self._tagged = tagged
        self._filters: dict[str, SnapshotFilter] = {}
        self._details: _Details | None = None
        self._repeat: RepeatFilter | None = None
        self._shown = SharedText(shown)
        self.sole_field: str | None = None
        """The one field that carries the thinking, where its text needs no check: hot paths add it to `shown`, emit it,
        and need not call `decode`. None before there is one, and when there are several."""

    def decode(self, values: tuple[Any, ...], delta: Any, reader: ChunkReader, events: list[Event]) -> None:
        """Decode the thinking in one message, or in a piece of one. `values` are those of the thinking fields."""
        kind = self._kind
        additions: list[_Addition] = []
        if delta.reasoning_details:
            self._end_sole_field()
            if self._details is None:
                self._details = _Details(snapshots=self._target.quirks.snapshots)
                self._details.alone = not self._filters  # a field may have come in an earlier chunk
            entries = delta.reasoning_details if type(delta.reasoning_details) is list else [delta.reasoning_details]
            additions = self._details.merge(entries)
            if additions and additions[0].summary:
                kind = "summary"
            if loose := read_thought_text([entry for entry in entries if not isinstance(entry, dict)]):
                self._emit_field(DETAILS, loose, kind, events)
        has_field = False
        odd: list[tuple[str, str]] = []
        for name, value in zip(reader.thinking_fields, values, strict=True):
            if not value:
                continue
            if type(value) is not str:
                if text := read_thought_text(value):
                    odd.append((name, text))
                else:
                    _warn(events, "unreadable_thinking", f"the field {name} holds {type(value).__name__}, not text")
                continue
            has_field = True
            self._feed_field(name, value, kind, events)
        for name, text in odd:  # a field that holds text comes first (requirements, B4)
            has_field = True
            self._feed_field(name, text, kind, events)
        if self._details is not None:
            if has_field:
                self._details.alone = False
            elif additions:
                self._emit_details(self._details, additions, kind, events)

    def _feed_field(self, name: str, text: str, kind: ThoughtKind, events: list[Event]) -> None:
        if name == self.sole_field:
            self._shown.pieces.append(text)
            events.append(ThinkingDelta(text, FIELD_BLOCK, kind, "field", name))
            return
        snapshots = self._filters.get(name)
        if snapshots is None:
            snapshots = self._open_field(name, events)
        if not snapshots.inactive:
            text = snapshots.feed(text)
        self._emit_field(name, text, kind, events)
        if snapshots.inactive and len(self._filters) == 1 and self._repeat is None and self._details is None:
            self.sole_field = name

    def _end_sole_field(self) -> None:
        if self.sole_field is not None:
            self._shown.move_to_end(self.sole_field)
            self.sole_field = None

    def _open_field(self, name: str, events: list[Event]) -> SnapshotFilter:
        self._end_sole_field()
        if name not in self._target.facts.thinking_in:
            _warn(events, "unknown_thinking_field", f"the field {name} was read as thinking")
        if self._tagged and not self._shown.pieces:
            self._repeat = RepeatFilter("".join(self._tagged).strip())
        snapshots = self._filters[name] = SnapshotFilter(snapshots=self._target.quirks.snapshots)
        return snapshots

    def _emit_field(self, name: str, text: str, kind: ThoughtKind, events: list[Event]) -> None:
        if not text:
            return
        differed = name in self._shown.differing
        text = self._shown.feed(name, text)
        if not text and name in self._shown.differing and not differed:
            _warn(events, "other_thinking_field", f"the field {name} holds other text and was left out")
        if text and self._repeat is not None:
            text = self._repeat.feed(text)
        if text:
            events.append(ThinkingDelta(text, FIELD_BLOCK, kind, "field", name))

    def _emit_details(
        self, details: _Details, additions: list[_Addition], kind: ThoughtKind, events: list[Event]
    ) -> None:
        for addition in additions:
            text = addition.text
            if text and (not details.alone or self._shown.pieces):
                text = self._shown.feed(DETAILS, text)
            if text:
                block = addition.number if details.alone else FIELD_BLOCK
                events.append(ThinkingDelta(text, block, "summary" if addition.summary else kind, "field", DETAILS))

    def decode_signatures(self, delta: Any, events: list[Event]) -> None:
        """Decode the signatures of a whole message, which are beside its other fields."""
        entry = None if is_nothing(delta.extra_content) else bytes(delta.extra_content)
        value = delta.thought_signature if isinstance(delta.thought_signature, str) else None
        if entry is not None:
            value = read_signature(entry) or value
        if value:
            text = None if entry is None else entry.decode("utf-8", "replace")
            seal = Seal("thought_signature", value, self._target.origin, text)
            events.append(ThoughtSealed(seal, FIELD_BLOCK))
        if isinstance(delta.reasoning_opaque, str) and delta.reasoning_opaque:
            seal = Seal("reasoning_opaque", delta.reasoning_opaque, self._target.origin)
            events.append(ThoughtSealed(seal, FIELD_BLOCK))

    def finish(self, events: list[Event]) -> None:
        """Emit the text that is still held, and the seals."""
        for name, snapshots in self._filters.items():
            self._emit_field(name, snapshots.finish(), self._kind, events)
        details = self._details
        if details is not None:
            self._emit_details(details, details.finish(), self._kind, events)
            for number, seal in details.seals(self._target.origin):
                events.append(ThoughtSealed(seal, number if details.alone else FIELD_BLOCK))


def _warn(events: list[Event], code: str, detail: str) -> None:
    events.append(Warned(Notice(code, detail)))


# --- reasoning_details --------------------------------------------------------------------------------------------

_SUMMARY = "reasoning.summary"
# The fields of an entry that arrive in pieces; every other field comes once.
_GROWING = ("text", "summary", "data", "signature")


class _Addition(msgspec.Struct):
    """The text that one fragment added to its entry."""

    number: int
    text: str
    summary: bool


class _Entry:
    __slots__ = ("fields", "number", "pieces", "snapshots")

    def __init__(self, number: int, *, snapshots: bool) -> None:
        self.number = number
        self.fields: dict[str, Any] = {}
        self.pieces: dict[str, list[str]] = {}
        self.snapshots = SnapshotFilter(snapshots=snapshots)

    def join(self) -> dict[str, Any]:
        """Return the entry as a whole response would have it."""
        return {
            name: "".join(self.pieces[name]) if name in self.pieces else value for name, value in self.fields.items()
        }


class _Details:
    """The entries of one reply: fragments merged by index, type and id. They go back verbatim."""

    __slots__ = ("_entries", "_snapshots", "alone")

    def __init__(self, *, snapshots: bool = False) -> None:
        self._entries: dict[tuple[Any, ...], _Entry] = {}
        self._snapshots = snapshots
        self.alone = True
        """True while no plain field carries the text as well."""

    def merge(self, fragments: list[Any]) -> list[_Addition]:
        """Merge the fragments of one message; return the text they add."""
        return [self._merge(fragment) for fragment in fragments if isinstance(fragment, dict)]

    def _merge(self, fragment: dict[str, Any]) -> _Addition:
        kind = fragment.get("type")
        entry = self._find(fragment.get("index"), kind, fragment.get("id"))
        shown = "summary" if kind == _SUMMARY else "text"
        text = ""
        for name, value in fragment.items():
            if name in _GROWING and isinstance(value, str):
                pieces = entry.pieces.setdefault(name, [])
                if name == shown and value:
                    text = value = value if entry.snapshots.inactive else entry.snapshots.feed(value)
                # A signature comes once, though some servers repeat it; data that repeats is a snapshot.
                if value and not (name in ("signature", "data") and pieces == [value]):
                    pieces.append(value)
                entry.fields.setdefault(name, "")
            elif value is not None or name not in entry.fields:
                entry.fields[name] = value
        if not text and not isinstance(fragment.get(shown), str):
            text = read_thought_text(fragment)
        return _Addition(entry.number, text, kind == _SUMMARY)

    def _find(self, *parts: Any) -> _Entry:
        """Return the entry of this index, type and id; a new one where there is none."""
        key = tuple(part if isinstance(part, (str, int, float)) else None for part in parts)
        if key not in self._entries:
            # An entry's id may come late. A fragment without an id belongs to the last entry of its index and type.
            key = next(
                (known for known in reversed(self._entries) if known[:2] == key[:2] and None in (known[2], key[2])), key
            )
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(len(self._entries), snapshots=self._snapshots)
        return entry

    def finish(self) -> list[_Addition]:
        """Return the text that is still held."""
        additions: list[_Addition] = []
        for (_, kind, _), entry in self._entries.items():
            if held := entry.snapshots.finish():
                entry.pieces["summary" if kind == _SUMMARY else "text"].append(held)
                additions.append(_Addition(entry.number, held, kind == _SUMMARY))
        return additions

    def seals(self, origin: Origin) -> Iterator[tuple[int, Seal]]:
        """Yield every entry as a seal: its opaque value, "" if it has none, and the entry verbatim."""
        for number, entry in enumerate(self._entries.values()):
            whole = entry.join()
            value = whole.get("signature") or whole.get("data") or ""
            yield number, Seal(DETAILS, str(value), origin, msgspec.json.encode(whole).decode())


# --- thinking as a part of the content ----------------------------------------------------------------------------

# The fields that hold a seal, and the kind of that seal.
_SEAL_FIELDS = (("signature", "signature"), ("data", "redacted"))


def is_thinking_part(part: dict[str, Any]) -> bool:
    """Whether a content part is thinking: by its type, or by a mark on a text part."""
    return names_thinking(part.get("type")) or is_marked(part.get("thought"))


def emit_part(part: dict[str, Any], block: int, kind: ThoughtKind, origin: Origin, events: list[Event]) -> None:
    """Emit the events of a content part that is thinking."""
    if text := read_thought_text(part):
        events.append(ThinkingDelta(text, block, kind, "block", "content"))
    for seal_kind, value in read_part_seals(part):
        events.append(ThoughtSealed(Seal(seal_kind, value, origin), block, source="block"))


def read_part_seals(part: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the seals of a part as (kind, value): its own, or those of the pieces of its text."""
    pieces = [item for name in THOUGHT_FIELDS if isinstance(part.get(name), list) for item in part[name]]
    return [
        (kind, value)
        for holder in (part, *pieces)
        if isinstance(holder, dict)
        for name, kind in _SEAL_FIELDS
        if isinstance(value := holder.get(name), str) and value
    ]
