"""The steps that only the relay's flows ask for: its records, and the usage of callers with limits.

    ReadRecords     → records     that have one of the keys; None without a store, or if it failed
    WriteRecord     → bool        True if the record is stored
    DeleteRecords   → int         the number of deleted records; None without a store, or if it failed
    ReserveUse      → error       as a value, if the caller would exceed a limit; None: allowed, or not metered
    SettleUse       → None

`relay/streams` has their handlers.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TypeAlias

import msgspec

from asides.flows.steps import Step

PENDING = "pending-"
"""Prefix of the key that a record has until the delivery of its reply is confirmed."""


class StoredRecord(msgspec.Struct, frozen=True):
    """An immutable record of a store: opaque bytes under opaque keys. The store reads neither."""

    id: str
    """Unique."""
    keys: tuple[str, ...]
    """Lookup keys. Records may share one."""
    payload: bytes
    asked_ago: float = 0.0
    """For a record to write: seconds since its request arrived."""

    @property
    def pending(self) -> str:
        """Key of a reply whose delivery is unconfirmed; "" once confirmed. A later record with the same key is the
        client's retry.
        """
        return self.keys[-1] if self.keys and self.keys[-1][: len(PENDING)] == PENDING else ""

    def __repr__(self) -> str:
        return f"StoredRecord({len(self.keys)} keys, <{len(self.payload)} bytes>)"


class UnconfirmedRecord(msgspec.Struct, frozen=True):
    """A record whose reply may not have been delivered."""

    tenant: str
    id: str
    pending: str
    """The key to delete once the delivery is confirmed."""


class ReadRecords(Step, frozen=True):
    """Find the records of a tenant that have one of these keys, in one read."""

    tenant: str
    keys: tuple[str, ...]


class WriteRecord(Step, frozen=True):
    """Store a record. It is stored when the flow continues."""

    tenant: str
    record: StoredRecord


class DeleteRecords(Step, frozen=True):
    """Delete the records of a tenant that have one of these keys."""

    tenant: str
    keys: tuple[str, ...]


class Use(msgspec.Struct, frozen=True):
    """The usage of a request, as far as it is known."""

    tokens: int = 0
    """Sent and received."""
    cost: Decimal | None = Decimal()
    """In US dollars; None if no price is known."""
    is_estimate: bool = False
    """True if the provider reported neither tokens nor a cost, or the reply broke off."""


class ReserveUse(Step, frozen=True):
    """Reserve the likely usage of a request before it is sent. Replaces an earlier reservation of the request."""

    model: str
    """provider:model."""
    tokens: int
    """An estimate on the high side."""
    cost: Decimal | None
    """Upper bound in US dollars; None if no price is known."""
    find_used: Callable[[float], Use]
    """Usage after this many seconds, for callers that disconnect before `SettleUse`."""
    lost: Decimal = Decimal()
    """Possible cost of the previous target in US dollars: it was abandoned, and may still be working."""


class SettleUse(Step, frozen=True):
    """Replace the reservation with the actual usage. Done when the flow continues."""

    use: Use


RecordStep: TypeAlias = ReadRecords | WriteRecord | DeleteRecords
