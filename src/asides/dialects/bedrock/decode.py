"""Converse in, events out: one decoder for streams and whole bodies.

Theory of operation. A message is a list of blocks, and the place in the list is a block's number. A stream sends deltas
with the block's index; only calls and the provider's own tools have an event that begins them. A whole body is a list
of blocks that begin and end at once. Where a model writes its thinking in tags, neighbouring texts are read as one,
since some stream every delta as a block of its own, and cut through the tags so.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from asides.dialects.bedrock.blocks import CITATIONS, CallBlock, KeptBlock, ThoughtBlock, is_provider_block
from asides.dialects.bedrock.stop_and_errors import error_of, is_exception, unified_stop
from asides.dialects.bedrock.wire import (
    BLOCKS,
    DOCUMENTS,
    BlockDelta,
    BlockStart,
    Document,
    Output,
    ReasoningDelta,
    ToolUse,
    WireUsage,
    is_given,
    usage_of,
)
from asides.dialects.document_decoder import DocumentDecoder
from asides.dialects.tagged_text import SEGMENTS, TaggedText
from asides.providers.provider import Target
from asides.values.events import Event, StopReason, ThoughtSealed, UsageReported
from asides.values.thinking import Seal, ThoughtKind
from asides.wire.framing import Framing

_KNOWN_DELTAS = ("text", "reasoningContent", "toolUse", "citation")

_Growing: TypeAlias = ThoughtBlock | CallBlock | KeptBlock


class ConverseDecoder(DocumentDecoder):
    """Bytes of one response in, events out. Any chunking gives the same events."""

    dialect = "bedrock"

    def __init__(self, target: Target) -> None:
        super().__init__(target, Framing(lines=True, named=True))
        rule = target.rule
        # Where thinking is hidden unless asked for, what is shown is a summary all the same.
        self._kind: ThoughtKind = "summary" if rule.kind == "hidden" else rule.kind
        self._joins_texts = bool(target.facts.tags)
        self._open: dict[int, _Growing] = {}
        self._counted = False
        self._texts: dict[int, TaggedText] = {}
        self._text: TaggedText | None = None
        """The text that the next one may go on with."""
        self._citations: dict[int, list[bytes]] = {}
        self._last: _Growing | TaggedText | None = None

    def take(self, payload: bytes, events: list[Event]) -> None:
        """Read one document."""
        document = self.read(payload, DOCUMENTS, events)
        delta = document.content_block_delta
        if delta is not None:
            self.start(events)
            self._take_delta(delta, payload, events)
        elif document.content_block_start is not None:
            self.start(events)
            self._begin_block(document.content_block_start, events)
        elif document.content_block_stop is not None:
            self._end_block(document.content_block_stop.content_block_index, events)
        elif document.message_start is not None:
            self.start(events)
        elif document.message_stop is not None:
            self._take_stop(document.message_stop.stop_reason, events)
        elif document.metadata is not None:
            self._take_usage(document.metadata.usage, events)
        elif document.output is not None:
            self._take_whole(document, document.output, events)
        else:
            self._take_other(document, payload, events)

    def _take_other(self, document: Document, payload: bytes, events: list[Event]) -> None:
        told = msgspec.json.decode(payload)
        names = list(told) if isinstance(told, dict) else []
        exception = next((name for name in names if is_exception(name)), None)
        if exception is not None:
            self.failure = error_of(200, {}, told[exception], payload, self.target, exception)
        elif document.error is not None:
            self.failure = error_of(200, {}, document.error, payload, self.target)
        elif "message" in names or "Message" in names:
            self.failure = error_of(200, {}, told, payload, self.target)
        elif document.stop_reason is not None:
            self.start(events)
            self.warn("no_choices", "the server sent no message", events)
            self._take_stop(document.stop_reason, events)
            self._take_usage(document.usage, events)
        else:
            self.warn("unknown_event", f"an event named {', '.join(names)!r} is only in metadata['raw']", events)

    # --- blocks of a stream -----------------------------------------------------------------------------------------

    def _take_delta(self, told: BlockDelta, payload: bytes, events: list[Event]) -> None:
        index, delta = told.content_block_index, told.delta
        if delta is None:
            return
        if delta.text is not None:
            self._say(index, delta.text, events)
        elif delta.reasoning_content is not None:
            block = self._open.get(index)
            if not isinstance(block, ThoughtBlock):
                block = self._begin(index, ThoughtBlock(index * SEGMENTS, self._kind, self.origin))
            block.take(delta.reasoning_content, events)
        elif delta.tool_use is not None:
            call = self._open.get(index)
            if call is None:
                call = self._begin(index, CallBlock(index * SEGMENTS, ToolUse(), events))
            if isinstance(call, CallBlock):
                call.take(delta.tool_use.input or "", events)
            elif isinstance(call, KeptBlock):
                call.take({"input": delta.tool_use.input or ""})
        elif is_given(delta.citation):
            self._citations.setdefault(index, []).append(_compact(delta.citation))
        else:
            self._take_unknown_delta(index, payload, events)

    def _take_unknown_delta(self, index: int, payload: bytes, events: list[Event]) -> None:
        more: dict[str, Any] = msgspec.json.decode(payload)["contentBlockDelta"].get("delta") or {}
        for kind, value in more.items():
            if kind in _KNOWN_DELTAS:
                continue  # it was of a wrong type, and that was told
            block = self._open.get(index)
            if not isinstance(block, KeptBlock):
                self._note_unknown(kind, events)
                block = self._begin(index, KeptBlock(index * SEGMENTS, kind, {}, self.origin))
            block.take(value)

    def _begin_block(self, told: BlockStart, events: list[Event]) -> None:
        index = told.content_block_index
        started: Any = msgspec.json.decode(told.start) if is_given(told.start) else {}
        if not isinstance(started, dict) or not started:
            return
        kind, fields = next(iter(started.items()))
        if kind == "toolUse" and not is_provider_block(kind, fields):
            call = self.read(bytes(told.start), BLOCKS, events).tool_use
            self._begin(index, CallBlock(index * SEGMENTS, call or ToolUse(), events))
        else:
            self._keep(index, kind, fields, events)

    def _begin(self, index: int, block: Any) -> Any:
        self._open[index] = block
        self._last = block
        self._text = None
        return block

    def _keep(self, index: int, kind: str, fields: Any, events: list[Event]) -> None:
        block = self._begin(index, KeptBlock(index * SEGMENTS, kind, fields, self.origin))
        if not block.known:
            self._note_unknown(kind, events)

    def _note_unknown(self, kind: str, events: list[Event]) -> None:
        self.warn("unknown_content_part", f"a content block {kind!r} is kept as it came", events)

    def _end_block(self, index: int, events: list[Event]) -> None:
        block = self._open.pop(index, None)
        if isinstance(block, (ThoughtBlock, KeptBlock)):
            block.end(events)

    def _say(self, index: int, text: str, events: list[Event]) -> None:
        if not text:
            return
        said = self._texts.get(index)
        if said is None:
            said = self._text if self._joins_texts else None
        if said is None:
            said = TaggedText(index * SEGMENTS, self.target, "raw", first=self._last is None)
        self._texts[index] = self._text = self._last = said
        said.say(text, events)

    # --- a whole response -------------------------------------------------------------------------------------------

    def _take_whole(self, document: Document, output: Output, events: list[Event]) -> None:
        self.start(events)
        content = output.message.content if output.message is not None else None
        for index, raw in enumerate(content or ()):
            self._take_block(index, bytes(raw), events)
        self._take_stop(document.stop_reason, events)
        self._take_usage(document.usage, events)

    def _take_block(self, index: int, raw: bytes, events: list[Event]) -> None:
        block = self.read(raw, BLOCKS, events)
        if block.text is not None:
            self._say(index, block.text, events)
        elif block.reasoning_content is not None:
            told = block.reasoning_content
            thought = self._begin(index, ThoughtBlock(index * SEGMENTS, self._kind, self.origin))
            if told.reasoning_text is not None:
                thought.take(ReasoningDelta(told.reasoning_text.text, told.reasoning_text.signature), events)
            thought.take(ReasoningDelta(redacted_content=told.redacted_content), events)
            self._end_block(index, events)
        elif block.citations_content is not None:
            for piece in block.citations_content.content or ():
                self._say(index, piece.text or "", events)
            self._citations[index] = [_compact(one) for one in block.citations_content.citations or ()]
        elif block.tool_use is not None and block.tool_use.type != "server_tool_use":
            self._begin(index, CallBlock(index * SEGMENTS, block.tool_use, events))
        else:
            kept = msgspec.json.decode(raw)
            kind, fields = next(iter(kept.items())) if isinstance(kept, dict) and kept else ("", kept)
            self._keep(index, kind, fields, events)
            self._end_block(index, events)

    # --- the end ----------------------------------------------------------------------------------------------------

    def _take_stop(self, raw: str | None, events: list[Event]) -> None:
        self.start(events)
        self.stop = StopReason("unknown" if raw is None else unified_stop(raw), raw)
        if raw is not None and self.stop.reason in ("unknown", "error"):
            code = "unknown_stop_reason" if self.stop.reason == "unknown" else "malformed_output"
            self.warn(code, f"the stop reason is {raw!r}", events)

    def _take_usage(self, usage: WireUsage | None, events: list[Event]) -> None:
        self.start(events)
        self._counted = True
        if usage is not None:
            events.append(UsageReported(usage_of(usage)))

    @property
    def done(self) -> bool:
        """Whether the server said that nothing follows: counts come behind the stop, and last."""
        return self.stop is not None and self._counted

    def flush(self, events: list[Event]) -> None:
        """What was held for certainty, now that nothing more comes."""
        for index in list(self._open):
            self._end_block(index, events)
        for text in {id(text): text for text in self._texts.values()}.values():
            text.end(events, cut=self.broke_off)
            self.truncated_thought = self.truncated_thought or text.truncated
        for index, citations in self._citations.items():
            cited = self._texts.get(index)
            if citations and cited is not None:
                entry = (b"[" + b",".join(citations) + b"]").decode()
                events.append(ThoughtSealed(Seal(CITATIONS, "", self.origin, entry), cited.last_block, source="block"))
        self.ended = self.stop is not None
        last = self._last
        if self.stop is not None and self.stop.reason == "length" and isinstance(last, ThoughtBlock):
            # A signature ends a thought; without one, the limit did.
            self.truncated_thought = not last.sealed


def _compact(raw: msgspec.Raw) -> bytes:
    return msgspec.json.encode(msgspec.json.decode(raw))
