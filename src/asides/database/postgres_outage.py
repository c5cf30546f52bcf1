"""What is known about a PostgreSQL server that does not work: `Outage`. Nobody waits for it while it is out.

The first one who notices tells the log, once, and a thread asks the server until it answers again. Not here: which
errors mean that (postgres_attempts).
"""

from __future__ import annotations

import logging
import threading
import time

from asides.database import StoreUnavailable
from asides.database.postgres_deadlines import Deadlines
from asides.database.postgres_url import PostgresUrl, list_parameters

_log = logging.getLogger("asides.database")
# Whoever has no log gets the errors, and nothing on stderr beside them.
_log.addHandler(logging.NullHandler())
_PROBE_SECONDS = 2.0
_FEW_PROBES = 20
_SECONDS_BETWEEN_PROBES = (0.2, 1.0)
"""At first, and later."""

SILENT = "does not answer"
READ_ONLY = "takes no changes: it is read-only"
_REASONS = (
    ("starting up", "is starting"),
    ("recovery mode", "is starting"),
    ("shutting down", "is ending"),
    ("too many", "has no connection left"),
    ("connection slots", "has no connection left"),
    ("authentication", "refuses the user or the password"),
    ('role "', "refuses the user or the password"),
    ("no password supplied", "refuses the user or the password"),
    ("pg_hba.conf", "refuses the user or the password"),
    ('database "', "has no database of this name"),
)
_OWN_REASONS = (
    ("not support SSL", "speaks no TLS"),
    ("certificate", "shows a certificate that is not trusted"),
    ("resolve host", "is at a host that is not found"),
    ("sslmode", "cannot be asked as its URL says"),
    ("is bad: invalid", "cannot be asked as its URL says"),
)
"""What the words of the library mean. They may quote a password, so that they are not repeated."""
_TO_DO = {
    SILENT: "start it, or check its address, name, user and password",
    READ_ONLY: "make it the primary, or name the primary in the URL",
    "refuses the user or the password": "check them in the URL",
    "has no database of this name": "create it, or name another one",
    "speaks no TLS": "turn it on there, or take sslmode out of the URL",
    "shows a certificate that is not trusted": "check the host, sslmode and sslrootcert in the URL",
    "is at a host that is not found": "check the host in the URL, and write a mark in a password as a percent code, "
    "such as %40 for @",
    "cannot be asked as its URL says": "check the port, and what stands behind the ? in the URL",
    "has no connection left": "raise its max_connections, or run fewer processes",
}


class Outage:
    """Whether a server is out, since when and why. For any number of threads."""

    def __init__(self, url: PostgresUrl) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = threading.Event()
        self.problem: str | None = None
        """What it does not do, as in "the database … does not answer"; None if it works."""
        self._since = 0.0
        self.failed_at = 0.0
        """When a connection could last not be opened."""
        self._reason = SILENT
        self.stale_before = 0.0
        """Connections that were opened before are not used: what they lead to may take no changes."""

    def check(self, *, writes: bool) -> None:
        """Raise StoreUnavailable while the server is out, or takes no changes and some are to be made."""
        if self.problem is not None and (writes or self.problem != READ_ONLY):
            raise self.build_error()

    def build_error(self) -> StoreUnavailable:
        """The error of a server that is out."""
        return _build_error(self._url.name, self.problem or SILENT)

    def note_failed_connection(self, problem: Exception) -> None:
        """A connection could not be opened. Others may be open still."""
        self._reason, self.failed_at = _find_reason(problem), time.monotonic()

    def note_down(self, began: float | None = None) -> None:
        """The server does not answer. `began`: when it was first asked; what was noted since then says why."""
        self._note(self._reason if began is not None and self.failed_at >= began else SILENT)

    def note_read_only(self) -> None:
        """The server answers, and takes no changes."""
        self._note(READ_ONLY)

    def close(self) -> None:
        """Ask the server no more."""
        self._is_closed.set()

    def _note(self, problem: str) -> None:
        with self._lock:
            if self.problem is not None:
                return
            self.problem, self._since = problem, time.monotonic()
            _log.warning("%s", self.build_error())
            self._is_closed = threading.Event()
            self._thread = threading.Thread(
                target=self._probe_until_well, args=(self._is_closed,), name="asides-store-probe", daemon=True
            )
            self._thread.start()

    def _probe_until_well(self, is_closed: threading.Event) -> None:
        seconds = 0.0
        count = 0
        while not is_closed.wait(seconds):
            count += 1
            seconds = _SECONDS_BETWEEN_PROBES[count > _FEW_PROBES]
            found = self._probe()
            with self._lock:
                if is_closed.is_set():
                    break
                if found is None:
                    self.stale_before = time.monotonic() if self.problem == READ_ONLY else self.stale_before
                    self.problem = None
                    took = time.monotonic() - self._since
                    _log.warning("the database %s works again after %.1f s", self._url.name, took)
                    return
                self.problem = found
        with self._lock:
            if is_closed is self._is_closed:
                self.problem = None

    def _probe(self) -> str | None:
        import psycopg

        deadlines = Deadlines()
        try:
            with psycopg.connect(self._url.conninfo, **list_parameters(self._url, _PROBE_SECONDS)) as connection:
                with deadlines.watch(connection, time.monotonic() + _PROBE_SECONDS):
                    row = connection.execute("SELECT current_setting('transaction_read_only')").fetchone()
                return READ_ONLY if row == ("on",) else None
        except (psycopg.Error, OSError) as problem:
            return _find_reason(problem)


def explain_failure(name: str, problem: Exception) -> StoreUnavailable:
    """The error of a connection to this database that could not be opened."""
    return _build_error(name, _find_reason(problem))


def _build_error(name: str, reason: str) -> StoreUnavailable:
    return StoreUnavailable(f"the database {name} {reason}. To do: {_TO_DO.get(reason, 'wait, or look into its log')}.")


def _find_reason(problem: Exception) -> str:
    """What a server does that a connection cannot be opened to. It is told by its words alone, or by the library's."""
    _, is_told, text = str(problem).rpartition("FATAL:")
    return next((reason for mark, reason in (_REASONS if is_told else _OWN_REASONS) if mark in text), SILENT)
