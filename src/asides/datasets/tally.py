"""Counts what was found in rows: by verdict and grammar, with samples of row numbers, and nothing of their content."""

from __future__ import annotations

from typing import Any

import msgspec

from asides.datasets.separation import VERDICTS, Separation
from asides.datasets.stats import Stats

_SAMPLES = 5
_MAX_NOTES = 20
_MAX_LISTED = 20
NO_GRAMMAR = "none"
UNKNOWN_GRAMMAR = "-"
"""Of rows that cannot be read."""


class Excerpt(msgspec.Struct):
    """The beginnings of what a row holds; only where the caller asks to see content."""

    row: int
    thinking: str
    answer: str


class Tally(msgspec.Struct):
    """The counts of some rows of one file, or of all."""

    rows: int = 0
    undecided: int = 0
    verdicts: dict[str, int] = {}
    grammars: dict[str, int] = {}
    samples: dict[str, list[str]] = {}
    """Some rows of each verdict, as file:row where there are several files."""
    listed: list[tuple[str, str]] = []
    """The first undecided rows, named like the samples, and their verdicts."""
    excerpts: dict[str, list[Excerpt]] = {}
    stats: Stats | None = None
    notes: dict[str, int] = {}
    """What the output does not hold as the rows did, and in how many rows."""

    def add_note(self, note: str, rows: int = 1) -> None:
        """Count rows that the note is about."""
        if note in self.notes or len(self.notes) < _MAX_NOTES:
            self.notes[note] = self.notes.get(note, 0) + rows

    def add(self, number: int, found: Separation, *, is_undecided: bool, show: int = 0) -> None:
        """Count a row."""
        self.rows += 1
        self.undecided += is_undecided
        if found.note:
            self.add_note(found.note)
        verdict = found.verdict
        self.verdicts[verdict] = count = self.verdicts.get(verdict, 0) + 1
        grammar = found.grammar or (UNKNOWN_GRAMMAR if verdict == "unreadable" else NO_GRAMMAR)
        self.grammars[grammar] = self.grammars.get(grammar, 0) + 1
        if is_undecided and len(self.listed) < _MAX_LISTED:
            self.listed.append((str(number), verdict))
        if count <= _SAMPLES:
            self.samples.setdefault(verdict, []).append(str(number))
        if count <= show:
            self.excerpts.setdefault(verdict, []).append(
                Excerpt(number, _shorten(found.thinking), _shorten(found.answer))
            )

    def merge(self, other: Tally, file: str = "", show: int = 0) -> None:
        """Add the counts of later rows; `file` names theirs."""
        self.rows += other.rows
        self.undecided += other.undecided
        for mine, theirs in ((self.verdicts, other.verdicts), (self.grammars, other.grammars)):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count
        for verdict, rows in other.samples.items():
            named = [_name_row(file, row) for row in rows]
            self.samples[verdict] = [*self.samples.get(verdict, ()), *named][:_SAMPLES]
        listed = ((_name_row(file, row), verdict) for row, verdict in other.listed)
        self.listed = [*self.listed, *listed][:_MAX_LISTED]
        for verdict, excerpts in other.excerpts.items():
            self.excerpts[verdict] = [*self.excerpts.get(verdict, ()), *excerpts][:show]
        for note, count in other.notes.items():
            self.add_note(note, count)
        if other.stats is not None:
            self.stats = self.stats or Stats()
            self.stats.merge(other.stats)

    def to_report(self) -> dict[str, Any]:
        """The counts as JSON; every verdict is there."""
        report: dict[str, Any] = {
            "rows": self.rows,
            "undecided": self.undecided,
            "verdicts": {name: self.verdicts.get(name, 0) for name in VERDICTS},
            "grammars": dict(sorted(self.grammars.items(), key=lambda item: -item[1])),
            "samples": {name: self.samples[name] for name in VERDICTS if name in self.samples},
        }
        if self.notes:
            report["notes"] = self.notes
        if self.excerpts:
            report["excerpts"] = msgspec.to_builtins(self.excerpts)
        if self.stats is not None:
            report["stats"] = self.stats.to_report()
        return report


def _name_row(file: str, row: str) -> str:
    return f"{file}:{row}" if file else row


def _shorten(value: str | list[str] | list[str | None] | None) -> str:
    text = value if isinstance(value, str) else "\n".join(each or "" for each in value or ())
    return " ".join(text.split())[:_SHOWN]


_SHOWN = 160
