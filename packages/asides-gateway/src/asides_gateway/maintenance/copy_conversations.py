"""Copy conversations with their messages, their page data and their notes: `copy_conversations`. Compare the copies:
`verify_conversations`.

One conversation is one transaction of the target. Its messages are read in pieces, so that memory stays small. Not
here: in which order areas are copied (copy_stores).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial
from typing import Any, TypeGuard

import msgspec

from asides.database import Database, Queries, Query, QueryMany, QueryResult, StoreError, StoreUnavailable
from asides_gateway.maintenance.copy_report import CopyReport, OnProgress, Outcome
from asides_gateway.maintenance.open_stores import list_file_tables
from asides_gateway.maintenance.table_columns import BEFORE_ALL, can_hold, count_rows, read_columns

_HEAD = "length, system, model, usage, created, updated"
_PAGE = "id, tenant, title, model, target, thinking"
_BATCH = 200
_PIECE_ROWS = 500
_PIECE_BYTES = 4 * 1024 * 1024
_MOST_ATTEMPTS = 3
_MOST_TICKS = 1 << 53
"""No store has had more changes than this. A clock near its end would leave the target no further version."""


class Head(msgspec.Struct, frozen=True):
    """A conversation without its messages."""

    key: int
    name: str
    version: int
    rewritten: int
    columns: tuple[Any, ...]
    """The length first."""
    page: tuple[Any, ...] | None
    """What the page keeps about it, its id first."""

    @property
    def length(self) -> int:
        """The number of messages."""
        return int(self.columns[0])


class _Changed(Exception):
    """The conversation changed while it was read."""


class ConversationReader:
    """Reads the conversations of one side."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.has_pages = has_pages(database)
        self._head = read_columns(database, "conversations")
        self._page = read_columns(database, "page_conversations")

    def can_take(self, head: Head) -> bool:
        """Whether the columns of this side can hold the values of a conversation from the other side."""
        values: dict[str, Any] = {"id": head.key, "name": head.name}
        values |= {"version": head.version, "rewritten": head.rewritten}
        values.update(zip(_HEAD.split(", "), head.columns, strict=True))
        page: dict[str, Any] = dict(zip(_PAGE.split(", "), head.page or (), strict=False))
        return can_hold(self._head, values) and can_hold(self._page, page)

    def list_heads(self, after: int) -> list[Head]:
        """The next conversations after a row number, in order."""
        return self.database.run(lambda: _list_heads(after, self.has_pages), writes=False)

    def find(self, key: int) -> Head | None:
        """A conversation as it is now; None if it was deleted."""
        return self.database.run(lambda: _find_by(self.has_pages, "stored.id = ?", key), writes=False)

    def read_pieces(self, key: int) -> Iterator[list[tuple[int, bytes]]]:
        """The messages in order, some at a time."""
        place = BEFORE_ALL
        while piece := self.database.run(partial(_read_piece, key, place), writes=False):
            place = piece[-1][0]
            yield piece

    def read_notes(self, key: int) -> list[tuple[Any, ...]]:
        """What the page noted about the messages."""
        if not self.has_pages:
            return []
        statement = "SELECT place, digest, note FROM page_notes WHERE conversation = ? ORDER BY place"
        rows = self.database.run(lambda: _select(statement, key), writes=False)
        return [(_read_place(row[0]), *(_read_bytes(value, f"note {row[0]}") for value in row[1:])) for row in rows]

    def digest(self, key: int, lengths: tuple[int, ...] = ()) -> tuple[bytes, dict[int, bytes]]:
        """The digest of all messages and notes, and, for each of `lengths`, that of the first so many messages."""
        hasher = hashlib.blake2b(digest_size=32)
        after: dict[int, bytes] = {0: hasher.digest()}
        count = 0
        for piece in self.read_pieces(key):
            for place, document in piece:
                hasher.update(b"%d %d " % (place, len(document)))
                hasher.update(document)
                count += 1
                if count in lengths:
                    after[count] = hasher.digest()
        messages = hasher.digest()
        after[count] = messages
        for place, digest, note in self.read_notes(key):
            hasher.update(b"note %d %d %d " % (place, len(digest), len(note)) + bytes(digest) + bytes(note))
        return hasher.digest(), after


def has_pages(database: Database) -> bool:
    """Whether there are tables of the page. A file that only the command line has used has none."""
    return database.is_shared or "page_notes" in database.run(list_file_tables, writes=False)


def copy_conversations(
    source: Database, target: Database, report: CopyReport, on_progress: OnProgress, *, replace: bool
) -> None:
    """Copy what the target lacks. A conversation that differs there stays as it is, unless `replace`."""
    _advance_clock(source, target)
    from_, to = ConversationReader(source), ConversationReader(target)
    after = BEFORE_ALL
    while heads := from_.list_heads(after):
        after = heads[-1].key
        for head in heads:
            report.count(_copy_one(from_, to, head, replace=replace), head.name)
        on_progress(report)


def verify_conversations(source: Database, target: Database, report: CopyReport, on_progress: OnProgress) -> None:
    """Read both sides again, and count what is not equal."""
    from_, to = ConversationReader(source), ConversationReader(target)
    after = BEFORE_ALL
    while heads := from_.list_heads(after):
        after = heads[-1].key
        for head in heads:
            found = _find_counterpart(to, head) if to.can_take(head) else None
            if found is not None and _verify_one(from_, to, head, found):
                report.checked += 1
            else:
                report.note_missing(head.name)
        on_progress(report)
    report.others = max(count_rows(target, "conversations") - report.checked - report.missing, 0)


# --- one conversation -------------------------------------------------------------------------------------------------


def _copy_one(source: ConversationReader, target: ConversationReader, head: Head, *, replace: bool) -> Outcome:
    for _ in range(_MOST_ATTEMPTS):
        if not target.can_take(head):
            return "failed"
        try:
            return _try_copy(source, target, head, replace=replace)
        except _Changed:
            now = source.find(head.key)
            if now is None:
                return "same"  # It was deleted: there is nothing to copy.
            head = now
        except StoreUnavailable:
            raise
        except StoreError:
            # It is damaged, or the other engine cannot take it. The others are copied all the same.
            return "failed"
    return "left"


def _try_copy(source: ConversationReader, target: ConversationReader, head: Head, *, replace: bool) -> Outcome:
    found = _find_counterpart(target, head)
    if found is None:
        target.database.run(lambda: _insert(source, head))
        return "copied"
    if _is_same(source, target, head, found):
        return "same"
    if not replace and not _is_beginning(source, target, head, found):
        return "different"
    if found.name != head.name and target.database.run(lambda: _find_by(False, "stored.name = ?", head.name)):
        return "different"
    target.database.run(lambda: _update(source, target, head, found))
    return "updated"


def _find_counterpart(target: ConversationReader, head: Head) -> Head | None:
    """The same conversation at the target: by its id on the page, which stays when it is renamed, else by its name."""

    def work() -> Queries[Head | None]:
        if head.page is not None and target.has_pages:
            by_id = yield from _find_by(True, "page.id = ?", head.page[0])
            if by_id is not None:
                return by_id
        return (yield from _find_by(target.has_pages, "stored.name = ?", head.name))

    return target.database.run(work, writes=False)


def _is_same(source: ConversationReader, target: ConversationReader, head: Head, found: Head) -> bool:
    if (head.name, head.columns, head.page) != (found.name, found.columns, found.page):
        return False
    return source.digest(head.key)[0] == target.digest(found.key)[0]


def _verify_one(source: ConversationReader, target: ConversationReader, head: Head, found: Head) -> bool:
    """Whether a conversation is the same on both sides. One that cannot be read is not."""
    try:
        return _is_same(source, target, head, found)
    except StoreUnavailable:
        raise
    except StoreError:
        return False


def _is_beginning(source: ConversationReader, target: ConversationReader, head: Head, found: Head) -> bool:
    """Whether the target has an earlier state of the same conversation, so that nothing of it would be lost."""
    if found.length >= head.length or found.columns[4] != head.columns[4]:
        return False
    return source.digest(head.key, (found.length,))[1].get(found.length) == target.digest(found.key)[1][found.length]


def _insert(source: ConversationReader, head: Head) -> Queries[None]:
    result = yield Query(
        f"INSERT INTO conversations (name, version, rewritten, {_HEAD}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "  # noqa: S608
        "RETURNING id",
        (head.name, head.version, head.rewritten, *head.columns),
    )
    yield from _fill(source, head, int(result.rows[0][0]))


def _update(source: ConversationReader, target: ConversationReader, head: Head, found: Head) -> Queries[None]:
    for table in ("messages", "page_notes", "page_conversations"):
        yield Query(f"DELETE FROM {table} WHERE conversation = ?", (found.key,))  # noqa: S608
    if not target.database.is_shared:
        yield Query("UPDATE clock SET ticks = ticks + 1")
    result = yield Query("SELECT ticks FROM clock", postgres="SELECT nextval('versions')")
    version = result.rows[0][0]
    yield Query(
        "UPDATE conversations SET name = ?, version = ?, rewritten = ?, length = ?, system = ?, model = ?, usage = ?, "
        "created = ?, updated = ? WHERE id = ?",
        (head.name, version, version, *head.columns, found.key),
    )
    yield from _fill(source, head, found.key)


def _fill(source: ConversationReader, head: Head, key: int) -> Queries[None]:
    """Write the messages and notes of a conversation, while they are read. Raises _Changed if it changes meanwhile."""
    count = 0
    for piece in source.read_pieces(head.key):
        count += len(piece)
        yield QueryMany(
            "INSERT INTO messages (conversation, place, message) VALUES (?, ?, ?)",
            [(key, place, document) for place, document in piece],
        )
    if head.page is not None:
        yield Query(
            f"INSERT INTO page_conversations (conversation, {_PAGE}) VALUES (?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
            (key, *head.page),
        )
    if notes := source.read_notes(head.key):
        yield QueryMany(
            "INSERT INTO page_notes (conversation, place, digest, note) VALUES (?, ?, ?, ?)",
            [(key, *note) for note in notes],
        )
    if source.find(head.key) != head or count != head.length:
        raise _Changed


# --- queries ----------------------------------------------------------------------------------------------------------


def is_sound_clock(ticks: object) -> TypeGuard[int]:
    """Whether this can be the number of a change."""
    return isinstance(ticks, int) and ticks <= _MOST_TICKS


def _advance_clock(source: Database, target: Database) -> None:
    """Advance the versions of the target past those of the source, so that no version is used twice."""
    read = Query("SELECT ticks FROM clock", postgres="SELECT last_value FROM versions", is_alone=True)

    def read_ticks() -> Queries[object]:
        result = yield read
        return result.rows[0][0] if result.rows else 0

    ticks: object = source.run(read_ticks, writes=False)
    if not is_sound_clock(ticks):
        raise StoreError(
            "the clock of the conversations of the source is damaged. To do: restore them from a backup, or name the "
            "file of another area, such as vault.db, to copy that one."
        )

    def write_ticks() -> Queries[None]:
        yield Query(
            "UPDATE clock SET ticks = max(ticks, ?)",
            (ticks,),
            postgres="SELECT setval('versions', greatest(last_value, %s)) FROM versions".replace("%s", "?"),
        )

    target.run(write_ticks)


def _columns(has_pages: bool) -> str:
    head = "stored.id, name, version, rewritten, length, system, stored.model, usage, created, updated"
    page = "page.id, page.tenant, page.title, page.model, page.target, page.thinking"
    joined = "FROM conversations AS stored LEFT JOIN page_conversations AS page ON page.conversation = stored.id"
    return f"{head}, {page} {joined}" if has_pages else f"{head} FROM conversations AS stored"


def _list_heads(after: int, has_pages: bool) -> Queries[list[Head]]:
    result = yield Query(
        f"SELECT {_columns(has_pages)} WHERE stored.id > ? ORDER BY stored.id LIMIT {_BATCH}",
        (after,),
        is_alone=True,
    )
    return [_read_head(row) for row in result.rows]


def _find_by(has_pages: bool, condition: str, value: object) -> Queries[Head | None]:
    result = yield Query(f"SELECT {_columns(has_pages)} WHERE {condition}", (value,))
    return None if result.first is None else _read_head(result.first)


def _read_head(row: tuple[Any, ...]) -> Head:
    key, name, version, rewritten = row[:4]
    columns, page = tuple(row[4:10]), tuple(row[10:])
    return Head(key, name, version, rewritten, columns, page if page and page[0] is not None else None)


def _read_piece(key: int, after: int) -> Queries[list[tuple[int, bytes]]]:
    """The next messages, as many as fit into a piece; one at least."""
    sizes = yield Query(
        "SELECT place, length(message) FROM messages WHERE conversation = ? AND place > ? ORDER BY place LIMIT ?",
        (key, after, _PIECE_ROWS),
    )
    last, total = after, 0
    for place, size in sizes.rows:
        total += size or 0
        if last > after and total > _PIECE_BYTES:
            break
        last = place
    result: QueryResult = yield Query(
        "SELECT place, message FROM messages WHERE conversation = ? AND place > ? AND place <= ? ORDER BY place",
        (key, after, last),
    )
    return [(_read_place(place), _read_bytes(document, f"message {place}")) for place, document in result.rows]


def _read_place(value: object) -> int:
    if not isinstance(value, int):
        raise StoreError("the place of a message is damaged. To do: run `asides store check`.")
    return value


def _read_bytes(value: object, what: str) -> bytes:
    if isinstance(value, str):  # SQLite takes anything for a column, and another program may have written this one.
        return value.encode("utf-8", "surrogatepass")
    if not isinstance(value, (bytes, memoryview)):
        raise StoreError(f"{what} is damaged. To do: run `asides store check`.")
    return bytes(value)


def _select(statement: str, *values: object) -> Queries[list[tuple[Any, ...]]]:
    result = yield Query(statement, values, is_alone=True)
    return result.rows
