"""An agent's run as values: its events, and the `Result` at its end. Not here: the run itself (flows/agent).

    run := step* RunEnded
    step := StepStarted (events of one reply) (ToolStarted* ToolFinished*)? StepEnded

The events of a reply are those of `stream`, so one `match` serves both. Calls of one reply start in order and finish in
any order. RunEnded is the only terminal event: it is always the last, comes once, and comes before an error is raised
too. The ReplyEnded of each step does not end the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec

from asides.values.events import Event
from asides.values.messages import Message
from asides.values.notices import Notice
from asides.values.parts import ToolCall, ToolResult
from asides.values.reply import Outcome, Reply
from asides.values.thinking import Thought, ThoughtKind, join_thoughts
from asides.values.usage import Usage

Output = TypeVar("Output")

RunOutcome: TypeAlias = Outcome | Literal["limit", "failed", "cancelled"]
"""The outcome of the last reply; "limit", "failed" and "cancelled" are for runs that did not reach their end."""


# --- events -----------------------------------------------------------------------------------------------------------


class StepStarted(msgspec.Struct, frozen=True, tag="step_started"):
    """The model is asked; steps count from 1."""

    step: int


class ToolStarted(msgspec.Struct, frozen=True, tag="tool_started"):
    """A call starts. A call that is then denied starts too."""

    call: ToolCall
    step: int


class ToolFinished(msgspec.Struct, frozen=True, tag="tool_finished"):
    """The result of a call, as the model gets it."""

    call: ToolCall
    result: ToolResult
    step: int
    seconds: float = 0.0


class StepEnded(msgspec.Struct, frozen=True, tag="step_ended"):
    """A turn of the model is over, its tools included."""

    step: int
    outcome: Outcome
    usage: Usage


class RunEnded(msgspec.Struct, frozen=True, tag="run_ended"):
    """The last event."""

    outcome: RunOutcome
    steps: int
    usage: Usage


RunEvent: TypeAlias = Event | StepStarted | ToolStarted | ToolFinished | StepEnded | RunEnded


# --- the result -------------------------------------------------------------------------------------------------------


class Step(msgspec.Struct, frozen=True):
    """One turn of a run: the reply of the model, and the results of its tools."""

    number: int
    """From 1."""
    reply: Reply
    results: tuple[ToolResult, ...] = ()
    """Of `reply.tool_calls`, in their order."""

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of this step."""
        return self.reply.tool_calls

    @property
    def thinking(self) -> Thought | None:
        """The thinking of this step."""
        return self.reply.thinking

    @property
    def usage(self) -> Usage:
        """The tokens of this step."""
        return self.reply.usage


def sum_usage(steps: Sequence[Step]) -> Usage:
    """Add the usage of these steps."""
    total = steps[0].usage if steps else Usage()
    for step in steps[1:]:
        total += step.usage
    return total


class Result(msgspec.Struct, Generic[Output], frozen=True, eq=False):
    """The result of a run. `output` is the answer: text, or a value of the requested type."""

    output: Output
    messages: tuple[Message, ...] = ()
    """The conversation so far: the given messages and those of the run. It can be sent as it is."""
    steps: tuple[Step, ...] = ()
    outcome: RunOutcome = "answered"
    warnings: tuple[Notice, ...] = ()

    @property
    def reply(self) -> Reply:
        """The last reply; an empty one when the run has none."""
        return self.steps[-1].reply if self.steps else Reply(complete=False)

    @property
    def text(self) -> str:
        """The answer as text. Never thinking."""
        return self.reply.text

    @property
    def thinking(self) -> Thought | None:
        """The thinking of all steps, separated by blank lines; None when there is none."""
        thoughts = [thought for step in self.steps if (thought := step.thinking) is not None]
        if not thoughts:
            return None
        shown = [thought for thought in thoughts if thought.text] or thoughts
        kind: ThoughtKind = "hidden"
        text = join_thoughts([thought.text for thought in shown])
        if text is not None:
            kind = "summary" if all(thought.kind == "summary" for thought in shown) else "raw"
        first = shown[0]
        seals = tuple(seal for thought in thoughts for seal in thought.seals)
        whole = all(thought.complete for thought in thoughts)
        return Thought(text or "", kind, first.source, first.origin, seals, first.via, whole)

    @property
    def usage(self) -> Usage:
        """The sum of all steps; thinking tokens are counted apart, as in each step."""
        return sum_usage(self.steps)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """A flat, read-only view: the metadata of the last reply, with thinking and usage of the whole run."""
        view = {**self.reply.metadata, "usage": self.usage, "steps": len(self.steps), "outcome": self.outcome}
        for key in ("thinking", "thinking_type"):
            view.pop(key, None)
        thought = self.thinking
        view["thinking_source"] = "none" if thought is None else thought.source
        if thought is not None and thought.text:
            view["thinking"] = thought.text
            view["thinking_type"] = thought.kind
        return MappingProxyType(view)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return (
            f"Result(<{type(self.output).__name__}>, outcome={self.outcome!r}, steps={len(self.steps)}, "
            f"thinking={self.thinking!r}, usage={self.usage!r})"
        )
