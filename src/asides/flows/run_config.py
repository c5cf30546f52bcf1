"""How a run is to go, settled before anything happens: the tools, the limits, who is asked. Values only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Generic, Literal, TypeAlias

import msgspec

from asides.agents.outputs.output_type import Wanted
from asides.agents.tools.runnable import Approval, Runnable
from asides.values.messages import ToolCall
from asides.values.result import Output

Mode: TypeAlias = Literal["native", "react"]
"""native: tools in the provider's own way. react: in text, for models that have no such way."""

Verdict: TypeAlias = bool | str | None
"""What an approval handler says: True or "allow"; False, None or "deny"; any other text is the reason of a denial."""

Approve: TypeAlias = Callable[[ToolCall], Verdict | Awaitable[Verdict]]
"""Asked before a call is run whose approval is "ask". One that raises has denied."""


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a run may go; None is no limit. Reaching one raises `LimitReached`, with what there is in `.result`."""

    turns: int | None = 32
    """Times that the model is asked."""
    tool_calls: int | None = None
    """Calls that are run, in the whole run."""
    tokens: int | None = None
    """Input and output of all turns together, as the provider reports them."""
    seconds: float | None = None
    """Of the whole run, tools included."""


class RunConfig(msgspec.Struct, Generic[Output], frozen=True):
    """Everything that a run needs besides its call."""

    tools: Mapping[str, Runnable | None] = {}
    """By the names that the model knows them by; None: the caller runs it himself."""
    wanted: Wanted[Output] | None = None
    """What the answer is to be; None: text."""
    limits: Limits = Limits()
    approval: Approval | tuple[tuple[str, Approval], ...] = "allow"
    """For tools that do not say it themselves: one word, or the first pattern that fits a tool's name."""
    approve: Approve | None = None
    tool_timeout: float | None = None
    parallel: int = 8
    mode: Mode = "native"
    attempts: int = 2
    """How often the model may mend an answer or a call that does not have the form that was asked for."""

    def approval_of(self, name: str, runnable: Runnable) -> Approval:
        """Whether the calls of this tool may be run."""
        if runnable.approval is not None:
            return runnable.approval
        if not isinstance(self.approval, tuple):
            return self.approval
        for pattern, word in self.approval:
            if fnmatchcase(name, pattern):
                return word
        return "allow"


class ApprovalRequest(msgspec.Struct, frozen=True):
    """The approval handler as something that a shell can run, since it may block or have to be awaited."""

    approve: Approve
    blocking: bool

    def run(self, call: ToolCall) -> Any:
        """Ask."""
        return self.approve(call)
