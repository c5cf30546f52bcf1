"""Turns text of an answer that may hold thinking in tags into events: `TaggedText`, for every dialect.

Not here: how tags are found (wire/inline_tags), and which tags a provider uses (its row).
"""

from __future__ import annotations

from asides.providers.provider import Target
from asides.values.events import Event, TextDelta, ThinkingDelta
from asides.values.thinking import ThoughtKind
from asides.wire.inline_tags import Piece, Position, Splitter, StartsInside, may_hold_tags

SEGMENTS = 1_000
"""The distance between the first blocks of two texts: each text needs a block for every segment that tags make."""

# Segment numbers besides those of the splitter, which begin at 0.
_PLAIN = -1
_FRAGMENT = -2


class TaggedText:
    """One running text, split into blocks: the first is `block`, every further segment has the next number.

    `field_thinking` is the thinking that came in a separate field. The list may grow. A thought in tags that repeats it
    is dropped. A server that fills such a field has removed the tag that its template opened, so the text does not
    begin inside a tag. `first`: the reply begins with this text, so the text may begin inside a tag.
    """

    __slots__ = (
        "_field_thinking",
        "_fragmented",
        "_held",
        "_kind",
        "_position",
        "_segment",
        "_splitter",
        "_starts_inside",
        "_tags",
        "block",
        "first_text_block",
        "last_text_block",
        "part",
        "plain_block",
        "thinking",
    )

    def __init__(
        self,
        block: int,
        target: Target,
        kind: ThoughtKind = "raw",
        *,
        field_thinking: list[str] | None = None,
        first: bool = True,
    ) -> None:
        self.block = block
        """The block that the text has reached."""
        self.first_text_block: int | None = None
        """The block where the answer begins; None before it does."""
        self.last_text_block = block
        """The block that holds the end of the answer."""
        self.plain_block: int | None = None
        """The block where more text of `part` needs no splitting, so that hot paths need not call `feed`; else None."""
        self.thinking: list[str] = []
        """The thinking emitted from tags."""
        facts = target.facts
        self._tags = facts.tags
        self._position: Position = facts.tag_position
        self._starts_inside: StartsInside = facts.starts_inside if first else False
        self._fragmented = target.quirks.fragmented_tags
        self._kind: ThoughtKind = "raw" if kind == "hidden" else kind
        self._field_thinking: list[str] = [] if field_thinking is None else field_thinking
        self._splitter: Splitter | None = None
        self._held: list[str] = []
        self.part: object = None
        """The part of the message that the current block belongs to."""
        self._segment = 0  # the segment of that part

    @property
    def truncated(self) -> bool:
        """After `finish`: the text ended inside a thinking block."""
        return self._splitter is not None and self._splitter.truncated

    def feed(self, text: str, events: list[Event], part: int = 0) -> None:
        """Add text. `part` is its place in the message; another part is another block."""
        splitter = self._splitter
        if splitter is None:
            if self.plain_block is not None and part == self.part:
                if text:
                    events.append(TextDelta(text, self.plain_block))
                return
            if not self._tags:
                self._emit_plain(text, events, part)
                return
            starts_inside = False if self._field_thinking else self._starts_inside
            splitter = self._splitter = Splitter(self._tags, self._position, starts_inside)
        pieces = splitter.feed(text)
        if len(pieces) == 1:
            # The usual piece: more of the same answer.
            segment, is_thinking, piece = pieces[0]
            if not is_thinking and segment == self._segment and part == self.part:
                events.append(TextDelta(piece, self.block))
                return
        self._emit(pieces, events, part)

    def feed_whole(self, text: str, events: list[Event]) -> None:
        """Add a text that is all of the answer. A text without any character that begins a tag is not split."""
        if self._splitter is None and self._starts_inside is not True and not may_hold_tags(text, self._tags):
            self._emit_plain(text, events, 0)
        else:
            self.feed(text, events)

    def finish(self, events: list[Event], *, cut: bool = False, part: int = 0) -> None:
        """Emit the held text: no more comes. `cut`: the text broke off."""
        if self._splitter is not None:
            self._emit(self._splitter.finish(cut=cut), events, part)
            self._release_held(events)

    def open_block(self, part: object, events: list[Event]) -> int:
        """Return the block for a part between texts that is not text; the same part has the same block."""
        if part != self.part:
            self._begin_block(part, _PLAIN, events)
        return self.block

    def _emit_plain(self, text: str, events: list[Event], part: int) -> None:
        if part != self.part or self._segment != _PLAIN:
            self._begin_text(part, _PLAIN, events)
            self.plain_block = None if self._tags else self.block
        if text:
            events.append(TextDelta(text, self.block))

    def _emit(self, pieces: list[Piece], events: list[Event], part: int) -> None:
        for segment, is_thinking, text in pieces:
            if not is_thinking:
                if segment != self._segment or part != self.part:
                    self._begin_text(part, segment, events)
                events.append(TextDelta(text, self.block))
                continue
            if self._fragmented:
                segment = _FRAGMENT
            if segment != self._segment or part != self.part:
                self._begin_block(part, segment, events)
            if self._field_thinking:
                # The field may hold the same thought; only the whole segment can show that.
                self._held.append(text)
            else:
                self.thinking.append(text)
                events.append(ThinkingDelta(text, self.block, self._kind, "tags"))

    def _begin_text(self, part: int, segment: int, events: list[Event]) -> None:
        self._begin_block(part, segment, events)
        self.last_text_block = self.block
        if self.first_text_block is None:
            self.first_text_block = self.block

    def _begin_block(self, part: object, segment: int, events: list[Event]) -> None:
        self._release_held(events)
        self.plain_block = None
        if self.part is not None:
            self.block += 1
        self.part, self._segment = part, segment

    def _release_held(self, events: list[Event]) -> None:
        if not self._held:
            return
        text = "".join(self._held)
        self._held = []
        if text.strip() not in "".join(self._field_thinking):
            events.append(ThinkingDelta(text, self.block, self._kind, "tags"))
