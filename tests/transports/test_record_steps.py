"""The steps of a flow that need a store of records."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from asides.flows.steps import DeleteRecords, ReadRecords, StoredRecord, WriteRecord
from asides.relay.vault.memory_vault import MemoryVault
from asides.transports.record_steps import carry_out, carry_out_async

_RECORD = StoredRecord("one", ("key",), b"payload")
_READ, _WRITE, _DELETE = ReadRecords("t", ("key",)), WriteRecord("t", _RECORD), DeleteRecords("t", ("key",))


class _Broken:
    is_instant = False

    def __init__(self) -> None:
        self.threads: list[int] = []

    def read(self, tenant: str, keys: Sequence[str]) -> Sequence[StoredRecord]:
        self.threads.append(threading.get_ident())
        raise OSError("the disk is full of payload")

    def write(self, tenant: str, record: StoredRecord) -> None:
        raise OSError

    def delete(self, tenant: str, keys: Sequence[str]) -> int:
        raise OSError

    def close(self) -> None: ...


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


def test_a_store_that_may_wait_gets_a_thread() -> None:
    store = _Broken()
    assert asyncio.run(carry_out_async(_READ, store)) is None
    assert store.threads != [threading.get_ident()]
    assert asyncio.run(carry_out_async(_WRITE, MemoryVault())) is True
