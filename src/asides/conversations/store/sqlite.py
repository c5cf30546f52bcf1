"""`SqliteStore`: conversations in one SQLite file, for many threads and processes. Not here: the SQL (tables)."""

from __future__ import annotations

import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from asides.conversations.store import ConversationHeading, ConversationInfo, ConversationSnapshot, StoreError, tables
from asides.values.messages import Message
from asides.values.usage import Usage

if TYPE_CHECKING:
    import sqlite3

_Result = TypeVar("_Result")

MEMORY = ":memory:"
_IDLE_CONNECTIONS = 4
_SECONDS_BETWEEN_ATTEMPTS = (0.0005, 0.003)
_READ = "BEGIN"
# A transaction that reads and then writes fails if another one wrote in between. This kind waits before it begins.
_WRITE = "BEGIN IMMEDIATE"

# Held from the creation of a file until SQLite has opened it. On POSIX, closing any handle of a file releases all locks
# that the process has on it, including those of SQLite.
_opening = threading.Lock()


class SqliteStore:
    """A store in one file. A new file can be read by its owner only; its folder must exist.

    The file is opened when it is first needed. A change is on the disk when its method returns, even if the process is
    killed right after. `patience` is the seconds to wait for other writers. ":memory:" is a store of this process alone
    and ends with it.
    """

    def __init__(self, path: str | os.PathLike[str], *, patience: float = 30.0) -> None:
        self._memory = os.fspath(path) == MEMORY
        self._path = MEMORY if self._memory else _resolve_path(os.fspath(path))
        self._patience = patience
        self._pool = _Pool(self._path, single=self._memory)
        # A store that is never closed is closed when it is garbage-collected.
        weakref.finalize(self, self._pool.close)

    # --- writing ------------------------------------------------------------------------------------------------------

    def append(
        self,
        name: str,
        messages: Sequence[Message],
        *,
        heading: ConversationHeading | None = None,
        spent: Usage | None = None,
    ) -> ConversationInfo:
        """Add messages at the end, together and in this order, while others may be writing too."""
        return self._run(
            _WRITE,
            lambda connection: tables.append(connection, _check_name(name), messages, heading, spent, time.time()),
        )

    def replace(
        self,
        name: str,
        messages: Sequence[Message],
        *,
        expected: int,
        heading: ConversationHeading | None = None,
        spent: Usage | None = None,
    ) -> ConversationInfo:
        """Replace all messages. Raises `StoreConflict` if another process changed them."""
        return self._run(
            _WRITE,
            lambda connection: tables.replace(
                connection, _check_name(name), messages, expected, heading, spent, time.time()
            ),
        )

    def delete(self, name: str) -> bool:
        """Delete a conversation. Returns whether it was in the store."""
        deleted = self._run(_WRITE, lambda connection: tables.delete(connection, name))
        if deleted and not self._memory:
            self._empty_log()
        return deleted

    def rename(self, name: str, new: str) -> bool:
        """Give a conversation another name. Returns whether it was in the store."""
        return self._run(_WRITE, lambda connection: tables.rename(connection, name, _check_name(new)))

    # --- reading ------------------------------------------------------------------------------------------------------

    def load(self, name: str, start: int = 0) -> ConversationSnapshot | None:
        """The conversation with its messages from index `start` on; None when it is not in the store."""
        return self._run(_READ, lambda connection: tables.load(connection, name, start))

    def load_first(self, name: str) -> Message | None:
        """The first message of a conversation; None when there is none."""
        return self._run(_READ, lambda connection: tables.load_first(connection, name))

    def about(self, name: str) -> ConversationInfo | None:
        """The facts about a conversation; None when it is not in the store."""
        return self._run(_READ, lambda connection: tables.about(connection, name))

    def names(self) -> tuple[str, ...]:
        """The names of all conversations, the latest changed first."""
        return self._run(_READ, tables.names)

    # --- closing ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the file. A later call opens it again; a store in memory is lost."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"SqliteStore({self._path!r})"

    def _empty_log(self) -> None:
        """Remove deleted messages from the write-ahead log too. If others read it now, a later write removes them."""
        import sqlite3

        with suppress(sqlite3.Error), self._pool.connection() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _run(self, begin: str, work: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Run one transaction. Waits for other writers, and raises errors of SQLite as StoreError."""
        import sqlite3

        deadline = time.monotonic() + self._patience
        while True:
            try:
                with self._pool.connection() as connection, _transaction(connection, begin):
                    return work(connection)
            except sqlite3.Error as problem:
                if not _is_busy(problem) or time.monotonic() >= deadline:
                    raise _to_store_error(problem, self._path, self._patience) from None
            except UnicodeEncodeError:
                raise StoreError(
                    "the store cannot take half a character (a lone surrogate). To do: look for one in the name, the "
                    "model and the system prompt of the conversation."
                ) from None
            except UnicodeDecodeError:
                raise _build_damage_error(self._path) from None
            # SQLite itself would wait longer each time, and a busy writer leaves only short gaps.
            time.sleep(random.uniform(*_SECONDS_BETWEEN_ATTEMPTS))


def _resolve_path(path: str) -> str:
    if "\0" in path:
        raise _build_path_error(path, "there is a NUL in it")
    try:
        return str(Path(path).expanduser().absolute())
    except RuntimeError:  # "~name" of an unknown user.
        raise _build_path_error(path, "there is no such home folder") from None


def _build_path_error(path: str, reason: str) -> StoreError:
    return StoreError(f"there cannot be a store at {path!r}: {reason}. To do: name another path.")


def _check_name(name: str) -> str:
    if not name.strip():
        raise StoreError("a stored conversation needs a name. To do: pass one that is not blank.")
    return name


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

    def __init__(self, path: str, *, single: bool) -> None:
        self._path = path
        # A store in memory has only one connection.
        self._single = threading.Lock() if single else None
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._process = os.getpid()
        self._inherited: list[sqlite3.Connection] = []

    @contextmanager
    def connection(self) -> Generator[sqlite3.Connection, None, None]:
        """A connection for use inside the block."""
        import sqlite3

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
                    self._give_back(connection)
                raise
            except BaseException:
                self._give_back(connection)
                raise
            self._give_back(connection)
        finally:
            if self._single is not None:
                self._single.release()

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            self._abandon_inherited()
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> sqlite3.Connection:
        with self._lock:
            self._abandon_inherited()
            if self._idle:
                return self._idle.pop()
        return _open(self._path)

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            if self._process == os.getpid() and len(self._idle) < _IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()

    def _abandon_inherited(self) -> None:
        """Abandon connections after a fork: they belong to the parent process and must not be used or closed here."""
        if self._process != os.getpid():
            self._inherited += self._idle
            self._idle = []
            self._process = os.getpid()


def _open(path: str) -> sqlite3.Connection:
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
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        # Overwrite what is deleted; not every SQLite is built to do so by default.
        connection.execute("PRAGMA secure_delete = ON")
        # In a transaction, since another process may be creating the tables.
        with _transaction(connection, _READ):
            has_tables = tables.has_tables(connection, path)
        if not has_tables:
            with _transaction(connection, _WRITE):
                # Another process may have created them while this one waited.
                if not tables.has_tables(connection, path):
                    tables.create(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _create_file(path: Path) -> None:
    """Create the file so that only its owner may read it: seals are private, and so is thinking. Where there is a link,
    this is the file that it points to.
    """
    if not path.parent.is_dir():
        raise StoreError(f"the folder of the store {path} does not exist. To do: create it, or name another place.")
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
                f"the store {path} was busy with other writers for {patience:g} seconds. To do: try again, or raise "
                "patience="
            )
        case sqlite3.SQLITE_CANTOPEN if Path(path).is_dir():
            text = f"the store {path} is a folder. To do: name a file"
        case sqlite3.SQLITE_CANTOPEN:
            text = (
                f"the store {path} cannot be opened. To do: allow reading and writing of the file and its folder, or "
                "name another place"
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            text = (
                f"the store {path} cannot be written to. To do: allow writing to the file and to its folder, or name "
                "another place"
            )
        case sqlite3.SQLITE_NOTADB:
            text = f"{path} is not a database. To do: use another file, or move this one away"
        case sqlite3.SQLITE_CORRUPT:
            return _build_damage_error(path)
        case sqlite3.SQLITE_FULL:
            text = f"there is no room left on the disk of the store {path}. To do: make some; nothing was lost"
        case _:
            text = f"the store {path} failed: {problem}. To do: check the disk and the file"
    return StoreError(f"{text}.")


def _build_damage_error(path: str) -> StoreError:
    return StoreError(
        f"the store {path} is damaged. To do: restore it from a backup, or move it away and save what can be saved "
        "with the .recover command of sqlite3."
    )
