"""Decodes chat completions into events; one decoder for streams and whole bodies.

Theory of operation. A chat message has one reasoning field, one content and a list of calls, without an order between
them. So blocks are numbered by their kind: the thought of the field first (0, or one number for each entry of
`reasoning_details` when only those carry the text), then the segments of the content, the refusal, and the calls by
index. A stream and a whole body then fold to the same reply. A whole body is a stream of one chunk.

Not here: thinking outside the content (thinking_decoder), and calls from their pieces (tool_calls).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from asides.dialects.document_decoder import DocumentDecoder
from asides.dialects.openai_chat.thinking_decoder import FIELD_BLOCK, ThinkingDecoder, emit_part, is_thinking_part
from asides.dialects.openai_chat.tool_calls import ToolCalls
from asides.dialects.openai_chat.wire import (
    NOTHING,
    WireUsage,
    build_error,
    find_plain_decode,
    find_reader,
    find_unknown_field,
    map_stop_reason,
    read_usage,
)
from asides.dialects.tagged_text import TaggedText, is_untagged
from asides.providers.provider import Target
from asides.values.errors import ProtocolError
from asides.values.events import (
    Event,
    RefusalDelta,
    StopReason,
    TextDelta,
    ThinkingDelta,
    UsageReported,
)
from asides.values.thinking import ThoughtKind
from asides.wire.deduplicate import SnapshotFilter
from asides.wire.framing import Framing
from asides.wire.lenient import INVALID_TEXT, find_mismatch, read_document, remove_mismatch
from asides.wire.sse import DONE

CONTENT_BLOCK = 1_000
REFUSAL_BLOCK = 500_000
CALL_BLOCK = 1_000_000
# The first bytes of a stream that has sent no event yet.
_KEEP_ALIVE_STARTS = (b":", b"event:", b"id:", b"retry:")


class ChatDecoder(DocumentDecoder):
    """Decodes the bytes of one response into events. Any chunking gives the same events."""

    dialect = "openai_chat"
    reads_past_errors = True
    stop_completes = True

    _cut_document = False
    _usage: WireUsage | None = None
    _calls: ToolCalls | None = None
    _plain_field: str | None = None
    # These four are made by `_open_message`.
    _thinking: ThinkingDecoder | None = None
    _content: TaggedText
    _snapshots: SnapshotFilter | None
    _show: Callable[[str], None]

    def __init__(self, target: Target) -> None:
        super().__init__(target, Framing())
        facts, kind = target.facts, target.rule.kind
        self._reader = find_reader(facts.thinking_in, facts.heuristics)
        self._decode = self._reader.decode
        self._choice: int | None = None
        self._kind: ThoughtKind = "raw" if kind == "hidden" else kind

    def _open_message(self) -> ThinkingDecoder:
        """Make what the pieces of a message need; most whole messages do not need it."""
        shown: list[str] = []
        self._show = shown.append
        self._snapshots = SnapshotFilter(snapshots=self.target.quirks.snapshots)
        self._content = TaggedText(CONTENT_BLOCK, self.target, self._kind, field_thinking=shown)
        self._thinking = thinking = ThinkingDecoder(self.target, self._kind, shown, self._content.thinking)
        return thinking

    def fail_without_documents(self) -> None:
        """Set the failure of a body without any document; the end mark alone, or a cut document, is a reply cut off."""
        head = self._framing.head
        if self.ended or self._cut_document:
            if not self.is_complete():
                self.fail_cut_off()
        elif head and not head.startswith(_KEEP_ALIVE_STARTS):
            self.fail_unrecognised()
        else:
            self.fail_lost("sent nothing but keep-alive lines" if head else "sent an empty body")

    def fail_at_end(self, problem: ProtocolError) -> None:
        """Drop a last document that was cut off: the reply may have stopped before it. Anything else is a failure."""
        self._cut_document = self._framing.is_cut_document(problem.payload)
        if self._cut_document:
            self.payloads.pop()
        else:
            self.fail(problem)

    # --- one document -----------------------------------------------------------------------------------------------

    def decode_payload(self, payload: bytes, events: list[Event]) -> None:
        """Decode one document."""
        if payload == DONE:
            self.ended = True
            return
        self.payloads.append(payload)
        try:
            chunk = self._decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError):
            chunk = self._decode_leniently(payload, events)
        choices = chunk.choices
        if choices:
            if not self._started:
                self._start(chunk, events)
            if self._framing.form != "json" or len(choices) > 1 or not self._decode_plain_message(choices[0], events):
                for choice in choices:
                    if choice.index == self._choice or self._is_first_choice(choice, events):
                        self._decode_choice(choice, events)
        else:
            self._decode_without_choices(chunk, events)
        if chunk.error and self.failure is None:
            self.failure = build_error(200, {}, chunk.error, payload, self.target)
        usage = chunk.usage
        if usage is None and chunk.x_groq is not None:
            usage = chunk.x_groq.usage
        if usage is not None:
            self._decode_usage(usage, chunk, events)
        if self._thinking is not None and self._thinking.sole_field is not self._plain_field:
            self._choose_plain()

    def decode_plain(self, document: Any, events: list[Event]) -> bool:
        """Emit the text and the thinking of a chunk that has nothing else."""
        choice = document.choices[0]
        if choice.index != self._choice:
            return False
        delta = choice.delta
        thinking = delta.thinking
        if thinking:
            if self._plain_field is None:
                return False
            self._show(thinking)
            events.append(ThinkingDelta(thinking, FIELD_BLOCK, self._kind, "field", self._plain_field))
        text = delta.content
        if text:
            block = self._content.plain_block
            if self._snapshots is not None:
                self._decode_text(text, events)
            elif block is not None:
                events.append(TextDelta(text, block))
            else:
                self._content.feed(text, events)
        return True

    def _choose_plain(self) -> None:
        """Choose the type of plain chunks: with the one field that carries the thinking, once that is known."""
        if self._framing.form == "json":
            return
        self._plain_field = (self._thinking or self._open_message()).sole_field
        fields = self._reader.thinking_fields
        if fields:
            self.plain = find_plain_decode(self._reader, self._plain_field or fields[0])

    def _start(self, chunk: Any, events: list[Event]) -> None:
        model, reply_id = chunk.model, chunk.id
        self.start(events, model if isinstance(model, str) else None, str(reply_id) if reply_id else None)
        self._choose_plain()

    def _is_first_choice(self, choice: Any, events: list[Event]) -> bool:
        if self._choice is None:
            self._choice = choice.index
            return True
        self.warn(
            "other_choices", "only the first of several choices is the reply; metadata['raw'] has the others", events
        )
        return False

    def _decode_without_choices(self, chunk: Any, events: list[Event]) -> None:
        """Decode a document without choices: an error in one of its many shapes, or nothing at all."""
        if chunk.base_resp is not None and chunk.base_resp.status_code:
            chunk.error = {"message": chunk.base_resp.status_msg, "code": chunk.base_resp.status_code}
        elif chunk.error is None and (chunk.message or chunk.detail) and chunk.usage is None and self._is_error(chunk):
            chunk.error = {"message": chunk.message or chunk.detail, "code": chunk.code, "type": chunk.type}
        if not chunk.error and not self.streamed:
            self._start(chunk, events)
            self.warn("no_choices", "the server sent no choice", events)
        elif not chunk.error and chunk.choices is None and chunk.usage is None and chunk.x_groq is None:
            self.warn("unknown_event", "a document without choices is only in metadata['raw']", events)

    def _is_error(self, chunk: Any) -> bool:
        # In a stream a progress notice has a message too; an error has the type "error", or a code.
        return not self.streamed or bool(chunk.code) or "error" in (chunk.type, chunk.object)

    def _decode_plain_message(self, choice: Any, events: list[Event]) -> bool:
        """Decode the one message of a whole body, if its text has no tags and its thinking is in one known field."""
        message = choice.message
        if (
            message is None
            or message.reasoning_details
            or message.refusal
            or message.extra_content is not NOTHING
            or message.thought_signature
            or message.reasoning_opaque
            or choice.usage is not None
            or choice.error
        ):
            return False
        reader, facts, found = self._reader, self.target.facts, list[tuple[str, str]]()
        values = reader.thinking_values(message)
        if values != reader.no_thinking:
            found = [(name, value) for name, value in zip(reader.thinking_fields, values, strict=True) if value]
            if len(found) > 1 or any(type(value) is not str or name not in facts.thinking_in for name, value in found):
                return False
        text = message.content
        if text and (type(text) is not str or not is_untagged(text, facts, field_thinking=bool(found))):
            return False
        for name, value in found:
            events.append(ThinkingDelta(value, FIELD_BLOCK, self._kind, "field", name))
        if text:
            events.append(TextDelta(text, CONTENT_BLOCK))
        if message.tool_calls is not None or message.function_call is not None:
            self._decode_calls(message, events)
        if choice.finish_reason is not None:
            self._decode_finish(choice.finish_reason, events)
        return True

    def _decode_calls(self, message: Any, events: list[Event]) -> None:
        if self._calls is None:
            self._calls = ToolCalls(CALL_BLOCK, self.target.facts.tags, self.origin)
        self._calls.decode(message, events)

    def _decode_choice(self, choice: Any, events: list[Event]) -> None:
        # Some servers send both. In a stream the delta is the new part; in a whole body the message is complete.
        delta = choice.delta
        if delta is None or (choice.message is not None and not self.streamed):
            delta = choice.message
        if delta is not None:
            thinking = self._thinking or self._open_message()
            values = self._reader.thinking_values(delta)
            if values != self._reader.no_thinking or delta.reasoning_details:
                thinking.decode(values, delta, self._reader, events)
            content = delta.content
            if content:
                if type(content) is str:
                    self._decode_text(content, events)
                else:
                    self._decode_content_parts(content, events)
            if delta.tool_calls is not None or delta.function_call is not None:
                self._decode_calls(delta, events)
            if delta.refusal:
                events.append(RefusalDelta(str(delta.refusal), REFUSAL_BLOCK))
            if delta.extra_content is not NOTHING or delta.thought_signature or delta.reasoning_opaque:
                thinking.decode_signatures(delta, events)
        if choice.finish_reason is not None:
            self._decode_finish(choice.finish_reason, events)
        if choice.usage is not None:
            self._decode_usage(choice.usage, None, events)
        if choice.error and self.failure is None:
            self.failure = build_error(200, {}, choice.error, self.payloads[-1], self.target)

    # --- content ----------------------------------------------------------------------------------------------------

    def _decode_text(self, text: str, events: list[Event], is_part: bool = False) -> None:
        snapshots = self._snapshots
        if snapshots is not None:
            if not is_part and not self.streamed:
                self._content.feed_whole(text, events)
                return
            text = snapshots.feed(text)
            if snapshots.inactive:
                self._snapshots = None
            if not text:
                return
        block = self._content.plain_block
        if block is not None:
            events.append(TextDelta(text, block))
        else:
            self._content.feed(text, events)

    def _decode_content_parts(self, content: Any, events: list[Event]) -> None:
        if not isinstance(content, list):
            self.warn("content_not_text", f"the content is {type(content).__name__}; the answer is its JSON", events)
            self._decode_text(msgspec.json.encode(content).decode(), events)
            return
        for part in content:
            kind = part.get("type") if isinstance(part, dict) else None
            if isinstance(part, str):
                self._decode_text(part, events, is_part=True)
            elif isinstance(part, dict) and is_thinking_part(part):
                emit_part(part, self._content.open_block("thinking", events), self._kind, self.origin, events)
            elif isinstance(part, dict) and kind in ("text", "output_text", None) and isinstance(part.get("text"), str):
                if part["text"]:
                    self._decode_text(part["text"], events, is_part=True)
            elif kind == "refusal":
                events.append(RefusalDelta(str(part.get("refusal", "")), REFUSAL_BLOCK))
            else:
                self.warn("unknown_content_part", f"a content part of type {kind!r} is only in metadata['raw']", events)

    # --- the rest ---------------------------------------------------------------------------------------------------

    def _decode_finish(self, raw: str, events: list[Event]) -> None:
        reason = map_stop_reason(raw)
        if reason == "unknown" and raw:
            self.warn("unknown_stop_reason", f"the finish reason {raw!r} is not known", events)
        if reason == "error" and self.failure is None:
            error = {"message": f"the reply ended with {raw!r}", "code": raw}
            self.failure = build_error(200, {}, error, self.payloads[-1], self.target)
        self.stop = StopReason(reason, raw)

    def _decode_usage(self, usage: WireUsage, chunk: Any, events: list[Event]) -> None:
        if usage != self._usage:
            self._usage = usage
            if not self._started:
                self._start(chunk, events)
            events.append(UsageReported(read_usage(usage, self.target.quirks.output_excludes_thinking)))

    def flush(self, events: list[Event]) -> None:
        """Emit the held events: no more documents come."""
        if self._thinking is not None:
            if self._snapshots is not None and (held := self._snapshots.finish()):
                self._snapshots = None
                self._decode_text(held, events)
            self._content.finish(events, cut=self.is_cut_off)
            self.truncated_thought = self._content.truncated
        if self._calls is not None:
            self._calls.finish(events)
        if self._thinking is not None:
            self._thinking.finish(events)

    def _decode_leniently(self, payload: bytes, events: list[Event]) -> Any:
        """Decode a document that does not fit, with warnings: the reader learns unknown fields, values of a wrong type
        are left out, invalid characters are replaced.
        """
        document, replaced_text = read_document(payload)
        warnings: list[tuple[str, str]] = [INVALID_TEXT] if replaced_text else []
        problem: msgspec.ValidationError | None = None
        for _ in range(64):
            try:
                chunk = self._decode(msgspec.json.encode(document))
            except msgspec.ValidationError as found:
                problem = found
            else:
                if warnings:
                    self._start(chunk, events)
                    for code, detail in warnings:
                        self.warn(code, detail, events)
                return chunk
            if (name := find_unknown_field(problem)) is not None:
                self._reader, is_thinking = self._reader.learn(name)
                self._decode = self._reader.decode
                self._choose_plain()
                if not is_thinking:
                    warnings.append(("unknown_field", f"the field {name} is only in metadata['raw']"))
            elif (path := find_mismatch(problem)) is not None:
                warnings.append(("malformed_field", f"{'.'.join(path)} has an unexpected type and was left out"))
                document = remove_mismatch(document, path, problem)
            elif isinstance(document, list) and len(document) == 1:
                document = document[0]
            else:
                break
        raise ProtocolError(f"a document has an unknown form ({problem}).", payload=payload)
