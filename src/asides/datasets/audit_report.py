"""What the audit of a file counts beside its findings."""

from __future__ import annotations

import msgspec

_MAX_PROBLEMS = 20


class FileReport(msgspec.Struct):
    """What was read of a file. Filled while its findings are taken."""

    file: str
    form: str = ""
    """The format of the file, such as "jsonl", "log" or "sqlite"."""
    rows: int = 0
    found: int = 0
    left: int = 0
    """What a cleaned copy still holds."""
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
