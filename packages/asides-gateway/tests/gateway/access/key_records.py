"""Keys for tests: `add_key(database, …)`, and databases of both engines by their place. Not a test."""

from __future__ import annotations

import time
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from asides.database import Database
from asides_gateway.access import KeyLimits, KeyRecord
from asides_gateway.access.key_store import insert_key, make_key
from asides_gateway.gateway_database import open_database
from asides_gateway.gateway_settings import GatewaySettings


class AddedKey(NamedTuple):
    """A key, and what is kept of it."""

    key: str
    record: KeyRecord


def open_place(place: str) -> Database:
    """The database of a gateway at a URL, or in a folder."""
    if "://" in place:
        return open_database(GatewaySettings(store=place))
    return open_database(GatewaySettings(folder=Path(place)))


def build_record(
    name: str = "test", *, tenant: str = "", expires: float | None = None, created: float | None = None, **limits: Any
) -> AddedKey:
    """A key that is nowhere yet. `limits`: those of KeyLimits; budgets may be texts."""
    made = make_key()
    budgets: dict[str, Any] = {key: Decimal(value) for key, value in limits.items() if key.startswith("budget")}
    record = KeyRecord(
        id=made.id,
        digest=made.digest,
        name=name,
        tenant=tenant,
        limits=KeyLimits(**{**limits, **budgets}),
        created=time.time() if created is None else created,
        expires=expires,
    )
    return AddedKey(made.key, record)


def add_key(database: Database, name: str = "test", **more: Any) -> AddedKey:
    """A key of the database."""
    added = build_record(name, **more)
    database.run(lambda: insert_key(added.record))
    return added
