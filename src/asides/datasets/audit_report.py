"""The counters of a file's audit besides its findings."""

from __future__ import annotations

import msgspec

_MAX_PROBLEMS = 20


class FileReport(msgspec.Struct):
    """Statistics about a file, filled while its findings are read."""

    file: str
    form: str = ""
    """The format of the file, such as "jsonl", "log" or "sqlite"."""
    rows: int = 0
    found: int = 0
    left: int = 0
    """Findings that remain in a cleaned copy."""
    mentions: int = 0
    """Opening tags after the start of an answer, which count as part of it."""
    unread: int = 0
    """Rows that could not be checked."""
    problems: list[tuple[int, str]] = []
    """The first of them, by number, with the reason."""

    def add_problem(self, row: int, problem: str) -> None:
        """Count a row that could not be checked."""
        self.unread += 1
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append((row, problem))
