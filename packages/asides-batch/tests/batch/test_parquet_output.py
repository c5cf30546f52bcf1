"""The output of a batch as Parquet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from asides_batch.parquet_output import is_batch_output, write_batch_output


def rewrite(folder: Path, rows: list[dict[str, Any]]) -> Any:
    parquet = pytest.importorskip("pyarrow.parquet")
    lines, target = folder / "lines", folder / "out.parquet"
    lines.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    with target.open("wb") as file:
        write_batch_output(lines, file)
    assert is_batch_output(target)
    return parquet.read_table(target)


def test_fields_become_columns_with_their_types(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"index": 0, "id": None, "fingerprint": "a", "text": "x", "usage": {"input": 1}, "tags": ["u"], "mixed": 1},
        {"index": 1, "id": 7, "fingerprint": "b", "error": {"type": "T"}, "usage": {"input": 2, "share": 0.5}},
        {"index": 2, "id": 8, "fingerprint": "c", "usage": {"share": 1}, "mixed": ["é"], "empty": {}},
    ]
    table = rewrite(tmp_path, rows)
    assert {field.name: str(field.type) for field in table.schema} == {
        "index": "int64",
        "id": "int64",
        "fingerprint": "string",
        "text": "string",
        "usage": "struct<input: int64, share: double>",
        "tags": "list<element: string>",
        "mixed": "string",
        "error": "struct<type: string>",
        "empty": "string",
    }
    found = table.to_pylist()
    assert found[2]["usage"] == {"input": None, "share": 1.0}
    assert [row["mixed"] for row in found] == ["1", None, '["é"]']
    assert [row["id"] for row in found] == [None, 7, 8]
    assert found[2]["empty"] == "{}"


def test_rows_are_written_in_groups(tmp_path: Path) -> None:
    table = rewrite(tmp_path, [{"index": n, "id": None, "fingerprint": str(n)} for n in range(2500)])
    assert table.num_rows == 2500
    parquet = pytest.importorskip("pyarrow.parquet")
    assert parquet.ParquetFile(tmp_path / "out.parquet").num_row_groups == 3


def test_no_rows_are_a_file_too(tmp_path: Path) -> None:
    table = rewrite(tmp_path, [])
    assert (table.num_rows, table.column_names) == (0, ["index", "id", "fingerprint"])
