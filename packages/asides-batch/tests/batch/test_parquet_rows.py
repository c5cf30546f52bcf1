"""Questions from Parquet files. Without PyArrow only the error is tested."""

from __future__ import annotations

import sys
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import asides
import asides_batch
from asides.batch_rows import Question
from asides.datasets.parquet import clean_row, is_parquet, load_parquet
from asides.values.errors import ConfigError
from asides_batch.parquet_rows import read_parquet
from asides_stage.stage import OpenStage
from tests.batch.test_live_runner import Counting
from tests.cli.children import MODEL


def write(path: Path, rows: list[dict[str, Any]], **options: Any) -> Path:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(rows), path, **options)
    return path


def test_columns_are_the_fields_of_a_row(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "two"}]
    path = write(
        tmp_path / "in.parquet",
        [
            {"id": 1, "prompt": "one", "messages": None, "max_tokens": 5, "day": date(2026, 11, 1)},
            {"id": 2, "prompt": None, "messages": messages, "max_tokens": None, "day": None},
        ],
    )
    first, second = read_parquet(path, "in.parquet")
    assert (first.id, first.prompt, first.options, first.rest) == (1, "one", {"max_tokens": 5}, {"day": "2026-11-01"})
    assert (second.id, second.prompt, second.options, second.rest) == (2, messages, {}, {})
    assert [first.index, second.index] == [0, 1]


def test_row_groups_are_read_in_order(tmp_path: Path) -> None:
    path = write(tmp_path / "in.parquet", [{"prompt": f"row {n}"} for n in range(1700)], row_group_size=300)
    assert [question.prompt for question in read_parquet(path, "x")] == [f"row {n}" for n in range(1700)]


def test_a_wrong_row_is_named_and_others_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "in.parquet", [{"prompt": "one"}, {"prompt": " "}, {"prompt": "three"}])
    with pytest.raises(asides.ConfigError, match=r"in.parquet, row 2: a question is text"):
        list(read_parquet(path, "in.parquet"))
    problems: list[asides.ConfigError] = []
    good: list[Question] = list(read_parquet(path, "in.parquet", problems.append))
    assert [(question.index, question.prompt) for question in good] == [(0, "one"), (1, "three")]
    assert len(problems) == 1


def test_a_file_that_is_no_parquet_is_named(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "in.parquet"
    path.write_bytes(b"not at all")
    with pytest.raises(asides.ConfigError, match=r"in.parquet cannot be read as Parquet"):
        list(read_parquet(path, "in.parquet"))


def test_values_become_those_of_json() -> None:
    row = {"n": Decimal("1.5"), "none": None, "deep": {"gone": None, "kept": [1, {"gone": None}]}, "prompt": "x"}
    assert clean_row(row, "row 1") == {"n": "1.5", "deep": {"kept": [1, {}]}, "prompt": "x"}
    with pytest.raises(asides.ConfigError, match=r"row 1: the column 'raw' has bytes.*Leave the column out"):
        clean_row({"raw": b"\0"}, "row 1")


def test_without_pyarrow_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "pyarrow.parquet", raising=False)
    with pytest.raises(asides.ConfigError, match=r"[Ii]nstall 'asides\[data\]'"):
        load_parquet()
    assert is_parquet(tmp_path / "IN.PARQUET")
    assert not is_parquet(tmp_path / "in.jsonl")


def test_a_live_batch_reads_and_writes_parquet(stage: OpenStage, tmp_path: Path) -> None:
    source = write(tmp_path / "in.parquet", [{"id": f"q{n}", "prompt": f"row {n}", "n": n} for n in range(20)])
    parquet = pytest.importorskip("pyarrow.parquet")
    counting, output = Counting(), tmp_path / "out.parquet"
    server = stage(counting)
    for _ in range(2):  # The second run asks nothing, and replaces the output.
        batch = asides_batch.Batch(source, output=output, model=MODEL, base_url=server.url)
        assert batch.run().is_finished
        assert [result.text for result in batch] == [f"re row {n}" for n in range(20)]
        batch.close()
        rows = parquet.read_table(output).to_pylist()
        assert [(row["index"], row["id"], row["text"]) for row in rows] == [
            (n, f"q{n}", f"re row {n}") for n in range(20)
        ]
        assert rows[3]["row"] == {"n": 3}
        assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "out.parquet", "out.parquet.ledger"]
    assert set(counting.asked.values()) == {1}


def test_a_parquet_file_of_somebody_is_not_replaced(stage: OpenStage, tmp_path: Path) -> None:
    source, other = write(tmp_path / "in.parquet", [{"prompt": "x"}]), write(tmp_path / "mine.parquet", [{"a": 1}])
    before = other.read_bytes()
    batch = asides_batch.Batch(source, output=other, model=MODEL, base_url=stage(Counting()).url)
    with pytest.raises(asides.ConfigError, match=r"[Nn]ame another one"):
        batch.run()
    batch.close()
    assert other.read_bytes() == before
    output = tmp_path / "out.parquet"
    batch = asides_batch.Batch(source, output=output, model=MODEL, base_url=stage(Counting()).url)
    batch.run()
    output.write_bytes(before)  # Somebody has put a file there meanwhile.
    with pytest.raises(asides.ConfigError, match="was not written by a batch"):
        batch.run()
    batch.close()
    assert output.read_bytes() == before


class Dataset:
    """What a batch uses of a dataset of Ray."""

    def iter_rows(self) -> Any:
        return iter([{"prompt": "one", "system": None}, {"prompt": "two", "system": "be brief"}])


def test_a_dataset_gives_its_rows(stage: OpenStage, tmp_path: Path) -> None:
    rows: Any = Dataset()
    batch = asides_batch.Batch(rows, output=tmp_path / "out.jsonl", model=MODEL, base_url=stage(Counting()).url)
    assert batch.run().done == 2
    batch.close()


def test_what_json_does_not_have_is_missing_or_named(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    assert clean_row({"prompt": "?", "score": float("nan"), "all": [1.0, float("inf")]}, "here") == {
        "prompt": "?",
        "all": [1.0, None],
    }
    path = tmp_path / "rows.parquet"
    parquet.write_table(pyarrow.table({"prompt": ["?"], "at": pyarrow.array([10**15], pyarrow.timestamp("s"))}), path)
    with pytest.raises(ConfigError, match="a value that Python does not"):
        list(read_parquet(path, "rows.parquet"))
    columns = [pyarrow.array(["one"]), pyarrow.array(["two"])]
    parquet.write_table(pyarrow.Table.from_arrays(columns, names=["prompt", "prompt"]), path)
    with pytest.raises(ConfigError, match="two columns 'prompt'"):
        list(read_parquet(path, "rows.parquet"))
