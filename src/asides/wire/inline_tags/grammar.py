"""A grammar: the tags in which a model writes thinking into its text, and how each of them may be written."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum, IntEnum, auto
from typing import NamedTuple, TypeAlias

import msgspec

# The longest run of attributes, blanks or header words inside one tag. Without a limit, text that only looks like the
# beginning of a tag would be held endlessly.
MAX_ATTRIBUTES = 200
MAX_BLANKS = 8
MAX_HEADER = 96


class Unit(NamedTuple):
    """A character class inside a tag: exactly one character, or between none and `most` of them."""

    chars: str
    most: int = 0

    @property
    def pattern(self) -> str:
        """The unit as a regular expression."""
        return f"{self.chars}{{0,{self.most}}}" if self.most else self.chars


Phrase: TypeAlias = tuple[str | Unit, ...]
"""One written form of a tag. It ends with a literal, so that its end does not depend on the chunking."""


class Role(Enum):
    """The effect of a tag."""

    OPEN = auto()
    CLOSE = auto()
    HEADER = auto()
    """Opens a message; its words decide between thinking, answer and tool call (`Grammar.read`)."""
    FIRST = auto()
    """A header that counts only before the answer: at the start of the text and directly after a leading block."""
    INNER = auto()
    """A header that counts inside a thinking block of its grammar too, and ends it: the model left out the end."""
    CONTROL = auto()
    """Has no content; removed from the answer of a reply that is written in this grammar."""
    ORPHAN = auto()
    """A close that counts although nothing was opened (`starts_inside="auto"`)."""


class Channel(IntEnum):
    """The kind of text that a message holds."""

    ANSWER = 0
    THINKING = 1
    COMMENTARY = 2
    """What the model says aloud on the way to its answer."""
    TOOL = 3
    """A call in text. It stays in the answer, for a parser of such calls."""
    MOVED = 4
    """Text that was passed on as the answer and was thinking (`Splitter(late=True)`). No message is marked so."""


def read_channel(header: str) -> Channel:
    """Return the kind of text after a harmony header. An unknown channel is thinking: a leak would be worse."""
    head = header.casefold()
    name = head.partition("<|channel|>")[2].partition("<|")[0].split()
    if name and name[0] not in ("final", "commentary"):
        return Channel.THINKING
    if "to=" in head:
        return Channel.TOOL
    return Channel.COMMENTARY if name and name[0] == "commentary" else Channel.ANSWER


_RECIPIENT = re.compile(r"to=([\w.-]*)")


def read_bare_channel(header: str) -> Channel:
    """Return the kind of text after the name of a channel whose tokens were removed."""
    name = header.casefold().removeprefix("assistant")
    if name.startswith("final"):
        return Channel.ANSWER
    return Channel.COMMENTARY if name.startswith("commentary") else Channel.THINKING


def read_recipient(header: str) -> Channel:
    """Return the kind of text after a header that names its recipient: the model itself, the user, or a tool."""
    found = _RECIPIENT.search(header.casefold())
    if found is None or found[1] == "user":
        return Channel.ANSWER
    return Channel.THINKING if found[1] == "self" else Channel.TOOL


def read_content_kind(header: str) -> Channel:
    """Return the kind of text after a header whose last token names it."""
    kind = header.casefold().rpartition("<|")[2]
    if "think" in kind:
        return Channel.THINKING
    return Channel.TOOL if "tool" in kind else Channel.ANSWER


def read_as_answer(_: str) -> Channel:
    """Return the answer: the only kind of message that this grammar marks."""
    return Channel.ANSWER


def read_as_thinking(_: str) -> Channel:
    """Return thinking: the only kind of message that this grammar marks."""
    return Channel.THINKING


class Grammar(msgspec.Struct, frozen=True, eq=False):
    """The tags that mark thinking inside text. Every phrase has a limited length."""

    name: str
    open: tuple[Phrase, ...] = ()
    close: tuple[Phrase, ...] = ()
    header: tuple[Phrase, ...] = ()
    first: tuple[Phrase, ...] = ()
    inner: tuple[Phrase, ...] = ()
    control: tuple[Phrase, ...] = ()
    orphan: tuple[Phrase, ...] | None = None
    """None: a close is also an orphan close."""
    read: Callable[[str], Channel] = read_channel
    """Returns the kind of text after a header."""
    nests: bool = True
    may_close_itself: bool = False
    """`<think/>` is an empty block."""
    exact_case: bool = False
    models: tuple[str, ...] = ()
    """The models that write it, by the names of their makers; () for the pair of a caller."""
    since: str = ""
    source: str = ""

    def phrases(self, role: Role) -> tuple[Phrase, ...]:
        """Return the written forms of a tag of this role."""
        match role:
            case Role.OPEN:
                return self.open
            case Role.CLOSE:
                return self.close
            case Role.HEADER:
                return self.header
            case Role.FIRST:
                return self.first
            case Role.INNER:
                return self.inner
            case Role.CONTROL:
                return self.control
            case Role.ORPHAN:
                return self.close if self.orphan is None else self.orphan

    def closes_itself(self, tag: str) -> bool:
        """Whether an opening tag, as written, is a complete block."""
        return self.may_close_itself and tag[:-1].rstrip().endswith("/")


_BLANKS = Unit(r"\s", MAX_BLANKS)


def open_angle(name: str) -> tuple[Phrase, ...]:
    """`<name>`, `< Name >`, `<name key="value">`; a backtick ends no attribute, so that code stays code."""
    return (
        ("<", _BLANKS, name, _BLANKS, ">"),
        ("<", _BLANKS, name, Unit(r"[\s/]"), Unit(r"[^<>`]", MAX_ATTRIBUTES), ">"),
    )


def close_angle(name: str) -> tuple[Phrase, ...]:
    """`</name>`, also with blanks inside."""
    return (("<", _BLANKS, "/", _BLANKS, name, _BLANKS, ">"),)


def make_pair(opening: str, closing: str) -> Grammar:
    """Return the grammar of a caller's own pair of tags."""
    return Grammar(opening, open=((opening,),), close=((closing,),), nests=opening.casefold() != closing.casefold())
