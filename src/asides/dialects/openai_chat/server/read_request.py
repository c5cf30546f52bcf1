"""Read a client's chat request as a prompt: `read(body) → ServedRequest`. Unknown fields stay in `extra`.

Not here: single messages (import_messages), and replies (write_reply).
"""

from __future__ import annotations

from typing import Any, Literal

from asides.dialects.dialect import ServedRequest
from asides.dialects.openai_chat.import_messages import import_messages
from asides.dialects.server_half import RequestFields, read_sampling
from asides.values.errors import ConfigError
from asides.values.messages import Message, OutputSchema, Prompt, Sampling
from asides.values.parts import Text
from asides.values.thinking import Effort, Mode, Show, Summary, Thinking, read_thinking
from asides.values.tools import Tool, read_tool

# The names that hosts have for a thinking budget, besides the objects that hold one.
_BUDGET_FIELDS = ("thinking_budget", "thinking_token_budget", "reasoning_budget", "reasoning_budget_tokens")
_TEMPLATE_SWITCHES = ("enable_thinking", "thinking")
_OPENROUTER_FIELDS = ("effort", "max_tokens", "enabled", "exclude", "summary")
_TOGGLE_FIELDS = ("type", "budget_tokens", "display")


def read(body: bytes, path: str = "") -> ServedRequest:  # noqa: ARG001 - all of it is in the body
    """Read a request. Raises ConfigError with a message for the client."""
    return _Request.parse_body(body).read()


class _Request(RequestFields):
    """A request while it is read: a reader takes out the fields that it understands; the others stay in `extra`."""

    def read(self) -> ServedRequest:
        model = self.take_model()
        system, messages = self._take_messages()
        stream = self.take("stream", bool) or False
        include_usage = self._take_include_usage()
        prompt = Prompt(
            messages,
            system=system,
            thinking=self._take_thinking(),
            tools=self._take_tools(),
            tool_choice=self._take_tool_choice(),
            parallel_tool_calls=self.take("parallel_tool_calls", bool),
            output=self._take_output(),
            max_tokens=self._take_limit(),
            sampling=self._take_sampling(),
            stop=self._take_stop(),
            stream=stream,
            metadata=self.take("metadata", dict[str, str]),
            user=self.take("user", str),
            extra=self.remaining,
        )
        return ServedRequest(prompt, model, stream, include_usage)

    def _take_messages(self) -> tuple[str | None, tuple[Message, ...]]:
        documents = self.take("messages", list[Any])
        if not documents:
            raise ConfigError("messages is missing or empty.")
        messages = import_messages(documents)
        first = messages[0]
        if first.role == "system" and first.name is None and all(isinstance(part, Text) for part in first.parts):
            return first.text or None, messages[1:]
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

    def _take_sampling(self) -> Sampling:
        names = Sampling.__struct_fields__
        return read_sampling({name: self.remaining.pop(name) for name in names if name in self.remaining})

    def _take_stop(self) -> tuple[str, ...]:
        if isinstance(self.remaining.get("stop"), str):
            return (self.remaining.pop("stop"),)
        return tuple(self.take("stop", list[str]) or ())

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
                    return choice
                case {"type": "function", "function": {"name": str() as name}} | {"name": str() as name}:
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

    # --- thinking ---------------------------------------------------------------------------------------------------

    def _take_thinking(self) -> Thinking:
        """Merge the settings for thinking of all hosts. "off" wins over an amount beside it (requirements, I4)."""
        found = [
            self._take_effort(),
            self._take_object_setting("reasoning", _OPENROUTER_FIELDS),
            self._take_object_setting("thinking", _TOGGLE_FIELDS),
            _take_switch(self.remaining, "enable_thinking"),
            self._take_template_switch(),
            self._take_prompt_mode(),
            *(self._take_budget(name) for name in _BUDGET_FIELDS),
        ]
        return _merge_thinking([thinking for thinking in found if thinking is not None])

    def _take_effort(self) -> Thinking | None:
        if self.remaining.get("reasoning_effort") == "default":
            return None  # one host's name for its default; it stays unchanged
        effort = self.take("reasoning_effort", str)
        return None if effort is None else read_thinking(reasoning_effort=effort)[0]

    def _take_object_setting(self, name: str, known: tuple[str, ...]) -> Thinking | None:
        given = self.remaining.get(name)
        if not isinstance(given, dict):
            return None
        others = {field: value for field, value in given.items() if field not in known}
        settings = {field: value for field, value in given.items() if field in known and value is not None}
        del self.remaining[name]
        if others:
            self.remaining[name] = others
        if not settings:
            return None
        if settings.get("type") == "auto":
            settings["type"] = "adaptive"
        try:
            return (read_thinking(reasoning=settings) if name == "reasoning" else read_thinking(settings))[0]
        except (TypeError, ValueError):
            raise ConfigError(f"{name} is invalid.") from None

    def _take_template_switch(self) -> Thinking | None:
        variables = self.remaining.get("chat_template_kwargs")
        if not isinstance(variables, dict):
            return None
        switches = [_take_switch(variables, name) for name in _TEMPLATE_SWITCHES]
        if not variables:
            del self.remaining["chat_template_kwargs"]
        return next((thinking for thinking in switches if thinking is not None), None)

    def _take_prompt_mode(self) -> Thinking | None:
        if self.remaining.get("prompt_mode") != "reasoning":
            return None
        del self.remaining["prompt_mode"]
        return Thinking(mode="on")

    def _take_budget(self, name: str) -> Thinking | None:
        budget = self.take(name, int)
        # At one host a negative budget means that the model decides.
        return None if budget is None else Thinking(mode="auto") if budget < 0 else read_thinking(budget)[0]


def _take_switch(fields: dict[str, Any], name: str) -> Thinking | None:
    if not isinstance(fields.get(name), bool):
        return None
    return Thinking(mode="on" if fields.pop(name) else "off")


def _merge_thinking(found: list[Thinking]) -> Thinking:
    show: Show = "none" if any(thinking.show == "none" for thinking in found) else "summary"
    summary: Summary | None = next((thinking.summary for thinking in found if thinking.summary is not None), None)
    modes: list[Mode] = [thinking.mode for thinking in found if thinking.mode is not None]
    if "off" in modes:
        return Thinking(mode="off", show=show, summary=summary)
    effort: Effort | None = next((thinking.effort for thinking in found if thinking.effort is not None), None)
    budget = next((thinking.budget for thinking in found if thinking.budget is not None), None)
    mode: Mode | None = modes[0] if modes else None
    if mode == "on" and (effort is not None or budget is not None):
        mode = None  # the amount implies it
    return Thinking(mode=mode, effort=effort, budget=budget, show=show, summary=summary)
