"""Output items while they arrive: each tells its events once, from its deltas or from the whole item, whichever it has.

The item as it came goes along as an `entry` (thinking.Seal), since it has to go back. Not here: which item an event
belongs to (decode).
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from asides.dialects.openai_responses.wire import Item, Part, as_json_text, texts_of
from asides.values.events import (
    Event,
    PartArrived,
    RefusalDelta,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    Warned,
)
from asides.values.messages import ServerTool, UnknownPart
from asides.values.notices import Notice
from asides.values.thinking import Origin, Seal, ThoughtKind, ThoughtSource
from asides.wire.inline_tags import Splitter

Channel: TypeAlias = Literal["summary", "raw"]
RawReasoning: TypeAlias = Literal["aside", "alone", "shown"]
"""What raw reasoning is: never shown · the thinking of an item that has no summary · the thinking."""

ENTRY = "item"
"""The kind of a seal that is no token: an item, or its id and phase, that only has to go back."""

# Items of tools that the provider runs itself. As documented up to 2026-11.
SERVER_TOOLS = frozenset({
    "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call",
    "mcp_list_tools", "mcp_approval_request", "tool_search_call", "tool_search_output", "x_search_call",
    "program", "program_output", "shell_call_output", "code_execution_call",
})  # fmt: skip
# State of the provider without words: it goes back, and there is nothing to tell of it.
SILENT_ITEMS = frozenset({"compaction", "compaction_summary", "context_compaction"})

_SAYS: dict[Channel, tuple[ThoughtKind, ThoughtSource, str]] = {
    "summary": ("summary", "responses_summary", "summary"),
    "raw": ("raw", "responses_raw", "reasoning_text"),
}


class ItemState:
    """An item of no special kind, and what all kinds share."""

    def __init__(self, block: int, kind: str, origin: Origin) -> None:
        self.block = block
        self.kind = kind
        self.origin = origin
        self.id: str | None = None
        self.announced = False
        """Its output_item.added has come."""
        self.done = False

    def begin(self, item: Item, raw: bytes, events: list[Event]) -> None:
        """The item was announced; it may be incomplete."""

    def end(self, item: Item, raw: bytes, events: list[Event]) -> None:
        """The whole item."""

    def flush(self, events: list[Event]) -> None:
        """Nothing more comes of it, and the whole item never came."""


class ReasoningState(ItemState):
    """A reasoning item: its summary parts, or its raw text, as one thought, a blank line between parts.

    One of the two is live. The other is kept until the item ends and told then if the first said nothing (`alone`),
    or never: so a stream and a whole body show the same one.
    """

    def __init__(self, block: int, origin: Origin, raw_reasoning: RawReasoning) -> None:
        super().__init__(block, "reasoning", origin)
        self._raw_reasoning = raw_reasoning
        self._live: Channel = "raw" if raw_reasoning == "shown" else "summary"
        self._said: dict[Channel, dict[int, list[str]]] = {"summary": {}, "raw": {}}
        self._part: int | None = None
        self._blanks: list[str] | None = None
        self._spoken = False

    def take(self, channel: Channel, part: int, text: str, events: list[Event]) -> None:
        """More of a part."""
        self._said[channel].setdefault(part, []).append(text)
        if channel == self._live:
            self._say(channel, part, text, events)

    def take_whole(self, channel: Channel, part: int, text: str, events: list[Event]) -> None:
        """The whole part: what its deltas did not say of it."""
        rest = _rest(self._said[channel].get(part), text)
        if rest:
            self.take(channel, part, rest, events)

    def _say(self, channel: Channel, part: int, text: str, events: list[Event]) -> None:
        kind, source, via = _SAYS[channel]
        if part != self._part:
            self._part = part
            self._blanks = [] if self._spoken else None
        if self._blanks is not None:
            if not text or text.isspace():
                self._blanks.append(text)  # a part of blanks is none, so they wait for a word
                return
            events += [ThinkingDelta(piece, self.block, kind, source, via) for piece in ("\n\n", *self._blanks)]
            self._blanks = None
        if text:
            self._spoken = self._spoken or not text.isspace()
            events.append(ThinkingDelta(text, self.block, kind, source, via))

    def end(self, item: Item, raw: bytes, events: list[Event]) -> None:
        """The whole item, with the encrypted content that counts."""
        for part, text in texts_of(item.summary, "summary_text", "text"):
            self.take_whole("summary", part, text, events)
        for part, text in texts_of(item.content, "reasoning_text", "text"):
            self.take_whole("raw", part, text, events)
        self.flush(events)
        value = item.encrypted_content or ""
        entry = _without_content(raw) if self._raw_reasoning == "aside" and item.content else raw.decode()
        source: ThoughtSource = "responses_raw" if self._live == "raw" else "responses_summary"
        seal = Seal("encrypted" if value else ENTRY, value, self.origin, entry)
        events.append(ThoughtSealed(seal, self.block, "hidden", source))

    def flush(self, events: list[Event]) -> None:
        """What was kept of the other channel, where the live one said nothing."""
        if self._spoken or self._raw_reasoning == "aside":
            return
        other: Channel = "summary" if self._live == "raw" else "raw"
        if any(not text.isspace() for pieces in self._said[other].values() for text in pieces if text):
            self._live, self._part = other, None
            for part, pieces in sorted(self._said[other].items()):
                for text in pieces:
                    self._say(other, part, text, events)


class MessageState(ItemState):
    """A message: its texts and refusals, in order, and what goes back beside them (id, phase, annotations)."""

    def __init__(self, block: int, origin: Origin, splitter: Splitter | None) -> None:
        super().__init__(block, "message", origin)
        self.splitter = splitter
        self._said: dict[int, list[str]] = {}
        self._key: object = None
        self._segment = block - 1
        self._first_text: int | None = None

    def take(self, part: int, text: str, events: list[Event]) -> None:
        """More of a text."""
        said = self._said.get(part)
        if said is None:
            said = self._said[part] = []
        said.append(text)
        if self.splitter is not None:
            self._tell(part, self.splitter.feed(text), events)
            return
        if part != self._key:
            self._turn(part)
            self._first_text = self._segment if self._first_text is None else self._first_text
        if text:
            events.append(TextDelta(text, self._segment))

    def _tell(self, part: int, pieces: list[tuple[int, bool, str]], events: list[Event]) -> None:
        for number, is_thinking, text in pieces:
            if self._key != (part, number):
                self._turn((part, number))
            if is_thinking:
                events.append(ThinkingDelta(text, self._segment, "raw", "tags"))
            else:
                self._first_text = self._segment if self._first_text is None else self._first_text
                events.append(TextDelta(text, self._segment))

    def _turn(self, key: object) -> None:
        self._key = key
        self._segment += 1

    def take_refusal(self, part: int, text: str, events: list[Event]) -> None:
        """More of a refusal."""
        self._said.setdefault(part, []).append(text)
        if self._key != ("refusal", part):
            self._turn(("refusal", part))
        if text:
            events.append(RefusalDelta(text, self._segment))

    def take_whole(self, part: int, text: str, events: list[Event], *, refusal: bool = False) -> None:
        """The whole part: what its deltas did not say of it."""
        if rest := _rest(self._said.get(part), text):
            (self.take_refusal if refusal else self.take)(part, rest, events)

    def end(self, item: Item, raw: bytes, events: list[Event]) -> None:
        """The whole message, and what goes back beside its words."""
        content = [item.content] if isinstance(item.content, str) else item.content or []
        for place, part in enumerate(content):
            self._take_part(place, part, events)
        self.flush(events)
        entry = build_message_entry(raw)
        if entry is not None and self._first_text is not None:
            events.append(ThoughtSealed(Seal(ENTRY, "", self.origin, entry), self._first_text))

    def _take_part(self, place: int, part: Part | str | None, events: list[Event]) -> None:
        if isinstance(part, str):
            self.take_whole(place, part, events)
        elif part is None:
            return
        elif part.type == "refusal":
            self.take_whole(place, part.refusal if isinstance(part.refusal, str) else "", events, refusal=True)
        elif part.type in ("output_text", "text", None):
            if isinstance(part.text, str):
                self.take_whole(place, part.text, events)
            elif part.text is not None:
                told = f"a text of a message is {type(part.text).__name__} and was left out"
                events.append(Warned(Notice("malformed_field", told)))
        else:
            told = f"a content part of type {part.type!r} is only in metadata['raw']"
            events.append(Warned(Notice("unknown_content_part", told)))

    def flush(self, events: list[Event]) -> None:
        """What the splitter still held."""
        if self.splitter is not None:
            self._tell(max(self._said, default=0), self.splitter.finish(), events)


class CallState(ItemState):
    """A call of one of the caller's tools: a function with JSON arguments, or a custom tool with text of its own."""

    def __init__(self, block: int, kind: str, origin: Origin) -> None:
        super().__init__(block, kind, origin)
        self._custom = kind == "custom_tool_call"
        self._said: list[str] = []
        self._named = self._identified = False

    def begin(self, item: Item, raw: bytes, events: list[Event]) -> None:  # noqa: ARG002 - as for every item
        """Who is called; the arguments that some servers send along come again."""
        self._introduce(item.call_id, item.name, events)

    def _introduce(self, call_id: str | None, name: str | None, events: list[Event]) -> None:
        call_id, name = None if self._identified else call_id, None if self._named else name
        if call_id or name:
            self._identified, self._named = self._identified or bool(call_id), self._named or bool(name)
            events.append(ToolCallDelta(self.block, call_id or None, name or None, custom=self._custom))

    def take(self, arguments: str, events: list[Event]) -> None:
        """More of the arguments."""
        self._said.append(arguments)
        if arguments:
            events.append(ToolCallDelta(self.block, arguments=arguments, custom=self._custom))

    def take_whole(self, arguments: Any, events: list[Event]) -> None:
        """All of the arguments: what their deltas did not say."""
        if rest := _rest(self._said or None, as_json_text(arguments)):
            self.take(rest, events)

    def end(self, item: Item, raw: bytes, events: list[Event]) -> None:
        """The whole call."""
        # Proxies leave the call's own id out; the item's has to do then (requirements, D7).
        self._introduce(item.call_id or item.id, item.name, events)
        self.take_whole(item.input if self._custom else item.arguments, events)
        if not self._named and not self._identified:
            events.append(ToolCallDelta(self.block, custom=self._custom))
        events.append(ThoughtSealed(Seal(ENTRY, "", self.origin, raw.decode()), self.block))


class ServerToolState(ItemState):
    """A tool that the provider runs: its item, replaced as it goes on."""

    def __init__(self, block: int, kind: str, origin: Origin) -> None:
        super().__init__(block, kind, origin)
        self._part: ServerTool | None = None

    def begin(self, item: Item, raw: bytes, events: list[Event]) -> None:
        """The item as far as it has come."""
        self._part = ServerTool(self.kind, item.id, item.status, raw.decode(), self.origin)
        events.append(PartArrived(self._part, self.block))

    end = begin

    def progress(self, status: str, events: list[Event]) -> None:
        """It tells how far it is."""
        part = self._part or ServerTool(self.kind, self.id, origin=self.origin)
        if part.status != status:
            self._part = msgspec.structs.replace(part, status=status)
            events.append(PartArrived(self._part, self.block))


class UnknownState(ItemState):
    """An item that nobody here knows: kept as it came, and told."""

    def end(self, item: Item, raw: bytes, events: list[Event]) -> None:  # noqa: ARG002 - as for every item
        """The whole item."""
        events.append(PartArrived(UnknownPart(raw.decode(), self.origin), self.block))
        if self.kind not in SILENT_ITEMS:
            told = f"an item of type {self.kind!r} is not known; it is kept and goes back as it came"
            events.append(Warned(Notice("unknown_item", told)))


def _rest(said: list[str] | None, whole: str) -> str:
    """What of a whole text was not said in pieces. Words that are out cannot be taken back, so a text that differs adds
    nothing."""
    if not said:
        return whole
    out = "".join(said)
    return whole[len(out) :] if len(whole) > len(out) and whole.startswith(out) else ""


def _without_content(raw: bytes) -> str:
    """The item without its raw reasoning, which is not ours to keep unless it was asked for."""
    item = msgspec.json.decode(raw)
    item.pop("content", None)
    return msgspec.json.encode(item).decode()


def build_message_entry(raw: bytes) -> str | None:
    """What goes back of a message beside its words."""
    item = msgspec.json.decode(raw)
    content = item.get("content")
    if isinstance(content, list):
        item["content"] = [
            {name: value for name, value in part.items() if name not in ("text", "refusal", "logprobs")}
            for part in content
            if isinstance(part, dict)
        ]
    else:
        item.pop("content", None)
    kept = {name: value for name, value in item.items() if value is not None}
    return msgspec.json.encode(kept).decode() if "id" in kept or "phase" in kept else None
