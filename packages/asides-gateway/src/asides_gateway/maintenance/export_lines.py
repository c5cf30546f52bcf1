"""`export_lines(stores)`: the keys and the conversations of a store as JSON lines. It only reads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec

from asides.conversations.store import tables
from asides.database import Database, Queries, Query, StoreError, StoreUnavailable
from asides.history.document import read_message
from asides.values.errors import ConfigError
from asides.values.money import to_dollars
from asides_gateway import page_tables
from asides_gateway.access.key_store import list_damaged_keys, list_keys
from asides_gateway.maintenance.exported_lines import (
    FORMAT,
    ConversationLine,
    ConversationPage,
    Counts,
    ExportedLine,
    Spent,
)
from asides_gateway.maintenance.open_stores import BEFORE_ALL, Stores, list_tables

_BATCH = 500


class Damaged(msgspec.Struct, frozen=True):
    """A key or a conversation that cannot be read, and so is not exported."""

    what: str


def export_lines(stores: Stores) -> Iterator[bytes | Damaged]:
    """The lines, each with its line break. Memory holds one conversation at a time."""
    keys = conversations = 0
    yield _encode(ExportedLine(asides_export=FORMAT))
    if (gateway := stores.areas.get("gateway")) is not None and "gateway_keys" in list_tables(gateway):
        for key_id in gateway.run(list_damaged_keys, writes=False):
            yield Damaged(f"the key {key_id}")
        spent = gateway.run(_read_spending, writes=False)
        for record in gateway.run(list_keys, writes=False):
            keys += 1
            yield _encode(ExportedLine(key=record, spent=spent.get(record.id, ())))
    if (database := stores.areas.get("conversations")) is not None:
        has_pages = "page_notes" in list_tables(database)
        for number, name in _list_names(database):
            try:
                if not isinstance(name, str):  # SQLite takes any value for any column.
                    raise StoreError("the name is not a text.")
                found = database.run(partial(_read_conversation, number, name, has_pages), writes=False)
            except StoreUnavailable:
                raise
            except (StoreError, ConfigError, msgspec.MsgspecError, TypeError, ValueError):
                yield Damaged(f"the conversation {name!r}")
                continue
            if found is not None:  # None: deleted meanwhile.
                conversations += 1
                yield _encode(ExportedLine(conversation=found))
    yield _encode(ExportedLine(end=Counts(keys, conversations)))


def _encode(line: ExportedLine) -> bytes:
    return msgspec.json.encode(line) + b"\n"


def _read_spending() -> Queries[dict[str, tuple[Spent, ...]]]:
    found = yield Query("SELECT key, day, spent, requests FROM gateway_spending ORDER BY key, day", is_alone=True)
    spent: dict[str, tuple[Spent, ...]] = {}
    for key, day, amount, requests in found.rows:
        if isinstance(amount, int):  # SQLite takes any value for any column.
            spent[key] = (*spent.get(key, ()), Spent(day, to_dollars(amount), requests))
    return spent


def _list_names(database: Database) -> Iterator[tuple[int, object]]:
    after = BEFORE_ALL
    while rows := database.run(partial(_read_names, after), writes=False):
        yield from rows
        after = rows[-1][0]


def _read_names(after: int) -> Queries[list[tuple[Any, ...]]]:
    sql = "SELECT id, name FROM conversations WHERE id > ? ORDER BY id LIMIT ?"
    return (yield Query(sql, (after, _BATCH), is_alone=True)).rows


def _read_conversation(number: int, name: str, has_pages: bool) -> Queries[ConversationLine | None]:
    about = yield from tables.about(name, is_alone=False)
    if about is None:
        return None
    found = yield Query("SELECT place, message FROM messages WHERE conversation = ? ORDER BY place", (number,))
    documents = [bytes(document) for _, document in found.rows]
    for document in documents:
        read_message(document)  # Raises ConfigError for a damaged one.
    if [place for place, _ in found.rows] != list(range(about.length)):
        raise StoreError(f"the conversation {name!r} lacks messages.")
    page: ConversationPage | None = None
    notes: dict[str, dict[str, Any]] = {}
    if has_pages:
        settings = yield Query(
            "SELECT id, tenant, title, model, target, thinking FROM page_conversations WHERE conversation = ?",
            (number,),
        )
        if settings.first is not None:
            *texts, thinking = settings.first
            names = ("id", "tenant", "title", "model", "target")
            fields = dict(zip(names, texts, strict=True)) | {"thinking": page_tables.read_thinking(thinking)}
            page = msgspec.convert(fields, ConversationPage)
        noted = yield Query(
            "SELECT place, digest, note FROM page_notes WHERE conversation = ? ORDER BY place", (number,)
        )
        notes = {
            str(place): decoded
            for place, digest, note in noted.rows
            # A note about another message that was in this place counts no more.
            if 0 <= place < len(documents) and bytes(digest) == page_tables.digest_message(documents[place])
            if (decoded := _read_note(bytes(note))) is not None
        }
    return ConversationLine(
        name=about.name,
        created=about.created,
        updated=about.updated,
        system=about.heading.system,
        model=about.heading.model,
        usage=msgspec.Raw(msgspec.json.encode(about.usage)),
        page=page,
        messages=tuple(msgspec.Raw(document.replace(b"\n", b" ")) for document in documents),
        notes=notes,
    )


def _read_note(note: bytes) -> dict[str, Any] | None:
    """A note as JSON; None for one that cannot be read, which the page leaves out too."""
    try:
        return msgspec.json.decode(note, type=dict[str, Any])
    except msgspec.MsgspecError:
        return None
