"""A record of a store that keeps what a relay must find again: opaque bytes under opaque keys.

Not here: what the bytes hold (relay/state/vault_records), and the stores themselves (relay/vault).
"""

from __future__ import annotations

import msgspec


class StoredRecord(msgspec.Struct, frozen=True):
    """One immutable record. The store reads neither its keys nor its payload."""

    id: str
    """Unlike that of any other record."""
    keys: tuple[str, ...]
    """The keys under which it is found. Two records may share one."""
    payload: bytes

    def __repr__(self) -> str:
        return f"StoredRecord({len(self.keys)} keys, <{len(self.payload)} bytes>)"
