"""Separates thinking inside text, `<think>…</think>` and its relatives, from the answer: whole texts and streams alike.

Theory of operation
-------------------
The result depends only on the whole text and the settings. A stream gets the same result early: certain text is passed
on, text that the next characters may still change is held. There are six states:

    ORPHAN   `starts_inside="auto"`: everything is held until the first tag outside code shows how the text began
    HEAD     before the answer: blanks are held, a tag opens a leading block, any other character begins the answer
    THINK    in a block
    NEST     in a block in which a second one seems to open: everything is held until that is decided
    TEXT     in the answer, tags still live
    DEAD     in the answer, tags no longer live: text goes straight through

*Nesting.* An inner opening tag may open a nested block, or the thought may only mention it; one closing tag does not
decide that. From the inner opening tag on, tags of that grammar are counted. If the count reaches zero, the block ends:
the inner tags were tags, and their contents are blocks. If the text ends first, the inner opening tag was a mention:
the block ended at its *first* closing tag, the mention stays in the thought, and the rest is read again as answer. So
`<think>a<think>b</think>c</think>d` gives "d", and `<think>use <think> tags</think>Answer` gives "Answer". The price:
such a reply, which is rare, is held to its end. After that first closing tag, code protects tags as in any answer.
After a few mentions (`_MAX_MENTIONS`) the first closing tag ends each block, so that time stays linear.

*Code.* A tag in a fence (``` or ~~~ at the beginning of a line, to its closing line or the end), or between two equal
runs of backticks in one line, is text. A backtick that its line does not close makes no code, so a tag after it is held
until the line decides. Inside a block nothing is code: a closing tag always counts. For an orphan close, a fence that
never ends protects nothing, since the fence may be part of the thought.

*Quotes.* An orphan close is also text between matching quotation marks of its line, in a string of JSON, between
`<code>` and `</code>` or `<pre>` and `</pre>`, and in indented code behind a blank line that follows no list. A mark
that its line does not match quotes nothing. It opens behind a blank or an opening bracket, and never closes before a
word.

*Blanks.* Blanks before and directly after a leading block are removed with it. A block of blanks does not count as a
block. All other blanks stay.

*Fragments.* Some servers close their tag after every chunk. So a block directly after another one of the same grammar
that begins with a space continues its text, and so do those directly after it. Others are separate blocks.

*Harmony.* A reply that begins with a harmony header is harmony to its end, in every position. Analysis and unknown
channels are thinking, commentary is commentary, final is answer; each message is a separate segment. Control tokens are
removed, and so is a header that the end cuts off. A header with a recipient (`to=functions.x`) and its body stay in the
answer unchanged, including `<|call|>`, for a parser of tool calls in text. The other grammars with headers (Muse
Glimmer, Inkling, Solar Open) work alike. Some templates write the beginning of the first header; what is left of it
counts only before the answer (`Role.FIRST`). Control tokens count only in a reply that is written in their own grammar.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from asides.values.events import CommentaryDelta, TextDelta, ThinkingDelta
from asides.values.parts import join_commentary
from asides.values.thinking import join_thoughts
from asides.wire.inline_tags.grammars import DEFAULT_TAGS, GRAMMARS, Channel, Find, Tags, find_rules
from asides.wire.inline_tags.scanner import SOLID
from asides.wire.inline_tags.splitter import Piece, Position, Splitter, StartsInside

__all__ = [
    "DEFAULT_TAGS",
    "GRAMMARS",
    "Channel",
    "Piece",
    "Position",
    "Separated",
    "Separator",
    "Splitter",
    "StartsInside",
    "Tags",
    "begins_answer",
    "join_pieces",
    "may_hold_tags",
    "separate",
    "separate_with",
    "strip_tags",
]


class Separated(msgspec.Struct, frozen=True):
    """A separated text: the answer, and the thinking and the commentary that were inside it."""

    text: str
    thinking: str | None
    truncated: bool = False
    """The text ended inside a thinking block."""
    commentary: str = ""
    """What the model said on the way to its answer."""

    def __repr__(self) -> str:
        thinking = "None" if self.thinking is None else f"<{len(self.thinking)} characters>"
        commentary = f", commentary={self.commentary!r}" if self.commentary else ""
        return f"Separated(text={self.text!r}, thinking={thinking}, truncated={self.truncated}{commentary})"


def begins_answer(text: str, tags: tuple[str | tuple[str, str], ...]) -> bool:
    """Whether a text begins with its answer for certain: with neither a blank nor a character that may open a block.

    From there on a splitter changes nothing, unless its position is "anywhere" or the text may begin inside a block.
    """
    first = text[:1]
    return SOLID.match(first) is not None and _find_opening(tags)(first) is None


def may_hold_tags(text: str, tags: tuple[str | tuple[str, str], ...]) -> bool:
    """Whether any character of a whole text could begin a tag; a quick check."""
    return any(mark in text for mark in _find_marks(tags))


@lru_cache(maxsize=64)
def _find_opening(tags: tuple[str | tuple[str, str], ...]) -> Find:
    """Return the search for a character that may open a block."""
    return find_rules(tags).heads.trigger


@lru_cache(maxsize=64)
def _find_marks(tags: tuple[str | tuple[str, str], ...]) -> str:
    """Return the characters that any tag of these grammars begins with."""
    rules = find_rules(tags)
    marks = rules.orphans.firsts
    # Most headers hold the first character of another tag anyway; a common letter would make the check useless.
    literals = ["".join(part for part in phrase if isinstance(part, str)) for phrase in rules.first_phrases()]
    return marks + "".join(text[0] for text in literals if not any(mark in text for mark in marks))


def separate(
    text: str | None, tags: Tags | None = None, position: Position = "auto", starts_inside: StartsInside = "auto"
) -> Separated:
    """Separate a whole text, exactly as a `Separator` with the same settings does in any chunking."""
    return separate_with(Splitter(tags, position, starts_inside), text or "")


def separate_with(splitter: Splitter, text: str) -> Separated:
    """Separate a whole text with a new splitter, which then says more about it: its grammar, for example."""
    return join_pieces(splitter.feed(text) + splitter.finish(), truncated=splitter.truncated)


def join_pieces(pieces: Iterable[Piece], *, truncated: bool = False) -> Separated:
    """Join all pieces of a text."""
    thoughts: dict[int, list[str]] = {}
    commentary: dict[int, list[str]] = {}
    answer: list[str] = []
    for segment, channel, piece in pieces:
        if channel is Channel.ANSWER:
            answer.append(piece)
        else:
            blocks = thoughts if channel is Channel.THINKING else commentary
            blocks.setdefault(segment, []).append(piece)
    thinking = join_thoughts(["".join(parts) for parts in thoughts.values()])
    said = join_commentary("".join(parts) for parts in commentary.values())
    return Separated("".join(answer), thinking, truncated, said)


class Separator:
    """Separates a stream of text: `feed` each piece, `finish` once; both return the events that are certain by then."""

    def __init__(
        self, tags: Tags | None = None, position: Position = "auto", starts_inside: StartsInside = "auto"
    ) -> None:
        self._splitter = Splitter(tags, position, starts_inside)

    def feed(self, text: str) -> list[ThinkingDelta | CommentaryDelta | TextDelta]:
        """Add text; return every event that it completes. Any chunking gives the same blocks."""
        return [_make_event(piece) for piece in self._splitter.feed(text)]

    def finish(self) -> list[ThinkingDelta | CommentaryDelta | TextDelta]:
        """Return the events that were held: the text is complete."""
        return [_make_event(piece) for piece in self._splitter.finish()]

    @property
    def truncated(self) -> bool:
        """After `finish`: the text ended inside a thinking block."""
        return self._splitter.truncated


def _make_event(piece: Piece) -> ThinkingDelta | CommentaryDelta | TextDelta:
    block, channel, text = piece
    if channel is Channel.THINKING:
        return ThinkingDelta(text, block, kind="raw", source="tags")
    return CommentaryDelta(text, block) if channel is Channel.COMMENTARY else TextDelta(text, block)


def strip_tags(text: str) -> str:
    """Remove the thinking at the beginning, for text that must parse: tool arguments, structured output."""
    return separate(text, position="leading", starts_inside=False).text
