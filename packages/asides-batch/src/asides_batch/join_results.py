"""Write the output of a batch: each row with its result, in the order of the input. `write_output`, `read_results`.

Rows are read from the ledger some at a time, so that a million of them need no more memory than a thousand.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from asides.batch_rows import compute_fingerprint
from asides.database import Database
from asides.datasets.parquet import is_parquet, load_parquet
from asides.flows.reply_fields import is_answered
from asides.values.errors import ConfigError
from asides.values.usage import Usage
from asides_batch.ledger import Ledger
from asides_batch.ledger_values import JoinedRow, build_damage_error
from asides_batch.parquet_output import is_batch_output, write_batch_output

_PAGE = 1000
_START = b'{"index": '


class BatchResult(msgspec.Struct, frozen=True):
    """The result of one row."""

    index: int
    """The place of the row; the first is 0."""
    id: str | int | None
    text: str
    """The answer; "" if there is none."""
    thinking: str | None
    """None unless thinking is kept."""
    outcome: str | None
    """How the reply ended, as in `Reply.outcome`; None if there is no reply."""
    error: dict[str, Any] | None
    """The type and the message of the error; None for an answer."""
    usage: Usage
    fields: dict[str, Any]
    """Everything that the output has of this row."""

    @property
    def is_answered(self) -> bool:
        """Whether there is a final reply. Rows without one are asked again by `resume`."""
        return is_answered(self.fields)

    @property
    def output(self) -> Any:
        """The value that `output=` asked for, as plain JSON; without `output=`, the text."""
        return self.fields.get("output", self.text)

    def __repr__(self) -> str:
        return f"BatchResult(index={self.index}, id={self.id!r}, outcome={self.outcome!r})"


def read_joined(database: Database, ledger: Ledger) -> Iterator[JoinedRow]:
    """All rows in order, with or without a result."""
    place = 0
    while page := database.run(partial(ledger.join, place, _PAGE), writes=False):
        yield from page
        place = page[-1].place + 1


def encode_joined(row: JoinedRow) -> bytes:
    """A row that has a result as a line of the output."""
    named = {"index": row.place, "id": row.id, "fingerprint": compute_fingerprint(row.request)}
    parts = [json.dumps(named).encode()[:-1], (row.result or b"{}")[1:-1]]
    if row.rest is not None:
        parts.append(b'"row": ' + row.rest)
    return b", ".join(part for part in parts if part) + b"}\n"


def read_results(database: Database, ledger: Ledger) -> Iterator[BatchResult]:
    """The results in order. Rows that were not asked yet are left out."""
    for row in read_joined(database, ledger):
        if row.result is not None:
            try:
                fields: dict[str, Any] = json.loads(encode_joined(row))
                usage = msgspec.convert(fields.get("usage") or {}, Usage, strict=False)
            except (ValueError, msgspec.MsgspecError):
                raise build_damage_error(f"the result of row {row.place}") from None
            thinking, outcome, error = (fields.get(name) for name in ("thinking", "outcome", "error"))
            text = str(fields.get("text") or "")
            yield BatchResult(row.place, row.id, text, thinking, outcome, error, usage, fields)


def write_output(database: Database, ledger: Ledger, path: Path) -> int:
    """Write the rows that have a result, and return their number. A crash leaves the old file or the new one."""
    target = Path(os.path.realpath(path))
    fresh = _name_fresh(target)
    count = 0
    try:
        with fresh.open("xb") as file:
            for row in read_joined(database, ledger):
                if row.result is not None:
                    file.write(encode_joined(row))
                    count += 1
            file.flush()
            os.fsync(file.fileno())
        if is_parquet(target):
            fresh = _to_parquet(fresh, target)
        with suppress(FileNotFoundError):
            shutil.copymode(target, fresh)
        fresh.replace(target)
    except BaseException as problem:
        with suppress(OSError):
            fresh.unlink()
        if not isinstance(problem, OSError):
            raise
        raise ConfigError(
            f"the output {path} cannot be written: {problem.strerror or problem}. The ledger has what was answered. "
            "Make room or allow writing, and resume the batch."
        ) from None
    return count


def _name_fresh(target: Path) -> Path:
    """An unguessable name: another process may write the same output, or may have put a link at a name that is easy to
    guess.
    """
    return target.with_name(f"{target.name}.new-{secrets.token_hex(4)}")


def _to_parquet(lines: Path, target: Path) -> Path:
    fresh = _name_fresh(target)
    try:
        with fresh.open("xb") as file:
            write_batch_output(lines, file)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    lines.unlink()
    return fresh


def check_output(path: Path, source: Path | None, *, has_ledger: bool) -> None:
    """Raise a ConfigError if the output cannot be written, or would replace a file that no batch wrote."""
    if source is not None and path.exists() and path.samefile(source):
        raise ConfigError(f"the output {path} is the file of the rows. Name another one.")
    if not path.parent.is_dir():
        raise ConfigError(f"the folder of the output {path} does not exist. Create it, or name another place.")
    if path.is_dir() or (path.exists() and not path.is_file()):
        raise ConfigError(f"the output {path} is a folder, a device or a pipe. Name a file.")
    if is_parquet(path):
        load_parquet()  # Raises before anything is asked.
    if path.exists() and path.stat().st_size and not (has_ledger and _is_ours(path)):
        why = "was not written by a batch" if has_ledger else "exists, and there is no ledger beside it"
        raise ConfigError(f"the output {path} {why}, so it is left as it is. Name another one.")


def _is_ours(path: Path) -> bool:
    if is_parquet(path):
        return is_batch_output(path)
    with path.open("rb") as file:
        return file.read(len(_START)) == _START
