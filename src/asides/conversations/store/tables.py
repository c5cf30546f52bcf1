"""The tables of the SQLite store and every statement on them, inside a transaction that the caller has begun.

Not here: connections, waiting and what a failure means.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from asides.conversations.store.protocol import (
    ConversationHeading,
    ConversationInfo,
    ConversationSnapshot,
    StoreConflict,
)
from asides.conversations.store.store_errors import foreign, newer, unreadable, unreadable_head
from asides.history.document import read_message, write_message
from asides.values.errors import ConfigError
from asides.values.messages import Message
from asides.values.usage import Usage

if TYPE_CHECKING:
    import sqlite3

FORM = 1
"""The form of the tables; a file of a later one is not touched."""
_APPLICATION = 0x61736964
"""Marks the file as ours: "asid"."""

_TABLES = """
CREATE TABLE clock (ticks INTEGER NOT NULL);
INSERT INTO clock VALUES (0);
CREATE TABLE conversations (
    id        INTEGER PRIMARY KEY,
    name      TEXT    NOT NULL UNIQUE,
    version   INTEGER NOT NULL,
    rewritten INTEGER NOT NULL,
    length    INTEGER NOT NULL,
    system    TEXT,
    model     TEXT,
    usage     BLOB    NOT NULL,
    created   REAL    NOT NULL,
    updated   REAL    NOT NULL
);
CREATE TABLE messages (
    conversation INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    place        INTEGER NOT NULL,
    message      BLOB    NOT NULL,
    UNIQUE (conversation, place)
);
"""
_ABOUT = "name, version, rewritten, length, system, model, usage, created, updated"


def are_there(connection: sqlite3.Connection, path: str) -> bool:
    """Whether the tables are; False for a file that is still empty. Raises for a file that is not for us."""
    application = _single(connection, "PRAGMA application_id")
    form = _single(connection, "PRAGMA user_version")
    if application == _APPLICATION:
        if form > FORM:
            raise newer(path, form, FORM)
        return True
    if application or form or _single(connection, "SELECT count(*) FROM sqlite_master"):
        raise foreign(path)
    return False


def make(connection: sqlite3.Connection) -> None:
    """Make them."""
    for statement in _TABLES.split(";"):
        if statement.strip():
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORM}")


def append(
    connection: sqlite3.Connection,
    name: str,
    messages: Sequence[Message],
    heading: ConversationHeading | None,
    spent: Usage | None,
    now: float,
) -> ConversationInfo:
    """Put messages behind those that are there."""
    before = about(connection, name) or _begin(connection, name, now)
    _insert(connection, name, before.length, messages)
    return _note(connection, before, before.length + len(messages), heading, spent, now, rewrites=False)


def replace(
    connection: sqlite3.Connection,
    name: str,
    messages: Sequence[Message],
    expected: int,
    heading: ConversationHeading | None,
    spent: Usage | None,
    now: float,
) -> ConversationInfo:
    """Put messages in the place of those that are there, if the version is the expected one."""
    before = about(connection, name)
    found = 0 if before is None else before.version
    if found != expected:
        raise StoreConflict(
            f"the conversation {name!r} was changed by somebody else meanwhile; nothing was written. To do: load it "
            "again and make the change anew.",
            name=name,
            expected=expected,
            found=found or None,
        )
    if before is None:
        before = _begin(connection, name, now)
    connection.execute(
        "DELETE FROM messages WHERE conversation = (SELECT id FROM conversations WHERE name = ?)", (name,)
    )
    _insert(connection, name, 0, messages)
    return _note(connection, before, len(messages), heading, spent, now, rewrites=True)


def delete(connection: sqlite3.Connection, name: str) -> bool:
    """Forget a conversation."""
    return connection.execute("DELETE FROM conversations WHERE name = ?", (name,)).rowcount > 0


def about(connection: sqlite3.Connection, name: str) -> ConversationInfo | None:
    """What is known of a conversation."""
    row = connection.execute(f"SELECT {_ABOUT} FROM conversations WHERE name = ?", (name,)).fetchone()  # noqa: S608
    if row is None:
        return None
    name, version, rewritten, length, system, model, usage, created, updated = row
    try:
        spent = msgspec.json.decode(usage, type=Usage)
    except (msgspec.DecodeError, TypeError):  # TypeError: a number stands there.
        raise unreadable_head(name) from None
    return ConversationInfo(
        name, version, rewritten, length, ConversationHeading(system, model), spent, created, updated
    )


def load(connection: sqlite3.Connection, name: str, start: int) -> ConversationSnapshot | None:
    """A conversation, its messages from a place on."""
    known = about(connection, name)
    if known is None:
        return None
    rows = connection.execute(
        "SELECT place, message FROM messages JOIN conversations ON conversation = id WHERE name = ? AND place >= ? "
        "ORDER BY place",
        (name, start),
    )
    return ConversationSnapshot(known, tuple(_read(name, rows)))


def names(connection: sqlite3.Connection) -> tuple[str, ...]:
    """All conversations, the one that was changed last first."""
    return tuple(row[0] for row in connection.execute("SELECT name FROM conversations ORDER BY version DESC"))


# --- rows ---------------------------------------------------------------------------------------------------------


def _read(name: str, rows: Iterable[tuple[int, bytes]]) -> list[Message]:
    messages: list[Message] = []
    for place, document in rows:
        try:
            messages.append(read_message(document)[0])
        except (ConfigError, TypeError):  # TypeError: a number stands there.
            raise unreadable(name, place) from None
    return messages


def _begin(connection: sqlite3.Connection, name: str, now: float) -> ConversationInfo:
    connection.execute(
        f"INSERT INTO conversations ({_ABOUT}) VALUES (?, 0, 0, 0, NULL, NULL, ?, ?, ?)",  # noqa: S608
        (name, msgspec.json.encode(Usage()), now, now),
    )
    return ConversationInfo(name, 0, 0, 0, created=now, updated=now)


def _insert(connection: sqlite3.Connection, name: str, start: int, messages: Sequence[Message]) -> None:
    connection.executemany(
        "INSERT INTO messages (conversation, place, message) SELECT id, ?, ? FROM conversations WHERE name = ?",
        [(place, write_message(message), name) for place, message in enumerate(messages, start)],
    )


def _note(
    connection: sqlite3.Connection,
    before: ConversationInfo,
    length: int,
    heading: ConversationHeading | None,
    spent: Usage | None,
    now: float,
    *,
    rewrites: bool,
) -> ConversationInfo:
    version = _tick(connection)
    new = before.version == 0
    after = msgspec.structs.replace(
        before,
        version=version,
        rewritten=version if rewrites or new else before.rewritten,
        length=length,
        heading=before.heading if heading is None else heading,
        usage=before.usage if spent is None else before.usage + spent,
        updated=now,
    )
    connection.execute(
        "UPDATE conversations SET version = ?, rewritten = ?, length = ?, system = ?, model = ?, usage = ?, "
        "updated = ? WHERE name = ?",
        (
            after.version,
            after.rewritten,
            after.length,
            after.heading.system,
            after.heading.model,
            msgspec.json.encode(after.usage),
            now,
            after.name,
        ),
    )
    return after


def _tick(connection: sqlite3.Connection) -> int:
    """One count for the whole file, so that a version never comes again, not even when its conversation is gone."""
    connection.execute("UPDATE clock SET ticks = ticks + 1")
    return int(_single(connection, "SELECT ticks FROM clock"))


def _single(connection: sqlite3.Connection, statement: str) -> Any:
    return connection.execute(statement).fetchone()[0]
