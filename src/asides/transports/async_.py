"""A stream, awaiting: it carries out what a flow asks for. `blocking` is its twin, `progress` what they share.

Not here: who carries the bytes (a transport).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any, Generic, Self, TypeVar

from asides.dialects.dialect import HttpRequest
from asides.flows.call import Call, CallLike
from asides.flows.steps import Allow, Done, Emit, Flow, Open, Read, RunTools, Sleep, Whole, advance
from asides.transports.flow_state import FlowState, Progress
from asides.transports.launch import settled, settled_at_once
from asides.transports.protocols import AsyncResponse, AsyncTransport
from asides.values.errors import AsidesError, TransportError
from asides.values.events import Event
from asides.values.reply import Reply

Arriving = TypeVar("Arriving")


class AsyncEvents(Generic[Arriving]):
    """Events that arrive, and whoever drives the flow that they come from."""

    def __init__(
        self,
        driver: AsyncDriver,
        batches: AsyncGenerator[list[Arriving], None],
        transport: AsyncTransport,
        ends_transport: bool,
    ) -> None:
        self._driver = driver
        self._transport = transport
        self._ends_transport = ends_transport
        self._batches = batches
        self._events = _flattened(batches)

    def __aiter__(self) -> AsyncIterator[Arriving]:
        return self._events

    async def __anext__(self) -> Arriving:
        return await anext(self._events)

    def batches(self) -> AsyncIterator[list[Arriving]]:
        """The events in the lists in which they came, one for each read: less work for those who pass them on."""
        return self._batches

    async def close(self) -> None:
        """Close the connection at once, from any task. What came stays in `partial`."""
        self._driver.closed.set()
        if self._driver.response is not None:
            self._driver.response.close()
        # Another task may be reading at this moment; it finds the connection closed and ends the flow itself.
        for generator in (self._events, self._batches):
            with suppress(RuntimeError):
                await generator.aclose()
        if self._ends_transport:
            await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._driver.progress})"


class AsyncStream(AsyncEvents[Event]):
    """The events of one reply: iterate over it, and leave the `async with` (or await `close`) to be done with it at
    once.

    `reply` is the same Reply that `ask` returns. A stream that breaks raises, with `.partial`; one that you close ends;
    one whose task is cancelled closes its connection, and `partial` stays readable.
    """

    def __init__(self, call: Call, transport: AsyncTransport, *, ends_transport: bool = False) -> None:
        self._progress = Progress(call)
        driver = AsyncDriver(self._progress, transport)
        batches = close_after(driver.batches(), transport) if ends_transport else driver.batches()
        super().__init__(driver, batches, transport, ends_transport)

    async def drain(self) -> Reply:
        """Read what has not been read yet; the whole reply."""
        async for _ in self._batches:
            pass
        return self._progress.reply(closed=True)

    @property
    def reply(self) -> Reply:
        """The whole reply, once the events are at their end; `await drain()` brings them there."""
        return self._progress.reply(closed=self._driver.closed.is_set())

    @property
    def partial(self) -> Reply | None:
        """What has come so far; None when nothing has."""
        return self._progress.partial


async def close_after(
    batches: AsyncGenerator[list[Arriving], None], transport: AsyncTransport
) -> AsyncGenerator[list[Arriving], None]:
    """The batches; connections that serve nothing else are closed with them, also for those who read to the end without
    an `async with`.
    """
    try:
        async for batch in batches:
            yield batch
    finally:
        await batches.aclose()
        await transport.close()


async def _flattened(batches: AsyncIterator[list[Arriving]]) -> AsyncGenerator[Arriving, None]:
    async for batch in batches:
        for event in batch:
            yield event


async def carry_out(call: CallLike, flow: Callable[[], Flow[Whole]], transport: AsyncTransport) -> Whole:
    """What comes of a flow that hands out nothing on its way. A cancelled task closes its connection."""
    course = FlowState(call, flow)
    async for _ in AsyncDriver(course, transport).batches():
        pass
    if course.whole is None:
        raise RuntimeError("a flow ends with a result or raises.")
    return course.whole


class AsyncDriver:
    """What drives a flow. Of a stream it knows nothing, and that is so closed when the last who holds it lets go."""

    def __init__(self, progress: FlowState[Any], transport: AsyncTransport) -> None:
        self.progress = progress
        self.response: AsyncResponse | None = None
        self.closed = asyncio.Event()
        self._transport = transport

    async def batches(self) -> AsyncGenerator[list[Any], None]:
        """Carry out what the flow asks for. A stream that was closed meanwhile ends here."""
        progress = self.progress
        flow = progress.begin()
        read: Callable[[float | None], Awaitable[bytes]] | None = None
        value: Any = None
        error: TransportError | None = None
        try:
            while not self.closed.is_set():
                step = advance(flow, value, error)
                value = error = None
                try:
                    if isinstance(step, Emit):
                        yield step.events
                    elif isinstance(step, Read) and read is not None:
                        value = await read(step.patience)
                    elif isinstance(step, Open):
                        response = await self._open(step.request)
                        value, read = await response.head(), response.read
                    elif isinstance(step, Sleep):
                        progress.check_wait(step.seconds)
                        await self._sleep(step.seconds)
                    elif isinstance(step, Done):
                        progress.whole = step.result
                        return
                    elif isinstance(step, RunTools):
                        from asides.transports.tool_executor import run_jobs_async

                        value = [None] * len(step.jobs)
                        async with aclosing(run_jobs_async(step.jobs, step.most, self.closed)) as outcomes:
                            async for number, outcome in outcomes:
                                value[number] = outcome
                                yield step.report(number, outcome)
                    elif isinstance(step, Allow):
                        progress.allow(step.seconds)
                    else:
                        value = time.monotonic()
                except TransportError as problem:
                    error = problem
        except AsidesError as problem:
            progress.failure = problem
            raise
        finally:
            flow.close()
            if self.response is not None:
                self.response.close()

    async def _open(self, request: HttpRequest) -> AsyncResponse:
        if self.response is not None:
            self.response.close()
        call = self.progress.call
        ready = settled_at_once(request, call)
        if ready is None:
            # A server that has to be started takes a moment; the loop does not wait for it.
            ready = await asyncio.to_thread(settled, request, call)
        self.response = self._transport.open(ready, self.progress.timeout())
        if self.closed.is_set():
            self.response.close()
        return self.response

    async def _sleep(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.closed.wait()
