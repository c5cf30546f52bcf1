"""`asides gateway usage`: sums of the rows of requests, on both engines, as a table, JSON and CSV."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from asides.database import Database
from asides.values.errors import ConfigError
from asides.values.usage import Usage
from asides_gateway.access import KeyRecord
from asides_gateway.access.key_store import insert_key
from asides_gateway.commands.gateway_usage import read_since
from asides_gateway.gateway_database import open_database
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.summary_rows import build_row, insert_rows
from tests.cli.children import here
from tests.gateway.request_records import make_record

Captured = pytest.CaptureFixture[str]
NOW = time.time()


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """The database that the command finds by its settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASIDES_STATE", str(tmp_path / "state"))
    (tmp_path / "state").mkdir(mode=0o700)
    if request.param == "sqlite":
        settings = GatewaySettings(folder=tmp_path / "state")
    else:
        url: str = request.getfixturevalue("postgres_url")
        monkeypatch.setenv("ASIDES_STORE", url)
        settings = GatewaySettings(store=url)
    found = open_database(settings)
    yield found
    found.close()


def _write(database: Database, **changed: Any) -> None:
    number = time.monotonic_ns()
    fields: dict[str, Any] = {
        "at": NOW - 60,
        "key_id": "",
        "tenant": "t1",
        "client": "curl/8",
        "dialect": "anthropic",
        "method": "POST",
        "path": "/v1/messages",
        "seconds": 1.0,
        "status": 200,
        "ended": "done",
        "model": "anthropic:m",
        "usage": Usage(input=1000, output=200, thinking=50, cached=100, cost=Decimal("0.25")),
    }
    row = build_row(make_record(f"req_{number}", **{**fields, **changed}), "host:1")
    database.run(lambda: insert_rows([row]))


@pytest.fixture
def rows(database: Database) -> Database:
    """Three requests of the last day, and one of ten days ago."""
    key = KeyRecord(id="abcd1234", digest=b"x" * 32, name="build\x1b server", created=NOW)
    database.run(lambda: insert_key(key))
    _write(database, key_id="abcd1234")
    _write(database, key_id="abcd1234", ended="failed", client="=cmd()")
    _write(database, usage=Usage(input=5, output=5), model="ollama:x", tenant="t2")
    _write(database, at=NOW - 10 * 86_400)
    return database


def test_a_table_by_key_with_names_and_a_total(rows: Database, capsys: Captured) -> None:
    done = here(capsys, "gateway", "usage")
    assert done.code == 0
    lines = [line.split() for line in done.out.splitlines()]
    assert lines[0] == ["KEY", "NAME", "REQUESTS", "FAILED", "INPUT", "CACHED", "OUTPUT", "THINKING", "COST"]
    assert lines[1][0] == "abcd1234"
    assert lines[1][-7:] == ["2", "1", "2,000", "200", "400", "100", "$0.5000"]
    assert lines[-1][0] == "total"
    assert lines[-1][-7:] == ["3", "1", "2,005", "200", "405", "100", "$0.5000"]
    assert "\x1b" not in done.out
    assert "1 request has tokens and no known price, and counts as 0. --by model" in done.err


def test_json_has_the_groups_and_the_total(rows: Database, capsys: Captured) -> None:
    done = here(capsys, "gateway", "usage", "--by", "model", "--since", "30d", "--json")
    found = json.loads(done.out)
    assert found["by"] == "model"
    assert [group["model"] for group in found["groups"]] == ["anthropic:m", "ollama:x"]
    assert found["groups"][0]["requests"] == 3
    assert found["total"]["cost"] == 0.75
    assert found["total"]["unpriced"] == 1
    by_key = json.loads(here(capsys, "gateway", "usage", "--json").out)
    assert by_key["groups"][0]["name"] == "build\x1b server"


def test_csv_holds_nothing_that_a_spreadsheet_would_run(rows: Database, capsys: Captured) -> None:
    done = here(capsys, "gateway", "usage", "--by", "client", "--csv")
    table = list(csv.reader(done.out.splitlines()))
    assert table[0][:3] == ["client", "requests", "failed"]
    assert sorted(row[0] for row in table[1:]) == ["'=cmd()", "curl/8"]
    assert {len(row) for row in table} == {9}


def test_days_and_tenants(rows: Database, capsys: Captured) -> None:
    by_day = json.loads(here(capsys, "gateway", "usage", "--by", "day", "--since", "4w", "--json").out)
    days = [group["day"] for group in by_day["groups"]]
    assert days == sorted(days)
    assert days[0] == f"{datetime.fromtimestamp(NOW - 10 * 86_400, UTC):%Y-%m-%d}"
    by_tenant = json.loads(here(capsys, "gateway", "usage", "--by", "tenant", "--json").out)
    assert [(group["tenant"], group["requests"]) for group in by_tenant["groups"]] == [("t1", 2), ("t2", 1)]


def test_nothing_yet_is_told(database: Database, capsys: Captured) -> None:
    done = here(capsys, "gateway", "usage")
    assert (done.code, done.out) == (0, "")
    assert "no request has ended since" in done.err
    assert json.loads(here(capsys, "gateway", "usage", "--json").out)["groups"] == []


@pytest.mark.parametrize(
    "words",
    [
        ("--by", "colour"),
        ("--since", "yesterday"),
        ("--since", "2999-01-01"),
        ("--json", "--csv"),
        ("more",),
        ("--rpm", "5"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_opened(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("ASIDES_STATE", str(tmp_path / "state"))
    done = here(capsys, "gateway", "usage", *words)
    assert done.code == 2
    assert done.out == ""
    assert not (tmp_path / "state").exists()
    misplaced = here(capsys, "gateway", "key", "list", "--by", "day")
    assert misplaced.code == 2
    assert "asides gateway usage" in misplaced.err


def test_spans_and_dates() -> None:
    now = 1_763_300_000.0
    assert read_since("24h", now) == now - 86_400
    assert read_since("7d", now) == now - 7 * 86_400
    assert read_since("2w", now) == now - 14 * 86_400
    assert read_since("2025-11-01", now) == datetime(2025, 11, 1, tzinfo=UTC).timestamp()
    assert read_since("2025-11-01T12:00:00+02:00", now) == datetime(2025, 11, 1, 10, tzinfo=UTC).timestamp()
    assert read_since("999999w", now) == 0
    for text in ("", "7", "d", "7x", "-7d", "2025-13-01", "99999999d"):
        with pytest.raises(ConfigError):
            read_since(text, now)
