"""A client's chat request as a prompt: `read(body) → ServedRequest`. What is not ours to understand stays in `extra`.

Not here: single messages (read_message), and what is answered (serve).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.dialects.openai_chat.import_messages import import_messages
from asides.dialects.server_half import RequestFields, read_sampling
from asides.values.errors import ConfigError
from asides.values.messages import Message, OutputSchema, Prompt, Sampling, Text
from asides.values.thinking import Effort, Mode, Show, Summary, Thinking, read_thinking
from asides.values.tools import Tool

# Where hosts keep a thinking budget, besides the objects that have one.
_BUDGET_FIELDS = ("thinking_budget", "thinking_token_budget", "reasoning_budget", "reasoning_budget_tokens")
_TEMPLATE_SWITCHES = ("enable_thinking", "thinking")
_OPENROUTER_FIELDS = ("effort", "max_tokens", "enabled", "exclude", "summary")
_TOGGLE_FIELDS = ("type", "budget_tokens", "display")


def read(body: bytes) -> ServedRequest:
    """The request in these bytes. Raises ConfigError with words for whoever sent it."""
    return _Request.parse_body(body).read()


class _Request(RequestFields):
    """A document while it is read: what is understood is taken out, and what remains is `extra`."""

    def read(self) -> ServedRequest:
        model = self.take_model()
        system, messages = self._messages()
        stream = self.take("stream", bool) or False
        include_usage = self._include_usage()
        prompt = Prompt(
            messages,
            system=system,
            thinking=self._thinking(),
            tools=self._tools(),
            tool_choice=self._tool_choice(),
            parallel_tool_calls=self.take("parallel_tool_calls", bool),
            output=self._output(),
            max_tokens=self._limit(),
            sampling=self._sampling(),
            stop=self._stop(),
            stream=stream,
            metadata=self._metadata(),
            user=self.take("user", str),
            extra=self.remaining,
        )
        return ServedRequest(prompt, model, stream, include_usage)

    def _messages(self) -> tuple[str | None, tuple[Message, ...]]:
        told = self.take("messages", list[Any])
        if not told:
            raise ConfigError("messages is missing or empty.")
        messages = import_messages(told)
        first = messages[0]
        if first.role == "system" and first.name is None and all(isinstance(part, Text) for part in first.parts):
            return first.text or None, messages[1:]
        return None, messages

    def _include_usage(self) -> bool:
        options = self.take("stream_options", dict[str, Any]) or {}
        asked = options.pop("include_usage", False)
        if options:
            self.remaining["stream_options"] = options
        return asked is True

    def _limit(self) -> int | None:
        newer, older = self.take("max_completion_tokens", int), self.take("max_tokens", int)
        return newer if newer is not None else older

    def _sampling(self) -> Sampling:
        given = {name: self.remaining.pop(name) for name in Sampling.__struct_fields__ if name in self.remaining}
        return read_sampling(given)

    def _stop(self) -> tuple[str, ...]:
        told = self.remaining.get("stop")
        if isinstance(told, str):
            del self.remaining["stop"]
            return (told,)
        return tuple(self.take("stop", list[str]) or ())

    def _metadata(self) -> dict[str, str] | None:
        return self.take("metadata", dict[str, str])

    # --- tools and output -------------------------------------------------------------------------------------------

    def _tools(self) -> tuple[Tool, ...]:
        legacy = self.take("functions", list[dict[str, Any]]) or []
        told = self.take("tools", list[dict[str, Any]]) or []
        own = [tool for tool in told if tool.get("type", "function") == "function"]
        if len(own) != len(told):
            # A host's own tools mean nothing to others; the whole list goes as it came.
            self.remaining["tools"] = told
        functions: list[Any] = [tool.get("function") for tool in own]
        return tuple(map(_tool, functions + legacy))

    def _tool_choice(self) -> str | None:
        for field in ("tool_choice", "function_call"):
            match self.remaining.get(field):
                case str() as choice:
                    del self.remaining[field]
                    return choice
                case {"type": "function", "function": {"name": str() as name}} | {"name": str() as name}:
                    del self.remaining[field]
                    return name
                case _:
                    continue
        return None

    def _output(self) -> OutputSchema | Literal["json"] | None:
        told = self.remaining.get("response_format")
        match told:
            case {"type": "text"}:
                del self.remaining["response_format"]
                return None
            case {"type": "json_object"}:
                del self.remaining["response_format"]
                return "json"
            case {"type": "json_schema", "json_schema": {"schema": dict() as schema} as described}:
                del self.remaining["response_format"]
                beside = {name: value for name, value in described.items() if name not in ("name", "schema", "strict")}
                if beside:
                    self.remaining["response_format"] = {"json_schema": beside}
                return OutputSchema(str(described.get("name", "answer")), schema, described.get("strict") is True)
            case _:
                return None

    # --- thinking ---------------------------------------------------------------------------------------------------

    def _thinking(self) -> Thinking:
        """Every host's way to ask, as one wish. "off" outdoes an amount that stands beside it (requirements, I4)."""
        wishes = [
            self._effort_wish(),
            self._object_wish("reasoning", _OPENROUTER_FIELDS),
            self._object_wish("thinking", _TOGGLE_FIELDS),
            self._switch_wish(self.remaining, "enable_thinking"),
            self._template_wish(),
            self._prompt_mode_wish(),
            *(self._budget_wish(name) for name in _BUDGET_FIELDS),
        ]
        return _together([wish for wish in wishes if wish is not None])

    def _effort_wish(self) -> Thinking | None:
        if self.remaining.get("reasoning_effort") == "default":
            return None  # one host's word for its own habit; it stays as it is
        effort = self.take("reasoning_effort", str)
        return None if effort is None else read_thinking(reasoning_effort=effort)[0]

    def _object_wish(self, name: str, known: tuple[str, ...]) -> Thinking | None:
        told = self.remaining.get(name)
        if not isinstance(told, dict):
            return None
        beside = {field: value for field, value in told.items() if field not in known}
        asked = {field: value for field, value in told.items() if field in known and value is not None}
        del self.remaining[name]
        if beside:
            self.remaining[name] = beside
        if not asked:
            return None
        if asked.get("type") == "auto":
            asked["type"] = "adaptive"
        try:
            wish, _ = read_thinking(reasoning=asked) if name == "reasoning" else read_thinking(asked)
        except (TypeError, ValueError):
            raise ConfigError(f"{name} does not read.") from None
        return wish

    def _switch_wish(self, holder: dict[str, Any], name: str) -> Thinking | None:
        if not isinstance(holder.get(name), bool):
            return None
        return Thinking(mode="on" if holder.pop(name) else "off")

    def _template_wish(self) -> Thinking | None:
        told = self.remaining.get("chat_template_kwargs")
        if not isinstance(told, dict):
            return None
        wishes = [self._switch_wish(told, name) for name in _TEMPLATE_SWITCHES]
        if not told:
            del self.remaining["chat_template_kwargs"]
        return next((wish for wish in wishes if wish is not None), None)

    def _prompt_mode_wish(self) -> Thinking | None:
        if self.remaining.get("prompt_mode") != "reasoning":
            return None
        del self.remaining["prompt_mode"]
        return Thinking(mode="on")

    def _budget_wish(self, name: str) -> Thinking | None:
        budget = self.take(name, int)
        # Below zero is one host's "as much as you like".
        return None if budget is None else Thinking(mode="auto") if budget < 0 else read_thinking(budget)[0]


def _together(wishes: list[Thinking]) -> Thinking:
    show: Show = "none" if any(wish.show == "none" for wish in wishes) else "summary"
    summary: Summary | None = next((wish.summary for wish in wishes if wish.summary is not None), None)
    modes: list[Mode] = [wish.mode for wish in wishes if wish.mode is not None]
    if "off" in modes:
        return Thinking(mode="off", show=show, summary=summary)
    effort: Effort | None = next((wish.effort for wish in wishes if wish.effort is not None), None)
    budget = next((wish.budget for wish in wishes if wish.budget is not None), None)
    mode: Mode | None = modes[0] if modes else None
    if mode == "on" and (effort is not None or budget is not None):
        mode = None  # an amount says it already
    return Thinking(mode=mode, effort=effort, budget=budget, show=show, summary=summary)


def _tool(function: object) -> Tool:
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise ConfigError("a tool has no function with a name.")
    fields = {name: value for name in Tool.__struct_fields__ if (value := function.get(name)) is not None}
    try:
        return msgspec.convert(fields, Tool)
    except msgspec.ValidationError as problem:
        raise ConfigError(f"the tool {function['name']} does not read: {problem}.") from None
