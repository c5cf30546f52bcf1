"""An agent's run as a stream: `RunStream` sync, `AsyncRunStream` async, and `RunState`, which both share.

Not here: the loop (flows/agent), and carrying out its steps (sync, async_).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Sequence
from typing import Any, Generic, Protocol

from asides.flows.agent import Run
from asides.transports.async_ import AsyncEvents, closing_behind
from asides.transports.async_ import Driver as AsyncDriver
from asides.transports.flow_state import Course
from asides.transports.protocols import AsyncTransport, Transport
from asides.transports.sync import Driver, Events
from asides.values.errors import AgentError
from asides.values.messages import Message
from asides.values.result import Output, Result, RunEvent, StepEnded
from asides.values.usage import Usage


class Save(Protocol):
    """Saves new messages of a run and their usage in a conversation."""

    def __call__(self, messages: Sequence[Message], /, *, usage: Usage | None = None) -> object:
        """Save them."""
        ...


class RunState(Course[Result[Output]]):
    """The state of one run. `save` gets the new messages after each step and at the end."""

    __slots__ = ("_closed", "_save", "run")

    def __init__(self, run: Run[Output], save: Save | None = None) -> None:
        self.run = run
        self._save = save
        self._closed = False
        super().__init__(run.call, run.steps)

    def note(self, batch: Sequence[Any]) -> None:
        """Save the new messages when the batch ends a step."""
        if self._save is not None and any(type(event) is StepEnded for event in batch):
            self._save(self.run.take_new_messages(), usage=self.run.take_new_usage())

    def close(self) -> None:
        """The run goes no further, for whatever reason. Save the rest."""
        if self._closed:
            return
        self._closed = True
        self.run.close()
        if self._save is not None and (messages := self.run.take_new_messages()):
            self._save(messages, usage=self.run.take_new_usage())

    def result(self, *, closed: bool) -> Result[Output]:
        """The result of the run. Raises the error that ended it, or AgentError when it is not over."""
        if self.whole is not None:
            return self.whole
        if self.failure is not None:
            raise self.failure
        error = AgentError(
            "the run was closed before its end. To do: read it to its end; .result has what there is."
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
        driver = Driver(state, transport)
        super().__init__(driver, _save_steps(driver.batches(), state))

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


def _save_steps(batches: Generator[list[Any], None, None], state: RunState[Any]) -> Generator[list[Any], None, None]:
    """The batches. The conversation gets each step when it is over, and the rest at the end."""
    try:
        for batch in batches:
            state.note(batch)
            yield batch
    finally:
        batches.close()
        state.close()


class AsyncRunStream(AsyncEvents[RunEvent], Generic[Output]):
    """The events of an agent's run. Iterate over it; leave the `async with`, or await `close`, to end it at once.

    `result` is the same Result that `send` returns. However a run ends, its conversation can be sent on.
    """

    def __init__(self, state: RunState[Output], transport: AsyncTransport, *, ends_transport: bool = False) -> None:
        self._state = state
        driver = AsyncDriver(state, transport)
        batches = _save_steps_async(driver.batches(), state)
        super().__init__(
            driver, closing_behind(batches, transport) if ends_transport else batches, transport, ends_transport
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
    batches: AsyncGenerator[list[Any], None], state: RunState[Any]
) -> AsyncGenerator[list[Any], None]:
    """The batches. The conversation gets each step when it is over, and the rest at the end."""
    try:
        async for batch in batches:
            state.note(batch)
            yield batch
    finally:
        # First, since a cancelled task may not get to wait for the rest.
        state.close()
        await batches.aclose()
