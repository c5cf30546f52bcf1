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
from typing import TYPE_CHECKING, Any, Literal

from asides.datasets.files import find_form
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
    check_compression(name)
    try:
        with parquet.ParquetFile(path) as file:
            if double := next((each for each, times in Counter(file.schema_arrow.names).items() if times > 1), None):
                raise ConfigError(f"{name} has two columns {double[:40]!r}. Give each its own name.")
            yield file
    except (OSError, UnicodeDecodeError, import_module("pyarrow").ArrowException) as problem:
        words = str(problem).partition("\n")[0][:200]
        raise ConfigError(f"{name} cannot be read as Parquet: {words}. Check that the file is whole.") from None


def check_compression(name: str) -> None:
    """Raise ConfigError for a name such as `rows.parquet.gz`: Parquet is compressed inside."""
    form = find_form(name)
    if form.format == "parquet" and form.compression:
        raise ConfigError(
            f"{name} is Parquet inside {form.compression}, which cannot be read in parts. Parquet is compressed "
            f"already: unpack the file, and name it without {Path(name).suffix}."
        )


def iterate_parquet(
    path: Path, name: str, columns: Sequence[str] | None = None
) -> Iterator[tuple[list[dict[str, Any]], float]]:
    """Some rows at a time with Python's values, of all columns or of these, and the share of the file so far."""
    with open_parquet(path, name) as file:
        total, done = file.metadata.num_rows, 0
        known = None if columns is None else [each for each in columns if each in file.schema_arrow.names]
        for batch in file.iter_batches(batch_size=_ROWS, columns=known):
            done += batch.num_rows
            # A damaged file may report zero rows.
            yield to_rows(batch, name), done / total if total else 1.0


def to_rows(batch: Any, name: str) -> list[dict[str, Any]]:
    """The rows of a batch or a table with Python's values. Raises ConfigError for a value that Python does not have."""
    try:
        rows: list[dict[str, Any]] = _write_nanoseconds(batch).to_pylist()
    except (ValueError, OverflowError, import_module("pyarrow").ArrowException) as problem:  # A year beyond 9999.
        words = str(problem).partition("\n")[0][:200]
        raise ConfigError(
            f"{name} has a value that Python does not: {words}. Convert the column, or leave it out."
        ) from None
    return rows


def _write_nanoseconds(batch: Any) -> Any:
    """The same rows with times in microseconds, or as text if they have nanoseconds, which Python has not.

    PyArrow alone would make them values of pandas where that is installed.
    """
    arrow = import_module("pyarrow")
    fields = [field.with_type(_replace_nanoseconds(arrow, field.type, "us")) for field in batch.schema]
    if fields == list(batch.schema):
        return batch
    try:
        return batch.cast(arrow.schema(fields))
    except arrow.ArrowInvalid:
        fields = [field.with_type(_replace_nanoseconds(arrow, field.type, "text")) for field in batch.schema]
        return batch.cast(arrow.schema(fields))


def _replace_nanoseconds(arrow: Any, kind: Any, form: Literal["us", "text"]) -> Any:
    types = arrow.types
    if types.is_temporal(kind) and getattr(kind, "unit", "") == "ns":
        if form == "text":
            return arrow.int64() if types.is_duration(kind) else arrow.string()
        if types.is_duration(kind):
            return arrow.duration("us")
        return arrow.timestamp("us", kind.tz) if types.is_timestamp(kind) else arrow.time64("us")
    if types.is_struct(kind):
        return arrow.struct([field.with_type(_replace_nanoseconds(arrow, field.type, form)) for field in kind])
    if types.is_list(kind) or types.is_large_list(kind):
        make = arrow.list_ if types.is_list(kind) else arrow.large_list
        return make(kind.value_field.with_type(_replace_nanoseconds(arrow, kind.value_type, form)))
    return kind


def plain_row(row: dict[str, Any]) -> dict[str, Any]:
    """A row of a data set: with nulls, and with bytes as they are. What is not a number is null."""
    return {name: to_plain(value) for name, value in row.items()}


def to_plain(value: Any) -> Any:
    """A value as JSON has it, but for bytes, which are written in base64."""
    if value is None or isinstance(value, (str, bool, int, bytes)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(name): to_plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(part) for part in value]
    return value.isoformat() if isinstance(value, (date, datetime, time)) else str(value)


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
    raise ConfigError(f"{where} has {type(value).__name__}, which JSON cannot represent. Leave the column out.")
