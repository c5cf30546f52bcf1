"""Which errors of PostgreSQL are worth another attempt, and what the others are told as."""

from __future__ import annotations

import psycopg
import psycopg_pool
import pytest
from psycopg import errors

from asides.database import StoreError, StoreUnavailable
from asides.database.postgres_attempts import Attempts
from asides.database.postgres_outage import READ_ONLY, Outage
from asides.database.postgres_url import read_url

URL = read_url("postgresql://me:secret@127.0.0.1:1/x")


class Quiet(Outage):
    """An outage that asks no server."""

    def _note(self, problem: str) -> None:
        self.problem = self.problem or problem


def begin(*, writes: bool = True, repeatable: bool = False, patience: float = 60.0) -> tuple[Attempts, Quiet]:
    outage = Quiet(URL)
    return Attempts(URL.name, outage, patience, writes=writes, repeatable=repeatable), outage


@pytest.mark.parametrize("kind", [errors.SerializationFailure, errors.DeadlockDetected])
def test_whoever_was_turned_away_tries_again_for_a_while(kind: type[psycopg.Error]) -> None:
    attempts, outage = begin()
    pauses: list[float] = []
    for _ in range(4):
        attempts.raise_final(kind())
        pauses.append(attempts.pause)
    assert pauses == sorted(pauses)
    with pytest.raises(StoreError, match=kind.__name__):
        attempts.raise_final(kind())
    assert outage.problem is None


@pytest.mark.parametrize("kind", [psycopg.OperationalError, errors.AdminShutdown, psycopg.InterfaceError])
def test_a_connection_that_ends_is_worth_another_unless_nobody_knows_what_counts(kind: type[psycopg.Error]) -> None:
    for writes, repeatable, is_ending in ((True, False, False), (False, False, True), (True, True, True)):
        attempts, outage = begin(writes=writes, repeatable=repeatable)
        attempts.is_ending = is_ending
        attempts.raise_final(kind())
        assert outage.problem is None
    attempts, outage = begin()
    attempts.is_ending = True
    with pytest.raises(StoreUnavailable, match="may or may not"):
        attempts.raise_final(kind())
    assert outage.problem == "does not answer"
    attempts, outage = begin(writes=False, patience=0.0)
    with pytest.raises(StoreUnavailable, match="does not answer"):
        attempts.raise_final(kind())


@pytest.mark.parametrize(
    ("problem", "kind", "words"),
    [
        (errors.UndefinedTable(), StoreUnavailable, "asides store migrate"),
        (errors.QueryCanceled(), StoreUnavailable, "in time"),
        (psycopg_pool.PoolClosed(), StoreUnavailable, "closed"),
        (errors.DivisionByZero("the secret"), StoreError, "DivisionByZero"),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "no"), StoreError, "surrogate"),
    ],
)
def test_other_errors_are_ours(problem: Exception, kind: type[Exception], words: str) -> None:
    attempts, outage = begin()
    with pytest.raises(kind, match=words) as caught:
        attempts.raise_final(problem)
    assert type(caught.value) is kind
    assert "secret" not in str(caught.value)
    assert outage.problem is None


def test_a_server_that_takes_no_changes_is_noted() -> None:
    attempts, outage = begin()
    with pytest.raises(StoreUnavailable, match="read-only"):
        attempts.raise_final(errors.ReadOnlySqlTransaction())
    assert outage.problem == READ_ONLY
    outage.check(writes=False)
    with pytest.raises(StoreUnavailable):
        outage.check(writes=True)


def test_what_is_no_error_of_a_database_is_left_as_it_is() -> None:
    with pytest.raises(KeyError):
        begin()[0].raise_final(KeyError("mine"))
