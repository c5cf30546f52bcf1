"""`reasoning_details`: fragments merged by index, type and id, and kept verbatim, since they have to go back as they
came.

Not here: which of a message's channels is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from asides.values.thinking import Origin, Seal
from asides.wire.deduplicate import Echoes, Increments

_SUMMARY = "reasoning.summary"
# The parts of an entry that arrive in pieces; every other field comes once.
_GROWING = ("text", "summary", "data", "signature")


class Told(msgspec.Struct):
    """What one fragment added that can be shown."""

    number: int
    text: str
    summary: bool


class _Entry:
    __slots__ = ("fields", "growing", "increments", "number")

    def __init__(self, number: int, *, snapshots: bool) -> None:
        self.number = number
        self.fields: dict[str, Any] = {}
        self.growing: dict[str, list[str]] = {}
        self.increments = Increments(snapshots=snapshots)

    def merge_fields(self) -> dict[str, Any]:
        """The entry as a whole response would have it."""
        return {
            name: "".join(self.growing[name]) if name in self.growing else value for name, value in self.fields.items()
        }


class Details:
    """The entries of one reply, in order of appearance."""

    __slots__ = ("_entries", "_snapshots", "alone")

    def __init__(self, *, snapshots: bool = False) -> None:
        self._entries: dict[tuple[Any, ...], _Entry] = {}
        self._snapshots = snapshots
        self.alone = True
        """True while no plain field carries the text beside them."""

    def take(self, fragments: list[Any]) -> list[Told]:
        """Merge the fragments of one message; return the text they add."""
        return [self._merge(fragment) for fragment in fragments if isinstance(fragment, dict)]

    def _merge(self, fragment: dict[str, Any]) -> Told:
        kind = fragment.get("type")
        key = tuple(
            value if isinstance(value, (str, int, float)) else None
            for value in (fragment.get("index"), kind, fragment.get("id"))
        )
        if key not in self._entries:
            # An entry's id may come late, and its fragments without one belong to the last entry of their index.
            key = next(
                (known for known in reversed(self._entries) if known[:2] == key[:2] and None in (known[2], key[2])), key
            )
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(len(self._entries), snapshots=self._snapshots)
        shown = "summary" if kind == _SUMMARY else "text"
        text = ""
        for name, value in fragment.items():
            if name in _GROWING and isinstance(value, str):
                pieces = entry.growing.setdefault(name, [])
                if name == shown and value:
                    text = value = value if entry.increments.settled else entry.increments.take(value)
                # A signature comes once, though some repeat it; data that repeats is a snapshot.
                if value and not (name in ("signature", "data") and pieces == [value]):
                    pieces.append(value)
                entry.fields.setdefault(name, "")
            elif value is not None or name not in entry.fields:
                entry.fields[name] = value
        return Told(entry.number, text, kind == _SUMMARY)

    def finish(self) -> list[Told]:
        """The text that was held for certainty."""
        told: list[Told] = []
        for (_, kind, _), entry in self._entries.items():
            if held := entry.increments.finish():
                entry.growing["summary" if kind == _SUMMARY else "text"].append(held)
                told.append(Told(entry.number, held, kind == _SUMMARY))
        return told

    def fresh(self, told: Told, echoes: Echoes) -> str:
        """The text of a fragment, unless another channel said it already."""
        return told.text if self.alone and not echoes else echoes.take("reasoning_details", told.text)

    def seals(self, origin: Origin) -> Iterator[tuple[int, Seal]]:
        """Every entry as a seal: its opaque value, "" when it has none, and the entry itself, verbatim."""
        for number, entry in enumerate(self._entries.values()):
            whole = entry.merge_fields()
            value = whole.get("signature") or whole.get("data") or ""
            yield number, Seal("reasoning_details", str(value), origin, msgspec.json.encode(whole).decode())
