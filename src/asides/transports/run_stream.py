"""An agent's run as a stream, blocking and awaiting. Not here: what both of them keep (run_progress), and the loop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import Any, Generic

from asides.transports.async_ import AsyncEvents, close_after
from asides.transports.async_ import Driver as AsyncDriver
from asides.transports.protocols import AsyncTransport, Transport
from asides.transports.sync import Driver, Events
from asides.values.result import Output, Result, RunEvent


class RunStream(Events[RunEvent], Generic[Output]):
    """The events of an agent's run: iterate over it, and leave the `with` (or call `close`) to be done with it at once.

    `result` is the same Result that `send` returns. However a run ends, its conversation can be sent on.
    """

    def __init__(self, progress: RunState[Output], transport: Transport) -> None:
        self._progress = progress
        driver = Driver(progress, transport)
        super().__init__(driver, _kept(driver.batches(), progress))

    @property
    def result(self) -> Result[Output]:
        """What the run came to; reads what has not been read yet."""
        for _ in self._batches:
            pass
        return self._progress.result(closed=True)

    @property
    def partial(self) -> Result[Output | None]:
        """What the run has come to so far."""
        return self._progress.partial


def _kept(batches: Generator[list[Any], None, None], progress: RunState[Any]) -> Generator[list[Any], None, None]:
    """The batches; the conversation gets each step when it is over, and whatever came of the last one at the end."""
    try:
        for batch in batches:
            progress.note(batch)
            yield batch
    finally:
        batches.close()
        progress.settle()


class AsyncRunStream(AsyncEvents[RunEvent], Generic[Output]):
    """The events of an agent's run: iterate over it, and leave the `async with` (or await `close`) to be done with it
    at once.

    `result` is the same Result that `send` returns. However a run ends, its conversation can be sent on.
    """

    def __init__(self, progress: RunState[Output], transport: AsyncTransport, *, ends_transport: bool = False) -> None:
        self._progress = progress
        driver = AsyncDriver(progress, transport)
        batches = _kept_awaiting(driver.batches(), progress)
        super().__init__(
            driver, close_after(batches, transport) if ends_transport else batches, transport, ends_transport
        )

    async def drain(self) -> Result[Output]:
        """Read what has not been read yet; what the run came to."""
        async for _ in self._batches:
            pass
        return self._progress.result(closed=True)

    @property
    def result(self) -> Result[Output]:
        """What the run came to, once the events are at their end; `await drain()` brings them there."""
        return self._progress.result(closed=self._driver.closed.is_set())

    @property
    def partial(self) -> Result[Output | None]:
        """What the run has come to so far."""
        return self._progress.partial


async def _kept_awaiting(
    batches: AsyncGenerator[list[Any], None], progress: RunState[Any]
) -> AsyncGenerator[list[Any], None]:
    """The batches; the conversation gets each step when it is over, and whatever came of the last one at the end."""
    try:
        async for batch in batches:
            progress.note(batch)
            yield batch
    finally:
        # First, since a task that is being cancelled may not get to wait for the rest.
        progress.settle()
        await batches.aclose()
