"""The questions of `ask --each`, from its file or from standard input."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from asides.batch_rows import FillPrompt, Question, read_lines
from asides.cli.inputs import describe_read_error
from asides.values.errors import ConfigError

STDIN = "-"


def count_questions(path: str, fill_prompt: FillPrompt | None = None) -> tuple[int | None, frozenset[str]]:
    """The number of questions, after a look at every row, and the fingerprints that occur more than once. Of standard
    input, which can be read only once: None, and no fingerprints.

    Raises a ConfigError for a row that cannot be asked, so that nothing is sent before all of them can be.
    """
    if path == STDIN:
        return None, frozenset()
    fingerprints: set[str] = set()
    repeated: set[str] = set()
    with open_questions(path, fill_prompt) as questions:
        seen: dict[str | int, int] = {}
        count = 0
        for question in questions:
            count += 1
            (repeated if question.fingerprint in fingerprints else fingerprints).add(question.fingerprint)
            if question.id is not None and seen.setdefault(question.id, question.index) != question.index:
                raise ConfigError(
                    f"--each {path}: questions {seen[question.id] + 1} and {question.index + 1} have the same id. "
                    "Give each its own, or none."
                )
    if not count:
        raise ConfigError(f"--each {path} has no questions: write one JSON text or object a line.")
    return count, frozenset(repeated)


@contextmanager
def open_questions(path: str, fill_prompt: FillPrompt | None = None) -> Generator[Iterator[Question]]:
    """The questions, read as they are taken. `fill_prompt`: puts each into the prompt of a template."""
    if path == STDIN:
        if sys.stdin is None or sys.stdin.isatty():
            raise ConfigError("--each - reads questions from standard input, but nothing is piped in.")
        yield (question.fill(fill_prompt) for question in read_lines(sys.stdin.buffer, "--each standard input"))
        return
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - closed below; errors inside the caller's block are the caller's
    except OSError as error:
        raise ConfigError(f"--each {path} cannot be read: {describe_read_error(error)}.") from None
    with file:
        questions = read_lines(file, f"--each {path}", is_text=path.lower().endswith(".txt"))
        yield (question.fill(fill_prompt) for question in questions)
