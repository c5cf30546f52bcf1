"""Translates the events of a ReAct reply into ordinary events (`Translator`); removes an outer code fence first.

Native thinking is passed on unchanged, and never searched for calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Literal

import msgspec

from asides.agents.react.calls import ActionCall
from asides.agents.react.markers import MOST_HELD, Marker, check_fence_end, find_fence, find_marker, split_lines
from asides.agents.react.parser import ActionStarted, AnswerText, ParserWarning, Piece, ReactParser, ThoughtText
from asides.values.events import (
    Event,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    TextReclassified,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
    Warned,
)
from asides.values.notices import Notice
from asides.values.tools import Tool

VIA = "react"
"""The `via` of a thought that the model wrote as text. No field exists to send it back in."""

_ROOM = 1_000_000_000
"""The block numbers reserved for the pieces of each text; more than any text has."""

_NOTICES = {
    "observation_invented": "the model wrote a tool's result itself; that and everything after it was left out",
    "text_after_action": "text after an action's input was left out",
    "answer_and_action": "the reply has both an answer and an action",
}


class Translator:
    """Translates the events of one reply, in any chunking. Use one for each reply.

    `tools` are those of the prompt before `encode_prompt`. Names match in upper or lower case, and the only parameter
    of a tool needs no name. `keeps_objects`: the answer is a JSON object, and `{"answer": …}` is one too.
    """

    def __init__(self, tools: Sequence[Tool] = (), *, keeps_objects: bool = False) -> None:
        self._tools, self._keeps_objects = tools, keeps_objects
        self._parser = ReactParser(tools, keeps_objects=keeps_objects)
        self._fence_stripper = FenceStripper()
        self._text: int | None = None  # the block of the current text
        self._pieces: dict[int, int] = {}  # by text: the number of its pieces
        self._open: tuple[type, int] | None = None  # kind and number of the current block
        self._text_blocks: dict[int, int] = {}  # by text: its last block that holds text
        self._cut: dict[int, int] = {}  # by text: the number of its characters that are not answer text
        self._answers: set[int] = set()  # the blocks of the current text that hold text
        self._seals: list[ThoughtSealed] = []
        self._call_at = 0
        self._called = False
        self._out: list[Event] = []

    def feed(self, events: Sequence[Event]) -> list[Event]:
        """Add the next events; return those that are now certain."""
        self._out = []
        for event in events:
            match event:
                case TextDelta():
                    self._take_text(event)
                case TextReclassified():
                    self._move_text(event)
                case ThoughtSealed() if event.block in self._pieces:
                    # Wait for the end: the text may still be split into pieces.
                    self._seals.append(event)
                case ReplyEnded():
                    self._end(event)
                case ReplyStarted() | UsageReported() | Warned():
                    self._out.append(event)
                case _:
                    self._called = self._called or isinstance(event, ToolCallDelta)
                    self._out.append(msgspec.structs.replace(event, block=event.block * _ROOM))
        return self._out

    def _take_text(self, event: TextDelta) -> None:
        if event.block != self._text:
            if self._text is not None:
                self._emit(self._parser.feed(self._fence_stripper.finish()))
                self._emit(self._parser.begin_text())
            self._text = event.block
            self._answers.clear()
            self._pieces.setdefault(event.block, 0)
            self._open = None
        self._cut[event.block] = self._cut.get(event.block, 0) + len(event.text)
        self._emit(self._parser.feed(self._fence_stripper.feed(event.text)))

    def _move_text(self, event: TextReclassified) -> None:
        """Move a text to thinking: the answer that was read in it, and what was still held."""
        if event.block != self._text:
            return
        self._parser = ReactParser(self._tools, keeps_objects=self._keeps_objects)
        self._fence_stripper = FenceStripper()
        blocks = sorted(self._answers)
        if not blocks:
            self._out.append(msgspec.structs.replace(event.build_delta(), block=self._next_block()))
        for block in blocks:
            text = event.text if block == blocks[0] else ""
            self._out.append(msgspec.structs.replace(event, text=text, block=block))
        self._answers.clear()
        self._open = self._text = None

    def _end(self, event: ReplyEnded) -> None:
        self._emit(self._parser.feed(self._fence_stripper.finish()))
        self._emit(self._parser.finish())
        for sealed in self._seals:
            self._seal(sealed)
        reason, cut = event.stop.reason, event.stop.reason == "length"
        if self._called and reason in ("stop", "unknown", "pause"):
            reason = "tool_calls"
        truncated = event.truncated_thought or self._parser.truncated or (cut and self._parser.in_thought)
        self._out.append(ReplyEnded(StopReason(reason, event.stop.raw), truncated))

    def _seal(self, sealed: ThoughtSealed) -> None:
        """Attach the seal of a text to the text, or to an empty one, and never to a call.

        A text that was changed gets none: its provider sealed other words.
        """
        if self._cut[sealed.block]:
            return
        number = self._text_blocks.get(sealed.block)
        if number is None:
            self._text = sealed.block
            number = self._text_blocks[sealed.block] = self._next_block()
            self._out.append(TextDelta("", number))
        self._out.append(msgspec.structs.replace(sealed, block=number))

    def _next_block(self) -> int:
        text = self._text or 0
        number = text * _ROOM + self._pieces[text]
        self._pieces[text] += 1
        return number

    def _open_block(self, kind: type, *, begins: bool) -> int:
        """The current block, or a new one where another kind begins."""
        if begins or self._open is None or self._open[0] is not kind:
            self._open = kind, self._next_block()
        return self._open[1]

    def _emit(self, pieces: list[Piece]) -> None:
        texts: list[str] = []
        for piece in pieces:
            if isinstance(piece, AnswerText):
                texts.append(piece.text)
                continue
            self._emit_text(texts)
            texts = []
            match piece:
                case ThoughtText():
                    block = self._open_block(ThoughtText, begins=piece.begins)
                    self._out.append(ThinkingDelta(piece.text, block, "raw", "tags", VIA))
                case ActionStarted():
                    # A call gets the place where it began, though other pieces may come before it is complete.
                    self._call_at = self._next_block()
                case ActionCall():
                    self._open, self._called = None, True
                    self._out.append(ToolCallDelta(self._call_at, None, piece.name or None, piece.arguments))
                case ParserWarning():
                    self._out.append(Warned(Notice(piece.code, _NOTICES[piece.code])))
        self._emit_text(texts)

    def _emit_text(self, texts: list[str]) -> None:
        if texts:
            block = self._open_block(AnswerText, begins=False)
            self._text_blocks[self._text or 0] = block
            self._answers.add(block)
            text = "".join(texts)
            self._cut[self._text or 0] -= len(text)
            self._out.append(TextDelta(text, block))


# --- a fence around the whole reply ---------------------------------------------------------------------------------

# How much of the beginning may be needed to find a fence, and a label in the next line.
_HEAD = 4 * MOST_HELD


class _State(Enum):
    HEAD = auto()
    INSIDE = auto()
    PASSING = auto()


class FenceStripper:
    """Passes text on. Removes a fence that opens before the first label, and the fence that closes it."""

    def __init__(self) -> None:
        self._state = _State.HEAD
        self._held = ""
        self._fence = ""
        self._inner: str | None = None
        self._fresh = True

    def feed(self, text: str) -> str:
        """Take the next text; return the text that is certain now."""
        if self._state is _State.PASSING:
            return text
        if self._state is _State.INSIDE:
            return self._strip_inside(text)
        self._held += text
        return self._decide(complete=False)

    def finish(self) -> str:
        """The text is complete: return the text that was held back."""
        rest = self._decide(complete=True) if self._state is _State.HEAD else ""
        held, self._held = self._held, ""
        if self._state is _State.INSIDE and held and check_fence_end(held, self._fence, complete=True) == "yes":
            held = ""
        self._state = _State.PASSING
        return rest + held

    def _decide(self, *, complete: bool) -> str:
        window = self._held[:_HEAD]
        over = len(self._held) >= _HEAD
        found = _find_body(window, complete=complete and not over)
        if isinstance(found, tuple):
            self._state = _State.INSIDE
            self._fence, body = found
            text, self._held = self._held[len(window) - len(body) :], ""
            return self._strip_inside(text)
        if found is None or over or complete:
            self._state = _State.PASSING
            text, self._held = self._held, ""
            return text
        return ""

    def _strip_inside(self, text: str) -> str:
        out: list[str] = []
        lines = split_lines(text)
        for place, piece in enumerate(lines):
            if not self._fresh:
                out.append(piece)
                self._fresh = piece.endswith("\n")
                continue
            line, self._held = self._held + piece, ""
            bare, complete = line.rstrip("\r\n"), line.endswith("\n")
            if self._inner is not None:
                closes = check_fence_end(bare, self._inner, complete=complete)
                if closes == "later":
                    self._held = line
                    continue
                self._inner = None if closes == "yes" else self._inner
            else:
                opens = find_fence(bare, complete=complete)
                if opens == "later":
                    self._held = line
                    continue
                if opens is not None and check_fence_end(bare, self._fence, complete=True) == "yes":
                    self._state = _State.PASSING
                    return "".join((*out, *lines[place + 1 :]))
                self._inner = opens
            out.append(line)
            self._fresh = complete
        return "".join(out)


def _find_body(text: str, *, complete: bool) -> tuple[str, str] | Literal["later"] | None:
    """Find the fence at the beginning of a text, and the text inside it. None when that does not begin with a label,
    "later" when the decision needs more of the text.
    """
    undecided: Literal["later"] | None = None if complete else "later"
    rest = text.lstrip()
    if not rest:
        return undecided
    first, ended, below = rest.partition("\n")
    opens = find_fence(first.rstrip("\r"), complete=bool(ended) or complete)
    if opens is None:
        return None
    body = below.lstrip("\r\n")
    if opens == "later" or not body:
        return undecided
    line, more, _ = body.partition("\n")
    marker = find_marker(line + more, complete=bool(more) or complete)
    if marker == "later":
        return undecided
    return (opens, body) if isinstance(marker, Marker) else None
