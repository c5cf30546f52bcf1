"""The questions of a Parquet file: its columns are the fields of a row. Read some rows at a time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asides.batch_rows import Question, read_row
from asides.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Generator

_ROWS = 500
_ENDING = ".parquet"


def is_parquet(path: Path) -> bool:
    """Whether a file has Parquet's ending."""
    return path.name.lower().endswith(_ENDING)


def load_parquet() -> Any:
    """PyArrow's module for Parquet. Raises a ConfigError if it is not installed."""
    try:
        return import_module("pyarrow.parquet")
    except ImportError:
        raise ConfigError(
            "Parquet files need PyArrow. To do: pip install 'asides[ray]', or pyarrow; or use JSON lines (.jsonl)."
        ) from None


def read_parquet(
    path: Path, name: str, on_problem: Callable[[ConfigError], object] | None = None
) -> Iterator[Question]:
    """The questions, read as they are taken. Raises for a wrong row, or hands it to `on_problem`."""
    with _open(path, name) as file:
        index = 0
        number = 0
        if double := next((each for each, times in Counter(file.schema_arrow.names).items() if times > 1), None):
            raise ConfigError(f"{name} has two columns {double[:40]!r}. To do: give each its own name.")
        for batch in file.iter_batches(batch_size=_ROWS):
            for row in _to_rows(batch, name):
                number += 1
                where = f"{name}, row {number}"
                try:
                    question = read_row(clean_row(row, where), index, where, number)
                except ConfigError as problem:
                    if on_problem is None:
                        raise
                    on_problem(problem)
                    continue
                yield question
                index += 1


def _to_rows(batch: Any, name: str) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = batch.to_pylist()
    except (ValueError, OverflowError) as problem:  # Python has no nanoseconds, and no years beyond 9999.
        words = str(problem).partition("\n")[0][:200]
        raise ConfigError(
            f"{name} has a value that Python does not: {words}. To do: convert the column, or leave it out."
        ) from None
    return rows


@contextmanager
def _open(path: Path, name: str) -> Generator[Any]:
    parquet = load_parquet()
    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except (OSError, import_module("pyarrow").ArrowException) as problem:
        words = str(problem).partition("\n")[0][:200]
        raise ConfigError(f"{name} cannot be read as Parquet: {words}. To do: check that the file is whole.") from None


def clean_row(row: dict[str, Any], where: str) -> Any:
    """A row as JSON has it. A field that is null is not there: Parquet has every field in every row."""
    cleaned = {name: _clean(value, f"{where}: the column {name[:40]!r}") for name, value in row.items()}
    return {name: value for name, value in cleaned.items() if value is not None}


def _clean(value: Any, where: str) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None  # Many programs write NaN for what is missing, and JSON has no such number.
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, dict):
        cleaned = {name: _clean(part, where) for name, part in value.items()}
        return {name: part for name, part in cleaned.items() if part is not None}
    if isinstance(value, (list, tuple)):
        return [_clean(part, where) for part in value]
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if hasattr(value, "tolist"):  # A number or an array of NumPy, from a dataset of Ray.
        return _clean(value.tolist(), where)
    raise ConfigError(f"{where} has {type(value).__name__}, which JSON does not. To do: leave the column out.")
