"""A check finds what is wrong with a store, says where, and changes nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from asides_gateway.maintenance.check_stores import AreaCheck, check_stores
from asides_gateway.maintenance.open_stores import LEDGER, open_stores
from tests.maintenance.filled_stores import fill_conversations, fill_gateway, fill_vault


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASIDES_RELAY_KEY", "00" * 32)
    _fill(tmp_path)
    return tmp_path


def _fill(place: Path | str) -> None:
    fill_conversations(place, 3)
    fill_vault(place, 4)
    fill_gateway(place)


def _check(place: str | Path) -> dict[str, AreaCheck]:
    with open_stores(str(place)) as stores:
        return {check.area: check for check in check_stores(stores)}


def test_a_sound_store_has_no_problems(folder: Path, postgres_url: str) -> None:
    _fill(postgres_url)
    for place in (folder, postgres_url):
        checks = _check(place)
        assert [problem for check in checks.values() for problem in check.problems] == []
        assert checks["conversations"].counts["messages"] == 6
        assert sum(checks["vault"].counts.values()) == 4 + 3 + 8
        assert checks["gateway"].counts["gateway_keys"] == 1
        assert all(check.size > 0 for check in checks.values())
        assert (LEDGER in checks) == (place == postgres_url)
        oldest = checks["vault"].oldest
        assert oldest is not None
        assert 0 <= oldest < 600


_DAMAGES: list[tuple[str, str, str, str]] = [
    ("conversations", "UPDATE messages SET message = 'x' WHERE place = 1", "", "messages that cannot be read"),
    ("conversations", "UPDATE conversations SET length = 9", "", "more or fewer messages"),
    ("conversations", "UPDATE conversations SET usage = 'x'", "", "conversations whose usage cannot be read"),
    ("conversations", "DELETE FROM conversations WHERE id = 1", "sqlite", "messages of conversations that are gone: 2"),
    ("gateway", "UPDATE gateway_keys SET models = 'x'", "", "keys of the gateway that cannot be read"),
    ("vault", "DELETE FROM {}keys", "", "records without a key, which cannot be found: 4"),
    ("vault", "DELETE FROM {}records", "sqlite", "keys of records that are gone: 8"),
    ("vault", "DELETE FROM {}tenants", "sqlite", "records of tenants that are gone: 4"),
    ("vault", "UPDATE {}tenants SET records = 77", "sqlite", "miscounted: 3"),
]


@pytest.mark.parametrize(("area", "statement", "only", "expected"), _DAMAGES)
def test_damage_is_found(
    folder: Path, request: pytest.FixtureRequest, area: str, statement: str, only: str, expected: str
) -> None:
    with closing(sqlite3.connect(folder / f"{area}.db")) as connection:
        if not only:
            url = str(request.getfixturevalue("postgres_url"))
            _fill(url)
            with psycopg.connect(url, options="-csearch_path=asides", autocommit=True) as server:
                server.execute(statement.format("vault_").encode())
            assert expected in "\n".join(_check(url)[area].problems)
        with connection:
            connection.execute(statement.format(""))
    assert expected in "\n".join(_check(folder)[area].problems)


def _open_to_others(folder: Path) -> None:
    (folder / "vault.db").chmod(0o644)


def _cut(folder: Path) -> None:
    path = folder / "vault.db"
    path.write_bytes(path.read_bytes()[:6000] + b"\xff" * 3000)


@pytest.mark.parametrize(("harm", "expected"), [(_open_to_others, "other users may read"), (_cut, "damage")])
def test_files_are_checked_too(folder: Path, harm: Callable[[Path], None], expected: str) -> None:
    harm(folder)
    assert expected in "\n".join(_check(folder)["vault"].problems)


def test_a_vault_without_its_key_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ASIDES_RELAY_KEY")
    assert "its records cannot be read" in _check(folder)["vault"].problems[0]


def test_old_records_are_worth_a_note(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "vault.db")) as connection, connection:
        connection.execute("UPDATE records SET used = used - 864000 WHERE id = 'record-1'")
    check = _check(folder)["vault"]
    assert check.problems == []
    assert "1 records were not used for 7 days" in check.notes[0]


def test_a_user_who_may_not_write_is_told(postgres_url: str) -> None:
    fill_conversations(postgres_url, 1)
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute("DROP ROLE IF EXISTS reader")
        server.execute("CREATE ROLE reader LOGIN")
        server.execute("GRANT USAGE ON SCHEMA asides TO reader")
        server.execute("GRANT SELECT ON ALL TABLES IN SCHEMA asides TO reader")
    problems = _check(postgres_url.replace("asides@", "reader@"))["conversations"].problems
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute("DROP OWNED BY reader")
        server.execute("DROP ROLE reader")
    assert any("this user may not read or write the table asides.conversations" in each for each in problems)


def test_rows_that_a_user_may_not_see_are_told(postgres_url: str) -> None:
    fill_conversations(postgres_url, 2)
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute("ALTER TABLE asides.messages ENABLE ROW LEVEL SECURITY")
        server.execute("DROP ROLE IF EXISTS blind")
        server.execute("CREATE ROLE blind LOGIN")
        server.execute("GRANT USAGE ON SCHEMA asides TO blind")
        server.execute("GRANT ALL ON ALL TABLES IN SCHEMA asides TO blind")
        server.execute("GRANT ALL ON ALL SEQUENCES IN SCHEMA asides TO blind")
    problems = _check(postgres_url.replace("asides@", "blind@"))["conversations"].problems
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute("DROP OWNED BY blind")
        server.execute("DROP ROLE blind")
    assert "row-level security hides rows of the table asides.messages from this user" in problems
