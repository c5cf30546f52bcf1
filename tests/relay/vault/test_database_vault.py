"""Flows of a vault: what is optional costs nothing when it fails, and errors reach the flow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from asides.database import Queries, StoreError
from asides.relay.vault import VaultLimits
from asides.relay.vault.database_vault import PATIENCE, DatabaseVault, VaultFlow, VaultWork
from asides.relay.vault.vault_queries import FoundRecord


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
    raise StoreError("no. To do: wait.")


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
