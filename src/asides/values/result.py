"""What an agent's run came to, as one value: its answer, its steps, its thinking, what it cost. Not here: the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec

from asides.values.messages import Message, ToolCall, ToolResult
from asides.values.notices import Notice
from asides.values.reply import Outcome, Reply
from asides.values.thinking import Thought, ThoughtKind, join_thoughts
from asides.values.usage import Usage

Output = TypeVar("Output")

RunOutcome: TypeAlias = Outcome | Literal["limit", "failed", "cancelled"]
""""limit", "failed" and "cancelled" are of runs that did not come to their end; the rest is that of the last reply."""


class Step(msgspec.Struct, frozen=True):
    """One turn of a run: what the model said, and what its tools gave back."""

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
        """What the model thought in this step."""
        return self.reply.thinking

    @property
    def usage(self) -> Usage:
        """What this step cost."""
        return self.reply.usage


def sum_usage(steps: Sequence[Step]) -> Usage:
    """What steps cost together."""
    total = steps[0].usage if steps else Usage()
    for step in steps[1:]:
        total += step.usage
    return total


class Result(msgspec.Struct, Generic[Output], frozen=True, eq=False):
    """What a run came to. `output` is the answer: text, or a value of the type that was asked for."""

    output: Output
    messages: tuple[Message, ...] = ()
    """The conversation up to here: what was given, and all that was said in the run. It can be sent on as it is."""
    steps: tuple[Step, ...] = ()
    outcome: RunOutcome = "answered"
    warnings: tuple[Notice, ...] = ()

    @property
    def reply(self) -> Reply:
        """The last reply; an empty one where there was none."""
        return self.steps[-1].reply if self.steps else Reply(complete=False)

    @property
    def text(self) -> str:
        """The answer in words. Never thinking."""
        return self.reply.text

    @property
    def thinking(self) -> Thought | None:
        """The thinking of all steps, with a blank line between them; None when there was none."""
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
        """The sum of all steps; thinking is counted apart, as in each of them."""
        return sum_usage(self.steps)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The flat, read-only view: that of the last reply, with thinking and usage of the whole run."""
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
