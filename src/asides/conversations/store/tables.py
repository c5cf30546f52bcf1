"""The tables of the SQLite store and all SQL statements. The caller begins and ends the transactions.

Not here: connections, waiting, and errors of SQLite (sqlite).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from asides.conversations.store import ConversationHeading, ConversationInfo, ConversationSnapshot, StoreConflict
from asides.database import StoreError
from asides.history.document import read_message, write_message
from asides.values.errors import ConfigError
from asides.values.messages import Message
from asides.values.usage import Usage

if TYPE_CHECKING:
    import sqlite3

FORMAT = 1
"""The version of the tables. A file with a later version is refused."""
_APPLICATION = 0x61736964
"""Marks the file as a store of asides: "asid"."""

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


def has_tables(connection: sqlite3.Connection, path: str) -> bool:
    """Whether the tables exist; False for an empty file. Raises StoreError for a file of another program or of a newer
    asides.
    """
    application = _select_one(connection, "PRAGMA application_id")
    version = _select_one(connection, "PRAGMA user_version")
    if application == _APPLICATION:
        if version > FORMAT:
            raise StoreError(
                f"the store {path} was written by a newer asides (its format is {version}, this one knows up to "
                f"{FORMAT}). To do: upgrade asides, or use another file."
            )
        return True
    if application or version or _select_one(connection, "SELECT count(*) FROM sqlite_master"):
        raise StoreError(
            f"{path} is a database of another program, not a store of conversations. To do: use another file."
        )
    return False


def create(connection: sqlite3.Connection) -> None:
    """Create the tables."""
    for statement in _TABLES.split(";"):
        if statement.strip():
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def append(
    connection: sqlite3.Connection,
    name: str,
    messages: Sequence[Message],
    heading: ConversationHeading | None,
    spent: Usage | None,
    now: float,
) -> ConversationInfo:
    """Add messages at the end."""
    before = about(connection, name) or _insert_conversation(connection, name, now)
    _insert_messages(connection, name, before.length, messages)
    return _update_conversation(connection, before, before.length + len(messages), heading, spent, now, rewrites=False)


def replace(
    connection: sqlite3.Connection,
    name: str,
    messages: Sequence[Message],
    expected: int,
    heading: ConversationHeading | None,
    spent: Usage | None,
    now: float,
) -> ConversationInfo:
    """Replace all messages, if the version is the expected one."""
    before = about(connection, name)
    found = 0 if before is None else before.version
    if found != expected:
        raise StoreConflict(
            f"the conversation {name!r} was changed by another process; nothing was written. To do: load it again and "
            "repeat the change.",
            name=name,
            expected=expected,
            found=found or None,
        )
    if before is None:
        before = _insert_conversation(connection, name, now)
    connection.execute(
        "DELETE FROM messages WHERE conversation = (SELECT id FROM conversations WHERE name = ?)", (name,)
    )
    _insert_messages(connection, name, 0, messages)
    return _update_conversation(connection, before, len(messages), heading, spent, now, rewrites=True)


def delete(connection: sqlite3.Connection, name: str) -> bool:
    """Delete a conversation."""
    return connection.execute("DELETE FROM conversations WHERE name = ?", (name,)).rowcount > 0


def rename(connection: sqlite3.Connection, name: str, new: str) -> bool:
    """Give a conversation another name; False when it is not in the store. Raises StoreError if the name is taken."""
    if name != new and about(connection, new) is not None:
        raise StoreError(f"there is a conversation {new!r} already. To do: choose another name, or delete that one.")
    return connection.execute("UPDATE conversations SET name = ? WHERE name = ?", (new, name)).rowcount > 0


_Columns: TypeAlias = tuple[str, int, int, int, str | None, str | None, float, float]


def about(connection: sqlite3.Connection, name: str) -> ConversationInfo | None:
    """The facts about a conversation."""
    row = connection.execute(f"SELECT {_ABOUT} FROM conversations WHERE name = ?", (name,)).fetchone()  # noqa: S608
    if row is None:
        return None
    name, version, rewritten, length, system, model, usage, created, updated = row
    try:
        spent = msgspec.json.decode(usage, type=Usage)
        # A damaged file, or another program, may have put anything into a column.
        msgspec.convert((name, version, rewritten, length, system, model, created, updated), _Columns)
    except (msgspec.DecodeError, TypeError, UnicodeDecodeError):  # TypeError: the column holds a number.
        raise StoreError(
            f"the head of the conversation {name!r} cannot be read: it is damaged, or a newer asides wrote it. To do: "
            "upgrade asides, or restore the store from a backup."
        ) from None
    heading = ConversationHeading(system, model)
    return ConversationInfo(name, version, rewritten, length, heading, spent, created, updated)


def load(connection: sqlite3.Connection, name: str, start: int) -> ConversationSnapshot | None:
    """A conversation with its messages from an index on."""
    info = about(connection, name)
    if info is None:
        return None
    rows = connection.execute(
        "SELECT place, message FROM messages JOIN conversations ON conversation = id WHERE name = ? AND place >= ? "
        "ORDER BY place",
        (name, start),
    )
    return ConversationSnapshot(info, tuple(_parse_rows(name, rows)))


def load_first(connection: sqlite3.Connection, name: str) -> Message | None:
    """The first message of a conversation."""
    rows = connection.execute(
        "SELECT place, message FROM messages JOIN conversations ON conversation = id WHERE name = ? "
        "ORDER BY place LIMIT 1",
        (name,),
    )
    return next(iter(_parse_rows(name, rows)), None)


def names(connection: sqlite3.Connection) -> tuple[str, ...]:
    """The names of all conversations, the latest changed first."""
    return tuple(row[0] for row in connection.execute("SELECT name FROM conversations ORDER BY version DESC"))


# --- rows ---------------------------------------------------------------------------------------------------------


def _parse_rows(name: str, rows: Iterable[tuple[int, bytes]]) -> list[Message]:
    messages: list[Message] = []
    for place, document in rows:
        try:
            messages.append(read_message(document)[0])
        except (ConfigError, TypeError):  # TypeError: the column holds a number.
            raise StoreError(
                f"message {place} of the conversation {name!r} cannot be read: it is damaged, or a newer asides wrote "
                "it. To do: upgrade asides, or restore the store from a backup."
            ) from None
    return messages


def _insert_conversation(connection: sqlite3.Connection, name: str, now: float) -> ConversationInfo:
    connection.execute(
        f"INSERT INTO conversations ({_ABOUT}) VALUES (?, 0, 0, 0, NULL, NULL, ?, ?, ?)",  # noqa: S608
        (name, msgspec.json.encode(Usage()), now, now),
    )
    return ConversationInfo(name, 0, 0, 0, created=now, updated=now)


def _insert_messages(connection: sqlite3.Connection, name: str, start: int, messages: Sequence[Message]) -> None:
    connection.executemany(
        "INSERT INTO messages (conversation, place, message) SELECT id, ?, ? FROM conversations WHERE name = ?",
        [(place, write_message(message), name) for place, message in enumerate(messages, start)],
    )


def _update_conversation(
    connection: sqlite3.Connection,
    before: ConversationInfo,
    length: int,
    heading: ConversationHeading | None,
    spent: Usage | None,
    now: float,
    *,
    rewrites: bool,
) -> ConversationInfo:
    version = _next_version(connection)
    is_new = before.version == 0
    after = msgspec.structs.replace(
        before,
        version=version,
        rewritten=version if rewrites or is_new else before.rewritten,
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


def _next_version(connection: sqlite3.Connection) -> int:
    """The next version. One counter for the whole file, so that no version is used twice, even after a deletion."""
    connection.execute("UPDATE clock SET ticks = ticks + 1")
    row = connection.execute("SELECT ticks FROM clock").fetchone()
    if row is None or not isinstance(row[0], int):
        raise StoreError("the store has lost count of its versions: it is damaged. To do: restore it from a backup.")
    return row[0]


def _select_one(connection: sqlite3.Connection, statement: str) -> Any:
    return connection.execute(statement).fetchone()[0]
