"""Finds tags, and pieces of tags, that are left in a text after it was separated: signs that it was damaged before."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache

from asides.wire.inline_tags.grammar import Phrase, Unit
from asides.wire.inline_tags.grammars import GRAMMARS, Grammar, Matcher, Role, Tags, find_rules
from asides.wire.inline_tags.scanner import CodeSpans, TagScanner

# The shortest beginning of a tag's name that counts as a piece of the tag: `</thin`.
_SHORTEST_NAME = 4
# The same of a closing tag, if no letter follows: `</thi 42`.
_SHORTEST_END = 3
_TOKEN_MARKS = ("<|", "|>")
_BRACKETS = "<>[]◁▷|"
_OPENING_BRACKETS = "<[◁"
_NAME_ENDS = Unit(r"(?-i:(?![a-z\d_:>-]))")
RARE_TAGS = ("begin-of-thought", "reason")
"""Grammars of few models, whose names many data sets do not have."""
EXPORTED_TAGS = ("details",)
"""Grammars of exported chats."""


class StrayFinder:
    """Finds what is left of the tags of some grammars, and the tags of others, which are not separated."""

    def __init__(self, grammars: tuple[Grammar, ...], others: tuple[Grammar, ...] = ()) -> None:
        opens = [phrase for each in grammars for phrase in (*each.open, *each.header, *each.first)]
        literals = _join_literals(opens)
        self._prefixes = tuple({text[:end] for text in literals for end in range(1, len(text))})
        ends = {text[start:] for text in literals for start in range(1, len(text))}
        # A few letters at the end of a tag may be the beginning of any word.
        self._suffixes = tuple(end for end in ends if end[-1] in _BRACKETS or len(end) >= _SHORTEST_NAME)
        self._halves = {each.name: _cut_firsts(each) for each in grammars if each.open}
        marks = _TOKEN_MARKS if any("<|" in text or "|>" in text for text in literals) else ()
        pieces = Grammar("pieces", control=(*((mark,) for mark in marks), *_cut_names((*grammars, *others))))
        whole = [(each, role) for each in grammars for role in (Role.OPEN, Role.CLOSE, Role.HEADER)]
        whole += [(each, role) for each in others for role in (Role.OPEN, Role.ORPHAN)]
        self._matcher = Matcher([*whole, (pieces, Role.CONTROL)])
        tags = _join_literals(phrase for each, role in whole for phrase in each.phrases(role))
        self._ends = frozenset(tag[:end].casefold() for tag in tags for end in range(_SHORTEST_END, len(tag)))
        self.may_hold = self._matcher.may_hold
        """Whether a text may have a tag or a piece of one."""
        self._longest_end = max(map(len, self._ends), default=0)

    def is_in_answer(self, text: str) -> bool:
        """Whether an answer has a tag, or a piece of one, outside of code."""
        if not self.may_hold(text):
            return False
        code, in_fence = CodeSpans(), list[str]()

        def put(plain: str, fenced: Role | None = None) -> None:
            code.unread.append(plain)
            if fenced:
                in_fence.append(plain)

        if self._search(text, code, put):
            return True
        code.read()
        # A fence without an end may begin in the thought that a quoted tag cut in two.
        return bool(in_fence and code.fence)

    def is_in_thinking(self, text: str) -> bool:
        """Whether a thought has a tag, or a piece of one; nothing is code there."""
        return self.may_hold(text) and self._search(text, None, lambda *_: None)

    def begins_with_piece(self, text: str, shortest: int = 1) -> bool:
        """Whether a text begins with a part of an opening tag, at least this long: its other half was lost."""
        start = text.lstrip()
        if not start.startswith(self._suffixes) and not (start[:1] in _BRACKETS and start.startswith(self._prefixes)):
            return False
        return shortest < 2 or any(
            len(piece) >= shortest and start.startswith(piece) for piece in (*self._suffixes, *self._prefixes)
        )

    def ends_in_piece(self, text: str) -> bool:
        """Whether a text ends in the beginning of a tag: it was cut off there."""
        tail = text.rstrip()[-self._longest_end :].casefold()
        begin = max(map(tail.rfind, _OPENING_BRACKETS))
        return begin >= 0 and tail[begin:] in self._ends

    def begins_with_half(self, text: str, grammar: str) -> bool:
        """Whether an answer begins with a part of the tag that opens answers in this grammar."""
        return text.startswith(self._halves.get(grammar, ()))

    def _search(self, text: str, code: CodeSpans | None, put: object) -> bool:
        scanner = TagScanner()
        scanner.final = True
        scanner.fill(text)
        return scanner.find(self._matcher, code, put) is not None  # type: ignore[arg-type]


def _cut_firsts(grammar: Grammar) -> tuple[str, ...]:
    """The beginnings of the tags that open an answer."""
    tags = [part for phrase in grammar.first for part in phrase if isinstance(part, str)]
    return tuple(tag[:end] for tag in tags for end in range(1, len(tag)))


def _cut_names(grammars: tuple[Grammar, ...]) -> list[Phrase]:
    """The beginnings of tags, up to where the name is clear, and closing tags in angle brackets without the first one.

    Also those of tags whose brackets were escaped for HTML.
    """
    pieces: dict[Phrase, None] = {}
    for tag in _join_literals(phrase for each in grammars for phrase in each.open):
        if tag.startswith("<") and tag[1:2].isalpha() and " " not in tag:
            name = tag[1 : 1 + _SHORTEST_NAME]
            pieces |= dict.fromkeys((mark + name,) for mark in ("<", "&lt;", "&lt;/"))
    for tag in _join_literals(phrase for each in grammars for phrase in each.phrases(Role.ORPHAN)):
        bracket, slash, name = tag.partition("/")
        if slash and len(bracket) == 1:
            pieces[f"{bracket}/{name[:_SHORTEST_NAME]}",] = None
            pieces[f"{bracket}/{name[:_SHORTEST_END]}", _NAME_ENDS] = None
            if name[0].isalpha() and bracket == "<":
                pieces[f"/{name}",] = None
    return list(pieces)


def _join_literals(phrases: Iterable[Phrase]) -> list[str]:
    return sorted({"".join(part for part in phrase if isinstance(part, str)) for phrase in phrases})


def find_strays(tags: Tags | None) -> StrayFinder:
    """The finder for a `tags=` argument."""
    return _make_default_finder() if tags is None else _make_finder(find_rules(tags).grammars)


@cache
def _make_default_finder() -> StrayFinder:
    return StrayFinder(find_rules(None).grammars, tuple(GRAMMARS[name] for name in (*RARE_TAGS, *EXPORTED_TAGS)))


@lru_cache(maxsize=16)
def _make_finder(grammars: tuple[Grammar, ...]) -> StrayFinder:
    return StrayFinder(grammars)
