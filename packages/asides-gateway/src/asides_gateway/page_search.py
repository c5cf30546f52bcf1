"""Searches in the conversations of the page: `search_page`. Work on a database, like page_tables.

SQL finds candidates, and what was said in them is checked here: a document holds seals, thoughts and names too. Each
message is read once at most, and few at a time, however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from asides.database import Queries, Query
from asides.history.document import read_message
from asides.values.errors import ConfigError
from asides_gateway.page_tables import COLUMNS, FROM, NO_LIMIT, OWNED, PageConversation, read_rows

_CONVERSATIONS_AT_ONCE = 400
"""Below the number of values that an old SQLite takes."""
_MESSAGES_AT_ONCE = 16
# The mark is one that PostgreSQL leaves alone when it writes bytes as text; it doubles a backslash.
_LIKE = "LIKE ? ESCAPE '!'"
_SAID = f"CAST(message AS TEXT) {_LIKE}"
# A damaged message has no text, and must not end the search.
_SAID_POSTGRES = "encode(message, 'escape') ILIKE encode(convert_to(?, 'UTF8'), 'escape') ESCAPE '!'"


def search_page(tenant: str, search: str, before: int | None, limit: int) -> Queries[list[PageConversation]]:
    """The conversations of a tenant whose title, name or text has `search` in it, the latest changed first: those of
    which the last change is before this version.
    """
    found: list[tuple[Any, ...]] = []
    last = NO_LIMIT if before is None else before
    while True:
        rows, titled = yield from _list_conversations(tenant, search, last)
        said = yield from _find_said([row[0] for row in rows if row[0] not in titled], search)
        found += [row for row in rows if row[0] in titled or row[0] in said]
        if len(found) >= limit or len(rows) < _CONVERSATIONS_AT_ONCE:
            return (yield from read_rows(found[:limit]))
        last = rows[-1][8]


def _list_conversations(tenant: str, search: str, before: int) -> Queries[tuple[list[tuple[Any, ...]], set[int]]]:
    """Some conversations of a tenant, and the keys of those whose title or name has it."""
    # No title and no name has a NUL, which PostgreSQL does not take.
    patterns = [_write_pattern(form) for form in _list_forms(search) if "\0" not in form]
    matches = " OR ".join([f"page.title {_LIKE} OR stored.name {_LIKE}"] * len(patterns)) or "1 = 0"
    sql = (
        f"SELECT {COLUMNS}, CASE WHEN {matches} THEN 1 ELSE 0 END {FROM} WHERE {OWNED} AND stored.version < ? "
        "ORDER BY stored.version DESC LIMIT ?"
    )
    found = yield Query(
        sql,
        (*(each for pattern in patterns for each in (pattern, pattern)), tenant, before, _CONVERSATIONS_AT_ONCE),
        postgres=sql.replace(" LIKE ", " ILIKE "),
    )
    return [row[:-1] for row in found.rows], {row[0] for row in found.rows if row[-1]}


def _find_said(keys: Sequence[int], search: str) -> Queries[set[int]]:
    """Those of some conversations in which this was said."""
    said: set[int] = set()
    # In the document of a message a text is written as JSON.
    patterns = [_write_pattern(msgspec.json.encode(form).decode()[1:-1]) for form in _list_forms(search)]
    folded = search.casefold()
    remaining = sorted(keys)
    place = -1
    while remaining:
        select = (
            "SELECT conversation, place, message FROM messages "  # noqa: S608
            f"WHERE conversation IN ({', '.join('?' * len(remaining))}) AND (conversation > ? OR place > ?) AND "
        )
        order = " ORDER BY conversation, place LIMIT ?"
        rows = (
            yield Query(
                f"{select}({' OR '.join([_SAID] * len(patterns))}){order}",
                (*remaining, remaining[0], place, *patterns, _MESSAGES_AT_ONCE),
                postgres=f"{select}({' OR '.join([_SAID_POSTGRES] * len(patterns))}){order}",
            )
        ).rows
        said |= {key for key, _, document in rows if key not in said and _has_text(document, folded)}
        if len(rows) < _MESSAGES_AT_ONCE:
            break
        # Continue after the last message, or after its conversation if that is found.
        last, place, _ = rows[-1]
        remaining = [key for key in remaining if key > last or (key == last and key not in said)]
        place = place if remaining and remaining[0] == last else -1
    return said


def _list_forms(search: str) -> list[str]:
    return sorted({search, search.lower(), search.upper(), search.capitalize()})


def _write_pattern(text: str) -> str:
    escaped = text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{escaped}%"


def _has_text(document: bytes, search: str) -> bool:
    """Whether the text of a message, and not a seal, a thought or a name, has this in it."""
    try:
        message = read_message(document)[0]
    except (ConfigError, TypeError):
        return False
    return message.role != "system" and search in message.text.casefold()
