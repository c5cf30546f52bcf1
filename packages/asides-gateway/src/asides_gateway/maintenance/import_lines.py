"""`import_lines(lines, target)`: keys and conversations of an export into a store, each line whole or not at all.

What is there already stays: an import that was stopped is run again for the rest. A conversation that has grown since
an earlier import is extended, and a key that was revoked since then is revoked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from asides.conversations.store import ConversationHeading, tables
from asides.conversations.store.database_store import check_name
from asides.database import Database, Queries, Query, QueryMany, StoreError, StoreUnavailable
from asides.history.document import read_message, write_message
from asides.values.errors import ConfigError
from asides.values.messages import Message
from asides.values.money import to_billionths
from asides.values.usage import Usage
from asides_gateway import page_tables
from asides_gateway.access import KeyRecord
from asides_gateway.access.key_store import check_record, find_id, insert_key, revoke_key
from asides_gateway.maintenance.exported_lines import (
    FORMAT,
    ConversationLine,
    ConversationPage,
    Counts,
    ExportedLine,
    Spent,
)
from asides_gateway.page_tables import PageSettings

MAX_LINE = 256 * 1024 * 1024
"""The bytes of the longest line that is read."""

_Outcome: TypeAlias = Literal["added", "updated", "there"]


class OddLine(msgspec.Struct, frozen=True):
    """A line that was not imported, and why."""

    line: int
    problem: str


class ImportReport(msgspec.Struct):
    """What an import did."""

    added: Counts = Counts()
    updated: Counts = Counts()
    """Keys that were revoked, and conversations that were extended."""
    there: Counts = Counts()
    """What the store had already."""
    odd: list[OddLine] = []
    is_cut: bool = True
    """True until the last line with the right counts: the file may be cut off."""
    lines: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether all of the export is in the store."""
        return not self.odd and not self.is_cut


class ImportTarget(msgspec.Struct, frozen=True):
    """The databases to import into. PostgreSQL has one for both."""

    keys: Database
    conversations: Database


class _Odd(Exception):
    """A line is not imported for this reason."""


def import_lines(lines: Iterable[bytes], target: ImportTarget, report: ImportReport) -> None:
    """Import lines into a store, and count them in `report`, which is right also when the store stops answering.

    Raises ConfigError if the first line is not that of an export.
    """
    read = Counts()
    for number, text in enumerate(lines, 1):
        report.lines = number
        if not text.strip() and number > 1:
            continue
        try:
            line = _decode(text)
            if number == 1:
                _check_format(line)
            elif line.end is not None:
                report.is_cut = line.end != read
            elif line.key is not None:
                read = _add(read, "keys")
                key, spent = line.key, line.spent
                _count(report, target.keys.run(lambda: _import_key(key, spent)), "keys")  # noqa: B023 - runs here
            elif line.conversation is not None:
                read = _add(read, "conversations")
                work = _read_conversation(line.conversation, target.conversations)
                _count(report, target.conversations.run(work.run), "conversations")
            else:
                raise _Odd("it has neither a key nor a conversation.")
        except StoreUnavailable:
            raise
        except (_Odd, ConfigError) as problem:
            if number == 1:
                raise ConfigError(
                    "this is not an export of a gateway. Pass a file that `asides gateway export` wrote."
                ) from None
            report.odd.append(OddLine(number, str(problem)))


def _decode(text: bytes) -> ExportedLine:
    if len(text) > MAX_LINE:
        raise _Odd(f"it has more than {MAX_LINE} bytes.")
    try:
        return msgspec.json.decode(text, type=ExportedLine)
    except msgspec.ValidationError as problem:
        raise _Odd(f"{problem}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _Odd("it is not JSON, or it is cut off.") from None


def _check_format(line: ExportedLine) -> None:
    if line.asides_export is None:
        raise _Odd("it does not name the format.")
    if line.asides_export > FORMAT:
        raise StoreError(f"a newer asides wrote this export (format {line.asides_export}). Upgrade asides.")


def _add(counts: Counts, kind: str) -> Counts:
    return msgspec.structs.replace(counts, **{kind: getattr(counts, kind) + 1})


def _count(report: ImportReport, outcome: _Outcome, kind: str) -> None:
    setattr(report, outcome, _add(getattr(report, outcome), kind))


# --- keys -------------------------------------------------------------------------------------------------------------


def _import_key(record: KeyRecord, spent: tuple[Spent, ...]) -> Queries[_Outcome]:
    check_record(record)
    outcome: _Outcome = "there"
    found = yield from find_id(record.id)
    if found is None:
        yield from insert_key(record)
        outcome = "added"
    elif _show_settings(found) != _show_settings(record):
        raise _Odd(f"the store has the key {record.id} with other settings, which stay.")
    elif record.revoked is not None and found.revoked is None:
        yield from revoke_key(record.id, record.revoked)
        outcome = "updated"
    # Money that was spent since an earlier import counts too.
    yield QueryMany(
        "INSERT INTO gateway_spending (key, day, spent, requests) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (key, day) DO UPDATE SET spent = excluded.spent, requests = excluded.requests "
        "WHERE excluded.spent > gateway_spending.spent",
        [(record.id, each.day, to_billionths(each.dollars), each.requests) for each in spent],
    )
    return outcome


def _show_settings(record: KeyRecord) -> KeyRecord:
    """The part of a key that its owner chose."""
    return msgspec.structs.replace(record, revoked=None, used=None)


# --- conversations ----------------------------------------------------------------------------------------------------


class _Imported(msgspec.Struct, frozen=True):
    """A conversation of a line, read and checked."""

    line: ConversationLine
    messages: tuple[Message, ...]
    notes: Mapping[int, dict[str, Any]]
    usage: Usage

    def run(self) -> Queries[_Outcome]:
        """Add the conversation, or the messages that the existing one of this name lacks."""
        line = self.line
        heading = ConversationHeading(line.system, line.model)
        locked = yield from tables.lock(line.name)
        if locked is None:
            start = 0
            yield from tables.append(line.name, self.messages, heading, None, line.created)
        else:
            found = yield Query("SELECT message FROM messages WHERE conversation = ? ORDER BY place", (locked.id,))
            start = self._find_start([bytes(document) for (document,) in found.rows])
            if start == len(self.messages):
                return "there"
            yield from tables.append_to(locked, self.messages[start:], heading, None, line.updated)
        yield Query(
            "UPDATE conversations SET usage = ?, updated = ? WHERE name = ?",
            (msgspec.json.encode(self.usage), line.updated, line.name),
        )
        key = (yield Query("SELECT id FROM conversations WHERE name = ?", (line.name,))).rows[0][0]
        if start == 0 and line.page is not None:
            yield from _adopt(line, line.page, key)
        for place, note in self.notes.items():
            if place >= start:
                yield from page_tables.write_note(key, place, msgspec.json.encode(note))
        return "updated" if start else "added"

    def _find_start(self, documents: list[bytes]) -> int:
        """The number of messages that the store has. Raises _Odd if they are others."""
        there = [write_message(read_message(document)[0]) for document in documents]
        given = [write_message(message) for message in self.messages]
        shorter = min(len(there), len(given))
        if there[:shorter] != given[:shorter]:
            raise _Odd(f"the store has another conversation with the name {self.line.name!r}, which stays.")
        # One that was continued in the store already has everything.
        return shorter


def _read_conversation(line: ConversationLine, database: Database) -> _Imported:
    check_name(line.name, is_shared=database.is_shared)
    try:
        usage = msgspec.json.decode(line.usage, type=Usage)
        notes = {int(place): note for place, note in line.notes.items()}
    except (msgspec.MsgspecError, ValueError):
        raise _Odd("the usage or the notes of the conversation cannot be read.") from None
    messages: list[Message] = []
    for place, document in enumerate(line.messages):
        try:
            messages.append(read_message(bytes(document))[0])
        except ConfigError:
            raise _Odd(f"message {place} of the conversation cannot be read.") from None
    return _Imported(line, tuple(messages), notes, usage)


def _adopt(line: ConversationLine, page: ConversationPage, key: int) -> Queries[None]:
    taken = yield Query("SELECT conversation FROM page_conversations WHERE id = ?", (page.id,))
    if taken.first is not None and taken.first[0] != key:
        raise _Odd("the store has this conversation under another name.")
    settings = PageSettings(page.title, page.model, page.target, page.thinking)
    yield from page_tables.adopt(line.name, page.tenant, settings, page.id)
