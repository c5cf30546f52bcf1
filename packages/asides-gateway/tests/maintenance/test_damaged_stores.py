"""A file that is damaged, or made to do harm: a check names the fault, an export loses nothing else by it, and neither
ends in a bug, waits without end, or says that everything is there."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from asides.database import StoreError
from asides_gateway.maintenance.check_stores import check_stores
from asides_gateway.maintenance.export_lines import Damaged, export_lines
from asides_gateway.maintenance.exported_lines import ExportedLine
from asides_gateway.maintenance.open_stores import open_stores
from tests.maintenance.filled_stores import fill_conversations, fill_gateway, fill_vault

_FILES = {"conversations": "conversations.db", "vault": "vault.db", "gateway": "gateway.db"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ASIDES_RELAY_KEY", "00" * 32)
    fill_conversations(tmp_path / "source", 3)
    fill_vault(tmp_path / "source", 5)
    fill_gateway(tmp_path / "source")
    return tmp_path / "source"


def _change(folder: Path, area: str, *statements: str) -> None:
    with closing(sqlite3.connect(folder / _FILES[area])) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def _find_problems(folder: Path, area: str) -> str:
    with open_stores(str(folder)) as stores:
        return " | ".join(next(check.problems for check in check_stores(stores) if check.area == area))


def _export(folder: Path) -> tuple[int, int, list[str]]:
    """The keys and the conversations in an export, and what it left out."""
    with open_stores(str(folder)) as stores:
        lines = list(export_lines(stores))
    end = msgspec.json.decode(next(line for line in reversed(lines) if isinstance(line, bytes)), type=ExportedLine).end
    assert end is not None
    return end.keys, end.conversations, [line.what for line in lines if isinstance(line, Damaged)]


_WRONG_VALUES = {
    "a length that is a word": ("conversations", "UPDATE conversations SET length = 'abc' WHERE id = 2", (1, 2)),
    "a length beyond numbers": ("conversations", "UPDATE conversations SET length = 1e300 WHERE id = 2", (1, 2)),
    "a name of bytes": ("conversations", "UPDATE conversations SET name = x'ff00fe' WHERE id = 2", (1, 2)),
    "a name in another encoding": (
        "conversations",
        "UPDATE conversations SET name = CAST(x'e9fffe' AS TEXT) WHERE id = 2",
        (1, 2),
    ),
    "a time that is a word": ("conversations", "UPDATE conversations SET updated = 'yesterday'", (1, 0)),
    "a place that is a word": ("conversations", "UPDATE messages SET place = 'zz' WHERE rowid = 3", (1, 2)),
    "a message that is a number": ("conversations", "UPDATE messages SET message = 7 WHERE rowid = 3", (1, 2)),
    "a note that is a number": ("conversations", "UPDATE page_notes SET note = 5 WHERE conversation = 2", (1, 3)),
    "a tenant of the page": (
        "conversations",
        "UPDATE page_conversations SET tenant = x'ff' WHERE conversation = 2",
        (1, 2),
    ),
    "a size that is a word": ("vault", "UPDATE records SET size = 'abc' WHERE number = 2", (1, 3)),
    "a payload that is a number": ("vault", "UPDATE records SET payload = 5 WHERE number = 2", (1, 3)),
    "a tenant that is a number": ("vault", "UPDATE tenants SET name = 999999999999 WHERE id = 1", (1, 3)),
    "a tenant that is gone": ("vault", "DELETE FROM tenants WHERE id = 1", (1, 3)),
    "an id of bytes": ("vault", "UPDATE records SET id = x'ff' WHERE number = 2", (1, 3)),
    "spending that is a word": ("gateway", "UPDATE gateway_spending SET spent = 'abc'", (1, 3)),
    "a key without an id": ("gateway", "UPDATE gateway_keys SET id = NULL", (0, 3)),
    "a time of revocation that is a word": ("gateway", "UPDATE gateway_keys SET revoked = 'abc'", (0, 3)),
}


@pytest.mark.parametrize("case", _WRONG_VALUES)
def test_a_wrong_value_costs_only_what_has_it(folder: Path, case: str) -> None:
    area, statement, expected = _WRONG_VALUES[case]
    _change(folder, area, statement)
    assert _find_problems(folder, area)
    keys, conversations, damaged = _export(folder)
    assert (keys, conversations) == expected
    assert len(damaged) == 4 - keys - conversations


def test_what_comes_before_the_first_number_is_exported_too(folder: Path) -> None:
    for table, column in (("messages", "conversation"), ("page_conversations", "conversation")):
        _change(folder, "conversations", f"UPDATE {table} SET {column} = -7 WHERE {column} = 2")
    _change(folder, "conversations", "UPDATE page_notes SET conversation = -7 WHERE conversation = 2")
    _change(folder, "conversations", "UPDATE conversations SET id = -7 WHERE id = 2")
    assert _export(folder) == (1, 3, [])


@pytest.mark.parametrize("ticks", ["'abc'", "1e300", "9223372036854775807"])
def test_a_damaged_clock_is_found(folder: Path, ticks: str) -> None:
    """With the last number there is, nothing could be written any more."""
    _change(folder, "conversations", f"UPDATE clock SET ticks = {ticks}")
    assert "clock" in _find_problems(folder, "conversations")


@pytest.mark.parametrize("kind", ["view", "virtual table"])
def test_what_is_computed_is_not_taken_for_a_table(folder: Path, kind: str) -> None:
    """A view can count without end."""
    endless = (
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT 1 AS conversation, n AS place FROM r"
    )
    made = f"CREATE VIEW Messages AS {endless}" if kind == "view" else "CREATE VIRTUAL TABLE messages USING fts5(place)"
    _change(folder, "conversations", "DROP TABLE messages", made)
    assert "messages is not a table" in _find_problems(folder, "conversations")
    with pytest.raises(StoreError, match="messages is not a table"):
        _export(folder)


def test_a_view_of_ones_own_is_left_alone(folder: Path) -> None:
    _change(folder, "conversations", "CREATE VIEW mine AS SELECT name FROM conversations")
    assert not _find_problems(folder, "conversations")
    assert _export(folder) == (1, 3, [])


@pytest.mark.parametrize("kind", ["pipe", "folder", "link to nothing", "link to itself"])
def test_what_is_no_file_is_named(folder: Path, kind: str) -> None:
    """A pipe would be waited for without end, and what a link has lost would not be missed."""
    file = folder / "conversations.db"
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "folder":
        file.mkdir()
    else:
        file.symlink_to("nothing" if kind == "link to nothing" else file.name)
    with pytest.raises(StoreError, match=r"conversations\.db is not a file"):
        open_stores(str(folder))


@pytest.mark.parametrize("statement", ["DROP TABLE clock", "DROP TABLE conversations"])
def test_a_database_of_another_kind_is_not_called_unreadable(folder: Path, statement: str) -> None:
    _change(folder, "conversations", "PRAGMA foreign_keys = OFF", statement)
    problems = _find_problems(folder, "conversations")
    assert "is not a store of asides, " in problems
    assert "no such table" in problems
