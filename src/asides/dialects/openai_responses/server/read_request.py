"""Read a client's Responses request as a prompt: `read(body) → ServedRequest`. Unknown fields stay in `extra`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.dialects.openai_responses.import_items import import_items
from asides.dialects.openai_responses.wire import SAMPLING
from asides.dialects.server_half import RequestFields
from asides.providers.switches.read import read as read_switches
from asides.values.errors import ConfigError
from asides.values.messages import Message, OutputSchema, Prompt, ProviderState, user

_CONTEXTS = ("auto", "current_turn", "all_turns")
_MODES = ("standard", "pro")


def read(body: bytes, path: str = "") -> ServedRequest:  # noqa: ARG001 - all of it is in the body
    """Read a request. Raises ConfigError with a message for the client."""
    return _Request.parse_body(body).keep("openai_responses").read()


class _Request(RequestFields):
    """A request while it is parsed: readers remove the fields they understand; the others stay in `extra`."""

    def read(self) -> ServedRequest:
        model = self.take_model()
        state = self._take_state()
        messages = self._take_messages(state)
        stream = self.take("stream", bool) or False
        thinking = read_switches("openai_responses", self.remaining)
        state = self._take_reasoning_state(state)
        prompt = Prompt(
            messages,
            system=self.take("instructions", str) or None,
            thinking=thinking,
            tools=self.take_functions(),
            tool_choice=self._take_tool_choice(),
            parallel_tool_calls=self.take("parallel_tool_calls", bool),
            output=self._take_output(),
            max_tokens=self.take("max_output_tokens", int),
            sampling=self.take_sampling(SAMPLING),
            stream=stream,
            metadata=self.take("metadata", dict[str, str]),
            user=self.take("user", str),
            state=state,
            extra=self.remaining,
            source=self.source,
        )
        return ServedRequest(prompt, model, stream, include_usage=True)

    def _take_messages(self, state: ProviderState) -> tuple[Message, ...]:
        items = self.remaining.pop("input", None)
        if isinstance(items, str):
            return (user(items),)
        if items is None and state.continues:
            return ()
        if not isinstance(items, list) or not items:
            raise ConfigError("input is missing: a text, or a list of items.")
        return import_items(items)

    def _take_state(self) -> ProviderState:
        conversation = self.remaining.pop("conversation", None)
        if isinstance(conversation, Mapping):
            conversation = conversation.get("id")
        if conversation is not None and not isinstance(conversation, str):
            raise ConfigError("conversation is an id, or an object with one.")
        return ProviderState(
            store=self.take("store", bool),
            previous_response_id=self.take("previous_response_id", str),
            conversation=conversation,
            truncation=self._take_truncation(),
            include=tuple(self.take("include", list[str]) or ()),
        )

    def _take_truncation(self) -> Literal["auto", "disabled"] | None:
        if self.remaining.get("truncation") not in ("auto", "disabled", None):
            return None  # a newer server may know it
        return self.take("truncation", Literal["auto", "disabled"])  # type: ignore[arg-type]

    def _take_reasoning_state(self, state: ProviderState) -> ProviderState:
        reasoning = self.take_object("reasoning")
        fields = reasoning.remaining
        known = {"context": _CONTEXTS, "mode": _MODES}
        changes = {name: fields.pop(name) for name, words in known.items() if fields.get(name) in words}
        self.put_back("reasoning", reasoning)
        return msgspec.structs.replace(state, **changes)

    def _take_tool_choice(self) -> str | None:
        match self.remaining.get("tool_choice"):
            case str() as choice:
                del self.remaining["tool_choice"]
                return choice
            case {"type": "function", "name": str() as name, **beside} if "namespace" not in beside:
                del self.remaining["tool_choice"]
                return name
            case _:
                return None

    def _take_output(self) -> OutputSchema | Literal["json"] | None:
        text = self.take("text", dict[str, Any]) or {}
        described = text.pop("format", None)
        if text:
            self.remaining["text"] = text
        match described:
            case {"type": "json_object"}:
                return "json"
            case {"type": "json_schema", "schema": dict() as schema}:
                return OutputSchema(str(described.get("name", "answer")), schema, described.get("strict") is True)
            case None | {"type": "text"}:
                return None
            case _:
                self.remaining.setdefault("text", text)["format"] = described
                return None
