"""The databases of a store, by their areas, opened for reading: `open_stores(place)`.

A place is the URL of a PostgreSQL database, or a folder with the SQLite files of a state folder, or one such file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar

import msgspec

from asides.conversations.store.conversation_names import STORE_FILE
from asides.database import Database, Queries, Query, StoreError
from asides.database.postgres_url import SCHEMA, describe_url, is_postgres_url
from asides.database.sqlite_database import carry_out
from asides.relay.vault import VAULT_FILE
from asides_gateway.gateway_database import GATEWAY_FILE

if TYPE_CHECKING:
    import sqlite3

_Result = TypeVar("_Result")

LEDGER = "ledger"
"""The area of batches, which are in a shared database too."""
FILES = {"conversations": STORE_FILE, "vault": VAULT_FILE, "gateway": GATEWAY_FILE}
"""The file of each area, in a folder."""
_TABLES = frozenset(
    "clock conversations messages page_conversations page_notes records tenants keys vault_records vault_tenants "
    "vault_keys gateway_keys gateway_spending gateway_reservations gateway_requests batches batch_rows batch_requests "
    "vendor_batches".split()
)
"""The tables that are read. Other tables are ignored."""
_PATIENCE = 60.0
"""The seconds to wait for a lock, and for an answer of a server."""
BEFORE_ALL = -(1 << 63)
"""A number below those of all rows, also of rows with odd numbers: reading all rows in order begins here."""
Areas: TypeAlias = dict[str, Database]


class Stores:
    """The databases of one place. `name` is for people, and shows no password."""

    def __init__(self, name: str, areas: Areas, files: dict[str, Path], url: str | None = None) -> None:
        self.name = name
        self.areas = areas
        """By area. PostgreSQL has one database for all of them."""
        self.files = files
        """The files, where it is SQLite."""
        self.url = url

    def close(self) -> None:
        """Close all of them."""
        for database in {id(each): each for each in self.areas.values()}.values():
            database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_stores(place: str) -> Stores:
    """Open a place for reading. Areas without a file are left out. Raises StoreError if no area has one."""
    if is_postgres_url(place):
        return _open_server(place)
    _refuse_url(place)
    files = {area: path for area, path in _list_files(place).items() if os.path.lexists(path)}
    if not files:
        named = ", ".join(FILES.values())
        raise StoreError(f"there is no store at {place}: none of {named}. Name the folder that has them.")
    for path in files.values():
        # Opening a pipe would block for ever, and a broken link would look like a missing file.
        if not path.is_file():
            raise StoreError(f"{path} is not a file, or is a broken link. Move it away, or restore the store.")
    return Stores(place, {area: ReadOnlyFile(path) for area, path in files.items()}, files)


def _open_server(url: str) -> Stores:
    from asides.database.postgres import PostgresDatabase

    database = PostgresDatabase(url, patience=_PATIENCE)
    return Stores(describe_url(url), dict.fromkeys((*FILES, LEDGER), database), {}, url)


def _refuse_url(place: str) -> None:
    """Raise StoreError for a URL with another scheme: it is a typo, not the name of a folder to create."""
    if "://" in place:
        raise StoreError(
            f"a place with {place.partition('://')[0]}:// is neither a folder nor a PostgreSQL database. Write "
            "postgresql://user@host/name, or name a folder."
        )


def _list_files(place: str) -> dict[str, Path]:
    path = Path(place).expanduser()
    if "\0" in place:
        raise StoreError("there is a NUL in the name of the store. Name another path.")
    return {_find_area(path): path} if path.is_file() else {area: path / name for area, name in FILES.items()}


def _find_area(path: Path) -> str:
    """Which area a file is of, by its tables."""
    with closing(ReadOnlyFile(path)) as file:
        tables = list_tables(file)
    for area, table in (("conversations", "conversations"), ("vault", "records"), ("vault", "vault_records")):
        if table in tables:
            return area
    if any(name.startswith("gateway") for name in tables):
        return "gateway"
    raise StoreError(f"{path} is not a store of asides. Name a folder, or one of {', '.join(FILES.values())}.")


def list_tables(database: Database) -> frozenset[str]:
    """The names of the tables of a database."""

    def work() -> Queries[frozenset[str]]:
        result = yield Query(
            "SELECT name FROM sqlite_master WHERE type = 'table'",
            postgres=f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{SCHEMA}'",  # noqa: S608
            is_alone=True,
        )
        return frozenset(row[0] for row in result.rows)

    return database.run(work, writes=False)


class ReadOnlyFile:
    """A SQLite file as a read-only `Database`: not even its journal mode or its tables change. For one thread."""

    is_shared = False
    problem = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None

    def was_down_since(self, moment: float) -> bool:  # noqa: ARG002
        """Always False: a file has no server."""
        return False

    def run(
        self,
        work: Callable[[], Queries[_Result]],
        *,
        writes: bool = False,  # noqa: ARG002
        durable: bool = True,  # noqa: ARG002
        repeatable: bool = False,  # noqa: ARG002
        patience: float | None = None,  # noqa: ARG002
    ) -> _Result:
        """Run work, which may only read."""
        import sqlite3

        try:
            if self._connection is None:
                self._connection = _connect(self.path)
            self._connection.execute("BEGIN")
            try:
                return carry_out(self._connection, work())
            finally:
                # An open read transaction would keep writers from emptying their log.
                self._connection.execute("ROLLBACK")
        except sqlite3.OperationalError as problem:
            if str(problem).startswith("no such"):
                raise StoreError(
                    f"{self.path} is not a store of asides, or it is damaged or made by another version: {problem}. "
                    "Name another one, or restore it from a backup."
                ) from None
            raise StoreError(
                f"the store {self.path} cannot be read: {problem}. Allow reading of the file and its folder."
            ) from None
        except (sqlite3.Error, UnicodeDecodeError):
            raise StoreError(
                f"{self.path} is not a database, or it is damaged. Restore it from a backup, or save what can be "
                "saved with the .recover command of sqlite3."
            ) from None

    async def run_async(
        self,
        work: Callable[[], Queries[_Result]],
        *,
        writes: bool = False,
        durable: bool = True,
        repeatable: bool = False,
        patience: float | None = None,
    ) -> _Result:
        """The same; it blocks."""
        return self.run(work, writes=writes, durable=durable, repeatable=repeatable, patience=patience)

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def close_async(self) -> None:
        """Close the file."""
        self.close()

    def __repr__(self) -> str:
        return f"ReadOnlyFile({str(self.path)!r})"


def _connect(path: Path) -> sqlite3.Connection:
    import sqlite3

    uri = path.absolute().as_uri()
    try:
        connection = sqlite3.connect(f"{uri}?mode=ro", timeout=_PATIENCE, isolation_level=None, uri=True)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        # SQLite needs a -shm file beside the database, and cannot create it in a folder without write access. Without a
        # -wal file there is no writer, so the file can be opened as immutable.
        if os.access(path.parent, os.W_OK) or path.with_name(f"{path.name}-wal").exists():
            raise
        connection = sqlite3.connect(f"{uri}?immutable=1", isolation_level=None, uri=True)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.text_factory = _read_text
    computed = "SELECT lower(name) FROM sqlite_master WHERE type = 'view' OR sql LIKE 'create virtual table%'"
    if wrong := {name for (name,) in connection.execute(computed)} & _TABLES:
        connection.close()
        # A view may compute without end.
        raise StoreError(f"{path} is not a store of asides: its {min(wrong)} is not a table. Name another one.")
    return connection


def _read_text(value: bytes) -> str | bytes:
    """A text of SQLite. One that is not UTF-8 stays bytes, and so is found as a value of a wrong type."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


class TableNames(msgspec.Struct, frozen=True):
    """The names of the vault's tables in one database: those in files are shorter."""

    records: str
    tenants: str
    keys: str


def name_vault_tables(database: Database) -> TableNames:
    """The tables of a vault."""
    if "vault_records" not in list_tables(database):
        return TableNames("records", "tenants", "keys")
    return TableNames("vault_records", "vault_tenants", "vault_keys")
