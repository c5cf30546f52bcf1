"""The questions of `ask --each`: one JSON line, or one line of text, for each.

A row is text, or an object with `prompt`, `question` or `messages`. Not here: asking them (each).
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from asides.cli.inputs import describe_read_error
from asides.options import PromptLike
from asides.values.error_words import find_near_name
from asides.values.errors import ConfigError

STDIN = "-"
_PROMPTS = ("prompt", "question", "messages")
_OPTIONS = ("system", "thinking", "max_tokens", "temperature", "top_p", "stop", "seed")
_KNOWN = ("id", "model", *_PROMPTS, *_OPTIONS)
# A row is data. It does not decide where a request or a key goes.
_NOT_FROM_A_ROW = ("api_key", "base_url", "extra")


class Question(msgspec.Struct, frozen=True):
    """One question of the file."""

    index: int
    """Its place among the questions; the first is 0."""
    id: str | int | None
    fingerprint: str
    """The same for rows with the same content, whatever their id: a changed question has another one."""
    prompt: PromptLike
    model: str | None = None
    options: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    """Other fields of the row. They are copied to the answer."""


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
                    f"--each {path}: questions {seen[question.id] + 1} and {question.index + 1} have the same id. To "
                    "do: give each its own, or none."
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
        yield _read(sys.stdin.buffer, "standard input", is_text=False)
        return
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - closed below; errors inside the caller's block are the caller's
    except OSError as error:
        raise ConfigError(f"--each {path} cannot be read: {describe_read_error(error)}.") from None
    with file:
        yield _read(file, path, is_text=path.lower().endswith(".txt"))


def _read(file: BinaryIO, name: str, *, is_text: bool) -> Iterator[Question]:
    index = 0
    for number, line in enumerate(file, start=1):
        where = f"--each {name}, line {number}"
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError:
            raise ConfigError(f"{where} is not text in UTF-8.") from None
        if text:
            yield read_row(text if is_text else _parse(text, where), index, where)
            index += 1


def _parse(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ConfigError(
            f'{where} is not JSON. To do: write "a question" in quotes or {{"prompt": …}} a line; or plain text in a '
            "file whose name ends with .txt."
        ) from None


def read_row(row: Any, index: int, where: str) -> Question:
    """Read one row. Raises a ConfigError that names the place."""
    if isinstance(row, str):
        return Question(index, None, _take_fingerprint(row), _check_prompt(row, where))
    if not isinstance(row, dict):
        raise ConfigError(f"{where}: a question is text or an object, not {type(row).__name__}.")
    _check_names(row, where)
    named = [name for name in _PROMPTS if row.get(name) is not None]
    if len(named) != 1:
        found = f"has {' and '.join(named)}" if named else "has no question"
        raise ConfigError(f"{where} {found}. To do: give one of {', '.join(_PROMPTS)}.")
    given = row.get("id")
    if not isinstance(given, (str, int, type(None))) or isinstance(given, bool):
        raise ConfigError(f"{where}: id is text or a number.")
    model = row.get("model")
    if not isinstance(model, (str, type(None))):
        raise ConfigError(f"{where}: model is text, as provider:model.")
    return Question(
        index,
        given,
        _take_fingerprint({name: value for name, value in row.items() if name != "id"}),
        _check_prompt(row[named[0]], where),
        model,
        {name: row[name] for name in _OPTIONS if row.get(name) is not None},
        {name: value for name, value in row.items() if name not in _KNOWN},
    )


def _check_names(row: dict[str, Any], where: str) -> None:
    for name in row:
        if name in _NOT_FROM_A_ROW:
            raise ConfigError(f"{where}: {name} does not come from a row. To do: give it on the command line.")
        if name not in _KNOWN and (near := find_near_name(name, _KNOWN, cutoff=0.8)) is not None:
            raise ConfigError(f"{where} has a field {name[:40]!r}; did you mean {near}?")


def _check_prompt(prompt: Any, where: str) -> PromptLike:
    is_given = bool(prompt.strip()) if isinstance(prompt, str) else bool(prompt)
    if not isinstance(prompt, (str, list)) or not is_given:
        raise ConfigError(f"{where}: a question is text, or a list of messages, and not empty.")
    checked: PromptLike = prompt
    return checked


def _take_fingerprint(row: object) -> str:
    content = json.dumps(row, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()[:16]
