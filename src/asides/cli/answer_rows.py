"""The answers of `ask --each`: one JSON line for each question, in a file or on stdout.

Each row is written whole. A file is read first: what is answered in it is not asked again.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Self

from asides.batch_rows import LEDGER_SUFFIX, Question, encode_canonical
from asides.cli.inputs import describe_read_error
from asides.cli.private_files import try_lock
from asides.cli.question_rows import STDIN
from asides.cli.terminal import Terminal
from asides.flows.reply_fields import is_answered
from asides.values.errors import ConfigError
from asides.values.json_form import to_json_value, write_json

# The start of every row: distinguishes a torn row from a file that is not ours.
_START = b'{"index": '
# The fields of a row that are not those of the answer.
_ROW_FIELDS = ("index", "id", "fingerprint", "row")


def encode_row(question: Question, fields: dict[str, Any]) -> dict[str, Any]:
    """The row of one answer: which question it was, the fields of the reply or the error, and the question's own."""
    named = {"index": question.index, "id": question.id, "fingerprint": question.fingerprint}
    # A row has the id of its question, by which a run resumes. The id of the reply has another name.
    row: dict[str, Any] = {**named, **{"response_id" if name == "id" else name: fields[name] for name in fields}}
    return {**row, "row": question.rest} if question.rest else row


class AnswerFile:
    """Where the answers go. Opening it reads what is answered already, and removes a torn row and failed ones."""

    def __init__(
        self, path: str | None, questions: str, terminal: Terminal, repeated: frozenset[str] = frozenset()
    ) -> None:
        """`path` None or "-" is stdout. `questions` is the file of the questions, which is never written to.

        `repeated`: the fingerprints of questions that occur more than once. One answer serves all of them.
        """
        self._repeated = repeated
        self._kept: dict[str, dict[str, Any]] = {}
        """The answers to these, without the fields of a row."""
        self._path = None if path in (None, STDIN) else Path(str(path))
        self._questions = questions
        self._terminal = terminal
        self._file: BinaryIO | None = None
        self._answered: Counter[tuple[str | int | None, str, bytes]] = Counter()

    def __enter__(self) -> Self:
        if self._path is not None:
            try:
                self._open(self._path)
            except OSError as error:
                raise ConfigError(f"-o {self._path} cannot be written: {describe_read_error(error)}.") from None
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            with suppress(OSError):  # A pipe or a device has nothing to sync.
                os.fsync(self._file.fileno())
            self._file.close()
            self._file = None

    @property
    def advice(self) -> str:
        """A sentence for a run that was stopped or had failures; "" where nothing is kept."""
        return "" if self._path is None else " Run the same command again to ask the rest."

    def has_answer(self, question: Question) -> bool:
        """Whether the file has an answer to this row. Of equal rows, each answer counts for one."""
        name = (question.id, question.fingerprint, _encode_rest(question.rest))
        if not self._answered[name]:
            return False
        self._answered[name] -= 1
        return True

    def is_repeated(self, question: Question) -> bool:
        """Whether others ask the same."""
        return question.fingerprint in self._repeated

    def find_fields(self, question: Question) -> dict[str, Any] | None:
        """The answer to a question that asks the same as an answered one; None if there is none."""
        return self._kept.get(question.fingerprint)

    def _keep(self, fingerprint: str, fields: dict[str, Any]) -> None:
        if fingerprint in self._repeated and is_answered(fields):
            self._kept.setdefault(fingerprint, fields)

    def write(self, question: Question, fields: dict[str, Any]) -> None:
        """Append the row of one answer, whole, and hand it to the system immediately."""
        self._keep(question.fingerprint, fields)
        plain = to_json_value(encode_row(question, fields))  # A question may hold NaN, which no other program reads.
        if self._file is None:
            self._terminal.write_answer(f"{write_json(plain, ascii_only=not self._terminal.supports_unicode)}\n")
            self._terminal.flush()
            return
        data = memoryview(write_json(plain).encode() + b"\n")
        try:
            while data:
                data = data[self._file.write(data) :]
        except BrokenPipeError:
            raise  # The reader closed the pipe, which is not an error.
        except OSError as error:
            reason = f"-o {self._path} cannot be written: {error.strerror}.{self.advice}"
            raise OSError(error.errno, reason.removesuffix(".")) from None

    # --- a file that exists -------------------------------------------------------------------------------------------

    def _open(self, path: Path) -> None:
        if Path(f"{path}{LEDGER_SUFFIX}").exists():
            raise ConfigError(
                f"-o {path} is the output of a batch: its ledger is beside it. Continue it with `asides batch "
                "resume`, or name another file."
            )
        if self._questions != STDIN and path.exists() and path.samefile(self._questions):
            raise ConfigError(f"-o {path} is the file of the questions. Name another one.")
        if path.is_file():
            with path.open("rb") as file:
                _lock(file, path)
                if self._read(file, path):
                    self._rewrite(path)
        self._file = path.open("ab", buffering=0)
        if path.is_file():
            _lock(self._file, path)

    def _read(self, file: BinaryIO, path: Path) -> bool:
        """Read the rows. Returns whether the file has more than whole answered rows."""
        has_others = False
        for number, line in enumerate(file, start=1):
            row = _decode(line)
            is_whole = line.endswith(b"\n")
            if row is None and line.strip() and (is_whole or not (line.startswith(_START) or _START.startswith(line))):
                raise ConfigError(
                    f"-o {path}: line {number} is not an answer that --each wrote, so the file is left as it is. "
                    "Name another one."
                )
            if row is not None and is_answered(row):
                self._answered[row["id"], row["fingerprint"], _encode_rest(row.get("row") or {})] += 1
                self._keep(row["fingerprint"], {name: row[name] for name in row if name not in _ROW_FIELDS})
                has_others = has_others or not is_whole
            else:
                has_others = True
        return has_others

    def _rewrite(self, path: Path) -> None:
        """Leave the answered rows alone. A crash leaves the old file or the new one."""
        target = path.resolve()
        fresh = target.with_name(f"{target.name}.new")
        with path.open("rb") as old, fresh.open("wb") as new:
            for line in old:
                row = _decode(line)
                if row is not None and is_answered(row):
                    new.write(line if line.endswith(b"\n") else line + b"\n")
            new.flush()
            os.fsync(new.fileno())
        shutil.copymode(target, fresh)
        fresh.replace(target)


def _encode_rest(rest: dict[str, Any]) -> bytes:
    return encode_canonical(to_json_value(rest))


def _decode(line: bytes) -> dict[str, Any] | None:
    """A row of ours; None for anything else."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if (
        not isinstance(row, dict)
        or not isinstance(row.get("index"), int)
        or not isinstance(row.get("fingerprint"), str)
    ):
        return None
    return row if isinstance(row.get("id"), (str, int, type(None))) else None


def _lock(file: BinaryIO, path: Path) -> None:
    """Keep a second process from writing the same file. It is released when the file is closed."""
    # On Windows a lock keeps everybody from the bytes, also this process by another handle.
    if sys.platform != "win32" and not try_lock(file.fileno()):
        raise ConfigError(f"-o {path}: another process writes to it. Wait for it, or name another file.")
