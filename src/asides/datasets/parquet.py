"""Reads Parquet with PyArrow, which is loaded when needed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asides.values.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

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
            "Parquet files need PyArrow. Run: pip install 'asides[data]'; or use JSON lines (.jsonl)."
        ) from None


@contextmanager
def open_parquet(path: Path, name: str) -> Generator[Any]:
    """Open a Parquet file for reading. Errors call it `name`."""
    parquet = load_parquet()
    try:
        with parquet.ParquetFile(path) as file:
            if double := next((each for each, times in Counter(file.schema_arrow.names).items() if times > 1), None):
                raise ConfigError(f"{name} has two columns {double[:40]!r}. Give each its own name.")
            yield file
    except (OSError, UnicodeDecodeError, import_module("pyarrow").ArrowException) as problem:
        words = str(problem).partition("\n")[0][:200]
        raise ConfigError(f"{name} cannot be read as Parquet: {words}. Check that the file is whole.") from None


def iterate_parquet(
    path: Path, name: str, columns: Sequence[str] | None = None
) -> Iterator[tuple[list[dict[str, Any]], float]]:
    """Some rows at a time with Python's values, of all columns or of these, and the share of the file so far."""
    with open_parquet(path, name) as file:
        total, done = file.metadata.num_rows, 0
        known = None if columns is None else [each for each in columns if each in file.schema_arrow.names]
        for batch in file.iter_batches(batch_size=_ROWS, columns=known):
            done += batch.num_rows
            # A damaged file may say that it has no rows.
            yield _to_rows(batch, name), done / total if total else 1.0


def _to_rows(batch: Any, name: str) -> list[dict[str, Any]]:
    try:
        rows: list[dict[str, Any]] = batch.to_pylist()
    except (ValueError, OverflowError) as problem:  # Python has no nanoseconds, and no years beyond 9999.
        words = str(problem).partition("\n")[0][:200]
        raise ConfigError(
            f"{name} has a value that Python does not: {words}. Convert the column, or leave it out."
        ) from None
    return rows


def clean_row(row: dict[str, Any], where: str) -> dict[str, Any]:
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
    raise ConfigError(f"{where} has {type(value).__name__}, which JSON does not. Leave the column out.")
