"""`RunState`: the state of an agent's run, which the sync and the async stream share."""

from __future__ import annotations

from typing import Any

from asides.flows.agent import Run
from asides.transports.flow_state import FlowState
from asides.values.errors import AgentError
from asides.values.reply import Output
from asides.values.result import Result


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
            "the run was closed before its end. Read it to its end; .result has the run so far."
            if closed
            else "the run is not at its end yet. Read on, or await drain()."
        )
        error.result = self.run.so_far()
        raise error

    def __repr__(self) -> str:
        return str(self.run)
