"""Turns text of a message that may hold thinking in tags into events: `TaggedText`, for every dialect."""

from __future__ import annotations

from collections.abc import Callable

from asides.providers.provider import Facts, Target
from asides.values.events import CommentaryDelta, Event, TextDelta, TextReclassified, ThinkingDelta, Warned
from asides.values.notices import Notice
from asides.values.thinking import ThoughtKind
from asides.wire.inline_tags import Channel, Piece, Splitter, StartsInside, begins_answer

SEGMENTS = 1_000
"""The distance between the first blocks of two texts: each text needs a block for every segment that tags make."""

# Segment numbers for other uses; the splitter's begin at 0.
_PLAIN = -1
_FRAGMENT = -2

_MOVED = Notice(
    "text_reclassified",
    "the text began inside the thinking: only its closing tag came, so what came before it as the answer is thinking",
)
_LEFT = Notice(
    "tag_in_answer",
    "the answer has a thinking tag after its beginning, which stays; tag_position='anywhere' takes the thinking out",
)


def _begins_with_answer(text: str, facts: Facts, *, starts_inside: StartsInside) -> bool:
    """Whether the first characters of a text show that no tag can come, as they mostly do."""
    return not starts_inside and facts.tag_position != "anywhere" and begins_answer(text, facts.tags)


class TaggedText:
    """One running text, split into blocks: the first is `block`, every further segment has the next number.

    `field_thinking` is the thinking that came in a separate field. The list may grow. A thought in tags that repeats it
    is dropped. A server that fills such a field has removed the tag that its template opened, so the text does not
    begin inside a tag. `first`: the reply begins with this text, so the text may begin inside a tag.
    """

    # Class-level defaults: a splitter is created per reply and rarely changes them.
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
    _channel = Channel.ANSWER
    """The channel of the last piece."""
    says: type[TextDelta | CommentaryDelta] = TextDelta
    """The event of text outside thinking: the whole message may be commentary."""
    _answers = False  # no tag can come any more
    _late = False  # a closing tag alone may show later that the text began inside a thought
    _sizes: dict[int, int] | None = None
    """While that may be: the characters of each block of text."""
    _left_tag = False

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
        if first and facts.starts_inside is False and facts.tags and "starts_inside" not in dict(target.overrides):
            self._late, self._sizes = True, {}
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
        return self._unsplit_block is not None or (self._passes is not None and self._channel is not Channel.THINKING)

    def feed(self, text: str, events: list[Event], part: int = 0) -> None:
        """Add text. `part` is its place in the message; another part is another block."""
        if self._unsplit_block is not None and part == self.part:
            if text:
                events.append(self.says(text, self._unsplit_block))
            return
        if self._passes is not None and part == self.part and self._passes(text) is None and text:
            # Most texts of a reply with tags: more of the same thought, or of the same answer.
            if self._channel is not Channel.THINKING:
                if self._unread is not None:
                    self._unread.append(text)
                if self._sizes is not None:
                    self._sizes[self.block] += len(text)
                events.append(self._say(self._channel, text))
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
            late = self._late and self.says is TextDelta and not self._field_thinking
            if not late:
                self._sizes = None
            if not late and (self._answers or _begins_with_answer(text, self._facts, starts_inside=starts_inside)):
                self._answers = True
                if text:
                    self._emit([(0, Channel.ANSWER, text)], events, part)
                    self._unsplit_block = self.block
                return
            splitter = self._splitter = Splitter(self._tags, self._facts.tag_position, starts_inside, late=late)
        pieces = splitter.feed(text)
        self._emit(pieces, events, part)
        self._report_left_tag(splitter, events)
        self._passes = None
        if pieces:
            self._channel = pieces[-1][1]
            if splitter.passes_all:
                self._unsplit_block, self._sizes = self.block, None
            elif not (self._channel is Channel.THINKING and self._fragmented):
                self._passes, self._unread = splitter.plain, splitter.unread

    def finish(self, events: list[Event], *, cut: bool = False, part: int = 0) -> None:
        """Emit the held text: no more comes. `cut`: the text broke off."""
        if self._splitter is not None:
            self._emit(self._splitter.finish(cut=cut), events, part)
            self._report_left_tag(self._splitter, events)
            if self._held:
                self._release_held(self._held, events)

    def open_block(self, part: object, events: list[Event]) -> int:
        """Return the block for a part between texts that is not text; the same part has the same block."""
        if part != self.part:
            self._begin_block(part, _PLAIN, events)
        return self.block

    def _report_left_tag(self, splitter: Splitter, events: list[Event]) -> None:
        if splitter.left_tag and not self._left_tag:
            self._left_tag = True
            events.append(Warned(_LEFT))

    def _emit_plain(self, text: str, events: list[Event], part: int) -> None:
        if part != self.part or self._segment != _PLAIN:
            self._begin_text(part, _PLAIN, events)
            self._unsplit_block = None if self._tags else self.block
        if text:
            events.append(self.says(text, self.block))

    def _say(self, channel: Channel, text: str) -> Event:
        return CommentaryDelta(text, self.block) if channel is Channel.COMMENTARY else self.says(text, self.block)

    def _emit(self, pieces: list[Piece], events: list[Event], part: int) -> None:
        for segment, channel, text in pieces:
            if channel is Channel.MOVED:
                self._move(text, events)
                continue
            if channel is not Channel.THINKING:
                if segment != self._segment or part != self.part:
                    self._begin_text(part, segment, events)
                events.append(self._say(channel, text))
                if self._sizes is not None:
                    self._sizes[self.block] = self._sizes.get(self.block, 0) + len(text)
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

    def _move(self, thought: str, events: list[Event]) -> None:
        """Move the text so far, of every block, to thinking. What came in this batch was not delivered yet."""
        sizes, self._sizes = self._sizes or {}, None
        begin = 0
        for block, size in sizes.items():
            moved = thought[begin : begin + size]
            begin += size
            here = [place for place, event in enumerate(events) if type(event) is TextDelta and event.block == block]
            texts = "".join(events[place].text for place in here)  # type: ignore[union-attr]
            if len(texts) < size:
                events.append(TextReclassified(moved, block, self._kind))
                continue
            events[here[0]] = ThinkingDelta(moved, block, self._kind, "tags")
            for place in reversed(here[1:]):
                del events[place]
        self.thinking.append(thought)
        self.first_text_block = None
        events.append(Warned(_MOVED))

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
