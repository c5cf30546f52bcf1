"""Rows into a ledger: from files of both kinds, and from programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import asides
from asides.batch.batch_plan import BatchPlan
from asides.batch.ledger import Ledger
from asides.batch.ledger_tables import open_ledger_database
from asides.batch.ledger_values import LoadedRow, create_record
from asides.batch.load_rows import RowSource, load_rows, spool
from asides.values.errors import ConfigError

PLAN = BatchPlan(("groq:m",))


def load(source: RowSource, folder: Path) -> list[Any]:
    database, ledger = open_ledger_database(str(folder / "ledger")), Ledger("b")
    database.run(lambda: ledger.begin(create_record("b"), lambda _: False))
    load_rows(source, PLAN, database, ledger)
    rows = database.run(lambda: ledger.join(0, 10_000), writes=False)
    database.close()
    return rows


def test_more_rows_than_one_transaction_has(tmp_path: Path) -> None:
    with spool((f"row {n}" for n in range(2500)), "rows") as source:
        rows = load(source, tmp_path)
    assert [row.place for row in rows] == list(range(2500))
    assert len({row.hash for row in rows}) == 2500


def test_a_load_that_broke_off_goes_on(tmp_path: Path) -> None:
    database, ledger = open_ledger_database(str(tmp_path / "ledger")), Ledger("b")
    database.run(lambda: ledger.begin(create_record("b"), lambda _: False))
    database.run(lambda: ledger.load([LoadedRow(0, "kept", None, None, b"{}")]))
    record = database.run(lambda: ledger.begin(create_record("b"), lambda _: False))
    assert (record.state, record.row_count) == ("loading", 1)
    with spool(["a", "b", "c"], "rows") as source:
        record = load_rows(source, PLAN, database, ledger, record.row_count)
    rows = database.run(lambda: ledger.join(0, 10), writes=False)
    assert [row.place for row in rows] == [0, 1, 2]
    assert (rows[0].hash, record.row_count, record.requests) == ("kept", 3, 3)
    changed = database.run(lambda: ledger.begin(create_record("b", source_digest="other"), lambda _: False))
    assert (changed.state, changed.row_count) == ("loading", 0)
    database.close()


def test_programs_give_text_dicts_messages_or_lines(tmp_path: Path) -> None:
    given: list[Any] = ["a", {"prompt": "a", "id": 1, "mine": "ü"}, [{"role": "user", "content": "a"}], b'"a"']
    with spool(given, "rows") as source:
        rows = load(source, tmp_path)
    assert [row.id for row in rows] == [None, 1, None, None]
    assert [row.rest for row in rows] == [None, b'{"mine":"\\u00fc"}', None, None]
    assert rows[0].hash == rows[1].hash == rows[3].hash != rows[2].hash
    with pytest.raises(asides.ConfigError, match="row 2 cannot be written"), spool(["a", {"x": object()}], "rows"):
        pass


def test_the_digest_is_that_of_the_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x\n", encoding="utf-8")
    (tmp_path / "b").write_text("x\n", encoding="utf-8")
    one, other = RowSource(tmp_path / "a", "a"), RowSource(tmp_path / "b", "b")
    assert one.compute_digest() == other.compute_digest()
    assert one.compute_digest() != RowSource(tmp_path / "a", "a", is_text=True).compute_digest()
    assert one.compute_digest() != RowSource(tmp_path / "a", "a", fill_prompt=lambda text: f"T {text}").compute_digest()
    with pytest.raises(asides.ConfigError, match="none cannot be read: No such file"):
        RowSource(tmp_path / "none", "none").compute_digest()


def test_a_template_is_put_around_texts(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a\nb\n", encoding="utf-8")
    source = RowSource(tmp_path / "in.txt", "in.txt", is_text=True, fill_prompt=lambda text: f"Say {text}")
    with source.read() as questions:
        assert [(question.prompt, question.content) for question in questions] == [
            ("Say a", {"prompt": "Say a"}),
            ("Say b", {"prompt": "Say b"}),
        ]


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "rows.jsonl"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(ConfigError, match="a pipe"):
        RowSource(path, "rows.jsonl").compute_digest()
