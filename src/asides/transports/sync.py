# Written by scripts/unasync.py from async_.py. Do not edit.
"""The sync driver: carries out the steps of a flow. `flow_state` is shared with `async_`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from asides.dialects.dialect import HttpRequest
from asides.flows.call import Call, CallLike
from asides.flows.steps import Allow, Emit, FetchKey, Flow, Now, Open, Read, RunTools, Sleep, Step, UseCall, Whole
from asides.transports.flow_state import ExchangeState, FlowState, StepHandlers, add_credential, find_handler
from asides.transports.protocols import Response, Transport
from asides.values.errors import AsidesError, ConfigError, TransportError
from asides.values.events import Event
from asides.values.reply import Output_co, Reply

if TYPE_CHECKING:
    from asides.agents.outputs.expected_output import PartialOutput
    from asides.values.visibility import Visibility

Item = TypeVar("Item")


class Events(Generic[Item]):
    """Events as they arrive, and the driver of the flow that emits them."""

    def __init__(self, driver: SyncDriver, batches: Generator[list[Item], None, None]) -> None:
        self._driver = driver
        self._batches = batches

    @cached_property
    def _events(self) -> Generator[Item, None, None]:
        output = self._driver.state.output
        return flatten(self._batches) if output is None else _flatten_noted(self._batches, output)

    def __iter__(self) -> Iterator[Item]:
        return self._events

    def __next__(self) -> Item:
        return next(self._events)

    def batches(self) -> Iterator[list[Item]]:
        """The events in lists, one list for each read. Cheaper than single events for code that forwards them."""
        if "_events" in self.__dict__ and not self._driver.is_closed:
            # Single events were read. The rest of their batch is there.
            return ([event] for event in self._events)
        output = self._driver.state.output
        return self._batches if output is None else _note_batches(self._batches, output)

    @property
    def visibility(self) -> Visibility | None:
        """Which thinking of these events each place may see; None: the default."""
        return self._driver.state.call.policy.visibility

    def close(self) -> None:
        """Close the connection immediately, from any thread. `partial` keeps what had arrived."""
        self._driver.close()
        if (response := self._driver.response) is not None:
            response.close()
        # Another thread may be reading; it finds the connection closed and ends the flow itself.
        for generator in (self._events, self._batches):
            with suppress(ValueError):
                generator.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._driver.state})"


class Stream(Events[Event], Generic[Output_co]):
    """The events of one reply. Iterate over it; leaving the `with` (or `close`) closes the connection.

    `reply` is the same Reply that `ask` returns. A stream that breaks raises, with `.partial`. One that you close ends.
    """

    def __init__(self, call: Call, transport: Transport) -> None:
        self._state = ExchangeState(call)
        driver = SyncDriver(self._state, transport)
        super().__init__(driver, driver.batches())

    @property
    def reply(self) -> Reply[Output_co]:
        """The whole reply. Reads the rest of the events first."""
        for _ in self._batches:
            pass
        return self._state.reply(closed=True)

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


def flatten(batches: Iterator[list[Item]]) -> Generator[Item, None, None]:
    """Return the items of batches one by one."""
    for batch in batches:
        yield from batch


def _flatten_noted(batches: Iterator[list[Item]], output: PartialOutput) -> Generator[Item, None, None]:
    """Note each event before the caller gets it, so that the output in progress belongs to it."""
    for batch in batches:
        for event in batch:
            output.add((event,))
            yield event


def _note_batches(batches: Iterator[list[Item]], output: PartialOutput) -> Generator[list[Item], None, None]:
    for batch in batches:
        output.add(batch)
        yield batch


def run_flow(
    call: CallLike,
    flow: Callable[[], Flow[Whole]],
    transport: Transport,
    on_event: Callable[[Any], object] | None = None,
) -> Whole:
    """Run a flow to its result. `on_event` gets what it emits on the way."""
    state = FlowState(call, flow)
    with closing(SyncDriver(state, transport).batches()) as batches:
        for batch in batches:
            if on_event is not None:
                for event in batch:
                    on_event(event)
    if state.whole is None:
        raise RuntimeError("a flow ends with a result or raises.")
    return state.whole


class SyncDriver:
    """Drives a flow. It holds no reference to its stream, so that an unused stream is garbage-collected and closed."""

    __slots__ = ("_closed", "_handlers", "_transport", "is_closed", "response", "state")

    def __init__(
        self,
        state: FlowState[Any],
        transport: Transport,
        handlers: StepHandlers[Any] = MappingProxyType({}),
    ) -> None:
        """`handlers`: for steps that only this flow yields."""
        self.state = state
        self.response: Response | None = None
        self.is_closed = False
        self._closed: threading.Event | None = None
        self._handlers = handlers
        self._transport = transport

    @property
    def closed(self) -> threading.Event:
        """Set when the stream is closed. Created on first use: most streams never wait, and it is large."""
        if self._closed is None:
            self._closed = threading.Event()
            if self.is_closed:
                self._closed.set()
        return self._closed

    def close(self) -> None:
        """Let the flow end before its next step."""
        self.is_closed = True
        if self._closed is not None:
            self._closed.set()

    def batches(self) -> Generator[list[Any], None, None]:
        """Carry out each step of the flow; yield what it emits. Ends early when the stream is closed."""
        state = self.state
        flow = state.begin()
        read: Callable[[float | None], bytes] | None = None
        value: Any = None
        error: TransportError | ConfigError | None = None
        try:
            while not self.is_closed:
                try:
                    step: Step = flow.send(value) if error is None else flow.throw(error)
                except StopIteration as end:
                    state.whole = end.value
                    return
                value = error = None
                try:
                    if isinstance(step, Emit):
                        yield step.events
                    elif isinstance(step, Read) and read is not None:
                        value = read(step.patience)
                    elif isinstance(step, Open):
                        response = self._open(step.request)
                        value, read = response.head(), response.read
                    elif isinstance(step, Sleep):
                        state.check_wait(step.seconds)
                        self.closed.wait(step.seconds)
                    elif isinstance(step, RunTools):
                        from asides.transports.tool_executor import run_jobs

                        value = [None] * len(step.jobs)
                        with closing(run_jobs(step.jobs, step.most, self.closed)) as outcomes:
                            for number, outcome in outcomes:
                                value[number] = outcome
                                yield step.report(number, outcome)
                    elif isinstance(step, Allow):
                        state.allow(step.seconds)
                    elif isinstance(step, UseCall):
                        state.call = step.call
                    elif isinstance(step, FetchKey):
                        from asides.transports.fetch_key import fetch

                        value = fetch(step.key)
                    elif isinstance(step, Now):
                        value = time.monotonic()
                    else:
                        value = find_handler(self._handlers, step)(step)
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

    def _open(self, request: HttpRequest) -> Response:
        if self.response is not None:
            self.response.close()
        call = self.state.call
        if call.target.launches:
            from asides.transports.launch import direct_to_server

            ready = direct_to_server(request, call.target)
        else:
            ready = add_credential(request, call.key)
        self.response = self._transport.open(ready, self.state.timeout())
        if self.is_closed:
            self.response.close()
        return self.response
