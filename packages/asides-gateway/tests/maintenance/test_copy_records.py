"""Records of a vault move between engines, and are found there by their keys."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from asides.relay.steps import StoredRecord, UnconfirmedRecord
from asides.relay.vault.sqlite_vault import SqliteVault
from asides_gateway.maintenance.copy_records import VaultReader
from asides_gateway.maintenance.open_stores import open_stores
from tests.maintenance.filled_stores import copy, fill_vault


def test_there_and_back_is_the_same(tmp_path: Path, postgres_url: str) -> None:
    fill_vault(tmp_path, 250)
    there = copy(tmp_path, postgres_url)["vault"]
    assert (there.copied, there.checked, there.is_whole) == (250, 250, True)
    copy(postgres_url, tmp_path / "back")
    with SqliteVault(tmp_path / "vault.db") as first, SqliteVault(tmp_path / "back" / "vault.db") as second:
        for number in range(250):
            for key in (f"call:{number}", f"text:{number}"):
                found = second.read(f"tenant {number % 3}", (key,))
                assert found == first.read(f"tenant {number % 3}", (key,))
                assert len(found) == 1
                assert second.read(f"tenant {(number + 1) % 3}", (key,)) == ()
    with closing(sqlite3.connect(tmp_path / "back" / "vault.db")) as connection:
        assert (
            connection.execute("SELECT sum(records), sum(size) FROM tenants").fetchone()
            == connection.execute("SELECT count(*), sum(size) FROM records").fetchone()
        )


def test_a_second_run_copies_the_rest(tmp_path: Path, postgres_url: str) -> None:
    fill_vault(tmp_path, 5)
    copy(tmp_path, postgres_url)
    fill_vault(tmp_path, 3, start=5)
    again = copy(tmp_path, postgres_url)["vault"]
    assert (again.copied, again.same, again.checked, again.is_whole) == (3, 5, 8, True)


def test_a_record_that_is_another_one_there_stays_unless_told(tmp_path: Path) -> None:
    fill_vault(tmp_path / "a", 3)
    fill_vault(tmp_path / "b", 3)
    with closing(sqlite3.connect(tmp_path / "b" / "vault.db")) as connection, connection:
        connection.execute("UPDATE records SET payload = x'FF' WHERE id = 'record-1'")
    refused = copy(tmp_path / "a", tmp_path / "b")["vault"]
    assert (refused.same, refused.different, refused.names) == (2, 1, ["record-1"])
    told = copy(tmp_path / "a", tmp_path / "b", replace=True)["vault"]
    assert (told.updated, told.is_whole) == (1, True)
    with SqliteVault(tmp_path / "b" / "vault.db") as vault:
        (record,) = vault.read("tenant 1", ("call:1",))
    assert record.payload == b"\x01" * 300


def test_large_records_pass_in_small_batches(tmp_path: Path) -> None:
    fill_vault(tmp_path, 5, size=3_000_000)
    with open_stores(str(tmp_path)) as stores:
        vault = VaultReader(stores.areas["vault"])
        batch = vault.list_batch(-1, list(vault.columns))
    assert len(batch) == 2  # of 8 MB
    report = copy(tmp_path, tmp_path / "to")["vault"]
    assert (report.copied, report.checked) == (5, 5)


def test_a_record_that_was_confirmed_meanwhile_is_the_same(tmp_path: Path, postgres_url: str) -> None:
    with SqliteVault(tmp_path / "vault.db") as vault:
        vault.write("t", StoredRecord("r", ("k", "pending-k"), b"x"))
        copy(tmp_path, postgres_url)
        vault.confirm(UnconfirmedRecord("t", "r", "pending-k"))
    again = copy(tmp_path, postgres_url)["vault"]
    assert (again.same, again.different, again.is_whole) == (1, 0, True)
