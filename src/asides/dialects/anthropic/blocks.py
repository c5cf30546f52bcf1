"""Content blocks while they grow: each kind takes its deltas and says what they are as events.

A block is one part of the reply and never flows into another one: its number is its identity. A block of a whole
response is begun and ended at once, so that nothing is read in two ways. Not here: the events around blocks (decode).
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from asides.dialects.anthropic.wire import Block, Delta, compact, is_given
from asides.values.events import Event, PartArrived, TextDelta, ThinkingDelta, ThoughtSealed, ToolCallDelta
from asides.values.messages import ServerTool, UnknownPart
from asides.values.thinking import Origin, Seal, ThoughtKind
from asides.wire.inline_tags import Splitter

SIGNATURE = "signature"
REDACTED = "redacted"
CITATIONS = "citations"
CALLER = "caller"
VIA = "thinking"
_DIRECT = b'{"type":"direct"}'

# Blocks of the provider's own doing: tools it ran, summaries of what it forgot, another model that took over.
_OWN_BLOCKS = frozenset({"compaction", "fallback", "container_upload", "search_result"})
_OWN_ENDINGS = ("_tool_result", "_tool_use")


class Growing(Protocol):
    """A block that has begun."""

    number: int

    def take(self, delta: Delta, payload: bytes, events: list[Event]) -> bool:
        """Take a delta; False when this kind of block knows no such delta."""
        ...

    def end(self, events: list[Event]) -> None:
        """The block is complete, or nothing more will come."""
        ...


class TextBlock:
    """The answer, or a stretch of it; where the model writes its thinking in tags, those are taken out."""

    __slots__ = ("_citations", "_origin", "_said", "_splitter", "number", "truncated")

    def __init__(
        self, number: int, block: Block, splitter: Splitter | None, origin: Origin, events: list[Event]
    ) -> None:
        self.number = number
        self.truncated = False
        self._origin = origin
        self._splitter = splitter
        self._said = number
        self._citations = [compact(citation) for citation in block.citations or () if is_given(citation)]
        if block.text:
            self.say(block.text, events)

    def say(self, text: str, events: list[Event]) -> None:
        """More of its text."""
        if self._splitter is None:
            events.append(TextDelta(text, self.number))
        else:
            self._split(self._splitter.feed(text), events)

    def _split(self, pieces: list[tuple[int, bool, str]], events: list[Event]) -> None:
        for segment, is_thinking, text in pieces:
            if is_thinking:
                events.append(ThinkingDelta(text, self.number + segment, "raw", "tags"))
            else:
                self._said = self.number + segment
                events.append(TextDelta(text, self._said))

    def take(self, delta: Delta, payload: bytes, events: list[Event]) -> bool:  # noqa: ARG002 - the Protocol's
        """Take a delta; False when this kind of block knows no such delta."""
        if delta.text is not None:
            if delta.text:
                self.say(delta.text, events)
        elif is_given(delta.citation):
            self._citations.append(compact(delta.citation))
        else:
            return delta.type in ("text_delta", "citations_delta")
        return True

    def end(self, events: list[Event]) -> None:
        """The block is complete, or nothing more will come."""
        if self._splitter is not None:
            self._split(self._splitter.finish(), events)
            self.truncated = self._splitter.truncated
        if self._citations:
            # They have to go back with their text: some hold an encrypted index.
            entry = b"[" + b",".join(self._citations) + b"]"
            events.append(ThoughtSealed(Seal(CITATIONS, "", self._origin, entry.decode()), self._said, source="block"))


class ThinkingBlock:
    """A thought and its signature. The signature comes last; clones send it first, empty or not at all."""

    __slots__ = ("_kind", "_origin", "_signature", "number")

    def __init__(self, number: int, block: Block, kind: ThoughtKind, origin: Origin, events: list[Event]) -> None:
        self.number = number
        self._kind: ThoughtKind = kind
        self._origin = origin
        self._signature = block.signature or ""
        if block.thinking:
            self.say(block.thinking, events)

    def say(self, text: str, events: list[Event]) -> None:
        """More of its text."""
        events.append(ThinkingDelta(text, self.number, self._kind, "block", VIA))

    @property
    def signed(self) -> bool:
        """Whether its signature has come."""
        return bool(self._signature)

    def take(self, delta: Delta, payload: bytes, events: list[Event]) -> bool:  # noqa: ARG002 - the Protocol's
        """Take a delta; False when this kind of block knows no such delta."""
        if delta.thinking is not None:
            if delta.thinking:
                self.say(delta.thinking, events)
        elif delta.signature is not None:
            # A signature comes whole; a second one replaces the first, as the maker's own SDK has it.
            self._signature = delta.signature or self._signature
        else:
            return delta.type in ("thinking_delta", "signature_delta")
        return True

    def end(self, events: list[Event]) -> None:
        """The block is complete, or nothing more will come."""
        if self._signature:
            seal = Seal(SIGNATURE, self._signature, self._origin)
            events.append(ThoughtSealed(seal, self.number, self._kind, source="block"))


class CallBlock:
    """A call of one of the caller's tools."""

    __slots__ = ("_filled", "_heard", "number")

    def __init__(self, number: int, block: Block, origin: Origin, events: list[Event]) -> None:
        self.number = number
        self._heard = False
        self._filled = compact(block.input) if is_given(block.input) else b""
        events.append(ToolCallDelta(number, block.id, block.name))
        caller = compact(block.caller) if is_given(block.caller) else _DIRECT
        if caller != _DIRECT:
            # A call out of the provider's own code goes back as such. A direct one does not say so, since older
            # endpoints refuse the field.
            events.append(ThoughtSealed(Seal(CALLER, "", origin, caller.decode()), number, source="block"))

    def take(self, delta: Delta, payload: bytes, events: list[Event]) -> bool:  # noqa: ARG002 - the Protocol's
        """Take a delta; False when this kind of block knows no such delta."""
        if delta.partial_json is None:
            return delta.type == "input_json_delta"
        if delta.partial_json:
            self._heard = True
            events.append(ToolCallDelta(self.number, arguments=delta.partial_json))
        return True

    def end(self, events: list[Event]) -> None:
        """The block is complete, or nothing more will come."""
        if not self._heard and self._filled not in (b"", b"{}"):
            events.append(ToolCallDelta(self.number, arguments=self._filled.decode()))


class RedactedBlock:
    """A thought that only the provider can read. It comes whole."""

    __slots__ = ("number",)

    def __init__(self, number: int, block: Block, origin: Origin, events: list[Event]) -> None:
        self.number = number
        if block.data:
            events.append(ThoughtSealed(Seal(REDACTED, block.data, origin), number, "hidden", "block"))

    def take(self, delta: Delta, payload: bytes, events: list[Event]) -> bool:  # noqa: ARG002 - the Protocol's
        """Take a delta; False when this kind of block knows no such delta."""
        return False

    def end(self, events: list[Event]) -> None:
        """The block is complete, or nothing more will come."""


class WholeBlock:
    """A block that is kept as it came: a tool that the provider ran itself, or something unknown."""

    __slots__ = ("_changed", "_fields", "_input", "_origin", "_own", "number")

    def __init__(self, number: int, raw: bytes, origin: Origin, events: list[Event]) -> None:
        self.number = number
        self._origin = origin
        self._fields: dict[str, Any] = msgspec.json.decode(raw, type=dict[str, Any])
        self._own = is_provider_block(self.type)
        self._input: list[str] = []
        self._changed = False
        self._tell(events)

    @property
    def type(self) -> str:
        """The provider's word for it."""
        return str(self._fields.get("type", ""))

    @property
    def known(self) -> bool:
        """Whether it is of the provider's own doing, and not something new."""
        return self._own

    def take(self, delta: Delta, payload: bytes, events: list[Event]) -> bool:  # noqa: ARG002 - the Protocol's
        """Take a delta; False when this kind of block knows no such delta."""
        if delta.partial_json is not None:
            self._input.append(delta.partial_json)
            return True
        # Whatever else comes is more of the fields of the same name.
        more = msgspec.json.decode(payload, type=_Grown).delta
        kind = more.pop("type", "")
        for name, value in more.items():
            before = self._fields.get(name)
            grows = isinstance(before, str) and isinstance(value, str)
            self._fields[name] = f"{before}{value}" if grows else value
            self._changed = True
        return bool(kind == f"{self.type}_delta")

    def end(self, events: list[Event]) -> None:
        """The block is complete, or nothing more will come."""
        text = "".join(self._input)
        if text:
            try:
                self._fields["input"] = msgspec.json.decode(text)
            except msgspec.DecodeError:
                self._fields["input"] = text
            self._changed = True
        if self._changed:
            self._tell(events)

    def _tell(self, events: list[Event]) -> None:
        events.append(PartArrived(build_raw_part(self._fields, self._origin), self.number))


class _Grown(msgspec.Struct):
    delta: dict[str, Any]


def is_provider_block(kind: str) -> bool:
    """Whether a block of this type is of the provider's own doing; a call of the caller's tools is not."""
    return kind in _OWN_BLOCKS or kind.endswith(_OWN_ENDINGS)


def build_raw_part(fields: dict[str, Any], origin: Origin | None) -> ServerTool | UnknownPart:
    """A block that goes back as it came."""
    kind = str(fields.get("type", ""))
    told = msgspec.json.encode(fields).decode()
    if not is_provider_block(kind):
        return UnknownPart(told, origin)
    call_id = fields.get("id") or fields.get("tool_use_id")
    failed = fields.get("is_error") is True or _is_error(fields.get("content"))
    return ServerTool(kind, str(call_id) if call_id else None, "failed" if failed else None, told, origin)


def _is_error(content: object) -> bool:
    return isinstance(content, dict) and str(content.get("type", "")).endswith("_error")
