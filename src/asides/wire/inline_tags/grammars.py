"""The grammars in which models write thinking into their text, one row each, and the matchers made from them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, IntEnum, auto
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import msgspec

# The longest run of attributes, blanks or header words inside one tag. Without a limit, text that only looks like the
# beginning of a tag would be held for ever.
_MOST_ATTRIBUTES = 200
_MOST_BLANKS = 8
_MOST_HEADER = 96


class Unit(NamedTuple):
    """A character class inside a tag: exactly one character, or between none and `most` of them."""

    chars: str
    most: int = 0

    @property
    def pattern(self) -> str:
        """The unit as a regular expression."""
        return f"{self.chars}{{0,{self.most}}}" if self.most else self.chars


Phrase: TypeAlias = tuple[str | Unit, ...]


class Role(Enum):
    """The effect of a tag."""

    OPEN = auto()
    CLOSE = auto()
    HEADER = auto()
    """Opens a message; its words decide between thinking, answer and tool call (`read_channel`)."""
    CONTROL = auto()
    """Has no content; removed from the answer of a reply that is written in this grammar."""
    ORPHAN = auto()
    """A close that counts although nothing was opened (`starts_inside="auto"`)."""


class Grammar(msgspec.Struct, frozen=True, eq=False):
    """The tags that set thinking apart inside text. Every phrase has a limited length."""

    name: str
    open: tuple[Phrase, ...] = ()
    close: tuple[Phrase, ...] = ()
    header: tuple[Phrase, ...] = ()
    control: tuple[Phrase, ...] = ()
    orphan: tuple[Phrase, ...] | None = None
    """None: a close is also an orphan close."""
    nests: bool = True
    may_close_itself: bool = False
    """`<think/>` is an empty block."""
    exact_case: bool = False

    def phrases(self, role: Role) -> tuple[Phrase, ...]:
        """Return the written forms of a tag of this role."""
        match role:
            case Role.OPEN:
                return self.open
            case Role.CLOSE:
                return self.close
            case Role.HEADER:
                return self.header
            case Role.CONTROL:
                return self.control
            case Role.ORPHAN:
                return self.close if self.orphan is None else self.orphan

    def closes_itself(self, tag: str) -> bool:
        """Whether an opening tag, as written, is a complete block."""
        return self.may_close_itself and tag[:-1].rstrip().endswith("/")


_BLANKS = Unit(r"\s", _MOST_BLANKS)
_WORDS = Unit(r"[^<]", _MOST_HEADER)


def _make_angle_tags(name: str) -> Grammar:
    """`<name>`, `< Name >`, `<name key="value">` … `</name>`; a backtick ends no attribute, so that code stays code."""
    return Grammar(
        name,
        open=(
            ("<", _BLANKS, name, _BLANKS, ">"),
            ("<", _BLANKS, name, Unit(r"[\s/]"), Unit(r"[^<>`]", _MOST_ATTRIBUTES), ">"),
        ),
        close=(("<", _BLANKS, "/", _BLANKS, name, _BLANKS, ">"),),
        may_close_itself=True,
    )


def _make_pair(opening: str, closing: str, name: str = "", *, exact_case: bool = False) -> Grammar:
    return Grammar(
        name or opening,
        open=((opening,),),
        close=((closing,),),
        nests=opening.casefold() != closing.casefold(),
        exact_case=exact_case,
    )


_HARMONY = Grammar(
    "harmony",
    close=(("<|end|>",), ("<|return|>",), ("<|call|>",)),
    header=tuple(
        (*start, *channel, *constrain, "<|message|>")
        for start in ((), ("<|start|>assistant", _WORDS))
        for channel in ((), ("<|channel|>", _WORDS))
        for constrain in ((), ("<|constrain|>", _WORDS))
        if channel or (start and not constrain)
    ),
    # <|call|> stays: it ends a tool call, which stays complete for the parser of tool text.
    control=(("<|end|>",), ("<|return|>",)),
    # Prose that quotes <|end|> is no thought; only the start of the next message shows that one came before.
    orphan=(("<|end|><|start|>assistant",),),
    nests=False,
)

_KIMI_K3 = Grammar(
    "kimi-k3",
    open=(("<|open|>think<|sep|>",),),
    # Some servers omit the closing tag (sglang#32567): the opening of the response ends the thinking too.
    close=(("<|close|>think<|sep|>",), ("<|open|>response<|sep|>",)),
    control=(("<|open|>response<|sep|>",), ("<|close|>response<|sep|>",)),
)

_COMMAND = Grammar(
    "command",
    open=(("<|START_THINKING|>",),),
    close=(("<|END_THINKING|>",),),
    control=(("<|START_RESPONSE|>",), ("<|END_RESPONSE|>",), ("<|START_TEXT|>",), ("<|END_TEXT|>",)),
)

_GRANITE = Grammar(
    "granite",
    open=(("Here is my thought process:",), ("Here's my thought process:",)),
    close=(("Here is my response:",), ("Here's my response:",)),
)

_DEFAULT = (
    _make_angle_tags("think"),
    _make_angle_tags("thinking"),
    _make_angle_tags("thought"),
    _make_angle_tags("reasoning"),
    _make_angle_tags("analysis"),
    # Exact case: `[Think](https://…)` is a link.
    _make_pair("[THINK]", "[/THINK]", "[think]", exact_case=True),
    _HARMONY,
    _make_pair("<|channel>thought", "<channel|>", "gemma"),
    msgspec.structs.replace(_make_angle_tags("seed:think"), name="seed"),
    msgspec.structs.replace(_make_angle_tags("mm:think"), name="mm"),
    _make_pair("◁think▷", "◁/think▷", "kimi"),
)

_ON_REQUEST = (
    _make_angle_tags("reason"),
    _KIMI_K3,
    _COMMAND,
    _GRANITE,
    _make_pair("<|inner_prefix|>", "<|inner_suffix|>", "apertus"),
    _make_pair("<|begin_of_thought|>", "<|end_of_thought|>", "begin-of-thought"),
)

GRAMMARS: Mapping[str, Grammar] = MappingProxyType({grammar.name: grammar for grammar in (*_DEFAULT, *_ON_REQUEST)})
"""Every grammar with a name; `tags=` takes these names."""

DEFAULT_TAGS: tuple[str, ...] = tuple(grammar.name for grammar in _DEFAULT)
"""The tags for `tags=None`."""

Tags: TypeAlias = Sequence[str | tuple[str, str]]


class Channel(IntEnum):
    """The kind of text that a message holds."""

    ANSWER = 0
    THINKING = 1
    COMMENTARY = 2
    """What the model says aloud on the way to its answer."""
    TOOL = 3
    """A call in text. It stays in the answer, for a parser of such calls."""


def read_channel(header: str) -> Channel:
    """Return the kind of text after a harmony header. An unknown channel is thinking: a leak would be worse."""
    head = header.casefold()
    name = head.partition("<|channel|>")[2].partition("<|")[0].split()
    if name and name[0] not in ("final", "commentary"):
        return Channel.THINKING
    if "to=" in head:
        return Channel.TOOL
    return Channel.COMMENTARY if name and name[0] == "commentary" else Channel.ANSWER


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
        self._table = (None, *(tag for _, tag in rows))
        firsts = {part[0] for part in (phrase[0] for phrase, _ in rows) if isinstance(part, str)}
        self.firsts = "".join(sorted({case for first in firsts for case in (first.lower(), first.upper())}))
        """The characters that may begin a tag."""
        self.trigger: Find = re.compile(
            f"[{re.escape(''.join(sorted(firsts)))}]" if firsts else "(?!)", re.IGNORECASE
        ).search

    @cached_property
    def whole(self) -> Find:
        """Matches a tag."""
        return self._compile("(?!)")

    @cached_property
    def growing(self) -> Find:
        """Matches a tag, or a beginning of one that reaches to the end of the text."""
        # Incomplete tags go first, for the same reason as the longest.
        alternatives = [
            f"({flag}:{_match_beginnings(phrases)})"
            for flag, exact in (("?i", False), ("?", True))
            if (phrases := [_split_units(phrase) for phrase, tag in self._rows if tag.grammar.exact_case is exact])
        ]
        return self._compile(f"(?:{'|'.join(alternatives)})\\Z" if alternatives else "(?!)")

    def _compile(self, growing: str) -> Find:
        groups = [f"({growing})"]
        for phrase, tag in self._rows:
            flag = "?" if tag.grammar.exact_case else "?i"
            groups.append(f"(({flag}:{''.join(map(_make_pattern, phrase))}))")
        return re.compile("|".join(groups)).match

    def find_tag(self, found: re.Match[str]) -> Tag | None:
        """Return the tag that was matched; None when only more text can decide."""
        return self._table[(found.lastindex or 1) - 1]


def _split_units(phrase: Phrase) -> list[str | Unit]:
    units: list[str | Unit] = []
    for part in phrase:
        units += part if isinstance(part, str) else [part]
    return units


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

    def _make_matcher(self, *roles: Role) -> Matcher:
        return Matcher((grammar, role) for grammar in self.grammars for role in roles)

    @cached_property
    def opens(self) -> Matcher:
        """Finds tags that begin a thinking block."""
        return self._make_matcher(Role.OPEN, Role.HEADER)

    @cached_property
    def opens_and_controls(self) -> Matcher:
        """Finds the same tags in a reply with control tokens."""
        return self._make_matcher(Role.OPEN, Role.HEADER, Role.CONTROL)

    @cached_property
    def controls(self) -> Matcher:
        """Finds the tags that stay live when others do not: those between the messages of a reply."""
        return self._make_matcher(Role.HEADER, Role.CONTROL)

    @cached_property
    def orphans(self) -> Matcher:
        """Finds tags that show whether a text began inside a block."""
        return self._make_matcher(Role.OPEN, Role.HEADER, Role.ORPHAN)

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
            roles = (Role.CLOSE, Role.HEADER, *((Role.OPEN,) if grammar.nests else ()))
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
    return _make_pair(tag[0].strip(), tag[1].strip())
