"""The vault: the records of a relay in memory, SQLite and PostgreSQL, and how the state of a relay is set up."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from asides.relay.steps import StoredRecord

VAULT_FILE = "vault.db"
"""The file of the records, in the folder of a gateway."""
_DAY = 24 * 60 * 60.0


class VaultLimits(msgspec.Struct, frozen=True):
    """How long and how much a vault keeps. A tenant that exceeds a limit loses its least recently used records."""

    seconds: float = 7 * _DAY
    """How long a record is kept after it was last used."""
    records: int = 20_000
    """How many records a tenant may have."""
    size: int = 64 * 1024 * 1024
    """How many bytes the records of a tenant may have."""


def measure_record(record: StoredRecord) -> int:
    """The size of a record in bytes, as limits count it."""
    return len(record.payload) + len(record.id) + sum(map(len, record.keys))


_SHORTEST_AGE, _LONGEST_AGE = 0.05, 60 * 60.0
"""The age in seconds of a record that can be replaced. The reply of a younger one may have been delivered: confirming
it may take so long. A client that was cut off asks again within the longest age."""


class TimeSpan(NamedTuple):
    """A span of time, in seconds since 1970."""

    start: float
    end: float


def find_replaced_span(record: StoredRecord, now: float) -> TimeSpan:
    """The span in which a pending record must have been written so that this record replaces it.

    It ends when the request of this record came: a client asks again only after it was cut off, and requests that run
    at the same time are of two clients.
    """
    return TimeSpan(now - _LONGEST_AGE, now - max(_SHORTEST_AGE, record.asked_ago))
