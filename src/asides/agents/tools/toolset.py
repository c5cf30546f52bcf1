"""The tools of an agent by name, each with the object that runs it, if there is one. Not here: running them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from asides.agents.tools.function_tool import FunctionTool
from asides.agents.tools.runnable import Runnable
from asides.values.errors import ConfigError
from asides.values.tools import Tool, read_tool

ToolLike: TypeAlias = Tool | Mapping[str, Any] | Runnable | Callable[..., Any]
"""A tool, a dict in a provider's format, a typed function, or any object that is Runnable."""


class OfferedTool(msgspec.Struct, frozen=True):
    """A tool that the model may call."""

    tool: Tool
    runnable: Runnable | None = None
    """What runs it; None leaves its calls to the caller."""


def find_runnable(tool: ToolLike) -> Runnable | None:
    """Return what runs a tool; None for a mere description, whose calls are left to the caller."""
    if isinstance(tool, FunctionTool):
        return tool
    if isinstance(tool, (Tool, Mapping)):
        return None
    # A class has all attributes of its objects and still is not one of them.
    if isinstance(tool, Runnable) and not isinstance(tool, type):
        return tool
    if callable(tool):
        return FunctionTool(tool)
    raise ConfigError(f"a tool is a Tool, a dict or a function, not {type(tool).__name__}. To do: give one of them.")


def read_offer(tool: ToolLike) -> OfferedTool:
    """Return a tool with what runs it. Raises ConfigError for anything that is not a tool."""
    if isinstance(tool, Tool):
        return OfferedTool(tool)
    if isinstance(tool, Mapping):
        return OfferedTool(read_tool(tool))
    runnable = find_runnable(tool)
    if runnable is None:
        raise AssertionError("only descriptions have no runnable")
    return OfferedTool(runnable.tool, runnable)


def build_toolset(tools: Iterable[ToolLike]) -> dict[str, OfferedTool]:
    """Return the tools by name, in their order. Raises ConfigError for two of one name: a call could mean either."""
    given: Any = tools
    if isinstance(given, (Mapping, str)) or not isinstance(given, Iterable):
        raise ConfigError("tools is a list of tools, also for one. To do: write tools=[…].")
    offered: dict[str, OfferedTool] = {}
    for tool in tools:
        offer = read_offer(tool)
        if offer.tool.name in offered:
            raise ConfigError(
                f"two tools are called {offer.tool.name}. To do: rename one, as with asides.tool(name=…)."
            )
        offered[offer.tool.name] = offer
    return offered
