"""Effort that changes inside a conversation: as a message of its own, so that the request before stays the beginning of
the next one, for models that have such messages (`ModelRule.effort_updates`). Pure.

Each turn of the model remembers the effort that it was asked for (`Message.effort`), so the places of all changes
follow from the history, and are the same in every later request.
"""

from __future__ import annotations

import msgspec

from asides.dialects import find_facts
from asides.history.check import OnConflict
from asides.history.turns import begins_turn
from asides.providers.provider import Target
from asides.providers.quirks import EffortUpdates
from asides.values.errors import InvalidThinking
from asides.values.messages import Message, Prompt
from asides.values.notices import Notice
from asides.values.thinking import Effort, Thinking, nearest_effort
from asides.values.traits import HAS_BREAKPOINTS, find_traits


def place_changes(
    prompt: Prompt, target: Target, on_conflict: OnConflict, notices: list[Notice]
) -> tuple[Prompt, Effort | None]:
    """Put a message before each question whose effort differs from the one in force, and keep the effort of the request
    as it was at first. Returns the prompt, and the effort in force for the answer.

    Effort changes with a question, so a turn under way keeps its own. Raises InvalidThinking for a change where the
    form of thinking allows none.
    """
    updates, asked = target.rule.effort_updates, prompt.thinking.effort
    if not takes_changes(target):
        return _take_last_change(prompt, target, notices)
    if updates is None or not can_change(prompt, target):
        return prompt, asked
    history = _EffortHistory(prompt.messages, updates, target.rule.efforts or ())
    if history.turns == 0 or (asked is None and not history.names_effort):
        return prompt, asked
    wanted = asked or updates.default or history.in_force
    if history.in_force != wanted and not history.is_open:
        notices.append(Notice("effort_kept", _WHEN, "thinking", asked or "nothing", history.in_force or "nothing"))
    elif history.in_force != wanted and wanted is not None:
        history.change(wanted)
    elif asked is None and updates.default is None and history.in_force is not None:
        detail = "the default effort of this model is not known, so that of the questions before stays"
        notices.append(Notice("effort_kept", detail, "thinking", "nothing", history.in_force))
    thinking = msgspec.structs.replace(prompt.thinking, effort=history.first)
    if history.first is None and thinking.mode is None:
        # The first request set no effort. The setting to show thinking is sent from the first request with an effort.
        thinking = msgspec.structs.replace(thinking, mode="auto")
    if history.changes and prompt.thinking.mode == "between_tools":
        thinking = _leave_form(thinking, target, on_conflict, notices)
    if not history.changes and thinking == prompt.thinking:
        return prompt, history.in_force
    planned = msgspec.structs.replace(prompt, messages=history.insert(prompt.messages), thinking=thinking)
    return planned, history.in_force


_WHEN = "effort changes with a question, and the model is in the middle of a turn; it changes with the next one"


def takes_changes(target: Target) -> bool:
    """Whether messages that change the effort can be sent there. An unknown model may take them."""
    rule = target.rule
    return find_facts(target.dialect).effort_updates and (rule.effort_updates is not None or rule.thinking == "unknown")


def _take_last_change(prompt: Prompt, target: Target, notices: list[Notice]) -> tuple[Prompt, Effort | None]:
    """Use the effort of the last message that changes it, for targets without such messages."""
    changes = [message for message in prompt.messages if message.role == "system" and message.effort]
    effort, takes = prompt.thinking.effort, target.rule.efforts
    last = changes[-1].effort if changes else None
    if last is None or prompt.thinking.mode == "off" or target.rule.thinking == "never" or takes == ():
        return prompt, effort
    sent = nearest_effort(last, takes) if takes else last
    detail = "messages that change the effort do not exist here; the last one counts for the request"
    notices.append(Notice("effort_mapped", detail, "thinking", last, sent))
    remaining = tuple(message for message in prompt.messages if message.parts or message not in changes)
    thinking = msgspec.structs.replace(prompt.thinking, effort=sent)
    return msgspec.structs.replace(prompt, messages=remaining, thinking=thinking), sent


def can_change(prompt: Prompt, target: Target) -> bool:
    """Whether this request may hold messages that change the effort."""
    updates, state = target.rule.effort_updates, prompt.state
    if updates is None or not takes_changes(target) or prompt.thinking.mode == "off":
        return False
    if target.foreign or state.continues or state.resume or state.mode == "pro":
        return False  # the provider has the messages, or refuses the item (openrouter.ai gpt-6-astra, 2026-11-16)
    return updates.always or asks_for_cache(prompt)


def asks_for_cache(prompt: Prompt) -> bool:
    """Whether the caller asks for a cache, for the whole request or with a breakpoint."""
    marked = any(tool.cache for tool in prompt.tools)
    return bool(prompt.cache) or marked or bool(find_traits(prompt.messages) & HAS_BREAKPOINTS)


class _EffortHistory:
    """The effort of each turn of a history, and the places where it changed."""

    def __init__(self, messages: tuple[Message, ...], updates: EffortUpdates, efforts: tuple[Effort, ...]) -> None:
        self.first: Effort | None = None
        """The effort of the first request, repeated in all requests; None: not set."""
        self.in_force: Effort | None = updates.default
        self.changes: dict[int, Effort] = {}
        self.turns = 0
        self.names_effort = False
        """Whether any turn was asked with an effort."""
        self.is_open = False
        """Whether the last messages are a question, which may change the effort."""
        self._question = 0
        """The place of the latest question."""
        for place, message in enumerate(messages):
            if message.role == "assistant":
                if self.is_open or self.turns == 0:
                    effort = message.effort
                    self._add_turn(effort if effort in efforts else None)
                self.is_open = False
            elif begins_turn(message) and not self.is_open:
                self._question, self.is_open = place, True
            elif message.role == "system" and message.effort is not None and not message.parts:
                self.in_force = message.effort  # the caller's own message stays where it is

    def _add_turn(self, effort: Effort | None) -> None:
        self.turns += 1
        self.names_effort = self.names_effort or effort is not None
        if self.turns == 1:
            self.first = effort
            self.in_force = effort or self.in_force
        elif effort is not None and effort != self.in_force:
            self.change(effort)

    def change(self, effort: Effort) -> None:
        """Change the effort with the latest question."""
        self.changes[self._question] = self.in_force = effort

    def insert(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """The messages with a message before each question that changes the effort."""
        if not self.changes:
            return messages
        placed: list[Message] = []
        for place, message in enumerate(messages):
            if place in self.changes:
                placed.append(Message("system", (), effort=self.changes[place]))
            placed.append(message)
        return tuple(placed)


def _leave_form(thinking: Thinking, target: Target, on_conflict: OnConflict, notices: list[Notice]) -> Thinking:
    """Between tools the effort is fixed: a request whose messages change it is refused with 400
    (platform.claude.com whats-new-sonnet-5-5, 2026-11-16).
    """
    message = "the effort cannot change in a conversation while this model thinks only between calls of tools"
    if on_conflict == "raise" and not target.rule.assumed:
        name = f"{target.provider.name}:{target.model}"
        advice = "ask for the effort of the questions before, use thinking='auto', or pass on_conflict='adjust'"
        raise InvalidThinking(f"{name}: {message}; {advice}.", setting="thinking")
    notices.append(Notice("form_adjusted", message, "thinking", "between_tools", "auto"))
    return msgspec.structs.replace(thinking, mode="auto")
