"""`CopyReport`: the result of copying one area: the counts, and the names of what differs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

Outcome: TypeAlias = Literal["copied", "updated", "same", "different", "failed", "left"]
"""What became of one thing: it is new at the target · it was extended there · it was there · it differs there, and was
left alone · one of the databases cannot take it · it changed while it was copied, and is left for another run."""
_MOST_NAMES = 10


class CopyReport(msgspec.Struct):
    """The result of copying one area."""

    area: str
    copied: int = 0
    updated: int = 0
    same: int = 0
    different: int = 0
    failed: int = 0
    left: int = 0
    checked: int = 0
    """How many were read again at the end on both sides, and were equal by their digests."""
    missing: int = 0
    """How many of them were not there, or were not equal."""
    others: int = 0
    """How many only the target has."""
    names: list[str] = []
    """The first of those that differ."""

    def count(self, outcome: Outcome, name: object, number: int = 1) -> None:
        """Count what became of something."""
        setattr(self, outcome, getattr(self, outcome) + number)
        if outcome in ("different", "failed"):
            self._add_name(name)

    def note_missing(self, name: object) -> None:
        """Count something that is not equal on both sides."""
        self.missing += 1
        self._add_name(name)

    def _add_name(self, name: object) -> None:
        text = str(name)
        if len(self.names) < _MOST_NAMES and text not in self.names:
            self.names.append(text)

    @property
    def total(self) -> int:
        """How many were looked at."""
        return self.copied + self.updated + self.same + self.different + self.failed + self.left

    @property
    def is_whole(self) -> bool:
        """Whether the target has everything."""
        return not (self.different or self.failed or self.left or self.missing)


OnProgress: TypeAlias = Callable[[CopyReport], None]
"""Called after each batch, with the counts so far."""
