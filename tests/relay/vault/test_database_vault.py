"""Flows of a vault: what is optional costs nothing when it fails, and errors reach the flow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from asides.database import Queries, StoreError
from asides.relay.steps import StoredRecord, UnconfirmedRecord
from asides.relay.vault import VaultLimits
from asides.relay.vault.database_vault import PATIENCE, DatabaseVault, VaultFlow, VaultWork
from asides.relay.vault.vault_queries import FoundRecord
from asides.relay.vault.waiting_records import WaitingRecord


class Failing:
    """A database that does what the name of a work says."""

    is_shared = False
    problem = None

    def __init__(self) -> None:
        self.options: list[dict[str, Any]] = []

    def run(self, work: Callable[[], Queries[Any]], **options: Any) -> Any:
        self.options.append(options)
        return work()

    async def run_async(self, work: Callable[[], Queries[Any]], **options: Any) -> Any:
        return self.run(work, **options)

    def close(self) -> None: ...

    async def close_async(self) -> None: ...


def fail() -> Any:
    raise StoreError("no. Wait.")


def run_both(flow: Callable[[], VaultFlow[Any]]) -> list[Any]:
    vault = DatabaseVault(Failing(), None)
    return [vault.run(flow()), asyncio.run(vault.run_async(flow()))]


def test_what_is_optional_may_fail() -> None:
    def flow() -> VaultFlow[Any]:
        first = yield VaultWork(fail, is_optional=True)
        second = yield VaultWork(lambda: "found", writes=False)  # type: ignore[arg-type, return-value]
        return first, second

    assert run_both(flow) == [(None, "found")] * 2


def test_errors_reach_the_flow() -> None:
    def flow() -> VaultFlow[str]:
        try:
            yield VaultWork(fail)
        except StoreError:
            return "handled"
        return "not told"

    assert run_both(flow) == ["handled"] * 2

    def careless() -> VaultFlow[None]:
        yield VaultWork(fail)

    with pytest.raises(StoreError):
        run_both(careless)


def test_everything_is_repeatable_and_waits_for_some_seconds_at_most() -> None:
    database = Failing()
    vault = DatabaseVault(database, VaultLimits(seconds=100.0), clock=lambda: 1000.0)
    vault._read = lambda *_: [FoundRecord(1, 999.9, None), FoundRecord(2, 950.0, None)]  # type: ignore[method-assign, assignment, arg-type]
    touched: list[Any] = []
    vault._touch = lambda numbers, now: touched.append((numbers, now))  # type: ignore[method-assign, assignment, return-value]
    assert len(vault.read("t", ["k"])) == 2
    assert touched == [([2], 1000.0)]
    assert [each["writes"] for each in database.options] == [False, True]
    assert all(each["repeatable"] and not each["durable"] and each["patience"] == PATIENCE for each in database.options)
    assert vault.read("t", []) == ()
    assert len(database.options) == 2


def test_a_confirmation_that_failed_comes_before_the_next_record() -> None:
    done: list[Any] = []
    vault = DatabaseVault(Failing(), None)
    vault._confirm = lambda records: fail()  # type: ignore[method-assign]

    def begin_write(records: Any) -> VaultFlow[None]:
        done.append([record.id for _, record in records])
        return
        yield

    vault._begin_write = begin_write  # type: ignore[method-assign]
    waiting = [
        WaitingRecord("t", UnconfirmedRecord("t", "old", "pending-k")),
        WaitingRecord("t", StoredRecord("r", (), b"")),
    ]
    vault.run(vault.begin_write_group(waiting))
    assert done == [["r"]]  # It costs nobody a record.
    assert [each.problem for each in waiting] == [None, None]
    vault._confirm = lambda records: done.append([record.id for record in records])  # type: ignore[method-assign, assignment, return-value]
    vault.run(vault.begin_write_group([WaitingRecord("t", StoredRecord("s", (), b""))]))
    vault.run(vault.begin_write_group([WaitingRecord("t", StoredRecord("t", (), b""))]))
    assert done == [["r"], ["old"], ["s"], ["t"]]
