"""The tools of an agent by name, each with what runs it, where there is something. Not here: running them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from asides.agents.tools.function_tool import FunctionTool
from asides.agents.tools.runnable import Runnable
from asides.values.errors import ConfigError
from asides.values.tools import Tool, read_tool

ToolLike: TypeAlias = Tool | Mapping[str, Any] | Runnable | Callable[..., Any]
"""A tool, one as a dict of some provider's shape, a typed function, or anything that is Runnable."""


class OfferedTool(msgspec.Struct, frozen=True):
    """A tool that the model is offered."""

    tool: Tool
    runnable: Runnable | None = None
    """None: the model may call it, and nobody here can run it; the call is the caller's to answer."""


def find_runnable(tool: ToolLike) -> Runnable | None:
    """What runs a tool; None for a mere description of one, whose calls are the caller's to answer."""
    if isinstance(tool, FunctionTool):
        return tool
    if isinstance(tool, (Tool, Mapping)):
        return None
    # A class has all that its objects have, and is none of them.
    if isinstance(tool, Runnable) and not isinstance(tool, type):
        return tool
    if callable(tool):
        return FunctionTool(tool)
    raise ConfigError(f"a tool is a Tool, a dict or a function, not {type(tool).__name__}. To do: give one of them.")


def read_offer(tool: ToolLike) -> OfferedTool:
    """A tool as it is offered. Raises ConfigError for what is none."""
    runnable = find_runnable(tool)
    if runnable is not None:
        return OfferedTool(runnable.tool, runnable)
    return OfferedTool(tool if isinstance(tool, Tool) else read_tool(_mapping(tool)))


def _mapping(tool: ToolLike) -> Mapping[str, Any]:
    if isinstance(tool, Mapping):
        return tool
    raise AssertionError("runnable_of let something else through")


def build_toolset(tools: Iterable[ToolLike]) -> dict[str, OfferedTool]:
    """The tools by name, in their order. Two of one name are a ConfigError: a call could mean either."""
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
