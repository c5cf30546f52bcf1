"""A copy may be killed at any moment and run again; its source stays as it is."""

from __future__ import annotations

import hashlib
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import get_args

import psycopg
import pytest

from asides.database import StoreError
from asides_batch.ledger_values import RequestState
from asides_batch.vendor.vendor_ledger import VendorState
from asides_gateway.maintenance.check_stores import check_stores
from asides_gateway.maintenance.copy_stores import TABLES
from asides_gateway.maintenance.open_stores import open_stores
from tests.cli.children import command, environment
from tests.maintenance.filled_stores import copy, fill_conversations, fill_gateway, fill_vault


def _digest(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("*.db"))}


def test_a_copy_that_is_killed_again_and_again_ends_whole(tmp_path: Path, postgres_url: str) -> None:
    fill_conversations(tmp_path, 60)
    fill_vault(tmp_path, 300)
    fill_gateway(tmp_path)
    before = _digest(tmp_path)
    chance = random.Random(5)
    killed = 0
    for attempt in range(4):
        process = subprocess.Popen(
            command(["store", "copy", "-q", str(tmp_path), postgres_url]),
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        # The first ones while Python still loads, the others deeper and deeper inside.
        time.sleep(chance.uniform(0.2, 0.4) + attempt * 0.2)
        process.send_signal(signal.SIGKILL)
        killed += process.wait(20) == -signal.SIGKILL
    assert killed
    reports = copy(tmp_path, postgres_url)
    assert all(report.is_whole for report in reports.values())
    assert {area: report.checked for area, report in reports.items()} == {
        "conversations": 60,
        "vault": 300,
        "gateway": 2,
    }
    assert all(report.others == 0 for report in reports.values())
    assert _digest(tmp_path) == before


def test_a_place_is_not_copied_onto_itself(tmp_path: Path, postgres_url: str) -> None:
    fill_vault(tmp_path, 1)
    with pytest.raises(StoreError, match="two places"):
        copy(tmp_path, tmp_path)
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(StoreError, match="two places"):
        copy(tmp_path, tmp_path / "link")
    with pytest.raises(StoreError, match="two places"):
        copy(postgres_url, postgres_url)


def test_rows_that_a_user_may_not_see_are_not_taken_for_none(tmp_path: Path, postgres_url: str) -> None:
    """A copy without them would be called whole."""
    fill_conversations(tmp_path / "from", 2)
    copy(tmp_path / "from", postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("ALTER TABLE asides.messages ENABLE ROW LEVEL SECURITY")
        connection.execute("DO $$ BEGIN CREATE ROLE reader LOGIN; EXCEPTION WHEN duplicate_object THEN END $$")
        connection.execute("GRANT USAGE ON SCHEMA asides TO reader")
        connection.execute("GRANT ALL ON ALL TABLES IN SCHEMA asides TO reader")
        connection.execute("GRANT ALL ON ALL SEQUENCES IN SCHEMA asides TO reader")
    reader = postgres_url.replace("asides@", "reader@")
    with pytest.raises(StoreError, match="hides rows of the table messages"):
        copy(reader, tmp_path / "to")
    with open_stores(reader) as stores:
        assert any("hides rows" in problem for check in check_stores(stores) for problem in check.problems)
    assert copy(postgres_url, tmp_path / "to")["conversations"].copied == 2


def test_what_only_the_target_has_is_counted_and_kept(tmp_path: Path) -> None:
    fill_conversations(tmp_path / "a", 2)
    fill_conversations(tmp_path / "b", 3, start=10)
    report = copy(tmp_path / "a", tmp_path / "b")["conversations"]
    assert (report.copied, report.others, report.is_whole) == (2, 3, True)


# Copied with what they belong to, or left out: leases of requests under way, and the notes of migrations themselves.
_OTHERS = {
    "conversations",
    "messages",
    "page_conversations",
    "page_notes",
    "vault_tenants",
    "vault_records",
    "vault_keys",
}
_LEFT_OUT = {"gateway_reservations", "migrations"}


def test_no_table_is_forgotten(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        rows = connection.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'asides'")
        tables = {name for (name,) in rows.fetchall()}
        for table in (table for group in TABLES.values() for table in group):
            columns = connection.execute(
                "SELECT column_name FROM information_schema.columns WHERE table_schema = 'asides' AND table_name = %s",
                (table.name,),
            ).fetchall()
            known = {name for (name,) in columns}
            assert {*table.key, *table.grows, *([table.later] if table.later else ())} <= known, table.name
    assert tables == _OTHERS | _LEFT_OUT | {table.name for group in TABLES.values() for table in group}


def test_every_state_of_a_batch_has_its_place() -> None:
    orders = {table.name: set(table.order) for table in TABLES["ledger"]}
    assert orders["batch_requests"] == set(get_args(RequestState))
    assert orders["vendor_batches"] == set(get_args(VendorState))
