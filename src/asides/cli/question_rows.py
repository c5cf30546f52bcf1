"""The questions of `ask --each`, from its file or from standard input."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from asides.batch_rows import Question, read_lines
from asides.cli.inputs import describe_read_error
from asides.values.errors import ConfigError

STDIN = "-"


def count_questions(path: str) -> int | None:
    """The number of questions, after a look at every row; None for standard input, which can be read only once.

    Raises a ConfigError for a row that cannot be asked, so that nothing is sent before all of them can be.
    """
    if path == STDIN:
        return None
    with open_questions(path) as questions:
        seen: dict[str | int, int] = {}
        count = 0
        for question in questions:
            count += 1
            if question.id is not None and seen.setdefault(question.id, question.index) != question.index:
                raise ConfigError(
                    f"--each {path}: questions {seen[question.id] + 1} and {question.index + 1} have the same id. "
                    "Give each its own, or none."
                )
    if not count:
        raise ConfigError(f"--each {path} has no questions: write one JSON text or object a line.")
    return count


@contextmanager
def open_questions(path: str) -> Generator[Iterator[Question]]:
    """The questions, read as they are taken."""
    if path == STDIN:
        if sys.stdin is None or sys.stdin.isatty():
            raise ConfigError("--each - reads questions from standard input, and nothing is piped in.")
        yield read_lines(sys.stdin.buffer, "--each standard input")
        return
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - closed below; errors inside the caller's block are the caller's
    except OSError as error:
        raise ConfigError(f"--each {path} cannot be read: {describe_read_error(error)}.") from None
    with file:
        yield read_lines(file, f"--each {path}", is_text=path.lower().endswith(".txt"))
