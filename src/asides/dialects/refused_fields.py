"""Leave fields out of an encoded request that its host refuses: `drop_fields(request, names, given)`. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import msgspec

from asides.dialects.dialect import HttpRequest
from asides.values.notices import Notice

ESSENTIAL = frozenset(
    {
        *("model", "messages", "input", "contents", "system", "instructions", "systemInstruction", "stream"),
        *("tools", "toolConfig", "response_format", "text", "format", "outputConfig"),
    }
)
"""Fields that carry what was said or asked for: without them it would be another request."""

# Inside of those, what carries it: fields, and entries of a list by their type.
_SAID = frozenset(
    {
        *("role", "type", "name", "content", "parts", "text", "refusal", "source", "image_url", "file", "input_audio"),
        *("inlineData", "fileData", "tool_calls", "tool_call_id", "tool_use_id", "toolUseId", "call_id", "function"),
        *("functionCall", "functionResponse", "functionDeclarations", "toolUse", "toolResult", "toolSpec", "arguments"),
        *("args", "input", "output", "response", "parameters", "input_schema", "inputSchema", "json", "message"),
        *("tool_use", "tool_result", "function_call", "function_call_output", "custom_tool_call", "input_text"),
        *("custom_tool_call_output", "output_text", "image", "input_image", "input_file", "document"),
    }
)
# Controls of earlier thinking: they have no meaning where they are refused, also if the caller gave them.
_CONTROLS = ("thinking.block_binding", "context_management")


def drop_fields(request: HttpRequest, names: Iterable[str], given: Container[str]) -> tuple[HttpRequest, list[Notice]]:
    """Drop the fields of these names from the body, with a notice for each that it had. `given` are fields of the
    caller, which stay.
    """
    body = msgspec.json.decode(request.body)
    dropped = [name for name in names if _can_drop(name, given) and _drop(body, name)]
    if not dropped:
        return request, []
    notices = [Notice("setting_dropped", f"{name} is not accepted here", name, "set", "nothing") for name in dropped]
    return msgspec.structs.replace(request, body=msgspec.json.encode(body)), notices


def has_field(body: Any, name: str, given: Container[str] = ()) -> bool:
    """Whether `drop_fields` would drop something of this name from a body."""
    return _can_drop(name, given) and _drop(msgspec.json.decode(msgspec.json.encode(body)), name)


def _can_drop(name: str, given: Container[str]) -> bool:
    first = name.partition(".")[0]
    if name in ESSENTIAL:
        return False
    return first not in given or name.startswith(_CONTROLS)


def _drop(body: Any, name: str) -> bool:
    path = name.split(".")
    return _remove(body, path, said=path[0] in ESSENTIAL)


def _remove(node: Any, path: list[str], *, said: bool) -> bool:
    """Remove a field from an object, or from all objects of a list; objects and lists that get empty go too.

    `said`: the field is inside message content, which must not be lost.
    """
    if isinstance(node, list):
        before = len(node)
        if len(path) == 1 and not (said and path[0] in _SAID):
            node[:] = [each for each in node if not (isinstance(each, dict) and each.get("type") == path[0])]
        return sum(_remove(each, path, said=said) for each in node) > 0 or len(node) < before
    if not isinstance(node, dict):
        return False
    first, *rest = path
    if first not in node:
        # Some servers name the type of an object as if it were a field: thinking.enabled.budget_tokens.
        return bool(rest) and node.get("type") == first and _remove(node, rest, said=said)
    if not rest:
        if said and _carries(node, first):
            return False
        del node[first]
        return True
    removed = _remove(node[first], rest, said=said)
    if removed and node[first] in ({}, []) and first not in ESSENTIAL and not (said and _carries(node, first)):
        del node[first]
    return removed


def _carries(node: dict[str, Any], name: str) -> bool:
    """Whether a field of a message, a part or a tool carries what was said."""
    kind = str(node.get("type", ""))
    match name:
        case "content":
            return kind != "reasoning"
        case "text":
            return not kind or "text" in kind
        case "id":
            return kind in ("tool_use", "function", "function_call") and "call_id" not in node
        case _:
            return name in _SAID
