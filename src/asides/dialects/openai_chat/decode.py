"""Chat completions in, events out: one decoder for streams and whole bodies.

Theory of operation. A chat message has one reasoning field, one content and a list of calls, in no order of their
own, so blocks are numbered by what they are: the thought of the field first (0, or one number for each entry of
`reasoning_details` when only those carry the text), then the segments of the content, then the refusal, then the
calls by index. That way a stream and a whole body fold to the same reply. A whole body is a stream of one chunk.
"""

from __future__ import annotations

from typing import Any

import msgspec

from asides.dialects.document_decoder import DocumentDecoder
from asides.dialects.openai_chat.stop_and_errors import error_of, unified_stop
from asides.dialects.openai_chat.thinking_decoder import Thoughts
from asides.dialects.openai_chat.thinking_parts import is_thought, seals_of, text_of
from asides.dialects.openai_chat.tool_calls import ToolCalls
from asides.dialects.openai_chat.wire import NOTHING, WireUsage, reading_for, unknown_field, usage_of
from asides.providers.provider import Target
from asides.values.errors import ProtocolError
from asides.values.events import (
    Event,
    RefusalDelta,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    UsageReported,
)
from asides.values.thinking import Seal, ThoughtKind
from asides.wire.deduplicate import Increments
from asides.wire.framing import Framing
from asides.wire.inline_tags import Splitter, may_hold_tags
from asides.wire.lenient import INVALID_TEXT, misfit, read_document, without
from asides.wire.sse import DONE

CONTENT_BLOCK = 1_000
REFUSAL_BLOCK = 500_000
CALL_BLOCK = 1_000_000
# What a stream may begin with before it says anything.
_SIGNS_OF_LIFE = (b":", b"event:", b"id:", b"retry:")


class ChatDecoder(DocumentDecoder):
    """Bytes of one response in, events out. Any chunking gives the same events."""

    dialect = "openai_chat"
    reads_behind_errors = True
    ends_with_its_stop = True

    def __init__(self, target: Target) -> None:
        super().__init__(target, Framing())
        quirks, rule = target.quirks, target.rule
        self._reading = reading_for(target.facts.thinking_in, target.facts.heuristics)
        self._decode = self._reading.decode
        self._cut = False
        self._usage: WireUsage | None = None
        self._choice: int | None = None
        self._kind: ThoughtKind = "raw" if rule.kind == "hidden" else rule.kind
        self._thoughts = Thoughts(target, self._kind)
        tags = target.facts.tags
        self._splitter: Splitter | None = None
        self._fragments = quirks.fragmented_tags
        self._increments: Increments | None = Increments(snapshots=quirks.snapshots)
        self._segment = CONTENT_BLOCK
        self._segment_key: object = None
        self._held_thought: list[str] = []
        self._calls: ToolCalls | None = None
        self._tags = tags

    def fail_unread(self) -> None:
        """Not one document is there; but the mark alone ends a reply, and one that was cut off may not be missed."""
        head = self._framing.head
        if self.ended or self._cut:
            if not self.is_whole():
                self.fail_cut()
        elif head and not head.startswith(_SIGNS_OF_LIFE):
            self.fail_unreadable()
        else:
            self.fail_lost("sent nothing but signs of life" if head else "sent an empty body")

    def fail_at_end(self, problem: ProtocolError) -> None:
        """A last event that begins well and does not end was cut off, and the stream with it, unless it had stopped."""
        self._cut = self._framing.cuts(problem.payload)
        if self._cut:
            self.payloads.pop()
        else:
            self.fail(problem)

    # --- one document -----------------------------------------------------------------------------------------------

    def decode_payload(self, payload: bytes, events: list[Event]) -> None:
        """Read one document, kept as it came. All of it in one call, since it runs for every few characters."""
        if payload == DONE:
            self.ended = True
            return
        self.payloads.append(payload)
        try:
            chunk = self._decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            chunk = self._decode_leniently(payload, events)
        choices = chunk.choices
        if choices:
            if not self._started:
                self._start(chunk, events)
            for choice in choices:
                if choice.index == self._choice or self._is_ours(choice, events):
                    self._take_choice(choice, events)
        else:
            self._take_bare(chunk, events)
        if chunk.error and self.failure is None:
            self.failure = error_of(200, {}, chunk.error, payload, self.target)
        usage = chunk.usage
        if usage is None and chunk.x_groq is not None:
            usage = chunk.x_groq.usage
        if usage is not None:
            self._take_usage(usage, chunk, events)

    def _start(self, chunk: Any, events: list[Event]) -> None:
        model, reply_id = chunk.model, chunk.id
        self.start(events, model if isinstance(model, str) else None, str(reply_id) if reply_id else None)

    def _is_ours(self, choice: Any, events: list[Event]) -> bool:
        if self._choice is None:
            self._choice = choice.index
            return True
        self.warn(
            "other_choices", "only the first of several choices is the reply; metadata['raw'] has the others", events
        )
        return False

    def _take_bare(self, chunk: Any, events: list[Event]) -> None:
        """A document without choices: an error in one of its many shapes, or nothing at all."""
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
        # In a stream a notice on the way has a message too; an error says that it is one, or has a code.
        return not self.streamed or bool(chunk.code) or "error" in (chunk.type, chunk.object)

    def _take_choice(self, choice: Any, events: list[Event]) -> None:
        # Some servers send both: in a stream the delta is what is new, in a whole body the message is what was said.
        delta = choice.delta
        if delta is None or (choice.message is not None and not self.streamed):
            delta = choice.message
        if delta is not None:
            values = self._reading.thoughts(delta)
            if values != self._reading.no_thoughts or delta.reasoning_details:
                self._thoughts.take(values, delta, self._reading, events)
            content = delta.content
            if content:
                if type(content) is str:
                    self._take_text(content, events)
                else:
                    self._take_content_parts(content, events)
            if delta.tool_calls is not None or delta.function_call is not None:
                if self._calls is None:
                    self._calls = ToolCalls(CALL_BLOCK, self._tags, self.origin)
                self._calls.take(delta, events)
            if delta.refusal:
                events.append(RefusalDelta(str(delta.refusal), REFUSAL_BLOCK))
            if delta.extra_content is not NOTHING or delta.thought_signature or delta.reasoning_opaque:
                self._thoughts.take_signature(delta, events)
        if choice.finish_reason is not None:
            self._take_finish(choice.finish_reason, events)
        if choice.usage is not None:
            self._take_usage(choice.usage, None, events)
        if choice.error and self.failure is None:
            self.failure = error_of(200, {}, choice.error, self.payloads[-1], self.target)

    # --- content ----------------------------------------------------------------------------------------------------

    def _take_text(self, text: str, events: list[Event]) -> None:
        increments = self._increments
        if increments is not None:
            text = increments.take(text)
            if increments.settled:
                self._increments = None
            if not text:
                return
        if self._tags and (self._splitter is not None or self._may_think_in(text)):
            if self._splitter is None:
                self._splitter = self._make_splitter()
            self._say(self._splitter.feed(text), events)
            return
        if self._segment_key is not False:
            self._turn(False)
        events.append(TextDelta(text, self._segment))

    def _may_think_in(self, text: str) -> bool:
        """Whether tags have to be looked for; a whole body shows at a glance that it has none."""
        return self.streamed or self.target.facts.starts_inside is True or may_hold_tags(text, self._tags)

    def _make_splitter(self) -> Splitter:
        # A thought that came in a field was taken out by the server, and with it the tag that its template opened.
        apart = bool(self._thoughts.echoes)
        return Splitter(self._tags, self.target.facts.tag_position, False if apart else self.target.facts.starts_inside)

    def _turn(self, key: object) -> None:
        """Begin the next segment of the content, unless nothing was said yet."""
        if self._segment_key is not None:
            self._segment += 1
        self._segment_key = key

    def _say(self, pieces: list[tuple[int, bool, str]], events: list[Event]) -> None:
        for number, is_thinking, text in pieces:
            key = "tags" if is_thinking and self._fragments else number
            if key != self._segment_key:
                self._release_held(events)
                self._turn(key)
            if not is_thinking:
                events.append(TextDelta(text, self._segment))
            elif self._thoughts.echoes:
                # A field may carry the same thought; only the whole segment can tell.
                self._held_thought.append(text)
            else:
                self._thoughts.tagged.append(text)
                events.append(ThinkingDelta(text, self._segment, self._kind, "tags"))

    def _release_held(self, events: list[Event]) -> None:
        if not self._held_thought:
            return
        text = "".join(self._held_thought)
        self._held_thought = []
        if text.strip() not in self._thoughts.echoes.text():
            events.append(ThinkingDelta(text, self._segment, self._kind, "tags"))

    def _take_content_parts(self, content: Any, events: list[Event]) -> None:
        if not isinstance(content, list):
            self.warn("content_not_text", f"the content is {type(content).__name__}; the answer is its JSON", events)
            self._take_text(msgspec.json.encode(content).decode(), events)
            return
        for part in content:
            kind = part.get("type") if isinstance(part, dict) else None
            if isinstance(part, str):
                self._take_text(part, events)
            elif isinstance(part, dict) and is_thought(part):
                self._take_thinking_part(part, events)
            elif isinstance(part, dict) and kind in ("text", "output_text", None) and isinstance(part.get("text"), str):
                if part["text"]:
                    self._take_text(part["text"], events)
            elif kind == "refusal":
                events.append(RefusalDelta(str(part.get("refusal", "")), REFUSAL_BLOCK))
            else:
                self.warn("unknown_content_part", f"a content part of type {kind!r} is only in metadata['raw']", events)

    def _take_thinking_part(self, part: dict[str, Any], events: list[Event]) -> None:
        if self._segment_key != "part":
            self._turn("part")
        if text := text_of(part):
            events.append(ThinkingDelta(text, self._segment, self._kind, "block", "content"))
        for kind, value in seals_of(part):
            events.append(ThoughtSealed(Seal(kind, value, self.origin), self._segment, source="block"))

    # --- the rest ---------------------------------------------------------------------------------------------------

    def _take_finish(self, raw: str, events: list[Event]) -> None:
        reason = unified_stop(raw)
        if reason == "unknown" and raw:
            self.warn("unknown_stop_reason", f"the finish reason {raw!r} is not known", events)
        if reason == "error" and self.failure is None:
            told = {"message": f"the reply ended with {raw!r}", "code": raw}
            self.failure = error_of(200, {}, told, self.payloads[-1], self.target)
        self.stop = StopReason(reason, raw)

    def _take_usage(self, usage: WireUsage, chunk: Any, events: list[Event]) -> None:
        if usage != self._usage:
            self._usage = usage
            if not self._started:
                self._start(chunk, events)
            events.append(UsageReported(usage_of(usage, self.target.quirks.output_excludes_thinking)))

    def flush(self, events: list[Event]) -> None:
        """What was held for certainty, now that nothing more comes."""
        if self._increments is not None and (held := self._increments.finish()):
            self._increments = None
            self._take_text(held, events)
        if self._splitter is not None:
            self._say(self._splitter.finish(cut=self.broke_off), events)
            self._release_held(events)
            self.truncated_thought = self._splitter.truncated
        if self._calls is not None:
            self._calls.finish(events)
        self._thoughts.finish(events)

    def _decode_leniently(self, payload: bytes, events: list[Event]) -> Any:
        """Decode again without what does not fit, and tell: unknown fields are learnt, values of a wrong type left out,
        characters that do not read replaced.
        """
        document, mended = read_document(payload)
        notices: list[tuple[str, str]] = [INVALID_TEXT] if mended else []
        problem: msgspec.ValidationError | None = None
        for _ in range(64):
            try:
                chunk = self._decode(msgspec.json.encode(document))
            except msgspec.ValidationError as found:
                problem = found
            else:
                if notices:
                    self._start(chunk, events)
                    for code, detail in notices:
                        self.warn(code, detail, events)
                return chunk
            if (name := unknown_field(problem)) is not None:
                self._reading, is_thinking = self._reading.learnt(name)
                self._decode = self._reading.decode
                if not is_thinking:
                    notices.append(("unknown_field", f"the field {name} is only in metadata['raw']"))
            elif (path := misfit(problem)) is not None:
                notices.append(
                    ("malformed_field", f"{'.'.join(path)} is of another type than expected and was left out")
                )
                document = without(document, path)
            elif isinstance(document, list) and len(document) == 1:
                document = document[0]
            else:
                break
        raise ProtocolError(f"a document does not read ({problem}).", payload=payload)
