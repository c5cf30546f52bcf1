"""What chat endpoints check, and hand out: pairs of calls and results, content, and per model what its hosts demand.

Not a copy of any server: written from the documented rules and from the errors that people report. Which hosts are
played is seen from the model that is asked for (chat_families_rules); others are held to what all of them check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import msgspec

from asides.testing.stage.http_requests import Request
from asides.testing.stage.rules import Wire, call_ids, turn_under_way, unpaired
from asides.testing.stage.rules.chat_model_families import Family, family_of
from asides.testing.stage.rules.chat_thinking_replay import Issued
from asides.values.events import Event

# OpenAI's own endpoint: tools beside an effort (since GPT-5.4).
_NEWER = re.compile(r"gpt-(?:5\.(?:[4-9]|\d\d)|[6-9])")
_NINE_ALPHANUMERICS = re.compile(r"[A-Za-z0-9]{9}")
_ASSISTANT_FIELDS = frozenset({"role", "content", "tool_calls", "prefix"})
_THINKING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")


class Rules:
    """One stage's rules for chat completions, and the state that it hands out."""

    def __init__(self, secret: bytes) -> None:
        self._issued = Issued(secret)

    def refuse(self, request: Request) -> str | None:
        """The first rule that this request breaks, in the words of the real servers as far as they are known."""
        body: Wire = msgspec.json.decode(request.body)
        return next(self._problems(body), None)

    def seal(self, events: list[Event], request: Request) -> list[Event]:
        """The reply with the state that the hosts of this model put beside thoughts and calls; most put none."""
        body: Wire = msgspec.json.decode(request.body)
        model = str(body.get("model"))
        return self._issued.sealed(events, model, family_of(model))

    def _problems(self, body: Wire) -> Iterator[str]:
        model = str(body.get("model"))
        messages: list[Wire] = body.get("messages") or []
        family = family_of(model)
        if _NEWER.match(model) and body.get("tools") and body.get("reasoning_effort") not in (None, "none"):
            yield (
                f"Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. "
                "Please use /v1/responses instead."
            )
        yield from _pair_problems(messages)
        yield from _content_problems(messages, family)
        if family.closed:
            yield from _order_problems(messages)
            yield from _form_problems(messages)
        yield from _thinking_problems(messages, family, thinks=family.thinks_on(body))
        yield from self._issued.problems(messages, model, family)


def _pair_problems(messages: list[Wire]) -> Iterator[str]:
    for fault in unpaired(messages):
        named = ", ".join(fault.ids)
        match fault.kind:
            case "unanswered":
                yield (
                    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                    f"'tool_call_id'. The following tool_call_ids did not have response messages: {named}"
                )
            case "unasked":
                yield (
                    f"Invalid parameter: messages[{fault.place}]: messages with role 'tool' must be a response to a "
                    f"preceding message with 'tool_calls'; tool_call_id {named} is not found."
                )
            case "twice":
                yield f"Duplicate value for 'tool_call_id' of '{named}' in messages[{fault.place}]."


def _content_problems(messages: list[Wire], family: Family) -> Iterator[str]:
    for place, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        calls = bool(message.get("tool_calls"))
        said_otherwise = role == "assistant" and (calls or message.get("refusal"))
        if content is None and not said_otherwise:
            yield f"Invalid value for 'messages[{place}].content': expected a string, got null."
        # A tool may have nothing to say; whether hosts mind is not known.
        speaks = role in ("user", "assistant") and not (calls and "content" not in message)
        if not family.takes_blanks and speaks and _is_blank(content):
            yield f"Invalid request: message at position {place} with role '{role}' must not be empty"
        for part in content if isinstance(content, list) else ():
            if part.get("type") == "text" and not isinstance(part.get("text"), str):
                yield f"Invalid value for 'messages[{place}].content': a text part has no text."


def _is_blank(content: object) -> bool:
    return content is None or content == [] or (isinstance(content, str) and not content.strip())


def _order_problems(messages: list[Wire]) -> Iterator[str]:
    """The order that makers of strict templates keep: results are followed by the model, and never by a person."""
    roles = [str(message.get("role")) for message in messages]
    for before, role in pairwise(roles):
        if role == "user" and before == "tool":
            yield f"Unexpected role '{role}' after role '{before}'"
    if roles and roles[-1] not in ("user", "tool") and not messages[-1].get("prefix"):
        yield (f"Expected last role User or Tool (or Assistant with prefix True) for serving but got {roles[-1]}")


def _form_problems(messages: list[Wire]) -> Iterator[str]:
    for place, message in enumerate(messages):
        if message.get("role") != "assistant":
            continue
        yield from (f"messages[{place}].{name}: Extra inputs are not permitted" for name in message if _is_extra(name))
        for name in call_ids(message):
            if not _NINE_ALPHANUMERICS.fullmatch(name):
                yield f"Tool call id was {name} but must be a-z, A-Z, 0-9, with a length of 9."
        for part in message["content"] if isinstance(message.get("content"), list) else ():
            if part.get("type") == "thinking" and not _is_thinking_part(part):
                yield f"messages[{place}].content: a thinking chunk holds a list of text chunks."


def _is_extra(name: str) -> bool:
    return name not in _ASSISTANT_FIELDS


def _is_thinking_part(part: Wire) -> bool:
    inside = part.get("thinking")
    return isinstance(inside, list) and all(
        isinstance(chunk, dict) and chunk.get("type") == "text" and isinstance(chunk.get("text"), str)
        for chunk in inside
    )


def _thinking_problems(messages: list[Wire], family: Family, *, thinks: bool) -> Iterator[str]:
    """What has to come back of earlier thinking, and what may not."""
    begun = turn_under_way(messages)
    for place, message in enumerate(messages):
        if message.get("role") != "assistant":
            continue
        if family.wants == "never" and any(name in message for name in _THINKING_FIELDS):
            yield f"messages[{place}]: reasoning_content is not supported in the input of this model."
        if not thinks or not message.get("tool_calls"):
            continue
        wanted = family.wants == "tool_turns" or (family.wants == "loop" and place > begun)
        if wanted and not isinstance(message.get("reasoning_content"), str):
            yield family.demand.format(place=place)
