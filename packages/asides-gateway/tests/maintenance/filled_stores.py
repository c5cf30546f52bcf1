"""Stores with something in them. Not a test."""

from __future__ import annotations

from contextlib import closing
from decimal import Decimal
from pathlib import Path

from asides.database import Queries, Query
from asides.database.postgres import PostgresDatabase
from asides.relay.steps import StoredRecord
from asides.relay.vault.postgres_vault import PostgresVault
from asides.relay.vault.sqlite_vault import SqliteVault
from asides.values.messages import Message, user
from asides.values.parts import Text
from asides.values.thinking import Seal, Thought
from asides.values.usage import Usage
from asides_gateway.access import KeyLimits, KeyRecord
from asides_gateway.access.key_store import insert_key
from asides_gateway.gateway_database import open_database
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.page_store import PageStore
from asides_gateway.page_tables import PageSettings


def answer(text: str) -> Message:
    """A turn of a model, with thinking and its seal."""
    return Message("assistant", (Thought(f"about {text}", seals=(Seal("signature", f"seal-{text}"),)), Text(text)))


def fill_conversations(place: Path | str, count: int, start: int = 0) -> list[str]:
    """Conversations of a page, of one turn each, with a note, in a folder or a PostgreSQL. Returns their names."""
    names: list[str] = []
    with PageStore(place if isinstance(place, Path) else PostgresDatabase(place)) as store:
        for number in range(start, start + count):
            made = store.create(f"tenant {number % 3}", PageSettings(title=f"Title {number}", thinking="high"))
            store.append(made.name, [user(f"question {number}"), answer(f"é {number}")], spent=Usage(input=number + 1))
            store.write_notes(made, {1: b'{"model":"stage:m"}'})
            names.append(made.name)
    return names


def fill_vault(place: Path | str, count: int, start: int = 0, size: int = 300) -> None:
    """Records of several tenants, with two keys each."""
    if isinstance(place, Path):
        place.mkdir(exist_ok=True)
    vault = SqliteVault(place / "vault.db") if isinstance(place, Path) else PostgresVault(PostgresDatabase(place))
    with closing(vault):
        for number in range(start, start + count):
            keys = (f"call:{number}", f"text:{number}")
            vault.write(f"tenant {number % 3}", StoredRecord(f"record-{number}", keys, bytes([number % 256]) * size))


def fill_gateway(place: Path | str, spent: int = 5, revoked: float | None = None) -> KeyRecord:
    """A key, with what it spent on a day."""
    given = GatewaySettings(folder=place) if isinstance(place, Path) else GatewaySettings(store=place)
    database = open_database(given)
    limits = KeyLimits(rpm=60, budget_month=Decimal("2.5"), models=("anthropic:*",))
    record = KeyRecord(
        id="k2345678", digest=b"\x00\xff" * 16, name="build", limits=limits, created=1.5, revoked=revoked
    )

    def work() -> Queries[None]:
        yield Query("DELETE FROM gateway_keys")
        yield from insert_key(record)
        yield Query(
            "INSERT INTO gateway_spending (key, day, spent, requests) VALUES (?, ?, ?, ?)",
            (record.id, "2026-11-16", spent, 1),
        )

    database.run(work)
    database.close()
    return record
