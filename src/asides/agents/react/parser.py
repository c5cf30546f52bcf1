"""Parses the text of a ReAct reply into thoughts, calls and the answer, each as early as it is certain.

The result does not depend on how the text is chunked.

Theory of operation
-------------------
The parser reads line by line. At the beginning of a line it holds back text that may become a label or a fence. All
other text goes straight to the current section:

    PLAIN    no label yet: the answer, or text before an action
    THOUGHT  after `Thought:`
    ACTION   after `Action:`; collected until it is complete
    INPUT    after `Action Input:`; collected until it is complete
    DONE     after a complete action; text here is dropped
    ANSWER   after `Final Answer:`
    DROPPED  after an observation that the model made up

*Tags.* A thinking block in tags may begin the text, follow `Thought:`, and, after the first such block, begin any line.
Labels inside it are ignored: a call drafted in a thought is not a call. The gate is the splitter that looks for such a
block.

*Doubt.* "Action: Bob sends the mail" in an answer is not a call. An `Action:` in plain text or in the answer counts if
one word follows it, or an object, or an input; in the answer, only when that word is the name of a tool.

*Blanks* before a label belong to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Literal, NamedTuple, TypeAlias

from asides.agents.react.calls import ActionCall, AnswerAction, is_decided, is_prose, parse_action
from asides.agents.react.markers import Label, Marker, check_fence_end, find_fence, find_marker, split_lines
from asides.values.tools import Tool
from asides.wire.inline_tags import Channel, Splitter

TAGS = ("think", "thinking", "thought", "reasoning")
"""The tags that may hold a thought."""


class AnswerText(NamedTuple):
    """A piece of the answer."""

    text: str


class ThoughtText(NamedTuple):
    """A piece of a thought."""

    text: str
    begins: bool
    """It begins a new thought."""


class ActionStarted(NamedTuple):
    """An action may begin here; the ActionCall follows when it is complete."""


class ParserWarning(NamedTuple):
    """A reason for a notice."""

    code: Literal["observation_invented", "text_after_action", "answer_and_action"]


Piece: TypeAlias = AnswerText | ThoughtText | ActionStarted | ActionCall | ParserWarning


class _Section(Enum):
    PLAIN = auto()
    THOUGHT = auto()
    ACTION = auto()
    INPUT = auto()
    DONE = auto()
    ANSWER = auto()
    DROPPED = auto()


_TEXT = (_Section.PLAIN, _Section.ANSWER)


class _Doubt(NamedTuple):
    """An `Action:` that may be prose: its text, its section, and whether it began that section."""

    text: str
    section: _Section
    begins: bool


class ReactParser:
    """Parses text in any chunking. Call `finish` once, at the end."""

    def __init__(self, tools: Sequence[Tool] = (), *, keeps_objects: bool = False) -> None:
        self.truncated = False
        """After `finish`: the text ended inside a thinking tag."""
        self._tools = tools
        self._keeps_objects = keeps_objects
        self._out: list[Piece] = []
        self._section = _Section.PLAIN
        self._held = ""  # of a line that is not decided yet
        self._fresh = True  # at the beginning of a line
        self._labels = True  # a label is possible here: not in the rest of a label's line
        self._fence: str | None = None
        self._begins = False  # after a label, with nothing but blanks since
        self._emphasis = ""  # that the label opened for the text after it
        self._has_text = False
        self._blanks: list[str] = []  # of the text, perhaps before a label
        self._thought_blanks: list[str] = []
        self._name = ""  # of the action whose input is collected
        self._collected: list[str] = []
        self._doubt: _Doubt | None = None
        self._called = self._answered = self._contradicted = False

        self._gate: Splitter | None = Splitter(TAGS, "leading", False)  # until it is known whether a tag follows
        self._segment: int | None = None  # of the gate: the current thought
        self._opening: str | None = None  # of that thought: it may begin with a label
        self._opened = False
        self._tagged = False  # the text had a thought in tags

    @property
    def in_thought(self) -> bool:
        """Whether the text so far ends in a thought."""
        return self._section is _Section.THOUGHT

    def feed(self, text: str) -> list[Piece]:
        """Take the next text; return all pieces that are certain now."""
        self._out = []
        self._take(text)
        return self._out

    def begin_text(self) -> list[Piece]:
        """Begin another text of the same reply, on a new line."""
        self._out = []
        self._end_line()
        if self._section in _TEXT and self._has_text:
            self._release_blanks()
        return self._out

    def finish(self) -> list[Piece]:
        """The text is complete: return the pieces that were held back."""
        self._out = []
        while (gate := self._gate) is not None:
            # A thought may turn out to be text, and a label in it may begin another thought.
            self._gate = None
            self._take_from_gate(gate.finish())
            self._end_opening()
            self.truncated = gate.truncated
        self._end_line()
        self._end_action()
        if self._section is _Section.PLAIN:
            self._release_blanks()
        return self._out

    # --- lines --------------------------------------------------------------------------------------------------------

    def _take(self, text: str) -> None:
        for piece in split_lines(text):
            if self._section is _Section.DROPPED:
                return
            if self._gate is not None:
                self._take_from_gate(self._gate.feed(piece))
            else:
                self._take_line(piece, complete=piece.endswith("\n"))

    def _take_line(self, piece: str, *, complete: bool) -> None:
        """Take a line or part of one. Its beginning shows whether it is a label; the rest is content."""
        if self._fresh:
            piece, self._held = self._held + piece, ""
            if not self._begin_line(piece, complete=complete):
                return
        self._take_content(piece)
        if piece.endswith("\n"):
            self._fresh = self._labels = True

    def _end_line(self) -> None:
        if self._held:
            self._take_line("", complete=True)
        self._fresh = self._labels = True

    def _begin_line(self, line: str, *, complete: bool) -> bool:
        """Handle the beginning of a line. Returns whether it is content; if not, it was a label or is held back."""
        bare = line.rstrip("\r\n")
        if self._fence is not None:
            ends = check_fence_end(bare, self._fence, complete=complete)
            if ends == "yes":
                self._fence = None
            undecided = ends == "later"
        else:
            marker = find_marker(line, complete=complete) if self._labels else None
            if isinstance(marker, Marker) and self._is_label(marker):
                self._begin_section(marker, line)
                return False
            fence = find_fence(bare, complete=complete)
            undecided = "later" in (fence, marker)
            if not undecided:
                self._fence = fence
                if fence is None and self._tagged and self._labels and bare.lstrip(" ").startswith("<"):
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

    def _take_from_gate(self, pieces: list[tuple[int, Channel, str]]) -> None:
        """Take pieces of the gate: thoughts in tags. The first text outside of tags removes the gate."""
        for place, (segment, channel, text) in enumerate(pieces):
            if channel is not Channel.THINKING:
                self._end_opening()
                if self._segment is not None:
                    # After a tag a new line begins, and a thought continues as another one.
                    self._fresh = self._labels = True
                    self._begins = self._begins or self.in_thought
                self._gate = self._segment = None
                self._take("".join(text for _, _, text in pieces[place:]))
                return
            if segment != self._segment:
                self._end_opening()
                self._segment, self._opening, self._opened = segment, "", False
                self._tagged = True
            self._take_tagged(text)

    def _take_tagged(self, text: str) -> None:
        """Take text of a thought in tags. Only a `Thought:` at its beginning is removed."""
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
        self._out.append(ThoughtText(text, not self._opened))
        self._opened = True

    def _end_opening(self) -> None:
        text, self._opening = self._opening, None
        if not text:
            return
        marker = find_marker(text.lstrip(), complete=True)
        if not isinstance(marker, Marker) or marker.label is not Label.THOUGHT:
            self._out.append(ThoughtText(text, begins=True))

    # --- labels -------------------------------------------------------------------------------------------------------

    def _is_label(self, marker: Marker) -> bool:
        """Whether a label counts. An observation in plain text is prose; after a thought or an action it is made up."""
        if marker.label is not Label.OBSERVATION or self._called:
            return True
        if self._doubt is not None:
            return not self._is_prose(self._doubt)
        return self._section not in _TEXT

    def _begin_section(self, marker: Marker, line: str) -> None:
        if marker.label is Label.INPUT and self._section is _Section.ACTION:
            self._name, self._doubt = "".join(self._collected), None
        else:
            self._end_action()
            self._name = ""
            if marker.label in (Label.ACTION, Label.INPUT):
                self._out.append(ActionStarted())
        before, begins = self._section, self._begins
        self._fresh, self._labels, self._begins = True, False, True
        self._emphasis, self._collected = "", []
        match marker.label:
            case Label.THOUGHT:
                self._section, self._emphasis = _Section.THOUGHT, marker.emphasis
                self._open_gate()
            case Label.ACTION:
                self._section = _Section.ACTION
                if before in _TEXT:
                    self._doubt = _Doubt(line[: marker.end], before, begins)
            case Label.INPUT:
                self._section = _Section.INPUT
            case Label.ANSWER:
                self._section, self._emphasis = _Section.ANSWER, marker.emphasis
                self._answered = True
                self._check_contradiction()
            case Label.OBSERVATION:
                self._section = _Section.DROPPED
                self._out.append(ParserWarning("observation_invented"))
                return
        self._take(line[marker.end :])

    def _is_prose(self, doubt: _Doubt) -> bool:
        names = [tool.name for tool in self._tools] if doubt.section is _Section.ANSWER else ()
        return is_prose("".join(self._collected), names)

    def _check_contradiction(self) -> None:
        if self._called and self._answered and not self._contradicted:
            self._contradicted = True
            self._out.append(ParserWarning("answer_and_action"))

    def _end_action(self) -> None:
        """Finish the action that is being collected, if there is one."""
        if self._section is _Section.ACTION:
            if self._doubt is not None and self._is_prose(self._doubt):
                self._return_to_text(self._doubt)
                return
            name, given = "".join(self._collected), None
        elif self._section is _Section.INPUT:
            name, given = self._name, "".join(self._collected)
        else:
            return
        action = parse_action(name, given, self._tools, keeps_objects=self._keeps_objects)
        self._section, self._doubt, self._collected = _Section.DONE, None, []
        match action:
            case ActionCall():
                self._called = True
                self._out.append(action)
                if action.trailing:
                    self._out.append(ParserWarning("text_after_action"))
            case AnswerAction():
                self._section, self._begins, self._answered = _Section.ANSWER, True, True
                self._add_text(action.text)
            case None:
                return
        self._check_contradiction()

    def _return_to_text(self, doubt: _Doubt) -> None:
        text = doubt.text + "".join(self._collected)
        self._section, self._begins, self._doubt, self._collected = doubt.section, doubt.begins, None, []
        self._add_text(text)

    # --- content ------------------------------------------------------------------------------------------------------

    def _take_content(self, text: str) -> None:
        match self._section:
            case _Section.PLAIN | _Section.ANSWER:
                self._add_text(text)
            case _Section.THOUGHT:
                self._add_thought(text)
            case _Section.ACTION | _Section.INPUT:
                self._collected.append(text)
                if self._doubt is not None and not text.isspace() and is_decided("".join(self._collected)):
                    if self._is_prose(self._doubt):
                        self._return_to_text(self._doubt)
                    else:
                        self._doubt = None
            case _Section.DONE | _Section.DROPPED:
                pass

    def _add_text(self, text: str) -> None:
        if self._begins:
            text = text.lstrip()
            if not text:
                return
            text, self._emphasis, self._begins = self._emphasis + text, "", False
        solid = text.rstrip()
        if not solid:
            self._blanks.append(text)
            return
        if not self._has_text and self._section is _Section.ANSWER:
            self._blanks = []
        self._has_text = True
        self._out.append(AnswerText("".join((*self._blanks, solid))))
        self._blanks = [text[len(solid) :]]

    def _release_blanks(self) -> None:
        if blanks := "".join(self._blanks):
            self._out.append(AnswerText(blanks))
        self._blanks = []

    def _add_thought(self, text: str) -> None:
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
        self._out.append(ThoughtText("".join((*self._thought_blanks, solid)), begins))
        self._thought_blanks = [text[len(solid) :]]
