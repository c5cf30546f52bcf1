"""Tools and the choice among them, as chat completions and Responses both take them.

Not here: the form of one tool, and of a choice by name, in which the two differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asides.dialects.http_body import report_tool_settings
from asides.values.messages import Prompt
from asides.values.notices import Notice
from asides.values.tools import Tool


def spell_tools(
    prompt: Prompt,
    notices: list[Notice],
    *,
    tool: Callable[[Tool], dict[str, Any]],
    named: Callable[[str], dict[str, Any]],
) -> dict[str, Any]:
    """The fields of a request that are about tools."""
    spelled: dict[str, Any] = {}
    if prompt.tools:
        spelled["tools"] = [tool(each) for each in prompt.tools]
    elif "tools" not in prompt.extra:
        notices += report_tool_settings(prompt, "tool_choice", "parallel_tool_calls")
        return spelled
    match prompt.tool_choice:
        case None:
            pass
        case "auto" | "none" | "required":
            spelled["tool_choice"] = prompt.tool_choice
        case name:
            spelled["tool_choice"] = named(name)
    if prompt.parallel_tool_calls is not None:
        spelled["parallel_tool_calls"] = prompt.parallel_tool_calls
    return spelled
