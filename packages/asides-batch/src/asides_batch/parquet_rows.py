"""The questions of a Parquet file: its columns are the fields of a row. Read some rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

from asides.batch_rows import Question, read_row
from asides.datasets.parquet import clean_row, iterate_parquet
from asides.values.errors import ConfigError


def read_parquet(
    path: Path, name: str, on_problem: Callable[[ConfigError], object] | None = None
) -> Iterator[Question]:
    """The questions, read as they are taken. Raises for a wrong row, or hands it to `on_problem`."""
    index = 0
    rows = chain.from_iterable(rows for rows, _ in iterate_parquet(path, name))
    for number, row in enumerate(rows, start=1):
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
