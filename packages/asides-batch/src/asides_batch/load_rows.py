"""Load rows into the ledger: from a file, or from a program through a temporary file (`spool`). A million rows are
fine.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from asides.batch_rows import FillPrompt, Question, encode_canonical, read_good_lines, read_lines
from asides.database import Database
from asides.datasets.parquet import is_parquet
from asides.values.errors import ConfigError
from asides_batch.batch_plan import BatchPlan, encode_request
from asides_batch.ledger import Ledger
from asides_batch.ledger_values import BatchRecord, LoadedRow
from asides_batch.parquet_rows import read_parquet

_ROWS = 1000
_BYTES = 4_000_000
"""The most rows, and the most bytes, of one transaction."""


class RowSource(msgspec.Struct, frozen=True):
    """A file of rows."""

    path: Path
    name: str
    """For messages, and for the ledger."""
    is_text: bool = False
    """Whether each line is a question as it is."""
    fill_prompt: FillPrompt | None = None
    """Puts a question into the prompt of a template."""

    def compute_digest(self) -> str:
        """A digest of the content."""
        digest = hashlib.sha256(b"text" if self.is_text else b"json")
        if self.fill_prompt is not None:
            digest.update(self.fill_prompt("\0").encode())
        with self._open() as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
        return digest.hexdigest()[:32]

    @contextmanager
    def read(self, on_problem: Callable[[ConfigError], object] | None = None) -> Generator[Iterator[Question]]:
        """The questions, read as they are taken. Raises for a wrong line, or hands it to `on_problem`."""
        with self._open() as file:
            if is_parquet(self.path):
                questions = read_parquet(self.path, self.name, on_problem)
            elif on_problem is None:
                questions = read_lines(file, self.name, is_text=self.is_text)
            else:
                questions = read_good_lines(file, self.name, on_problem, is_text=self.is_text)
            yield (question.fill(self.fill_prompt) for question in questions)

    def _open(self) -> BinaryIO:
        try:
            if self.path.exists() and not self.path.is_file():
                raise ConfigError(
                    f"{self.name} is a folder, a device or a pipe, and is read more than once. Name a file, or "
                    "pipe the rows into `asides batch run -`."
                )
            return self.path.open("rb")
        except OSError as problem:
            raise ConfigError(f"{self.name} cannot be read: {problem.strerror or problem}.") from None


@contextmanager
def spool(rows: Iterable[Any], name: str) -> Generator[RowSource]:
    """Rows of a program as a file: text, dicts as a line of a file has them, or lists of messages."""
    with tempfile.TemporaryDirectory(prefix="asides-batch-") as folder:
        path = Path(folder) / "rows.jsonl"
        with path.open("wb") as file:
            for number, row in enumerate(rows, start=1):
                if isinstance(row, bytes):
                    file.write(row if row.endswith(b"\n") else row + b"\n")
                    continue
                file.write(_encode_row(row, number) + b"\n")
        yield RowSource(path, name)


def _encode_row(row: Any, number: int) -> bytes:
    plain = {"messages": row} if isinstance(row, (list, tuple)) else dict(row) if isinstance(row, Mapping) else row
    try:
        return json.dumps(plain).encode()
    except (TypeError, ValueError, RecursionError):
        raise ConfigError(
            f"row {number} cannot be written as JSON. Give text, a dict, or a list of messages as dicts."
        ) from None


def load_rows(
    source: RowSource,
    plan: BatchPlan,
    database: Database,
    ledger: Ledger,
    record: BatchRecord,
    is_stopped: Callable[[], bool] = lambda: False,
) -> BatchRecord:
    """Load all rows into the ledger. Nothing can be claimed before. `record`: the batch as `Ledger.begin` returned it.

    Rows that are already in the ledger are skipped, whether loaded by this process, one that was killed, or one that
    loads at the same time. Returns the batch as it is then: it may have been cancelled, or given other rows.
    """
    version, count = record.version, 0

    def read_missing() -> Iterator[LoadedRow]:
        nonlocal count
        for question in questions:
            count = question.index + 1
            if question.index >= record.row_count:
                yield _read_row(question, plan, source.name)

    with source.read() as questions:
        for group in _group(read_missing()):
            record = database.run(partial(ledger.load, group, version), durable=False)
            if record.state != "loading" or record.version != version or is_stopped():
                return record
    if not count:
        raise ConfigError(f"{source.name} has no questions. Write one JSON text or object on each line.")
    return database.run(partial(ledger.finish_loading, count, version))


def _read_row(question: Question, plan: BatchPlan, name: str) -> LoadedRow:
    request = encode_request(question)
    try:
        hash_ = plan.compute_hash(question, request)
    except ConfigError as problem:
        raise ConfigError(f"{name}, line {question.line}: {problem}") from None
    rest = encode_canonical(question.rest) if question.rest else None
    return LoadedRow(question.index, hash_, question.id, rest, request)


def _group(rows: Iterable[LoadedRow]) -> Iterator[list[LoadedRow]]:
    group: list[LoadedRow] = []
    size = 0
    for row in rows:
        group.append(row)
        size += len(row.request)
        if len(group) >= _ROWS or size >= _BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
