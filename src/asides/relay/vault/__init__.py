"""The vault: stores of the records of a relay, in memory and in SQLite, and how a relay's state is set up.

Not here: what is in a record, and how it is encrypted (vault_records).
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from asides.flows.steps import StoredRecord

VAULT_FILE = "vault.db"
"""The file of the records, in the folder of a gateway."""
_DAY = 24 * 60 * 60.0


class VaultLimits(msgspec.Struct, frozen=True):
    """How long and how much a vault keeps. Of a tenant with more, the records that were not used for longest go."""

    seconds: float = 7 * _DAY
    """How long a record is kept after it was last used."""
    records: int = 20_000
    """How many records a tenant may have."""
    size: int = 64 * 1024 * 1024
    """How many bytes the records of a tenant may have."""


_SOONEST, _LATEST = 0.05, 60 * 60.0
"""Seconds. The news that a reply was delivered may be this late; and who was cut off asks again within this time."""


class WrittenBetween(NamedTuple):
    """A span of time."""

    start: float
    end: float


def find_replaced_span(record: StoredRecord, now: float) -> WrittenBetween:
    """When a pending record must have been written for this one to take its place: before the request of this one came,
    since a client asks again only after it was cut off. Requests that run at the same time are of two clients.
    """
    return WrittenBetween(now - _LATEST, now - max(_SOONEST, record.asked_ago))
