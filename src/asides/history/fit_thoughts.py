"""Leave out thoughts in places where a provider refuses them, though their seals are valid. Pure.

Not here: which thoughts go back at all (replay), and whether the request thinks (check).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import is_

import msgspec

from asides.values.message_facts import HAS_THOUGHTS
from asides.values.messages import Message, Prompt, find_traits, read_facts
from asides.values.notices import Notice
from asides.values.parts import Refusal, Text, ToolResult
from asides.values.thinking import Thought

NOT_LED = "a turn that does not begin with its thinking goes back without it"
NOT_THINKING = "a request that does not think cannot hold the thoughts of the current turn"


def fit_thoughts(prompt: Prompt, notices: list[Notice], *, joins: bool, leads: bool) -> Prompt:
    """Fit the places of thoughts. `joins`: turns in a row are one message. `leads`: a message with thoughts begins with
    one.
    """
    if joins:
        detail = "a turn follows another one directly, which is one message here; its thoughts were left out"
        prompt = _drop_from(prompt, list(_find_joined(prompt.messages)), detail, notices)
    if leads:
        prompt = _drop_from(prompt, list(_find_without_lead(prompt.messages)), NOT_LED, notices)
    return prompt


def drop_open_thoughts(prompt: Prompt, notices: list[Notice]) -> Prompt:
    """Drop the thoughts of the model's last turn, if nothing but results follows it: a request that does not think
    cannot hold them there.
    """
    end = len(prompt.messages)
    while end and _is_result_message(prompt.messages[end - 1]):
        end -= 1
    start = end
    while start and prompt.messages[start - 1].role == "assistant":
        start -= 1
    if start == end or not find_traits(prompt.messages[start:end]) & HAS_THOUGHTS:
        return prompt
    return _drop_from(prompt, list(range(start, end)), NOT_THINKING, notices)


def add_stand_ins(prompt: Prompt, text: str, notices: list[Notice]) -> Prompt:
    """Add a thought to each turn that calls tools and has lost its own, for hosts that want one back."""
    messages = tuple(
        msgspec.structs.replace(message, parts=(Thought(text, source="block"), *message.parts))
        if facts.calls and not facts.traits & HAS_THOUGHTS
        else message
        for message, facts in zip(prompt.messages, read_facts(prompt.messages), strict=True)
    )
    if all(map(is_, messages, prompt.messages)):
        return prompt
    notices.append(Notice("thinking_stand_in", "a stand-in was sent for thinking that is gone", "messages"))
    return msgspec.structs.replace(prompt, messages=messages)


def _is_result_message(message: Message) -> bool:
    return message.role in ("tool", "user") and all(isinstance(part, ToolResult) for part in message.parts)


def _find_joined(messages: Sequence[Message]) -> Iterator[int]:
    """Find the turns that follow another one with thoughts directly. A provider refuses thoughts among those of another
    reply: "cannot be modified". Thoughts that nothing follows do not count: they cannot go back at all.
    """
    before = False
    for number, (message, facts) in enumerate(zip(messages, read_facts(messages), strict=True)):
        has_thoughts = bool(facts.traits & HAS_THOUGHTS)
        if message.role != "assistant":
            before = False
        elif has_thoughts and (before or all(isinstance(part, Thought) or _is_blank(part) for part in message.parts)):
            yield number
        else:
            before = before or has_thoughts


def _find_without_lead(messages: Sequence[Message]) -> Iterator[int]:
    """Find the turns with thoughts that do not begin with one; turns in a row are one message."""
    leads: bool | None = None
    for number, message in enumerate(messages):
        if message.role != "assistant":
            leads = None
            continue
        sent = (part for part in message.parts if not isinstance(part, Refusal) and not _is_blank(part))
        if leads is None and (first := next(sent, None)) is not None:
            leads = isinstance(first, Thought)
        if leads is False:
            yield number


def _is_blank(part: object) -> bool:
    return isinstance(part, Text) and not part.text.strip()


def _drop_from(prompt: Prompt, numbers: Sequence[int], detail: str, notices: list[Notice]) -> Prompt:
    messages = list(prompt.messages)
    for number in numbers:
        parts = tuple(part for part in messages[number].parts if not isinstance(part, Thought))
        if len(parts) < len(messages[number].parts):
            messages[number] = msgspec.structs.replace(messages[number], parts=parts)
    if all(map(is_, messages, prompt.messages)):
        return prompt
    notices.append(Notice("reasoning_not_sent", detail, "messages"))
    # A turn that was nothing but thinking has nothing left to say.
    kept = tuple(message for message in messages if message.parts or message.role != "assistant")
    return msgspec.structs.replace(prompt, messages=kept)
