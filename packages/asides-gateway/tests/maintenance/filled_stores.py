"""Stores with something in them. Not a test."""

from __future__ import annotations

from pathlib import Path

from asides.database import Queries, Query
from asides.relay.steps import StoredRecord
from asides.relay.vault.sqlite_vault import SqliteVault
from asides.values.messages import Message, user
from asides.values.parts import Text
from asides.values.thinking import Seal, Thought
from asides_gateway.gateway_database import open_database
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.maintenance.copy_report import CopyReport
from asides_gateway.maintenance.copy_stores import copy_stores
from asides_gateway.maintenance.open_stores import open_stores, open_target
from asides_gateway.page_store import PageStore
from asides_gateway.page_tables import PageSettings


def answer(text: str) -> Message:
    """A turn of a model, with thinking and its seal."""
    return Message("assistant", (Thought(f"about {text}", seals=(Seal("signature", f"seal-{text}"),)), Text(text)))


def fill_conversations(folder: Path, count: int, start: int = 0) -> list[str]:
    """Conversations of a page, of one turn each, with a note. Returns their names."""
    names: list[str] = []
    with PageStore(folder) as store:
        for number in range(start, start + count):
            made = store.create(f"tenant {number % 3}", PageSettings(title=f"Title {number}"))
            store.append(made.name, [user(f"question {number}"), answer(f"é {number}")])
            store.write_notes(made, {1: b"a note"})
            names.append(made.name)
    return names


def fill_vault(folder: Path, count: int, start: int = 0, size: int = 300) -> None:
    """Records of several tenants, with two keys each."""
    folder.mkdir(exist_ok=True)
    with SqliteVault(folder / "vault.db") as vault:
        for number in range(start, start + count):
            keys = (f"call:{number}", f"text:{number}")
            vault.write(f"tenant {number % 3}", StoredRecord(f"record-{number}", keys, bytes([number % 256]) * size))


def fill_gateway(folder: Path, spent: int = 5, revoked: float | None = None) -> None:
    """A key, with what it spent on a day."""
    database = open_database(GatewaySettings(folder=folder))

    def work() -> Queries[None]:
        yield Query(
            "INSERT INTO gateway_keys (id, digest, name, tenant, models, created, revoked) VALUES "
            "(?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET revoked = excluded.revoked",
            ("k1", b"\x00\xff" * 16, "build", "", "[]", 1.5, revoked),
        )
        yield Query(
            "INSERT INTO gateway_spending (key, day, spent, requests) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (key, day) DO UPDATE SET spent = excluded.spent",
            ("k1", "2026-11-16", spent, 1),
        )

    database.run(work)
    database.close()


def copy(source: str | Path, target: str | Path, *, replace: bool = False) -> dict[str, CopyReport]:
    """Copy a store; the reports by area."""
    with open_stores(str(source)) as from_, open_target(str(target)) as to:
        return {report.area: report for report in copy_stores(from_, to, lambda *_: None, replace=replace)}
