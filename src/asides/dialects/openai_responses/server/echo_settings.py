"""The settings of a request that a response repeats: `echo_settings(prompt)`. Official clients require some of them.

Not here: the response around them (write_reply).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from asides.values.messages import OutputSchema, Prompt
from asides.values.tools import Tool

Wire: TypeAlias = dict[str, Any]


def echo_settings(prompt: Prompt) -> Wire:
    """Return the settings of a prompt by the names of this dialect."""
    extra = prompt.extra
    tools = extra.get("tools") or [_encode_tool(tool) for tool in prompt.tools]
    text: Wire = {"format": _encode_output(prompt), **(extra.get("text") or {})}
    return {
        "instructions": prompt.system,
        "metadata": prompt.metadata or {},
        "parallel_tool_calls": prompt.parallel_tool_calls is not False,
        "tool_choice": extra.get("tool_choice") or _encode_choice(prompt.tool_choice),
        # It is the longest setting, and three events repeat it.
        "tools": msgspec.Raw(msgspec.json.encode(tools)),
        "temperature": prompt.sampling.temperature,
        "top_p": prompt.sampling.top_p,
        "max_output_tokens": prompt.max_tokens,
        "previous_response_id": prompt.state.previous_response_id,
        "reasoning": {"effort": _encode_effort(prompt), "summary": prompt.thinking.summary},
        "text": text,
        "truncation": prompt.state.truncation or "disabled",
        "user": prompt.user,
    }


def _encode_tool(tool: Tool) -> Wire:
    described: Wire = {"type": "function", "name": tool.name, "description": tool.description or None}
    return {**described, "parameters": tool.parameters, "strict": tool.strict is True}


def _encode_choice(choice: str | None) -> str | Wire:
    if choice is None or choice in ("auto", "none", "required"):
        return choice or "auto"
    return {"type": "function", "name": choice}


def _encode_effort(prompt: Prompt) -> str | None:
    return "none" if prompt.thinking.mode == "off" else prompt.thinking.effort


def _encode_output(prompt: Prompt) -> Wire:
    match prompt.output:
        case OutputSchema(name=name, schema=schema, strict=strict):
            return {"type": "json_schema", "name": name, "schema": schema, "strict": strict}
        case "json":
            return {"type": "json_object"}
        case _:
            return {"type": "text"}
