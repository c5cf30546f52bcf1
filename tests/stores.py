"""Stores for tests that hold for every engine: `open_place(place)`. Not a test.

A place is the path of an SQLite file, ":memory:", or the URL of a PostgreSQL database: see the fixture `store_place`.
"""

from __future__ import annotations

import os
from pathlib import Path

from asides.conversations.store.database_store import DatabaseStore
from asides.conversations.store.postgres_store import PostgresStore
from asides.conversations.store.sqlite import SqliteStore
from asides.database import Database
from asides.database.migrate import MigratedPostgres
from asides_gateway.page_store import PageStore


def is_server(place: str) -> bool:
    """Whether a place is a database of PostgreSQL."""
    return "://" in place


def open_place(place: str, *, patience: float = 30.0) -> DatabaseStore:
    """The store of conversations at a place."""
    return (PostgresStore if is_server(place) else SqliteStore)(place, patience=patience)


def open_page_place(place: str) -> PageStore:
    """The store of the page at a place. The file has the name that every store of a folder has."""
    if is_server(place):
        return PageStore(MigratedPostgres(place))
    return PageStore(None if place == ":memory:" else Path(place).parent)


def get_database(store: DatabaseStore) -> Database:
    """The database of a store, for tests that look into it."""
    return store._database


def list_import_folders() -> str:
    """The folders for PYTHONPATH of a process that imports asides and the tests."""
    import asides

    root = Path(__file__).parent.parent
    # The tests of a package are in `tests` too, in its own folder.
    folders = (Path(asides.__file__).parent.parent, root, *sorted((root / "packages").glob("asides-*")))
    return os.pathsep.join(map(str, folders))
