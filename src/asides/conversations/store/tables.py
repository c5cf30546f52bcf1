"""The tables of conversations and all their SQL statements, for SQLite and PostgreSQL alike.

Each function is work, one transaction or a part of one. On PostgreSQL, a change of a conversation locks its row first,
so that other writers wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from asides.conversations.store import ConversationHeading, ConversationInfo, ConversationSnapshot, StoreConflict
from asides.database import Queries, Query, QueryMany, StoreError
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
_NO_LIMIT = 2**62
_ABOUT = "id, name, version, rewritten, length, system, model, usage, created, updated"


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
                f"{FORMAT}). Upgrade asides, or use another file."
            )
        return True
    if application or version or _select_one(connection, "SELECT count(*) FROM sqlite_master"):
        raise StoreError(f"{path} is a database of another program, not a store of conversations. Use another file.")
    return False


def create(connection: sqlite3.Connection) -> None:
    """Create the tables."""
    for statement in _TABLES.split(";"):
        if statement.strip():
            connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")


# --- changes ----------------------------------------------------------------------------------------------------------


def append(
    name: str,
    messages: Sequence[Message],
    heading: ConversationHeading | None,
    spent: Usage | None,
    now: float,
) -> Queries[ConversationInfo]:
    """Add messages at the end. A missing conversation is created."""
    return (yield from append_to((yield from _lock_or_create(name, now)), messages, heading, spent, now))


def append_to(
    conversation: LockedConversation,
    messages: Sequence[Message],
    heading: ConversationHeading | None,
    spent: Usage | None,
    now: float,
) -> Queries[ConversationInfo]:
    """Add messages at the end of a locked conversation."""
    length = conversation.about.length
    yield from _insert_messages(conversation, length, [write_message(message) for message in messages])
    length += len(messages)
    return (yield from _update_conversation(conversation, length, heading, spent, now, rewrites=False))


def replace(
    name: str,
    messages: Sequence[Message],
    expected: int,
    heading: ConversationHeading | None,
    spent: Usage | None,
    now: float,
) -> Queries[ConversationInfo]:
    """Replace all messages, if the version is the expected one."""
    documents = [write_message(message) for message in messages]
    # One that others create at this moment has version 0 until they are done, and another one then.
    before = yield from (_lock_or_create(name, now) if expected == 0 else lock(name))
    found = 0 if before is None else before.about.version
    if before is None or found != expected:
        raise StoreConflict(
            f"the conversation {name!r} was changed by another process; nothing was written. Load it again and "
            "repeat the change.",
            name=name,
            expected=expected,
            found=found or None,
        )
    yield Query("DELETE FROM messages WHERE conversation = ?", (before.id,))
    yield from _insert_messages(before, 0, documents)
    return (yield from _update_conversation(before, len(messages), heading, spent, now, rewrites=True))


def delete(name: str) -> Queries[bool]:
    """Delete a conversation."""
    return (yield Query("DELETE FROM conversations WHERE name = ?", (name,))).changed > 0


def rename(name: str, new: str, now: float) -> Queries[bool]:
    """Give a conversation another name; False when it is not in the store. Raises StoreError if the name is taken."""
    if name != new:
        # Inserting a row of this name first makes concurrent creators of the name wait.
        if not (yield from _insert_conversation(new, now)):
            raise StoreError(f"there is a conversation {new!r} already. Choose another name, or delete that one.")
        yield Query("DELETE FROM conversations WHERE name = ?", (new,))
    return (yield Query("UPDATE conversations SET name = ? WHERE name = ?", (new, name))).changed > 0


class LockedConversation(NamedTuple):
    """A conversation that is locked until this work ends."""

    id: int
    about: ConversationInfo


def lock(name: str) -> Queries[LockedConversation | None]:
    """Lock a conversation until this work ends; None if it is not in the store."""
    sql = f"SELECT {_ABOUT} FROM conversations WHERE name = ?"  # noqa: S608
    row = (yield Query(sql, (name,), postgres=f"{sql} FOR NO KEY UPDATE")).first
    return None if row is None else LockedConversation(row[0], _parse_about(row))


def _lock_or_create(name: str, now: float) -> Queries[LockedConversation]:
    while True:
        if (found := (yield from lock(name))) is not None:
            return found
        # Where another process creates it at the same time, this waits for it. It may be deleted again by now.
        yield from _insert_conversation(name, now)


# --- reading ----------------------------------------------------------------------------------------------------------


def about(name: str, *, is_alone: bool = True) -> Queries[ConversationInfo | None]:
    """The facts about a conversation. `is_alone`: as in `Query`."""
    return (yield from _find(name, is_alone=is_alone))


def load(name: str, start: int) -> Queries[ConversationSnapshot | None]:
    """A conversation with its messages from an index on."""
    info = yield from _find(name)
    if info is None:
        return None
    found = yield Query(
        "SELECT place, message FROM messages JOIN conversations ON conversation = id WHERE name = ? AND place >= ? "
        "ORDER BY place",
        (name, start),
    )
    return ConversationSnapshot(info, tuple(_parse_rows(name, found.rows)))


def load_first(name: str) -> Queries[Message | None]:
    """The first message of a conversation."""
    found = yield Query(
        "SELECT place, message FROM messages JOIN conversations ON conversation = id WHERE name = ? "
        "ORDER BY place LIMIT 1",
        (name,),
        is_alone=True,
    )
    return next(iter(_parse_rows(name, found.rows)), None)


def names() -> Queries[tuple[str, ...]]:
    """The names of all conversations, the latest changed first."""
    found = yield Query("SELECT name FROM conversations ORDER BY version DESC", is_alone=True)
    return tuple(name for (name,) in found.rows)


def list_infos(limit: int | None) -> Queries[list[ConversationInfo]]:
    """The facts about conversations, the latest changed first."""
    found = yield Query(
        f"SELECT {_ABOUT} FROM conversations ORDER BY version DESC LIMIT ?",  # noqa: S608
        (_NO_LIMIT if limit is None else limit,),
        is_alone=True,
    )
    return [_parse_about(row) for row in found.rows]


# --- rows -------------------------------------------------------------------------------------------------------------

_Columns: TypeAlias = tuple[str, int, int, int, str | None, str | None, float, float]


def _find(name: str, *, is_alone: bool = False) -> Queries[ConversationInfo | None]:
    found = yield Query(f"SELECT {_ABOUT} FROM conversations WHERE name = ?", (name,), is_alone=is_alone)  # noqa: S608
    return None if found.first is None else _parse_about(found.first)


def _parse_about(row: tuple[Any, ...]) -> ConversationInfo:
    _, name, version, rewritten, length, system, model, usage, created, updated = row
    try:
        spent = msgspec.json.decode(usage, type=Usage)
        # A damaged file or another program may have written anything into a column.
        msgspec.convert((name, version, rewritten, length, system, model, created, updated), _Columns)
    except (msgspec.DecodeError, TypeError, UnicodeDecodeError):  # TypeError: the column holds a number.
        raise StoreError(
            f"the head of the conversation {name!r} cannot be read: it is damaged, or a newer asides wrote it. "
            "Upgrade asides, or restore the store from a backup."
        ) from None
    heading = ConversationHeading(system, model)
    return ConversationInfo(name, version, rewritten, length, heading, spent, created, updated)


def _parse_rows(name: str, rows: Iterable[tuple[Any, ...]]) -> list[Message]:
    messages: list[Message] = []
    for place, document in rows:
        try:
            messages.append(read_message(document)[0])
        except (ConfigError, TypeError):  # TypeError: the column holds a number.
            raise StoreError(
                f"message {place} of the conversation {name!r} cannot be read: it is damaged, or a newer asides wrote "
                "it. Upgrade asides, or restore the store from a backup."
            ) from None
    return messages


def _insert_conversation(name: str, now: float) -> Queries[bool]:
    """Create a conversation; False when there is one of this name."""
    inserted = yield Query(
        "INSERT INTO conversations (name, version, rewritten, length, usage, created, updated) "
        "VALUES (?, 0, 0, 0, ?, ?, ?) ON CONFLICT (name) DO NOTHING",
        (name, msgspec.json.encode(Usage()), now, now),
    )
    return inserted.changed > 0


def _insert_messages(conversation: LockedConversation, start: int, documents: Sequence[bytes]) -> Queries[None]:
    if documents:
        yield QueryMany(
            "INSERT INTO messages (conversation, place, message) VALUES (?, ?, ?)",
            [(conversation.id, place, document) for place, document in enumerate(documents, start)],
        )


def _update_conversation(
    conversation: LockedConversation,
    length: int,
    heading: ConversationHeading | None,
    spent: Usage | None,
    now: float,
    *,
    rewrites: bool,
) -> Queries[ConversationInfo]:
    before = conversation.about
    version = yield from _next_version()
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
    yield Query(
        "UPDATE conversations SET version = ?, rewritten = ?, length = ?, system = ?, model = ?, usage = ?, "
        "updated = ? WHERE id = ?",
        (
            after.version,
            after.rewritten,
            after.length,
            after.heading.system,
            after.heading.model,
            msgspec.json.encode(after.usage),
            now,
            conversation.id,
        ),
    )
    return after


def _next_version() -> Queries[int]:
    """The next version. One counter for the whole store, so that no version is used twice, even after a deletion."""
    counted = yield Query("UPDATE clock SET ticks = ticks + 1", postgres="SELECT nextval('versions')")
    row = counted.first or (yield Query("SELECT ticks FROM clock")).first
    if row is None or not isinstance(row[0], int):
        raise StoreError("the store has lost count of its versions: it is damaged. Restore it from a backup.")
    return row[0]


def _select_one(connection: sqlite3.Connection, statement: str) -> Any:
    return connection.execute(statement).fetchone()[0]
