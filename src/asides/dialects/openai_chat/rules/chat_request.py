"""A chat request as the rules see it: its messages, and how it asks for thinking, in the spellings of all hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, TypeAlias

from asides.dialects.rulebook import BrokenRule, Wire, WireRequest
from asides.providers.provider import Target


class ChatRequest:
    """One request. Its fields may have any type: a rule that trusts one raises, and the stage answers 400."""

    def __init__(self, request: WireRequest, target: Target) -> None:
        self.body = request.body
        self.today = request.today
        self.target = target
        self.rule = target.rule
        # Some addresses name the model in the path.
        self.model = str(self.body.get("model") or target.model)
        self.messages: list[Wire] = self.body.get("messages") or []

    @cached_property
    def name(self) -> str:
        """The name of the model in lower case, without the maker in front."""
        return self.model.lower().rpartition("/")[2]

    def get(self, path: str) -> Any:
        """Return the value at a path such as "thinking.type", or None."""
        value: Any = self.body
        for name in path.split("."):
            if not isinstance(value, dict):
                return None
            value = value.get(name)
        return value

    @property
    def effort(self) -> Any:
        """The effort in the spelling of OpenAI."""
        return self.body.get("reasoning_effort")

    @property
    def switch(self) -> Any:
        """The type of the object `thinking`."""
        return self.get("thinking.type")

    @property
    def template_switch(self) -> Any:
        """Whether the chat template is asked to think; None if it is not set."""
        enabled = self.get("chat_template_kwargs.enable_thinking")
        return self.get("chat_template_kwargs.thinking") if enabled is None else enabled

    def thinks(self, *, by_default: bool) -> bool:
        """Return whether the model thinks, if it can be switched."""
        enabled = self.body.get("enable_thinking")
        if self.switch == "disabled" or self.effort == "none" or False in (enabled, self.template_switch):
            return False
        return by_default or self.switch is not None or self.effort is not None or bool(enabled or self.template_switch)

    @property
    def forced_tool(self) -> str | None:
        """Which tool must be called: "required" for any, "specified" for one; None if the model may choose."""
        choice = self.body.get("tool_choice")
        if isinstance(choice, dict):
            return "specified" if choice.get("type") == "function" else None
        return "required" if choice in ("required", "any") else None

    def assistants(self) -> Iterator[tuple[int, Wire]]:
        """Yield the turns of the model with their places."""
        for place, message in enumerate(self.messages):
            if message.get("role") == "assistant":
                yield place, message


Check: TypeAlias = Callable[[ChatRequest], Iterator[BrokenRule]]
"""Yields the rules that a request breaks, in the order in which the server checks."""
