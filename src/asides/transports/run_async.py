"""`AsyncRunStream`: an agent's run as a stream of events."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Generic

from asides.flows.agent import Run
from asides.transports.async_ import AsyncDriver, AsyncEvents
from asides.transports.protocols import AsyncTransport
from asides.transports.run_state import RunState
from asides.values.reply import Output
from asides.values.result import Result, RunEvent


class AsyncRunStream(AsyncEvents[RunEvent], Generic[Output]):
    """The events of an agent's run. Iterate over it; leave the `async with`, or await `close`, to end it immediately.

    `result` is the same Result that `run` returns. However a run ends, its conversation can be continued.
    """

    def __init__(self, state: RunState[Output], transport: AsyncTransport, *, ends_transport: bool = False) -> None:
        self._state = state
        driver = AsyncDriver(state, transport, ends_transport=ends_transport)
        batches = driver.batches()
        super().__init__(driver, _close_run(batches, state.run) if state.run.saves else batches)

    async def drain(self) -> Result[Output]:
        """Read the rest of the events. Returns the result of the run."""
        async for _ in self._batches:
            pass
        return self._state.result(closed=True)

    @property
    def result(self) -> Result[Output]:  # async only
        """The result of the run, once all events are read; `await drain()` reads them."""
        return self._state.result(closed=self._driver.is_closed)

    @property
    def partial(self) -> Result[Output | None]:
        """The result so far."""
        return self._state.run.so_far()

    @property
    def partial_output(self) -> Any:
        """The output so far, as far as its events were read: JSON that is not checked, and a value of the agent's
        output type once it is complete. Each step starts over. Without an output type, the text of the step.
        """
        return self._state.show_output()


async def _close_run(batches: AsyncGenerator[list[Any], None], run: Run[Any]) -> AsyncGenerator[list[Any], None]:
    """Yield the batches, then close the run, which saves its rest."""
    try:
        async for batch in batches:
            yield batch
    finally:
        # First: a cancelled task may not be able to await again.
        run.close()
        await batches.aclose()
