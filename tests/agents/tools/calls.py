"""Calls as a model makes them, and their results."""

from __future__ import annotations

from typing import Any

from asides.agents.tools.executor import Raised, Returned, Runnable
from asides.agents.tools.results import build_result
from asides.values.parts import ToolCall, ToolResult


def call(**arguments: Any) -> ToolCall:
    """Make a call with these arguments."""
    return ToolCall("call_1", "named", arguments)


def run_call(runnable: Runnable, made: ToolCall) -> ToolResult:
    """Run a call of a tool that is not async, and return its result."""
    try:
        value = runnable.run(made)
    except Exception as error:  # noqa: BLE001 - as the shells do
        return build_result(made, Raised(error))
    return build_result(made, Returned(value))
