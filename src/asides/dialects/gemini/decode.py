"""generateContent in, events out: one decoder for streams and whole bodies.

Theory of operation. A reply is a list of parts, and a stream sends the list in pieces. Neighbouring texts of one kind
are one block, since a stream cuts a text where it likes; a part with a signature is a block of its own, since the
signature must go back inside that very part; a call, a picture and whatever is not text are blocks of their own.
Blocks are numbered as they come. A whole body is a stream of one chunk; a stream without `alt=sse` is a list of them.
"""

from __future__ import annotations

import json
from binascii import Error as NotBase64
from binascii import a2b_base64
from typing import Any, Literal, TypeAlias

import msgspec

from asides.dialects.document_decoder import DocumentDecoder
from asides.dialects.gemini.partial_args import PartialArguments
from asides.dialects.gemini.stop_and_errors import blocked_prompt, error_of, unified_stop
from asides.dialects.gemini.wire import (
    CHUNKS,
    NOTHING,
    Candidate,
    Chunk,
    FunctionCall,
    Part,
    WireUsage,
    compact,
    raw_part,
    usage_of,
)
from asides.providers.provider import Target
from asides.values.errors import from_status
from asides.values.events import (
    Event,
    PartArrived,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
)
from asides.values.messages import File, Image, ServerTool, UnknownPart
from asides.values.thinking import Seal
from asides.values.usage import Usage
from asides.wire.framing import Framing

SIGNATURE = "thought_signature"

# What stands beside the content and grows with it: each has one number, behind all parts.
_BESIDE = 1_000_000

# A picture of 4096 pixels a side comes in one event.
_MAX_EVENT_BYTES = 64 * 1024 * 1024

Growing: TypeAlias = Literal["text", "thought"] | None


class ContentDecoder(DocumentDecoder):
    """Bytes of one response in, events out. Any chunking gives the same events."""

    dialect = "gemini"

    def __init__(self, target: Target) -> None:
        super().__init__(target, Framing(max_event_bytes=_MAX_EVENT_BYTES))
        self._listed = False
        """The stream came as a JSON list."""
        self._usage: WireUsage | None = None
        self._candidate = -1
        """The index of the candidate that is the reply; below zero until one came."""
        self._block = -1
        self._growing: Growing = None
        self._arguments: PartialArguments | None = None
        """Those of the call that is still being made; it is the last block."""
        self._called = False

    @property
    def streamed(self) -> bool:
        """Whether the body came as a stream."""
        return self._listed or super().streamed

    @property
    def done(self) -> bool:
        """Never: the server hangs up, and until then counts may follow the end."""
        return False

    def flush(self, events: list[Event]) -> None:
        """The call that is still being made, now that nothing more comes."""
        self._end_call(events, whole=self.ended and self.failure is None)

    def _check_whole(self) -> None:
        super()._check_whole()
        if self.failure is None and self._candidate < 0:
            who, body = self.target.provider.name, b"".join(self.payloads[-1:])
            self.failure = from_status(200, provider=who, message="the answer holds no candidate", body=body)

    # --- one document -----------------------------------------------------------------------------------------------

    def take(self, payload: bytes, events: list[Event]) -> None:
        """Read one document: a response, a piece of one, or a list of pieces."""
        if payload[:1] == b"[":
            self._take_list(payload, events)
            return
        self._take_chunk(payload, events)
        if not self.streamed:
            self.ended = True

    def _take_list(self, payload: bytes, events: list[Event]) -> None:
        self._listed = True
        self.payloads.pop()
        try:
            chunks = [bytes(chunk) for chunk in msgspec.json.decode(payload, type=list[msgspec.Raw])]
        except msgspec.DecodeError:
            chunks = _whole_items(payload)
        for chunk in chunks:
            if self.failure is None:
                self.payloads.append(chunk)
                self._take_chunk(chunk, events)

    def _take_chunk(self, payload: bytes, events: list[Event]) -> None:
        chunk = self.read(payload, CHUNKS, events)
        candidates = chunk.candidates
        if candidates:
            if not self._started:
                self._start(chunk, events)
            for number, candidate in enumerate(candidates):
                if candidate.index == self._candidate or self._is_ours(candidate, events):
                    self._take_candidate(candidate, number, events)
        usage = chunk.usage_metadata
        if usage is not None and usage != self._usage:
            self._take_usage(usage, chunk, events)
        if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason and self.failure is None:
            self._start(chunk, events)
            self.failure = blocked_prompt(chunk.prompt_feedback, payload, self.target)
        if chunk.error and self.failure is None:
            self.failure = error_of(200, {}, chunk.error, payload, self.target)
        if chunk == Chunk() and self.streamed:
            self.warn("unknown_event", "a chunk without anything that is known is only in metadata['raw']", events)

    def _start(self, chunk: Chunk, events: list[Event]) -> None:
        self.start(events, (chunk.model_version or "").removeprefix("models/"), chunk.response_id)

    def _is_ours(self, candidate: Candidate, events: list[Event]) -> bool:
        index = candidate.index or 0
        if self._candidate < 0:
            self._candidate = index
        if index == self._candidate:
            return True
        words = "only the first of several candidates is the reply; metadata['raw'] has the others"
        self.warn("other_choices", words, events)
        return False

    def _take_candidate(self, candidate: Candidate, place: int, events: list[Event]) -> None:
        content = candidate.content
        if content is not None and content.parts:
            for number, part in enumerate(content.parts):
                self._take_part(part, place, number, events)
        if (
            candidate.grounding_metadata is not NOTHING
            or candidate.url_context_metadata is not NOTHING
            or candidate.citation_metadata is not NOTHING
        ):
            self._take_beside(candidate, events)
        if candidate.finish_reason:
            self._take_finish(candidate.finish_reason, events)

    def _take_beside(self, candidate: Candidate, events: list[Event]) -> None:
        told = (candidate.grounding_metadata, candidate.url_context_metadata, candidate.citation_metadata)
        for offset, raw in enumerate(told):
            if bytes(raw) not in (b"null", b"{}"):
                tool = ServerTool(METADATA[offset], json=compact(raw), origin=self.origin)
                events.append(PartArrived(tool, _BESIDE + offset))

    # --- one part ---------------------------------------------------------------------------------------------------

    def _take_part(self, part: Part, candidate: int, number: int, events: list[Event]) -> None:
        text, signature = part.text, part.thought_signature
        if text and self._growing == ("thought" if part.thought else "text") and signature is None:
            # The usual chunk: more of the same. Nothing grows while a call is being made.
            events.append(
                ThinkingDelta(text, self._block, "summary", "block") if part.thought else TextDelta(text, self._block)
            )
            return
        if text is not None and part.function_call is None:
            if text or signature:
                self._take_text(text, part.thought is True, signature, events)
            return
        if part.function_call is not None:
            self._take_call(part.function_call, signature, events)
            return
        self._end_call(events, whole=True)
        self._turn(None)
        # A picture inside a thought is no part of the answer.
        media = None if part.thought else _media(part)
        arrived = media or self._whatever(raw_part(self.payloads[-1], candidate, number), events)
        events.append(PartArrived(arrived, self._block))
        self._seal(signature, events)

    def _take_text(self, text: str, is_thought: bool, signature: str | None, events: list[Event]) -> None:
        self._end_call(events, whole=True)
        kind: Growing = "thought" if is_thought else "text"
        if signature or self._growing != kind:
            self._turn(None if signature else kind)
        if not is_thought:
            # Also when it is empty: a signature must find its part.
            events.append(TextDelta(text, self._block))
        elif text:
            events.append(ThinkingDelta(text, self._block, "summary", "block"))
        self._seal(signature, events)

    def _turn(self, kind: Growing) -> None:
        """Begin the next block; `kind` is what may be added to it."""
        self._block += 1
        self._growing = kind

    def _seal(self, signature: str | None, events: list[Event]) -> None:
        if signature:
            seal = Seal(SIGNATURE, signature, self.origin)
            events.append(ThoughtSealed(seal, self._block, "hidden", "block"))

    def _take_call(self, call: FunctionCall, signature: str | None, events: list[Event]) -> None:
        if self._arguments is None and call == _END_OF_CALL and not signature:
            return
        if self._arguments is None or call.name:
            self._end_call(events, whole=True)
            self._turn(None)
            self._called = True
            pieces = call.partial_args is not None or call.will_continue is True
            arguments = "" if pieces or call.args is None else msgspec.json.encode(call.args).decode()
            events.append(ToolCallDelta(self._block, call.id, call.name, arguments))
            if pieces:
                self._arguments = PartialArguments()
        self._seal(signature, events)
        if self._arguments is None:
            return
        for piece in call.partial_args or ():
            if not self._arguments.take(piece):
                self.warn("tool_argument_lost", "a piece of an argument named a place that does not read", events)
        if isinstance(call.args, dict):
            self._arguments.merge(call.args)
        if not call.will_continue:
            self._end_call(events, whole=True)

    def _end_call(self, events: list[Event], *, whole: bool) -> None:
        if self._arguments is not None:
            events.append(ToolCallDelta(self._block, arguments=self._arguments.json(whole=whole)))
            self._arguments = None

    def _whatever(self, raw: str, events: list[Event]) -> ServerTool | UnknownPart:
        """A part that is no text, call or file: a tool that ran over there, or something that nobody knew."""
        try:
            told: Any = msgspec.json.decode(raw)
        except msgspec.DecodeError:
            told = {}
        for name in SERVER_TOOLS:
            if isinstance(told, dict) and isinstance(held := told.get(name), dict):
                status, call_id = held.get("outcome"), held.get("id")
                return ServerTool(
                    name,
                    call_id if isinstance(call_id, str) else None,
                    status if isinstance(status, str) else None,
                    raw,
                    self.origin,
                )
        names = ", ".join(sorted(told)) if isinstance(told, dict) else ""
        self.warn("unknown_content_part", f"a part with {names or 'nothing'} is not known; it is kept", events)
        return UnknownPart(raw, self.origin)

    # --- the rest ---------------------------------------------------------------------------------------------------

    def _take_finish(self, raw: str, events: list[Event]) -> None:
        reason = unified_stop(raw)
        if reason is None:
            self.warn("unknown_stop_reason", f"the finish reason {raw!r} is not known", events)
        elif reason == "error":
            self.warn("reply_went_wrong", f"the model's reply could not be used ({raw})", events)
        elif reason == "stop" and self._called:
            reason = "tool_calls"
        self.stop = StopReason(reason or "unknown", raw)
        self.ended = True

    def _take_usage(self, usage: WireUsage, chunk: Chunk, events: list[Event]) -> None:
        self._usage = usage
        counted = usage_of(usage)
        if counted != Usage():
            self._start(chunk, events)
            events.append(UsageReported(counted))


_END_OF_CALL = FunctionCall()

METADATA = ("groundingMetadata", "urlContextMetadata", "citationMetadata")
"""What a candidate says beside its content about the tools that it used."""

SERVER_TOOLS = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse", "functionResponse")
"""The parts that are tools which ran over there."""


def _media(part: Part) -> Image | File | None:
    if part.file_data is not None:
        return File(url=part.file_data.file_uri, media_type=part.file_data.mime_type)
    if part.inline_data is None:
        return None
    media_type, told = part.inline_data.mime_type, part.inline_data.data
    try:
        data = a2b_base64(told.replace("-", "+").replace("_", "/"))
    except (NotBase64, ValueError):
        return None
    if media_type.startswith("image/"):
        return Image(data=data, media_type=media_type)
    name, _, form = media_type.partition(";")[0].partition("/")
    return File(name=f"{name}.{form}", data=data, media_type=media_type)


def _whole_items(payload: bytes) -> list[bytes]:
    """The items of a JSON list that broke off: those that are whole."""
    text = payload.decode("utf-8", "ignore")
    decoder = json.JSONDecoder()
    items: list[bytes] = []
    start = 1
    while (start := text.find("{", start)) >= 0:
        try:
            _, end = decoder.raw_decode(text, start)
        except ValueError:
            break
        items.append(text[start:end].encode())
        start = end
    return items
