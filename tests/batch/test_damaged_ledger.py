"""A ledger that is damaged, or that somebody changed: the error says so, and nobody waits without end."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from asides.batch.batches import Batch
from asides.database import StoreError
from asides.testing import OpenStage


@pytest.fixture
def batch(stage: OpenStage, tmp_path: Path) -> Batch:
    """A batch that has ended, with two rows."""
    server = stage()
    made = Batch(
        [{"id": "a", "prompt": "2 + 2"}, {"id": "b", "prompt": "3 + 3", "own": 1}],
        output=tmp_path / "out.jsonl",
        model="vllm:m",
        base_url=server.url,
    )
    assert made.run().is_finished
    return made


def _change(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "out.jsonl.ledger")) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE batches SET plan = x'ff'",
        "UPDATE batches SET plan = CAST('{}' AS BLOB)",
        "UPDATE batches SET state = 'no such state'",
        "UPDATE batches SET cost = 'x'",
        "UPDATE batches SET row_count = 'x'",
        "UPDATE batches SET done = 9999",
        "UPDATE batch_requests SET result = x'ff'",
        "UPDATE batch_requests SET result = 5",
        "UPDATE batch_rows SET id = '{{'",
        "UPDATE batch_rows SET rest = x'ff'",
    ],
)
def test_what_no_ledger_has_is_told(batch: Batch, tmp_path: Path, statement: str) -> None:
    before = (tmp_path / "out.jsonl").read_bytes()
    _change(tmp_path, statement)
    with pytest.raises(StoreError, match="the ledger is damaged"):
        batch.resume()
    assert (tmp_path / "out.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER UPDATE ON batches BEGIN DELETE FROM batch_rows; END",
        "CREATE VIEW v AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n FROM r",
    ],
)
def test_views_and_triggers_are_refused(batch: Batch, tmp_path: Path, statement: str) -> None:
    batch.close()
    _change(tmp_path, statement)
    with pytest.raises(StoreError, match="views or triggers"):
        Batch(output=tmp_path / "out.jsonl").resume()
