"""Output items while they arrive: each emits its events once, from its deltas or from the whole item.

The item itself is stored as the `entry` of a seal (values/thinking), since it goes back unchanged. `ItemIndex` finds
the item that an event belongs to.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from operator import attrgetter
from typing import Any, Literal, TypeAlias

import msgspec

from asides.dialects.openai_responses.tool_items import (
    CLIENT_CALLS,
    SERVER_OUTPUTS,
    SERVER_TOOLS,
    is_client_call,
    may_be_server_run,
    read_call,
)
from asides.dialects.openai_responses.wire import (
    Entry,
    Item,
    StreamEvent,
    read_message,
    read_reasoning,
    read_whole_text,
)
from asides.dialects.tagged_text import SEGMENTS, TaggedText
from asides.providers.provider import Target
from asides.values.events import (
    CommentaryDelta,
    Event,
    PartArrived,
    RefusalDelta,
    TextDelta,
    TextReclassified,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    Warned,
)
from asides.values.notices import Notice
from asides.values.parts import ServerTool, UnknownPart
from asides.values.thinking import Origin, Seal, ThoughtKind, ThoughtSource
from asides.wire.lenient import to_json_text

Channel: TypeAlias = Literal["summary", "raw"]
RawReasoning: TypeAlias = Literal["aside", "alone", "shown"]
"""The use of raw reasoning: never shown · shown for an item without a summary · shown as the thinking."""

ENTRY = "item"
"""The kind of a seal without a token: an item, or its id and phase, that is only sent back."""

# State of the provider without text: it is sent back, without a warning.
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
        """Add text that arrived before all other parts."""
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
        """Emit the held events: the whole item did not arrive."""

    @property
    def sent(self) -> str:
        """The text that has arrived in deltas or in whole texts."""
        return ""

    def has_begun(self, item: Item) -> bool | None:
        """Whether the text so far is a prefix of this item, or all of it; None if there is none."""
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
        if channel == self._shown:
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
        """Whether the text so far is a prefix of this item, or all of it; None if there is none."""
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
    """A message: its texts and refusals in order, and the fields that go back with them (id, phase, annotations).

    Its phase says whether its text is commentary: known when it is announced, or only at its end.
    """

    __slots__ = ("_has_entry", "_received", "_refusals", "_sent", "_text")

    def __init__(self, origin: Origin, text: TaggedText) -> None:
        super().__init__(text.block, "message", origin)
        self._text = text
        self._received = ReceivedTexts()
        self._refusals = ReceivedTexts()
        self._has_entry = False
        self._sent: dict[int, list[str]] = {}
        """The text that came as the answer, by block."""

    @property
    def sent(self) -> str:
        """The text that has come."""
        return self._received.join() or self._refusals.join()

    def absorb(self, text: str) -> None:
        """Take over text of the same item that came under another index or id."""
        self._received.prepend(text)

    def begin(self, item: Item, entry: Entry, events: list[Event]) -> None:  # noqa: ARG002 - as for every item
        """Use the phase of the message: it says whether its text is commentary."""
        if not is_commentary(entry.fields):
            return
        self._text.says = CommentaryDelta
        events += [
            TextReclassified("".join(texts), block, channel="commentary")
            for block, texts in self._sent.items()
            if texts
        ]
        self._sent.clear()

    @property
    def is_answer(self) -> bool:
        """Whether its text is not commentary."""
        return self._text.says is TextDelta

    @property
    def truncated(self) -> bool:
        """Whether the message ended inside a thinking tag."""
        return self._text.truncated

    def feed(self, part: int, text: str, events: list[Event]) -> None:
        """Add text of a part."""
        self._received.add(part, text)
        begin = len(events)
        self._text.feed(text, events, part)
        self._note(events, begin)

    def _note(self, events: list[Event], begin: int) -> None:
        """Note the text of new events, which the phase may move."""
        for event in events[begin:]:
            if type(event) is TextDelta:
                self._sent.setdefault(event.block, []).append(event.text)
            elif type(event) is TextReclassified:
                self._sent.pop(event.block, None)

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
        self.begin(item, entry, events)
        texts, refusals = read_message(item, events)
        self._feed_missing(texts, refusals, events)
        self.flush(events)
        stored = build_message_entry(entry.fields)
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
    fields = {name: value for name, value in entry.fields.items() if name != "content"}
    return msgspec.json.encode(fields).decode()


def is_commentary(item: Mapping[str, Any]) -> bool:
    """Whether a message is not the answer. The answer has the phase "final_answer", or none; a phase that is not known
    is not taken for the answer.
    """
    return item.get("phase") not in (None, "", "final_answer")


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


# --- tools: calls that the caller runs, and tools that the provider runs ----------------------------------------------


class CallState(ItemState):
    """A call of one of the caller's tools: a function with JSON arguments, or a custom tool with free text."""

    __slots__ = ("_custom", "_has_id", "_has_name", "_received", "call_id")

    def __init__(self, block: int, kind: str, origin: Origin) -> None:
        super().__init__(block, kind, origin)
        self.is_call = True
        self._custom = kind == "custom_tool_call"
        self._received: list[str] = []
        self.call_id: str | None = None
        self._has_name = self._has_id = False

    @property
    def sent(self) -> str:
        """The arguments that have come."""
        return "".join(self._received)

    def has_begun(self, item: Item) -> bool | None:
        """Whether this is the item of the call: by the call's id, else by its arguments."""
        if self.call_id and item.call_id:
            return self.call_id == item.call_id
        return super().has_begun(item)

    def begin(self, item: Item, entry: Entry, events: list[Event]) -> None:  # noqa: ARG002 - as for every item
        """Emit the id and the name. Arguments that some servers send here come again."""
        self._emit_identity(item.call_id, item.name, events)

    def _emit_identity(self, call_id: str | None, name: str | None, events: list[Event]) -> None:
        self.call_id = self.call_id or call_id
        call_id, name = None if self._has_id else call_id, None if self._has_name else name
        if call_id or name:
            self._has_id, self._has_name = self._has_id or bool(call_id), self._has_name or bool(name)
            events.append(ToolCallDelta(self.block, call_id or None, name or None, custom=self._custom))

    def feed(self, arguments: str, events: list[Event]) -> None:
        """Add text of the arguments."""
        self._received.append(arguments)
        if arguments:
            events.append(ToolCallDelta(self.block, arguments=arguments, custom=self._custom))

    def feed_whole(self, arguments: Any, events: list[Event]) -> None:
        """Add the whole arguments: the text that their deltas did not have."""
        if rest := _find_rest(self._received or None, to_json_text(arguments)):
            self.feed(rest, events)

    def end(self, item: Item, entry: Entry, events: list[Event]) -> None:
        """Emit the rest of the call, and the item as a seal."""
        # Some proxies omit the call's id; then the item's is used.
        self._emit_identity(item.call_id or item.id, item.name, events)
        self.feed_whole(item.input if self._custom else item.arguments, events)
        if not self._has_name and not self._has_id:
            events.append(ToolCallDelta(self.block, custom=self._custom))
        events.append(ThoughtSealed(Seal(ENTRY, "", self.origin, entry.text), self.block))


class CustomCallState(CallState):
    """A call of a custom tool, which the caller runs, or the provider. Its events are held until that is known."""

    __slots__ = ("_held", "_part", "name", "runs_here")

    def __init__(self, block: int, kind: str, origin: Origin) -> None:
        super().__init__(block, kind, origin)
        self.runs_here: bool | None = None
        """Whether the caller runs it; None while that is not known."""
        self.name: str | None = None
        self._held: list[Event] = []
        self._part: PartArrived | None = None

    def begin(self, item: Item, entry: Entry, events: list[Event]) -> None:
        """Emit the id and the name."""
        self.name = item.name or self.name
        super().begin(item, entry, self._choose(events))

    def feed(self, arguments: str, events: list[Event]) -> None:
        """Add text of the arguments."""
        super().feed(arguments, self._choose(events))

    def end(self, item: Item, entry: Entry, events: list[Event]) -> None:
        """Emit the rest of the call, or the item of a call that the provider ran."""
        self.name = item.name or self.name
        part = ServerTool(self.name or self.kind, item.call_id or item.id, item.status, entry.text, self.origin)
        self._part = PartArrived(part, self.block)
        if self.runs_here is False:
            events.append(self._part)
        else:
            super().end(item, entry, self._choose(events))

    def decide(self, runs_here: bool, events: list[Event]) -> None:
        """Emit the held events: it is known who runs the call."""
        self.runs_here = self.is_call = runs_here
        if runs_here:
            events += self._held
        elif self._part is not None:
            events.append(self._part)
        self._held = []

    def flush(self, events: list[Event]) -> None:
        """Emit the held events: the whole item did not arrive."""
        events += self._held
        self._held = []

    def _choose(self, events: list[Event]) -> list[Event]:
        return events if self.runs_here else self._held


class ServerToolState(ItemState):
    """A tool that the provider runs: its item, replaced with each progress event."""

    __slots__ = ("_part",)

    def __init__(self, block: int, kind: str, origin: Origin) -> None:
        super().__init__(block, kind, origin)
        self._part: ServerTool | None = None

    def begin(self, item: Item, entry: Entry, events: list[Event]) -> None:
        """Emit the item as it is now."""
        self._part = ServerTool(self.kind, item.id, item.status, entry.text, self.origin)
        events.append(PartArrived(self._part, self.block))

    end = begin

    def emit_progress(self, status: str, events: list[Event]) -> None:
        """Emit a new status."""
        part = self._part or ServerTool(self.kind, self.id, origin=self.origin)
        if part.status != status:
            self._part = msgspec.structs.replace(part, status=status)
            events.append(PartArrived(self._part, self.block))


class ToolItemState(ServerToolState):
    """A call of a tool of the provider which the caller may have to run: only the whole item shows it."""

    __slots__ = ()

    def begin(self, item: Item, entry: Entry, events: list[Event]) -> None:
        """Emit the item if the provider runs it."""
        if not is_client_call(entry.fields):
            super().begin(item, entry, events)

    def end(self, item: Item, entry: Entry, events: list[Event]) -> None:
        """Emit the call, or the item of a tool that the provider ran."""
        if self._part is not None or not is_client_call(entry.fields):
            super().begin(item, entry, events)
            return
        self.is_call = True
        name, arguments = read_call(entry.fields)
        call_id = item.call_id or item.id or None
        events.append(ToolCallDelta(self.block, call_id, name, msgspec.json.encode(arguments).decode()))
        events.append(ThoughtSealed(Seal(ENTRY, "", self.origin, entry.text), self.block))

    def emit_progress(self, status: str, events: list[Event]) -> None:
        """Emit a new status of a tool that the provider runs."""
        if self._part is not None:
            super().emit_progress(status, events)


def _find_rest(received: list[str] | None, whole: str) -> str:
    """Return the part of a whole text that its deltas did not have; "" if it contradicts them."""
    if not received:
        return whole
    sent = "".join(received)
    return whole[len(sent) :] if len(whole) > len(sent) and whole.startswith(sent) else ""


# --- the item that an event belongs to --------------------------------------------------------------------------------


_NUMBER = attrgetter("number")


class ItemIndex:
    """The items of one reply, found by id, by index and by their text.

    An id that is known counts first. Some proxies change the id of an item in every event; then the index counts. Some
    number items in one way in deltas and in another at the end; then the text that has come shows the item. So no text
    comes twice.
    """

    def __init__(self, target: Target) -> None:
        self.items: list[ItemState] = []
        self._unfinished: list[ItemState] = []
        """The items that may still get text, in order; the finished ones among them are removed from time to time."""
        self._announced: dict[str, list[ItemState]] = {}
        """For each kind: the announced items in order. The finished ones among them are removed when they are last."""
        self._by_index: dict[int, ItemState] = {}
        self._by_id: dict[tuple[str, str], ItemState | None] = {}
        """The item of a kind and an id; None if several have it."""
        self._renumbered: dict[str | None, dict[int | str | None, ItemState]] = {}
        """For each type of event: items whose index or id in these events differs from their announcement."""
        self.tool_names: set[str] = set()
        """The names of the request's tools, if the server repeats them."""
        self._undecided: list[CustomCallState] = []
        """Calls of custom tools; it may not be known yet who runs them."""
        self._has_words = False
        """Whether there is a message or reasoning."""
        self._blocks: set[int] = set()
        self._last_block = 0
        self._target = target
        self._origin = target.origin
        self._raw_reasoning: RawReasoning = _find_raw_reasoning(target)

    def find(self, event: StreamEvent, kind: str) -> ItemState:
        """Return the item of this kind that an event belongs to; a new one if it was not announced."""
        index, item_id = event.output_index, event.item_id
        found = self._find_by_id(item_id, kind)
        if found is not None:
            return found
        if index is None and item_id is None and self.items and self.items[-1].kind == kind:
            return self.items[-1]
        renumbered = self._renumbered.get(event.type, {})
        if index is not None and not renumbered:
            found = self._by_index.get(index)
            if found is not None and found.kind == kind and not _is_other(found, item_id):
                return found
        key = item_id if index is None else index
        found = renumbered.get(key)
        if found is None and (found := self._find_announced(kind)) is not None:
            self._renumbered.setdefault(event.type, {})[key] = found
        return found or self.add(kind, index, item_id)

    def find_reasoning(self, event: StreamEvent) -> ReasoningState | None:
        """Return the reasoning that an event about text names: all of that is thinking."""
        found = self._find_by_id(event.item_id, "reasoning") if event.item_id is not None else None
        if found is None and event.item_id is None and event.output_index is not None:
            found = self._by_index.get(event.output_index)
            found = found if found in self.items[-1:] else None
        return found if isinstance(found, ReasoningState) and not found.done else None

    def begin(self, index: int | None, item: Item) -> ItemState:
        """Return the item that begins here. If the server uses an index twice, the second is a new item after the
        others.
        """
        kind = item.type or "message"
        state = self._find_by_id(item.id, kind)
        if state is None and index is not None:
            state = self._by_index.get(index)
        repeated = state is not None and state.announced and (state.done or state.id != item.id or item.id is None)
        if state is None or repeated or state.kind != kind:
            state = self.add(kind, index, item.id)
        if not state.announced:
            state.announced = True
            insort(self._announced.setdefault(kind, []), state, key=_NUMBER)
        self._name(state, item.id)
        return state

    def end(self, index: int | None, item: Item) -> ItemState:
        """Return the item that ends here."""
        kind = item.type or "message"
        self._unfinished = [state for state in self._unfinished if not state.done]
        unfinished = [state for state in self._unfinished if state.kind == kind]
        here = self._by_index.get(index) if index is not None else None
        own = [state for state in (self._find_by_id(item.id, kind), here) if state is not None and state in unfinished]
        if index is None and item.id is None:
            own += unfinished[-1:]
        begun = next((state for state in (*own, *unfinished) if state.has_begun(item)), None)
        if begun is None:
            begun = _join_pieces(unfinished, item)
        return begun or next(iter(own), None) or self.add(kind, index, item.id)

    def match_response(self, output: list[tuple[Item, Entry]]) -> Iterator[tuple[ItemState, Item, Entry]]:
        """Yield the items of the last response object that the stream has not finished, each with its state.

        Every item that the stream had is one of them, under whatever index and id; the stream counts.
        """
        if not self.items:
            for place, (item, entry) in enumerate(output):
                yield self.add(item.type or "message", place, item.id), item, entry
            return
        matched: dict[int, ItemState] = {}
        states = list(self.items)
        for is_same in _RANKED:
            for place, (item, _) in enumerate(output):
                if place in matched:
                    continue
                kind = item.type or "message"
                found = next((state for state in states if state.kind == kind and is_same(state, item, place)), None)
                if found is not None:
                    matched[place] = found
                    states.remove(found)
        has_all_texts = self._has_all_texts(output)
        for place, (item, entry) in enumerate(output):
            kind, state = item.type or "message", matched.get(place)
            if kind == "message" and has_all_texts and (state is None or not state.sent):
                continue
            if state is None:
                yield self.add(kind, place, item.id), item, entry
            elif not state.done or (isinstance(state, MessageState) and not state.sent):
                yield state, item, entry

    def _has_all_texts(self, output: list[tuple[Item, Entry]]) -> bool:
        """Whether the messages of the stream together have the texts of the last response object."""
        spoken = "".join(state.sent for state in self.items if state.kind == "message")
        texts = [read_whole_text("message", item) for item, _ in output if (item.type or "message") == "message"]
        return bool(spoken) and "".join(texts) == spoken

    def decide_by_name(self, state: ItemState, item: Item, events: list[Event]) -> None:
        """Decide who runs a call of a custom tool: the provider, if the request had no tool of that name. If the server
        does not repeat the tools, the name says it, or the answer that follows.
        """
        if not isinstance(state, CustomCallState) or state.runs_here is not None or not item.name:
            return
        if self.tool_names:
            state.decide(item.name in self.tool_names, events)
        elif not may_be_server_run(item):
            state.decide(True, events)

    def decide_by_answer(self, message: MessageState, events: list[Event]) -> None:
        """Decide who ran the calls of custom tools before an answer: the provider, since the answer did not wait."""
        if not self._undecided or not message.is_answer:
            return
        for state in self._undecided:
            if state.runs_here is None and state.block < message.block:
                state.decide(False, events)
        self._undecided = [state for state in self._undecided if state.runs_here is None]

    def decide_rest(self, events: list[Event]) -> None:
        """Decide who runs the calls of custom tools that no answer followed: the caller."""
        for state in self._undecided:
            if state.runs_here is None:
                state.decide(True, events)
        self._undecided = []

    def has_open_tag(self) -> bool:
        """Whether a message opens a thinking tag and does not close it."""
        messages = (item for item in self.items if isinstance(item, MessageState))
        return any(item.truncated for item in messages)

    def is_last_a_thought(self) -> bool:
        """Whether the last item is reasoning."""
        last = max(self.items, key=lambda item: item.block, default=None)
        return isinstance(last, ReasoningState)

    def _find_by_id(self, item_id: str | None, kind: str) -> ItemState | None:
        return self._by_id.get((kind, item_id)) if item_id is not None else None

    def _find_announced(self, kind: str) -> ItemState | None:
        """Return the last item of this kind that was announced and is not finished."""
        announced = self._announced.get(kind)
        while announced and announced[-1].done:
            announced.pop()
        return announced[-1] if announced else None

    def _name(self, state: ItemState, item_id: str | None) -> None:
        if item_id is None or (state.id == item_id and self._by_id.get((state.kind, item_id)) is state):
            return
        state.id = item_id
        key = (state.kind, item_id)
        self._by_id[key] = None if key in self._by_id else state

    def add(self, kind: str, index: int | None, item_id: str | None) -> ItemState:
        """Add an item of this kind, after the others if it has no index, and return it."""
        block = find_first_block(len(self.items) if index is None else index)
        if block in self._blocks:
            block = self._last_block + SEGMENTS
        self._blocks.add(block)
        self._last_block = block if len(self._blocks) == 1 else max(block, self._last_block)
        state = self._make_state(kind, block)
        state.number = len(self.items)
        self._name(state, item_id)
        self.items.append(state)
        self._unfinished.append(state)
        if index is not None:
            self._by_index[index] = state
        return state

    def _make_state(self, kind: str, block: int) -> ItemState:
        origin = self._origin
        match kind:
            case "reasoning":
                self._has_words = True
                return ReasoningState(block, origin, self._raw_reasoning)
            case "message":
                # A server that sends a thought as a separate item has removed the tag that its template opened.
                text = TaggedText(block, self._target, first=not self._has_words)
                self._has_words = True
                return MessageState(origin, text)
            case "function_call":
                return CallState(block, kind, origin)
            case "custom_tool_call":
                custom = CustomCallState(block, kind, origin)
                self._undecided.append(custom)
                return custom
            case _ if kind in CLIENT_CALLS:
                return ToolItemState(block, kind, origin)
            case _ if kind in SERVER_TOOLS or kind in SERVER_OUTPUTS:
                return ServerToolState(block, kind, origin)
            case _:
                return UnknownState(block, kind, origin)


def _is_other(state: ItemState, item_id: str | None) -> bool:
    """Whether an item is finished and has another id: the server uses its index again."""
    return state.done and item_id is not None and state.id is not None and state.id != item_id


def _join_pieces(states: list[ItemState], item: Item) -> ItemState | None:
    """Return the last of these items if this text begins with theirs: the server gave each piece a new id."""
    pieces = [state for state in states if state.sent and not state.is_call]
    text = "".join(state.sent for state in pieces)
    if not text or not read_whole_text(item.type or "message", item).startswith(text):
        return None
    *others, last = pieces
    last.absorb("".join(state.sent for state in others))
    for state in others:
        state.done = True
    return last


# How an item of the last response object is found among those of the stream, the surest way first.
_RANKED: tuple[Callable[[ItemState, Item, int], bool], ...] = (
    lambda state, item, _: item.id is not None and state.id == item.id and state.has_begun(item) is True,
    lambda state, item, place: state.block == find_first_block(place) and state.has_begun(item) is True,
    lambda state, item, _: state.has_begun(item) is True,
    lambda state, item, _: item.id is not None and state.id == item.id,
    lambda state, _, place: state.block == find_first_block(place),
    lambda state, item, _: state.done or state.announced or state.has_begun(item) is False,
)


def find_first_block(place: int) -> int:
    """Return the first block of the item at this position. Blocks before the first item are for text outside items."""
    return (place + 1) * SEGMENTS


def _find_raw_reasoning(target: Target) -> RawReasoning:
    """Return the use of raw reasoning: that of the row, else "aside" for models that send summaries."""
    use = "shown" if target.shows_raw else target.quirks.raw_reasoning
    if use is not None:
        return use
    return "alone" if target.rule.kind == "raw" else "aside"
