"""Thinking inside text, `<think>…</think>` and its relatives, set apart from the answer: whole texts and streams alike.
Not here: who sends which tags (the provider's row); `tag_grammars` has the grammars, `tag_splitter` the machine.

Theory of operation
-------------------
The result is a function of the whole text and the settings. A stream gets the same result early: what is certain is
passed on, what the next characters may still change is held. There are six states:

    ORPHAN   `starts_inside="auto"`: all is held until the first tag outside code says how the text began
    HEAD     before the answer: blanks are held, a tag opens a leading block, any other character begins the answer
    THINK    in a block
    NEST     in a block in which a second one seems to open: all is held until that is decided
    TEXT     in the answer, tags still live
    DEAD     in the answer, tags no longer live: text goes straight through

*Nesting.* An inner opening tag may open a nested block, or the thought may merely mention it; one closing tag cannot
tell. From the inner opening tag on, tags of that grammar are counted. Where the count reaches zero, the block ends;
the inner tags were tags, and what they enclose are blocks of their own. Where the text ends first, the inner opening
tag was a mention: the block ended at its *first* closing tag, the mention stays in the thought, and what follows is
read again as answer. So `<think>a<think>b</think>c</think>d` gives "d", and `<think>use <think> tags</think>Answer`
gives "Answer"; the price is that this rare reply is held to its end. Behind that first closing tag, code protects tags
as in any answer. After a few such readings (`_MOST_MENTIONS`) the first closing tag ends each block: time stays linear.

*Code.* A tag in a fence (``` or ~~~ at the beginning of a line, to its closing line or the end), or between two equal
runs of backticks in one line, is the author's. A backtick that its line does not close is no code, so a tag behind it
is held until the line tells. Inside a block nothing is code: a closing tag always counts. For an orphan close, a fence
that never ends protects nothing, since the fence may be part of the thought.

*Blanks.* Those before and directly behind a leading block go with it, and a block of blanks is no block; nothing else
is touched.

*Fragments.* A block directly behind another one of the same grammar that begins with a space goes on in its text, and
so do those directly behind it: a server that closes its tag after every chunk. Others are blocks of their own.

*Harmony.* A reply that begins with a harmony header is harmony to its end, in every position: analysis, and any channel
nobody knows, is thinking; final and commentary are answer, each message a segment of its own. Control tokens go, also
a header that the end cuts off. A header with a recipient (`to=functions.x`) and its body stay in the answer untouched,
`<|call|>` included, for whoever reads tool calls from text.
"""

from __future__ import annotations

import msgspec

from asides.values.events import TextDelta, ThinkingDelta
from asides.values.thinking import join_thoughts
from asides.wire.inline_tags.grammars import DEFAULT_TAGS, GRAMMARS, Tags, rules_for
from asides.wire.inline_tags.splitter import Piece, Position, Splitter, StartsInside

__all__ = [
    "DEFAULT_TAGS",
    "GRAMMARS",
    "Piece",
    "Position",
    "Separated",
    "Separator",
    "Splitter",
    "StartsInside",
    "Tags",
    "may_hold_tags",
    "separate",
    "strip_tags",
]


class Separated(msgspec.Struct, frozen=True):
    """A text taken apart: the answer, and the thinking that was inside it."""

    text: str
    thinking: str | None
    truncated: bool = False
    """The text ended inside a thinking block."""

    def __repr__(self) -> str:
        thinking = "None" if self.thinking is None else f"<{len(self.thinking)} characters>"
        return f"Separated(text={self.text!r}, thinking={thinking}, truncated={self.truncated})"


def may_hold_tags(text: str, tags: Tags | None = None) -> bool:
    """Whether there is any character in the text that could begin a tag: a glance, for texts that are whole."""
    return any(first in text for first in rules_for(tags).orphans.firsts)


def separate(
    text: str | None, tags: Tags | None = None, position: Position = "auto", starts_inside: StartsInside = "auto"
) -> Separated:
    """Take a whole text apart, exactly as a `Separator` with the same settings does in any chunking."""
    splitter = Splitter(tags, position, starts_inside)
    pieces = splitter.feed(text or "") + splitter.finish()
    thoughts: dict[int, list[str]] = {}
    answer: list[str] = []
    for segment, is_thinking, piece in pieces:
        if is_thinking:
            thoughts.setdefault(segment, []).append(piece)
        else:
            answer.append(piece)
    thinking = join_thoughts(["".join(parts) for parts in thoughts.values()])
    return Separated("".join(answer), thinking, splitter.truncated)


class Separator:
    """Takes a stream of text apart: `feed` each piece, `finish` once; both return the events certain by then."""

    def __init__(
        self, tags: Tags | None = None, position: Position = "auto", starts_inside: StartsInside = "auto"
    ) -> None:
        self._splitter = Splitter(tags, position, starts_inside)

    def feed(self, text: str) -> list[ThinkingDelta | TextDelta]:
        """Take the next text; return every event that it completes. Any chunking gives the same blocks."""
        return [_event(piece) for piece in self._splitter.feed(text)]

    def finish(self) -> list[ThinkingDelta | TextDelta]:
        """The text is complete: return the events that were held."""
        return [_event(piece) for piece in self._splitter.finish()]

    @property
    def truncated(self) -> bool:
        """After `finish`: the text ended inside a thinking block."""
        return self._splitter.truncated


def _event(piece: Piece) -> ThinkingDelta | TextDelta:
    block, is_thinking, text = piece
    if is_thinking:
        return ThinkingDelta(text, block, kind="raw", source="tags")
    return TextDelta(text, block)


def strip_tags(text: str) -> str:
    """A text without the thinking in front of it, for text that must parse: tool arguments, structured output."""
    return separate(text, position="leading", starts_inside=False).text
