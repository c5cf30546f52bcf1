"""The lines of an export: what `asides gateway export` writes and `asides gateway import` reads.

The first line names the format, the last one has the counts, so that a file that was cut off is noticed. Each line
between them is one key or one conversation.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

from asides_gateway.access import KeyRecord

FORMAT = 1


class Spent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a key spent on a day of UTC."""

    day: str
    dollars: Decimal
    requests: int


class ConversationPage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The owner and the settings of a conversation, as the page has them."""

    id: str
    tenant: str = ""
    title: str | None = None
    model: str | None = None
    target: str | None = None
    thinking: str | int | None = None


class ConversationLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A conversation with its messages. Times are seconds since 1970."""

    name: str
    created: float
    updated: float
    system: str | None = None
    model: str | None = None
    usage: msgspec.Raw = msgspec.Raw(b"{}")
    page: ConversationPage | None = None
    messages: tuple[msgspec.Raw, ...]
    notes: dict[str, dict[str, Any]] = {}
    """What the page noted about messages, by their places."""


class Counts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many lines of each kind there are."""

    keys: int = 0
    conversations: int = 0


class ExportedLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A line of an export: one of the first four fields is set."""

    asides_export: int | None = None
    """The version of the format, in the first line."""
    key: KeyRecord | None = None
    """A key without its secret: its digest and its settings."""
    conversation: ConversationLine | None = None
    end: Counts | None = None
    """The counts of the lines, in the last line."""
    spent: tuple[Spent, ...] = ()
    """Beside a key: what it spent."""
