"""Read a client's Messages request as a prompt: `read(body) → ServedRequest`. Unknown fields stay in `extra`."""

from __future__ import annotations

from typing import Any

from asides.dialects.anthropic.import_messages import import_messages, import_texts
from asides.dialects.anthropic.wire import SAMPLING
from asides.dialects.dialect import ServedRequest
from asides.dialects.server_half import RequestFields
from asides.providers.switches.read import read as read_switches
from asides.values.errors import ConfigError
from asides.values.messages import Message, OutputSchema, Prompt
from asides.values.tools import Tool, read_tool

_CHOICES = ("auto", "any", "tool", "none")


def read(body: bytes, path: str = "") -> ServedRequest:  # noqa: ARG001 - all of it is in the body
    """Read a request. Raises ConfigError with a message for the client."""
    return _Request.parse_body(body).keep("anthropic").read()


class _Request(RequestFields):
    """A request while it is parsed: readers remove the fields they understand; the others stay in `extra`."""

    def read(self) -> ServedRequest:
        model = self.take("model", str)
        if not model:
            raise ConfigError("model: Field required.")
        documents = self.take("messages", list[Any])
        if not documents:
            raise ConfigError("messages: at least one message is required.")
        system, system_messages = self._take_system()
        stream = self.take("stream", bool) or False
        tool_choice, parallel = self._take_tool_choice()
        output = self._take_output()
        prompt = Prompt(
            (*system_messages, *import_messages(documents)),
            system=system,
            thinking=read_switches("anthropic", self.remaining),
            tools=self._take_tools(),
            tool_choice=tool_choice,
            parallel_tool_calls=parallel,
            output=output,
            max_tokens=self.take("max_tokens", int),
            sampling=self.take_sampling(SAMPLING),
            stop=tuple(self.take("stop_sequences", list[str]) or ()),
            stream=stream,
            user=self._take_user(),
            extra=self.remaining,
            source=self.source,
        )
        return ServedRequest(prompt, model, stream, include_usage=True)

    def _take_system(self) -> tuple[str | None, tuple[Message, ...]]:
        """Take the system prompt: as text, or as a message if it has several blocks or a cache breakpoint."""
        texts = import_texts(self.remaining.pop("system", None))
        if len(texts) == 1 and not texts[0].cache:
            return texts[0].text, ()
        return None, (Message("system", texts),) if texts else ()

    def _take_user(self) -> str | None:
        metadata = self.take("metadata", dict[str, Any]) or {}
        user = metadata.pop("user_id", None)
        if metadata:
            self.remaining["metadata"] = metadata
        return user if isinstance(user, str) else None

    # --- tools and output -------------------------------------------------------------------------------------------

    def _take_tools(self) -> tuple[Tool, ...]:
        tools = self.take("tools", list[dict[str, Any]]) or []
        custom = [tool for tool in tools if tool.get("type", "custom") == "custom"]
        if len(custom) != len(tools):
            # Only this provider knows its own tools, so the whole list also stays as it is.
            self.remaining["tools"] = tools
        for place, tool in enumerate(custom):
            if not isinstance(tool.get("name"), str):
                raise ConfigError(f"tools.{place}.name: Field required.")
        return tuple(map(read_tool, custom))

    def _take_tool_choice(self) -> tuple[str | None, bool | None]:
        choice = self.take("tool_choice", dict[str, Any]) or {}
        if choice.get("type") not in (*_CHOICES, None):
            self.remaining["tool_choice"] = choice  # a newer server may know it
            return None, None
        disabled = choice.get("disable_parallel_tool_use")
        parallel = None if disabled is None else disabled is not True
        match choice.get("type"):
            case "any":
                return "required", parallel
            case "tool":
                return str(choice.get("name", "")), parallel
            case "auto":
                # The object must have a type, so "auto" beside a setting for parallel calls does not count as a choice.
                return ("auto" if parallel is None else None), parallel
            case "none":
                return "none", parallel
            case _:
                return None, parallel

    def _take_output(self) -> OutputSchema | None:
        match self.remaining.get("output_config"):
            case {"format": {"type": "json_schema", "schema": dict() as schema}}:
                config = self.remaining["output_config"]
                self.remaining["output_config"] = {name: value for name, value in config.items() if name != "format"}
                return OutputSchema("answer", schema)
            case _:
                return self._take_older_output()

    def _take_older_output(self) -> OutputSchema | None:
        """Take the field that the format had before it was a part of `output_config`."""
        match self.remaining.get("output_format"):
            case {"type": "json_schema", "schema": dict() as schema}:
                del self.remaining["output_format"]
                return OutputSchema("answer", schema)
            case _:
                return None
