"""A stream, blocking: it carries out what a flow asks for. `awaiting` is its twin, `progress` what they share.

Not here: who carries the bytes (a transport).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from asides.dialects.dialect import HttpRequest
from asides.flows.call import Call, CallLike
from asides.flows.steps import Allow, Done, Emit, Flow, Open, Read, RunTools, Sleep, Whole, advance
from asides.transports.flow_state import FlowState, Progress
from asides.transports.launch import settled
from asides.transports.protocols import Response, Transport
from asides.values.errors import AsidesError, TransportError
from asides.values.events import Event
from asides.values.reply import Reply

if TYPE_CHECKING:
    from asides.agents.tools.runnable import JobOutcome

Arriving = TypeVar("Arriving")


class Events(Generic[Arriving]):
    """Events that arrive, and whoever drives the flow that they come from."""

    def __init__(self, driver: SyncDriver, batches: Generator[list[Arriving], None, None]) -> None:
        self._driver = driver
        self._batches = batches
        self._events = _flattened(batches)

    def __iter__(self) -> Iterator[Arriving]:
        return self._events

    def __next__(self) -> Arriving:
        return next(self._events)

    def batches(self) -> Iterator[list[Arriving]]:
        """The events in the lists in which they came, one for each read: less work for those who pass them on."""
        return self._batches

    def close(self) -> None:
        """Close the connection at once, from any thread. What came stays in `partial`."""
        self._driver.closed.set()
        if (response := self._driver.response) is not None:
            response.close()
        # Another thread may be reading at this moment; it finds the connection closed and ends the flow itself.
        with suppress(ValueError):
            self._batches.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._driver.progress})"


class Stream(Events[Event]):
    """The events of one reply: iterate over it, and leave the `with` (or call `close`) to be done with it at once.

    `reply` is the same Reply that `ask` returns. A stream that breaks raises, with `.partial`; one that you close ends.
    """

    def __init__(self, call: Call, transport: Transport) -> None:
        self._progress = Progress(call)
        driver = SyncDriver(self._progress, transport)
        super().__init__(driver, driver.batches())

    @property
    def reply(self) -> Reply:
        """The whole reply; reads what has not been read yet."""
        for _ in self._batches:
            pass
        return self._progress.reply(closed=True)

    @property
    def partial(self) -> Reply | None:
        """What has come so far; None when nothing has."""
        return self._progress.partial


def _flattened(batches: Iterator[list[Arriving]]) -> Generator[Arriving, None, None]:
    for batch in batches:
        yield from batch


def carry_out(call: CallLike, flow: Callable[[], Flow[Whole]], transport: Transport) -> Whole:
    """What comes of a flow that hands out nothing on its way."""
    course = FlowState(call, flow)
    for _ in SyncDriver(course, transport).batches():
        pass
    if course.whole is None:
        raise RuntimeError("a flow ends with a result or raises.")
    return course.whole


class SyncDriver:
    """What drives a flow. Of a stream it knows nothing, and that is so closed when the last who holds it lets go."""

    def __init__(self, progress: FlowState[Any], transport: Transport) -> None:
        self.progress = progress
        self.response: Response | None = None
        self.closed = threading.Event()
        self._transport = transport

    def batches(self) -> Generator[list[Any], None, None]:
        """Carry out what the flow asks for. A stream that was closed meanwhile ends here."""
        progress = self.progress
        flow = progress.begin()
        read: Callable[[float | None], bytes] | None = None
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
                        value = read(step.patience)
                    elif isinstance(step, Open):
                        response = self._open(step.request)
                        value, read = response.head(), response.read
                    elif isinstance(step, Sleep):
                        progress.check_wait(step.seconds)
                        self.closed.wait(step.seconds)
                    elif isinstance(step, Done):
                        progress.whole = step.result
                        return
                    elif isinstance(step, RunTools):
                        value = yield from self._run_tools(step)
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

    def _run_tools(self, step: RunTools) -> Generator[list[Any], None, list[JobOutcome | None]]:
        from asides.transports.tool_executor import run_jobs

        outcomes: list[JobOutcome | None] = [None] * len(step.jobs)
        for number, outcome in run_jobs(step.jobs, step.most, self.closed):
            outcomes[number] = outcome
            yield step.report(number, outcome)
        return outcomes

    def _open(self, request: HttpRequest) -> Response:
        if self.response is not None:
            self.response.close()
        request = settled(request, self.progress.call)
        self.response = self._transport.open(request, self.progress.timeout())
        if self.closed.is_set():
            self.response.close()
        return self.response
