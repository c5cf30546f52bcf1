"""A tool as the model sees it: a name, a description and a JSON schema. Also the limits for all tools (`check_tools`).

Not here: the function of a tool (agents/tools).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from asides.values.errors import ConfigError, TooManyTools


class Tool(msgspec.Struct, frozen=True):
    """A function that the model may call."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = msgspec.field(default_factory=lambda: {"type": "object", "properties": {}})
    """The JSON schema of its arguments."""
    strict: bool | None = None


def read_tool(document: Mapping[str, Any]) -> Tool:
    """Read a tool from a dict in the format of chat completions, Responses or Anthropic."""
    inner = document.get("function", document)
    name = inner.get("name") if isinstance(inner, Mapping) else None
    if not isinstance(name, str) or not name:
        raise ConfigError('a tool has no name. To do: write {"type": "function", "function": {"name": …}}.')
    parameters = inner.get("parameters", inner.get("input_schema"))
    try:
        return msgspec.convert(
            {
                "name": name,
                "description": inner.get("description") or "",
                "strict": inner.get("strict"),
                **({} if parameters is None else {"parameters": parameters}),
            },
            Tool,
        )
    except msgspec.ValidationError as error:
        raise ConfigError(f"the tool {name} is invalid ({error}). To do: correct it.") from None


_log = logging.getLogger("asides")
# The share of a limit above which `check_tools` logs.
_LOG_FROM = 0.8


def check_tools(tools: Sequence[Tool], *, most: int, most_kb: int) -> None:
    """Raise `TooManyTools`, with the exact count and size, if the tools are more or larger than allowed.

    Above 80 % of either limit it logs a line at DEBUG.
    """
    size = sum(len(_encode_tool(tool)) for tool in tools)
    count, size_kb = len(tools), size / 1024
    if count > most:
        raise TooManyTools(
            f"{count} tools were given and {most} are allowed. To do: give fewer, or raise tools_max_count."
        )
    if size_kb > most_kb:
        raise TooManyTools(
            f"the tools are {size_kb:.1f} KB of JSON ({size} bytes) and {most_kb} KB are allowed. To do: give fewer or "
            "smaller ones, or raise tools_max_json_kb."
        )
    if count > most * _LOG_FROM or size_kb > most_kb * _LOG_FROM:
        _log.debug("tools: %d of %d, %.1f of %d KB", count, most, size_kb, most_kb)


def _encode_tool(tool: Tool) -> bytes:
    try:
        return msgspec.json.encode({"name": tool.name, "description": tool.description, "parameters": tool.parameters})
    except (TypeError, ValueError, RecursionError):
        raise ConfigError(
            f"invalid tool schema: the parameters of {tool.name!r} cannot be written as JSON. To do: correct them."
        ) from None
