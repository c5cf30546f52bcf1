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

    __slots__ = ("_line_start", "_opening", "fence", "fences", "inline", "quotes", "unread")

    def __init__(self, quotes: Quotes | None = None) -> None:
        self.unread: list[str] = []
        self.quotes = quotes
        """Tracks quotes too, where a quoted tag is text."""
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
        if self.quotes is not None:
            self.quotes.read(text)
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


_QUOTE_MARK = re.compile(r'\n|\\[\\"]|["“”„«»「」]|</?(?:code|pre)\b[^<>\n]*>', re.IGNORECASE)
_CLOSING = {"“": "”", "„": "“”", "«": "»", "「": "」"}
_LIST_ITEM = re.compile(r"[-*+]\s|\d+[.)]\s")
_CODE_INDENT = re.compile(r" {4}| {0,3}\t")


class QuoteEnd(NamedTuple):
    """What ends a quote."""

    pattern: re.Pattern[str]
    """Decides it, in the text after the tag."""
    back: int = 0
    """The number of characters that it may need from before a text."""
    skip: int = 0
    """How many of these only precede the first that counts."""


_HTML_END, _HTML_BLOCK_END = (
    {name: QuoteEnd(re.compile(rf"(?P<end></{name}\s*>){line_end}", re.IGNORECASE), 16) for name in ("code", "pre")}
    for line_end in ("|\n", "")
)
_PAIR_ENDS = {
    opening: QuoteEnd(re.compile(rf"(?P<end>[{closing}])|[\n{opening}]")) for opening, closing in _CLOSING.items()
}
# A quotation mark needs its next character: before a word it opens.
_MARK_END = QuoteEnd(re.compile(r'(?<![\s\\])(?P<end>")(?![^\W_])|(?<!\\)"|\n'), 2, 1)
_JSON_END = QuoteEnd(re.compile(r'(?<!\\)(?P<end>")(?![^\W_])|(?<!\\)"|\n'), 2, 1)
# An apostrophe quotes only a tag that it touches on both sides.
_APOSTROPHE_END = QuoteEnd(re.compile(r"(?P<end>['’])(?![^\W_])|[\s\S]"))


class Quotes:
    """Tracks whether a text so far ends inside a quote of its line: quotation marks, a JSON string, or code of HTML.
    Also whether it ends in indented code of Markdown.
    """

    __slots__ = ("_above", "_before", "_indent", "_last", "end")

    def __init__(self) -> None:
        self.end: QuoteEnd | None = None
        """What ends the open quote; None outside quotes."""
        self._above = "start"
        """What the line above is: start (none yet), blank, text, list, code."""
        self._indent = ""
        """The blanks and the first characters of this line."""
        self._before = ""
        """The last character of the text so far."""
        self._last = ""
        """The last one that is not blank."""

    @property
    def in_indented_code(self) -> bool:
        """Whether this line is one of indented code."""
        return self._above in ("blank", "code") and _CODE_INDENT.match(self._indent) is not None

    def read(self, text: str) -> None:
        """Read text that ends where a tag begins."""
        if text and self.end is _APOSTROPHE_END:
            self.end = None
        at = 0
        for found in _QUOTE_MARK.finditer(text):
            self._pass(text[at : found.start()])
            at = found.end()
            if found[0] == "\n":
                self._end_line()
            else:
                self._read_mark(found[0], text[at : at + 1] or "<")
                self._pass(found[0])
        self._pass(text[at:])
        if self._before and self._before in "'‘" and self.end is None:
            self.end = _APOSTROPHE_END

    def _pass(self, text: str) -> None:
        if not text:
            return
        if len(self._indent) < _MAX_INDENT:
            self._indent += text[: _MAX_INDENT - len(self._indent)]
        self._before = text[-1]
        self._last = text.rstrip()[-1:] or self._last

    def _end_line(self) -> None:
        line, above = self._indent, self._above
        if not line.strip():
            self._above = "blank" if above == "text" else above
        elif _LIST_ITEM.match(line.lstrip()) and not self.in_indented_code:
            self._above = "list"
        elif self.in_indented_code:
            self._above = "code"
        elif above != "list" or not line[0].isspace():
            self._above = "text"
        if self.end not in _HTML_BLOCK_END.values():
            self.end = None
        self._indent = self._before = self._last = ""

    def _read_mark(self, mark: str, following: str) -> None:
        if mark[0] == "<":
            name = "pre" if "pre" in mark[:5].lower() else "code"
            if mark[1] == "/":
                self.end = None if self.end in (_HTML_END[name], _HTML_BLOCK_END[name]) else self.end
            elif self.end is None:
                self.end = (_HTML_END if self._indent.strip() else _HTML_BLOCK_END)[name]
        elif mark == '"':
            self._read_quotation_mark(following)
        elif self.end is None and mark in _PAIR_ENDS:
            self.end = _PAIR_ENDS[mark]
        elif self.end is not None and any(
            self.end is _PAIR_ENDS[opening] and mark in closing for opening, closing in _CLOSING.items()
        ):
            self.end = None

    def _read_quotation_mark(self, following: str) -> None:
        before = self._before
        if self.end is _JSON_END or self.end is _MARK_END:
            if not following.isalnum() and (self.end is _JSON_END or not before.isspace()):
                self.end = None
                return
        elif self.end is not None:
            return
        if self._last and self._last in "{[,:":
            self.end = _JSON_END
        elif (not before or before.isspace() or before in _BEFORE_QUOTE) and not following.isspace():
            self.end = _MARK_END


_MAX_INDENT = 40
_MARKS = "\"'’"
_BEFORE_QUOTE = "([{<=,:;-–—/|>*_~"


@cache
def _compile_span_end(run: int, final: bool) -> re.Pattern[str]:
    """Return the pattern that decides an open inline span: a closing run of the same length, or the end of the line."""
    return re.compile(rf"(?<!`)`{{{run}}}{'(?!`)' if final else '(?=[^`])'}|\n")


_NO_SPAN = QuoteEnd(re.compile(r"(?!)"))


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
    if "`" not in text and "~" not in text:
        return False
    *lines, last = text.split("\n")
    # Only these lines can open or close a fence, and inline code ends with its line.
    fences = [line for line in lines if "```" in line or "~~~" in line]
    if not fences and "`" not in last and "~" not in last:
        return False
    code = CodeSpans()
    code.unread.append("\n".join((*fences, last)))
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

    __slots__ = ("_back", "_line", "_span", "buffer", "final", "pos", "tail")

    def __init__(self) -> None:
        self.buffer = ""
        self.pos = 0
        self.final = False
        """No more text comes."""
        self.tail = ""
        """The end of the text so far, while it may still become a tag."""
        self._line: list[str] = []  # the text from a tag on; the rest of the line may make it code, or a quote
        self._span = _NO_SPAN  # what decides that
        self._back = ""  # the end of _line, as far as the next text may continue it

    @property
    def holds(self) -> bool:
        """Whether the next text must be read together with earlier text."""
        return bool(self._line or self.tail)

    def fill(self, text: str) -> bool:
        """Fill the buffer with the held text and this text; False until that is enough to continue."""
        text = self.tail + text
        self.tail = ""
        if self._line:
            if not self.final and not self._span.pattern.search(self._back + text, self._span.skip):
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
                        span = _compile_span_end(code.inline, False)
                        # One backtick more than the span needs already shows that the run is too long.
                        self._wait_for(QuoteEnd(span, code.inline + 1, 1), at)
                        return None
                    if verdict is not None and verdict[0] != "\n":
                        put(buffer[at : verdict.end()])
                        start = at = verdict.end()
                        continue
                    code.inline = 0
                if code.quotes is not None and tag.role is Role.ORPHAN:
                    if code.quotes.in_indented_code:
                        put(found[0])
                        start = at = end
                        continue
                    if (quote := code.quotes.end) is not None:
                        verdict = quote.pattern.search(buffer, end)
                        # A mark needs its next character.
                        is_open = verdict is None or (verdict[0] in _MARKS and verdict.end() == len(buffer))
                        if is_open and not self.final:
                            self._wait_for(quote, at)
                            return None
                        if verdict is not None and verdict["end"]:
                            put(buffer[at : verdict.end()])
                            start = at = verdict.end()
                            continue
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

    def _wait_for(self, span: QuoteEnd, at: int) -> None:
        """Hold the text from a tag on, until the rest of its line shows whether it is code or a quote."""
        self._span, self._back = span, ""
        self._hold_line(self.buffer[at:])
        self.pos = len(self.buffer)

    def _hold_line(self, text: str) -> None:
        self._line.append(text)
        self._back = (self._back + text)[-self._span.back :] if self._span.back else ""
