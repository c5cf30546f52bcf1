"""An agent's run as a stream: `RunStream` sync, `AsyncRunStream` async, and `RunState`, which both share.

Not here: the loop (flows/agent), and carrying out its steps (sync, async_).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Sequence
from typing import Any, Generic, Protocol

from asides.flows.agent import Run
from asides.transports.async_ import AsyncDriver, AsyncEvents, close_after
from asides.transports.flow_state import FlowState
from asides.transports.protocols import AsyncTransport, Transport
from asides.transports.sync import Events, SyncDriver
from asides.values.errors import AgentError
from asides.values.messages import Message
from asides.values.result import Output, Result, RunEvent, StepEnded
from asides.values.usage import Usage


class Save(Protocol):
    """Saves new messages of a run and their usage in a conversation."""

    def __call__(self, messages: Sequence[Message], /, *, usage: Usage | None = None) -> object:
        """Save them."""
        ...


class RunState(FlowState[Result[Output]]):
    """The state of one run. `save`, where the run has a conversation, gets its new messages."""

    __slots__ = ("run", "save")

    def __init__(self, run: Run[Output], save: Save | None = None) -> None:
        self.run = run
        self.save = save
        super().__init__(run.call, run.steps)

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

    `result` is the same Result that `send` returns. However a run ends, its conversation can be sent on.
    """

    def __init__(self, state: RunState[Output], transport: Transport) -> None:
        self._state = state
        driver = SyncDriver(state, transport)
        batches = driver.batches()
        super().__init__(driver, batches if state.save is None else _save_steps(batches, state.run, state.save))

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


def _save_steps(
    batches: Generator[list[Any], None, None], run: Run[Any], save: Save
) -> Generator[list[Any], None, None]:
    """Yield the batches. Save each step of the run when it has ended, and the rest at the end."""
    try:
        for batch in batches:
            _save_step(batch, run, save)
            yield batch
    finally:
        batches.close()
        _save_rest(run, save)


def _save_step(batch: list[Any], run: Run[Any], save: Save) -> None:
    if any(type(event) is StepEnded for event in batch):
        save(run.take_new_messages(), usage=run.take_new_usage())


def _save_rest(run: Run[Any], save: Save) -> None:
    run.close()
    if messages := run.take_new_messages():
        save(messages, usage=run.take_new_usage())


class AsyncRunStream(AsyncEvents[RunEvent], Generic[Output]):
    """The events of an agent's run. Iterate over it; leave the `async with`, or await `close`, to end it at once.

    `result` is the same Result that `send` returns. However a run ends, its conversation can be sent on.
    """

    def __init__(self, state: RunState[Output], transport: AsyncTransport, *, ends_transport: bool = False) -> None:
        self._state = state
        driver = AsyncDriver(state, transport)
        batches = driver.batches()
        if state.save is not None:
            batches = _save_steps_async(batches, state.run, state.save)
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
        return self._state.result(closed=self._driver.closed.is_set())

    @property
    def partial(self) -> Result[Output | None]:
        """The result so far."""
        return self._state.run.so_far()


async def _save_steps_async(
    batches: AsyncGenerator[list[Any], None], run: Run[Any], save: Save
) -> AsyncGenerator[list[Any], None]:
    """Yield the batches. Save each step of the run when it has ended, and the rest at the end."""
    try:
        async for batch in batches:
            _save_step(batch, run, save)
            yield batch
    finally:
        # First, since a cancelled task may not be able to await anything more.
        _save_rest(run, save)
        await batches.aclose()
