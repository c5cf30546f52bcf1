"""A flow that is advanced in a thread ends, fails and is cancelled as one in the event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from asides.flows.steps import Emit, Flow, Now
from asides.transports.advance_apart import advance_apart
from asides.values.errors import ConnectionLost


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


def _flow(threads: list[int]) -> Flow[str]:
    threads.append(threading.get_ident())
    now: Any = yield Now()
    try:
        yield Emit([threading.get_ident(), now])
    except ConnectionLost:
        yield Emit(["lost"])
    return "whole"


async def test_each_step_is_taken_in_a_thread(executor: ThreadPoolExecutor) -> None:
    """The time needs no loop, and so no way there and back."""
    threads: list[int] = []
    flow, began = _flow(threads), time.monotonic()
    step = (await advance_apart(executor, flow, None, None)).unwrap()
    assert isinstance(step, Emit)
    thread, now = step.events
    assert thread == threads[0]
    assert began <= now <= time.monotonic()
    step = (await advance_apart(executor, flow, None, ConnectionLost("gone"))).unwrap()
    assert isinstance(step, Emit)
    assert step.events == ["lost"]
    with pytest.raises(StopIteration) as end:
        (await advance_apart(executor, flow, None, None)).unwrap()
    assert end.value.value == "whole"
    assert threads != [threading.get_ident()]


async def test_what_a_flow_raises_arrives(executor: ThreadPoolExecutor) -> None:
    def broken() -> Flow[None]:
        raise LookupError("broken")
        yield Now()

    with pytest.raises(LookupError, match="broken"):
        await advance_apart(executor, broken(), None, None)


@pytest.mark.parametrize("is_waiting", [False, True], ids=["under way", "in the queue"])
async def test_a_cancelled_caller_leaves_a_flow_that_can_be_closed(
    executor: ThreadPoolExecutor, is_waiting: bool
) -> None:
    began, may_end = threading.Event(), threading.Event()

    def slow() -> Flow[None]:
        began.set()
        may_end.wait(20)
        yield Now()

    if is_waiting:
        executor.submit(may_end.wait, 20)
    flow = slow()
    task = asyncio.create_task(advance_apart(executor, flow, None, None))
    if not is_waiting:
        await asyncio.to_thread(began.wait, 20)
    await asyncio.sleep(0)
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert flow.gi_running is False  # type: ignore[attr-defined]
    flow.close()
    assert began.is_set() is not is_waiting
