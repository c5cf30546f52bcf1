"""The output of a batch: rows joined to results, whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import asides
from asides.batch_rows import read_row
from asides.database import Database
from asides_batch import join_results
from asides_batch.join_results import encode_joined, read_joined, read_results, write_output
from asides_batch.ledger import Ledger
from asides_batch.ledger_tables import open_ledger_database
from asides_batch.ledger_values import JoinedRow, LoadedRow, Outcome, RunLimits, create_record


@pytest.fixture
def database(tmp_path: Path) -> Database:
    """Five rows, of which the first, the third and the fourth have results."""
    database, ledger = open_ledger_database(str(tmp_path / "ledger")), Ledger("b")
    database.run(lambda: ledger.begin(create_record("b"), lambda _: False))
    rows = [LoadedRow(place, hash_, None, None, b"{}") for place, hash_ in enumerate("abacd")]
    database.run(lambda: ledger.load(rows, 0))
    database.run(lambda: ledger.finish_loading(5, 0))
    outcomes = [Outcome("a", True, b'{"text": "yes", "outcome": "answered"}'), Outcome("c", False, b'{"text": ""}')]
    database.run(lambda: ledger.exchange("me", outcomes, 0, RunLimits(), version=0))
    return database


def test_pages_are_joined_in_order(database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(join_results, "_PAGE", 2)
    assert [row.place for row in read_joined(database, Ledger("b"))] == [0, 1, 2, 3, 4]
    assert [(result.index, result.is_answered) for result in read_results(database, Ledger("b"))] == [
        (0, True),
        (2, True),
        (3, False),
    ]
    assert write_output(database, Ledger("b"), tmp_path / "out.jsonl") == 3
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["index"] for line in lines] == [0, 2, 3]
    database.close()


def test_a_row_has_its_own_id_and_fields() -> None:
    row = JoinedRow(
        3, "f00", b'{"prompt":"q"}', 'a"b', b'{"x": [1]}', "done", b'{"text": "\xc3\xbc", "response_id": "r"}'
    )
    assert json.loads(encode_joined(row)) == {
        "index": 3,
        "id": 'a"b',
        "fingerprint": read_row("q", 3, "here").fingerprint,
        "text": "ü",
        "response_id": "r",
        "row": {"x": [1]},
    }
    assert encode_joined(row).startswith(b'{"index": 3, ')


def test_the_old_file_stays_when_the_new_one_cannot_be_written(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("old", encoding="utf-8")

    def fail(_: JoinedRow) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(join_results, "encode_joined", fail)
    with pytest.raises(asides.ConfigError, match=r"No space left on device\. The ledger has what was answered"):
        write_output(database, Ledger("b"), out)
    assert out.read_text(encoding="utf-8") == "old"
    assert not list(tmp_path.glob("out.jsonl.new*"))
    database.close()


def test_a_link_and_its_permissions_stay(database: Database, tmp_path: Path) -> None:
    real, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    real.touch(0o600)
    link.symlink_to(real)
    write_output(database, Ledger("b"), link)
    assert link.is_symlink()
    assert (real.stat().st_mode & 0o777, len(real.read_bytes().splitlines())) == (0o600, 3)
    database.close()


def test_the_new_file_has_a_name_that_nobody_can_guess_and_is_not_left_behind(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody may have put a link in its way, and two processes may write the same output."""
    precious = tmp_path / "precious"
    precious.write_text("of somebody", encoding="utf-8")
    (tmp_path / "out.jsonl.new").symlink_to(precious)
    assert write_output(database, Ledger("b"), tmp_path / "out.jsonl") == 3
    assert precious.read_text(encoding="utf-8") == "of somebody"
    assert not (tmp_path / "out.jsonl").is_symlink()

    def break_off(_: JoinedRow) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(join_results, "encode_joined", break_off)
    with pytest.raises(KeyboardInterrupt):
        write_output(database, Ledger("b"), tmp_path / "out.jsonl")
    database.close()
    assert [path.name for path in tmp_path.glob("out.jsonl.new*")] == ["out.jsonl.new"]
