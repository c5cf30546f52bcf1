"""What the page keeps beside stored conversations, as tables in the same file, and all its SQL statements.

Whose a conversation is, its title and settings, and notes about its messages. They go with their conversation when any
asides deletes it. The caller begins and ends the transactions. Not here: the messages (conversations/store/tables).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from asides.conversations.store import tables
from asides.conversations.store.conversation_names import is_unnamed
from asides.database import StoreError
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
_COLUMNS = """
    stored.id, page.id, stored.name, page.title, stored.model, page.model, page.target, page.thinking, stored.version,
    stored.length, stored.created, stored.updated
"""
_FROM = "FROM conversations AS stored LEFT JOIN page_conversations AS page ON page.conversation = stored.id"
# Conversations of the command line have no row here. They are of whoever runs it: the tenant without a key.
_OWNED = "coalesce(page.tenant, '') = ?"


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


def find(connection: Connection, tenant: str, identifier: str) -> PageConversation | None:
    """The conversation with this id, if it is this tenant's."""
    row = connection.execute(
        f"SELECT {_COLUMNS} {_FROM} WHERE page.id = ? AND {_OWNED}",
        (identifier, tenant),
    ).fetchone()
    return None if row is None else _read_row(connection, row)


def adopt(connection: Connection, name: str, tenant: str, settings: PageSettings) -> str:
    """Give a stored conversation an owner, settings and an id, which is returned."""
    identifier = secrets.token_urlsafe(15)
    connection.execute(
        "INSERT INTO page_conversations (conversation, id, tenant, title, model, target, thinking) "
        "SELECT id, ?, ?, ?, ?, ?, ? FROM conversations WHERE name = ?",
        (identifier, tenant, *_write_settings(settings), name),
    )
    return identifier


def adopt_missing(connection: Connection, name: str, tenant: str) -> None:
    """Give a stored conversation that has no owner one, and an id."""
    known = connection.execute(
        "SELECT 1 FROM page_conversations WHERE conversation = (SELECT id FROM conversations WHERE name = ?)", (name,)
    ).fetchone()
    if known is None:
        adopt(connection, name, tenant, PageSettings())


def read_settings(connection: Connection, key: int) -> PageSettings:
    """The settings of a conversation."""
    row = connection.execute(
        "SELECT title, model, target, thinking FROM page_conversations WHERE conversation = ?", (key,)
    ).fetchone()
    if row is None:
        return PageSettings()
    title, model, target, thinking = row
    return PageSettings(title, model, target, _read_thinking(thinking))


def write_settings(connection: Connection, key: int, settings: PageSettings) -> None:
    """Change the settings of a conversation."""
    connection.execute(
        "UPDATE page_conversations SET title = ?, model = ?, target = ?, thinking = ? WHERE conversation = ?",
        (*_write_settings(settings), key),
    )


def hold(connection: Connection, key: int, holder: str, now: float, until: float) -> bool:
    """Hold a conversation for one turn; False while another one holds it. Again, to hold it for longer."""
    changed = connection.execute(
        "UPDATE page_conversations SET holder = ?, held_until = ? "
        "WHERE conversation = ? AND (holder IS NULL OR holder = ? OR held_until < ?)",
        (holder, until, key, holder, now),
    )
    return changed.rowcount > 0


def release(connection: Connection, key: int, holder: str) -> None:
    """Release a conversation that this holder holds."""
    connection.execute(
        "UPDATE page_conversations SET holder = NULL, held_until = NULL WHERE conversation = ? AND holder = ?",
        (key, holder),
    )


# --- lists ------------------------------------------------------------------------------------------------------------


def list_page(
    connection: Connection, tenant: str, search: str, before: int | None, limit: int
) -> list[PageConversation]:
    """The conversations of a tenant, the latest changed first: those whose title, name or text has `search` in it, and
    of which the last change is before this version.
    """
    statement = f"SELECT {_COLUMNS} {_FROM} WHERE {_OWNED} AND stored.version < ?"
    arguments: list[Any] = [tenant, NO_LIMIT if before is None else before]
    if search:
        connection.create_function("has_text", 2, _has_text, deterministic=True)
        likes = [_write_pattern(form) for form in _forms(search)]
        said = " OR ".join(["CAST(message AS TEXT) LIKE ? ESCAPE '\\'"] * len(likes))
        titled = " OR ".join(["page.title LIKE ? ESCAPE '\\' OR stored.name LIKE ? ESCAPE '\\'"] * len(likes))
        statement += (
            f" AND ({titled} OR EXISTS (SELECT 1 FROM messages WHERE conversation = stored.id "  # noqa: S608
            f"AND ({said}) AND has_text(message, ?)))"
        )
        arguments += [each for like in likes for each in (like, like)]
        # In the document of a message a text is written as JSON.
        arguments += [_write_pattern(msgspec.json.encode(form).decode()[1:-1]) for form in _forms(search)]
        arguments.append(search.casefold())
    rows = connection.execute(f"{statement} ORDER BY stored.version DESC LIMIT ?", (*arguments, limit)).fetchall()
    return [_read_row(connection, row) for row in rows]


def _forms(search: str) -> list[str]:
    return sorted({search, search.lower(), search.upper(), search.capitalize()})


def _write_pattern(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _has_text(document: bytes, search: str) -> bool:
    """Whether the text of a message, and not a seal, a thought or a name, has this in it."""
    try:
        message = read_message(document)[0]
    except (ConfigError, TypeError):
        return False
    return message.role != "system" and search in message.text.casefold()


# --- messages and notes -----------------------------------------------------------------------------------------------


def read_messages(
    connection: Connection, key: int, before: int | None, limit: int
) -> list[tuple[int, Message, bytes | None]]:
    """The last messages before a place, in their order, each with its place and its note."""
    rows = connection.execute(
        "SELECT messages.place, message, digest, note FROM messages LEFT JOIN page_notes AS notes "
        "ON notes.conversation = messages.conversation AND notes.place = messages.place "
        "WHERE messages.conversation = ? AND messages.place < ? ORDER BY messages.place DESC LIMIT ?",
        (key, NO_LIMIT if before is None else before, limit),
    ).fetchall()
    read: list[tuple[int, Message, bytes | None]] = []
    for place, document, digest, note in reversed(rows):
        try:
            message = read_message(document)[0]
        except (ConfigError, TypeError):
            raise StoreError(
                f"message {place} of the conversation cannot be read: it is damaged, or a newer asides wrote it. To "
                "do: upgrade asides, or restore the store from a backup."
            ) from None
        # A message that another program has put into this place has no note.
        read.append((place, message, note if note is not None and digest == _digest(document) else None))
    return read


def write_note(connection: Connection, key: int, place: int, note: bytes | None) -> None:
    """Note something about a message; nothing if it is not there. None: forget what was noted."""
    if note is None:
        connection.execute("DELETE FROM page_notes WHERE conversation = ? AND place = ?", (key, place))
        return
    row = connection.execute(
        "SELECT message FROM messages WHERE conversation = ? AND place = ?", (key, place)
    ).fetchone()
    if row is not None:
        connection.execute(
            "INSERT OR REPLACE INTO page_notes (conversation, place, digest, note) VALUES (?, ?, ?, ?)",
            (key, place, _digest(row[0]), note),
        )


def copy_notes(connection: Connection, key: int, name: str) -> None:
    """Copy the notes of a conversation to its fork. Those about messages that the fork has not count no more."""
    connection.execute(
        "INSERT OR IGNORE INTO page_notes (conversation, place, digest, note) "
        "SELECT fork.id, place, digest, note FROM page_notes, conversations AS fork "
        "WHERE page_notes.conversation = ? AND fork.name = ? AND place < fork.length",
        (key, name),
    )


def _digest(document: bytes) -> bytes:
    return hashlib.blake2b(document, digest_size=16).digest()


# --- rows -------------------------------------------------------------------------------------------------------------


def _read_row(connection: Connection, row: tuple[Any, ...]) -> PageConversation:
    key, identifier, name, title, stored_model, model, target, thinking, version, length, created, updated = row
    return PageConversation(
        key,
        identifier or "",
        name,
        title or _find_title(connection, key, name),
        model if model and target == stored_model else stored_model,
        _read_thinking(thinking),
        version,
        length,
        created,
        updated,
    )


def _find_title(connection: Connection, key: int, name: str) -> str:
    if not is_unnamed(name):
        return name[:MOST_TITLE]
    rows: Iterable[tuple[bytes]] = connection.execute(
        "SELECT message FROM messages WHERE conversation = ? ORDER BY place LIMIT 4", (key,)
    )
    for (document,) in rows:
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


def _read_thinking(written: str | None) -> str | int | None:
    try:
        return None if written is None else msgspec.json.decode(written, type=str | int)
    except msgspec.MsgspecError:
        return None
