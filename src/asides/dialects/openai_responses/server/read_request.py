"""A client's Responses request as a prompt: `read(body) → ServedRequest`. What is not understood stays in `extra`.

Not here: single items (read_items), and what is answered (serve).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.dialects.openai_responses.import_items import import_items
from asides.dialects.server_half import RequestFields, read_sampling
from asides.values.errors import ConfigError
from asides.values.messages import Message, OutputSchema, Prompt, ProviderState, Sampling, user
from asides.values.thinking import Thinking, read_thinking
from asides.values.tools import Tool, read_tool

_SAMPLING = ("temperature", "top_p", "top_logprobs")


def read(body: bytes) -> ServedRequest:
    """The request in these bytes. Raises ConfigError with words for whoever sent it."""
    return _Request.parse_body(body).read()


class _Request(RequestFields):
    """A document while it is read: what is understood is taken out, and what remains is `extra`."""

    def read(self) -> ServedRequest:
        model = self.take_model()
        state = self._state()
        messages = self._messages(state)
        stream = self.take("stream", bool) or False
        self.remaining.pop("stream_options", None)
        thinking, state = self._reasoning(state)
        prompt = Prompt(
            messages,
            system=self.take("instructions", str) or None,
            thinking=thinking,
            tools=self._tools(),
            tool_choice=self._tool_choice(),
            parallel_tool_calls=self.take("parallel_tool_calls", bool),
            output=self._output(),
            max_tokens=self.take("max_output_tokens", int),
            sampling=self._sampling(),
            stream=stream,
            metadata=self.take("metadata", dict[str, str]),
            user=self.take("user", str),
            state=state,
            extra=self.remaining,
        )
        return ServedRequest(prompt, model, stream, include_usage=True)

    def _messages(self, state: ProviderState) -> tuple[Message, ...]:
        told = self.remaining.pop("input", None)
        if isinstance(told, str):
            return (user(told),)
        if told is None and state.continues:
            return ()
        if not isinstance(told, list) or not told:
            raise ConfigError("input is missing: a text, or a list of items.")
        return import_items(told)

    def _state(self) -> ProviderState:
        conversation = self.remaining.pop("conversation", None)
        if isinstance(conversation, Mapping):
            conversation = conversation.get("id")
        if conversation is not None and not isinstance(conversation, str):
            raise ConfigError("conversation is an id, or an object with one.")
        return ProviderState(
            store=self.take("store", bool),
            previous_response_id=self.take("previous_response_id", str),
            conversation=conversation,
            truncation=self.take("truncation", Literal["auto", "disabled"]),  # type: ignore[arg-type]
            include=tuple(self.take("include", list[str]) or ()),
        )

    def _reasoning(self, state: ProviderState) -> tuple[Thinking, ProviderState]:
        told = self.take("reasoning", dict[str, Any]) or {}
        told = {name: value for name, value in told.items() if value is not None}
        kept: dict[str, Any] = {name: told.pop(name) for name in ("context", "mode") if name in told}
        try:
            state = msgspec.convert(msgspec.structs.asdict(state) | kept, ProviderState)
        except msgspec.ValidationError as problem:
            raise ConfigError(f"reasoning: {problem}.") from None
        effort, summary = told.pop("effort", None), told.pop("summary", told.pop("generate_summary", None))
        if told:
            self.remaining["reasoning"] = told
        if effort is None and summary is None:
            return Thinking(show="none"), state
        wish: dict[str, Any] = {"summary": summary}
        if effort is not None:
            wish["effort"] = effort
        thinking, _ = read_thinking(wish)
        return msgspec.structs.replace(thinking, show="summary" if summary is not None else "none"), state

    def _sampling(self) -> Sampling:
        given = {name: self.remaining.pop(name) for name in _SAMPLING if name in self.remaining}
        return read_sampling(given)

    def _tools(self) -> tuple[Tool, ...]:
        told = self.take("tools", list[dict[str, Any]]) or []
        own = [tool for tool in told if tool.get("type") == "function"]
        if len(own) != len(told):
            # The provider's own tools mean nothing to others; the whole list goes as it came.
            self.remaining["tools"] = told
        return tuple(read_tool(tool) for tool in own)

    def _tool_choice(self) -> str | None:
        match self.remaining.get("tool_choice"):
            case str() as choice:
                del self.remaining["tool_choice"]
                return choice
            case {"type": "function", "name": str() as name}:
                del self.remaining["tool_choice"]
                return name
            case _:
                return None

    def _output(self) -> OutputSchema | Literal["json"] | None:
        told = self.take("text", dict[str, Any]) or {}
        described = told.pop("format", None)
        if told:
            self.remaining["text"] = told
        match described:
            case {"type": "json_object"}:
                return "json"
            case {"type": "json_schema", "schema": dict() as schema}:
                return OutputSchema(str(described.get("name", "answer")), schema, described.get("strict") is True)
            case _:
                return None
