"""The text of an answer that may hold thinking in tags, as events: `TaggedText`.

Not here: how tags are found (wire/inline_tags), and which can occur (the provider's row).
"""

from __future__ import annotations

from asides.providers.provider import Target
from asides.values.events import Event, TextDelta, ThinkingDelta
from asides.values.thinking import ThoughtKind
from asides.wire.inline_tags import Splitter

SEGMENTS = 1_000
"""How many block numbers a text leaves free behind its own, for the segments that tags cut it into."""


class TaggedText:
    """One running text. Its segments have the block numbers from `block` on; without tags there is one segment.

    `apart`: the thinking that came in a field of its own. A thought in tags that repeats it is not told twice, and a
    template that opened a tag is known to have been dealt with by the server.
    """

    __slots__ = ("_apart", "_held", "_held_at", "_kind", "_said", "_splitter", "block", "truncated")

    def __init__(
        self, block: int, target: Target, kind: ThoughtKind, *, apart: list[str] | None = None, first: bool = True
    ) -> None:
        """`first`: the reply begins with this text, so that it may begin inside a tag."""
        facts = target.facts
        self.block = block
        self.truncated = False
        """After `end`: the text ended inside a thinking block."""
        self._kind: ThoughtKind = "raw" if kind == "hidden" else kind
        self._apart: list[str] = [] if apart is None else apart
        self._held: list[str] = []
        self._held_at = block
        self._said = block
        starts_inside = facts.starts_inside if first and not self._apart else False
        self._splitter = Splitter(facts.tags, facts.tag_position, starts_inside) if facts.tags else None

    @property
    def last_block(self) -> int:
        """The block that the last of the answer is in."""
        return self._said

    def say(self, text: str, events: list[Event]) -> None:
        """More of the text."""
        if self._splitter is None:
            events.append(TextDelta(text, self.block))
        else:
            self._split(self._splitter.feed(text), events)

    def end(self, events: list[Event], *, cut: bool = False) -> None:
        """The text is complete, or nothing more will come; `cut`: though there should have been more."""
        if self._splitter is not None:
            self._split(self._splitter.finish(cut=cut), events)
            self._release(events)
            self.truncated = self._splitter.truncated
            self._splitter = None

    def _split(self, pieces: list[tuple[int, bool, str]], events: list[Event]) -> None:
        for segment, is_thinking, text in pieces:
            block = self.block + segment
            if self._held and block != self._held_at:
                self._release(events)
            if not is_thinking:
                self._said = block
                events.append(TextDelta(text, block))
            elif self._apart:
                # The field may have told the same; only the whole segment can say.
                self._held.append(text)
                self._held_at = block
            else:
                events.append(ThinkingDelta(text, block, self._kind, "tags"))

    def _release(self, events: list[Event]) -> None:
        text = "".join(self._held)
        self._held = []
        if text.strip() and text.strip() not in "".join(self._apart):
            events.append(ThinkingDelta(text, self._held_at, self._kind, "tags"))
