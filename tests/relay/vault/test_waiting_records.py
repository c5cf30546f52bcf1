"""Records that wait: those who come meanwhile are written together, and nobody's end costs another one a record."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Sequence

import pytest

from asides.relay.steps import StoredRecord, UnconfirmedRecord
from asides.relay.vault import waiting_records
from asides.relay.vault.waiting_records import LoopWriter, ThreadWriter, WaitingRecord

BAD = "bad"


def record(name: str) -> StoredRecord:
    return StoredRecord(name, (name,), b"")


class Store:
    """A slow store, which cannot take a record of a certain name."""

    def __init__(self, seconds: float = 0.02) -> None:
        self.groups: list[list[str]] = []
        self.threads: set[str] = set()
        self._seconds = seconds

    def write(self, together: Sequence[WaitingRecord]) -> None:
        time.sleep(self._seconds)
        self._note(together)

    async def write_async(self, together: Sequence[WaitingRecord]) -> None:
        await asyncio.sleep(self._seconds)
        self._note(together)

    def _note(self, together: Sequence[WaitingRecord]) -> None:
        self.threads.add(threading.current_thread().name)
        self.groups.append([each.record.id for each in together])
        for each in together:
            if each.record.id == BAD:
                each.problem = ValueError(BAD)

    @property
    def names(self) -> set[str]:
        return {name for group in self.groups for name in group}


@pytest.mark.parametrize("kind", ["thread", "loop"])
async def test_those_who_come_meanwhile_are_written_together(kind: str) -> None:
    store = Store()
    write = ThreadWriter(store.write).write_async if kind == "thread" else LoopWriter(store.write_async).write
    first = asyncio.create_task(write("t", record("first")))
    await asyncio.sleep(0.01)
    names = [*(str(number) for number in range(20)), BAD]
    ended = await asyncio.gather(*(write("t", record(name)) for name in names), return_exceptions=True)
    await first
    assert [str(each) for each in ended if each is not None] == [BAD]
    assert len(store.groups) <= 3
    assert store.names == {"first", *names}
    assert ("asides-vault" in store.threads) == (kind == "thread")


async def test_groups_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_records, "MOST_IN_GROUP", 8)
    for kind in ("thread", "loop"):
        store = Store(0.001)
        write = ThreadWriter(store.write).write_async if kind == "thread" else LoopWriter(store.write_async).write
        await asyncio.gather(*(write("t", record(str(number))) for number in range(50)))
        assert max(len(group) for group in store.groups) <= 8
        assert len(store.names) == 50


async def test_a_store_that_raises_tells_all_who_wait() -> None:
    def fail(_: Sequence[WaitingRecord]) -> None:
        raise OSError("no disk")

    async def fail_async(_: Sequence[WaitingRecord]) -> None:
        raise OSError("no disk")

    threads = ThreadWriter(fail)
    for write in (threads.write_async, LoopWriter(fail_async).write):
        ended = await asyncio.gather(*(write("t", record(str(each))) for each in range(3)), return_exceptions=True)
        assert [type(each) for each in ended] == [OSError] * 3
    with pytest.raises(OSError, match="no disk"):
        threads.write("t", record("x"))


async def test_closing_waits_for_what_waits_and_ends_the_thread() -> None:
    store = Store()
    writes, loops = ThreadWriter(store.write), LoopWriter(store.write_async)
    for write in (writes.write_async, loops.write):
        tasks = [asyncio.create_task(write("t", record(f"{write.__qualname__} {each}"))) for each in range(3)]
        await asyncio.sleep(0)
        await asyncio.to_thread(writes.close)
        await loops.close()
        assert len(store.names) in (3, 6)
        await asyncio.gather(*tasks)
    until = time.monotonic() + 5
    while any(thread.name == "asides-vault" for thread in threading.enumerate()) and time.monotonic() < until:
        await asyncio.sleep(0.01)
    assert not any(thread.name == "asides-vault" for thread in threading.enumerate())
    # It can be used again.
    await writes.write_async("t", record("later"))
    await loops.write("t", record("later still"))
    assert len(store.names) == 8
    writes.close()


def test_closing_writes_what_no_thread_has_taken_yet() -> None:
    store = Store(0)
    writes = ThreadWriter(store.write)
    writes.waiting += [WaitingRecord("t", record(str(each))) for each in range(3)]
    writes.close()
    assert store.names == {"0", "1", "2"}


def test_an_event_loop_that_ends_takes_no_thread_with_it() -> None:
    store = Store(0.05)
    writes = ThreadWriter(store.write)

    async def leave() -> None:
        task = asyncio.create_task(writes.write_async("t", record("left")))
        await asyncio.sleep(0.01)
        task.cancel()

    asyncio.run(leave())
    writes.write("t", record("mine"))
    asyncio.run(writes.write_async("t", record("other loop")))
    assert store.names == {"left", "mine", "other loop"}
    writes.close()


def test_a_loop_that_ends_tells_those_who_wait() -> None:
    async def never(_: Sequence[WaitingRecord]) -> None:
        await asyncio.sleep(60)

    writes = LoopWriter(never)

    async def leave() -> asyncio.Task[None]:
        task = asyncio.create_task(writes.write("t", record("left")))
        await asyncio.sleep(0.01)
        return task

    assert asyncio.run(leave()).cancelled()


def test_the_thread_ends_when_nobody_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_records, "_IDLE_SECONDS", 0.02)
    store = Store(0.0)
    writes = ThreadWriter(store.write)
    for number in range(3):
        asyncio.run(writes.write_async("t", record(str(number))))
        until = time.monotonic() + 5
        while writes._thread is not None and time.monotonic() < until:
            time.sleep(0.01)
        assert writes._thread is None
    assert store.names == {"0", "1", "2"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_of_a_fork_has_a_thread_of_its_own() -> None:
    store = Store(0.05)
    writes = ThreadWriter(store.write)
    asyncio.run(writes.write_async("t", record("parent")))
    holder = threading.Thread(target=writes.write, args=("t", record("held")))
    holder.start()
    time.sleep(0.01)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            writes.write("t", record("child"))
            asyncio.run(asyncio.wait_for(writes.write_async("t", record("child too")), 5))
            code = 0 if store.names == {"parent", "child", "child too"} else 2
        finally:
            os._exit(code)
    holder.join()
    assert os.waitpid(child, 0)[1] == 0
    writes.close()


async def test_nobody_waits_for_what_is_confirmed() -> None:
    store = Store(0.05)
    threads, loops = ThreadWriter(store.write), LoopWriter(store.write_async)
    for kind, writes in (("thread", threads), ("loop", loops)):
        began = time.monotonic()
        writes.confirm(UnconfirmedRecord("t", kind, "pending-k"))
        assert time.monotonic() - began < 0.05
        assert kind not in store.names
    threads.close()
    await loops.close()
    assert store.names == {"thread", "loop"}


def test_a_wait_makes_the_request_of_a_record_older() -> None:
    waiting = WaitingRecord("t", StoredRecord("r", ("k", "pending-k"), b"", asked_ago=2.0))
    time.sleep(0.02)
    assert isinstance(waiting.record, StoredRecord)
    assert 2.02 <= waiting.age(waiting.record).asked_ago < 30
    assert waiting.age(record("delivered")).asked_ago == 0.0
