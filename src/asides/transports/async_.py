"""The async driver: carries out the steps of a flow. `sync` is generated from it; `flow_state` is shared."""

from __future__ import annotations

import asyncio

# sync: import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from asides.dialects.dialect import HttpRequest
from asides.flows.call import Call, CallLike
from asides.flows.steps import Allow, Emit, FetchKey, Flow, Now, Open, Read, RunTools, Sleep, Step, UseCall, Whole
from asides.transports.advance_apart import advance_apart  # async only
from asides.transports.flow_state import ExchangeState, FlowState, StepHandlers, add_credential, find_handler
from asides.transports.protocols import AsyncResponse, AsyncTransport
from asides.values.errors import AsidesError, ConfigError, TransportError
from asides.values.events import Event
from asides.values.reply import Output_co, Reply

if TYPE_CHECKING:
    from asides.agents.outputs.expected_output import PartialOutput
    from asides.providers.provider import Target  # async only
    from asides.providers.quirks import Tags  # async only
    from asides.values.visibility import Visibility

Item = TypeVar("Item")


class AsyncEvents(Generic[Item]):
    """Events as they arrive, and the driver of the flow that emits them."""

    def __init__(self, driver: AsyncDriver, batches: AsyncGenerator[list[Item], None]) -> None:
        self._driver = driver
        self._batches = batches

    @cached_property
    def _events(self) -> AsyncGenerator[Item, None]:
        output = self._driver.state.output
        return flatten(self._batches) if output is None else _flatten_noted(self._batches, output)

    def __aiter__(self) -> AsyncIterator[Item]:
        return self._events

    async def __anext__(self) -> Item:
        return await anext(self._events)

    def batches(self) -> AsyncIterator[list[Item]]:
        """The events in lists, one list for each read. Cheaper than single events for code that forwards them."""
        if "_events" in self.__dict__ and not self._driver.is_closed:
            # Single events were read. The rest of their batch is there.
            return ([event] async for event in self._events)
        output = self._driver.state.output
        return self._batches if output is None else _note_batches(self._batches, output)

    @property
    def visibility(self) -> Visibility | None:
        """Which thinking of these events each place may see; None: the default."""
        return self._driver.state.call.policy.visibility

    async def close(self) -> None:
        """Close the connection immediately, from any task. `partial` keeps what had arrived.

        After the event loop of the stream was closed, this closes the socket and awaits nothing.
        """
        # sync: self._driver.close()
        with suppress(RuntimeError):  # async only
            # A task that waits in a closed loop cannot be woken.
            self._driver.close()
        if (response := self._driver.response) is not None:
            response.close()
        # Another task may be reading; it finds the connection closed and ends the flow itself.
        for generator in (self._events, self._batches):
            with suppress(RuntimeError):
                await generator.aclose()
        await self._driver.end_transport()  # async only

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._driver.state})"


class AsyncStream(AsyncEvents[Event], Generic[Output_co]):
    """The events of one reply. Iterate over it; leaving the `async with` (or `close`) closes the connection.

    `reply` is the same Reply that `ask` returns. A stream that breaks raises, with `.partial`. One that you close ends.
    One whose task is cancelled closes its connection and keeps `partial`.
    """

    def __init__(self, call: Call, transport: AsyncTransport, *, ends_transport: bool = False) -> None:
        self._state = ExchangeState(call)
        driver = AsyncDriver(self._state, transport, ends_transport=ends_transport)
        super().__init__(driver, driver.batches())

    async def drain(self) -> Reply[Output_co]:
        """Read the rest of the events. Returns the whole reply."""
        async for _ in self._batches:
            pass
        return self._state.reply(closed=True)

    @property
    def reply(self) -> Reply[Output_co]:  # async only
        """The whole reply, once all events are read. `await drain()` reads them."""
        return self._state.reply(closed=self._driver.is_closed)

    @property
    def partial(self) -> Reply[Output_co] | None:
        """The reply so far; None when nothing has arrived."""
        return self._state.partial

    @property
    def partial_output(self) -> Any:
        """The output so far, as far as its events were read: JSON that is not checked, and a value of the type that
        `output=` names once it is complete. None when there is none yet. Without `output=`, the text so far.
        """
        return self._state.show_output()


async def flatten(batches: AsyncIterator[list[Item]]) -> AsyncGenerator[Item, None]:
    """Return the items of batches one by one."""
    async for batch in batches:
        for event in batch:
            yield event


async def _flatten_noted(batches: AsyncIterator[list[Item]], output: PartialOutput) -> AsyncGenerator[Item, None]:
    """Note each event before the caller gets it, so that the output in progress belongs to it."""
    async for batch in batches:
        for event in batch:
            output.add((event,))
            yield event


async def _note_batches(batches: AsyncIterator[list[Item]], output: PartialOutput) -> AsyncGenerator[list[Item], None]:
    async for batch in batches:
        output.add(batch)
        yield batch


async def run_flow(
    call: CallLike,
    flow: Callable[[], Flow[Whole]],
    transport: AsyncTransport,
    on_event: Callable[[Any], object] | None = None,
    *,
    ends_transport: bool = False,
) -> Whole:
    """Run a flow to its result. `on_event` gets what it emits on the way. A cancelled task closes its connection."""
    state = FlowState(call, flow)
    async with aclosing(AsyncDriver(state, transport, ends_transport=ends_transport).batches()) as batches:
        async for batch in batches:
            if on_event is not None:
                for event in batch:
                    on_event(event)
    if state.whole is None:
        raise RuntimeError("a flow ends with a result or raises.")
    return state.whole


_prepared: set[tuple[str, Tags]] = set()  # async only
_MAX_PREPARED = 64  # async only


async def prepare(target: Target) -> None:  # async only
    """Import a dialect and compile the patterns of its tags, in a thread. The first call must not block the loop."""
    key = (target.dialect, target.facts.tags)
    if key not in _prepared and len(_prepared) < _MAX_PREPARED:
        await asyncio.to_thread(_prepare, *key)
        _prepared.add(key)


def _prepare(dialect: str, tags: Tags) -> None:  # async only
    from asides.dialects import load_dialect
    from asides.wire.inline_tags.splitter import Splitter

    load_dialect(dialect)
    for late in (False, True) if tags else ():
        splitter = Splitter(tags, late=late)
        for piece in ("<", "a>", "b", "<"):
            splitter.feed(piece)
        splitter.finish()


class AsyncDriver:
    """Drives a flow. It holds no reference to its stream, so that an unused stream is garbage-collected and closed."""

    # sync: __slots__ = ("_closed", "_handlers", "_transport", "is_closed", "response", "state")
    __slots__ = (  # async only
        "_closed",
        "_ends_transport",
        "_handlers",
        "_transport",
        "is_closed",
        "response",
        "state",
    )

    def __init__(
        self,
        state: FlowState[Any],
        transport: AsyncTransport,
        handlers: StepHandlers[Awaitable[Any]] = MappingProxyType({}),
        *,
        ends_transport: bool = False,
    ) -> None:
        """`handlers`: for steps that only this flow yields. `ends_transport`: close the transport after the flow."""
        self.state = state
        self.response: AsyncResponse | None = None
        self.is_closed = False
        self._closed: asyncio.Event | None = None
        self._ends_transport = ends_transport  # async only
        self._handlers = handlers
        self._transport = transport

    @property
    def closed(self) -> asyncio.Event:
        """Set when the stream is closed. Created on first use: most streams never wait, and it is large."""
        if self._closed is None:
            self._closed = asyncio.Event()
            if self.is_closed:
                self._closed.set()
        return self._closed

    def close(self) -> None:
        """Let the flow end before its next step."""
        self.is_closed = True
        if self._closed is not None:
            self._closed.set()

    async def batches(self) -> AsyncGenerator[list[Any], None]:
        """Carry out each step of the flow; yield what it emits. Ends early when the stream is closed."""
        state = self.state
        await prepare(state.call.target)  # async only
        flow = state.begin()
        planner = state.planner  # async only
        read: Callable[[float | None], Awaitable[bytes]] | None = None
        value: Any = None
        error: TransportError | ConfigError | None = None
        try:
            while not self.is_closed:
                try:
                    # sync: step: Step = flow.send(value) if error is None else flow.throw(error)
                    step: Step = (  # async only
                        (await advance_apart(planner, flow, value, error)).unwrap()
                        if planner is not None
                        else flow.send(value)
                        if error is None
                        else flow.throw(error)
                    )
                except StopIteration as end:
                    state.whole = end.value
                    return
                value = error = None
                try:
                    if isinstance(step, Emit):
                        yield step.events
                    elif isinstance(step, Read) and read is not None:
                        value = await read(step.patience)
                    elif isinstance(step, Open):
                        response = await self._open(step.request)
                        value, read = await response.head(), response.read
                        if 200 <= value.status < 300:  # async only
                            planner = None
                    elif isinstance(step, Sleep):
                        state.check_wait(step.seconds)
                        # sync: self.closed.wait(step.seconds)
                        await self._sleep(step.seconds)  # async only
                    elif isinstance(step, RunTools):
                        from asides.transports.tool_executor import run_jobs_async

                        value = [None] * len(step.jobs)
                        async with aclosing(run_jobs_async(step.jobs, step.most, self.closed)) as outcomes:
                            async for number, outcome in outcomes:
                                value[number] = outcome
                                yield step.report(number, outcome)
                    elif isinstance(step, Allow):
                        state.allow(step.seconds)
                    elif isinstance(step, UseCall):
                        state.call = step.call
                    elif isinstance(step, FetchKey):
                        from asides.transports.fetch_key import fetch_async

                        # sync: value = fetch(step.key)
                        value = await fetch_async(step.key, state)  # async only
                    elif isinstance(step, Now):
                        value = time.monotonic()
                    else:
                        value = await find_handler(self._handlers, step)(step)
                except TransportError as problem:
                    error = state.settle_error(problem)
                except ConfigError as problem:
                    error = problem  # The server of a local model cannot be started.
        except AsidesError as problem:
            state.failure = problem
            raise
        finally:
            try:
                flow.close()
            finally:
                if self.response is not None:
                    self.response.close()
                await self.end_transport()  # async only

    async def end_transport(self) -> None:  # async only
        """Close the transport if it serves this flow only."""
        if self._ends_transport:
            await self._transport.close()

    async def _open(self, request: HttpRequest) -> AsyncResponse:
        if self.response is not None:
            self.response.close()
        call = self.state.call
        if call.target.launches:
            from asides.transports.launch import direct_to_running_server, direct_to_server

            # sync: ready = direct_to_server(request, call.target)
            ready = direct_to_running_server(request, call.target)  # async only
            if ready is None:  # async only
                # Starting a server takes time, so a thread does it.
                ready = await asyncio.to_thread(direct_to_server, request, call.target)
        else:
            ready = add_credential(request, call.key)
        self.response = self._transport.open(ready, self.state.timeout())
        if self.is_closed:
            self.response.close()
        return self.response

    async def _sleep(self, seconds: float) -> None:  # async only
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.closed.wait()
