"""Content blocks while they arrive: each kind turns its deltas into events.

A block of a whole response begins and ends immediately, so the same code reads streams and whole responses.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from typing import Any

import msgspec

from asides.dialects.bedrock.wire import ReasoningDelta
from asides.values.events import Event, PartArrived, ThinkingDelta, ThoughtSealed, ToolCallDelta
from asides.values.parts import ServerTool, UnknownPart
from asides.values.thinking import Origin, Seal, ThoughtKind
from asides.wire.lenient import read_any, read_thought_text

SIGNATURE = "signature"
REDACTED = "redacted"
CITATIONS = "citations"
PLACEHOLDER = "placeholder"
"""The kind of a seal that holds the provider's placeholder text for hidden thinking."""
VIA = "reasoningContent"
# Nova 2 always sends this as its reasoning (AWS nova2-userguide, reasoning-capabilities, 2026-11).
_HIDDEN = "[REDACTED]"
PROVIDER_CALL = "server_tool_use"


class ThoughtBlock:
    """A thought: its text and signature, or data that only the provider can read. No event begins it."""

    __slots__ = ("_held", "_held_length", "_kind", "_origin", "_redacted", "_signature", "number")

    def __init__(self, number: int, kind: ThoughtKind, origin: Origin) -> None:
        self.number = number
        self._held: list[str] | None = []
        """The text so far while it may be the placeholder; None once it is a text."""
        self._held_length = 0
        """Its length without white space."""
        self._kind: ThoughtKind = kind
        self._origin = origin
        self._signature: list[str] = []
        self._redacted: list[str] = []

    @property
    def is_sealed(self) -> bool:
        """Whether a signature or redacted data has come."""
        return bool(self._signature or self._redacted)

    def feed(self, delta: ReasoningDelta | str | list[Any], events: list[Event]) -> None:
        """Add a delta, or a whole thought."""
        if not isinstance(delta, ReasoningDelta):
            delta = ReasoningDelta(delta)
        text, signature = delta.text, delta.signature
        if delta.reasoning_text is not None:
            text = read_thought_text(delta.reasoning_text)
            inner = delta.reasoning_text.get("signature") if isinstance(delta.reasoning_text, dict) else None
            signature = inner if isinstance(inner, str) else signature
        if text:
            if type(text) is not str:
                text = read_thought_text(text)
            if self._held is None:
                events.append(ThinkingDelta(text, self.number, self._kind, "block", VIA))
            else:
                self._hold(self._held, text, events)
        if signature:
            self._signature.append(signature)
        if delta.redacted_content:
            self._redacted.append(delta.redacted_content)

    def _hold(self, held: list[str], text: str, events: list[Event]) -> None:
        """Hold the text if all so far may be the placeholder, else emit it."""
        held.append(text)
        # The first characters decide for almost every text, so that a long one is not searched.
        if self._may_be_hidden(text[: len(_HIDDEN)]) and self._may_be_hidden(text):
            self._held_length += len("".join(text.split()))
        else:
            self._held = None
            events.append(ThinkingDelta("".join(held), self.number, self._kind, "block", VIA))

    def _may_be_hidden(self, text: str) -> bool:
        """Whether this text continues the placeholder, maybe repeated, after the held text."""
        bare = "".join(text.split())
        begun = self._held_length % len(_HIDDEN)
        return (_HIDDEN * (len(bare) // len(_HIDDEN) + 2)).startswith(bare, begun)

    def finish(self, events: list[Event]) -> None:
        """Emit the events that were held: the block is complete, or no more deltas come."""
        held = "".join(self._held or ())
        if _HIDDEN in held:
            seal = Seal(PLACEHOLDER, _HIDDEN, self._origin)
            events.append(ThoughtSealed(seal, self.number, "hidden", "block"))
        elif held:
            events.append(ThinkingDelta(held, self.number, self._kind, "block", VIA))
        self._held = None
        if self._signature:
            seal = Seal(SIGNATURE, "".join(self._signature), self._origin)
            events.append(ThoughtSealed(seal, self.number, self._kind, "block"))
        if self._redacted:
            seal = Seal(REDACTED, _join_base64(self._redacted), self._origin)
            events.append(ThoughtSealed(seal, self.number, "hidden", "block"))


def _join_base64(pieces: list[str]) -> str:
    """Join pieces of base64: as text, or as bytes where a piece before the last is padded."""
    if not any(piece.endswith("=") for piece in pieces[:-1]):
        return "".join(pieces)
    try:
        return b64encode(b"".join(b64decode(piece, validate=True) for piece in pieces)).decode()
    except (NotBase64, ValueError):
        return "".join(pieces)


class CallBlock:
    """A call of one of the caller's tools."""

    __slots__ = ("number",)

    def __init__(self, number: int, call_id: str | None, name: str | None, arguments: str, events: list[Event]) -> None:
        self.number = number
        events.append(ToolCallDelta(number, call_id or None, name or None, arguments))

    def feed(self, text: str, events: list[Event]) -> None:
        """Add text of the arguments."""
        if text:
            events.append(ToolCallDelta(self.number, arguments=text))


class RawBlock:
    """A block that is sent back unchanged: a tool that the provider ran itself, or an unknown type."""

    __slots__ = ("_fields", "_input", "_origin", "kind", "number")

    def __init__(self, number: int, kind: str, fields: Any, origin: Origin) -> None:
        self.number = number
        self.kind = kind
        self._fields: Any = fields
        self._input: list[str] = []
        self._origin = origin

    def feed(self, more: Any) -> None:
        """Add text of the input, items of the content, or other fields."""
        if isinstance(more, dict) and isinstance(more.get("input"), str):
            self._input.append(more["input"])
        elif isinstance(self._fields, dict) and isinstance(more, list):
            so_far = self._fields.get("content")
            if isinstance(so_far, list):
                so_far += more
            else:
                self._fields["content"] = more
        elif isinstance(self._fields, dict) and isinstance(more, dict):
            self._fields |= more
        else:
            self._fields = more

    @property
    def is_known(self) -> bool:
        """Whether the provider is known to add such blocks."""
        return is_provider_block(self.kind, self._fields)

    def finish(self, events: list[Event]) -> None:
        """Emit the events that were held: the block is complete, or no more deltas come."""
        if self._input and isinstance(self._fields, dict):
            text = "".join(self._input)
            try:
                self._fields["input"] = read_any(text)
            except msgspec.DecodeError:
                self._fields["input"] = text
        events.append(PartArrived(build_raw_part(self.kind, self._fields, self._origin), self.number))


def is_provider_block(kind: str, fields: Any) -> bool:
    """Whether the provider adds this block itself; a call of the caller's tools is not one."""
    if kind == "toolUse":
        return isinstance(fields, dict) and fields.get("type") == PROVIDER_CALL
    return kind == "toolResult" and isinstance(fields, dict)


def build_raw_part(kind: str, fields: Any, origin: Origin | None) -> ServerTool | UnknownPart:
    """Build the part for a block that goes back unchanged. Sorted fields make streamed and whole replies equal."""
    json = msgspec.json.encode({kind: fields}, order="sorted").decode()
    if not is_provider_block(kind, fields):
        return UnknownPart(json, origin)
    name = str(fields.get("name") or fields.get("type") or kind)
    call_id = fields.get("toolUseId")
    status = fields.get("status")
    return ServerTool(
        name, str(call_id) if call_id else None, str(status) if status is not None else None, json, origin
    )
