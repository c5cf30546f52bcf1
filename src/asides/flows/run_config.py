"""The configuration of a run: tools, limits, approvals, output type. Values only; agents/config reads the options."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Generic, Literal, TypeAlias

import msgspec

from asides.agents.tools.executor import Approval, Runnable
from asides.values.parts import ToolCall
from asides.values.reply import Output

if TYPE_CHECKING:
    # A run whose answer is text does not load it.
    from asides.agents.outputs.output_type import OutputType

Mode: TypeAlias = Literal["native", "react"]
"""native: tools through the provider's API. react: tools in text, for models whose API has none."""

Verdict: TypeAlias = bool | str | None
"""The answer of an approval handler: True or "allow"; False, None or "deny"; other text is the reason of a denial."""

Approve: TypeAlias = Callable[[ToolCall], Verdict | Awaitable[Verdict]]
"""An approval handler. It is called before each call whose approval is "ask". If it raises, the call is denied."""


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of a run; None: no limit. Reaching one raises `LimitReached`, with the run so far in `.result`."""

    turns: int | None = 32
    """How often the model is asked."""
    tool_calls: int | None = 1000
    """The number of tool calls in the whole run. A reply whose calls would exceed it runs none of them."""
    tokens: int | None = None
    """Input and output of all turns together, as the provider reports them."""
    seconds: float | None = None
    """The time of the whole run, tools included."""


class RunConfig(msgspec.Struct, Generic[Output], frozen=True):
    """The settings of a run besides its call."""

    tools: Mapping[str, Runnable | None] = {}
    """By the name that the model sees; None: the caller runs its calls."""
    approvals: Mapping[str, Approval] = {}
    """For each tool that is run here."""
    output_type: OutputType[Output] | None = None
    """The type of the answer; None: text."""
    limits: Limits = Limits()
    approve: Approve | None = None
    tool_timeout: float | None = None
    parallel: int = 8
    mode: Mode = "native"
    attempts: int = 2
    """How often the model may correct an answer or a call of the wrong form."""
