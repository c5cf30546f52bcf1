"""How far an agent's run has come: what a blocking and an awaiting stream of it keep, and decide, alike.

Not here: the loop (flows/agent) and the driving (run_streams).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from asides.flows.agent import Run
from asides.transports.flow_state import FlowState
from asides.values.errors import AgentError
from asides.values.messages import Message
from asides.values.result import Output, Result, StepEnded
from asides.values.usage import Usage


class Keep(Protocol):
    """Who is told what is new in a conversation, and what that cost."""

    def __call__(self, messages: Sequence[Message], /, *, usage: Usage | None = None) -> object:
        """Take it."""
        ...


class RunState(FlowState[Result[Output]]):
    """One run of an agent. `keep` gets what is new in the conversation, after each step and at the end."""

    __slots__ = ("_keep", "_settled", "run")

    def __init__(self, run: Run[Output], keep: Keep | None = None) -> None:
        self.run = run
        self._keep = keep
        self._settled = False
        super().__init__(run.call, run.steps)

    @property
    def partial(self) -> Result[Output | None]:
        """What the run has come to so far."""
        return self.run.so_far()

    def note(self, batch: Sequence[Any]) -> None:
        """These events are on their way to the caller."""
        if self._keep is not None and any(type(event) is StepEnded for event in batch):
            self._keep(self.run.news(), usage=self.run.spent())

    def settle(self) -> None:
        """The run goes no further, for whatever reason."""
        if self._settled:
            return
        self._settled = True
        self.run.seal()
        if self._keep is not None and (news := self.run.news()):
            self._keep(news, usage=self.run.spent())

    def result(self, *, closed: bool) -> Result[Output]:
        """What the run came to, or the reason why it came to nothing."""
        if self.whole is not None:
            return self.whole
        if self.failure is not None:
            raise self.failure
        error = AgentError(
            "the run was closed before it came to its end. To do: read it to its end; .result has what there is."
            if closed
            else "the run is not at its end yet. To do: read on, or await drain()."
        )
        error.result = self.run.so_far()
        raise error

    def __repr__(self) -> str:
        return str(self.run)
