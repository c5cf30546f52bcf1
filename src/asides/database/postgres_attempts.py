"""The attempts to run work on PostgreSQL: which errors are retried, and what is raised for the others."""

from __future__ import annotations

import time

import psycopg
import psycopg_pool
from psycopg import errors

from asides.database import StoreError, StoreUnavailable
from asides.database.postgres_outage import Outage, describe_problem

_MAX_ATTEMPTS = 5
_CONFLICTS = (errors.SerializationFailure, errors.DeadlockDetected)
"""Another transaction was in the way: nothing was changed."""
_LOST = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.IdleSessionTimeout)
_LACKS_TABLES = (errors.UndefinedTable, errors.UndefinedColumn, errors.InvalidSchemaName)


class Attempts:
    """The attempts to run one piece of work until a deadline."""

    def __init__(self, name: str, outage: Outage, patience: float, *, writes: bool, repeatable: bool) -> None:
        self._name = name
        self._outage = outage
        self.deadline = time.monotonic() + patience
        self.writes = writes
        self._repeatable = repeatable or not writes
        self._count = 0
        self.is_ending = False
        """Whether COMMIT was sent. If the connection is lost then, it is unknown whether the change was stored."""

    @property
    def pause(self) -> float:
        """The seconds to wait before the next attempt."""
        return 0.002 * float(2**self._count)

    def raise_final(self, problem: Exception) -> None:
        """Raise the error for the caller, unless the work can be retried."""
        self._count += 1
        if isinstance(problem, UnicodeEncodeError):
            raise StoreError(
                "the store cannot take a lone surrogate (half a character). Look for one in the names, the "
                "model and the system prompt."
            ) from None
        if isinstance(problem, psycopg.DataError) and problem.sqlstate is None:
            raise StoreError(
                "PostgreSQL cannot take a NUL character (U+0000) in a text. Look for one in the names, the "
                "title, the model and the system prompt."
            ) from None
        if isinstance(problem, psycopg_pool.PoolClosed):
            raise StoreUnavailable(f"the database {self._name} was closed. Open it again.") from None
        if not isinstance(problem, psycopg.Error):
            raise problem
        has_time = self._count < _MAX_ATTEMPTS and time.monotonic() < self.deadline
        if isinstance(problem, _CONFLICTS):
            if has_time:
                return
        elif _is_lost(problem):
            self._raise_lost(problem, has_time)
            return
        elif isinstance(problem, errors.ReadOnlySqlTransaction):
            self._outage.note_read_only()
            raise self._outage.build_error() from None
        elif isinstance(problem, errors.QueryCanceled):
            raise StoreUnavailable(
                f"the database {self._name} did not end a statement in time. Try again, and look for what keeps "
                "it busy."
            ) from None
        elif isinstance(problem, _LACKS_TABLES):
            raise StoreUnavailable(
                f"the database {self._name} lacks tables of asides. Run `asides store migrate`."
            ) from None
        elif isinstance(problem, errors.InsufficientPrivilege):
            raise StoreError(explain_missing_right(self._name)) from None
        raise StoreError(
            f"the database {self._name} failed: {describe_problem(problem)} ({problem.sqlstate}). Check its log."
        ) from None

    def _raise_lost(self, problem: psycopg.Error, has_time: bool) -> None:
        """The same for a connection that ended during the work, or was cut at its deadline."""
        is_unknown = self.is_ending and not self._repeatable
        if has_time and not is_unknown:
            return
        self._outage.note_lost(problem)
        if is_unknown and self._outage.problem is not None:
            raise StoreUnavailable(
                f"the database {self._name} went away while it stored a change, and may or may not have stored it. "
                "Look whether it has, and try again."
            ) from None
        raise self._outage.build_error() from None


def explain_missing_right(name: str) -> str:
    """What to do for a user who may not create or use our tables in this database."""
    return (
        f"the user may not create or use the tables of {name}. Let a user who may create a schema there run "
        "`asides store migrate`, and grant this user USAGE on the schema asides, SELECT, INSERT, UPDATE and DELETE on "
        "all tables in it, and SELECT, USAGE and UPDATE on all sequences in it."
    )


def _is_lost(problem: psycopg.Error) -> bool:
    """Whether the connection is gone."""
    return isinstance(problem, _LOST) or (
        isinstance(problem, (psycopg.OperationalError, psycopg.InterfaceError))
        and (problem.sqlstate is None or problem.sqlstate.startswith("08"))
    )
