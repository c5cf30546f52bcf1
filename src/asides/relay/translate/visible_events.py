"""Leave thinking out that a caller may not see, and words around the JSON that it asked for."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import msgspec

from asides.values.events import (
    Event,
    OutputEvent,
    ReplyEnded,
    TextDelta,
    TextReclassified,
    ThinkingDelta,
    ThoughtSealed,
)
from asides.values.messages import Prompt
from asides.values.visibility import Sink, Visibility

_OPENING = re.compile(r"[{\[]")
_MARKS = re.compile(r'["{}\[\]]')
_STRING_END = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_MOST_BEFORE = 4096


def hide_thinking(events: Sequence[Event], visibility: Visibility, sink: Sink) -> list[Event]:
    """The events without the text of thoughts that may not be seen there."""
    shown: list[Event] = []
    for event in events:
        is_commentary = isinstance(event, TextReclassified) and event.channel == "commentary"
        if is_commentary:
            shown.append(event)
            continue
        if isinstance(event, (ThinkingDelta, TextReclassified)) and not visibility.allows(sink, event.kind):
            if isinstance(event, ThinkingDelta):
                continue
            event = msgspec.structs.replace(event, text="")
        shown.append(event)
    return shown


# Clients of these dialects read the first block of a reply as its answer, unless they have asked for thinking.
_READS_FIRST_BLOCK = frozenset({"anthropic", "gemini"})


def asks_for_thinking(dialect: str, prompt: Prompt, own: Collection[str] = ()) -> bool:
    """Whether the client of a request gets thinking in the body of its reply. `own`: the names of the options of ours
    that it sent. In chat completions, Responses and the others thinking has a field of its own, and is always there,
    unless a client of Ollama turns it off.
    """
    if dialect == "ollama":
        return prompt.thinking.mode != "off" or not _ASKS.isdisjoint(own)
    if dialect not in _READS_FIRST_BLOCK or not _ASKS.isdisjoint(own):
        return True
    thinking = prompt.thinking
    if dialect == "gemini":
        return thinking.show != "none"  # includeThoughts
    return thinking.wanted


_ASKS = frozenset({"thinking", "reasoning", "reasoning_effort", "visibility"})


class NoThinking:
    """Leaves thoughts out altogether, for clients that did not ask for any: not even an empty block is left."""

    def __init__(self) -> None:
        self._others: set[int] = set()
        """The blocks other than thoughts."""

    def hide(self, events: Sequence[Event]) -> list[Event]:
        """The events without thoughts. What a later request needs rides on calls and texts, or before a call."""
        kept: list[Event] = []
        for event in events:
            if isinstance(event, ThinkingDelta):
                continue
            if isinstance(event, ThoughtSealed):
                if event.block >= 0 and event.block not in self._others:
                    continue
            elif isinstance(event, TextReclassified) and event.channel == "thinking":
                event = msgspec.structs.replace(event, text="")
            elif isinstance(event, OutputEvent):
                self._others.add(event.block)
            kept.append(event)
        return kept


class JsonOnly:
    """Takes the first JSON value out of the answer's text: models that get a schema in their instructions may write a
    fence, or some words, around it. Text without JSON stays as it is.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._waiting = ""
        self._depth = 0
        self._in_string = False
        self._is_escaped = False
        self._state = "before"
        self._block = 0

    def fit(self, events: Sequence[Event]) -> list[Event]:
        """The events with nothing but JSON as the answer."""
        fitted: list[Event] = []
        for event in events:
            if isinstance(event, TextDelta):
                self._block = event.block
                if text := self._take(event.text):
                    fitted.append(TextDelta(text, event.block))
                continue
            if isinstance(event, TextReclassified):
                self._begin()
            if isinstance(event, ReplyEnded) and self._waiting:
                fitted.append(TextDelta(self._waiting, self._block))
                self._waiting = ""
            fitted.append(event)
        return fitted

    def _take(self, text: str) -> str:
        if self._state == "before":
            self._waiting += text
            found = _OPENING.search(self._waiting)
            if found is None:
                if len(self._waiting) <= _MOST_BEFORE:
                    return ""
                self._state = "plain"
                text, self._waiting = self._waiting, ""
                return text
            text, self._waiting, self._state = self._waiting[found.start() :], "", "inside"
        if self._state == "plain":
            return text
        return self._follow(text) if self._state == "inside" else ""

    def _follow(self, text: str) -> str:
        """The text up to the end of the JSON value."""
        place = 0
        while place < len(text):
            if self._in_string:
                place = self._leave_string(text, place)
                continue
            found = _MARKS.search(text, place)
            if found is None:
                break
            place = found.end()
            match found[0]:
                case '"':
                    self._in_string = True
                case "{" | "[":
                    self._depth += 1
                case _:
                    self._depth -= 1
                    if self._depth == 0:
                        self._state = "after"
                        return text[:place]
        return text

    def _leave_string(self, text: str, place: int) -> int:
        if self._is_escaped:
            self._is_escaped = False
            return place + 1
        found = _STRING_END.match(text, place)
        if found is not None:
            self._in_string = False
            return found.end()
        rest = text[place:]
        self._is_escaped = (len(rest) - len(rest.rstrip("\\"))) % 2 == 1
        return len(text)
