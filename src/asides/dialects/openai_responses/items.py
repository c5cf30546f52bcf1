"""Output items while they arrive: each emits its events once, from its deltas or from the whole item.

The item itself is stored as the `entry` of a seal (values/thinking), since it goes back unchanged. Not here: which item
an event belongs to (item_index), and items of tools (tool_items).
"""

from __future__ import annotations

from itertools import chain
from typing import Any, Literal, TypeAlias

import msgspec

from asides.dialects.openai_responses.wire import Entry, Item, read_message, read_reasoning, read_whole_text
from asides.dialects.tagged_text import TaggedText
from asides.values.events import (
    Event,
    PartArrived,
    RefusalDelta,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    Warned,
)
from asides.values.notices import Notice
from asides.values.parts import UnknownPart
from asides.values.thinking import Origin, Seal, ThoughtKind, ThoughtSource

Channel: TypeAlias = Literal["summary", "raw"]
RawReasoning: TypeAlias = Literal["aside", "alone", "shown"]
"""The use of raw reasoning: never shown · shown for an item without a summary · shown as the thinking."""

ENTRY = "item"
"""The kind of a seal without a token: an item, or its id and phase, that only goes back."""

# State of the provider without text: it goes back, without a warning.
SILENT_ITEMS = frozenset({"compaction", "compaction_summary", "context_compaction"})

_CHANNELS: dict[Channel, tuple[ThoughtKind, ThoughtSource, str]] = {
    "summary": ("summary", "responses_summary", "summary"),
    "raw": ("raw", "responses_raw", "reasoning_text"),
}


class _Claims(msgspec.Struct):
    """The parts that whole texts of one kind of event have named."""

    meanings: dict[int, int] = {}
    """The part that an index of these events means."""
    taken: set[int] = set()


class ReceivedTexts:
    """The texts of an item's parts, by the index of their deltas, in the order in which they began.

    Servers may number a part in one way in its deltas, in another in its whole text, and in a third in the finished
    item. So a whole text is compared with the texts that have come, and the index only decides between equals.
    """

    __slots__ = ("_claims", "parts")

    def __init__(self) -> None:
        self.parts: dict[int, list[str]] = {}
        self._claims: dict[str, _Claims] | None = None

    def add(self, part: int, text: str) -> None:
        """Add text of a part."""
        received = self.parts.get(part)
        if received is None:
            received = self.parts[part] = []
        received.append(text)

    def prepend(self, text: str) -> None:
        """Add text that came before all other parts."""
        self.parts = {min(self.parts, default=0) - 1: [text], **self.parts}

    def join(self) -> str:
        """Return the whole text so far."""
        return "".join(chain.from_iterable(self.parts.values()))

    def find_rest(self, part: int, whole: str, event: str) -> tuple[int, str]:
        """Return the part that a whole text belongs to, and the rest of it that has not come; "" if it contradicts
        the text that has. `event` is the kind of event that has it: each kind has each part once.
        """
        if self._claims is None:
            self._claims = {}
        claims = self._claims.setdefault(event, _Claims())
        known = claims.meanings.get(part, part)
        texts = {key: "".join(pieces) for key, pieces in self.parts.items()}
        unclaimed = [key for key, text in texts.items() if text and (key == known or key not in claims.taken)]
        running = "".join(texts[key] for key in unclaimed)
        if texts.get(known) != whole and running and whole.startswith(running):
            known = unclaimed[-1]
            claims.taken.update(unclaimed)
            sent = running
        else:
            if not texts.get(known):
                known = next((key for key in unclaimed if whole.startswith(texts[key])), known)
            sent = texts.get(known, "")
        claims.meanings[part] = known
        claims.taken.add(known)
        return known, whole[len(sent) :] if whole.startswith(sent) else ""

    def find_missing(self, finished: list[tuple[int, str]]) -> list[tuple[int, str]]:
        """Return the texts of the finished item that have not come, each with the part that it belongs to."""
        if not self.parts:
            return [each for each in finished if each[1]]
        sent, whole = self.join(), "".join(text for _, text in finished)
        if not whole.startswith(sent):
            return [] if sent.startswith(whole) else self._match_parts(finished)
        missing: list[tuple[int, str]] = []
        used, last = set(self.parts), next(reversed(self.parts), 0)
        skipped = len(sent)
        for place, text in finished:
            if skipped >= len(text):
                skipped -= len(text)
                continue
            if not skipped:
                last = max(place, max(used, default=-1) + 1)
                used.add(last)
            missing.append((last, text[skipped:]))
            skipped = 0
        return missing

    def _match_parts(self, finished: list[tuple[int, str]]) -> list[tuple[int, str]]:
        """Find what is missing where parts came in another order or with gaps. A part that came with another text than
        the finished one counts as it came.
        """
        unmatched = {key: text for key, pieces in self.parts.items() if (text := "".join(pieces))}
        missing: list[tuple[int, str]] = []
        others: list[str] = []
        for place, text in finished:
            found = [key for key in unmatched if unmatched[key] == text]
            found = found or [key for key in unmatched if text.startswith(unmatched[key])]
            if found:
                key = place if place in found else found[0]
                missing.append((key, text[len(unmatched.pop(key)) :]))
            else:
                others.append(text)
        free = max(self.parts) + 1
        missing += [(free + number, text) for number, text in enumerate(others[len(unmatched) :])]
        return [(key, rest) for key, rest in missing if rest]


class ItemState:
    """An item of any kind; the base of the others."""

    # A reply may have a million items.
    __slots__ = ("announced", "block", "done", "id", "is_call", "kind", "number", "origin")

    def __init__(self, block: int, kind: str, origin: Origin) -> None:
        self.is_call = False
        """Whether the caller has to run it."""
        self.block = block
        self.kind = kind
        self.number = 0
        """Its place among the items of the reply."""
        self.origin = origin
        self.id: str | None = None
        self.announced = False
        """Whether the item's output_item.added event has come."""
        self.done = False

    def begin(self, item: Item, entry: Entry, events: list[Event]) -> None:
        """Use the item from its first event; it may be incomplete."""

    def end(self, item: Item, entry: Entry, events: list[Event]) -> None:
        """Use the whole item."""

    def flush(self, events: list[Event]) -> None:
        """Emit the held events: the whole item did not come."""

    @property
    def sent(self) -> str:
        """The text that has come in deltas or in whole texts."""
        return ""

    def has_begun(self, item: Item) -> bool | None:
        """Whether the text that has come begins this item, or is all of it; None if none has come."""
        sent, whole = self.sent, read_whole_text(self.kind, item)
        return whole.startswith(sent) or bool(whole and sent.startswith(whole)) if sent else None

    def absorb(self, text: str) -> None:
        """Take over text of the same item that came under another index or id."""


class ReasoningState(ItemState):
    """A reasoning item: its summary parts, or its raw text, as one thought with a blank line between parts.

    One of the two is emitted as it comes. The other is held until the item ends; then it is emitted if the first had no
    text (`alone`), or dropped. So a stream and a whole body show the same one.
    """

    __slots__ = ("_blanks", "_has_text", "_part", "_raw_reasoning", "_received", "_shown")

    def __init__(self, block: int, origin: Origin, raw_reasoning: RawReasoning) -> None:
        super().__init__(block, "reasoning", origin)
        self._raw_reasoning = raw_reasoning
        self._shown: Channel = "raw" if raw_reasoning == "shown" else "summary"
        self._received: dict[Channel, ReceivedTexts] = {"summary": ReceivedTexts(), "raw": ReceivedTexts()}
        self._part: int | None = None
        self._blanks: list[str] | None = None
        self._has_text = False

    def feed(self, channel: Channel, part: int, text: str, events: list[Event]) -> None:
        """Add text of a part."""
        self._received[channel].add(part, text)
        if channel != self._shown:
            return
        if text and self._has_text and part == self._part and self._blanks is None:
            # More of the same part, as nearly always.
            kind, source, via = _CHANNELS[channel]
            events.append(ThinkingDelta(text, self.block, kind, source, via))
        else:
            self._emit(channel, part, text, events)

    def feed_whole(self, channel: Channel, part: int, text: str, events: list[Event], event: str) -> None:
        """Add the whole part: the text that its deltas did not have."""
        part, rest = self._received[channel].find_rest(part, text, event)
        if rest:
            self.feed(channel, part, rest, events)

    @property
    def sent(self) -> str:
        """The text that has come: of the summary, or else raw."""
        return self._received["summary"].join() or self._received["raw"].join()

    def has_begun(self, item: Item) -> bool | None:
        """Whether the text that has come begins this item, or is all of it; None if none has come."""
        summary, raw = read_reasoning(item)
        for received, texts in ((self._received["summary"], summary), (self._received["raw"], raw)):
            sent, whole = received.join(), "".join(text for _, text in texts)
            if sent and whole:
                return whole.startswith(sent) or sent.startswith(whole)
        return False if self.sent else None

    def absorb(self, text: str) -> None:
        """Take over text of the same item that came under another index or id."""
        self._received["summary" if self._received["summary"].parts else "raw"].prepend(text)

    def _emit(self, channel: Channel, part: int, text: str, events: list[Event]) -> None:
        kind, source, via = _CHANNELS[channel]
        if part != self._part:
            self._part = part
            self._blanks = [] if self._has_text else None
        if self._blanks is not None:
            if not text or text.isspace():
                self._blanks.append(text)  # a blank part does not count, so blanks wait for text
                return
            events += [ThinkingDelta(piece, self.block, kind, source, via) for piece in ("\n\n", *self._blanks)]
            self._blanks = None
        if text:
            self._has_text = self._has_text or not text.isspace()
            events.append(ThinkingDelta(text, self.block, kind, source, via))

    def end(self, item: Item, entry: Entry, events: list[Event]) -> None:
        """Emit the rest of the item, and its encrypted content as a seal."""
        summary, raw = read_reasoning(item)
        for part, text in self._received["summary"].find_missing(summary):
            self.feed("summary", part, text, events)
        for part, text in self._received["raw"].find_missing(raw):
            self.feed("raw", part, text, events)
        self.flush(events)
        value = item.encrypted_content or ""
        stored = _remove_content(entry) if self._raw_reasoning == "aside" and item.content else entry.text
        source: ThoughtSource = "responses_raw" if self._shown == "raw" else "responses_summary"
        seal = Seal("encrypted" if value else ENTRY, value, self.origin, stored)
        events.append(ThoughtSealed(seal, self.block, "hidden", source))

    def flush(self, events: list[Event]) -> None:
        """Emit the held channel if the first had no text."""
        if self._has_text or self._raw_reasoning == "aside":
            return
        other: Channel = "summary" if self._shown == "raw" else "raw"
        if any(not text.isspace() for pieces in self._received[other].parts.values() for text in pieces if text):
            self._shown, self._part = other, None
            for part, pieces in self._received[other].parts.items():
                for text in pieces:
                    self._emit(other, part, text, events)


class MessageState(ItemState):
    """A message: its texts and refusals in order, and the fields that go back with them (id, phase, annotations)."""

    __slots__ = ("_has_entry", "_received", "_refusals", "_text")

    def __init__(self, origin: Origin, text: TaggedText) -> None:
        super().__init__(text.block, "message", origin)
        self._text = text
        self._received = ReceivedTexts()
        self._refusals = ReceivedTexts()
        self._has_entry = False

    @property
    def sent(self) -> str:
        """The text that has come."""
        return self._received.join() or self._refusals.join()

    def absorb(self, text: str) -> None:
        """Take over text of the same item that came under another index or id."""
        self._received.prepend(text)

    @property
    def truncated(self) -> bool:
        """Whether the message ended inside a thinking tag."""
        return self._text.truncated

    def feed(self, part: int, text: str, events: list[Event]) -> None:
        """Add text of a part."""
        self._received.add(part, text)
        running = self._text
        if running.plain_block is not None and part == running.part and text:
            events.append(TextDelta(text, running.plain_block))
        else:
            running.feed(text, events, part)

    def feed_refusal(self, part: int, text: str, events: list[Event]) -> None:
        """Add text of a refusal."""
        self._refusals.add(part, text)
        block = self._text.open_block(("refusal", part), events)
        if text:
            events.append(RefusalDelta(text, block))

    def feed_whole(self, part: int, text: str, events: list[Event], event: str) -> None:
        """Add the whole part: the text that its deltas did not have. `event` is the kind of event that has it."""
        is_refusal = event == "refusal"
        part, rest = (self._refusals if is_refusal else self._received).find_rest(part, text, event)
        if rest:
            (self.feed_refusal if is_refusal else self.feed)(part, rest, events)

    def end(self, item: Item, entry: Entry, events: list[Event]) -> None:
        """Emit the rest of the message, and the fields that go back with it as a seal."""
        texts, refusals = read_message(item, events)
        if entry.is_whole and len(texts) == 1 and texts[0][0] == 0 and texts[0][1] and not refusals:
            # The usual message: one text, and nothing of it came before or comes later.
            text = texts[0][1]
            self._received.add(0, text)
            self._text.feed_whole(text, events)
        else:
            self._feed_missing(texts, refusals, events)
        self.flush(events)
        stored = build_message_entry(entry.read_fields())
        if stored is not None and self._text.first_text_block is not None and not self._has_entry:
            self._has_entry = True
            events.append(ThoughtSealed(Seal(ENTRY, "", self.origin, stored), self._text.first_text_block))

    def _feed_missing(self, texts: list[tuple[int, str]], refusals: list[tuple[int, str]], events: list[Event]) -> None:
        missing = [(part, text, self.feed) for part, text in self._received.find_missing(texts)]
        missing += [(part, text, self.feed_refusal) for part, text in self._refusals.find_missing(refusals)]
        for part, text, feed in sorted(missing, key=lambda each: each[0]):
            feed(part, text, events)

    def flush(self, events: list[Event]) -> None:
        """Emit the text that is still held."""
        self._text.finish(events, part=max(self._received.parts, default=0))


class UnknownState(ItemState):
    """An item of an unknown type: it goes back unchanged, with a warning."""

    __slots__ = ()

    def end(self, item: Item, entry: Entry, events: list[Event]) -> None:  # noqa: ARG002 - as for every item
        """Use the whole item."""
        events.append(PartArrived(UnknownPart(entry.text, self.origin), self.block))
        if self.kind not in SILENT_ITEMS:
            detail = f"an item of type {self.kind!r} is not known; it is stored and sent back unchanged"
            events.append(Warned(Notice("unknown_item", detail)))


def _remove_content(entry: Entry) -> str:
    """Remove the raw reasoning from an item: it is stored only on request."""
    item = entry.read_fields()
    return msgspec.json.encode({name: value for name, value in item.items() if name != "content"}).decode()


def build_message_entry(item: dict[str, Any]) -> str | None:
    """Build the entry of a message: its fields without the texts; None when it has neither id nor phase."""
    entry: dict[str, Any] = {}
    for name, value in item.items():
        if name != "content":
            if value is not None:
                entry[name] = value
        elif isinstance(value, list):
            entry[name] = [
                {name: value for name, value in part.items() if name not in ("text", "refusal", "logprobs")}
                for part in value
                if isinstance(part, dict)
            ]
    return msgspec.json.encode(entry).decode() if "id" in entry or "phase" in entry else None
