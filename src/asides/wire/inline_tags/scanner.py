"""Finds the tags of a text that comes in pieces, except those in code.

Code is a fence, or a span of inline code in one line; this is not a Markdown parser.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple, Protocol

from asides.wire.inline_tags.grammars import Grammar, Matcher, Role

_CODE_MARK = re.compile(r"\n|`+|~{3,}")
SOLID = re.compile(r"[^\s\ufeff\u200b]")
"""A character that begins the answer, if it begins no tag; a byte order mark or zero-width space does not."""


class CodeSpans:
    """Tracks whether the answer so far ends inside code. It reads the `unread` text only when a tag is found."""

    __slots__ = ("_line_start", "_opening", "fence", "fences", "inline", "unread")

    def __init__(self) -> None:
        self.unread: list[str] = []
        self.fence = ""
        """The run that opened the current fence; "" outside a fence."""
        self.fences = 0
        """The number of fences opened so far."""
        self.inline = 0
        """The length of the open backtick run on this line."""
        self._opening = False  # still on the line that opened the fence
        self._line_start = True  # only blanks on this line so far

    def read(self) -> None:
        """Read the unread text. It ends where a tag begins, so no run of backticks is cut."""
        text = "".join(self.unread)
        self.unread.clear()
        line = 0
        for found in _CODE_MARK.finditer(text):
            run = found[0]
            if run == "\n":
                line = found.end()
                self._line_start, self._opening, self.inline = True, False, 0
                continue
            leading = self._line_start and not text[line : found.start()].strip()
            self._line_start = False
            if self.fence:
                self._read_in_fence(run, leading, text, found.end())
            elif leading and len(run) >= 3:
                self.fence, self._opening = run, True
                self.fences += 1
            elif run[0] == "`":
                self._read_backticks(run)
        self._line_start = self._line_start and not text[line:].strip()

    def _read_in_fence(self, run: str, leading: bool, text: str, end: int) -> None:
        if self._opening:
            if run[0] == "`" == self.fence[0]:  # ```code``` on one line is inline code
                self.inline, self.fence = len(self.fence), ""
                self._read_backticks(run)
        elif leading and run.startswith(self.fence):
            line_end = text.find("\n", end)
            if not text[end : None if line_end < 0 else line_end].strip():
                self.fence = ""

    def _read_backticks(self, run: str) -> None:
        if self.inline == len(run):
            self.inline = 0
        elif not self.inline and len(run) <= 3:  # without a limit a line could be read again for each length
            self.inline = len(run)


@cache
def _compile_span_end(run: int, final: bool) -> re.Pattern[str]:
    """Return the pattern that decides an open inline span: a closing run of the same length, or the end of the line."""
    return re.compile(rf"(?<!`)`{{{run}}}{'(?!`)' if final else '(?=[^`])'}|\n")


class Found(NamedTuple):
    """A live tag and its text."""

    role: Role
    grammar: Grammar
    text: str


class Put(Protocol):
    """Receives the plain text between tags. `fenced`: the text is a tag of this role, in a fence."""

    def __call__(self, text: str, fenced: Role | None = None, /) -> None:
        """Receive the text."""


def ends_in_code(text: str) -> bool:
    """Whether a text ends inside a fence, or inside inline code that its last line does not close."""
    if "`" not in text and ("~" not in text or "~~~" not in text):
        return False
    code = CodeSpans()
    code.unread.append(text)
    code.read()
    return bool(code.fence or code.inline)


class Marks:
    """Finds the characters of a text that may begin a tag, in order. Each is looked for once, so the time is linear."""

    __slots__ = ("_marks", "_next", "_text", "_trigger")

    def __init__(self, text: str, matcher: Matcher) -> None:
        self._text = text
        self._marks = matcher.marks
        self._trigger = matcher.trigger
        self._next: list[int] = [] if matcher.marks is None else [-1] * len(matcher.marks)

    def find(self, place: int) -> int:
        """Return the place of the first such character from this place on; -1 if there is none."""
        text, marks = self._text, self._marks
        if marks is None:
            hit = self._trigger(text, place)
            return -1 if hit is None else hit.start()
        if len(marks) == 1:
            return text.find(marks[0], place)
        first = end = len(text)
        for number, found in enumerate(self._next):
            if found < place:
                found = text.find(marks[number], place)
                self._next[number] = found = end if found < 0 else found
            if found < first:  # noqa: PLR1730 - min() is slower
                first = found
        return -1 if first == end else first


class TagScanner:
    """Reads text piece by piece; holds only text that the next characters may still make a live tag."""

    __slots__ = ("_line", "_span", "_ticks", "buffer", "final", "pos", "tail")

    def __init__(self) -> None:
        self.buffer = ""
        self.pos = 0
        self.final = False
        """No more text comes."""
        self.tail = ""
        """The end of the text so far, while it may still become a tag."""
        self._line: list[str] = []  # the text from a tag on; a later backtick in the line may make it code
        self._span = 0  # the number of backticks that would make it code
        self._ticks = 0  # the number of backticks at the end of _line: the next text may add more

    @property
    def holds(self) -> bool:
        """Whether the next text must be read together with earlier text."""
        return bool(self._line or self.tail)

    def fill(self, text: str) -> bool:
        """Fill the buffer with the held text and this text; False while that is not enough to go on."""
        text = self.tail + text
        self.tail = ""
        if self._line:
            if not self.final and not _compile_span_end(self._span, False).search("`" * self._ticks + text):
                self._hold_line(text)
                return False
            text = "".join((*self._line, text))
            self._line = []
        self.buffer, self.pos = text, 0
        return True

    def find(self, matcher: Matcher, code: CodeSpans | None, put: Put) -> Found | None:
        """Pass the text before the next live tag to `put` and return that tag; None when more text is needed."""
        buffer = self.buffer
        start = at = self.pos
        match = matcher.whole if self.final else matcher.growing
        marks = Marks(buffer, matcher)
        while (at := marks.find(at)) >= 0:
            found = match(buffer, at)
            if found is None:
                at += 1
                continue
            put(buffer[start:at])
            start = at
            tag = matcher.find_tag(found)
            if tag is None:
                self.tail = buffer[at:]
                self.pos = len(buffer)
                return None
            end = found.end()
            if code is not None:
                code.read()
                if code.fence:
                    put(found[0], tag.role)
                    start = at = end
                    continue
                if code.inline:
                    verdict = _compile_span_end(code.inline, self.final).search(buffer, end)
                    if verdict is None and not self.final:
                        self._span, self._ticks = code.inline, 0
                        self._hold_line(buffer[at:])
                        self.pos = len(buffer)
                        return None
                    if verdict is not None and verdict[0] != "\n":
                        put(buffer[at : verdict.end()])
                        start = at = verdict.end()
                        continue
                    code.inline = 0
            self.pos = end
            return Found(tag.role, tag.grammar, found[0])
        put(buffer[start:])
        self.pos = len(buffer)
        return None

    def read_blanks(self) -> str:
        """Read the blanks at the position."""
        solid = SOLID.search(self.buffer, self.pos)
        start, self.pos = self.pos, solid.start() if solid else len(self.buffer)
        return self.buffer[start : self.pos]

    def is_before(self, matcher: Matcher) -> bool:
        """Whether only blanks are left, or a tag comes next."""
        solid = SOLID.search(self.buffer, self.pos)
        return solid is None or matcher.growing(self.buffer, solid.start()) is not None

    def find_here(self, matcher: Matcher) -> Found | None:
        """Read the tag at the position; None when there is none, or (`holds`) when the text may become one."""
        found = (matcher.whole if self.final else matcher.growing)(self.buffer, self.pos)
        if found is None:
            return None
        tag = matcher.find_tag(found)
        if tag is None:
            self.tail = self.buffer[self.pos :]
            self.pos = len(self.buffer)
            return None
        self.pos = found.end()
        return Found(tag.role, tag.grammar, found[0])

    def read_rest(self) -> str:
        """Read the rest of the buffer."""
        start, self.pos = self.pos, len(self.buffer)
        return self.buffer[start:]

    def push_back(self, text: str) -> None:
        """Return text to the buffer, to be read again."""
        if self.buffer.startswith(text, start := self.pos - len(text)) and start >= 0:
            self.pos = start
        else:
            self.buffer, self.pos = text + self.buffer[self.pos :], 0

    def _hold_line(self, text: str) -> None:
        self._line.append(text)
        ticks = len(text) - len(text.rstrip("`"))
        # One more than the span needs already shows that the run is too long.
        self._ticks = min(ticks + (self._ticks if ticks == len(text) else 0), self._span + 1)
