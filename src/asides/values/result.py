"""An agent's run as values: its events, and the `Result` at its end.

    run := step* RunEnded
    step := StepStarted (events of one reply) (ToolStarted* ToolFinished*)? StepEnded

The events of a reply are those of `stream`, so one `match` serves both. Calls of one reply start in order and finish in
any order. RunEnded is the only terminal event: it is always the last, comes once, and comes before an error is raised
too. The ReplyEnded of each step does not end the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, Literal, TypeAlias

import msgspec

from asides.values.events import Event
from asides.values.json_form import JsonForm, to_json_value, write_json
from asides.values.messages import Message
from asides.values.notices import Notice
from asides.values.parts import ToolCall, ToolResult, join_commentary
from asides.values.reply import Outcome, Output, Reply, format_markdown, merge_thoughts
from asides.values.thinking import Thought
from asides.values.usage import Cost, Timing, Usage, join_timings, sum_costs

RunOutcome: TypeAlias = Outcome | Literal["limit", "failed", "cancelled"]
"""The outcome of the last reply; "limit", "failed" and "cancelled" are for runs that did not reach their end."""


# --- events -----------------------------------------------------------------------------------------------------------


class StepStarted(msgspec.Struct, JsonForm, frozen=True, tag="step_started"):
    """The model is asked; steps count from 1."""

    step: int


class ToolStarted(msgspec.Struct, JsonForm, frozen=True, tag="tool_started"):
    """A call starts. A call that is then denied starts too."""

    call: ToolCall
    step: int


class ToolFinished(msgspec.Struct, JsonForm, frozen=True, tag="tool_finished"):
    """The result of a call, as the model gets it."""

    call: ToolCall
    result: ToolResult
    step: int
    seconds: float = 0.0


class StepEnded(msgspec.Struct, JsonForm, frozen=True, tag="step_ended"):
    """A turn of the model has ended, including its tools."""

    step: int
    outcome: Outcome
    usage: Usage


class RunEnded(msgspec.Struct, JsonForm, frozen=True, tag="run_ended"):
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
    def thinking(self) -> Thought:
        """The thinking of this step; false when there is none."""
        return self.reply.thinking

    @property
    def commentary(self) -> str:
        """What the model said in this step on the way to its answer."""
        return self.reply.commentary

    @property
    def usage(self) -> Usage:
        """The tokens of this step."""
        return self.reply.usage

    def to_dict(self, *, thinking: bool = False, seals: bool = False, raw: bool = False) -> dict[str, Any]:
        """Return the reply of this step as plain JSON, with the results of its tools."""
        fields = {"number": self.number, **self.reply.to_dict(thinking=thinking, seals=seals, raw=raw)}
        return {**fields, "results": to_json_value(self.results, thinking=thinking, seals=seals)}


def sum_usage(steps: Sequence[Step]) -> Usage:
    """Add the usage of these steps."""
    total = steps[0].usage if steps else Usage()
    for step in steps[1:]:
        total += step.usage
    return total


_OF_THE_RUN = frozenset({"commentary", "thinking", "thinking_type"})
"""The fields of `metadata` that cover all steps instead of the last reply."""


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
        """The answer as text. Never thinking or commentary."""
        return self.reply.text

    @property
    def commentary(self) -> str:
        """What the model said in all steps on the way to its answer, separated by blank lines."""
        return join_commentary(step.commentary for step in self.steps)

    @property
    def thinking(self) -> Thought:
        """The thinking of all steps, separated by blank lines; false, with the text "", when there is none."""
        thoughts = [thought for step in self.steps if (thought := step.thinking)]
        shown = [thought for thought in thoughts if thought.text] or thoughts
        return merge_thoughts(thoughts, shown[0].origin if shown else None)

    @property
    def usage(self) -> Usage:
        """The sum of all steps; thinking tokens are counted separately, as in each step."""
        return sum_usage(self.steps)

    @property
    def timing(self) -> Timing | None:
        """The time of the model in all steps. The time of the tools between them does not count."""
        return join_timings(step.reply.timing for step in self.steps)

    @property
    def cost(self) -> Cost | None:
        """The price of all steps; None when that of one of them is not known."""
        return sum_costs(step.reply.cost for step in self.steps)

    def to_dict(self, *, thinking: bool = False, seals: bool = False, raw: bool = False) -> dict[str, Any]:
        """Return the run as plain JSON: its output, the fields of its last reply with the figures and the thinking of
        the whole run, and its steps. `thinking`, `seals` and `raw` as in `Reply.to_dict`.
        """
        thought = self.thinking
        fields = self.reply.to_dict(thinking=thinking, seals=seals, raw=raw)
        own = {
            "output": self.output,
            "commentary": self.commentary,
            "thinking": (thought.text or None) if thinking else None,
            "thinking_type": thought.kind if thought else None,
            "thinking_source": thought.source if thought else "none",
            "usage": self.usage,
            "outcome": self.outcome,
            "warnings": self.warnings,
            "timing": self.timing,
            "cost": self.cost,
        }
        fields |= to_json_value(own, thinking=thinking, seals=seals)
        given = () if not thought.text else ("thinking", "thinking_type")[not thinking :]
        said = ("commentary",) if self.commentary else ()
        metadata = {name: value for name, value in fields["metadata"].items() if name not in _OF_THE_RUN}
        metadata |= {name: fields[name] for name in ("usage", "outcome", "thinking_source", *given, *said)}
        fields["metadata"] = {**metadata, "steps": len(self.steps)}
        fields["steps"] = [step.to_dict(thinking=thinking, seals=seals, raw=raw) for step in self.steps]
        return fields

    def to_json(
        self, *, thinking: bool = False, seals: bool = False, raw: bool = False, indent: int | None = None
    ) -> str:
        """Return the run as JSON text: `to_dict`, written."""
        return write_json(self.to_dict(thinking=thinking, seals=seals, raw=raw), indent=indent)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata of the last reply, read-only, with thinking, commentary and usage of the whole run."""
        view = {**self.reply.metadata, "usage": self.usage, "steps": len(self.steps), "outcome": self.outcome}
        for key in _OF_THE_RUN:
            view.pop(key, None)
        if commentary := self.commentary:
            view["commentary"] = commentary
        thought = self.thinking
        view["thinking_source"] = thought.source if thought else "none"
        if thought.text:
            view["thinking"] = thought.text
            view["thinking_type"] = thought.kind
        return MappingProxyType(view)

    def __str__(self) -> str:
        return self.text

    def _repr_markdown_(self) -> str:
        """The run in a notebook: its answer, with the thinking of all steps that people may see folded above it."""
        return format_markdown(self.text, self.thinking, self.timing, self.reply.call.visibility)

    def __repr__(self) -> str:
        return (
            f"Result(<{type(self.output).__name__}>, outcome={self.outcome!r}, steps={len(self.steps)}, "
            f"thinking={self.thinking!r}, usage={self.usage!r})"
        )
