"""Advance a flow in a thread: planning a large request would block the event loop. `advance_apart(executor, …)`."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Executor
from contextlib import suppress
from contextvars import copy_context
from typing import Any

from asides.flows.steps import Flow, Now, Step


class Advanced:
    """The next step of a flow, or its result."""

    __slots__ = ("_is_over", "_value")

    def __init__(self, value: Any, *, is_over: bool) -> None:
        self._value = value
        self._is_over = is_over

    def unwrap(self) -> Step:
        """Return the step, or end as the flow did: with a StopIteration that holds its result."""
        if self._is_over:
            raise StopIteration(self._value)
        step: Step = self._value
        return step


async def advance_apart(executor: Executor, flow: Flow[Any], value: Any, error: Exception | None) -> Advanced:
    """Send a value or an error into a flow in a thread of the executor. A cancelled caller waits until the thread has
    left the flow, since a flow that runs cannot be closed.
    """
    work = executor.submit(copy_context().run, _advance, flow, value, error)
    done = asyncio.wrap_future(work)
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        if not work.cancel():
            while not work.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([done])
        raise


def _advance(flow: Flow[Any], value: Any, error: Exception | None) -> Advanced:
    # A future cannot hold a StopIteration.
    try:
        step = flow.send(value) if error is None else flow.throw(error)
        while type(step) is Now:
            # It needs no loop, and switching threads would cost more than the step.
            step = flow.send(time.monotonic())
        return Advanced(step, is_over=False)
    except StopIteration as end:
        return Advanced(end.value, is_over=True)
