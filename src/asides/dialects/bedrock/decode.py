"""Decodes Converse responses into events; one decoder for streams and whole bodies.

Theory of operation. A message is a list of blocks, and the position in the list is the block's number. A stream sends
deltas with the block's index; only calls and the tools of the provider have an event that begins them. A whole body is
a list of blocks that begin and end at once. Where a model writes its thinking in tags, neighbouring texts are read as
one, since some models stream every delta as a separate block and so cut the tags.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from asides.dialects.bedrock.blocks import CITATIONS, CallBlock, RawBlock, ThoughtBlock, is_provider_block
from asides.dialects.bedrock.wire import (
    BLOCKS,
    DOCUMENTS,
    WHOLES,
    BlockStart,
    Delta,
    Document,
    Output,
    ReasoningDelta,
    ToolUse,
    WholeBlock,
    WholeThoughtText,
    WireUsage,
    build_error,
    is_exception,
    is_given,
    map_stop_reason,
    read_usage,
)
from asides.dialects.document_decoder import DocumentDecoder
from asides.dialects.tagged_text import SEGMENTS, TaggedText
from asides.providers.provider import Target
from asides.values.events import Event, StopReason, TextDelta, ThoughtSealed, UsageReported
from asides.values.thinking import Seal, ThoughtKind
from asides.wire.framing import Framing
from asides.wire.lenient import BACKSLASH, compact_json, raw_to_json_text, read_any, to_json_text
from asides.wire.sse import DONE

_KNOWN_DELTAS = ("text", "reasoningContent", "toolUse", "citation")

_EMPTY = WholeBlock()
_NO_TEXT = WholeThoughtText()

_OpenBlock: TypeAlias = ThoughtBlock | CallBlock | RawBlock


class ConverseDecoder(DocumentDecoder):
    """Decodes the bytes of one response into events. Any chunking gives the same events."""

    dialect = "bedrock"

    def __init__(self, target: Target) -> None:
        super().__init__(target, Framing(lines=True, named=True))
        # Where thinking is hidden by default, thinking that is shown is a summary.
        self._kind: ThoughtKind = "summary" if target.rule.kind == "hidden" else target.rule.kind
        self._joins_texts = bool(target.facts.tags)
        self._open: dict[int, _OpenBlock] = {}
        self._has_usage = False
        self._thoughts: set[int] = set()
        self._texts: dict[int, TaggedText] = {}
        self._text: TaggedText | None = None
        """The text that the next one may continue."""
        self._plain_index: int | None = None
        """The index of a text that needs no splitting and is the last block so far; None when there is none."""
        self._plain_block = 0
        self._citations: dict[int, list[bytes]] = {}
        self._last: _OpenBlock | TaggedText | None = None

    def decode_payload(self, payload: bytes, events: list[Event]) -> None:
        """Decode one frame of the body. Only a document with a backslash or beyond ASCII can hold invalid text."""
        if BACKSLASH in payload or not payload.isascii() or payload == DONE or self._framing.form == "json":
            super().decode_payload(payload, events)
        else:
            self.payloads.append(payload)
            self.decode_document(payload, events)

    def decode_document(self, payload: bytes, events: list[Event]) -> None:
        """Decode one document."""
        try:
            document = DOCUMENTS.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            document = self.read(payload, DOCUMENTS, events)
        event = document.content_block_delta
        if event is not None:
            if not self._started:
                self.start(events)
            delta = event.delta
            if delta is None:
                return
            if event.content_block_index == self._plain_index and delta.text and delta.reasoning_content is None:
                # The usual delta: more of the same text.
                events.append(TextDelta(delta.text, self._plain_block))
            else:
                self._decode_delta(event.content_block_index, delta, payload, events)
        elif document.content_block_start is not None:
            self.start(events)
            self._begin_block(document.content_block_start, events)
        elif document.content_block_stop is not None:
            self._finish_block(document.content_block_stop.content_block_index, events)
        elif document.message_start is not None:
            self.start(events)
        elif document.message_stop is not None:
            self._decode_stop(document.message_stop.stop_reason, events)
        elif document.metadata is not None:
            self._decode_usage(document.metadata.usage, events)
        elif document.output is not None:
            self._decode_raw_blocks(document, document.output, events)
        else:
            self._decode_other(document, payload, events)

    def _decode_other(self, document: Document, payload: bytes, events: list[Event]) -> None:
        fields = read_any(payload)
        names = list(fields) if isinstance(fields, dict) else []
        exception = next((name for name in names if is_exception(name)), None)
        if exception is not None:
            self.failure = build_error(200, {}, fields[exception], payload, self.target, exception)
        elif document.error is not None:
            self.failure = build_error(200, {}, document.error, payload, self.target)
        elif "message" in names or "Message" in names:
            self.failure = build_error(200, {}, fields, payload, self.target)
        elif document.stop_reason is not None:
            self.start(events)
            self.warn("no_choices", "the server sent no message", events)
            self._decode_stop(document.stop_reason, events)
            self._decode_usage(document.usage, events)
        else:
            self.warn("unknown_event", f"an event named {', '.join(names)!r} is only in metadata['raw']", events)

    # --- blocks of a stream -----------------------------------------------------------------------------------------

    def _decode_delta(self, index: int, delta: Delta, payload: bytes, events: list[Event]) -> None:
        if delta.reasoning_content is not None:
            block = self._open.get(index)
            if not isinstance(block, ThoughtBlock):
                block = self._open_thought(index)
            block.feed(delta.reasoning_content, events)
        if delta.text is not None:
            self._feed_text(index, delta.text, events)
        elif delta.reasoning_content is not None:
            pass
        elif delta.tool_use is not None:
            call = self._open.get(index)
            if call is None:
                call = self._open_block(index, CallBlock(index * SEGMENTS, None, None, "", events))
            if isinstance(call, CallBlock):
                call.feed(delta.tool_use.input or "", events)
            elif isinstance(call, RawBlock):
                call.feed({"input": delta.tool_use.input or ""})
        elif is_given(delta.citation):
            self._citations.setdefault(index, []).append(compact_json(delta.citation))
        else:
            self._decode_unknown_delta(index, payload, events)

    def _decode_unknown_delta(self, index: int, payload: bytes, events: list[Event]) -> None:
        more: dict[str, Any] = read_any(payload)["contentBlockDelta"].get("delta") or {}
        for kind, value in more.items():
            if kind in _KNOWN_DELTAS:
                continue  # its type was wrong; `read` has warned about it
            block = self._open.get(index)
            if not isinstance(block, RawBlock):
                self._warn_unknown(kind, events)
                block = self._open_block(index, RawBlock(index * SEGMENTS, kind, {}, self.origin))
            block.feed(value)

    def _begin_block(self, event: BlockStart, events: list[Event]) -> None:
        index = event.content_block_index
        started: Any = read_any(event.start) if is_given(event.start) else {}
        if not isinstance(started, dict) or not started:
            return
        kind, fields = next(iter(started.items()))
        if kind == "toolUse" and not is_provider_block(kind, fields):
            call = self.read(bytes(event.start), BLOCKS, events).tool_use or ToolUse()
            arguments = raw_to_json_text(call.input)
            self._open_block(index, CallBlock(index * SEGMENTS, call.tool_use_id, call.name, arguments, events))
        else:
            self._begin_raw_block(index, kind, fields, events)

    def _open_thought(self, index: int) -> ThoughtBlock:
        self._thoughts.add(index)
        thought: ThoughtBlock = self._open_block(index, ThoughtBlock(index * SEGMENTS, self._kind, self.origin))
        return thought

    def _open_block(self, index: int, block: Any) -> Any:
        self._open[index] = block
        self._last = block
        self._text = self._plain_index = None
        return block

    def _begin_raw_block(self, index: int, kind: str, fields: Any, events: list[Event]) -> None:
        block = self._open_block(index, RawBlock(index * SEGMENTS, kind, fields, self.origin))
        if not block.is_known:
            self._warn_unknown(kind, events)

    def _warn_unknown(self, kind: str, events: list[Event]) -> None:
        self.warn("unknown_content_part", f"a content block {kind!r} is not known; it is stored unchanged", events)

    def _finish_block(self, index: int, events: list[Event]) -> None:
        block = self._open.pop(index, None)
        if isinstance(block, (ThoughtBlock, RawBlock)):
            block.finish(events)

    def _feed_text(self, index: int, text: str, events: list[Event]) -> None:
        if not text:
            return
        running = self._texts.get(index)
        if running is None:
            running = self._text if self._joins_texts else None
        if running is None:
            # A text after a thought of the same index is another block.
            first_block = index * SEGMENTS + (index in self._thoughts)
            running = TaggedText(first_block, self.target, first=self._last is None)
        self._texts[index] = self._text = self._last = running
        running.feed(text, events)
        if running.plain_block is not None:
            self._plain_index, self._plain_block = index, running.plain_block

    # --- a whole response -------------------------------------------------------------------------------------------

    def decode_whole(self, payload: bytes, events: list[Event]) -> bool:
        """Decode a whole body that has only fields which are read."""
        try:
            whole = WHOLES.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        content = whole.output.message.content
        if _EMPTY in content:
            return False
        self.payloads.append(payload)
        self.start(events)
        for index, block in enumerate(content):
            thought = block.reasoning_content
            if thought is not None:
                inner = thought.reasoning_text or _NO_TEXT
                self._decode_thought(
                    index, ReasoningDelta(inner.text, inner.signature, thought.redacted_content), events
                )
            if block.text is not None:
                self._feed_text(index, block.text, events)
            elif thought is None and block.tool_use is not None:
                call = block.tool_use
                arguments = to_json_text(call.input)
                self._open_block(index, CallBlock(index * SEGMENTS, call.tool_use_id, call.name, arguments, events))
        self._decode_stop(whole.stop_reason, events)
        self._decode_usage(whole.usage, events)
        return True

    def _decode_raw_blocks(self, document: Document, output: Output, events: list[Event]) -> None:
        self.start(events)
        content = output.message.content if output.message is not None else None
        for index, raw in enumerate(content or ()):
            self._decode_block(index, bytes(raw), events)
        self._decode_stop(document.stop_reason, events)
        self._decode_usage(document.usage, events)

    def _decode_block(self, index: int, raw: bytes, events: list[Event]) -> None:
        block = self.read(raw, BLOCKS, events)
        if block.reasoning_content is not None:
            self._decode_thought(index, block.reasoning_content, events)
        if block.text is not None:
            self._feed_text(index, block.text, events)
        elif block.reasoning_content is not None:
            pass
        elif block.citations_content is not None:
            for piece in block.citations_content.content or ():
                self._feed_text(index, piece.text or "", events)
            self._citations[index] = [compact_json(one) for one in block.citations_content.citations or ()]
        elif block.tool_use is not None and block.tool_use.type != "server_tool_use":
            call = block.tool_use
            arguments = raw_to_json_text(call.input)
            self._open_block(index, CallBlock(index * SEGMENTS, call.tool_use_id, call.name, arguments, events))
        else:
            value = read_any(raw)
            kind, fields = next(iter(value.items())) if isinstance(value, dict) and value else ("", value)
            self._begin_raw_block(index, kind, fields, events)
            self._finish_block(index, events)

    def _decode_thought(self, index: int, thought: ReasoningDelta | str | list[Any], events: list[Event]) -> None:
        self._open_thought(index).feed(thought, events)
        self._finish_block(index, events)

    # --- the end ----------------------------------------------------------------------------------------------------

    def _decode_stop(self, raw: str | None, events: list[Event]) -> None:
        self.start(events)
        self.stop = StopReason("unknown" if raw is None else map_stop_reason(raw), raw)
        if raw is not None and self.stop.reason in ("unknown", "error"):
            code = "unknown_stop_reason" if self.stop.reason == "unknown" else "malformed_output"
            self.warn(code, f"the stop reason is {raw!r}", events)

    def _decode_usage(self, usage: WireUsage | None, events: list[Event]) -> None:
        self.start(events)
        self._has_usage = True
        if usage is not None:
            events.append(UsageReported(read_usage(usage)))

    @property
    def done(self) -> bool:
        """Whether nothing follows: the counts come last, after the stop reason."""
        return self.stop is not None and self._has_usage

    def flush(self, events: list[Event]) -> None:
        """Emit the held events: no more documents come."""
        self.ended = self.stop is not None
        for index in list(self._open):
            self._finish_block(index, events)
        for text in {id(text): text for text in self._texts.values()}.values():
            text.finish(events, cut=self.is_cut_off)
            self.truncated_thought = self.truncated_thought or text.truncated
        for index, citations in self._citations.items():
            cited = self._texts.get(index)
            if citations and cited is not None:
                entry = (b"[" + b",".join(citations) + b"]").decode()
                events.append(
                    ThoughtSealed(Seal(CITATIONS, "", self.origin, entry), cited.last_text_block, source="block")
                )
        self.ended = self.stop is not None
        last = self._last
        if self.stop is not None and self.stop.reason == "length" and isinstance(last, ThoughtBlock):
            # A signature ends a thought; without one the token limit cut it.
            self.truncated_thought = not last.is_sealed
