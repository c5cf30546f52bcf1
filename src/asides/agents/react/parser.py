"""The text of a ReAct reply taken apart: thoughts, calls and the answer, each as early as it is certain.

Not here: events and block numbers (translator), and how labels are written (markers). The result is a function of the
text alone: any chunking gives the same.

Theory of operation
-------------------
Text is read line by line. At the beginning of a line, what may become a label or a fence is held; everything else goes
straight to the section it stands in:

    PLAIN    no label yet: the answer as it stands, or words in front of an action
    THOUGHT  behind `Thought:`
    ACTION   behind `Action:`; collected until it is complete
    INPUT    behind `Action Input:`; collected until it is complete
    ANSWER   behind `Final Answer:`
    DROPPED  behind an observation that the model made up

*Tags.* A thinking block in tags may stand at the beginning of the text, behind `Thought:`, and, once there was one, at
the beginning of any line. Nothing inside it is a label: a call that was drafted in a thought is no call.

*Doubt.* "Action: Bob sends the mail" in an answer is no call. An `Action:` in plain words or in the answer counts when
one word stands behind it, or an object, or an input follows; in the answer, only when that word is a tool's name.

*Blanks* in front of a label go with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import Enum, auto
from typing import Literal, NamedTuple, TypeAlias

from asides.agents.react.calls import Answer, Call, is_prose, is_settled, read_action
from asides.agents.react.markers import Label, Marker, closes_fence, find_marker, opens_fence
from asides.values.tools import Tool
from asides.wire.inline_tags import Splitter

TAGS = ("think", "thinking", "thought", "reasoning")
"""The tags that a thought may stand in."""


class Said(NamedTuple):
    """More of the answer."""

    text: str


class Mused(NamedTuple):
    """More of a thought."""

    text: str
    begins: bool
    """It is a thought of its own, and not more of the last one."""


class Begun(NamedTuple):
    """An action begins here, perhaps; what it is comes when it is complete."""


class Noted(NamedTuple):
    """Something that is worth a notice."""

    code: Literal["observation_invented", "text_after_action", "answer_and_action"]


Piece: TypeAlias = Said | Mused | Begun | Call | Noted


class _Section(Enum):
    PLAIN = auto()
    THOUGHT = auto()
    ACTION = auto()
    INPUT = auto()
    DONE = auto()
    ANSWER = auto()
    DROPPED = auto()


_WORDS = (_Section.PLAIN, _Section.ANSWER)


class _Doubt(NamedTuple):
    """An `Action:` that may be words: how it was written, and where."""

    written: str
    section: _Section
    begins: bool


class Sections:
    """Takes text in any chunking apart. Call `finish` once, at the end."""

    def __init__(self, tools: Sequence[Tool] = ()) -> None:
        self.truncated = False
        """After `finish`: the text ended inside a thinking tag."""
        self._tools = tools
        self._out: list[Piece] = []
        self._section = _Section.PLAIN
        self._held = ""  # of a line that is not decided yet
        self._fresh = True  # at the beginning of a line
        self._labels = True  # which may be a label, and is not the rest of one's line
        self._fence: str | None = None
        self._begins = False  # behind a label, and nothing but blanks since
        self._emphasis = ""  # which the label opened for what follows
        self._spoken = False
        self._blanks: list[str] = []  # of the words, perhaps in front of a label
        self._thought_blanks: list[str] = []
        self._name = ""  # of the action whose input is being collected
        self._collected: list[str] = []
        self._doubt: _Doubt | None = None
        self._called = self._answered = self._contradicted = False

        self._gate: Splitter | None = Splitter(TAGS, "leading", False)  # until it is known whether a tag stands here
        self._segment: int | None = None  # of the gate: the thought that is being told
        self._opening: str | None = None  # of that thought: it may begin with a label of its own
        self._opened = False
        self._tagged = False  # there was a thought in tags

    @property
    def in_thought(self) -> bool:
        """Whether the text so far ends in a thought."""
        return self._section is _Section.THOUGHT

    def feed(self, text: str) -> list[Piece]:
        """Take the next text; return every piece that is certain now."""
        self._out = []
        self._take(text)
        return self._out

    def new_text(self) -> list[Piece]:
        """What follows is another text of the same reply, and begins a line."""
        self._out = []
        self._end_line()
        if self._section in _WORDS and self._spoken:
            self._release_blanks()
        return self._out

    def finish(self) -> list[Piece]:
        """The text is complete: return what was held."""
        self._out = []
        while (gate := self._gate) is not None:
            # What seemed to be a thought may be text after all, and a label in it another thought.
            self._gate = None
            self._pass(gate.finish())
            self._end_opening()
            self.truncated = gate.truncated
        self._end_line()
        self._end_action()
        if self._section is _Section.PLAIN:
            self._release_blanks()
        return self._out

    # --- lines --------------------------------------------------------------------------------------------------------

    def _take(self, text: str) -> None:
        for piece in _lines(text):
            if self._section is _Section.DROPPED:
                return
            if self._gate is not None:
                self._pass(self._gate.feed(piece))
            else:
                self._line(piece, complete=piece.endswith("\n"))

    def _line(self, piece: str, *, complete: bool) -> None:
        """A line, or some of one: decided at its beginning, passed on behind that."""
        if self._fresh:
            piece, self._held = self._held + piece, ""
            if not self._begin_line(piece, complete=complete):
                return
        self._content(piece)
        if piece.endswith("\n"):
            self._fresh = self._labels = True

    def _end_line(self) -> None:
        if self._held:
            self._line("", complete=True)
        self._fresh = self._labels = True

    def _begin_line(self, line: str, *, complete: bool) -> bool:
        """Whether the line is content; if not, it is held, or it was a label and is dealt with."""
        bare = line.rstrip("\r\n")
        if self._fence is not None:
            closes = closes_fence(bare, self._fence, complete=complete)
            if closes == "yes":
                self._fence = None
            undecided = closes == "later"
        else:
            marker = find_marker(line, complete=complete) if self._labels else None
            if isinstance(marker, Marker) and self._counts(marker):
                self._mark(marker, line)
                return False
            opens = opens_fence(bare, complete=complete)
            undecided = "later" in (opens, marker)
            if not undecided:
                self._fence = opens
                if opens is None and self._tagged and self._labels and bare.lstrip(" ").startswith("<"):
                    self._open_gate()
                    self._take(line)
                    return False
        if undecided:
            self._held = line
            return False
        self._fresh = False
        return True

    # --- thoughts in tags ---------------------------------------------------------------------------------------------

    def _open_gate(self) -> None:
        self._gate, self._segment = Splitter(TAGS, "leading", False), None
        self._labels = False

    def _pass(self, pieces: list[tuple[int, bool, str]]) -> None:
        """What the gate lets through: thoughts in tags, and the first text behind or without them, which removes it."""
        for place, (segment, is_thinking, text) in enumerate(pieces):
            if not is_thinking:
                self._end_opening()
                if self._segment is not None:
                    # Behind a tag a line begins, and what was a thought goes on as another one.
                    self._fresh = self._labels = True
                    self._begins = self._begins or self.in_thought
                self._gate = self._segment = None
                self._take("".join(text for _, _, text in pieces[place:]))
                return
            if segment != self._segment:
                self._end_opening()
                self._segment, self._opening, self._opened = segment, "", False
                self._tagged = True
            self._open_thought(text)

    def _open_thought(self, text: str) -> None:
        """A thought in tags is told as it stands, but for a `Thought:` at its beginning."""
        if self._opening is not None:
            text = self._opening + text
            solid = text.lstrip()
            marker = find_marker(solid, complete=False)
            if not solid or marker == "later":
                self._opening = text
                return
            if isinstance(marker, Marker) and marker.label is Label.THOUGHT:
                if not (rest := solid[marker.end :].lstrip()):
                    self._opening = solid[: marker.end]
                    return
                text = rest
            self._opening = None
        self._out.append(Mused(text, not self._opened))
        self._opened = True

    def _end_opening(self) -> None:
        text, self._opening = self._opening, None
        if not text:
            return
        marker = find_marker(text.lstrip(), complete=True)
        if not isinstance(marker, Marker) or marker.label is not Label.THOUGHT:
            self._out.append(Mused(text, begins=True))

    # --- labels -------------------------------------------------------------------------------------------------------

    def _counts(self, marker: Marker) -> bool:
        """An observation in plain words is the author's; one behind a thought or an action was made up."""
        if marker.label is not Label.OBSERVATION or self._called:
            return True
        if self._doubt is not None:
            return not self._is_prose(self._doubt)
        return self._section not in _WORDS

    def _mark(self, marker: Marker, line: str) -> None:
        """A section begins."""
        if marker.label is Label.INPUT and self._section is _Section.ACTION:
            self._name, self._doubt = "".join(self._collected), None
        else:
            self._end_action()
            self._name = ""
            if marker.label in (Label.ACTION, Label.INPUT):
                self._out.append(Begun())
        before, begins = self._section, self._begins
        self._fresh, self._labels, self._begins = True, False, True
        self._emphasis, self._collected = "", []
        match marker.label:
            case Label.THOUGHT:
                self._section, self._emphasis = _Section.THOUGHT, marker.emphasis
                self._open_gate()
            case Label.ACTION:
                self._section = _Section.ACTION
                if before in _WORDS:
                    self._doubt = _Doubt(line[: marker.end], before, begins)
            case Label.INPUT:
                self._section = _Section.INPUT
            case Label.ANSWER:
                self._section, self._emphasis = _Section.ANSWER, marker.emphasis
                self._answered = True
                self._look_for_contradiction()
            case Label.OBSERVATION:
                self._section = _Section.DROPPED
                self._out.append(Noted("observation_invented"))
                return
        self._take(line[marker.end :])

    def _is_prose(self, doubt: _Doubt) -> bool:
        names = [tool.name for tool in self._tools] if doubt.section is _Section.ANSWER else ()
        return is_prose("".join(self._collected), names)

    def _look_for_contradiction(self) -> None:
        if self._called and self._answered and not self._contradicted:
            self._contradicted = True
            self._out.append(Noted("answer_and_action"))

    def _end_action(self) -> None:
        """What was collected is complete, where anything is being collected."""
        if self._section is _Section.ACTION:
            if self._doubt is not None and self._is_prose(self._doubt):
                self._back_to_words(self._doubt)
                return
            action = read_action("".join(self._collected), None, self._tools)
        elif self._section is _Section.INPUT:
            action = read_action(self._name, "".join(self._collected), self._tools)
        else:
            return
        self._section, self._doubt, self._collected = _Section.DONE, None, []
        match action:
            case Call():
                self._called = True
                self._out.append(action)
                if action.trailing:
                    self._out.append(Noted("text_after_action"))
            case Answer():
                self._section, self._begins, self._answered = _Section.ANSWER, True, True
                self._say(action.text)
            case None:
                return
        self._look_for_contradiction()

    def _back_to_words(self, doubt: _Doubt) -> None:
        text = doubt.written + "".join(self._collected)
        self._section, self._begins, self._doubt, self._collected = doubt.section, doubt.begins, None, []
        self._say(text)

    # --- what is said -------------------------------------------------------------------------------------------------

    def _content(self, text: str) -> None:
        match self._section:
            case _Section.PLAIN | _Section.ANSWER:
                self._say(text)
            case _Section.THOUGHT:
                self._muse(text)
            case _Section.ACTION | _Section.INPUT:
                self._collected.append(text)
                if self._doubt is not None and not text.isspace() and is_settled("".join(self._collected)):
                    if self._is_prose(self._doubt):
                        self._back_to_words(self._doubt)
                    else:
                        self._doubt = None
            case _Section.DONE | _Section.DROPPED:
                pass

    def _say(self, text: str) -> None:
        if self._begins:
            text = text.lstrip()
            if not text:
                return
            text, self._emphasis, self._begins = self._emphasis + text, "", False
        solid = text.rstrip()
        if not solid:
            self._blanks.append(text)
            return
        if not self._spoken and self._section is _Section.ANSWER:
            self._blanks = []
        self._spoken = True
        self._out.append(Said("".join((*self._blanks, solid))))
        self._blanks = [text[len(solid) :]]

    def _release_blanks(self) -> None:
        if blanks := "".join(self._blanks):
            self._out.append(Said(blanks))
        self._blanks = []

    def _muse(self, text: str) -> None:
        begins = self._begins
        if begins:
            text = text.lstrip()
            if not text:
                return
            text, self._emphasis, self._begins = self._emphasis + text, "", False
            self._thought_blanks = []
        solid = text.rstrip()
        if not solid:
            self._thought_blanks.append(text)
            return
        self._out.append(Mused("".join((*self._thought_blanks, solid)), begins))
        self._thought_blanks = [text[len(solid) :]]


def _lines(text: str) -> Iterable[str]:
    """The lines of a text, with their ends; the last one may have none."""
    if "\n" not in text:
        return (text,) if text else ()
    return [line for line in re.split(r"(?<=\n)", text) if line]
