"""Tools that a caller's provider runs, at another provider: `map_hosted` turns a web search into the target's own.

A tool that the target lacks is left out. `Report` adds a line about it to the reply, once in a conversation, and
`strip_reports` removes that line from the history.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any

import msgspec

from asides.providers.provider import Target
from asides.providers.table import is_maker
from asides.values.events import CommentaryDelta, Event, ReplyStarted, TextDelta
from asides.values.messages import Message, Prompt
from asides.values.parts import Commentary, Part, Text
from asides.values.tools import Tool

_OPENAI_SEARCH = re.compile(r"web_search(?:_preview)?(?:_20\d\d_?\d\d_?\d\d)?")
_CLAUDE_SEARCH = re.compile(r"web_search_20\d{6}")
_GEMINI_SEARCH = ("google_search", "googleSearch")
# The version that needs no execution of code: platform.claude.com web-search-tool (2026-11).
_CLAUDE_TYPE = "web_search_20250305"
_NAME = "web_search"

_REPORT = re.compile(r"\A\(asides: [^\n()]{1,300}\)\n\n")
_UNFIT = re.compile(r"[^\w.,: -]")
_BLOCK = -10_000
"""A block that no reply has."""


class WebSearch(msgspec.Struct, frozen=True):
    """What a request says about the search."""

    allowed: tuple[str, ...] = ()
    """Domains; (): all."""
    blocked: tuple[str, ...] = ()
    location: dict[str, Any] | None = None
    most: int | None = None
    """How many searches at most."""


def map_hosted(tool: Mapping[str, Any], prompt: Prompt, caller: str, target: Target) -> Tool | None:
    """The target's own tool for one of the caller's provider; None if it has none that does the same."""
    search = _read_search(tool, caller)
    return None if search is None else _write_search(search, prompt, target)


def _read_search(tool: Mapping[str, Any], caller: str) -> WebSearch | None:
    kind = tool.get("type")
    if caller == "gemini":
        # One with settings of its own asks for more than a search.
        return WebSearch() if any(tool == {name: {}} for name in _GEMINI_SEARCH) else None
    pattern = _CLAUDE_SEARCH if caller == "anthropic" else _OPENAI_SEARCH
    if not isinstance(kind, str) or pattern.fullmatch(kind) is None:
        return None
    if tool.get("external_web_access") is False:
        return None  # Only what its provider keeps of the web.
    filters = tool.get("filters") if caller != "anthropic" else tool
    filters = filters if isinstance(filters, Mapping) else {}
    location, most = tool.get("user_location"), tool.get("max_uses")
    return WebSearch(
        _read_domains(filters.get("allowed_domains")),
        _read_domains(filters.get("blocked_domains")),
        dict(location) if isinstance(location, Mapping) else None,
        most if isinstance(most, int) else None,
    )


def _read_domains(given: object) -> tuple[str, ...]:
    return tuple(map(str, given)) if isinstance(given, Sequence) and not isinstance(given, str) else ()


def _write_search(search: WebSearch, prompt: Prompt, target: Target) -> Tool | None:
    if not is_maker(target.provider, target.dialect) or any(tool.name == _NAME for tool in prompt.tools):
        return None
    near = {} if search.location is None else {"user_location": search.location}
    match target.dialect:
        case "anthropic":
            domains = {"allowed_domains": list(search.allowed)} if search.allowed else {}
            if search.blocked and not domains:
                domains = {"blocked_domains": list(search.blocked)}
            most = {} if search.most is None else {"max_uses": search.most}
            return Tool(_NAME, native={"type": _CLAUDE_TYPE, "name": _NAME, **domains, **most, **near})
        case "openai_responses" if not search.blocked:
            filters = {"filters": {"allowed_domains": list(search.allowed)}} if search.allowed else {}
            return Tool(_NAME, native={"type": _NAME, **filters, **near})
        case "gemini" if not (search.allowed or search.blocked or prompt.tools):
            # Most models take no functions beside it (ai.google.dev function-calling, 2026-11).
            return Tool(_NAME, native={"google_search": {}})
        case _:
            return None


# --- what a person reads ----------------------------------------------------------------------------------------------


class Report:
    """Adds the line to the first words of a reply: as commentary where the dialect has a place for it."""

    def __init__(self, names: Sequence[str], provider: str, *, as_commentary: bool) -> None:
        shown = ", ".join(dict.fromkeys(_UNFIT.sub("", name)[:60] for name in names))[:200]
        self._line = f"(asides: {provider} does not run {shown}; the model answers without it)\n\n"
        self._as_commentary = as_commentary
        self._is_written = False

    def add(self, events: Sequence[Event]) -> list[Event]:
        """The events with the line, once."""
        if self._is_written:
            return [*events]
        for place, event in enumerate(events):
            if self._as_commentary and isinstance(event, ReplyStarted):
                self._is_written = True
                return [*events[: place + 1], CommentaryDelta(self._line, _BLOCK), *events[place + 1 :]]
            if not self._as_commentary and isinstance(event, TextDelta) and event.text:
                self._is_written = True
                first = msgspec.structs.replace(event, text=self._line + event.text)
                return [*events[:place], first, *events[place + 1 :]]
        return [*events]


def has_report(text: str) -> bool:
    """Whether a text begins with the line of a report."""
    return _REPORT.match(text) is not None


_MARK = b"(asides: "


def may_hold_report(body: bytes) -> bool:
    """False if no text of this JSON begins with the line of a report, for certain."""
    # An escape may hide the beginning of one.
    return _MARK in body or b"\\u00" in body


def strip_reports(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages without these lines, which no model wrote. Those without any are returned as they are."""
    stripped = tuple([_strip(message) if message.role == "assistant" else message for message in messages])
    return messages if all(map(is_, stripped, messages)) else stripped


def _strip(message: Message) -> Message:
    if len(message.parts) == 1 and type(only := message.parts[0]) is Text and not has_report(only.text):
        return message  # as most
    if not any(isinstance(part, (Text, Commentary)) and has_report(part.text) for part in message.parts):
        return message
    kept: list[Part] = []
    for part in message.parts:
        if isinstance(part, (Text, Commentary)) and has_report(part.text):
            if text := _REPORT.sub("", part.text):
                kept.append(msgspec.structs.replace(part, text=text))
        else:
            kept.append(part)
    return msgspec.structs.replace(message, parts=tuple(kept))
