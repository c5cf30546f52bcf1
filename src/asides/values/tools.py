"""A tool as the model sees it: a name, a description and a JSON schema. Also limits on all tools (`check_tools`)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from asides.values.errors import ConfigError, TooManyTools
from asides.values.notices import Notice


class Tool(msgspec.Struct, frozen=True):
    """A function that the model may call."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = msgspec.field(default_factory=lambda: {"type": "object", "properties": {}})
    """The JSON schema of its arguments."""
    strict: bool | None = None
    cache: bool | str = False
    """True: a cache breakpoint follows this tool, as for parts of a message."""
    native: dict[str, Any] | None = None
    """A tool of the provider, such as a search, in its own form. It is sent as it is, in the dialect that has it."""
    more: dict[str, Any] = {}
    """Other fields of a dict, such as `defer_loading`: sent in dialects that have them (`TOOL_FIELDS`)."""


TOOL_FIELDS: dict[str, frozenset[str]] = {
    "anthropic": frozenset({"allowed_callers", "defer_loading", "eager_input_streaming", "input_examples"}),
    "openai_responses": frozenset({"allowed_callers", "defer_loading"}),
}
"""By dialect, the fields that a function may have besides those of `Tool` (the official clients, openai 3.51,
2026-11)."""
_READ_FIELDS = frozenset({"type", "function", "input_schema", "cache_control", *Tool.__struct_fields__})


def select_fields(tool: Tool, dialect: str) -> dict[str, Any]:
    """Return the other fields of a tool that a dialect has."""
    return {name: value for name, value in tool.more.items() if name in TOOL_FIELDS.get(dialect, ())}


def report_fields(tools: Sequence[Tool], dialect: str) -> tuple[Notice, ...]:
    """Return a notice of the fields of tools that a dialect does not have."""
    left = {name for tool in tools for name in tool.more.keys() - select_fields(tool, dialect).keys()}
    return (report_names(left),) if left else ()


def report_names(names: Iterable[str]) -> Notice:
    """Return the notice of fields of tools that are not sent."""
    detail = f"a function has no such field here: {', '.join(map(repr, sorted(names)))}"
    return Notice("tool_field_not_sent", detail, "tools")


_TEXT = frozenset({str})
_FUNCTION_TYPES = (None, "function")
# The fields of tools without a type: Gemini's and Converse's.
_UNTYPED_TOOLS = frozenset({
    "google_search", "googleSearch", "google_search_retrieval", "googleSearchRetrieval", "code_execution",
    "codeExecution", "url_context", "urlContext", "google_maps", "googleMaps", "file_search", "fileSearch",
    "computer_use", "computerUse", "enterprise_web_search", "enterpriseWebSearch", "retrieval", "mcp_servers",
    "mcpServers", "functionDeclarations", "function_declarations", "systemTool", "toolSpec", "cachePoint",
})  # fmt: skip


def read_cache_control(holder: Mapping[str, Any]) -> bool | str:
    """Read the cache breakpoint of a part, a message or a tool: its lifetime, True if it has none, False if unset."""
    control = holder.get("cache_control")
    if control is None or not isinstance(control, Mapping):
        return False
    ttl = control.get("ttl")
    return ttl if isinstance(ttl, str) and ttl else True


def find_native_name(document: Mapping[str, Any]) -> str | None:
    """Return the name of a tool of the provider; None for the caller's function."""
    kind = document.get("type")
    if kind in _FUNCTION_TYPES or (kind == "custom" and "input_schema" in document):
        found = next((name for name in document if name in _UNTYPED_TOOLS), None) if kind is None else None
        return None if "name" in document or "function" in document else found
    name = document.get("name")
    return name if isinstance(name, str) and name else str(kind)


def read_tool(document: Mapping[str, Any]) -> Tool:
    """Read a tool from a dict in the format of chat completions, Responses or Anthropic."""
    if (native := find_native_name(document)) is not None:
        return Tool(native, native=dict(document))
    inner = document.get("function", document)
    name = inner.get("name") if isinstance(inner, Mapping) else None
    if not isinstance(name, str) or not name:
        raise ConfigError('a tool has no name. Write {"type": "function", "function": {"name": …}}.')
    parameters = inner.get("parameters", inner.get("input_schema"))
    description, strict = inner.get("description") or "", inner.get("strict")
    cache = read_cache_control(document) or read_cache_control(inner)
    more: dict[str, Any] = {}
    if not (document.keys() <= _READ_FIELDS and inner.keys() <= _READ_FIELDS):
        more = {name: value for name, value in {**document, **inner}.items() if name not in _READ_FIELDS}
    is_usual = type(description) is str and type(parameters) is dict and (strict is None or type(strict) is bool)
    if is_usual and _TEXT.issuperset(map(type, parameters)):
        return Tool(name, description, dict(parameters), strict, cache, more=more)
    try:
        return msgspec.convert(
            {
                "name": name,
                "description": description,
                "strict": strict,
                "cache": cache,
                "more": more,
                **({} if parameters is None else {"parameters": parameters}),
            },
            Tool,
        )
    except msgspec.ValidationError as error:
        raise ConfigError(f"the tool {name} is invalid ({error}). Correct it.") from None


_log = logging.getLogger("asides")
# The share of a limit above which `check_tools` logs.
_LOG_FROM = 0.8


def measure_tools(tools: Sequence[Tool]) -> tuple[int, int]:
    """Return the number of tools and their size as JSON, in bytes."""
    return len(tools), sum(len(_encode_tool(tool)) for tool in tools)


def check_tools(tools: Sequence[Tool], *, most: int | None = None, most_kb: int | None = None) -> None:
    """Raise `TooManyTools`, with the exact count and size, if the tools exceed a limit that was set. None: no limit.

    Above 80 % of a limit it logs a line at DEBUG.
    """
    count, size = measure_tools(tools)
    size_kb = size / 1024
    if most is not None and count > most:
        raise TooManyTools(
            f"{count} tools ({size_kb:.1f} KB of JSON) were given and {most} are allowed. Give fewer, or raise "
            "tools_max_count."
        )
    if most_kb is not None and size_kb > most_kb:
        raise TooManyTools(
            f"{count} {'tool is' if count == 1 else 'tools are'} {size_kb:.1f} KB of JSON ({size} bytes) and {most_kb} "
            "KB are allowed. Give fewer or smaller ones, or raise tools_max_json_kb."
        )
    _log_near(count, size_kb, most, most_kb)


def report_many_tools(
    tools: Sequence[Tool], provider: str, cap: int | None, *, advised: int | None, advised_kb: int | None
) -> tuple[Notice, ...]:
    """Report tools above the advised number or size, which cost tokens and accuracy; log a line at DEBUG near it.

    Raises `TooManyTools` above `cap`, the number that the provider accepts. None: no such limit.
    """
    count, size = measure_tools(tools)
    if cap is not None and count > cap:
        raise TooManyTools(f"{count} tools were given, and {provider} accepts at most {cap}. Pass fewer.")
    size_kb = size / 1024
    _log_near(count, size_kb, advised, advised_kb)
    is_many = advised is not None and count > advised
    is_large = advised_kb is not None and size_kb > advised_kb
    if not (is_many or is_large):
        return ()
    limits = [f"{advised} tools"] if advised is not None else []
    limits += [f"{advised_kb} KB"] if advised_kb is not None else []
    options = ["tools_max_count"] if advised is not None else []
    options += ["tools_max_json_kb"] if advised_kb is not None else []
    detail = (
        f"{count} tools, {size_kb:.1f} KB of JSON ({size} bytes): models choose better among at most "
        f"{' and '.join(limits)}. Set {' or '.join(options)} to enforce a limit"
    )
    return (Notice("many_tools", detail, "tools", str(count), str(count)),)


def _log_near(count: int, size_kb: float, most: int | None, most_kb: int | None) -> None:
    """Log a line at DEBUG above 80 % of a limit."""
    is_near = most is not None and count > most * _LOG_FROM
    if is_near or (most_kb is not None and size_kb > most_kb * _LOG_FROM):
        _log.debug("tools: %d of %s, %.1f of %s KB", count, most or "any", size_kb, most_kb or "any")


def _encode_tool(tool: Tool) -> bytes:
    try:
        if tool.native is not None:
            return msgspec.json.encode(tool.native)
        return msgspec.json.encode({"name": tool.name, "description": tool.description, "parameters": tool.parameters})
    except (TypeError, ValueError, RecursionError):
        raise ConfigError(
            f"invalid tool schema: the parameters of {tool.name!r} cannot be written as JSON. Correct them."
        ) from None


def read_tool_choice(choice: object) -> str:
    """Read the choice as "auto", "none", "required" or a tool's name. Also takes the objects that providers use."""
    if isinstance(choice, str):
        return {"any": "required"}.get(choice, choice)
    if not isinstance(choice, Mapping):
        raise ConfigError(f"tool_choice must be a word, a tool's name or an object, not {type(choice).__name__}.")
    inner = choice.get("function") or choice.get("custom") or choice
    name = inner.get("name") if isinstance(inner, Mapping) else None
    if isinstance(name, str) and name:
        return name
    match choice.get("type"):
        case "any" | "required":
            return "required"
        case "auto" | "none" as word:
            return str(word)
        case _:
            pass
    raise ConfigError('tool_choice names no tool. Use "auto", "none", "required" or the name of a tool.')
