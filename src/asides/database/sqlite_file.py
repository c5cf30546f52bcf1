"""`SqliteFile`: one SQLite file for many threads and processes: its connections, transactions and errors."""

from __future__ import annotations

import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from asides.database import StoreError
from asides.values.fork_guard import ForkGuard, call_in_children

if TYPE_CHECKING:
    import sqlite3

_Result = TypeVar("_Result")
_FileId: TypeAlias = tuple[int, int] | None
"""Identifies a file; None: it does not exist."""

MEMORY = ":memory:"
_IDLE_CONNECTIONS = 4
_SECONDS_BETWEEN_ATTEMPTS = (0.0005, 0.003)
READ = "BEGIN"
# A transaction that reads and then writes fails if another one wrote in between. This kind waits before it begins.
WRITE = "BEGIN IMMEDIATE"

# Held from the creation of a file until SQLite has opened it. On POSIX, closing any handle of a file releases all locks
# that the process has on it, including those of SQLite.
_opening = threading.Lock()


class SqliteFile:
    """A file, opened when it is first needed. A new file can be read by its owner only; its folder must exist.

    `has_tables` says whether the tables exist, and raises StoreError for a file of another kind; `create` creates them.
    `patience` is the seconds to wait for other writers. `synchronous`: FULL survives a loss of power, NORMAL the end of
    the process. ":memory:" is a database of this process alone and ends with it. `is_watched`: raise when the file was
    deleted or replaced while it was open, since later writes would be lost.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        has_tables: Callable[[sqlite3.Connection, str], bool],
        create: Callable[[sqlite3.Connection], None],
        *,
        patience: float,
        synchronous: Literal["FULL", "NORMAL"] = "FULL",
        is_watched: bool = False,
    ) -> None:
        self.is_memory = os.fspath(path) == MEMORY
        self.path = MEMORY if self.is_memory else _resolve_path(os.fspath(path))
        self._patience = patience
        opened: list[_FileId] = []
        """The file that is open, where it is watched."""

        def connect() -> sqlite3.Connection:
            connection = _open(resolved, has_tables, create, synchronous)
            if is_watched and not opened:
                opened.append(_identify(resolved))
            return connection

        resolved = self.path
        self._opened = opened
        self._pool = _Pool(connect, single=self.is_memory)
        # A file that is never closed is closed when this is garbage-collected.
        weakref.finalize(self, self._pool.close)

    def transact(self, begin: str, work: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Run one transaction. Waits for other writers, and raises errors of SQLite as StoreError."""
        import sqlite3

        deadline = time.monotonic() + self._patience
        if begin == WRITE and self._opened and _identify(self.path) != self._opened[0]:
            raise StoreError(
                f"the store {self.path} was deleted, moved or replaced while it was in use. Put it back, or "
                "begin again with another one."
            )
        while True:
            try:
                with self._pool.connection() as connection, _transaction(connection, begin):
                    return work(connection)
            except sqlite3.Error as problem:
                if not _is_busy(problem) or time.monotonic() >= deadline:
                    raise _to_store_error(problem, self.path, self._patience) from None
            except UnicodeEncodeError:
                raise StoreError(
                    "the store cannot take a lone surrogate (half a character). Look for one in the name, the "
                    "model and the system prompt of the conversation."
                ) from None
            except OverflowError:
                raise StoreError(
                    "the store cannot take a whole number above 64 bits. Look for one in what is stored."
                ) from None
            except UnicodeDecodeError:
                raise _build_damage_error(self.path) from None
            # SQLite's own busy handler waits longer each time, and would miss the short gaps of a busy writer.
            time.sleep(random.uniform(*_SECONDS_BETWEEN_ATTEMPTS))

    def empty_log(self) -> None:
        """Remove what was deleted from the write-ahead log too. If others read it now, a later write removes it."""
        import sqlite3

        if not self.is_memory:
            with suppress(sqlite3.Error), self._pool.connection() as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Close the file. A later call opens it again; a database in memory is lost."""
        self._pool.close()
        self._opened.clear()


def _identify(path: str) -> _FileId:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _resolve_path(path: str) -> str:
    if "\0" in path:
        raise _build_path_error(path, "there is a NUL in it")
    try:
        return str(Path(path).expanduser().absolute())
    except RuntimeError:  # "~name" of an unknown user.
        raise _build_path_error(path, "there is no such home folder") from None


def _build_path_error(path: str, reason: str) -> StoreError:
    return StoreError(f"cannot create a store at {path!r}: {reason}. Name another path.")


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Generator[None, None, None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # Also on Ctrl-C.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


class _Pool:
    """Connections, each used by one thread at a time; a few stay open for later use."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], *, single: bool) -> None:
        self._connect = connect
        # A store in memory has only one connection.
        self._single = threading.Lock() if single else None
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._inherited: list[sqlite3.Connection] = []
        call_in_children(self._abandon_inherited)

    @contextmanager
    def connection(self) -> Generator[sqlite3.Connection, None, None]:
        """A connection for use inside the block."""
        import sqlite3

        forks = ForkGuard()
        if self._single is not None:
            self._single.acquire()
        try:
            connection = self._take()
            try:
                yield connection
            except sqlite3.Error as problem:
                # Its state is unknown, so it is closed; but a store in memory has no other connection.
                if self._single is None and not _is_busy(problem):
                    connection.close()
                else:
                    self._give_back(connection, forks)
                raise
            except BaseException:
                self._give_back(connection, forks)
                raise
            self._give_back(connection, forks)
        finally:
            if self._single is not None:
                self._single.release()

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> sqlite3.Connection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def _give_back(self, connection: sqlite3.Connection, forks: ForkGuard) -> None:
        with self._lock:
            if forks.is_in_child:
                self._inherited.append(connection)
                return
            if len(self._idle) < _IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()

    def _abandon_inherited(self) -> None:
        """Abandon connections after a fork: they belong to the parent process and must not be used or closed here."""
        self._lock = threading.Lock()
        self._inherited += self._idle
        self._idle = []


def _open(
    path: str,
    has_tables: Callable[[sqlite3.Connection, str], bool],
    create: Callable[[sqlite3.Connection], None],
    synchronous: str,
) -> sqlite3.Connection:
    import sqlite3

    with _opening:
        place = MEMORY
        if path != MEMORY:
            _create_file(Path(path))
            # SQLite opens the file and never creates it: it would let others read it.
            place = f"{Path(path).as_uri()}?mode=rw"
        # This module begins and ends the transactions; the pool takes care of threads.
        connection = sqlite3.connect(place, timeout=0, isolation_level=None, check_same_thread=False, uri=True)
    try:
        if path != MEMORY:
            # With a write-ahead log readers do not wait for writers, and a commit is one append.
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("PRAGMA foreign_keys = ON")
        # Overwrite what is deleted; not every SQLite is built to do so by default.
        connection.execute("PRAGMA secure_delete = ON")
        # In a transaction, since another process may be creating the tables.
        with _transaction(connection, READ):
            is_ready = has_tables(connection, path)
        if not is_ready:
            with _transaction(connection, WRITE):
                # Another process may have created them while this one waited.
                if not has_tables(connection, path):
                    create(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _create_file(path: Path) -> None:
    """Create the file so that only its owner may read it: seals are private, and so is thinking. Where there is a link,
    this is the file that it points to.
    """
    if not path.parent.is_dir():
        raise StoreError(f"the folder of the store {path} does not exist. Create it, or name another place.")
    with suppress(OSError):  # The file exists, or SQLite will report the problem.
        os.close(os.open(os.path.realpath(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


# --- errors: their texts name the file, and never its content -------------------------------------------------------


def _is_busy(problem: sqlite3.Error) -> bool:
    """Whether others are writing, so that a later attempt may succeed."""
    import sqlite3

    return (getattr(problem, "sqlite_errorcode", None) or 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _to_store_error(problem: sqlite3.Error, path: str, patience: float) -> StoreError:
    import sqlite3

    code = getattr(problem, "sqlite_errorcode", None)
    match None if code is None else code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            text = (
                f"the store {path} was busy with other writers for {patience:g} seconds. Try again, or raise patience="
            )
        case sqlite3.SQLITE_CANTOPEN if Path(path).is_dir():
            text = f"the store {path} is a folder. Name a file"
        case sqlite3.SQLITE_CANTOPEN:
            text = (
                f"the store {path} cannot be opened. Allow reading and writing of the file and its folder, or "
                "name another place"
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            text = (
                f"the store {path} cannot be written to. Allow writing to the file, to its folder, and to the "
                "files beside it that end with -wal and -shm; or name another place"
            )
        case sqlite3.SQLITE_NOTADB:
            text = f"{path} is not a database. Use another file, or move this one away"
        case sqlite3.SQLITE_CORRUPT:
            return _build_damage_error(path)
        case sqlite3.SQLITE_FULL:
            text = f"there is no room left on the disk of the store {path}. Free some space; stored data is safe"
        case _:
            text = f"the store {path} failed: {problem}. Check the disk and the file"
    return StoreError(f"{text}.")


def _build_damage_error(path: str) -> StoreError:
    return StoreError(
        f"the store {path} is damaged. Restore it from a backup, or move it away and save what can be saved "
        "with the .recover command of sqlite3."
    )
