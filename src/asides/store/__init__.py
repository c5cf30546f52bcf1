"""Where conversations are kept: what any store promises, and the one that comes along, in SQLite.

Not here: what a conversation is while it goes on (conversation), and what of thinking may be kept (history).
"""

from __future__ import annotations

from asides.store.sqlite import SqliteStore
from asides.store.store import About, Heading, Kept, Store, StoreConflict, StoreError

__all__ = ["About", "Heading", "Kept", "SqliteStore", "Store", "StoreConflict", "StoreError"]
