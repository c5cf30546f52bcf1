"""Turns text of an answer that may hold thinking in tags into events: `TaggedText`, for every dialect."""

from __future__ import annotations

from collections.abc import Callable

from asides.providers.provider import Facts, Target
from asides.values.events import Event, TextDelta, ThinkingDelta
from asides.values.thinking import ThoughtKind
from asides.wire.inline_tags import Piece, Splitter, StartsInside, begins_answer

SEGMENTS = 1_000
"""The distance between the first blocks of two texts: each text needs a block for every segment that tags make."""

# Segment numbers besides those of the splitter, which begin at 0.
_PLAIN = -1
_FRAGMENT = -2


def _begins_with_answer(text: str, facts: Facts, *, starts_inside: StartsInside) -> bool:
    """Whether the first characters of a text show that no tag can come, as they mostly do."""
    return not starts_inside and facts.tag_position != "anywhere" and begins_answer(text, facts.tags)


class TaggedText:
    """One running text, split into blocks: the first is `block`, every further segment has the next number.

    `field_thinking` is the thinking that came in a separate field. The list may grow. A thought in tags that repeats it
    is dropped. A server that fills such a field has removed the tag that its template opened, so the text does not
    begin inside a tag. `first`: the reply begins with this text, so the text may begin inside a tag.
    """

    # The state at the beginning belongs to the class, as that of a decoder: most of it never changes.
    first_text_block: int | None = None
    """The block where the answer begins; None before it does."""
    _unsplit_block: int | None = None
    """The block where more text of `part` needs no splitting; None where it does."""
    part: object = None
    """The part of the message that the current block belongs to."""
    _splitter: Splitter | None = None
    _segment = 0  # the segment of the part
    _held: list[str] | None = None
    _passes: Callable[[str], object] | None = None
    """Returns None for text that needs no splitting; then more of the current block came."""
    _unread: list[str] | None = None
    _is_thinking = False
    _answers = False  # no tag can come any more

    def __init__(
        self,
        block: int,
        target: Target,
        kind: ThoughtKind = "raw",
        *,
        field_thinking: list[str] | None = None,
        first: bool = True,
    ) -> None:
        self.block = self.last_text_block = block
        """The block that the text has reached, and the block that holds the end of the answer."""
        self.thinking: list[str] = []
        """The thinking emitted from tags."""
        self._facts = facts = target.facts
        self._tags = facts.tags
        self._starts_inside: StartsInside = facts.starts_inside if first else False
        self._fragmented = target.quirks.fragmented_tags
        self._kind: ThoughtKind = "raw" if kind == "hidden" else kind
        self._field_thinking: list[str] | tuple[()] = () if field_thinking is None else field_thinking

    @property
    def truncated(self) -> bool:
        """After `finish`: the text ended inside a thinking block."""
        return self._splitter is not None and self._splitter.truncated

    @property
    def in_answer(self) -> bool:
        """Whether the text so far ends in the answer, with nothing held: more text may be a part of its own."""
        return self._unsplit_block is not None or (self._passes is not None and not self._is_thinking)

    def feed(self, text: str, events: list[Event], part: int = 0) -> None:
        """Add text. `part` is its place in the message; another part is another block."""
        if self._unsplit_block is not None and part == self.part:
            if text:
                events.append(TextDelta(text, self._unsplit_block))
            return
        if self._passes is not None and part == self.part and self._passes(text) is None and text:
            # Most texts of a reply with tags: more of the same thought, or of the same answer.
            if not self._is_thinking:
                if self._unread is not None:
                    self._unread.append(text)
                events.append(TextDelta(text, self.block))
                return
            if not self._field_thinking:
                self.thinking.append(text)
                events.append(ThinkingDelta(text, self.block, self._kind, "tags"))
                return
        splitter = self._splitter
        if splitter is None:
            if not self._tags:
                self._emit_plain(text, events, part)
                return
            starts_inside = False if self._field_thinking else self._starts_inside
            if self._answers or _begins_with_answer(text, self._facts, starts_inside=starts_inside):
                self._answers = True
                if text:
                    self._emit([(0, False, text)], events, part)
                    self._unsplit_block = self.block
                return
            splitter = self._splitter = Splitter(self._tags, self._facts.tag_position, starts_inside)
        pieces = splitter.feed(text)
        self._emit(pieces, events, part)
        self._passes = None
        if pieces:
            self._is_thinking = pieces[-1][1]
            if splitter.passes_all:
                self._unsplit_block = self.block
            elif not (self._is_thinking and self._fragmented):
                self._passes, self._unread = splitter.plain, splitter.unread

    def finish(self, events: list[Event], *, cut: bool = False, part: int = 0) -> None:
        """Emit the held text: no more comes. `cut`: the text broke off."""
        if self._splitter is not None:
            self._emit(self._splitter.finish(cut=cut), events, part)
            if self._held:
                self._release_held(self._held, events)

    def open_block(self, part: object, events: list[Event]) -> int:
        """Return the block for a part between texts that is not text; the same part has the same block."""
        if part != self.part:
            self._begin_block(part, _PLAIN, events)
        return self.block

    def _emit_plain(self, text: str, events: list[Event], part: int) -> None:
        if part != self.part or self._segment != _PLAIN:
            self._begin_text(part, _PLAIN, events)
            self._unsplit_block = None if self._tags else self.block
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
                if self._held is None:
                    self._held = []
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
        if self._held:
            self._release_held(self._held, events)
        self._unsplit_block = self._passes = None
        if self.part is not None:
            self.block += 1
        self.part, self._segment = part, segment

    def _release_held(self, held: list[str], events: list[Event]) -> None:
        text = "".join(held)
        self._held = None
        if text.strip() not in "".join(self._field_thinking):
            events.append(ThinkingDelta(text, self.block, self._kind, "tags"))
