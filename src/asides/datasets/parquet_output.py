"""Writes JSON lines as a Parquet file: the columns are the fields of a line, with the types that the values have.

The lines are read twice: for the types, and to write them in groups of rows. A field with values of several types is
JSON in text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, TypeAlias, cast

from asides.datasets.parquet import load_parquet

Shape: TypeAlias = "str | dict[str, Any] | list[Any] | None"
"""The type of a column: "bool", "int", "float", "text", "json"; a dict of shapes for an object, a list with the shape
of its items, and None for what is always null."""
_MAX_NAMES = 100
_MAX_DEPTH = 6
_GROUP = 1000
_GROUP_BYTES = 16_000_000
_INT64 = 1 << 63


def write_parquet(
    lines: Path,
    target: BinaryIO,
    first: Mapping[str, Shape] = MappingProxyType({}),
    metadata: Mapping[bytes, bytes] | None = None,
) -> None:
    """Write a file of JSON lines, each an object, as Parquet. `first` are the columns that it has in any case."""
    parquet, arrow = load_parquet(), import_module("pyarrow")
    shapes: dict[str, Any] = dict(first)
    with lines.open("rb") as file:
        for line in file:
            for name, value in _read_line(line).items():
                shapes[name] = merge_shapes(shapes.get(name), find_shape(value))
    fields = [arrow.field(name, _to_type(arrow, shape)) for name, shape in shapes.items()]
    schema = arrow.schema(fields, metadata=metadata)
    with lines.open("rb") as file, parquet.ParquetWriter(target, schema) as writer:
        for group in _group(file):
            rows = [{name: _convert(row.get(name), shape) for name, shape in shapes.items()} for row in group]
            writer.write_table(arrow.Table.from_pylist(rows, schema=schema))


def add_columns(sources: Sequence[Path], lines: Path, target: Path) -> None:
    """Write the rows of Parquet files with more columns, or changed ones, from a file of JSON lines.

    The other columns keep their types and values. The files have the columns of the first.
    """
    parquet, arrow = load_parquet(), import_module("pyarrow")
    added = target.with_name(f"{target.name}.columns")
    with added.open("wb") as file:
        write_parquet(lines, file)
    try:
        with parquet.ParquetFile(added) as more:
            schema = _add_fields(arrow, parquet.read_schema(sources[0]), more.schema_arrow)
            with parquet.ParquetWriter(target, schema) as writer:
                new = _Rows(arrow, more)
                for path in sources:
                    with parquet.ParquetFile(path) as source:
                        for batch in source.iter_batches(batch_size=_GROUP):
                            rows = arrow.Table.from_batches([batch])
                            columns = new.take(batch.num_rows)
                            for name in columns.column_names:
                                if name in rows.column_names:
                                    rows = rows.drop_columns([name])
                                rows = rows.append_column(name, columns.column(name))
                            writer.write_table(rows.select(schema.names).cast(schema))
    finally:
        added.unlink()


def _add_fields(arrow: Any, schema: Any, more: Any) -> Any:
    fields = {field.name: field for field in (*schema, *more)}
    return arrow.schema(list(fields.values()), metadata=schema.metadata)


class _Rows:
    """Takes any number of rows at a time from a Parquet file."""

    def __init__(self, arrow: Any, file: Any) -> None:
        self._arrow = arrow
        self._batches = file.iter_batches(batch_size=_GROUP)
        self._held = file.schema_arrow.empty_table()

    def take(self, count: int) -> Any:
        while self._held.num_rows < count:
            batch = self._arrow.Table.from_batches([next(self._batches)])
            self._held = self._arrow.concat_tables([self._held, batch])
        taken, self._held = self._held.slice(0, count), self._held.slice(count)
        return taken


def _group(file: Any) -> Iterator[list[dict[str, Any]]]:
    group: list[dict[str, Any]] = []
    size = 0
    for line in file:
        group.append(_read_line(line))
        size += len(line)
        if len(group) >= _GROUP or size >= _GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


_HALF = re.compile(rb"\\u[dD][89a-fA-F]")


def _read_line(line: bytes) -> Any:
    """The row in a line. Halves of characters, which Parquet does not have, are replaced."""
    row = json.loads(line)
    return _replace_halves(row) if _HALF.search(line) else row


def _replace_halves(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_replace_halves(item) for item in value]
    if isinstance(value, dict):
        return {_replace_halves(name): _replace_halves(part) for name, part in value.items()}
    return value


# --- types --------------------------------------------------------------------------------------------------------


def find_shape(value: Any, depth: int = 0) -> Shape:
    """The type of a value of JSON."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if -_INT64 <= value < _INT64 else "json"
    if isinstance(value, float):
        return "float"
    if isinstance(value, str):
        return "text"
    if depth >= _MAX_DEPTH:
        return "json"
    if isinstance(value, list):
        shape: Shape = None
        for item in value:
            shape = merge_shapes(shape, find_shape(item, depth + 1))
        return [shape]
    names = cast("dict[str, Any]", value)
    return "json" if len(names) > _MAX_NAMES else {name: find_shape(part, depth + 1) for name, part in names.items()}


def merge_shapes(left: Shape, right: Shape) -> Shape:
    """A type for values of both types."""
    if left is None or right is None or left == right:
        return left if right is None else right
    if isinstance(left, dict) and isinstance(right, dict):
        names = {name: merge_shapes(left.get(name), right.get(name)) for name in {**left, **right}}
        return "json" if len(names) > _MAX_NAMES else names
    if isinstance(left, list) and isinstance(right, list):
        return [merge_shapes(left[0], right[0])]
    return "float" if {str(left), str(right)} == {"int", "float"} else "json"


def _to_type(arrow: Any, shape: Shape) -> Any:
    if isinstance(shape, dict) and shape:
        return arrow.struct([arrow.field(name, _to_type(arrow, part)) for name, part in shape.items()])
    if isinstance(shape, list):
        return arrow.list_(_to_type(arrow, shape[0]))
    scalars = {"bool": arrow.bool_, "int": arrow.int64, "float": arrow.float64}
    return scalars.get(str(shape), arrow.string)()


def _convert(value: Any, shape: Shape) -> Any:
    if value is None:
        return None
    if isinstance(shape, dict) and shape:
        return {name: _convert(value.get(name), part) for name, part in shape.items()}
    if isinstance(shape, list):
        return [_convert(item, shape[0]) for item in value]
    if shape == "json" or isinstance(shape, dict):
        return json.dumps(value, ensure_ascii=False)
    return float(value) if shape == "float" else value
