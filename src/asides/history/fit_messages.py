"""Fit messages to hosts that demand more of them: roles that take turns, one system message, nothing blank, and tools
beside the calls of a history. Pure.

Not here: calls and their results (pair), and which thoughts go back (replay).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from asides.dialects.dialect import DialectFacts
from asides.providers.quirks import MessageRule
from asides.values.messages import Message, Prompt, read_facts
from asides.values.notices import Notice
from asides.values.parts import Part, Text, ToolResult
from asides.values.tools import Tool

SYSTEM_JOINED = "system messages have one place here; they were joined at the front"
BLANKS_FILLED = "blank messages were left out, or got a word"
NEIGHBOURS_JOINED = "messages of one role in a row were joined"
BLANK = "(empty)"
"""The text that replaces a blank one, where a host refuses that."""


def fit_messages(
    prompt: Prompt,
    facts: DialectFacts,
    rules: Sequence[MessageRule],
    notices: list[Notice],
    *,
    calls_need_tools: bool = False,
) -> Prompt:
    """Fit the messages of a prompt to a dialect and a host. `calls_need_tools`: the model refuses calls without tools,
    also where the dialect does not.
    """
    field = facts.tools_field or ("tools" if calls_need_tools else "")
    if not prompt.tools and field and field not in prompt.extra:
        prompt = _add_called_tools(prompt, facts, notices)
    return _apply_rules(prompt, rules, notices) if rules else prompt


def _add_called_tools(prompt: Prompt, facts: DialectFacts, notices: list[Notice]) -> Prompt:
    """Add the tools that the history calls, by name, to a request without tools: the host refuses it otherwise."""
    names = dict.fromkeys(call.name for message in read_facts(prompt.messages) for call in message.calls)
    if not names:
        return prompt
    detail = "a history with calls needs its tools; only their names were sent"
    notices.append(Notice("tools_added", detail, "tools"))
    choice = "none" if facts.forbids_calls else None
    if prompt.tool_choice not in (None, "auto", "none"):
        notices.append(Notice("setting_dropped", "tool_choice means nothing without tools", "tool_choice"))
    tools = tuple(Tool(name) for name in names)
    return msgspec.structs.replace(prompt, tools=tools, tool_choice=choice, parallel_tool_calls=None)


def _apply_rules(prompt: Prompt, rules: Sequence[MessageRule], notices: list[Notice]) -> Prompt:
    """Bring the messages into the form that a host demands, with a notice for each kind of change."""
    system, messages = prompt.system, prompt.messages
    if "system_first" in rules and any(message.role == "system" for message in messages):
        texts = [system, *(message.text for message in messages if message.role == "system")]
        system = "\n\n".join(text for text in texts if text and text.strip())
        messages = tuple(message for message in messages if message.role != "system")
        _report(notices, "system_moved", SYSTEM_JOINED)
    if "filled" in rules:
        filled = tuple(new for message in messages for new in _fill(message))
        if filled != messages:
            messages = filled
            _report(notices, "blank_message_dropped", BLANKS_FILLED)
    if "alternate" in rules:
        merged = _merge_neighbours(messages)
        if len(merged) < len(messages):
            messages = merged
            _report(notices, "messages_merged", NEIGHBOURS_JOINED)
    if messages is prompt.messages:
        return prompt
    return msgspec.structs.replace(prompt, system=system, messages=messages)


def _report(notices: list[Notice], code: str, detail: str) -> None:
    notices.append(Notice(code, detail, "messages"))


def _fill(message: Message) -> list[Message]:
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, ToolResult) and not part.text.strip() and isinstance(part.content, str):
            parts.append(msgspec.structs.replace(part, content=BLANK))
        elif not (isinstance(part, Text) and not part.text.strip()):
            parts.append(part)
    if parts:
        return [message if parts == list(message.parts) else msgspec.structs.replace(message, parts=tuple(parts))]
    # A blank turn of the model says nothing. One of the user may be the question.
    return [] if message.role == "assistant" else [msgspec.structs.replace(message, parts=(Text(BLANK),))]


def _merge_neighbours(messages: Sequence[Message]) -> tuple[Message, ...]:
    merged: list[Message] = []
    for message in messages:
        before = merged[-1] if merged else None
        if before is None or before.role != message.role or message.role not in ("user", "assistant"):
            merged.append(message)
            continue
        parts = list(before.parts)
        for part in message.parts:
            last = parts[-1] if parts else None
            if isinstance(part, Text) and isinstance(last, Text) and not part.seals and not last.seals:
                parts[-1] = msgspec.structs.replace(part, text=f"{last.text}\n\n{part.text}")
            else:
                parts.append(part)
        merged[-1] = msgspec.structs.replace(before, parts=tuple(parts))
    return tuple(merged)
