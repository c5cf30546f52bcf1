"""Calls as a model makes them, and what the model is told of them."""

from __future__ import annotations

from typing import Any

from asides.agents.tools.results import build_result
from asides.agents.tools.runnable import Raised, Returned, Runnable
from asides.values.messages import ToolCall, ToolResult


def call(**arguments: Any) -> ToolCall:
    """A call with these arguments; whose it is does not matter to who runs it."""
    return ToolCall("call_1", "named", arguments)


def told(runnable: Runnable, made: ToolCall) -> ToolResult:
    """What the model is told of a call of something that does not wait."""
    try:
        value = runnable.run(made)
    except Exception as error:  # noqa: BLE001 - as the shells do
        return build_result(made, Raised(error))
    return build_result(made, Returned(value))
