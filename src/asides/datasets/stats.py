"""Statistics of separated rows, by model and day: lengths of thinking and answers, in characters, and their shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from asides.datasets.rows import read_value
from asides.datasets.separation import Separation

MODEL_COLUMNS = ("model", "model_name", "model_id")
DAY_COLUMNS = ("day", "date", "created", "created_at", "timestamp", "time")
_MAX_GROUPS = 2000
OTHER = "(other)"
UNKNOWN = "(unknown)"
_DAY = len("2026-11-19")
# Later numbers are milliseconds.
_MAX_SECONDS = 10_000_000_000


class Lengths(msgspec.Struct):
    """The lengths of many texts: how many there are between each power of two and the next."""

    count: int = 0
    total: int = 0
    longest: int = 0
    powers: dict[int, int] = {}
    """How many have this number of binary digits in their length."""

    def add(self, length: int) -> None:
        """Count a text."""
        self.count += 1
        self.total += length
        self.longest = max(self.longest, length)
        power = length.bit_length()
        self.powers[power] = self.powers.get(power, 0) + 1

    def merge(self, other: Lengths) -> None:
        """Add other texts."""
        self.count += other.count
        self.total += other.total
        self.longest = max(self.longest, other.longest)
        for power, count in other.powers.items():
            self.powers[power] = self.powers.get(power, 0) + count

    @property
    def mean(self) -> float:
        """The mean length."""
        return self.total / self.count if self.count else 0.0

    def estimate(self, share: float) -> int:
        """The length that this share of the texts does not exceed, between two powers of two."""
        left = share * self.count
        for power in sorted(self.powers):
            if left <= (count := self.powers[power]):
                low, high = (1 << power) >> 1, min((1 << power) - 1, self.longest)
                return round(low + (high - low) * left / count)
            left -= count
        return self.longest


class Group(msgspec.Struct):
    """The rows of one model and day."""

    rows: int = 0
    unclosed: int = 0
    thinking: Lengths = msgspec.field(default_factory=Lengths)
    """Of rows that have thinking."""
    answer: Lengths = msgspec.field(default_factory=Lengths)

    def merge(self, other: Group) -> None:
        """Add other rows."""
        self.rows += other.rows
        self.unclosed += other.unclosed
        self.thinking.merge(other.thinking)
        self.answer.merge(other.answer)

    @property
    def share(self) -> float:
        """The share of thinking among all characters."""
        total = self.thinking.total + self.answer.total
        return self.thinking.total / total if total else 0.0

    def to_report(self) -> dict[str, Any]:
        """The statistics as JSON."""
        return {
            "rows": self.rows,
            "with_thinking": self.thinking.count,
            "unclosed": self.unclosed,
            "share": round(self.share, 4),
            **{
                name: {
                    "mean": round(lengths.mean, 1),
                    "median": lengths.estimate(0.5),
                    "p95": lengths.estimate(0.95),
                    "longest": lengths.longest,
                }
                for name, lengths in (("thinking", self.thinking), ("answer", self.answer))
            },
        }


class Stats(msgspec.Struct):
    """The groups, by model and day. Rows of models and days beyond a limit are one group."""

    groups: dict[str, dict[str, Group]] = {}
    """Model, then day."""

    def add(self, row: Mapping[str, Any], found: Separation) -> None:
        """Count a row."""
        group = self._find(_find_model(row), _find_day(row))
        group.rows += 1
        group.unclosed += found.verdict == "unclosed"
        if length := _measure(found.thinking):
            group.thinking.add(length)
        group.answer.add(_measure(found.answer))

    def merge(self, other: Stats) -> None:
        """Add other rows."""
        for model, day, group in other:
            self._find(model, day).merge(group)

    def _find(self, model: str, day: str) -> Group:
        if self._is_full and day not in self.groups.get(model, ()):
            model = day = OTHER
        return self.groups.setdefault(model, {}).setdefault(day, Group())

    @property
    def _is_full(self) -> bool:
        return len(self.groups) >= _MAX_GROUPS or sum(map(len, self.groups.values())) >= _MAX_GROUPS

    def __iter__(self) -> Iterator[tuple[str, str, Group]]:
        for model, days in self.groups.items():
            for day, group in days.items():
                yield model, day, group

    def sum(self) -> Group:
        """All rows as one group."""
        total = Group()
        for _, _, group in self:
            total.merge(group)
        return total

    def by_model(self) -> dict[str, Group]:
        """The rows of each model."""
        return _sum_by(self, 0)

    def by_day(self) -> dict[str, Group]:
        """The rows of each day."""
        return _sum_by(self, 1)

    def to_report(self) -> dict[str, Any]:
        """The statistics as JSON: of all rows, and of each model and day."""
        rows = [{"model": model, "day": day, **group.to_report()} for model, day, group in sorted(self, key=_get_names)]
        return {"all": self.sum().to_report(), "groups": rows}


def _sum_by(stats: Stats, place: int) -> dict[str, Group]:
    sums: dict[str, Group] = {}
    for found in stats:
        sums.setdefault(str(found[place]), Group()).merge(found[2])
    return dict(sorted(sums.items()))


def _get_names(found: tuple[str, str, Group]) -> tuple[str, str]:
    return found[:2]


def _measure(value: str | list[str] | list[str | None] | None) -> int:
    if isinstance(value, str):
        return len(value)
    return sum(len(each or "") for each in value or ())


def _find_value(row: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    for name in names:
        if name in row:
            return read_value(row[name])
    return None


def _find_model(row: Mapping[str, Any]) -> str:
    value = _find_value(row, MODEL_COLUMNS)
    return value[:100] if isinstance(value, str) and value else UNKNOWN


def _find_day(row: Mapping[str, Any]) -> str:
    value = _find_value(row, DAY_COLUMNS)
    if isinstance(value, str):
        if value.isdigit():
            value = int(value)
        elif len(value) >= _DAY and value[4] == value[7] == "-" and value[:4].isdigit():
            return value[:_DAY]
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0:
        seconds = value / 1000 if value > _MAX_SECONDS else value
        try:
            return datetime.fromtimestamp(seconds, UTC).date().isoformat()
        except (OverflowError, OSError, ValueError):
            return UNKNOWN
    return UNKNOWN
