"""Decodes interactions into events; one decoder for streams and whole bodies.

Theory of operation. A reply is a list of steps. A step emits the same events whether it comes in deltas or whole: its
start may hold everything, and its end emits what waited. So a whole body is a stream in which every step starts with
all that it has. Blocks are numbered by the step's position, a thousand for each: neighbouring texts of a step are one
block, since deltas do not show where one text ends. The annotations of a text stay with it, as the entry of a seal.
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.dialects.document_decoder import ContinuedDecoder
from asides.dialects.gemini.decode import build_media
from asides.dialects.gemini.wire import Blob, FileData, Part
from asides.dialects.gemini_interactions.wire import (
    CITED,
    CONTENTS,
    CONTINUES,
    DIALECT,
    EVENTS,
    FAILED,
    INTERACTIONS,
    MEDIA,
    NOTHING,
    SERVER_TOOLS,
    SIGNATURE,
    STEPS,
    UNDER_WAY,
    Content,
    Delta,
    Interaction,
    StreamEvent,
    WireUsage,
    build_error,
    find_failure,
    map_status,
    read_usage,
)
from asides.dialects.tagged_text import SEGMENTS, TaggedText
from asides.providers.provider import Target
from asides.values.errors import ProtocolError
from asides.values.events import (
    Event,
    PartArrived,
    ReplyStarted,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
)
from asides.values.parts import File, Image, ServerTool, UnknownPart
from asides.values.thinking import Seal
from asides.values.usage import Usage
from asides.wire.lenient import to_json_text

# A picture of 4096 × 4096 pixels comes in one event.
_MAX_EVENT_BYTES = 64 * 1024 * 1024
# The type of the step that a delta without a start belongs to; the fields of a tool have the type of their step.
_STEP_OF_DELTA = {
    "text": "model_output",
    "text_annotation_delta": "model_output",
    **dict.fromkeys(MEDIA, "model_output"),
    "thought_summary": "thought",
    "thought_signature": "thought",
    "arguments_delta": "function_call",
}
_USUAL_TYPES = {"image": "image/png", "document": "application/pdf"}
_NO_COUNTS = Usage()


class _OpenStep:
    """A step while it arrives."""

    __slots__ = ("annotations", "arguments", "block", "fields", "has_pieces", "in_text", "kind", "summary", "tagged")

    def __init__(self, kind: str, block: int) -> None:
        self.kind = kind
        self.block = block
        """The newest block."""
        self.in_text = False
        """The newest block is a text that more text may be added to."""
        self.tagged: TaggedText | None = None
        """That text, at a host that may write thinking into it."""
        self.annotations: list[Any] = []
        """Of that text."""
        self.arguments: Any = None
        self.has_pieces = False
        """Arguments have come in pieces."""
        self.fields: dict[str, Any] = {}
        """Of a step that is kept unchanged."""
        self.summary: list[Any] = []
        """The contents of a summary that has more than text."""


class InteractionsDecoder(ContinuedDecoder):
    """Decodes the bytes of one response into events. Any chunking gives the same events."""

    dialect = DIALECT
    stop_completes = True

    def __init__(self, target: Target) -> None:
        super().__init__(target, _MAX_EVENT_BYTES)
        self._open: dict[int, _OpenStep] = {}
        self._index = -1
        """The newest step."""
        self._steps_before = 0
        """The steps of earlier requests for the same reply."""
        self._last_text: int | None = None
        """The block of the newest text, if no step has followed it."""
        self._has_calls = False
        self._has_text = False
        self._has_tags = bool(target.facts.tags)
        self._usage: tuple[WireUsage, Any] | None = None
        self._counted = _NO_COUNTS
        """What earlier requests for the same reply took."""
        self._is_named = False

    def is_complete(self) -> bool:
        """Whether the reply is complete: its state ends it, the end mark alone does not."""
        return self.stop is not None or not (self.streamed or self.is_resumed)

    def resume(self) -> None:
        """Decode the body of the next request for the same reply: its steps follow those that have come."""
        super().resume()
        self._steps_before += self._index + 1
        self._index, self._is_named = -1, False
        if self._usage is not None:
            self._counted, self._usage = self._counted + read_usage(*self._usage), None

    def flush(self, events: list[Event]) -> None:
        """End the steps that are open: no more documents come."""
        if self.stop is not None and self.stop.raw == CONTINUES:
            self.report_not_continued(events)
        self._end_steps(events, cut=self.is_cut_off)

    def _end_steps(self, events: list[Event], *, cut: bool = False) -> None:
        for index in list(self._open):
            self._end_step(index, events, cut=cut)

    # --- one document -----------------------------------------------------------------------------------------------

    def decode_document(self, payload: bytes, events: list[Event]) -> None:
        """Decode one event, or the whole interaction."""
        if self._framing.form == "json":
            self._decode_body(self.read(payload, INTERACTIONS, events), payload, events)
            return
        event = self.read(payload, EVENTS, events)
        match event.event_type:
            case "step.delta" if event.delta is not None:
                self._decode_delta(event, event.delta, payload, events)
            case "step.start":
                self._begin(events)
                self._index = self._index + 1 if event.index is None else event.index
                self._begin_step(self._index, bytes(event.step), events)
            case "step.stop":
                self._end_step(self._index if event.index is None else event.index, events)
            case "interaction.created" | "interaction.completed" | "interaction.status_update":
                self._decode_state(event, payload, events)
            case "error":
                self.failure = self.failure or build_error(200, {}, event.error, payload, self.target)
            case None:
                body = self.read(payload, INTERACTIONS, events)
                if body != Interaction():
                    self._decode_body(body, payload, events)
                else:
                    self.warn("unknown_event", "an event without any known field is only in metadata['raw']", events)
            case other:
                self.warn("unknown_event", f"an event of type {other!r} is only in metadata['raw']", events)

    def _decode_body(self, body: Interaction, payload: bytes, events: list[Event]) -> None:
        """Decode a whole interaction, or an error in its place."""
        if body.object not in (None, "interaction") or body == Interaction():
            found = f"an object of type {body.object!r}" if isinstance(body.object, str) else "something else"
            raise ProtocolError(
                f"the answer is {found}, not an interaction; check that the address serves this endpoint.",
                payload=payload,
            )
        if body.status is None and body.steps is None and body.error:
            self.failure = find_failure(body, payload, self.target)
            return
        self._name(body, events)
        self._decode_end(body, payload, events)

    def _decode_state(self, event: StreamEvent, payload: bytes, events: list[Event]) -> None:
        if event.event_type == "interaction.status_update":
            named = Interaction(id=event.interaction_id, status=event.status, usage=event.usage)
        else:
            named = event.interaction or Interaction()
        self._name(named, events)
        if event.event_type == "interaction.completed" or named.status not in (None, *UNDER_WAY):
            self._decode_end(named, payload, events)
            self.ended = event.event_type == "interaction.completed"
        elif named.usage is not None:
            self._report(named.usage, events)

    def _decode_end(self, body: Interaction, payload: bytes, events: list[Event]) -> None:
        """Decode the state that an interaction has ended in, and the steps that the stream has not brought."""
        if self._index < 0:
            for step in body.steps or ():
                self._index += 1
                self._begin_step(self._index, bytes(step), events)
                self._end_step(self._index, events)
        self._end_steps(events)
        if body.usage is not None:
            self._report(body.usage, events, body.service_tier)
        self.failure = self.failure or find_failure(body, payload, self.target)
        status = body.status or "completed"
        reason = map_status(status, has_calls=self._has_calls)
        if (status in UNDER_WAY and not self.streamed) or (reason is None and status not in FAILED):
            self.warn("unknown_stop_reason", f"the status {status!r} is not known as a final status", events)
        self.stop = StopReason(reason or "unknown", body.status)
        if status == CONTINUES and body.continuation_token:
            # What the server has stored is not sent again: it continues the interaction that gave the token.
            stored = {"previous_interaction_id": body.id, "input": None} if body.id else {}
            self.continuation = {"continuation_token": body.continuation_token, **stored}

    def _name(self, named: Interaction, events: list[Event]) -> None:
        """Start the reply with its model and id. One that is not stored has no id."""
        if self._is_named:
            return
        model = (named.model or named.agent or "").removeprefix("models/")
        self._is_named = bool(model or named.id)
        if self._started and self._is_named:
            model = model or self.target.model
            self.late_start = ReplyStarted(model or None, named.id or None, self.origin, bool(named.id))
        self.start(events, model, named.id, stored=bool(named.id))

    def _begin(self, events: list[Event]) -> None:
        if not self._started:
            self.start(events)

    def _report(self, usage: WireUsage, events: list[Event], tier: Any = None) -> None:
        if (usage, tier) == self._usage:
            return
        self._usage = (usage, tier)
        counted = read_usage(usage, tier)
        if counted != _NO_COUNTS:
            events.append(UsageReported(counted if self._counted == _NO_COUNTS else self._counted + counted))

    # --- one step ---------------------------------------------------------------------------------------------------

    def _begin_step(self, index: int, raw: bytes, events: list[Event]) -> None:
        """Begin a step, with all that its start holds."""
        step = self.read(raw, STEPS, events)
        kind = step.type or ""
        self._open[index] = opened = self._make_step(kind, index)
        match kind:
            case "thought":
                for item in step.summary or ():
                    self._add_summary(opened, self.read(bytes(item), CONTENTS, events), bytes(item), events)
            case "model_output":
                for item in step.content or ():
                    content = self.read(bytes(item), CONTENTS, events)
                    if opened.annotations or (opened.in_text and content.annotations is not NOTHING):
                        self._end_text(opened, events)
                    self._add_content(opened, content, bytes(item), events)
                if step.error:
                    self._report_error(step.error, events)
            case "function_call":
                self._has_calls = True
                opened.arguments = step.arguments
                events.append(ToolCallDelta(opened.block, step.id, step.name))
            case "user_input":
                return  # the caller's own, which some requests ask for
            case _:
                fields = self.read_fields(raw)
                opened.fields = fields if isinstance(fields, dict) else {}
                return
        self._seal(opened, step.signature, events)

    def _make_step(self, kind: str, index: int) -> _OpenStep:
        """Make a step. The first text of a request that continues a reply is the rest of the last one."""
        block, last = (self._steps_before + index) * SEGMENTS, self._last_text
        if kind != "user_input":
            self._last_text = None
            if self.is_resumed and last is not None and kind == "model_output" and last < self._steps_before * SEGMENTS:
                block = last
        return _OpenStep(kind, block)

    def _report_error(self, error: Any, events: list[Event]) -> None:
        message = error.get("message") if isinstance(error, dict) else error
        self.warn("reply_went_wrong", f"a step of the model could not be finished ({message})", events)

    def _end_step(self, index: int, events: list[Event], *, cut: bool = False) -> None:
        """End a step: emit what waited for it."""
        opened = self._open.pop(index, None)
        if opened is None:
            return
        match opened.kind:
            case "model_output":
                self._end_text(opened, events, cut=cut)
            case "function_call":
                if not opened.has_pieces:
                    arguments = "{}" if opened.arguments is None else to_json_text(opened.arguments)
                    events.append(ToolCallDelta(opened.block, arguments=arguments))
            case "thought" | "user_input":
                pass
            case _:
                events.append(PartArrived(self._build_part(opened, events), opened.block))

    def _build_part(self, opened: _OpenStep, events: list[Event]) -> ServerTool | UnknownPart:
        """Build a step that is kept unchanged: a tool that the provider ran, or an unknown step."""
        fields = opened.fields
        document = msgspec.json.encode(fields).decode()
        if opened.kind in (*SERVER_TOOLS, "function_result"):
            own = fields.get("id", fields.get("call_id"))
            status = "error" if fields.get("is_error") is True else None
            return ServerTool(opened.kind, own if isinstance(own, str) else None, status, document, self.origin)
        detail = f"a step of type {opened.kind!r} is not known; it is stored unchanged"
        self.warn("unknown_content_part", detail, events)
        return UnknownPart(document, self.origin)

    def _decode_delta(self, event: StreamEvent, delta: Delta, payload: bytes, events: list[Event]) -> None:
        self._begin(events)
        index = self._index if event.index is None else event.index
        opened = self._open.get(index)
        kind = delta.type or ""
        if opened is None:
            self._index = max(self._index, index)
            opened = self._open[index] = self._make_step(_STEP_OF_DELTA.get(kind, kind), max(index, 0))
            self._has_calls = self._has_calls or opened.kind == "function_call"
        if kind == "text" and opened.kind != "thought":
            if delta.text:
                self._add_text(opened, delta.text, events)
        else:
            self._add_delta(opened, delta, payload, events)
        if event.metadata is not None and event.metadata.total_usage is not None:
            self._report(event.metadata.total_usage, events)

    def _add_delta(self, opened: _OpenStep, delta: Delta, payload: bytes, events: list[Event]) -> None:
        match delta.type:
            case "text" | "thought_summary":
                content = delta.content or Content("text", delta.text)
                raw = b"" if content.type in ("text", None) else self._find_delta(payload, "content")
                self._add_summary(opened, content, raw, events)
            case "thought_signature":
                self._seal(opened, delta.signature, events)
            case "arguments_delta":
                opened.has_pieces = True
                events.append(ToolCallDelta(opened.block, arguments=to_json_text(delta.arguments)))
            case "text_annotation_delta":
                opened.annotations += self._read_list(delta.annotations)
            case str() as kind if kind in MEDIA and opened.kind == "model_output":
                content = Content(kind, data=delta.data, mime_type=delta.mime_type, uri=delta.uri)
                self._add_content(opened, content, self._find_delta(payload), events)
            case str() as kind if kind == opened.kind:
                fields = self.read_fields(self._find_delta(payload))
                opened.fields |= {"type": kind, **(fields if isinstance(fields, dict) else {})}
            case other:
                self.warn("unknown_event", f"a delta of type {other!r} is only in metadata['raw']", events)

    def _find_delta(self, payload: bytes, name: str | None = None) -> bytes:
        """Return the raw JSON of a delta, or of a field of it."""
        found: Any = self.read_fields(payload).get("delta")
        return msgspec.json.encode(found if name is None else found.get(name))

    def _read_list(self, raw: msgspec.Raw) -> list[Any]:
        found = self.read_fields(raw)
        return found if isinstance(found, list) else []

    # --- what a step holds ------------------------------------------------------------------------------------------

    def _add_summary(self, opened: _OpenStep, content: Content, raw: bytes, events: list[Event]) -> None:
        """Add to the summary of a thought. A picture in it is thinking too: it stays with the signature."""
        if content.text is not None and content.type in ("text", None):
            if content.text:
                events.append(ThinkingDelta(content.text, opened.block, "summary", "block"))
                opened.summary.append({"type": "text", "text": content.text})
            return
        opened.summary.append(self.read_fields(raw))
        self.warn("thought_not_text", f"a thought holds content of type {content.type!r}; it is not shown", events)

    def _seal(self, opened: _OpenStep, signature: str | None, events: list[Event]) -> None:
        if not signature:
            return
        has_more = any(not isinstance(item, dict) or item.get("type") != "text" for item in opened.summary)
        entry = msgspec.json.encode(opened.summary).decode() if has_more else None
        events.append(ThoughtSealed(Seal(SIGNATURE, signature, self.origin, entry), opened.block, "hidden", "block"))

    def _add_content(self, opened: _OpenStep, content: Content, raw: bytes, events: list[Event]) -> None:
        """Add a text, a picture or another file to the answer."""
        if content.type in ("text", None) and content.text is not None:
            if content.text:
                self._add_text(opened, content.text, events)
            opened.annotations += self._read_list(content.annotations)
            return
        self._end_text(opened, events)
        part: Image | File | UnknownPart | None = _build_media(content)
        if part is None:
            if content.type not in MEDIA:
                detail = f"a content of type {content.type!r} is not known; it is stored unchanged"
                self.warn("unknown_content_part", detail, events)
            step = {"type": "model_output", "content": [msgspec.Raw(raw)]}
            part = UnknownPart(self.compact(msgspec.Raw(msgspec.json.encode(step))).decode(), self.origin)
        events.append(PartArrived(part, opened.block))
        opened.block += 1

    def _add_text(self, opened: _OpenStep, text: str, events: list[Event]) -> None:
        opened.in_text = True
        if not self._has_tags:
            events.append(TextDelta(text, opened.block))
            return
        if opened.tagged is None:
            opened.tagged = TaggedText(opened.block, self.target, "summary", first=not self._has_text)
        self._has_text = True
        opened.tagged.feed(text, events)

    def _end_text(self, opened: _OpenStep, events: list[Event], *, cut: bool = False) -> None:
        if opened.tagged is not None:
            opened.tagged.finish(events, cut=cut)
            opened.block = opened.tagged.last_text_block
            self.truncated_thought = self.truncated_thought or opened.tagged.truncated
        if opened.annotations:
            entry = msgspec.json.encode(opened.annotations).decode()
            events.append(ThoughtSealed(Seal(CITED, "", self.origin, entry), opened.block, "hidden", "block"))
        if opened.in_text or opened.annotations:
            self._last_text = opened.block
            opened.block = 1 + (opened.block if opened.tagged is None else opened.tagged.block)
        opened.in_text, opened.tagged, opened.annotations = False, None, []


def _build_media(content: Content) -> Image | File | None:
    if content.type not in MEDIA or not (content.data or content.uri):
        return None
    kind = content.mime_type or _USUAL_TYPES.get(content.type, "")
    if content.data:
        return build_media(Part(inline_data=Blob(kind, content.data)))
    if content.type == "image" and "://" in (content.uri or ""):
        return Image(url=content.uri, media_type=kind)
    return build_media(Part(file_data=FileData(kind, content.uri or "")))
