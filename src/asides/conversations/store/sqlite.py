"""Conversations in one SQLite file, for many threads and processes at a time. Not here: what the rows hold (rows)."""

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

from asides.conversations.store import tables
from asides.conversations.store.protocol import ConversationHeading, ConversationInfo, ConversationSnapshot, StoreError
from asides.conversations.store.store_errors import (
    as_store_error,
    damaged,
    impossible_path,
    is_busy,
    missing_folder,
    unwritable,
)
from asides.values.messages import Message
from asides.values.usage import Usage

if TYPE_CHECKING:
    import sqlite3

_Done = TypeVar("_Done")

MEMORY = ":memory:"
_IDLE_CONNECTIONS = 4
_BETWEEN_LOOKS = (0.0005, 0.003)
_READ = "BEGIN"
# Who reads first and writes then would have to give up when somebody else wrote in between.
_WRITE = "BEGIN IMMEDIATE"

# Between the making of a file and its opening nobody else of this process may open it: closing any handle of a file
# gives up the locks that the whole process has on it (POSIX), SQLite's own among them.
_opening = threading.Lock()


class SqliteStore:
    """A store in one file, which only its owner may read when it is made here. The folder has to be there.

    Nothing is opened before it is needed. A change is on the disk when its method returns, also when the process is
    killed at the next moment. `patience` is how many seconds to wait for others that are writing. ":memory:" is a store
    of this process alone, gone with it.
    """

    def __init__(self, path: str | os.PathLike[str], *, patience: float = 30.0) -> None:
        self._memory = os.fspath(path) == MEMORY
        self._path = MEMORY if self._memory else _absolute(os.fspath(path))
        self._patience = patience
        self._pool = _Pool(self._path, alone=self._memory)
        # What is let go of without `close` is closed all the same, and quietly.
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
        """Put messages behind those that are there, together and in this order, whoever else is writing."""
        return self._do(
            _WRITE, lambda connection: tables.append(connection, _checked(name), messages, heading, spent, time.time())
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
        """Put these messages in the place of all that are there, or raise `StoreConflict` if somebody was faster."""
        return self._do(
            _WRITE,
            lambda connection: tables.replace(
                connection, _checked(name), messages, expected, heading, spent, time.time()
            ),
        )

    def delete(self, name: str) -> bool:
        """Forget a conversation; False when there was none."""
        gone = self._do(_WRITE, lambda connection: tables.delete(connection, name))
        if gone and not self._memory:
            self._empty_log()
        return gone

    # --- reading ------------------------------------------------------------------------------------------------------

    def load(self, name: str, start: int = 0) -> ConversationSnapshot | None:
        """The conversation at this moment, its messages from the place `start` on; None when there is none."""
        return self._do(_READ, lambda connection: tables.load(connection, name, start))

    def about(self, name: str) -> ConversationInfo | None:
        """What is known of it; None when it is not there."""
        return self._do(_READ, lambda connection: tables.about(connection, name))

    def names(self) -> tuple[str, ...]:
        """All conversations, the one that was changed last first."""
        return self._do(_READ, tables.names)

    # --- its life -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the file. The store may still be used, and opens it again; one in memory is gone."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"SqliteStore({self._path!r})"

    def _empty_log(self) -> None:
        """What is forgotten is still in the write-ahead log. Where others are reading it goes with a later write."""
        import sqlite3

        with suppress(sqlite3.Error), self._pool.connection() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _do(self, begin: str, work: Callable[[sqlite3.Connection], _Done]) -> _Done:
        """One step, whole or not at all. Others are waited for; what SQLite says is raised in our words."""
        import sqlite3

        deadline = time.monotonic() + self._patience
        while True:
            try:
                with self._pool.connection() as connection, _transaction(connection, begin):
                    return work(connection)
            except sqlite3.Error as problem:
                if not is_busy(problem) or time.monotonic() >= deadline:
                    raise as_store_error(problem, self._path, self._patience) from None
            except UnicodeEncodeError:
                raise unwritable() from None
            except UnicodeDecodeError:
                raise damaged(self._path) from None
            # SQLite itself would look ever more seldom, and a busy neighbour leaves only short gaps.
            time.sleep(random.uniform(*_BETWEEN_LOOKS))


def _absolute(path: str) -> str:
    if "\0" in path:
        raise impossible_path(path, "there is a NUL in it")
    try:
        return str(Path(path).expanduser().absolute())
    except RuntimeError:  # "~somebody", and there is no such user.
        raise impossible_path(path, "there is no such home folder") from None


def _checked(name: str) -> str:
    if not name.strip():
        raise StoreError("a conversation is kept under a name. To do: give one that is not blank.")
    return name


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Generator[None, None, None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # Not only errors: a Ctrl-C in the middle leaves nothing behind either.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


class _Pool:
    """Connections, each used by one thread at a time; a few are kept for the next."""

    def __init__(self, path: str, *, alone: bool) -> None:
        self._path = path
        self._alone = threading.Lock() if alone else None
        self._lock = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._process = os.getpid()
        self._inherited: list[sqlite3.Connection] = []

    @contextmanager
    def connection(self) -> Generator[sqlite3.Connection, None, None]:
        """A connection for the length of the block."""
        import sqlite3

        if self._alone is not None:
            self._alone.acquire()
        try:
            connection = self._take()
            try:
                yield connection
            except sqlite3.Error as problem:
                # Who knows what state it is in; but a store in memory is its only connection.
                if self._alone is None and not is_busy(problem):
                    connection.close()
                else:
                    self._give_back(connection)
                raise
            except BaseException:
                self._give_back(connection)
                raise
            self._give_back(connection)
        finally:
            if self._alone is not None:
                self._alone.release()

    def close(self) -> None:
        """Close what is kept."""
        with self._lock:
            self._leave_parents_alone()
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self) -> sqlite3.Connection:
        with self._lock:
            self._leave_parents_alone()
            if self._idle:
                return self._idle.pop()
        return _open(self._path)

    def _give_back(self, connection: sqlite3.Connection) -> None:
        with self._lock:
            if self._process == os.getpid() and len(self._idle) < _IDLE_CONNECTIONS:
                self._idle.append(connection)
                return
        connection.close()

    def _leave_parents_alone(self) -> None:
        """After a fork: the connections are the parent's, and neither use nor closing of them is safe here."""
        if self._process != os.getpid():
            self._inherited += self._idle
            self._idle = []
            self._process = os.getpid()


def _open(path: str) -> sqlite3.Connection:
    import sqlite3

    with _opening:
        if path != MEMORY:
            _make(Path(path))
        # Transactions are begun and ended here, not guessed by the library; the pool sees to the threads.
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        if path != MEMORY:
            # A write-ahead log: readers do not wait for writers, and a commit is one append to it.
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        # What is forgotten is overwritten; not every SQLite is built to do so by itself.
        connection.execute("PRAGMA secure_delete = ON")
        # Looked at in one transaction: between two looks another one may be making them.
        with _transaction(connection, _READ):
            there = tables.are_there(connection, path)
        if not there:
            with _transaction(connection, _WRITE):
                # Asked again: another process may have made them while this one waited.
                if not tables.are_there(connection, path):
                    tables.make(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _make(path: Path) -> None:
    """The file, for its owner's eyes alone: seals are private, and thinking is where it is kept."""
    if not path.parent.is_dir():
        raise missing_folder(path)
    with suppress(OSError):  # There already, or for SQLite to complain about.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
