"""Content blocks while they arrive: each kind turns its deltas into events.

A block is one part of the reply, and its number identifies it. A block of a whole response is begun and finished
immediately, so the same code reads streams and whole responses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import msgspec

from asides.dialects.anthropic.wire import Block, Delta, is_given
from asides.dialects.tagged_text import TaggedText
from asides.providers.provider import Target
from asides.values.events import Event, PartArrived, ThinkingDelta, ThoughtSealed, ToolCallDelta, Warned
from asides.values.notices import Notice
from asides.values.parts import ServerTool, UnknownPart
from asides.values.thinking import Origin, Seal, ThoughtKind
from asides.wire.lenient import read_any, read_thought_text

SIGNATURE = "signature"
REDACTED = "redacted"
CITATIONS = "citations"
CALLER = "caller"
CONTAINER = "container"
TOOLSET = "toolset"
VIA = "thinking"
_DIRECT = b'{"type":"direct"}'

# Blocks that the provider adds itself: tools it ran, summaries of removed history, a fallback to another model.
_PROVIDER_BLOCKS = frozenset({"compaction", "fallback", "container_upload", "search_result", "mcp_tool_listing"})
_PROVIDER_ENDINGS = ("_tool_result", "_tool_use")


Compact: TypeAlias = Callable[[msgspec.Raw], bytes]
"""Returns raw JSON without white space."""


class OpenBlock(Protocol):
    """A block that has begun and not ended."""

    number: int

    def feed(self, delta: Delta, payload: bytes, events: list[Event]) -> bool:
        """Add a delta; False when this kind of block has no such delta."""
        ...

    def finish(self, events: list[Event]) -> None:
        """Emit the events that were held: the block is complete, or no more deltas come."""
        ...


class TextBlock:
    """A part of the answer; thinking in tags is taken out of it."""

    __slots__ = ("_citations", "_compact", "_target", "_text", "number")

    def __init__(self, number: int, block: Block, target: Target, compact: Compact, events: list[Event]) -> None:
        self.number = number
        self._compact = compact
        self._target = target
        self._text = TaggedText(number, target, first=number == 0)
        self._citations = [compact(citation) for citation in block.citations or () if is_given(citation)]
        if block.text:
            self._text.feed(block.text, events)

    @property
    def truncated(self) -> bool:
        """Whether the text ended inside a thinking tag."""
        return self._text.truncated

    def feed(self, delta: Delta, payload: bytes, events: list[Event]) -> bool:  # noqa: ARG002 - the Protocol's
        """Add a delta; False when this kind of block has no such delta."""
        text = delta.text
        if text is not None:
            self._text.feed(text, events)
        elif is_given(delta.citation):
            self._citations.append(self._compact(delta.citation))
        else:
            return delta.type in ("text_delta", "citations_delta")
        return True

    def finish(self, events: list[Event]) -> None:
        """Emit the events that were held: the block is complete, or no more deltas come."""
        self._text.finish(events)
        if self._citations:
            # Citations go back with their text: some hold an encrypted index.
            entry = b"[" + b",".join(self._citations) + b"]"
            seal = Seal(CITATIONS, "", self._target.origin, entry.decode())
            events.append(ThoughtSealed(seal, self._text.last_text_block, source="block"))


class ThinkingBlock:
    """A thought and its signature. The signature arrives last; other servers send it first, empty or not at all."""

    __slots__ = ("_kind", "_origin", "_signature", "number")

    def __init__(self, number: int, block: Block, kind: ThoughtKind, origin: Origin, events: list[Event]) -> None:
        self.number = number
        self._kind: ThoughtKind = kind
        self._origin = origin
        self._signature = block.signature or ""
        if thinking := block.thinking or block.text:
            self._emit(thinking, events)

    def _emit(self, thinking: Any, events: list[Event]) -> None:
        text = thinking if type(thinking) is str else read_thought_text(thinking)
        if text:
            events.append(ThinkingDelta(text, self.number, self._kind, "block", VIA))
        else:
            detail = f"a thinking block holds {type(thinking).__name__}, not text"
            events.append(Warned(Notice("unreadable_thinking", detail)))

    @property
    def is_signed(self) -> bool:
        """Whether the signature has come."""
        return bool(self._signature)

    def feed(self, delta: Delta, payload: bytes, events: list[Event]) -> bool:  # noqa: ARG002 - the Protocol's
        """Add a delta; False when this kind of block has no such delta."""
        thinking = delta.thinking
        if type(thinking) is str:
            if thinking:
                events.append(ThinkingDelta(thinking, self.number, self._kind, "block", VIA))
        elif thinking is not None:
            if thinking:
                self._emit(thinking, events)
        elif delta.signature is not None:
            # A signature arrives in one piece; a second one replaces the first, as in the official SDK.
            self._signature = delta.signature or self._signature
        else:
            return delta.type in ("thinking_delta", "signature_delta")
        return True

    def finish(self, events: list[Event]) -> None:
        """Emit the events that were held: the block is complete, or no more deltas come."""
        if self._signature:
            seal = Seal(SIGNATURE, self._signature, self._origin)
            events.append(ThoughtSealed(seal, self.number, self._kind, source="block"))


class CallBlock:
    """A call of one of the caller's tools."""

    __slots__ = ("_streamed", "_whole_input", "number")

    def __init__(self, number: int, block: Block, origin: Origin, compact: Compact, events: list[Event]) -> None:
        self.number = number
        self._streamed = False
        self._whole_input = compact(block.input) if is_given(block.input) else b""
        events.append(ToolCallDelta(number, block.id, block.name))
        caller = compact(block.caller) if is_given(block.caller) else _DIRECT
        if caller != _DIRECT:
            # A call from code that the provider runs goes back with its caller. A direct call goes back without the
            # field, since older endpoints refuse it.
            events.append(ThoughtSealed(Seal(CALLER, "", origin, caller.decode()), number, source="block"))
        if block.toolset_name:
            entry = msgspec.json.encode(block.toolset_name).decode()
            events.append(ThoughtSealed(Seal(TOOLSET, "", origin, entry), number, source="block"))

    def feed(self, delta: Delta, payload: bytes, events: list[Event]) -> bool:  # noqa: ARG002 - the Protocol's
        """Add a delta; False when this kind of block has no such delta."""
        if delta.partial_json is None:
            return delta.type == "input_json_delta"
        if delta.partial_json:
            self._streamed = True
            events.append(ToolCallDelta(self.number, arguments=delta.partial_json))
        return True

    def finish(self, events: list[Event]) -> None:
        """Emit the events that were held: the block is complete, or no more deltas come."""
        if not self._streamed and self._whole_input not in (b"", b"{}"):
            events.append(ToolCallDelta(self.number, arguments=self._whole_input.decode()))


class RedactedBlock:
    """A thought that only the provider can read. It arrives in one piece."""

    __slots__ = ("number",)

    def __init__(self, number: int, block: Block, origin: Origin, events: list[Event]) -> None:
        self.number = number
        if block.data:
            events.append(ThoughtSealed(Seal(REDACTED, block.data, origin), number, "hidden", "block"))

    def feed(self, delta: Delta, payload: bytes, events: list[Event]) -> bool:  # noqa: ARG002 - the Protocol's
        """Add a delta; False when this kind of block has no such delta."""
        return False

    def finish(self, events: list[Event]) -> None:
        """Emit the events that were held: the block is complete, or no more deltas come."""


class RawBlock:
    """A block that is sent back unchanged: a tool that the provider ran itself, or an unknown type."""

    __slots__ = ("_changed", "_fields", "_input", "_origin", "_read_fields", "is_known", "number")

    def __init__(
        self,
        number: int,
        fields: dict[str, Any],
        origin: Origin,
        read_fields: Callable[[bytes], Any],
        events: list[Event],
    ) -> None:
        self.number = number
        self._read_fields = read_fields
        self._origin = origin
        self._fields = fields
        self.is_known = is_provider_block(self.type)
        """Whether the provider is known to add such blocks."""
        self._input: list[str] = []
        self._changed = False
        self._emit(events)

    @property
    def type(self) -> str:
        """The provider's name for the type."""
        return str(self._fields.get("type", ""))

    def feed(self, delta: Delta, payload: bytes, events: list[Event]) -> bool:  # noqa: ARG002 - the Protocol's
        """Add a delta; False when this kind of block has no such delta."""
        if delta.partial_json is not None:
            self._input.append(delta.partial_json)
            return True
        # Any other delta extends the fields of the same name.
        more: dict[str, Any] = self._read_fields(payload)["delta"]
        kind = more.pop("type", "")
        for name, value in more.items():
            before = self._fields.get(name)
            grows = isinstance(before, str) and isinstance(value, str)
            self._fields[name] = f"{before}{value}" if grows else value
            self._changed = True
        return bool(kind == f"{self.type}_delta")

    def finish(self, events: list[Event]) -> None:
        """Emit the events that were held: the block is complete, or no more deltas come."""
        text = "".join(self._input)
        if text:
            try:
                self._fields["input"] = read_any(text)
            except msgspec.DecodeError:
                self._fields["input"] = text
            self._changed = True
        if self._changed:
            self._emit(events)

    def _emit(self, events: list[Event]) -> None:
        events.append(PartArrived(build_raw_part(self._fields, self._origin), self.number))


def is_provider_block(kind: str) -> bool:
    """Whether the provider adds blocks of this type itself; a call of the caller's tools is not one."""
    return kind in _PROVIDER_BLOCKS or kind.endswith(_PROVIDER_ENDINGS)


def build_raw_part(fields: dict[str, Any], origin: Origin | None) -> ServerTool | UnknownPart:
    """Build the part for a block that goes back unchanged."""
    kind = str(fields.get("type", ""))
    json = msgspec.json.encode(fields).decode()
    if not is_provider_block(kind):
        return UnknownPart(json, origin)
    call_id = fields.get("id") or fields.get("tool_use_id")
    failed = fields.get("is_error") is True or _is_error(fields.get("content"))
    return ServerTool(kind, str(call_id) if call_id else None, "failed" if failed else None, json, origin)


def _is_error(content: object) -> bool:
    return isinstance(content, dict) and str(content.get("type", "")).endswith("_error")
