"""The steps of a flow that need a store of records."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from asides.database import StoreUnavailable
from asides.relay.steps import PENDING, DeleteRecords, ReadRecords, StoredRecord, UnconfirmedRecord, WriteRecord
from asides.relay.streams.step_handlers import carry_out, carry_out_async, confirm_delivery
from asides.relay.vault.memory_vault import MemoryVault

_RECORD = StoredRecord("one", ("key",), b"payload")
_READ, _WRITE, _DELETE = ReadRecords("t", ("key",)), WriteRecord("t", _RECORD), DeleteRecords("t", ("key",))


class _Broken:
    is_instant = False

    def read(self, tenant: str, keys: Sequence[str]) -> Sequence[StoredRecord]:
        raise OSError("the disk is full of payload")

    def write(self, tenant: str, record: StoredRecord) -> None:
        raise OSError

    def delete(self, tenant: str, keys: Sequence[str]) -> int:
        raise OSError

    def close(self) -> None: ...

    async def read_async(self, tenant: str, keys: Sequence[str]) -> Sequence[StoredRecord]:
        return self.read(tenant, keys)

    async def write_async(self, tenant: str, record: StoredRecord) -> None:
        self.write(tenant, record)

    async def delete_async(self, tenant: str, keys: Sequence[str]) -> int:
        return self.delete(tenant, keys)


class _Out(_Broken):
    def read(self, tenant: str, keys: Sequence[str]) -> Sequence[StoredRecord]:
        raise StoreUnavailable("it does not answer.")


def test_each_step_has_its_result() -> None:
    vault = MemoryVault()
    assert carry_out(_READ, vault) == ()
    assert carry_out(_WRITE, vault) is True
    assert carry_out(_READ, vault) == (_RECORD,)
    assert carry_out(_DELETE, vault) == 1
    assert carry_out(_READ, vault) == ()


@pytest.mark.parametrize("store", [None, _Broken()], ids=["no store", "broken"])
def test_a_store_that_fails_is_a_result_too(store: _Broken | None, caplog: pytest.LogCaptureFixture) -> None:
    assert carry_out(_READ, store) is None
    assert carry_out(_WRITE, store) is False
    assert carry_out(_DELETE, store) is None
    assert "payload" not in caplog.text


def test_event_loops_get_the_same_results(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        for store in (None, _Broken()):
            assert await carry_out_async(_READ, store) is None
            assert await carry_out_async(_WRITE, store) is False
            assert await carry_out_async(_DELETE, store) is None
        vault = MemoryVault()
        assert await carry_out_async(_WRITE, vault) is True
        assert await carry_out_async(_READ, vault) == (_RECORD,)
        assert await carry_out_async(_DELETE, vault) == 1

    asyncio.run(run())
    assert len(caplog.records) == 3
    assert "payload" not in caplog.text


def test_a_store_that_is_out_is_not_told_for_each_request(caplog: pytest.LogCaptureFixture) -> None:
    assert carry_out(_READ, _Out()) is None
    assert asyncio.run(carry_out_async(_READ, _Out())) is None
    assert caplog.records == []


def test_what_was_delivered_is_confirmed_where_the_store_wants_to_know(caplog: pytest.LogCaptureFixture) -> None:
    class Careless(_Broken):
        def confirm(self, record: UnconfirmedRecord) -> None:
            raise OSError("of payload")

    pending = f"{PENDING}key"
    records = [UnconfirmedRecord("t", "one", pending)]
    for store in (None, _Broken(), Careless()):
        confirm_delivery(records, store)
    assert len(caplog.records) == 1
    assert "payload" not in caplog.text
    vault = MemoryVault()
    vault.write("t", StoredRecord("one", ("key", pending), b"payload"))
    confirm_delivery(records, vault)
    assert vault.read("t", ["key"]) == (_RECORD,)
