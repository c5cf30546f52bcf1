"""The caller's tools in another dialect: namespaces, tools with free text, and names that the target does not accept.

`map_tools` lists them as functions with names that the target takes; `ToolMap` has both sides of each name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

import msgspec

from asides.dialects.server_half import CallerTool
from asides.providers.provider import Target
from asides.relay.translate.hosted_tools import map_hosted
from asides.values.errors import ConfigError
from asides.values.messages import Message, Prompt
from asides.values.notices import Notice
from asides.values.parts import Part, ToolCall, ToolResult
from asides.values.tools import Tool, read_tool
from asides.values.traits import HAS_CALLS, find_traits, list_calls

_WORD_64 = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NAMES: dict[str, re.Pattern[str]] = {
    # "^[a-zA-Z0-9_-]+$", at most 64 (the error texts of OpenAI; AWS ToolSpecification, 2026-11).
    "openai_chat": _WORD_64,
    "openai_responses": _WORD_64,
    "bedrock": _WORD_64,
    # docs.anthropic.com tool use: ^[a-zA-Z0-9_-]{1,128}$ (2026-11).
    "anthropic": re.compile(r"[a-zA-Z0-9_-]{1,128}"),
    # ai.google.dev FunctionDeclaration: a letter or _, then also digits, dots, colons and dashes; at most 64 (2026-11).
    "gemini": re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"),
    # docs.cohere.com: letters, digits and _, not a digit first (2026-11).
    "cohere": re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,63}"),
}
_UNFIT = re.compile(r"[^a-zA-Z0-9_]")
_STEM = 48

TOOL_NOT_SENT = "tool_not_sent"
INPUT = "input"
"""The argument that holds the free text of a tool which has no schema."""


class ToolMap(msgspec.Struct, frozen=True):
    """The names of tools on both sides, where they differ."""

    sent: dict[tuple[str, str], str] = {}
    """By the namespace ("" for none) and the caller's name: the name that is sent."""
    received: dict[str, CallerTool] = {}
    """By the name that is sent: the caller's tool."""

    def find_sent(self, name: str, namespace: str = "") -> str:
        """Return the name that is sent for a tool of the caller."""
        return self.sent.get((namespace, name), name)


def map_tools(
    prompt: Prompt, caller: str, target: str, host: Target | None = None
) -> tuple[tuple[Tool, ...], ToolMap, list[Notice]]:
    """Return the tools for another dialect, the map of their names, and notices about dropped tools. `host`: the
    target, whose own tools replace equivalent tools of the caller's provider; None: all of these are dropped.
    """
    if not prompt.tools and not prompt.extra and not find_traits(prompt.messages) & HAS_CALLS:
        return (), ToolMap(), []
    found = [*_list_tools(prompt, caller)]
    hosted = {} if host is None else _map_hosted(prompt, caller, host)
    left_out = [each for each in found if isinstance(each, str) and each not in hosted]
    notices = [
        Notice(TOOL_NOT_SENT, f"the provider here has no tool {name!r}, and runs none itself", "tools", name, "nothing")
        for name in dict.fromkeys(left_out)
    ]
    declared = [each for each in found if not isinstance(each, str)]
    names = _NameFitter(_NAMES.get(target), {own.name for own, _ in declared if not own.namespace})
    tools: list[Tool] = []
    for own, tool in declared:
        sent = names.add(own)
        tools.append(tool if sent == tool.name else msgspec.structs.replace(tool, name=sent))
    for own in _list_called(prompt):
        names.add(own)
    return (*tools, *[*hosted.values()][:1]), ToolMap(names.sent, names.list_received()), notices


def _map_hosted(prompt: Prompt, caller: str, host: Target) -> dict[str, Tool]:
    """The host's own tools, by the names of those of the caller's provider."""
    listed = prompt.extra.get("tools")
    mapped: dict[str, Tool] = {}
    for tool in listed if isinstance(listed, list) else ():
        if isinstance(tool, Mapping) and (own := map_hosted(tool, prompt, caller, host)) is not None:
            kind = tool.get("type")
            mapped[next(iter(tool)) if not isinstance(kind, str) else _name_hosted(tool, kind)] = own
    return mapped


def _name_hosted(tool: Mapping[str, Any], kind: str) -> str:
    name = tool.get("name")
    return f"{name} ({kind})" if isinstance(name, str) and name != kind else kind


class _NameFitter:
    """Gives each tool of the caller a name that the target accepts and no other tool has."""

    def __init__(self, accepted: re.Pattern[str] | None, plain: set[str]) -> None:
        self._accepted = accepted
        self._taken = {name for name in plain if self._fits(name)}
        """Names that need no change keep it, whatever comes before them."""
        self._known: dict[tuple[str, str], str] = {}
        self.sent: dict[tuple[str, str], str] = {}
        self._received: dict[str, CallerTool] = {}

    def list_received(self) -> dict[str, CallerTool]:
        """Return the caller's tools by the names that models call: some leave a namespace out, or write a dot."""
        inner = [own for own in self._received.values() if own.namespace]
        short = [own.name for own in inner]
        taken = self._taken | set(self._known.values())
        aliases = {own.name: own for own in inner if short.count(own.name) == 1 and own.name not in taken}
        return {**aliases, **{f"{own.namespace}.{own.name}": own for own in inner}, **self._received}

    def _fits(self, name: str) -> bool:
        return self._accepted is None or self._accepted.fullmatch(name) is not None

    def add(self, own: CallerTool) -> str:
        key = (own.namespace, own.name)
        if key in self._known:
            return self._known[key]
        name = self._choose(own)
        self._known[key] = name
        if name != own.name or own.namespace or own.custom:
            self.sent[key] = name
            self._received[name] = own
        return name

    def _choose(self, own: CallerTool) -> str:
        if not own.namespace and self._fits(own.name):
            return own.name
        name = f"{own.namespace.rstrip('_')}__{own.name}" if own.namespace else own.name
        if not self._fits(name) or name in self._taken:
            # Two names of the caller that look alike must not become one.
            digest = blake2b(f"{own.namespace}\n{own.name}".encode("utf-8", "replace"), digest_size=4).hexdigest()
            stem = _UNFIT.sub("_", name)[:_STEM]
            name = f"{stem if stem and not stem[0].isdigit() else f'_{stem}'}_{digest}"
        self._taken.add(name)
        return name


# --- the caller's lists -----------------------------------------------------------------------------------------------


TOOL_LISTS = ("tools", "toolConfig")
"""The fields of `Prompt.extra` that have tools which only the caller's provider runs."""


def _list_tools(prompt: Prompt, caller: str) -> Iterator[tuple[CallerTool, Tool] | str]:
    """Yield the tools in the order in which the caller lists them; of a tool that only its provider runs, the name."""
    listed = prompt.extra.get("tools")
    if caller == "bedrock":
        config = prompt.extra.get("toolConfig")
        listed = config.get("tools") if isinstance(config, Mapping) else None
    others = [tool for tool in listed if isinstance(tool, Mapping)] if isinstance(listed, list) else []
    if not others or caller in ("bedrock", "gemini"):
        yield from ((CallerTool(tool.name), tool) for tool in prompt.tools)
        yield from (name for tool in others for name in _list_provider_tools(tool))
        return
    functions = iter(prompt.tools)
    for tool in others:
        match tool:
            case {"type": "namespace", "name": str() as namespace, "tools": list() as inner}:
                yield from _list_namespace(namespace, tool.get("description"), inner)
            case {"type": "custom", "custom": {"name": str()} as described}:
                yield _read_custom(described, "")
            case {"type": "custom", "name": str()} if "input_schema" not in tool and caller != "anthropic":
                yield _read_custom(tool, "")
            case {"type": "function" | "custom"}:
                yield from _take_next(functions)
            case {"type": str() as kind}:
                yield _name_hosted(tool, kind)
            case _:
                yield from _take_next(functions)
    yield from ((CallerTool(tool.name), tool) for tool in functions)


def _take_next(functions: Iterator[Tool]) -> Iterator[tuple[CallerTool, Tool]]:
    tool = next(functions, None)
    if tool is not None:
        yield CallerTool(tool.name), tool


def _list_provider_tools(tool: Mapping[str, Any]) -> list[str]:
    """The names of the provider's tools in an entry of a list without types. A cache breakpoint does not count."""
    names = [name for name in tool if name not in ("functionDeclarations", "function_declarations", "cachePoint")]
    inner = tool.get("systemTool")
    return [inner["name"]] if isinstance(inner, Mapping) and isinstance(inner.get("name"), str) else names


def _list_namespace(namespace: str, about: object, inner: list[Any]) -> Iterator[tuple[CallerTool, Tool] | str]:
    for tool in inner:
        match tool:
            case {"type": "function", "name": str()}:
                read = read_tool(tool)
                described = f"{about}\n\n{read.description}" if isinstance(about, str) and not read.description else ""
                if described:
                    read = msgspec.structs.replace(read, description=described.strip())
                yield CallerTool(read.name, namespace), read
            case {"type": "custom", "name": str()}:
                yield _read_custom(tool, namespace)
            case {"type": str() as kind}:
                yield f"{namespace}.{kind}"
            case _:
                raise ConfigError(f"a tool of the namespace {namespace!r} has no type.")


def _read_custom(described: Mapping[str, Any], namespace: str) -> tuple[CallerTool, Tool]:
    """Read a tool that takes free text as a function with one text. Its grammar becomes a part of its description."""
    name, about = str(described["name"]), described.get("description")
    description = about if isinstance(about, str) else ""
    match described.get("format"):
        case {"type": "grammar", "definition": str() as grammar, **rest} | {
            "type": "grammar",
            "grammar": {"definition": str() as grammar, **rest},
        }:
            syntax = rest.get("syntax")
            description += (
                f"\n\nThe {INPUT} must fit this {syntax if isinstance(syntax, str) else ''} grammar:\n{grammar}"
            )
        case _:
            pass
    text = {"type": "string", "description": "The whole input of the tool, as plain text."}
    parameters = {"type": "object", "properties": {INPUT: text}, "required": [INPUT], "additionalProperties": False}
    return CallerTool(name, namespace, custom=True), Tool(name, description.strip(), parameters)


# --- calls and results ------------------------------------------------------------------------------------------------


def _list_called(prompt: Prompt) -> Iterator[CallerTool]:
    """Yield the tools that the history calls; a later request may no longer list them."""
    for call in list_calls(prompt.messages):
        yield CallerTool(call.name, find_namespace(call), custom=call.custom)


def find_namespace(call: ToolCall) -> str:
    """Return the namespace of a call; "" if it has none."""
    for seal in call.seals:
        if seal.entry is not None and '"namespace"' in seal.entry:
            item = msgspec.json.decode(seal.entry)
            namespace = item.get("namespace") if isinstance(item, dict) else None
            if isinstance(namespace, str):
                return namespace
    return ""


def rename_calls(messages: tuple[Message, ...], tools: ToolMap) -> tuple[Message, ...]:
    """Give the calls of a history, and their results, the names that are sent."""
    if not tools.sent:
        return messages
    names: dict[str, str] = {}
    return tuple(_rename_message(message, tools, names) for message in messages)


def _rename_message(message: Message, tools: ToolMap, names: dict[str, str]) -> Message:
    if not any(isinstance(part, (ToolCall, ToolResult)) for part in message.parts):
        return message
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            sent = tools.find_sent(part.name, find_namespace(part))
            names[part.id] = sent
            part = _fit_call(part, sent)
        elif isinstance(part, ToolResult) and part.name and part.call_id in names:
            part = msgspec.structs.replace(part, name=names[part.call_id])
        parts.append(part)
    return msgspec.structs.replace(message, parts=tuple(parts))


def _fit_call(call: ToolCall, sent: str) -> ToolCall:
    if call.custom:
        # Its text is the only argument of the function that represents the tool.
        return ToolCall(call.id, sent, {INPUT: call.raw_arguments or ""})
    seals = tuple(seal for seal in call.seals if seal.origin is not None or seal.entry is None)
    return call if sent == call.name and seals == call.seals else msgspec.structs.replace(call, name=sent, seals=seals)
