"""Decodes messages into events; one decoder for streams and whole bodies.

Theory of operation. A message is a list of blocks, and the position in the list is the block's number. A stream begins
a block, sends its deltas and ends it, each with the block's index. Blocks may overlap: some servers begin the answer
before they end the thought. An index that is used again is another block and gets another number. A whole body is a
list of blocks that begin and end immediately.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from asides.dialects.anthropic.blocks import (
    CONTAINER,
    CallBlock,
    OpenBlock,
    RawBlock,
    RedactedBlock,
    TextBlock,
    ThinkingBlock,
)
from asides.dialects.anthropic.wire import (
    DOCUMENTS,
    Block,
    Container,
    Delta,
    Document,
    Message,
    StopDetails,
    UsageSoFar,
    WireUsage,
    build_error,
    map_stop_reason,
)
from asides.dialects.document_decoder import DocumentDecoder, RawItems
from asides.dialects.input_reports import report_edits, report_transformations
from asides.dialects.tagged_text import SEGMENTS
from asides.providers.provider import Target
from asides.values.errors import ConnectionLost, ProtocolError
from asides.values.events import Event, RefusalDelta, ReplyStarted, StopReason, ThoughtSealed, UsageReported
from asides.values.thinking import Seal, ThoughtKind
from asides.wire.framing import Framing

# The type of the block that a delta belongs to, for servers that do not begin the block.
_BLOCK_OF_DELTA = {
    "text_delta": "text",
    "citations_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_use",
}


class MessagesDecoder(DocumentDecoder):
    """Decodes the bytes of one response into events. Any chunking gives the same events."""

    dialect = "anthropic"
    stop_completes = True

    def __init__(self, target: Target) -> None:
        super().__init__(target, Framing())
        self._id: str | None = None
        self._usage = UsageSoFar()
        # Where thinking is hidden by default, thinking that is shown is a summary.
        self._kind: ThoughtKind = "summary" if target.rule.kind == "hidden" else target.rule.kind
        self._stride = SEGMENTS if target.facts.tags else 1
        self._places: set[int] = set()
        self._last_place: int | None = None
        self._open: dict[int, OpenBlock] = {}
        self._last: OpenBlock | None = None
        self._truncated = False
        self._container = ""
        self._runner: int | None = None
        """The last block of a tool: it carries the container that the provider wants back."""

    def flush(self, events: list[Event]) -> None:
        """Finish the blocks that the server did not end."""
        for index in list(self._open):
            self._finish_block(index, events)
        if self._container and self._runner is not None:
            entry = msgspec.json.encode(self._container).decode()
            events.append(ThoughtSealed(Seal(CONTAINER, "", self.origin, entry), self._runner, source="block"))
        for used in self._usage.list_others():
            self.warn("not_counted", f"{used} for this reply, which usage and cost leave out", events)
        self.truncated_thought = self._truncated or self._is_cut_in_thought()

    def _is_cut_in_thought(self) -> bool:
        # A signature ends a thought; without one the token limit cut it.
        last = self._last
        cut = self.stop is not None and self.stop.reason == "length"
        return cut and isinstance(last, ThinkingBlock) and not last.is_signed

    # --- one document -----------------------------------------------------------------------------------------------

    def decode_document(self, payload: bytes, events: list[Event]) -> None:
        """Decode one document: an event of a stream, a message or an error."""
        document = self.read(payload, DOCUMENTS, events)
        if document.type != "content_block_delta":
            self._decode_frame(document, payload, events)
            return
        delta = document.delta
        if delta is None:
            return
        text = delta.text
        if text is not None and (type(text) is not str or delta.type == "thinking_delta"):
            self._move_odd_text(delta, events)
        block = self._open.get(document.index)
        if block is None or not block.feed(delta, payload, events):
            self._begin_by_delta(document.index, delta, payload, events)

    def _decode_frame(self, document: Document, payload: bytes, events: list[Event]) -> None:
        """Decode a document other than a delta."""
        match document.type:
            case "content_block_start":
                if document.content_block is None:
                    self.warn("malformed_field", "a block has an unexpected type and was left out", events)
                else:
                    self._begin_block(document.index, document.content_block, payload, events)
            case "content_block_stop":
                self._finish_block(document.index, events)
            case "ping":
                pass
            case "message_start":
                self._decode_start(document.message, payload, events)
            case "message_delta":
                self._decode_end(document.delta or Delta(), document.usage, events)
                self._report_input(document, events)
            case "message_stop":
                self.ended = True
            case "message":
                self._decode_message(document, payload, events)
            case kind:
                self._decode_other(kind, document, payload, events)

    def _decode_other(self, kind: str, document: Document, payload: bytes, events: list[Event]) -> None:
        if document.error is not None or kind == "error":
            error: Any = self.read_fields(payload) if document.error is None else document.error
            self.failure = build_error(200, {}, error, payload, self.target)
        elif document.content is not None:
            self._decode_message(document, payload, events)
        elif not kind and document.message is not None:
            # One cloud sends errors with only a message.
            self.failure = build_error(200, {}, self.read_fields(payload), payload, self.target)
        else:
            self.warn("unknown_event", f"an event of type {kind!r} is only in metadata['raw']", events)

    def _start(self, message: Message | Document, events: list[Event]) -> None:
        if self._started:
            return
        self._id = message.id
        self.emit_start(ReplyStarted(message.model or self.target.model or None, message.id, self.origin), events)

    def _decode_start(self, message: Message | str | None, payload: bytes, events: list[Event]) -> None:
        if not isinstance(message, Message):
            raise ProtocolError("message_start has no message.", payload=payload)
        if self._started and (message.id is None or self._id is None or message.id == self._id):
            self.warn("repeated_start", "the server began the same message twice", events)
            return
        if self._started and (self.ended or self.stop is not None):
            self.warn("second_message", "the server sent more after the end; it is only in metadata['raw']", events)
            return
        if self._started:
            # A proxy lost its upstream and restarted on the same stream. Two halves do not make a reply: the provider
            # would refuse the signed thoughts of both.
            self.failure = ConnectionLost(
                f"{self.target.provider.name} broke off and began another message on the same stream; try again "
                "(.partial has the first part)."
            )
            return
        self._decode_message(message, payload, events)

    def _decode_message(self, message: Message | Document, payload: bytes, events: list[Event]) -> None:
        self._start(message, events)
        content = message.content
        # Whole blocks begin and end immediately. Some servers send the text alone.
        raw = RawItems(lambda: _find_content(self.read_fields(payload)))
        for place, block in enumerate([Block("text", content)] if isinstance(content, str) else content or ()):
            number = self._take_place(self._find_free_place())
            self._last = self._open_block(number, block, partial(raw.__getitem__, place), events)
            self._close_block(self._last, events)
        self._read_container(message.container)
        self._report_input(message, events)
        if message.usage is not None:
            events.append(UsageReported(self._usage.merge(message.usage)))
        if message.stop_reason is not None:
            self._decode_stop(message.stop_reason, message.stop_details, events)

    def _decode_end(self, delta: Delta, usage: WireUsage | None, events: list[Event]) -> None:
        self._start(Message(), events)
        self._read_container(delta.container)
        if usage is not None:
            events.append(UsageReported(self._usage.merge(usage)))
        if delta.stop_reason is not None:
            self._decode_stop(delta.stop_reason, delta.stop_details, events)

    def _report_input(self, message: Message | Document, events: list[Event]) -> None:
        if message.input_transformations:
            report_transformations(message.input_transformations, partial(self.warn, events=events))
        if message.context_management:
            report_edits(message.context_management, partial(self.warn, events=events))

    def _read_container(self, container: Container | None) -> None:
        if container is not None and container.id:
            self._container = container.id

    def _decode_stop(self, raw: str, details: StopDetails | None, events: list[Event]) -> None:
        self.stop = StopReason(map_stop_reason(raw), raw)
        if self.stop.reason == "unknown":
            self.warn("unknown_stop", f"the stop reason {raw!r} is not known", events)
        if details is not None and details.explanation:
            for index in list(self._open):
                self._finish_block(index, events)
            events.append(RefusalDelta(details.explanation, self._find_free_place() * self._stride))

    # --- blocks -----------------------------------------------------------------------------------------------------

    def _find_free_place(self) -> int:
        """Return the position after all others."""
        return 0 if self._last_place is None else self._last_place + 1

    def _take_place(self, place: int) -> int:
        """Reserve a position for a block, and return its number."""
        self._places.add(place)
        self._last_place = place if self._last_place is None else max(place, self._last_place)
        return place * self._stride

    def _begin_block(self, index: int, block: Block, payload: bytes, events: list[Event]) -> None:
        self._start(Message(), events)
        if index in self._open:
            self._finish_block(index, events)
        # The position is the index, or the first free one if the index was used before.
        number = self._take_place(index if index not in self._places else self._find_free_place())
        self._open[index] = self._last = self._open_block(
            number, block, lambda: self.read_fields(payload)["content_block"], events
        )

    def _open_block(
        self, number: int, block: Block, find_raw: Callable[[], dict[str, Any]], events: list[Event]
    ) -> OpenBlock:
        """Open a block. `find_raw` returns it as the document has it."""
        match block.type:
            case "text":
                if block.text is not None and type(block.text) is not str:
                    self.warn("malformed_field", "text has an unexpected type and was left out", events)
                    block.text = None
                return TextBlock(number, block, self.target, self.compact, events)
            case "thinking":
                return ThinkingBlock(number, block, self._kind, self.origin, events)
            case "tool_use":
                self._runner = number
                return CallBlock(number, block, self.origin, self.compact, events)
            case "redacted_thinking":
                return RedactedBlock(number, block, self.origin, events)
            case kind:
                self._runner = number
                raw_block = RawBlock(number, find_raw(), self.origin, self.read_fields, events)
                if not raw_block.is_known:
                    self.warn("unknown_part", f"a block of type {kind!r} is not known; it is stored unchanged", events)
                return raw_block

    def _begin_by_delta(self, index: int, delta: Delta, payload: bytes, events: list[Event]) -> None:
        """Begin the block that a delta shows: it was not begun, or begun with another type."""
        kind = _BLOCK_OF_DELTA.get(delta.type) or ("thinking" if delta.thinking is not None else None)
        if kind is None:
            self.warn("unknown_delta", f"a delta of type {delta.type!r} is only in metadata['raw']", events)
            return
        self._begin_block(index, Block(kind), payload, events)
        self._open[index].feed(delta, payload, events)

    def _move_odd_text(self, delta: Delta, events: list[Event]) -> None:
        """Move text that a delta of thinking has under the name of the answer; leave out text that is not a string."""
        if delta.type == "thinking_delta":
            delta.thinking = delta.thinking or delta.text
        else:
            self.warn("malformed_field", "delta.text has an unexpected type and was left out", events)
        delta.text = None

    def _finish_block(self, index: int, events: list[Event]) -> None:
        block = self._open.pop(index, None)
        if block is not None:
            self._close_block(block, events)

    def _close_block(self, block: OpenBlock, events: list[Event]) -> None:
        block.finish(events)
        if isinstance(block, TextBlock):
            self._truncated = block.truncated


def _find_content(document: dict[str, Any]) -> Any:
    """Return the content of a whole message, or of one that begins."""
    return document["message"]["content"] if document.get("content") is None else document["content"]
