"""A client's request for a message as a prompt: `read(body) → ServedRequest`. What is not ours stays in `extra`.

Not here: single messages (read_message), what is answered (serve), and what a provider would refuse (the stage).
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.dialects.anthropic.import_messages import import_messages, import_texts
from asides.dialects.dialect import ServedRequest
from asides.dialects.server_half import RequestFields, read_sampling
from asides.values.errors import ConfigError
from asides.values.messages import Message, OutputSchema, Prompt, Sampling
from asides.values.thinking import Effort, Thinking, read_thinking
from asides.values.tools import Tool

_SAMPLING = ("temperature", "top_p", "top_k")


def read(body: bytes) -> ServedRequest:
    """The request in these bytes. Raises ConfigError with words for whoever sent it."""
    return _Request.parse_body(body).read()


class _Request(RequestFields):
    """A document while it is read: what is understood is taken out, and what remains is `extra`."""

    def read(self) -> ServedRequest:
        model = self.take("model", str)
        if not model:
            raise ConfigError("model: Field required.")
        told = self.take("messages", list[Any])
        if not told:
            raise ConfigError("messages: at least one message is required.")
        system, marked = self._system()
        stream = self.take("stream", bool) or False
        tool_choice, parallel = self._tool_choice()
        output = self._output()
        prompt = Prompt(
            (*marked, *import_messages(told)),
            system=system,
            thinking=self._thinking(),
            tools=self._tools(),
            tool_choice=tool_choice,
            parallel_tool_calls=parallel,
            output=output,
            max_tokens=self.take("max_tokens", int),
            sampling=self._sampling(),
            stop=tuple(self.take("stop_sequences", list[str]) or ()),
            stream=stream,
            user=self._user(),
            extra=self.remaining,
        )
        return ServedRequest(prompt, model, stream, include_usage=True)

    def _system(self) -> tuple[str | None, tuple[Message, ...]]:
        """Plain words, or a message of its own where they have marks or come in several blocks."""
        told = self.remaining.pop("system", None)
        texts = import_texts(told)
        if len(texts) == 1 and not texts[0].cache:
            return texts[0].text, ()
        return None, (Message("system", texts),) if texts else ()

    def _sampling(self) -> Sampling:
        given = {name: self.remaining.pop(name) for name in _SAMPLING if name in self.remaining}
        return read_sampling(given)

    def _user(self) -> str | None:
        told = self.take("metadata", dict[str, Any]) or {}
        user = told.pop("user_id", None)
        if told:
            self.remaining["metadata"] = told
        return user if isinstance(user, str) else None

    # --- tools and output -------------------------------------------------------------------------------------------

    def _tools(self) -> tuple[Tool, ...]:
        told = self.take("tools", list[dict[str, Any]]) or []
        own = [tool for tool in told if tool.get("type", "custom") == "custom"]
        if len(own) != len(told):
            # The provider's own tools mean nothing to others; the whole list goes as it came.
            self.remaining["tools"] = told
        return tuple(map(_tool, own))

    def _tool_choice(self) -> tuple[str | None, bool | None]:
        told = self.take("tool_choice", dict[str, Any]) or {}
        disabled = told.get("disable_parallel_tool_use")
        parallel = None if disabled is None else disabled is not True
        match told.get("type"):
            case "any":
                return "required", parallel
            case "tool":
                return str(told.get("name", "")), parallel
            case "auto" | "none" as choice:
                # Beside a word about parallel calls, "auto" is only what carries it.
                return (None if choice == "auto" and parallel is not None else choice), parallel
            case None:
                return None, parallel
            case other:
                raise ConfigError(f"tool_choice.type {other!r} is not known; use auto, any, tool or none.")

    def _output(self) -> OutputSchema | None:
        match self.remaining.get("output_config"):
            case {"format": {"type": "json_schema", "schema": dict() as schema}}:
                config = self.remaining["output_config"]
                self.remaining["output_config"] = {name: value for name, value in config.items() if name != "format"}
                return OutputSchema("answer", schema)
            case _:
                return None

    def _thinking(self) -> Thinking:
        told = self.take("thinking", dict[str, Any])
        thinking = Thinking() if told is None else read_thinking(_known(told))[0]
        config: dict[str, Any] = self.take("output_config", dict[str, Any]) or {}
        word = config.pop("effort", None)
        if config:
            self.remaining["output_config"] = config
        effort = _effort(word) if isinstance(word, str) else None
        if effort is None:
            return thinking
        mode = None if thinking.mode == "auto" else thinking.mode
        return msgspec.structs.replace(thinking, mode=mode, effort=effort)


def _known(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if name in ("type", "budget_tokens", "display")}


def _effort(word: str) -> Effort:
    effort = read_thinking(word)[0].effort
    if effort is None:
        raise ConfigError(f"output_config.effort {word!r} is not known.")
    return effort


def _tool(told: dict[str, Any]) -> Tool:
    fields = {name: told[name] for name in ("name", "description", "strict") if told.get(name) is not None}
    if told.get("input_schema") is not None:
        fields["parameters"] = told["input_schema"]
    try:
        return msgspec.convert(fields, Tool)
    except msgspec.ValidationError as problem:
        raise ConfigError(f"tools: {problem}.") from None
