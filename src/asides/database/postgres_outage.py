"""`Outage`: whether a PostgreSQL server is down, and why. While it is, calls fail immediately.

An outage is logged once, and a thread probes the server until it answers again, or its database object is closed or
garbage-collected.
"""

from __future__ import annotations

import logging
import math
import re
import threading
import time
import weakref

from asides.database import StoreUnavailable
from asides.database.postgres_deadlines import Deadlines
from asides.database.postgres_url import PostgresUrl, build_parameters
from asides.values.notices import escape_controls

_log = logging.getLogger("asides.database")
# Without this, Python prints warnings to stderr in programs that set up no logging.
_log.addHandler(logging.NullHandler())
_FATAL = re.compile(r"FATAL:\s+(.+)")
_PROBE_SECONDS = 2.0
_FEW_PROBES = 20
_SECONDS_BETWEEN_PROBES = (0.2, 1.0)
"""At first, and later."""

SILENT = "does not answer"
HUNG = "takes connections and does not answer on them"
READ_ONLY = "takes no changes: it is read-only"
FULL = "has no connection left"
_FULL_MARKS = ("too many", "connection slots", "no more connections allowed", "query_wait_timeout")
"""Parts of what servers and PgBouncer say when they have no connection left."""
_ADVICE = {
    SILENT: "Start it, or check its address, name, user and password",
    HUNG: "Look for what keeps it busy; a pooler before it may have no connection left, and needs a larger pool",
    READ_ONLY: "Make it the primary, or name the primary in the URL, or all servers with "
    "target_session_attrs=read-write",
    FULL: "Raise its max_connections, or the limits of the pooler before it, or run fewer processes",
}
_USUAL_ADVICE = "Check that server, and the URL of the store"
_QUOTED = re.compile(r"""(["'])(.*?)\1""")
_MAX_WORDS = 300


class Outage:
    """Whether a server is down, since when and why. For any number of threads."""

    def __init__(self, url: PostgresUrl) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._is_closed = threading.Event()
        self.problem: str | None = None
        """What is wrong, as in "the database … does not answer"; None if the server works."""
        self._since = 0.0
        self.failed_at = 0.0
        """When opening a connection last failed."""
        self._ended_at = -math.inf
        """When the last outage ended."""
        self._opened_at = 0.0
        self._reason = SILENT
        self.stale_before = 0.0
        """Connections that were opened before this time are not used: they may lead to a read-only server."""

    def was_down_since(self, moment: float) -> bool:
        """Whether the server is down, or was at some time after `moment`."""
        return self.problem is not None or self._ended_at >= moment

    def check(self, *, writes: bool) -> None:
        """Raise StoreUnavailable while the server is down, or, for work that writes, while it is read-only."""
        if self.problem is not None and (writes or self.problem != READ_ONLY):
            raise self.build_error()

    def build_error(self) -> StoreUnavailable:
        """The error of a server that is down."""
        return _build_error(self._url.name, self.problem or SILENT)

    def note_failed_connection(self, problem: Exception) -> None:
        """Note that a connection could not be opened. Others may still be open."""
        self._reason, self.failed_at = _find_reason(problem), time.monotonic()

    def note_down(self, began: float | None = None) -> None:
        """Note that the server does not answer. `began`: when it was first asked; a failure since then says why."""
        self._note(self._reason if began is not None and self.failed_at >= began else SILENT)

    def is_full(self, began: float) -> bool:
        """Whether the server works, and has refused a connection since then because it has none left."""
        return self.problem is None and self.failed_at >= began and self._reason == FULL

    def build_full_error(self) -> StoreUnavailable:
        """The error of one who got no connection, while others have some."""
        return _build_error(self._url.name, FULL)

    def note_opened(self) -> None:
        """Note that a connection was opened and has answered."""
        self._opened_at = time.monotonic()

    def note_lost(self, problem: Exception) -> None:
        """Note that the server has ended a connection, and perhaps why."""
        self._note(_find_reason(problem))

    def note_read_only(self) -> None:
        """Note that the server answers, but takes no changes."""
        self._note(READ_ONLY)

    def close(self) -> None:
        """Stop probing."""
        self._is_closed.set()

    def _note(self, problem: str) -> None:
        with self._lock:
            if self.problem is not None:
                return
            self.problem, self._since = problem, time.monotonic()
            _log.warning("%s", self.build_error())
            self._is_closed = threading.Event()
            # The thread keeps no reference to the database object, and ends soon after that is gone.
            arguments = (weakref.ref(self), self._url, self._is_closed)
            threading.Thread(target=_probe_until_back, args=arguments, name="asides-store-probe", daemon=True).start()

    def note_probe(self, problem: str | None, is_closed: threading.Event) -> bool:
        """Note the result of a probe: a problem, or None if the server works again. Returns whether to stop probing."""
        with self._lock:
            if is_closed.is_set():
                if is_closed is self._is_closed:
                    self.problem = None
                return True
            if problem in (HUNG, FULL) and self._opened_at >= self._since:
                # A connection of ours was opened meanwhile: it has the place that the probe did not get.
                problem = None
            if problem is None:
                self.stale_before = time.monotonic() if self.problem == READ_ONLY else self.stale_before
                self._ended_at = time.monotonic()
                took = self._ended_at - self._since
                _log.warning("the database %s works again after %.1f s", self._url.name, took)
            self.problem = problem
            return problem is None


def _probe_until_back(outage: weakref.ReferenceType[Outage], url: PostgresUrl, is_closed: threading.Event) -> None:
    """Probe the server until it works, or its database object is closed or garbage-collected."""
    seconds = 0.0
    count = 0
    is_over = False
    while not is_over:
        is_closed.wait(seconds)
        count += 1
        seconds = _SECONDS_BETWEEN_PROBES[count > _FEW_PROBES]
        problem = None if is_closed.is_set() or outage() is None else _probe(url)
        # No variable here holds the outage, so that it can be garbage-collected while this thread waits.
        is_over = _report_probe(outage(), problem, is_closed)


def _report_probe(outage: Outage | None, problem: str | None, is_closed: threading.Event) -> bool:
    return outage is None or outage.note_probe(problem, is_closed)


def _probe(url: PostgresUrl) -> str | None:
    """What is wrong with the server; None if it works."""
    import psycopg

    reason = SILENT
    try:
        with psycopg.connect(url.conninfo, **build_parameters(url, _PROBE_SECONDS)) as connection:
            reason = HUNG
            connection.autocommit = False  # A transaction, as our work is.
            with Deadlines().watch(connection, time.monotonic() + _PROBE_SECONDS):
                row = connection.execute("SELECT current_setting('transaction_read_only')").fetchone()
            return READ_ONLY if row == ("on",) else None
    except (psycopg.Error, OSError) as problem:
        return _find_reason(problem, reason)


def explain_failure(name: str, problem: Exception, *, was_open: bool = False) -> StoreUnavailable:
    """The error of a connection to this database that could not be opened, or, if it was open, that gave no answer."""
    return _build_error(name, _find_reason(problem, HUNG if was_open else SILENT))


def quote_failure(name: str, problem: Exception, *, was_open: bool = False) -> StoreUnavailable:
    """The same for who maintains the database: values in the words of the server are not hidden."""
    words = _find_words(problem)
    if words is None:
        return explain_failure(name, problem, was_open=was_open)
    return _build_error(name, f"says: {words}")


def describe_problem(problem: Exception) -> str:
    """The server's description of a failure, without values; the name of the error if it gives none."""
    words = _find_words(problem)
    return type(problem).__name__ if words is None else _hide_values(words)


def _build_error(name: str, reason: str) -> StoreUnavailable:
    return StoreUnavailable(f"the database {name} {reason}. {_ADVICE.get(reason, _USUAL_ADVICE)}.")


def _find_reason(problem: Exception, unknown: str = SILENT) -> str:
    """Why a connection could not be opened, or has ended: in the words of the server, or else of libpq."""
    words = _find_words(problem)
    if words is not None:
        return FULL if any(mark in words for mark in _FULL_MARKS) else f"says: {_hide_values(words)}"
    text = "" if unknown == HUNG else _hide_values(str(problem))
    return f"{unknown}: {text}" if text else unknown


def _hide_values(text: str) -> str:
    """The words on one line, without quoted values: they hold users, and parts of a password that was not escaped."""
    # libpq adds hints for people, which begin with a tab.
    hidden = _QUOTED.sub(r"\1…\1", " ".join(line.strip() for line in text.splitlines() if not line.startswith("\t")))
    return escape_controls(hidden[:_MAX_WORDS]).rstrip(".")


def _find_words(problem: Exception) -> str | None:
    """The message of the server or its pooler, or None."""
    diagnosis = getattr(problem, "diag", None)
    if diagnosis is not None and diagnosis.message_primary:
        return str(diagnosis.message_primary)
    found = _FATAL.findall(str(problem))
    return found[-1].strip() if found else None
