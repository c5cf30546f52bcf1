"""The output of a batch as a Parquet file."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

from asides.datasets.parquet import load_parquet
from asides.datasets.parquet_output import Shape, write_parquet

_MARK = b"asides"
_FIRST: dict[str, Shape] = {"index": "int", "id": None, "fingerprint": "text"}


def write_batch_output(lines: Path, target: BinaryIO) -> None:
    """Write the answers of a batch, a file of JSON lines, as Parquet."""
    write_parquet(lines, target, _FIRST, {_MARK: b"batch"})


def is_batch_output(path: Path) -> bool:
    """Whether a batch wrote this Parquet file."""
    parquet, arrow = load_parquet(), import_module("pyarrow")
    with suppress(OSError, arrow.ArrowException):
        return _MARK in (parquet.read_schema(path).metadata or {})
    return False
