"""Files of rows: what is read is what was written, in every format, and a bad row costs no other."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import asides
from asides.datasets.rows import Row, open_writer, read_rows

ROWS: list[dict[str, Any]] = [
    {"id": str(number), "response": f"<think>a\n{number}</think>é {'x' * number}", "n": "1"} for number in range(1200)
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    with open_writer(path) as writer:
        for row in rows:
            writer.write(row)
    return path


@pytest.mark.parametrize(
    "name",
    ["a.jsonl", "a.json", "a.csv", "a.parquet", "a.jsonl.gz", "a.json.gz", "a.csv.gz", "a.jsonl.zst", "a.csv.zst"],
)
def test_rows_are_read_as_they_were_written(name: str, tmp_path: Path) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    if name.endswith("zst"):
        pytest.importorskip("zstandard")
    path = write(tmp_path / name, ROWS)
    assert list(read_rows(path)) == [Row(number, row) for number, row in enumerate(ROWS, 1)]
    assert [each.name for each in tmp_path.iterdir()] == [name]
    empty = write(tmp_path / f"empty-{name}", [])
    assert list(read_rows(empty)) == []


def test_a_bad_line_costs_no_other(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n\n{"a": \n[1]\n{"a": NaN, "b": "\\ud83d"}\n\xff\n{"a": 2}')
    found = list(read_rows(path))
    assert [(row.number, row.problem) for row in found] == [
        (1, ""),
        (3, "the row is not JSON"),
        (4, "the row is not an object"),
        (5, ""),
        (6, "the row is not UTF-8"),
        (7, ""),
    ]
    assert (found[0].fields, found[3].fields["b"], found[-1].fields) == ({"a": 1}, "\ud83d", {"a": 2})


def test_a_line_too_long_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asides.datasets.rows.MAX_ROW_BYTES", 3_000_000)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n"' + b"x" * 9_000_000 + b'"\n{"a": 2}\n')
    assert [(row.number, row.problem[:20]) for row in read_rows(path)] == [
        (1, ""),
        (2, "the row is longer th"),
        (3, ""),
    ]


def test_json_documents_are_arrays_or_objects_in_a_row(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('\ufeff [ {"a":\n 1} , {"a": "' + "y" * 3_000_000 + '"}\n]', encoding="utf-8")
    assert [len(str(row.fields["a"])) for row in read_rows(path)] == [1, 3_000_000]
    path.write_text('{"a": 1}\n{"a":\n 2}', encoding="utf-8")
    assert [row.fields for row in read_rows(path)] == [{"a": 1}, {"a": 2}]
    path.write_text('[{"a": 1}, {"a": ', encoding="utf-8")
    assert [(row.number, row.problem) for row in read_rows(path)] == [
        (1, ""),
        (2, "the file is not JSON from here on: 6 characters were left out"),
    ]


def test_an_array_under_another_name_is_recognized(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(gzip.compress(b'[{"a": 1}]'))
    assert [row.fields for row in read_rows(path)] == [{"a": 1}]


def test_csv_keeps_bytes_that_are_not_text_and_reports_short_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbfid,t\n1,"a\nb"\n2\n3,\xff\n')
    assert list(read_rows(path)) == [
        Row(1, {"id": "1", "t": "a\nb"}),
        Row(2, {}, "the row has 1 columns, and the header has 2"),
        Row(3, {"id": "3", "t": "\udcff"}),
    ]


def test_a_file_keeps_its_content_until_the_new_one_is_complete(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [{"a": 1}])
    with pytest.raises(asides.ConfigError), open_writer(path) as writer:
        writer.write(next(read_rows(tmp_path / "nowhere.jsonl")).fields)
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": 1}
    assert [each.name for each in tmp_path.iterdir()] == ["a.jsonl"]


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(asides.ConfigError, match=r"nowhere.jsonl cannot be read: No such file"):
        list(read_rows(tmp_path / "nowhere.jsonl"))
    broken = tmp_path / "a.jsonl.gz"
    broken.write_bytes(gzip.compress(b'{"a": 1}\n' * 1000)[:30])
    with pytest.raises(asides.ConfigError, match=r"a.jsonl.gz is damaged"):
        list(read_rows(broken))
    with pytest.raises(asides.ConfigError, match="Parquet cannot be written to a pipe"):
        open_writer("-", format_name="parquet")
