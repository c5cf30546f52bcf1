"""Audits a SQLite database: every text, and JSON in it, of every table; and writes a copy without the thinking.

Known schemas, read on 2026-11-19:
- stores of asides: `messages.message`, a message as JSON (`conversations/store/tables.py`).
- llm up to 0.31: `responses` with `prompt`, `response`, `prompt_json`, `response_json`, and an index for full-text
  search over it; from 0.32 `messages` with `role` and `parts` (simonw/llm, llm/migrations.py, llm/message_store.py).
  The ids of its messages are hashes of their content; a cleaned copy keeps the old ids.
- Open WebUI (webui.db): `chat.chat`, a chat as JSON; in newer versions also `chat_message` with `role` and `content`.
  Thinking is stored in `content`, as `<details type="reasoning">`, and is removed before a chat is sent
  (open-webui/open-webui, backend/open_webui/models and utils/middleware.py).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from asides.datasets.audit import AuditFinding, make_finding
from asides.datasets.audit_report import FileReport
from asides.datasets.audit_walk import AuditSettings, TooDeep, check_document, parse_inner, parse_json
from asides.datasets.files import MAX_ROW_BYTES
from asides.values.errors import ConfigError

MAGIC = b"SQLite format 3\0"
_WAIT_SECONDS = 10
_ROWS_AT_ONCE = 200
_OPEN_WEBUI = ("chat", frozenset({"chat", "user_id", "share_id"}))


class _Table(NamedTuple):
    name: str
    columns: tuple[str, ...]
    json_columns: frozenset[str]
    keys: tuple[str, ...]
    """The columns that identify a row; () for the rowid."""


def audit_database(path: str, settings: AuditSettings, report: FileReport, fix: Path | None) -> Iterator[AuditFinding]:
    """Find thinking in the tables of a database; with `fix`, write a copy without it there."""
    try:
        with _open(path) as connection, _open_copy(connection, fix) as copy:
            # Triggers keep search indexes current. Foreign triggers must not run here; the indexes are rebuilt instead.
            triggers = [] if copy is None else _drop_triggers(copy)
            tables = list(_list_tables(connection))
            if any(table.name == _OPEN_WEBUI[0] and _OPEN_WEBUI[1] <= set(table.columns) for table in tables):
                settings = settings._replace(keeps_details=True)
            for table in tables:
                yield from _audit_table(connection, copy, table, settings, report)
            if copy is not None:
                _erase_remains(copy, report)
                for trigger in triggers:
                    copy.execute(trigger)
    except sqlite3.Error as problem:
        raise ConfigError(f"{path} cannot be read: {problem}. Check it with `PRAGMA integrity_check`.") from None


@contextmanager
def _open(path: str) -> Generator[sqlite3.Connection]:
    """Open a database for reading only. A file in a folder that cannot be written is read without its lock."""
    address = f"file:{quote(str(Path(path).resolve()))}"
    connection = _connect(f"{address}?mode=ro", path) or _connect(f"{address}?mode=ro&immutable=1", path)
    if connection is None:
        raise ConfigError(f"{path} cannot be opened. Check its permissions, and end the program that writes to it.")
    with closing(connection):
        _harden(connection)
        yield connection


def _connect(address: str, path: str) -> sqlite3.Connection | None:
    """Open a database; None if that is not possible in this way. Raises ConfigError if it is not a database."""
    connection = None
    try:
        connection = sqlite3.connect(address, uri=True, timeout=_WAIT_SECONDS)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as problem:
        if connection is not None:
            connection.close()
        if isinstance(problem, sqlite3.OperationalError):
            return None
        raise ConfigError(f"{path} is damaged, or not a database: {problem}. Restore it from a backup.") from None
    return connection


def _harden(connection: sqlite3.Connection) -> None:
    """Treat the file as untrusted: its schema must not call harmful functions."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_ROW_BYTES)
    connection.text_factory = _decode_text


def _decode_text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


@contextmanager
def _open_copy(source: sqlite3.Connection, fix: Path | None) -> Generator[sqlite3.Connection | None]:
    """Open a copy of a database, which gets its name when the block ends without an error."""
    if fix is None:
        yield None
        return
    partial = fix.with_name(f"{fix.name}.partial")
    partial.unlink(missing_ok=True)
    partial.touch(mode=0o600)
    try:
        with closing(sqlite3.connect(partial, isolation_level=None)) as copy:
            # What is read below is then what was copied, also if another program writes.
            source.execute("BEGIN")
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE").fetchone()
            _harden(copy)
            copy.execute("PRAGMA secure_delete = ON").fetchone()
            yield copy
        partial.replace(fix)
    finally:
        partial.unlink(missing_ok=True)


def _drop_triggers(copy: sqlite3.Connection) -> list[str]:
    """Drop all triggers; return the statements that create them."""
    rows = copy.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY rowid").fetchall()
    for name, _ in rows:
        copy.execute(f"DROP TRIGGER {_quote(name)}")
    return [sql for _, sql in rows]


def _list_tables(connection: sqlite3.Connection) -> Iterator[_Table]:
    """The ordinary tables, without those of full-text indexes, which repeat texts of others."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    virtual = tuple(f"{name}_" for name, sql in rows if _is_virtual(sql))
    for name, sql in rows:
        if _is_virtual(sql) or name.startswith(("sqlite_", *virtual)):
            continue
        columns = connection.execute(f"PRAGMA table_info({_quote(name)})").fetchall()
        keys = tuple(column for _, column, _, _, _, place in sorted(columns, key=lambda row: row[5]) if place)
        yield _Table(
            name,
            tuple(row[1] for row in columns),
            frozenset(row[1] for row in columns if str(row[2]).upper().startswith("JSON")),
            keys if _lacks_rowid(connection, name) else (),
        )


def _is_virtual(sql: str | None) -> bool:
    return sql is not None and sql.lstrip().upper().startswith("CREATE VIRTUAL")


def _lacks_rowid(connection: sqlite3.Connection, table: str) -> bool:
    try:
        connection.execute(f"SELECT _rowid_ FROM {_quote(table)} LIMIT 0")  # noqa: S608 - names are quoted
    except sqlite3.OperationalError:
        return True
    return False


def _quote(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _audit_table(
    connection: sqlite3.Connection,
    copy: sqlite3.Connection | None,
    table: _Table,
    settings: AuditSettings,
    report: FileReport,
) -> Iterator[AuditFinding]:
    keys = [_quote(key) for key in table.keys] or ["_rowid_"]
    wanted = ", ".join((*keys, *map(_quote, table.columns)))
    cursor = connection.execute(f"SELECT {wanted} FROM {_quote(table.name)}")  # noqa: S608 - names are quoted
    condition = " AND ".join(f"{key} IS ?" for key in keys)
    number = 0
    while rows := _take_rows(cursor, report, table.name):
        for row in rows:
            number += 1
            report.rows += 1
            identity, cells = row[: len(keys)], dict(zip(table.columns, row[len(keys) :], strict=True))
            place = identity[0] if not table.keys and isinstance(identity[0], int) else number
            documents = {name: _read_cell(value, name in table.json_columns) for name, value in cells.items()}
            try:
                checked = check_document(documents, settings, table.name)
            except TooDeep:
                report.add_problem(place, f"nested too deeply, in the table {table.name}")
                continue
            report.mentions += checked.mentions
            for found in checked.found:
                yield make_finding(found, place, report.file, table.name)
            if copy is not None and checked.cleaned is not documents:
                changes = {
                    name: value if documents[name] is cells[name] else _encode_cell(value, cells[name])
                    for name, value in checked.cleaned.items()
                    if value is not documents[name]
                }
                _update(copy, table.name, changes, condition, identity, report, place)


def _take_rows(cursor: sqlite3.Cursor, report: FileReport, table: str) -> list[tuple[Any, ...]]:
    try:
        return cursor.fetchmany(_ROWS_AT_ONCE)
    except sqlite3.DataError:
        report.add_problem(report.rows + 1, f"a value is too long; the rows behind it in {table} were not read")
        return []


def _read_cell(value: Any, is_json: bool) -> Any:
    """The JSON in a cell; other texts unchanged. Bytes that are not JSON have no text."""
    if isinstance(value, bytes):
        value = _decode_text(value) if value[:1] in (b"{", b"[") else None
    if not isinstance(value, str):
        return None
    try:
        document = parse_inner(value)
        if document is None and is_json:
            document = parse_json(value)
    except ValueError:
        document = None
    return value if document is None else document


def _encode_cell(value: Any, before: str | bytes) -> str | bytes:
    """A value as JSON, in text or in bytes as the cell had it."""
    text = json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass") if isinstance(before, bytes) else text


def _update(
    copy: sqlite3.Connection,
    table: str,
    changes: dict[str, Any],
    condition: str,
    identity: Iterable[Any],
    report: FileReport,
    place: int,
) -> None:
    assignments = ", ".join(f"{_quote(name)} = ?" for name in changes)
    try:
        if not copy.in_transaction:
            copy.execute("BEGIN")
        copy.execute(f"UPDATE {_quote(table)} SET {assignments} WHERE {condition}", (*changes.values(), *identity))  # noqa: S608 - names are quoted
    except sqlite3.Error as problem:
        report.left += 1
        report.add_problem(place, f"the table {table} refuses the change: {problem}")


def _erase_remains(copy: sqlite3.Connection, report: FileReport) -> None:
    """Erase what was removed from free pages and from the indexes for full-text search.

    VACUUM may change rowids, which those indexes refer to, so they are built after it.
    """
    if not copy.in_transaction:
        return
    copy.execute("COMMIT")
    copy.execute("VACUUM")
    rows = copy.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    for name, sql in rows:
        if _is_virtual(sql) and " FTS" in sql.upper():
            try:
                copy.execute(f"INSERT INTO {_quote(name)} ({_quote(name)}) VALUES ('rebuild')")  # noqa: S608 - names are quoted
            except sqlite3.Error as problem:
                report.left += 1
                report.add_problem(0, f"the search index {name} cannot be built again: {problem}")
