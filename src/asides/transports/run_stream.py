"""An agent's run as a stream: `RunStream` sync, `AsyncRunStream` async, and `RunState`, which both share.

Not here: the loop (flows/agent), and carrying out its steps (sync, async_).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import Any, Generic

from asides.flows.agent import Run
from asides.transports.async_ import AsyncDriver, AsyncEvents, close_after
from asides.transports.flow_state import FlowState
from asides.transports.protocols import AsyncTransport, Transport
from asides.transports.sync import Events, SyncDriver
from asides.values.errors import AgentError
from asides.values.reply import Output
from asides.values.result import Result, RunEvent


class RunState(FlowState[Result[Output]]):
    """The state of one run."""

    __slots__ = ("run",)

    def __init__(self, run: Run[Output]) -> None:
        self.run = run
        super().__init__(run.call, run.steps, None if run.expected is None else lambda: run.expected)

    def show_output(self) -> Any:
        """The output of the current step so far; without an output type, its text."""
        if self.whole is not None:
            return self.whole.output
        return self.run.so_far().text if self.output is None else self.output.show()

    def result(self, *, closed: bool) -> Result[Output]:
        """The result of the run. Raises the error that ended it, or AgentError when it is not over."""
        if self.whole is not None:
            return self.whole
        if self.failure is not None:
            raise self.failure
        error = AgentError(
            "the run was closed before its end. To do: read it to its end; .result has the run so far."
            if closed
            else "the run is not at its end yet. To do: read on, or await drain()."
        )
        error.result = self.run.so_far()
        raise error

    def __repr__(self) -> str:
        return str(self.run)


class RunStream(Events[RunEvent], Generic[Output]):
    """The events of an agent's run. Iterate over it; leave the `with`, or call `close`, to end it at once.

    `result` is the same Result that `run` returns. However a run ends, its conversation can be sent on.
    """

    def __init__(self, state: RunState[Output], transport: Transport) -> None:
        self._state = state
        driver = SyncDriver(state, transport)
        batches = driver.batches()
        super().__init__(driver, _close_run(batches, state.run) if state.run.saves else batches)

    @property
    def result(self) -> Result[Output]:
        """The result of the run; reads the rest of the events first."""
        for _ in self._batches:
            pass
        return self._state.result(closed=True)

    @property
    def partial(self) -> Result[Output | None]:
        """The result so far."""
        return self._state.run.so_far()

    @property
    def partial_output(self) -> Any:
        """The output so far, as far as its events were read: JSON that is not checked, and a value of the agent's
        output type once it is complete. Each step begins anew. Without an output type, the text of the step.
        """
        return self._state.show_output()


def _close_run(batches: Generator[list[Any], None, None], run: Run[Any]) -> Generator[list[Any], None, None]:
    """Yield the batches, then close the run, which saves its rest."""
    try:
        yield from batches
    finally:
        batches.close()
        run.close()


class AsyncRunStream(AsyncEvents[RunEvent], Generic[Output]):
    """The events of an agent's run. Iterate over it; leave the `async with`, or await `close`, to end it at once.

    `result` is the same Result that `run` returns. However a run ends, its conversation can be sent on.
    """

    def __init__(self, state: RunState[Output], transport: AsyncTransport, *, ends_transport: bool = False) -> None:
        self._state = state
        driver = AsyncDriver(state, transport)
        batches = driver.batches()
        if state.run.saves:
            batches = _close_run_async(batches, state.run)
        super().__init__(
            driver, close_after(batches, transport) if ends_transport else batches, transport, ends_transport
        )

    async def drain(self) -> Result[Output]:
        """Read the rest of the events; return the result of the run."""
        async for _ in self._batches:
            pass
        return self._state.result(closed=True)

    @property
    def result(self) -> Result[Output]:
        """The result of the run, once all events are read; `await drain()` reads them."""
        return self._state.result(closed=self._driver.is_closed)

    @property
    def partial(self) -> Result[Output | None]:
        """The result so far."""
        return self._state.run.so_far()

    @property
    def partial_output(self) -> Any:
        """The output so far, as far as its events were read: JSON that is not checked, and a value of the agent's
        output type once it is complete. Each step begins anew. Without an output type, the text of the step.
        """
        return self._state.show_output()


async def _close_run_async(batches: AsyncGenerator[list[Any], None], run: Run[Any]) -> AsyncGenerator[list[Any], None]:
    """Yield the batches, then close the run, which saves its rest."""
    try:
        async for batch in batches:
            yield batch
    finally:
        # First, since a cancelled task may not be able to await anything more.
        run.close()
        await batches.aclose()
