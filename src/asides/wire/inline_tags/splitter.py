"""Splits text into thinking, commentary and answer: the state machine of `inline_tags`, which explains its rules."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum, auto
from typing import Literal, TypeAlias, get_args

from asides.wire.inline_tags.grammars import Channel, Grammar, Matcher, Role, Tags, find_rules
from asides.wire.inline_tags.scanner import SOLID, CodeSpans, Found, Quotes, TagScanner

Position: TypeAlias = Literal["auto", "leading", "anywhere"]
StartsInside: TypeAlias = bool | Literal["auto"]
Piece: TypeAlias = tuple[int, Channel, str]
"""(number of the segment, its channel, text). The channel is THINKING, COMMENTARY or ANSWER; the text is never empty.

With `late`, one piece may be MOVED: its text, which came as the answer so far, is the thinking of that segment.
"""

_MAX_MENTIONS = 4
_POSITIONS: tuple[Position, ...] = get_args(Position)

_UNFINISHED_HEADER = re.compile(r"<\|(?:start|channel|begin|message_model)\|>", re.IGNORECASE)


class _State(Enum):
    ORPHAN = auto()
    HEAD = auto()
    THINK = auto()
    NEST = auto()
    LATE = auto()
    TEXT = auto()
    DEAD = auto()


_HEADERS = (Role.HEADER, Role.FIRST, Role.INNER)


def _find_nothing(_: str) -> None:
    return None


class Splitter:
    """Splits text in any chunking into thinking, commentary and answer; each piece comes as early as it is certain.

    Segments are numbered from 0 in the order of the text. A new number begins where the channel changes, where another
    thinking block begins, and where another harmony message begins. Call `finish` once, at the end.
    """

    # Class-level defaults: a splitter is created per text and rarely changes them.
    truncated = False
    """After `finish`: the text ended inside a thinking block."""
    began_with_thinking = False
    left_tag = False
    """An opening tag in the answer, outside code, was left there: the answer had begun without one."""
    began_inside = False
    """A closing tag came, and nothing had been opened: the text began inside a thinking block."""
    nests = False
    """A thinking block had others inside."""
    lacks_close = False
    """A header ended a thinking block that had no closing tag."""
    lacks_header = False
    """In a reply whose messages have headers, text came between two messages."""
    plain: Callable[[str], object] | None = None
    """Returns None for text that is more of the last segment, unchanged; such text need not be fed."""
    unread: list[str] | None = None
    """Where such text must be added."""
    _segment = -1
    _kind: Channel | None = None  # of the last piece; None: the next piece begins a segment
    _spoken = Channel.ANSWER  # of text outside thinking: the answer, or commentary
    _known = 0  # of LATE: how many of these texts _code has
    _unclosed: tuple[int, Role, int] | None = None  # of ORPHAN and LATE: a fence, its first tag, the place in _held
    _saw_tag = False  # ORPHAN ended at an opening tag
    _fresh = False  # only blanks in this block yet
    _adjacent = False  # it began directly after another one of the same grammar
    _running = False  # and continues its text
    _grammar: Grammar | None = None
    _leading = False
    _cut: int | None = None  # the place in _nested of the first closing tag
    _nested_code: CodeSpans  # of the text after it, in case that is answer
    _mentions = 0
    _first_grammar: Grammar | None = None
    _written: Grammar | None = None  # the grammar with control tokens that the reply is written in

    def __init__(
        self,
        tags: Tags | None = None,
        position: Position = "auto",
        starts_inside: StartsInside = False,
        *,
        late: bool = False,
    ) -> None:
        """`late`: as `starts_inside="auto"`, but text is passed on as the answer while nothing is decided. A lone
        closing tag then moves it.
        """
        if position not in _POSITIONS:
            raise ValueError(f"position={position!r} is not known; use {', '.join(_POSITIONS)}")
        if starts_inside not in (True, False, "auto"):
            raise ValueError(f"starts_inside={starts_inside!r} is not known; use True, False or 'auto'")
        self._late = late and starts_inside is False
        self._rules = find_rules(tags)
        self._position = position
        self._implied = starts_inside is True
        self._state = _State.ORPHAN if starts_inside == "auto" else _State.HEAD
        if not self._rules.grammars and not self._implied:
            self._state = _State.DEAD

        self._scanner = TagScanner()
        self._code = CodeSpans(Quotes())
        self._out: list[Piece] = []
        self._blanks: list[str] = []  # of HEAD, or of a block that is blank so far
        self._held: list[str] = []  # of ORPHAN and LATE
        self._carried: list[str] = []  # a blank block between two that continue each other
        self._nested: list[tuple[bool, str]] = []  # of NEST: (is a tag, text)
        self._depth: dict[Grammar, int] = {}
        self._at_start = bool(self._rules.firsts.firsts)  # of ORPHAN: only blanks so far
        self._within: Matcher = self._rules.within(None) if self._implied else _NO_TAGS
        self._text_matcher: Matcher = _NO_TAGS

    @property
    def passes_all(self) -> bool:
        """Whether all further text is more of the same segment of the answer, so that it need not be fed."""
        return self.plain is _find_nothing

    @property
    def grammar(self) -> str:
        """The name of the first grammar with a tag that counted; "" if none did."""
        first = self._first_grammar or self._written
        return "" if first is None else first.name

    def feed(self, text: str) -> list[Piece]:
        """Add text; return every piece that is certain now. Any chunking gives the same segments."""
        plain = self.plain
        if plain is not None and plain(text) is None:
            if not text:
                return []
            if self.unread is not None:
                self.unread.append(text)
            return [(self._segment, self._spoken if self._kind is None else self._kind, text)]
        self._out = []
        self._run(text)
        self._choose_fast_path()
        return self._out

    def finish(self, *, cut: bool = False) -> list[Piece]:
        """Return the pieces that were held: the text is complete.

        `cut`: the text broke off, so a closing tag may be missing. Undecided text is then thinking.
        """
        self._out = []
        self._scanner.final = True
        if self._written is not None and _UNFINISHED_HEADER.match(self._scanner.tail):
            self._scanner.tail = ""
        if self._scanner.holds:
            self._run("")
        if cut and self._state is _State.ORPHAN:
            self._segment += 1
            self._emit(Channel.THINKING, "".join(self._held))
            self._held, self._state = [], _State.THINK
        while self._decide_at_end():
            pass
        if self._state is _State.THINK:
            self.truncated = True
        elif self._state is _State.HEAD and not self.began_with_thinking and not self._implied:
            self._emit(Channel.ANSWER, "".join(self._blanks))
        return self._out

    # --- the machine ------------------------------------------------------------------------------------------------

    def _run(self, text: str) -> None:
        if self._scanner.fill(text):
            while self._step():
                pass

    def _step(self) -> bool:
        match self._state:
            case _State.THINK:
                return self._read_thought()
            case _State.TEXT:
                return self._read_answer()
            case _State.HEAD:
                return self._read_head()
            case _State.NEST:
                return self._read_nested()
            case _State.ORPHAN:
                return self._read_undecided()
            case _State.LATE:
                return self._read_late()
            case _State.DEAD:
                self._emit(self._spoken, self._scanner.read_rest())
                return False

    def _choose_fast_path(self) -> None:
        """Choose the check with which `feed` lets the next text pass unchanged, if any."""
        self.plain = self.unread = None
        if self._scanner.holds:
            return
        if self._state is _State.THINK:
            if not self._fresh:
                self.plain = self._within.trigger
        elif self._kind is self._spoken:
            if self._state is _State.DEAD:
                self.plain = _find_nothing
            elif self._state is _State.LATE:
                self.plain = self._rules.orphans.trigger
                self.unread = self._held
            elif self._state is _State.TEXT:
                self.plain = self._text_matcher.trigger
                self.unread = self._code.unread

    def _decide_at_end(self) -> bool:
        """Decide what only the end of the text decides; True when text was read again."""
        if self._state is _State.ORPHAN or self._state is _State.LATE:
            return self._decide_undecided()
        if self._state is _State.NEST:
            nested, cut = self._nested, self._cut
            self._state = _State.THINK
            self._emit(Channel.THINKING, "".join(text for _, text in nested[:cut]))
            if cut is None:
                return False
            self._mentions += 1
            self._close_block()
            self._run("".join(text for _, text in nested[cut + 1 :]))
            return True
        return False

    def _decide_undecided(self) -> bool:
        held, code, late = self._held, self._code, self._state is _State.LATE
        if late:
            self._tell_code()
        code.read()
        self._held, self._known, self._late = [], 0, False
        number, role, place = self._unclosed or (0, Role.OPEN, 0)
        if code.fence and code.fences == number and role is Role.ORPHAN:
            thought = "".join(held[:place])
            found = self._rules.orphans.whole(held[place], 0)
            closing = None if found is None else self._rules.orphans.find_tag(found)
            if closing is not None:
                self._note_orphan(closing.grammar)
            if late:
                self._move(thought)
            else:
                self._close_implied_block(thought)
            self._run("".join(held[place + 1 :]))
            return True
        if late:
            self._state = _State.DEAD
            return False
        self._state = _State.HEAD
        self._run("".join(held))
        return True

    def _find_tag(self, matcher: Matcher, code: CodeSpans | None) -> Found | None:
        return self._scanner.find(matcher, code, self._route)

    def _route(self, text: str, fenced: Role | None = None) -> None:
        """Send plain text to the place where the current state collects it."""
        if not text:
            return
        match self._state:
            case _State.THINK:
                self._emit(Channel.THINKING, text)
            case _State.NEST:
                self._nested.append((False, text))
                if self._cut is not None:
                    self._nested_code.unread.append(text)
            case _State.ORPHAN:
                if fenced and (self._unclosed is None or self._unclosed[0] != self._code.fences):
                    self._unclosed = self._code.fences, fenced, len(self._held)
                self._held.append(text)
                self._code.unread.append(text)
            case _State.LATE:
                self._tell_code()
                if fenced and (self._unclosed is None or self._unclosed[0] != self._code.fences):
                    self._unclosed = self._code.fences, fenced, len(self._held)
                self._emit(Channel.ANSWER, text)
                self._held.append(text)
                self._code.unread.append(text)
                self._known = len(self._held)
            case _:
                self._emit(self._spoken, text)
                self._code.unread.append(text)

    def _emit(self, channel: Channel, text: str) -> None:
        if not text:
            return
        if channel is Channel.THINKING:
            if self._fresh:
                if text.isspace():
                    self._blanks.append(text)
                    return
                text = "".join((*self._blanks, text))
                self._fresh = False
                # The server may close its tag after every chunk; then this block continues the one before.
                self._running = self._adjacent and (self._running or text[0] == " ")
                self._segment += not self._running
        elif self._kind is not channel:
            self._segment += 1
        self._kind = channel
        self._out.append((self._segment, channel, text))

    # --- the states: each method returns False when it needs more text ----------------------------------------------

    def _read_undecided(self) -> bool:
        if self._at_start:
            scanner = self._scanner
            self._route(scanner.read_blanks())
            if scanner.pos == len(scanner.buffer):
                return False
            found = scanner.find_here(self._rules.firsts)
            if scanner.tail:
                return False
            self._at_start = False
            if found is not None:
                self._begin_again(found.text)
                return True
        tag = self._find_tag(self._rules.orphans, self._code)
        if tag is None:
            return False
        role, grammar, text = tag
        if role is Role.ORPHAN:
            self._note_orphan(grammar)
            self._close_implied_block("".join(self._held))
            self._held = []
            self._read_header_again(tag)
        elif SOLID.search(held := "".join(self._held)) is None:
            # Nothing but blanks came before: this is where the text begins.
            self._saw_tag, self._state = True, _State.HEAD
            self._held, self._blanks = [], [held]
            self._read_first_tag(tag)
        else:
            self._begin_again(text)
        return True

    def _begin_again(self, text: str) -> None:
        """Read the held text and this tag again: the text did not begin inside a block."""
        self._saw_tag = True
        self._state = _State.HEAD
        self._scanner.push_back("".join((*self._held, text)))
        self._held = []

    def _read_header_again(self, found: Found) -> None:
        """Read a closing tag again that is also the header of the next message."""
        _, grammar, text = found
        if (text,) in grammar.header:
            self._scanner.push_back(text)

    def _close_implied_block(self, thought: str) -> None:
        self._open_block(None, leading=True)
        self._emit(Channel.THINKING, thought)
        self._close_block()

    def _read_head(self) -> bool:
        scanner = self._scanner
        if blanks := scanner.read_blanks():
            self._blanks.append(blanks)
        if scanner.pos == len(scanner.buffer):
            return False
        rules, written = self._rules, self._written
        if written is not None:
            matcher = rules.heads_and_controls(written)
        else:
            matcher = rules.heads_and_orphans if self._late else rules.heads
        found = scanner.find_here(matcher)
        if scanner.tail:
            return False
        if found is None:
            return self._begin_without_tag()
        self._late = False
        self._read_first_tag(found)
        return True

    def _read_first_tag(self, found: Found) -> None:
        """Read a tag before the answer."""
        role, grammar, text = found
        if role is Role.ORPHAN:
            self._note_orphan(grammar)
            self._close_implied_block("".join(self._blanks))
            return
        channel = grammar.read(text) if role in _HEADERS else None
        if channel is not None:
            self._written = grammar
        if channel is Channel.TOOL:
            self._scanner.push_back(text)
            self._begin_without_tag()
            self.lacks_header = False
            return
        if role is Role.OPEN or channel is Channel.THINKING:
            self._open_block(grammar, leading=True, void=grammar.closes_itself(text))
            return
        self._blanks = []
        if channel is not None:
            self._begin_message(channel)

    def _begin_without_tag(self) -> bool:
        self.lacks_header = self._written is not None and bool(self._written.header)
        blanks = "" if self.began_with_thinking else "".join(self._blanks)
        self._blanks = []
        if self._implied and not self.began_with_thinking:
            self._open_block(None, leading=True)
        else:
            self._begin_message(Channel.ANSWER)
            if self._late:
                self._state = _State.LATE
            elif self._saw_tag and self._state is not _State.TEXT:
                self.left_tag = True
        self._route(blanks)
        return True

    def _tell_code(self) -> None:
        """Give the texts that passed unread to the tracker of code."""
        if self._known < len(self._held):
            self._code.unread += self._held[self._known :]
            self._known = len(self._held)

    def _read_late(self) -> bool:
        self._tell_code()
        tag = self._find_tag(self._rules.orphans, self._code)
        if tag is None:
            return False
        role, grammar, text = tag
        self._late = False
        held, self._held, self._known = self._held, [], 0
        if role is Role.ORPHAN:
            self._note_orphan(grammar)
            self._move("".join(held))
            self._read_header_again(tag)
            return True
        self._continue_answer()
        self.left_tag = self._state is not _State.TEXT
        self._scanner.push_back(text)
        return True

    def _move(self, thought: str) -> None:
        """Turn everything that came so far as the answer into a thought."""
        if self._kind is not None:
            self._out.append((self._segment, Channel.MOVED, thought))
        self._open_block(None, leading=True)
        self._fresh = False
        self._kind = Channel.THINKING
        self._close_block()

    def _begin_message(self, channel: Channel) -> None:
        """Begin a message of the answer, or of commentary."""
        self._code = CodeSpans(Quotes() if self._late else None)
        self._spoken = channel
        if self._kind is not Channel.THINKING:
            self._kind = None
        self._continue_answer()

    def _continue_answer(self) -> None:
        live = self._position == "anywhere" or (self._position == "auto" and self.began_with_thinking)
        rules, written = self._rules, self._written
        self._state = _State.TEXT if live or written is not None else _State.DEAD
        if written is None:
            self._text_matcher = rules.opens if live else _NO_TAGS
        else:
            self._text_matcher = rules.opens_and_controls(written) if live else rules.controls(written)

    def _read_answer(self) -> bool:
        tag = self._find_tag(self._text_matcher, self._code)
        if tag is None:
            return False
        role, grammar, text = tag
        if role is Role.OPEN:
            self._open_block(grammar, leading=False, void=grammar.closes_itself(text))
        elif role is Role.HEADER:
            self._read_header(grammar, text)
        elif role is Role.CONTROL and grammar.header:
            self.lacks_header = self.lacks_header or not self._scanner.is_before(
                self._rules.heads_and_controls(grammar)
            )
        return True

    def _read_header(self, grammar: Grammar, text: str) -> None:
        """Read the header of a message behind the beginning of the answer."""
        self._written = grammar
        match grammar.read(text):
            case Channel.THINKING:
                self._spoken = Channel.ANSWER
                self._open_block(grammar, leading=False)
            case Channel.COMMENTARY | Channel.ANSWER as channel:
                self._begin_message(channel)
            case Channel.TOOL | Channel.MOVED:
                self._spoken = Channel.ANSWER
                self._continue_answer()
                self._route(text)

    def _note_grammar(self, grammar: Grammar | None) -> None:
        if grammar is not None:
            self._first_grammar = self._first_grammar or grammar
            if grammar.control:
                self._written = grammar

    def _note_orphan(self, grammar: Grammar) -> None:
        self.began_inside = True
        self._note_grammar(grammar)

    def _open_block(self, grammar: Grammar | None, *, leading: bool, void: bool = False) -> None:
        if leading:
            self.began_with_thinking = True
        self._note_grammar(grammar)
        if void:
            return
        self._state = _State.THINK
        self._leading = leading
        again = grammar is not None and grammar is self._grammar and not (grammar.header or grammar.first)
        self._adjacent = again and self._kind is Channel.THINKING and not self._blanks
        self._grammar = grammar
        self._fresh = True
        self._blanks = self._carried if self._adjacent else []
        self._carried = []
        self._within = self._rules.within(grammar)
        self._depth = dict.fromkeys(self._rules.grammars if grammar is None else (grammar,), 1)

    def _close_block(self) -> None:
        runs = self._running or "".join(self._blanks).startswith(" ")
        self._carried = self._blanks if self._fresh and self._adjacent and runs else []
        self._fresh = False
        self._blanks = []
        if self._leading:
            self._state = _State.HEAD
        else:
            self._continue_answer()

    def _read_thought(self) -> bool:
        tag = self._find_tag(self._within, None)
        if tag is None:
            return False
        role, grammar, text = tag
        if role is Role.CLOSE:
            self._note_grammar(grammar)
            self._close_block()
            self._read_header_again(tag)
        elif role is Role.HEADER:  # ends the thought without a closing tag; the next state reads what it opens
            self.lacks_close = True
            self._written = grammar
            self._close_block()
            self._scanner.push_back(text)
        elif role is Role.INNER:  # the same, but only here is it a header
            self.lacks_close = True
            self._close_block()
            if self._state is _State.HEAD:
                self._read_first_tag(tag)
            else:
                self._read_header(grammar, text)
        elif grammar.closes_itself(text) or self._mentions >= _MAX_MENTIONS:
            self._emit(Channel.THINKING, text)
        else:
            self._depth[grammar] += 1
            self._state = _State.NEST
            self._nested = [(True, text)]
            self._cut = None
        return True

    def _read_nested(self) -> bool:
        tag = self._find_tag(self._within, None if self._cut is None else self._nested_code)
        if tag is None:
            return False
        role, grammar, text = tag
        if role in (Role.HEADER, Role.INNER) or (role is Role.OPEN and grammar.closes_itself(text)):
            self._route(text)
            return True
        self._depth[grammar] += 1 if role is Role.OPEN else -1
        if not self._depth[grammar]:
            self.nests = True
            self._state = _State.THINK
            for is_tag, inner in self._nested:
                if is_tag:
                    self._fresh, self._adjacent = True, False
                    self._blanks = []
                else:
                    self._emit(Channel.THINKING, inner)
            self._close_block()
            return True
        if role is Role.CLOSE and self._cut is None:
            self._cut = len(self._nested)
            self._nested_code = CodeSpans()
        self._nested.append((True, text))
        return True


_NO_TAGS = Matcher(())
