"""Read a client's chat request as a prompt: `read(body) → ServedRequest`. Unknown fields stay in `extra`."""

from __future__ import annotations

import re
from typing import Any, Literal
from urllib.parse import unquote

from asides.dialects.dialect import ServedRequest
from asides.dialects.openai_chat.import_messages import import_messages
from asides.dialects.server_half import RequestFields
from asides.providers.switches.read import read as read_switches
from asides.values.errors import ConfigError
from asides.values.messages import Message, OutputSchema, Prompt, Sampling
from asides.values.parts import Text
from asides.values.tools import Tool, read_tool, read_tool_choice

# The path of a deployment names the model; its body may name none.
_DEPLOYMENT = re.compile(r"/deployments/(?P<model>[^/]+)/")


def read(body: bytes, path: str = "") -> ServedRequest:
    """Read a request. Raises ConfigError with a message for the client."""
    request = _Request.parse_body(body).keep("openai_chat")
    if "model" not in request.remaining and (found := _DEPLOYMENT.search(path)) is not None:
        request.remaining["model"] = unquote(found["model"])
    return request.read()


class _Request(RequestFields):
    """A request while it is parsed: readers remove the fields they understand; the others stay in `extra`."""

    def read(self) -> ServedRequest:
        model = self.take_model()
        system, messages = self._take_messages()
        stream = self.take("stream", bool) or False
        include_usage = self._take_include_usage()
        prompt = Prompt(
            messages,
            system=system,
            thinking=read_switches("openai_chat", self.remaining),
            tools=self._take_tools(),
            tool_choice=self._take_tool_choice(),
            parallel_tool_calls=self.take("parallel_tool_calls", bool),
            output=self._take_output(),
            max_tokens=self._take_limit(),
            sampling=self.take_sampling({name: name for name in Sampling.__struct_fields__}),
            stop=self.take_stop(),
            stream=stream,
            metadata=self.take("metadata", dict[str, str]),
            user=self.take("user", str),
            extra=self.remaining,
            source=self.source,
        )
        return ServedRequest(prompt, model, stream, include_usage)

    def _take_messages(self) -> tuple[str | None, tuple[Message, ...]]:
        documents = self.take("messages", list[Any])
        if not documents:
            raise ConfigError("messages is missing or empty.")
        messages = import_messages(documents)
        first = messages[0]
        is_plain = all(isinstance(part, Text) and not part.cache for part in first.parts)
        if first.role == "system" and first.name is None and is_plain:
            return self.keep_system(first), messages[1:]
        return None, messages

    def _take_include_usage(self) -> bool:
        options = self.take("stream_options", dict[str, Any]) or {}
        asked = options.pop("include_usage", False)
        if options:
            self.remaining["stream_options"] = options
        return asked is True

    def _take_limit(self) -> int | None:
        newer, older = self.take("max_completion_tokens", int), self.take("max_tokens", int)
        # Hosts differ in which of them they read.
        return max((limit for limit in (newer, older) if limit is not None), default=None)

    # --- tools and output -------------------------------------------------------------------------------------------

    def _take_tools(self) -> tuple[Tool, ...]:
        legacy = self.take("functions", list[dict[str, Any]]) or []
        tools = self.take("tools", list[dict[str, Any]]) or []
        functions = [tool for tool in tools if tool.get("type", "function") == "function"]
        if len(functions) != len(tools):
            # Only the host knows its own tools, so the whole list also stays as it is.
            self.remaining["tools"] = tools
        return tuple(map(read_tool, functions + legacy))

    def _take_tool_choice(self) -> str | None:
        for field in ("tool_choice", "function_call"):
            match self.remaining.get(field):
                case str() as choice:
                    del self.remaining[field]
                    # Mistral's word for it (mistralai 3.7, 2026-11-18), unless a tool has that name.
                    return read_tool_choice(choice)
                case (
                    {"type": "function", "function": {"name": str() as name}}
                    | {
                        "type": "custom",
                        "custom": {"name": str() as name},
                    }
                    | {"name": str() as name}
                ):
                    del self.remaining[field]
                    return name
                case _:
                    continue
        return None

    def _take_output(self) -> OutputSchema | Literal["json"] | None:
        match self.remaining.get("response_format"):
            case {"type": "text"}:
                del self.remaining["response_format"]
                return None
            case {"type": "json_object"}:
                del self.remaining["response_format"]
                return "json"
            case {"type": "json_schema", "json_schema": {"schema": dict() as schema} as described}:
                del self.remaining["response_format"]
                others = {name: value for name, value in described.items() if name not in ("name", "schema", "strict")}
                if others:
                    self.remaining["response_format"] = {"json_schema": others}
                return OutputSchema(str(described.get("name", "answer")), schema, described.get("strict") is True)
            case _:
                return None
