"""Encodes a planned prompt as a chat request: `encode(prompt, target) → (HttpRequest, notices)`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from asides.dialects.dialect import HttpRequest
from asides.dialects.http_body import (
    build_post,
    encode_native_tool,
    join_url,
    merge_fields,
    report_added,
    report_tool_settings,
)
from asides.dialects.openai_chat.encode_messages import encode_cache, encode_messages
from asides.dialects.verbatim import WholeFields, write_fields
from asides.providers.provider import THINKING_FIELDS, Quirks, Target
from asides.providers.switches.write import write as write_thinking
from asides.values.messages import OutputSchema, Prompt
from asides.values.notices import Notice
from asides.values.tools import Tool

OUTPUT_LIMITS = ("max_tokens", "max_completion_tokens")


def encode(prompt: Prompt, target: Target) -> tuple[HttpRequest, tuple[Notice, ...]]:
    """Encode a planned prompt for its target: the same prompt gives the same bytes, and no key is in them."""
    notices: list[Notice] = []
    body = _build_body(prompt, target, notices)
    accept = "text/event-stream" if body.get("stream") is True else "application/json"
    is_begun = prompt.begun_thinking is not None and target.quirks.continues == "prefix"
    return build_post(target, build_url(target, is_beta=is_begun), accept, body), tuple(notices)


def build_url(target: Target, *, is_beta: bool = False) -> str:
    """Build the address: the base URL, the dialect's path, and the row's query. `is_beta`: below /beta."""
    path = "/beta" if is_beta else urlsplit(target.base_url).path.rstrip("/")
    if not path.endswith(target.quirks.path):
        path += target.quirks.path
    return join_url(target, path)


def _build_body(prompt: Prompt, target: Target, notices: list[Notice]) -> dict[str, Any]:
    rule, quirks = target.rule, target.quirks
    # The model and the messages come first, so that a longer conversation begins with the bytes of a shorter one.
    body: dict[str, Any] = {"model": target.model, "messages": encode_messages(prompt, target, notices)}
    custom = {_find_custom_name(native) for native in _list_native(prompt)}
    body |= encode_tools(
        prompt,
        notices,
        tool=lambda tool: _encode_tool(tool, quirks),
        named=lambda name: _encode_choice(name, custom=name in custom),
    )
    if prompt.cache:
        body |= _encode_cache_settings(prompt, quirks, body)
    if prompt.output is not None:
        body |= _encode_output(prompt.output, target.facts.structured_output, notices)
    if prompt.max_tokens is not None and not any(name in prompt.extra for name in OUTPUT_LIMITS):
        body |= _encode_limit(prompt, prompt.max_tokens, target)
    body |= prompt.sampling.to_dict()
    if prompt.stop:
        body["stop"] = list(prompt.stop)
    if prompt.stream:
        body["stream"] = True
        if quirks.stream_usage:
            body["stream_options"] = {"include_usage": True}
            notices += _report_usage(prompt)
        if rule.tool_stream and prompt.tools and not prompt.is_from("openai_chat"):
            body["tool_stream"] = True
    if prompt.metadata is not None:
        body["metadata"] = prompt.metadata
    if prompt.user is not None:
        body["user"] = prompt.user
    if rule.thinking != "never":
        # They ask the host to separate thinking; some hosts refuse them for a model that does not think.
        body |= dict(target.facts.fields)
    notices += report_added(prompt, "openai_chat", body, *dict(target.facts.fields))
    thinking, told = write_thinking(prompt.thinking, target, "openai_chat", source=prompt.source)
    notices += told
    body = merge_fields(body, thinking)
    if prompt.begun_thinking is not None:
        _add_begun_turn(body, prompt.begun_thinking, target)
    accepts = partial(_accepts_no_field, notices=notices) if quirks.message_fields else None
    whole = _WHOLE_WITH_ANY if quirks.any_tool else _WHOLE
    body = _restore_functions(prompt, merge_fields(body, prompt.extra))
    return write_fields(prompt, body, "openai_chat", whole, notices, accepts)


def _accepts_no_field(_: Mapping[str, Any], name: str, *, notices: list[Notice]) -> bool:
    """A host that refuses unknown fields in messages refuses a second name or type of a tool."""
    if name not in ("name", "type"):
        return True
    notices.append(Notice("field_not_sent", f"this host refuses unknown fields; {name!r} was left out", "tools"))
    return False


def _is_same(name: str, ours: Any, theirs: Any) -> bool:
    """Whether a field means the same: a tool is a function, and a single stop text needs no list."""
    return (name == "type" and ours == "function" and theirs is None) or (name == "stop" and ours == [theirs])


def _is_same_with_any(name: str, ours: Any, theirs: Any) -> bool:
    return _is_same(name, ours, theirs) or (name == "tool_choice" and (ours, theirs) == ("required", "any"))


_WHOLE = WholeFields(
    ("tools", "functions", "tool_choice", "response_format", "stop"),
    schemas=frozenset({"parameters", "schema"}),
    same=_is_same,
    defaults=({"type": "text"},),
)
_WHOLE_WITH_ANY = msgspec.structs.replace(_WHOLE, same=_is_same_with_any)


def _add_begun_turn(body: dict[str, Any], thinking: str, target: Target) -> None:
    """Add the beginning of the model's turn, which it continues with its answer."""
    match target.quirks.continues:
        case "prefix":
            field = target.quirks.replay_field or THINKING_FIELDS[0]
            body["messages"].append({"role": "assistant", "content": "", field: thinking, "prefix": True})
        case "final_message":
            # Templates strip the text between the tags, and a server looks for the message in what they made of it.
            content = f"<think>\n{thinking.strip()}\n</think>\n\n"
            body["messages"].append({"role": "assistant", "content": content})
            body |= {"continue_final_message": True, "add_generation_prompt": False}
        case "nothing":
            pass


def _encode_cache_settings(prompt: Prompt, quirks: Quirks, body: dict[str, Any]) -> dict[str, Any]:
    """Ask for a cache: breakpoints where the host takes them, else the fields that its own cache has."""
    if quirks.cache_control:
        from asides.dialects.cache_marks import CHAT_CONTROLS, mark_request

        mark_request(prompt, body, CHAT_CONTROLS)
    if not quirks.cache_key:
        return {}
    from asides.dialects.cache_marks import encode_cache_key

    return encode_cache_key(prompt)


def encode_tools(
    prompt: Prompt,
    notices: list[Notice],
    *,
    tool: Callable[[Tool], dict[str, Any]],
    named: Callable[[str], dict[str, Any]],
) -> dict[str, Any]:
    """Encode the tools and the tool choice. Responses shares this; `tool` and `named` encode the parts that differ."""
    encoded: dict[str, Any] = {}
    if prompt.tools:
        encoded["tools"] = [tool(each) for each in prompt.tools]
    elif "tools" not in prompt.extra:
        notices += report_tool_settings(prompt, "tool_choice", "parallel_tool_calls")
        return encoded
    match prompt.tool_choice:
        case None:
            pass
        case "auto" | "none" | "required":
            encoded["tool_choice"] = prompt.tool_choice
        case name:
            encoded["tool_choice"] = named(name)
    if prompt.parallel_tool_calls is not None:
        encoded["parallel_tool_calls"] = prompt.parallel_tool_calls
    return encoded


def _report_usage(prompt: Prompt) -> list[Notice]:
    """Return a notice if the request did not ask for the usage of a stream, which is asked for here."""
    if not prompt.is_from("openai_chat") or prompt.source is None:
        return []
    given = prompt.source.fields.get("stream_options")
    if isinstance(given, Mapping) and given.get("include_usage") is True:
        return []
    asked = str(given.get("include_usage", "nothing")) if isinstance(given, Mapping) else "nothing"
    detail = "the usage of the stream is asked for, so that it can be counted"
    return [Notice("field_added", detail, "stream_options", asked, "include_usage")]


def _encode_limit(prompt: Prompt, limit: int, target: Target) -> dict[str, Any]:
    """Encode the limit of the output: as the request had it, if it had both fields."""
    source = prompt.source
    if source is not None and source.dialect == "openai_chat":
        both = {name: source.fields.get(name) for name in OUTPUT_LIMITS}
        if limit in both.values() and None not in both.values():
            return both
    return {target.facts.output_limit: limit}


def _encode_choice(name: str, *, custom: bool) -> dict[str, Any]:
    kind = "custom" if custom else "function"
    return {"type": kind, kind: {"name": name}}


def _find_custom_name(native: Mapping[str, Any]) -> str | None:
    """Return the name of a free-text tool; None for other tools."""
    described = native.get("custom") if native.get("type") == "custom" else None
    name = described.get("name") if isinstance(described, Mapping) else None
    return name if isinstance(name, str) else None


def _list_native(prompt: Prompt) -> list[Mapping[str, Any]]:
    """List the tools that are not functions: of the caller, or as a request has them."""
    found = [tool.native for tool in prompt.tools if tool.native is not None]
    more = prompt.extra.get("tools")
    return [*found, *(tool for tool in more if isinstance(tool, Mapping))] if isinstance(more, list) else list(found)


def _restore_functions(prompt: Prompt, body: dict[str, Any]) -> dict[str, Any]:
    """Write the functions that came in the older fields `functions` and `function_call` there."""
    source = prompt.source
    older = source.fields.get("functions") if source is not None and source.dialect == "openai_chat" else None
    if source is None or not isinstance(older, list) or not isinstance(body.get("tools"), list):
        return body
    names = [function.get("name") for function in older if isinstance(function, Mapping)]
    tools: list[dict[str, Any]] = body["tools"]
    functions = [tool["function"] for tool in tools if tool.get("function", {}).get("name") in names]
    others = [tool for tool in tools if tool.get("function", {}).get("name") not in names]
    restored = {name: value for name, value in body.items() if name != "tools"} | {"functions": functions}
    if others:
        restored["tools"] = others
    choice = restored.get("tool_choice")
    if "function_call" in source.fields and "tool_choice" not in source.fields and choice is not None:
        del restored["tool_choice"]
        restored["function_call"] = choice.get("function", choice) if isinstance(choice, dict) else choice
    return restored


def _is_own_tool(native: dict[str, Any], quirks: Quirks) -> bool:
    """Whether a tool is one of this host, or has the form of many: an object under the name of its type."""
    kind = native.get("type")
    if not isinstance(kind, str):
        return False
    own = any(kind == name or (name.endswith(":") and kind.startswith(name)) for name in quirks.server_tools)
    return own or kind == "builtin_function" or isinstance(native.get(kind), Mapping)


def _encode_tool(tool: Tool, quirks: Quirks) -> dict[str, Any]:
    if tool.native is not None:
        return encode_native_tool(tool, known=_is_own_tool(tool.native, quirks))
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = tool.parameters
    if tool.strict is not None:
        function["strict"] = tool.strict
    encoded: dict[str, Any] = {"type": "function", "function": function}
    return {**encoded, "cache_control": encode_cache(tool.cache)} if tool.cache and quirks.cache_control else encoded


def _encode_output(
    output: OutputSchema | Literal["json"],
    takes: Literal["json_schema", "json_object", "nothing"],
    notices: list[Notice],
) -> dict[str, Any]:
    if isinstance(output, OutputSchema) and takes == "json_schema":
        schema = {"name": output.name, "schema": output.schema, "strict": output.strict}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}
    asked = "json_schema" if isinstance(output, OutputSchema) else "json_object"
    if takes == "nothing":
        code = "schema_not_sent" if asked == "json_schema" else "json_not_sent"
        detail = "this host has no structured output; the prompt must say what you want"
        notices.append(Notice(code, detail, "output", asked, "nothing"))
        return {}
    if asked == "json_schema":
        detail = "this host promises JSON but takes no schema; the prompt must say what you want"
        notices.append(Notice("schema_not_sent", detail, "output", asked, "json_object"))
    return {"response_format": {"type": "json_object"}}
