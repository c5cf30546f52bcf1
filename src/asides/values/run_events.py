"""What arrives from an agent's run, around the events of its replies.

    run := step* RunEnded
    step := StepStarted (events of one reply) (ToolStarted* ToolFinished*)? StepEnded

The events of a reply come as they come from `stream`, so that one `match` serves both. Calls of one reply are started
in order and may finish in any. RunEnded is the only terminal event, is always the last and comes once, also before an
error is raised; the ReplyEnded of each step is not the end of the run.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from asides.values.events import Event
from asides.values.messages import ToolCall, ToolResult
from asides.values.reply import Outcome
from asides.values.result import RunOutcome
from asides.values.usage import Usage


class StepStarted(msgspec.Struct, frozen=True, tag="step_started"):
    """The model is asked; steps count from 1."""

    step: int


class ToolStarted(msgspec.Struct, frozen=True, tag="tool_started"):
    """A call is run; also one that is then denied."""

    call: ToolCall
    step: int


class ToolFinished(msgspec.Struct, frozen=True, tag="tool_finished"):
    """What a call gave back, as the model is told."""

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
