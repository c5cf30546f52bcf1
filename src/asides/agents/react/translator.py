"""The events of a reply that is written in ReAct, as the events of one that was not: `Translator`.

Not here: how the text is taken apart (sections). Thinking that came apart from the text is passed on as it is, and is
never looked at for calls.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from asides.agents.react.calls import Call
from asides.agents.react.parser import Begun, Mused, Noted, Piece, Said, Sections
from asides.agents.react.strip_fence import Unwrapper
from asides.values.events import (
    Event,
    PartArrived,
    RefusalDelta,
    ReplyEnded,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    Warned,
)
from asides.values.notices import Notice
from asides.values.tools import Tool

VIA = "react"
"""What carried a thought that was written as text: it has no field to go back in."""

_ROOM = 1_000_000_000
"""Block numbers for the pieces of each text: more than any text has."""

_NOTICES = {
    "observation_invented": "the model wrote a tool's result itself; that and all behind it was left out",
    "text_after_action": "words behind an action's input were left out",
    "answer_and_action": "the reply has both an answer and an action",
}


class Translator:
    """Takes the events of one reply, in any chunking, and gives those that they mean. One for each reply.

    `tools` are those of the prompt before it was dressed: with them names are matched without regard to case, and the
    one parameter of a tool need not be named.
    """

    def __init__(self, tools: Sequence[Tool] = ()) -> None:
        self._sections = Sections(tools)
        self._unwrapper = Unwrapper()
        self._text: int | None = None  # the block that the text is in
        self._pieces: dict[int, int] = {}  # by text: how many pieces it was cut into
        self._open: tuple[type, int] | None = None  # the kind and the number of the block that is being written
        self._words: dict[int, int] = {}  # by text: the last block of it that holds words
        self._seals: list[ThoughtSealed] = []
        self._call_at = 0
        self._called = False
        self._out: list[Event] = []

    def feed(self, events: Sequence[Event]) -> list[Event]:
        """Take the next events; the ones that are certain now."""
        self._out = []
        for event in events:
            match event:
                case TextDelta():
                    self._take_text(event)
                case ThinkingDelta() | ToolCallDelta() | RefusalDelta() | PartArrived():
                    self._called = self._called or isinstance(event, ToolCallDelta)
                    self._out.append(msgspec.structs.replace(event, block=event.block * _ROOM))
                case ThoughtSealed() if event.block in self._pieces:
                    # Of a text that may be cut into pieces yet.
                    self._seals.append(event)
                case ThoughtSealed():
                    self._out.append(msgspec.structs.replace(event, block=event.block * _ROOM))
                case ReplyEnded():
                    self._end(event)
                case _:
                    self._out.append(event)
        return self._out

    def _take_text(self, event: TextDelta) -> None:
        if event.block != self._text:
            if self._text is not None:
                self._tell(self._sections.feed(self._unwrapper.finish()))
                self._tell(self._sections.new_text())
            self._text = event.block
            self._pieces.setdefault(event.block, 0)
            self._open = None
        self._tell(self._sections.feed(self._unwrapper.feed(event.text)))

    def _end(self, event: ReplyEnded) -> None:
        self._tell(self._sections.feed(self._unwrapper.finish()))
        self._tell(self._sections.finish())
        for sealed in self._seals:
            self._seal(sealed)
        reason, cut = event.stop.reason, event.stop.reason == "length"
        if self._called and reason in ("stop", "unknown", "pause"):
            reason = "tool_calls"
        truncated = event.truncated_thought or self._sections.truncated or (cut and self._sections.in_thought)
        self._out.append(ReplyEnded(StopReason(reason, event.stop.raw), truncated))

    def _seal(self, sealed: ThoughtSealed) -> None:
        """A seal of a text stays with its words; where there are none, with an empty text, and never with a call."""
        number = self._words.get(sealed.block)
        if number is None:
            self._text = sealed.block
            number = self._words[sealed.block] = self._next()
            self._out.append(TextDelta("", number))
        self._out.append(msgspec.structs.replace(sealed, block=number))

    def _next(self) -> int:
        text = self._text or 0
        number = text * _ROOM + self._pieces[text]
        self._pieces[text] += 1
        return number

    def _block(self, kind: type, *, begins: bool) -> int:
        """The block that is being written, or a new one where another kind begins."""
        if begins or self._open is None or self._open[0] is not kind:
            self._open = kind, self._next()
        return self._open[1]

    def _tell(self, pieces: list[Piece]) -> None:
        said: list[str] = []
        for piece in pieces:
            if isinstance(piece, Said):
                said.append(piece.text)
                continue
            self._say(said)
            said = []
            match piece:
                case Mused():
                    block = self._block(Mused, begins=piece.begins)
                    self._out.append(ThinkingDelta(piece.text, block, "raw", "tags", VIA))
                case Begun():
                    # The place of a call is where it began, whatever comes before it is complete.
                    self._call_at = self._next()
                case Call():
                    self._open, self._called = None, True
                    self._out.append(ToolCallDelta(self._call_at, None, piece.name or None, piece.arguments))
                case Noted():
                    self._out.append(Warned(Notice(piece.code, _NOTICES[piece.code])))
        self._say(said)

    def _say(self, said: list[str]) -> None:
        if said:
            block = self._block(Said, begins=False)
            self._words[self._text or 0] = block
            self._out.append(TextDelta("".join(said), block))
