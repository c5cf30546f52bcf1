# Written by scripts/unasync.py from run_async.py. Do not edit.
"""`RunStream`: an agent's run as a stream of events."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Generic

from asides.flows.agent import Run
from asides.transports.protocols import Transport
from asides.transports.run_state import RunState
from asides.transports.sync import Events, SyncDriver
from asides.values.reply import Output
from asides.values.result import Result, RunEvent


class RunStream(Events[RunEvent], Generic[Output]):
    """The events of an agent's run. Iterate over it; leave the `with`, or call `close`, to end it immediately.

    `result` is the same Result that `run` returns. However a run ends, its conversation can be continued.
    """

    def __init__(self, state: RunState[Output], transport: Transport) -> None:
        self._state = state
        driver = SyncDriver(state, transport)
        batches = driver.batches()
        super().__init__(driver, _close_run(batches, state.run) if state.run.saves else batches)

    @property
    def result(self) -> Result[Output]:
        """The result of the run. Reads the rest of the events first."""
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
        output type once it is complete. Each step starts over. Without an output type, the text of the step.
        """
        return self._state.show_output()


def _close_run(batches: Generator[list[Any], None, None], run: Run[Any]) -> Generator[list[Any], None, None]:
    """Yield the batches, then close the run, which saves its rest."""
    try:
        yield from batches
    finally:
        run.close()
        batches.close()
