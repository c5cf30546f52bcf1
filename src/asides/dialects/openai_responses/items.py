"""Output items while they arrive: each emits its events once, from its deltas or from the whole item.

The item itself is stored as the `entry` of a seal (values/thinking), since it goes back unchanged. Not here: which item
an event belongs to (item_index).
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from asides.dialects.openai_responses.wire import Item, Part, find_texts
from asides.dialects.tagged_text import TaggedText
from asides.providers.provider import Target
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
from asides.wire.lenient import read_any, to_json_text

Channel: TypeAlias = Literal["summary", "raw"]
RawReasoning: TypeAlias = Literal["aside", "alone", "shown"]
"""The use of raw reasoning: never shown · shown for an item without a summary · shown as the thinking."""

ENTRY = "item"
"""The kind of a seal without a token: an item, or its id and phase, that only goes back."""

# Items of tools that the provider runs itself, as documented up to 2026-11.
SERVER_TOOLS = frozenset({
    "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call",
    "mcp_list_tools", "mcp_approval_request", "tool_search_call", "tool_search_output", "x_search_call",
    "program", "program_output", "shell_call_output", "code_execution_call",
})  # fmt: skip
# State of the provider without text: it goes back, without a warning.
SILENT_ITEMS = frozenset({"compaction", "compaction_summary", "context_compaction"})

_CHANNELS: dict[Channel, tuple[ThoughtKind, ThoughtSource, str]] = {
    "summary": ("summary", "responses_summary", "summary"),
    "raw": ("raw", "responses_raw", "reasoning_text"),
}


class ItemState:
    """An item of any kind; the base of the others."""

    def __init__(self, block: int, kind: str, origin: Origin) -> None:
        self.block = block
        self.kind = kind
        self.origin = origin
        self.id: str | None = None
        self.announced = False
        """Whether the item's output_item.added event has come."""
        self.done = False

    def begin(self, item: Item, raw: bytes, events: list[Event]) -> None:
        """Use the item from its first event; it may be incomplete."""

    def end(self, item: Item, raw: bytes, events: list[Event]) -> None:
        """Use the whole item."""

    def flush(self, events: list[Event]) -> None:
        """Emit the held events: the whole item did not come."""


class ReasoningState(ItemState):
    """A reasoning item: its summary parts, or its raw text, as one thought with a blank line between parts.

    One of the two is emitted as it comes. The other is held until the item ends; then it is emitted if the first had no
    text (`alone`), or dropped. So a stream and a whole body show the same one.
    """

    def __init__(self, block: int, origin: Origin, raw_reasoning: RawReasoning) -> None:
        super().__init__(block, "reasoning", origin)
        self._raw_reasoning = raw_reasoning
        self._shown: Channel = "raw" if raw_reasoning == "shown" else "summary"
        self._received: dict[Channel, dict[int, list[str]]] = {"summary": {}, "raw": {}}
        self._part: int | None = None
        self._blanks: list[str] | None = None
        self._has_text = False

    def feed(self, channel: Channel, part: int, text: str, events: list[Event]) -> None:
        """Add text of a part."""
        self._received[channel].setdefault(part, []).append(text)
        if channel == self._shown:
            self._emit(channel, part, text, events)

    def feed_whole(self, channel: Channel, part: int, text: str, events: list[Event]) -> None:
        """Add the whole part: the text that its deltas did not have."""
        rest = _find_rest(self._received[channel].get(part), text)
        if rest:
            self.feed(channel, part, rest, events)

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

    def end(self, item: Item, raw: bytes, events: list[Event]) -> None:
        """Emit the rest of the item, and its encrypted content as a seal."""
        for part, text in find_texts(item.summary, "summary_text", "text"):
            self.feed_whole("summary", part, text, events)
        for part, text in find_texts(item.content, "reasoning_text", "text"):
            self.feed_whole("raw", part, text, events)
        self.flush(events)
        value = item.encrypted_content or ""
        entry = _remove_content(raw) if self._raw_reasoning == "aside" and item.content else raw.decode()
        source: ThoughtSource = "responses_raw" if self._shown == "raw" else "responses_summary"
        seal = Seal("encrypted" if value else ENTRY, value, self.origin, entry)
        events.append(ThoughtSealed(seal, self.block, "hidden", source))

    def flush(self, events: list[Event]) -> None:
        """Emit the held channel if the first had no text."""
        if self._has_text or self._raw_reasoning == "aside":
            return
        other: Channel = "summary" if self._shown == "raw" else "raw"
        if any(not text.isspace() for pieces in self._received[other].values() for text in pieces if text):
            self._shown, self._part = other, None
            for part, pieces in sorted(self._received[other].items()):
                for text in pieces:
                    self._emit(other, part, text, events)


class MessageState(ItemState):
    """A message: its texts and refusals in order, and the fields that go back with them (id, phase, annotations)."""

    def __init__(self, target: Target, text: TaggedText) -> None:
        super().__init__(text.block, "message", target.origin)
        self._text = text
        self._received: dict[int, list[str]] = {}

    @property
    def truncated(self) -> bool:
        """Whether the message ended inside a thinking tag."""
        return self._text.truncated

    def feed(self, part: int, text: str, events: list[Event]) -> None:
        """Add text of a part."""
        received = self._received.get(part)
        if received is None:
            received = self._received[part] = []
        received.append(text)
        running = self._text
        if running.plain_block is not None and part == running.part and text:
            events.append(TextDelta(text, running.plain_block))
        else:
            running.feed(text, events, part)

    def feed_refusal(self, part: int, text: str, events: list[Event]) -> None:
        """Add text of a refusal."""
        self._received.setdefault(part, []).append(text)
        block = self._text.open_block(("refusal", part), events)
        if text:
            events.append(RefusalDelta(text, block))

    def feed_whole(self, part: int, text: str, events: list[Event], *, refusal: bool = False) -> None:
        """Add the whole part: the text that its deltas did not have."""
        if rest := _find_rest(self._received.get(part), text):
            (self.feed_refusal if refusal else self.feed)(part, rest, events)

    def end(self, item: Item, raw: bytes, events: list[Event]) -> None:
        """Emit the rest of the message, and the fields that go back with it as a seal."""
        content = [item.content] if isinstance(item.content, str) else item.content or []
        for place, part in enumerate(content):
            self._feed_part(place, part, events)
        self.flush(events)
        entry = build_message_entry(raw)
        if entry is not None and self._text.first_text_block is not None:
            events.append(ThoughtSealed(Seal(ENTRY, "", self.origin, entry), self._text.first_text_block))

    def _feed_part(self, place: int, part: Part | str | None, events: list[Event]) -> None:
        if isinstance(part, str):
            self.feed_whole(place, part, events)
        elif part is None:
            return
        elif part.type == "refusal":
            self.feed_whole(place, part.refusal if isinstance(part.refusal, str) else "", events, refusal=True)
        elif part.type in ("output_text", "text", None):
            if isinstance(part.text, str):
                self.feed_whole(place, part.text, events)
            elif part.text is not None:
                detail = f"a text of a message is {type(part.text).__name__} and was left out"
                events.append(Warned(Notice("malformed_field", detail)))
        else:
            detail = f"a content part of type {part.type!r} is only in metadata['raw']"
            events.append(Warned(Notice("unknown_content_part", detail)))

    def flush(self, events: list[Event]) -> None:
        """Emit the text that is still held."""
        self._text.finish(events, part=max(self._received, default=0))


class CallState(ItemState):
    """A call of one of the caller's tools: a function with JSON arguments, or a custom tool with free text."""

    def __init__(self, block: int, kind: str, origin: Origin) -> None:
        super().__init__(block, kind, origin)
        self._custom = kind == "custom_tool_call"
        self._received: list[str] = []
        self._has_name = self._has_id = False

    def begin(self, item: Item, raw: bytes, events: list[Event]) -> None:  # noqa: ARG002 - as for every item
        """Emit the id and the name. Arguments that some servers send here come again."""
        self._emit_identity(item.call_id, item.name, events)

    def _emit_identity(self, call_id: str | None, name: str | None, events: list[Event]) -> None:
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

    def end(self, item: Item, raw: bytes, events: list[Event]) -> None:
        """Emit the rest of the call, and the item as a seal."""
        # Some proxies omit the call's id; then the item's is used.
        self._emit_identity(item.call_id or item.id, item.name, events)
        self.feed_whole(item.input if self._custom else item.arguments, events)
        if not self._has_name and not self._has_id:
            events.append(ToolCallDelta(self.block, custom=self._custom))
        events.append(ThoughtSealed(Seal(ENTRY, "", self.origin, raw.decode()), self.block))


class ServerToolState(ItemState):
    """A tool that the provider runs: its item, replaced with each progress event."""

    def __init__(self, block: int, kind: str, origin: Origin) -> None:
        super().__init__(block, kind, origin)
        self._part: ServerTool | None = None

    def begin(self, item: Item, raw: bytes, events: list[Event]) -> None:
        """Emit the item as it is now."""
        self._part = ServerTool(self.kind, item.id, item.status, raw.decode(), self.origin)
        events.append(PartArrived(self._part, self.block))

    end = begin

    def emit_progress(self, status: str, events: list[Event]) -> None:
        """Emit a new status."""
        part = self._part or ServerTool(self.kind, self.id, origin=self.origin)
        if part.status != status:
            self._part = msgspec.structs.replace(part, status=status)
            events.append(PartArrived(self._part, self.block))


class UnknownState(ItemState):
    """An item of an unknown type: it goes back unchanged, with a warning."""

    def end(self, item: Item, raw: bytes, events: list[Event]) -> None:  # noqa: ARG002 - as for every item
        """Use the whole item."""
        events.append(PartArrived(UnknownPart(raw.decode(), self.origin), self.block))
        if self.kind not in SILENT_ITEMS:
            detail = f"an item of type {self.kind!r} is not known; it is stored and sent back unchanged"
            events.append(Warned(Notice("unknown_item", detail)))


def _find_rest(received: list[str] | None, whole: str) -> str:
    """Return the part of a whole text that its deltas did not have; "" if it contradicts them."""
    if not received:
        return whole
    sent = "".join(received)
    return whole[len(sent) :] if len(whole) > len(sent) and whole.startswith(sent) else ""


def _remove_content(raw: bytes) -> str:
    """Remove the raw reasoning from an item: it is stored only on request."""
    item = read_any(raw)
    item.pop("content", None)
    return msgspec.json.encode(item).decode()


def build_message_entry(raw: bytes) -> str | None:
    """Build the entry of a message: its fields without the texts; None when it has neither id nor phase."""
    item = read_any(raw)
    content = item.get("content")
    if isinstance(content, list):
        item["content"] = [
            {name: value for name, value in part.items() if name not in ("text", "refusal", "logprobs")}
            for part in content
            if isinstance(part, dict)
        ]
    else:
        item.pop("content", None)
    entry = {name: value for name, value in item.items() if value is not None}
    return msgspec.json.encode(entry).decode() if "id" in entry or "phase" in entry else None
