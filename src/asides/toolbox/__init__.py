"""Tools that can be run: a typed function, or anything else that is `Runnable`. Validation, results, approvals: pure.

Not here: who runs them and when (flows/agent, network), and how a provider spells a tool (dialects).
"""

from __future__ import annotations

from asides.toolbox.function_tool import FunctionTool, tool
from asides.toolbox.results import denied, result_of, unknown_tool
from asides.toolbox.runnable import (
    Approval,
    BadArguments,
    Raised,
    Returned,
    Runnable,
    TimedOut,
)
from asides.toolbox.signatures import tool_of
from asides.toolbox.toolset import Offer, runnable_of, toolset

__all__ = [
    "Approval",
    "BadArguments",
    "FunctionTool",
    "Offer",
    "Raised",
    "Returned",
    "Runnable",
    "TimedOut",
    "denied",
    "result_of",
    "runnable_of",
    "tool",
    "tool_of",
    "toolset",
    "unknown_tool",
]
