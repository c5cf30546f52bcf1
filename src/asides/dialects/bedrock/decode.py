"""Decodes Converse responses into events; one decoder for streams and whole bodies.

Theory of operation. A message is a list of blocks, and the position in the list is the block's number. A stream sends
deltas with the block's index; only calls and the tools of the provider have an event that begins them. A whole body is
a list of blocks that begin and end immediately. Where a model writes its thinking in tags, neighbouring texts are read
as one, since some models stream every delta as a separate block and so cut the tags.
"""

from __future__ import annotations

from functools import partial
from typing import Any, TypeAlias

from asides.dialects.bedrock.blocks import CITATIONS, PROVIDER_CALL, CallBlock, RawBlock, ThoughtBlock
from asides.dialects.bedrock.wire import (
    DOCUMENTS,
    Block,
    BlockStart,
    Delta,
    Document,
    Output,
    ReasoningDelta,
    ServiceTier,
    ToolUse,
    WireUsage,
    build_error,
    is_exception,
    is_given,
    map_stop_reason,
    read_usage,
)
from asides.dialects.document_decoder import DocumentDecoder, RawItems
from asides.dialects.input_reports import report_more_fields
from asides.dialects.tagged_text import SEGMENTS, TaggedText
from asides.providers.provider import Target
from asides.values.events import Event, StopReason, ThoughtSealed, UsageReported
from asides.values.thinking import Seal, ThoughtKind
from asides.wire.framing import Framing
from asides.wire.lenient import raw_to_json_text

_KNOWN_DELTAS = ("text", "reasoningContent", "toolUse", "citation")

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
        self._citations: dict[int, list[bytes]] = {}
        self._last: _OpenBlock | TaggedText | None = None

    def decode_document(self, payload: bytes, events: list[Event]) -> None:
        """Decode one document."""
        document = self.read(payload, DOCUMENTS, events)
        event = document.content_block_delta
        if event is not None:
            if not self._started:
                self.start(events)
            if event.delta is not None:
                self._decode_delta(event.content_block_index, event.delta, payload, events)
        elif document.content_block_start is not None:
            self.start(events)
            self._begin_block(document.content_block_start, payload, events)
        elif document.content_block_stop is not None:
            self._finish_block(document.content_block_stop.content_block_index, events)
        elif document.message_start is not None:
            self.start(events)
        elif document.message_stop is not None:
            self._decode_stop(document.message_stop.stop_reason, events)
            self._report_more(document.message_stop.additional_model_response_fields, events)
        elif document.metadata is not None:
            self._decode_usage(document.metadata.usage, document.metadata.service_tier, events)
        elif document.output is not None:
            self._decode_response(document, document.output, payload, events)
        else:
            self._decode_other(document, payload, events)

    def _decode_other(self, document: Document, payload: bytes, events: list[Event]) -> None:
        fields = self.read_fields(payload)
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
            self._decode_usage(document.usage, document.service_tier, events)
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
            self._citations.setdefault(index, []).append(self.compact(delta.citation))
        else:
            self._decode_unknown_delta(index, payload, events)

    def _decode_unknown_delta(self, index: int, payload: bytes, events: list[Event]) -> None:
        more: dict[str, Any] = self.read_fields(payload)["contentBlockDelta"].get("delta") or {}
        for kind, value in more.items():
            if kind in _KNOWN_DELTAS:
                continue  # its type was wrong; `read` has warned about it
            block = self._open.get(index)
            if not isinstance(block, RawBlock):
                self._warn_unknown(kind, events)
                block = self._open_block(index, RawBlock(index * SEGMENTS, kind, {}, self.origin))
            block.feed(value)

    def _begin_block(self, event: BlockStart, payload: bytes, events: list[Event]) -> None:
        call = None if event.start is None else event.start.tool_use
        if call is not None and call.type != PROVIDER_CALL:
            self._begin_call(event.content_block_index, call, events)
            return
        started = self.read_fields(payload)["contentBlockStart"].get("start")
        if isinstance(started, dict) and started:
            self._begin_raw_block(event.content_block_index, started, events)

    def _begin_call(self, index: int, call: ToolUse, events: list[Event]) -> None:
        arguments = raw_to_json_text(self.clean(call.input))
        self._open_block(index, CallBlock(index * SEGMENTS, call.tool_use_id, call.name, arguments, events))

    def _open_thought(self, index: int) -> ThoughtBlock:
        self._thoughts.add(index)
        thought: ThoughtBlock = self._open_block(index, ThoughtBlock(index * SEGMENTS, self._kind, self.origin))
        return thought

    def _open_block(self, index: int, block: Any) -> Any:
        self._open[index] = block
        self._last = block
        self._text = None
        return block

    def _begin_raw_block(self, index: int, raw: dict[str, Any], events: list[Event]) -> None:
        kind, fields = next(iter(raw.items()), ("", raw))
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

    # --- a whole response -------------------------------------------------------------------------------------------

    def _decode_response(self, document: Document, output: Output, payload: bytes, events: list[Event]) -> None:
        self.start(events)
        content = output.message.content if output.message is not None else None
        raw = RawItems(lambda: self.read_fields(payload)["output"]["message"]["content"])
        for index, block in enumerate(content or ()):
            self._decode_block(index, block, raw, events)
        self._decode_stop(document.stop_reason, events)
        self._report_more(document.additional_model_response_fields, events)
        self._decode_usage(document.usage, document.service_tier, events)

    def _decode_block(self, index: int, block: Block, raw: RawItems, events: list[Event]) -> None:
        if block.reasoning_content is not None:
            self._decode_thought(index, block.reasoning_content, events)
        if block.text is not None:
            self._feed_text(index, block.text, events)
        elif block.reasoning_content is not None:
            pass
        elif block.citations_content is not None:
            for piece in block.citations_content.content or ():
                self._feed_text(index, piece.text or "", events)
            self._citations[index] = [self.compact(one) for one in block.citations_content.citations or ()]
        elif block.tool_use is not None and block.tool_use.type != PROVIDER_CALL:
            self._begin_call(index, block.tool_use, events)
        else:
            self._begin_raw_block(index, raw[index], events)
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

    def _report_more(self, fields: Any, events: list[Event]) -> None:
        if fields:
            report_more_fields(fields, partial(self.warn, events=events))

    def _decode_usage(self, usage: WireUsage | None, tier: ServiceTier | None, events: list[Event]) -> None:
        self.start(events)
        self._has_usage = True
        if usage is not None:
            events.append(UsageReported(read_usage(usage, tier)))

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
