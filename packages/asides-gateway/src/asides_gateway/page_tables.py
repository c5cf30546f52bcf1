"""What the page keeps beside stored conversations, as tables in the same database, and all its SQL statements.

Whose a conversation is, its title and settings, and notes about its messages. They go with their conversation when any
asides deletes it. Each function is work, one transaction or a part of one.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from asides.conversations.store import tables
from asides.conversations.store.conversation_names import is_unnamed
from asides.database import NOW_POSTGRES, NOW_SQLITE, Queries, Query, StoreError
from asides.history.document import read_message
from asides.values.errors import ConfigError
from asides.values.messages import Message

if TYPE_CHECKING:
    from sqlite3 import Connection

MOST_TITLE = 80
NO_LIMIT = 2**62
"""Above every place and every version."""
_TITLE_WORDS = 12
_TABLES = """
CREATE TABLE IF NOT EXISTS page_conversations (
    conversation INTEGER PRIMARY KEY REFERENCES conversations (id) ON DELETE CASCADE,
    id           TEXT    NOT NULL UNIQUE,
    tenant       TEXT    NOT NULL,
    title        TEXT,
    model        TEXT,
    target       TEXT,
    thinking     TEXT,
    holder       TEXT,
    held_until   REAL
);
CREATE INDEX IF NOT EXISTS page_tenants ON page_conversations (tenant);
CREATE TABLE IF NOT EXISTS page_notes (
    conversation INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    place        INTEGER NOT NULL,
    digest       BLOB    NOT NULL,
    note         BLOB    NOT NULL,
    PRIMARY KEY (conversation, place)
) WITHOUT ROWID
"""
COLUMNS = """
    stored.id, page.id, stored.name, page.title, stored.model, page.model, page.target, page.thinking, stored.version,
    stored.length, stored.created, stored.updated, page.held_until
"""
FROM = "FROM conversations AS stored LEFT JOIN page_conversations AS page ON page.conversation = stored.id"
# Conversations of the command line have no row here. They belong to the tenant without a key.
OWNED = "coalesce(page.tenant, '') = ?"


class PageConversation(msgspec.Struct, frozen=True):
    """A conversation as the page lists it."""

    key: int
    """The number of its row, which the page never sees."""
    id: str
    name: str
    """Its name in the store."""
    title: str
    model: str | None
    """The model as it was asked for: a route, an alias, or provider:model."""
    thinking: str | int | None
    version: int
    length: int
    created: float
    updated: float
    held_until: float | None = None
    """Until when a turn holds it, if it does not end before."""


class PageSettings(msgspec.Struct, frozen=True):
    """The settings of a conversation."""

    title: str | None = None
    model: str | None = None
    target: str | None = None
    """What the model led to. If the store has another model by now, `model` counts no more."""
    thinking: str | int | None = None


# --- the tables -------------------------------------------------------------------------------------------------------


def has_tables(connection: Connection, path: str) -> bool:
    """Whether the tables exist. Raises StoreError for a file of another program or of a newer asides."""
    return tables.has_tables(connection, path) and bool(
        connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'page_notes'").fetchone()[0]
    )


def create(connection: Connection) -> None:
    """Create the tables that are missing."""
    if not connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'conversations'").fetchone()[0]:
        tables.create(connection)
    for statement in _TABLES.split(";"):
        connection.execute(statement)


# --- one conversation -------------------------------------------------------------------------------------------------


def find(tenant: str, identifier: str) -> Queries[PageConversation | None]:
    """The conversation with this id, if it is this tenant's."""
    found = yield Query(f"SELECT {COLUMNS} {FROM} WHERE page.id = ? AND {OWNED}", (identifier, tenant))
    return None if found.first is None else (yield from _read_row(found.first))


def adopt(name: str, tenant: str, settings: PageSettings, identifier: str | None = None) -> Queries[str | None]:
    """Give a stored conversation an owner, settings and an id, which is returned; None where it is not there, or has an
    owner. `identifier`: the id, if it has one already.
    """
    identifier = identifier or secrets.token_urlsafe(15)
    insert = (
        "INSERT INTO page_conversations (conversation, id, tenant, title, model, target, thinking) "
        "SELECT id, ?, ?, ?, ?, ?, ? FROM conversations WHERE name = ?"
    )
    unless_known = "ON CONFLICT (conversation) DO NOTHING"
    adopted = yield Query(
        f"{insert} {unless_known}",
        (identifier, tenant, *_write_settings(settings), name),
        # Locks it against deletion.
        postgres=f"{insert} FOR KEY SHARE {unless_known}",
    )
    return identifier if adopted.changed else None


def lock(key: int) -> Queries[bool]:
    """Lock a conversation against changes and deletion until this work ends; False if it is not there."""
    sql = "SELECT id FROM conversations WHERE id = ?"
    return (yield Query(sql, (key,), postgres=f"{sql} FOR NO KEY UPDATE")).first is not None


def read_settings(key: int) -> Queries[PageSettings]:
    """The settings of a conversation."""
    found = yield Query("SELECT title, model, target, thinking FROM page_conversations WHERE conversation = ?", (key,))
    if found.first is None:
        return PageSettings()
    title, model, target, thinking = found.first
    return PageSettings(title, model, target, read_thinking(thinking))


def write_settings(key: int, settings: PageSettings) -> Queries[None]:
    """Change the settings of a conversation."""
    yield Query(
        "UPDATE page_conversations SET title = ?, model = ?, target = ?, thinking = ? WHERE conversation = ?",
        (*_write_settings(settings), key),
    )


def hold(key: int, holder: str, seconds: float) -> Queries[bool]:
    """Hold a conversation for one turn; False while another one holds it. Again, to hold it for longer."""
    sql = (
        f"UPDATE page_conversations SET holder = ?, held_until = {NOW_SQLITE} + ? "  # noqa: S608
        f"WHERE conversation = ? AND (holder IS NULL OR holder = ? OR held_until < {NOW_SQLITE})"
    )
    held = yield Query(
        sql, (holder, seconds, key, holder), postgres=sql.replace(NOW_SQLITE, NOW_POSTGRES), is_alone=True
    )
    return held.changed > 0


def release(key: int, holder: str) -> Queries[None]:
    """Release a conversation that this holder holds."""
    yield Query(
        "UPDATE page_conversations SET holder = NULL, held_until = NULL WHERE conversation = ? AND holder = ?",
        (key, holder),
        is_alone=True,
    )


def list_latest(tenant: str, before: int | None, limit: int) -> Queries[list[PageConversation]]:
    """The conversations of a tenant, the latest changed first, whose last change is before a version."""
    found = yield Query(
        f"SELECT {COLUMNS} {FROM} WHERE {OWNED} AND stored.version < ? ORDER BY stored.version DESC LIMIT ?",
        (tenant, NO_LIMIT if before is None else before, limit),
    )
    return (yield from read_rows(found.rows))


# --- messages and notes -----------------------------------------------------------------------------------------------


def read_messages(key: int, before: int | None, limit: int) -> Queries[list[tuple[int, Message, bytes | None]]]:
    """The last messages before a place, in their order, each with its place and its note."""
    found = yield Query(
        "SELECT messages.place, message, digest, note FROM messages LEFT JOIN page_notes AS notes "
        "ON notes.conversation = messages.conversation AND notes.place = messages.place "
        "WHERE messages.conversation = ? AND messages.place < ? ORDER BY messages.place DESC LIMIT ?",
        (key, NO_LIMIT if before is None else before, limit),
        is_alone=True,
    )
    read: list[tuple[int, Message, bytes | None]] = []
    for place, document, digest, note in reversed(found.rows):
        try:
            message = read_message(document)[0]
        except (ConfigError, TypeError):
            raise StoreError(
                f"message {place} of the conversation cannot be read: it is damaged, or a newer asides wrote it. "
                "Upgrade asides, or restore the store from a backup."
            ) from None
        # A message that another program has put into this place has no note.
        read.append((place, message, note if note is not None and digest == digest_message(document) else None))
    return read


def write_note(key: int, place: int, note: bytes | None) -> Queries[None]:
    """Note something about a message of a locked conversation; nothing if it is not there. None: forget what was
    noted.
    """
    if note is None:
        yield Query("DELETE FROM page_notes WHERE conversation = ? AND place = ?", (key, place))
        return
    found = yield Query("SELECT message FROM messages WHERE conversation = ? AND place = ?", (key, place))
    if found.first is not None:
        yield Query(
            "INSERT INTO page_notes (conversation, place, digest, note) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (conversation, place) DO UPDATE SET digest = excluded.digest, note = excluded.note",
            (key, place, digest_message(found.first[0]), note),
        )


def copy_notes(key: int, name: str) -> Queries[None]:
    """Copy the notes of a conversation to its fork. Those about messages that the fork has not count no more."""
    yield Query(
        "INSERT INTO page_notes (conversation, place, digest, note) "
        "SELECT fork.id, place, digest, note FROM page_notes, conversations AS fork "
        "WHERE page_notes.conversation = ? AND fork.name = ? AND place < fork.length ON CONFLICT DO NOTHING",
        (key, name),
    )


def digest_message(document: bytes) -> bytes:
    """The digest by which a note belongs to a message rather than to its place."""
    return hashlib.blake2b(document, digest_size=16).digest()


# --- rows -------------------------------------------------------------------------------------------------------------


def read_rows(rows: Iterable[tuple[Any, ...]]) -> Queries[list[PageConversation]]:
    """Rows of `COLUMNS` as the page lists them."""
    listed: list[PageConversation] = []
    for row in rows:
        conversation = yield from _read_row(row)
        listed.append(conversation)
    return listed


def _read_row(row: tuple[Any, ...]) -> Queries[PageConversation]:
    key, identifier, name, title, stored_model, model, target, thinking, version, length, *times = row
    created, updated, held_until = times
    return PageConversation(
        key,
        identifier or "",
        name,
        title or (yield from _find_title(key, name)),
        model if model and target == stored_model else stored_model,
        read_thinking(thinking),
        version,
        length,
        created,
        updated,
        held_until,
    )


def _find_title(key: int, name: str) -> Queries[str]:
    if not is_unnamed(name):
        return name[:MOST_TITLE]
    found = yield Query("SELECT message FROM messages WHERE conversation = ? ORDER BY place LIMIT 4", (key,))
    for (document,) in found.rows:
        try:
            message = read_message(document)[0]
        except (ConfigError, TypeError):
            continue
        if message.role == "user" and (title := make_title(message.text)):
            return title
    return ""


def make_title(text: str) -> str:
    """The first words of a question, on one line."""
    words = text[: MOST_TITLE * 8].split()
    title = " ".join(words[:_TITLE_WORDS])
    if len(title) > MOST_TITLE:
        title = title[: MOST_TITLE - 1].rsplit(" ", 1)[0]
    return title if len(words) <= _TITLE_WORDS and title == " ".join(words) else f"{title}…"


def _write_settings(settings: PageSettings) -> tuple[str | None, ...]:
    thinking = None if settings.thinking is None else msgspec.json.encode(settings.thinking).decode()
    return settings.title, settings.model, settings.target, thinking


def read_thinking(written: str | None) -> str | int | None:
    """The effort of thinking of a conversation, from its column; None for one that cannot be read."""
    try:
        return None if written is None else msgspec.json.decode(written, type=str | int)
    except msgspec.MsgspecError:
        return None
