"""Vaults of each kind, for tests of what a relay keeps in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from asides.database.postgres import PostgresDatabase
from asides.relay.vault.memory_vault import MemoryVault
from asides.relay.vault.postgres_vault import PostgresVault
from asides.relay.vault.sqlite_vault import SqliteVault


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def vault(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryVault | SqliteVault | PostgresVault]:
    """An empty vault: in memory, in a file, on a server."""
    made: MemoryVault | SqliteVault | PostgresVault
    if request.param == "memory":
        made = MemoryVault()
    elif request.param == "sqlite":
        made = SqliteVault(tmp_path / "vault.db")
    else:
        made = PostgresVault(PostgresDatabase(request.getfixturevalue("postgres_url")))
    yield made
    made.close()
