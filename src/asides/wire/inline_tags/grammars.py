"""The matchers that find the tags of a set of grammars."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeAlias

from asides.wire.inline_tags.grammar import Channel, Grammar, Phrase, Role, Unit, make_pair, read_channel
from asides.wire.inline_tags.grammar_table import DEFAULT_TAGS, GRAMMARS

__all__ = [
    "DEFAULT_TAGS",
    "GRAMMARS",
    "Channel",
    "Find",
    "Grammar",
    "Matcher",
    "Role",
    "Rules",
    "Tag",
    "Tags",
    "find_rules",
    "read_channel",
]

Tags: TypeAlias = Sequence[str | tuple[str, str]]


class Tag(NamedTuple):
    """The tag that a match found."""

    role: Role
    grammar: Grammar


Find: TypeAlias = Callable[..., re.Match[str] | None]


class Matcher:
    """Finds the tags of some roles. `trigger` searches for a character that may begin one. `whole` and `growing` match
    at that character; `growing` also matches an incomplete tag, for which `find_tag` returns None."""

    def __init__(self, roles: Iterable[tuple[Grammar, Role]]) -> None:
        rows = [(phrase, Tag(role, grammar)) for grammar, role in roles for phrase in grammar.phrases(role)]
        # The longest first: where two tags match, the longer one counts.
        rows.sort(key=lambda row: -sum(len(part) for part in row[0] if isinstance(part, str)))
        self._rows = rows
        self._tags = {f"_{place}": tag for place, (_, tag) in enumerate(rows)}
        firsts = {part[0] for part in (phrase[0] for phrase, _ in rows) if isinstance(part, str)}
        self.firsts = "".join(sorted({case for first in firsts for case in (first.lower(), first.upper())}))
        """The characters that may begin a tag."""
        self.marks = None if any(first.isalpha() for first in firsts) else tuple(sorted(firsts))
        """The same, if letters are not among them: `str.find` then finds what `trigger` does, and faster."""
        self.trigger: Find = re.compile(
            f"[{re.escape(''.join(sorted(firsts)))}]" if firsts else "(?!)", re.IGNORECASE
        ).search

    @cached_property
    def whole(self) -> Find:
        """Matches a tag."""
        return self._dispatch(is_growing=False)

    @cached_property
    def growing(self) -> Find:
        """Matches a tag, or a beginning of one that reaches to the end of the text."""
        return self._dispatch(is_growing=True)

    def _dispatch(self, *, is_growing: bool) -> Find:
        """Return the match among the tags that may begin with the next two characters: one for all is slow."""
        by_head: dict[str, Find] = {}
        by_rows: dict[tuple[int, ...], Find] = {}

        def find(text: str, place: int = 0) -> re.Match[str] | None:
            head = text[place : place + 2]
            match = by_head.get(head)
            if match is None:
                rows = tuple(number for number, (phrase, _) in enumerate(self._rows) if _may_begin(phrase, head))
                match = by_rows.get(rows)
                if match is None:
                    match = by_rows[rows] = self._compile(rows, is_growing=is_growing)
                if len(by_head) < _MAX_HEADS:
                    by_head[head] = match
            return match(text, place)

        return find

    def _compile(self, numbers: tuple[int, ...], *, is_growing: bool) -> Find:
        rows = [(number, *self._rows[number]) for number in numbers]
        # Incomplete tags go first, for the same reason as the longest.
        beginnings = [
            f"({flag}:{_match_beginnings(phrases)})"
            for flag, exact in (("?i", False), ("?", True))
            if is_growing
            and (phrases := [_split_units(phrase) for _, phrase, tag in rows if tag.grammar.exact_case is exact])
        ]
        groups = [f"(?:{'|'.join(beginnings)})\\Z"] if beginnings else []
        for number, phrase, tag in rows:
            flag = "?" if tag.grammar.exact_case else "?i"
            groups.append(f"(?P<_{number}>({flag}:{''.join(map(_make_pattern, phrase))}))")
        return re.compile("|".join(groups) or "(?!)").match

    @cached_property
    def _heads(self) -> tuple[_Head, ...] | None:
        """How tags begin, by their first character; None if a letter begins one."""
        heads: dict[str, tuple[set[str], set[str]]] = {}
        for phrase, _ in self._rows:
            head, has_blanks = _cut_head(phrase)
            if head[:1].isalpha() or not head:
                return None
            heads.setdefault(head[0], (set(), set()))[has_blanks].add(head[1:].removeprefix("/")[:_CLEAR_HEAD])
        return tuple(_make_head(first, *names) for first, names in heads.items())

    def may_hold(self, text: str) -> bool:
        """Whether a text has the first characters of a tag: quicker than looking for tags."""
        if self._heads is None:
            return True
        for first, seconds, match in self._heads:
            if first not in text:
                continue
            for rest in text.split(first)[1:]:
                second = rest[:1]
                if second.isspace():
                    second = rest.lstrip()[:1]
                if (second in seconds or not second.isascii()) and match(rest) is not None:
                    return True
        return False

    def find_tag(self, found: re.Match[str]) -> Tag | None:
        """Return the tag that was matched; None when only more text can decide."""
        return None if found.lastgroup is None else self._tags[found.lastgroup]


# Bounds the memory of texts with any characters behind those that may begin a tag.
_MAX_HEADS = 500


def _may_begin(phrase: Sequence[str | Unit], head: str) -> bool:
    """Whether a tag of this phrase may begin with these characters; True where that is not certain."""
    if not head or not phrase:
        return True
    part, rest = phrase[0], phrase[1:]
    if isinstance(part, str):
        # Among the cases of a letter are some outside of ASCII.
        same = part[0].casefold() == head[0].casefold() or not (part[0] + head[0]).isascii()
        return same and _may_begin((part[1:], *rest) if part[1:] else rest, head[1:])
    fits = re.match(part.chars, head[0], re.IGNORECASE) is not None
    if part.most:
        return _may_begin(rest, head) or (fits and _may_begin(phrase, head[1:]))
    return fits and _may_begin(rest, head[1:])


def _split_units(phrase: Phrase) -> list[str | Unit]:
    units: list[str | Unit] = []
    for part in phrase:
        units += part if isinstance(part, str) else [part]
    return units


# A prefix of a tag's name this long is rare in other text.
_CLEAR_HEAD = 3


def _cut_head(phrase: Phrase) -> tuple[str, bool]:
    """The characters that a phrase begins with, and whether there may be blanks between the first of them."""
    head, has_blanks = "", False
    for part in phrase:
        if isinstance(part, str):
            head += part
        elif part.chars != r"\s":
            break
        else:
            has_blanks |= len(head) <= _CLEAR_HEAD
    return head, has_blanks


class _Head(NamedTuple):
    """How tags begin."""

    first: str
    seconds: str
    """The characters of ASCII that may come next, behind blanks."""
    match: Find
    """Matches what comes next."""


def _make_head(first: str, names: set[str], spaced: set[str]) -> _Head:
    """The beginning of tags with these names; blanks are allowed in the `spaced` ones."""
    seconds = {case for name in (*names, *spaced) for case in (name[0].lower(), name[0].upper())}
    plain, blank = ("|".join(map(re.escape, sorted(each))) or "(?!)" for each in (names, spaced))
    match = re.compile(rf"/?(?:{plain})|\s*+/?\s*+(?:{blank})", re.IGNORECASE).match
    return _Head(first, "".join(sorted({*seconds, "/"})), match)


def _make_pattern(part: str | Unit) -> str:
    return re.escape(part) if isinstance(part, str) else part.pattern


def _match_beginnings(phrases: Iterable[Sequence[str | Unit]]) -> str:
    """Return a pattern for exactly the texts that one or more further characters make a phrase.

    It is a tree of common beginnings, since one alternative per phrase takes long to compile.
    """
    tree: dict[str | Unit, list[Sequence[str | Unit]]] = {}
    for first, *rest in phrases:
        if rest:
            tree.setdefault(first, []).append(rest)
    return "|".join(_match_branch(unit, rests) for unit, rests in tree.items())


def _match_branch(unit: str | Unit, rests: Iterable[Sequence[str | Unit]]) -> str:
    following = _match_beginnings(rests)
    return _make_pattern(unit) + (f"(?:{following})?" if following else "")


class Rules:
    """The matchers of one set of grammars, compiled when first used: most replies need two of them."""

    def __init__(self, grammars: tuple[Grammar, ...]) -> None:
        self.grammars = grammars
        self._within: dict[Grammar, Matcher] = {}
        self._written: dict[tuple[str, Grammar], Matcher] = {}

    def _make_matcher(self, *roles: Role) -> Matcher:
        return Matcher((grammar, role) for grammar in self.grammars for role in roles)

    @cached_property
    def opens(self) -> Matcher:
        """Finds tags that begin a thinking block."""
        return self._make_matcher(Role.OPEN, Role.HEADER)

    @cached_property
    def heads(self) -> Matcher:
        """Finds the tags that count before the answer."""
        return self._make_matcher(Role.OPEN, Role.HEADER, Role.FIRST)

    def first_phrases(self) -> tuple[Phrase, ...]:
        """Return the written forms of the headers that count only before the answer."""
        return tuple(phrase for grammar in self.grammars for phrase in grammar.first)

    @cached_property
    def firsts(self) -> Matcher:
        """Finds the headers that count only before the answer."""
        return self._make_matcher(Role.FIRST)

    def heads_and_controls(self, grammar: Grammar) -> Matcher:
        """Return the matcher of the same tags in a reply that is written in a grammar with control tokens."""
        return self._make_written("heads", grammar, Role.OPEN, Role.HEADER, Role.FIRST)

    def opens_and_controls(self, grammar: Grammar) -> Matcher:
        """Return the matcher of tags that begin a thinking block, and of this grammar's control tokens."""
        return self._make_written("opens", grammar, Role.OPEN, Role.HEADER)

    def controls(self, grammar: Grammar) -> Matcher:
        """Return the matcher of the tags that stay live when others do not: those between the messages of a reply."""
        matcher = self._written.get(("controls", grammar))
        if matcher is None:
            roles = ((grammar, role) for role in (Role.HEADER, Role.CONTROL))
            matcher = self._written["controls", grammar] = Matcher(roles)
        return matcher

    def _make_written(self, name: str, grammar: Grammar, *roles: Role) -> Matcher:
        matcher = self._written.get((name, grammar))
        if matcher is None:
            rows = [(one, role) for one in self.grammars for role in roles]
            matcher = self._written[name, grammar] = Matcher([*rows, (grammar, Role.CONTROL)])
        return matcher

    @cached_property
    def heads_and_orphans(self) -> Matcher:
        """Finds the tags that count before the answer, where a lone closing tag may be one of them."""
        return self._make_matcher(Role.OPEN, Role.HEADER, Role.FIRST, Role.ORPHAN)

    @cached_property
    def orphans(self) -> Matcher:
        """Finds tags that show whether a text began inside a block."""
        return self._make_matcher(Role.OPEN, Role.ORPHAN, Role.HEADER)

    @cached_property
    def _within_any(self) -> Matcher:
        return Matcher(
            (grammar, role)
            for grammar in self.grammars
            for role in (Role.CLOSE, Role.HEADER, *((Role.OPEN,) if grammar.nests else ()))
        )

    def within(self, grammar: Grammar | None) -> Matcher:
        """Return the matcher of tags that end a block or begin one inside it. None: a block without an opening tag."""
        if grammar is None:
            return self._within_any
        matcher = self._within.get(grammar)
        if matcher is None:
            roles = (Role.CLOSE, Role.HEADER, Role.INNER, *((Role.OPEN,) if grammar.nests else ()))
            matcher = self._within[grammar] = Matcher((grammar, role) for role in roles)
        return matcher


def find_rules(tags: Tags | None) -> Rules:
    """Return the rules of a `tags=` argument: None for the default set, an empty sequence for none at all."""
    if tags is None:
        return _make_rules(DEFAULT_TAGS)
    if isinstance(tags, str):
        return _make_rules((tags,))
    if isinstance(tags, tuple) and not any(isinstance(tag, list) for tag in tags):
        return _make_rules_of_tuple(tags)
    return _make_rules(tuple(tag if isinstance(tag, str) else tuple(tag) for tag in tags))


@lru_cache(maxsize=64)
def _make_rules_of_tuple(tags: tuple[str | tuple[str, ...], ...]) -> Rules:
    """Return the rules of a tuple, which may also be a single pair."""
    if len(tags) == 2 and all(_is_literal_tag(tag) for tag in tags):
        return _make_rules(((str(tags[0]), str(tags[1])),))
    return _make_rules(tags)


def _is_literal_tag(tag: object) -> bool:
    """Whether this is a tag as written in the text, not the name of a grammar: two of them are a pair."""
    return isinstance(tag, str) and tag.strip().casefold() not in GRAMMARS and not tag.strip()[:1].isalnum()


@lru_cache(maxsize=64)
def _make_rules(tags: tuple[str | tuple[str, ...], ...]) -> Rules:
    return Rules(tuple(_find_grammar(tag) for tag in tags))


def _find_grammar(tag: str | tuple[str, ...]) -> Grammar:
    if isinstance(tag, str):
        grammar = GRAMMARS.get(tag.strip().casefold())
        if grammar is None:
            raise ValueError(
                f"no tag grammar is called {tag!r}; known: {', '.join(GRAMMARS)}."
                ' For tags of your own give pairs: tags=[("<reason>", "</reason>")].'
            )
        return grammar
    if len(tag) != 2 or not (tag[0].strip() and tag[1].strip()):
        raise ValueError(f"a tag pair needs an opening and a closing text, both not blank; got {tag!r}")
    return make_pair(tag[0].strip(), tag[1].strip())
