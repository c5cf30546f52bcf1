"""Decodes generateContent responses into events; one decoder for streams and whole bodies.

Theory of operation. A reply is a list of parts, and a stream sends the list in pieces. Neighbouring texts of one kind
are one block, since a stream cuts a text anywhere. A part with a signature is a separate block, since the signature
must go back inside that very part. A call, a picture and everything else that is not text is a separate block. Blocks
are numbered as they come. A whole body is a stream of one chunk; a stream without `alt=sse` is a list of chunks.
"""

from __future__ import annotations

import re
from binascii import Error as NotBase64
from binascii import a2b_base64
from typing import Any, Literal, TypeAlias

import msgspec

from asides.dialects.document_decoder import ContinuedDecoder
from asides.dialects.gemini.wire import (
    CHUNKS,
    NOTHING,
    Candidate,
    Chunk,
    FunctionCall,
    Part,
    PartialArg,
    RawParts,
    WireUsage,
    build_blocked_prompt,
    build_error,
    compact,
    find_whole_items,
    is_empty_call,
    map_stop_reason,
    read_usage,
)
from asides.dialects.tagged_text import TaggedText
from asides.providers.provider import Target
from asides.providers.provider_errors import from_status
from asides.values.errors import ConfigError
from asides.values.events import (
    Event,
    PartArrived,
    RefusalDelta,
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
from asides.wire.lenient import is_marked, read_any

SIGNATURE = "thought_signature"
THOUGHT_PART = "thought_part"
"""The seal of a thought that is not text: the whole part, as JSON."""

METADATA = ("groundingMetadata", "urlContextMetadata", "citationMetadata")
"""Fields of a candidate outside its content, about the tools that it used."""

SERVER_TOOLS = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse", "functionResponse")
"""The parts of tools that the provider ran."""

# The block of the first metadata; metadata comes after all parts.
_METADATA_BLOCK = 1_000_000

# A picture of 4096 × 4096 pixels comes in one event.
_MAX_EVENT_BYTES = 64 * 1024 * 1024

OpenKind: TypeAlias = Literal["text", "thought"] | None

_EMPTY = Chunk()
_NO_COUNTS = Usage()


class ContentDecoder(ContinuedDecoder):
    """Decodes the bytes of one response into events. Any chunking gives the same events."""

    dialect = "gemini"
    stop_completes = True

    def __init__(self, target: Target) -> None:
        super().__init__(target, _MAX_EVENT_BYTES)
        self._is_list = False
        """The body is a JSON list of chunks."""
        self._usage: WireUsage | None = None
        self._candidate = -1
        """The index of the candidate that is the reply; below zero before the first."""
        self._block = -1
        self._open_kind: OpenKind = None
        self._has_tags = bool(target.facts.tags)
        self._text: TaggedText | None = None
        """The open text, at a host that may write thinking into it."""
        self._arguments: PartialArguments | None = None
        """The arguments of the open call, which is the last block."""
        self._has_calls = False
        self._counted = _NO_COUNTS
        """What earlier requests for the same reply took."""
        self._raw_parts = RawParts(self.clean)

    @property
    def streamed(self) -> bool:
        """Whether the body came as a stream."""
        return self._is_list or super().streamed

    @property
    def done(self) -> bool:
        """Never: counts may follow the end until the server closes the connection."""
        return False

    def resume(self) -> None:
        """Decode the body of the next request for the same reply: its parts follow those that have come."""
        super().resume()
        if self._usage is not None:
            self._counted, self._usage = self._counted + read_usage(self._usage), None

    def flush(self, events: list[Event]) -> None:
        """Finish the open call and the open text: no more documents come."""
        if self.continuation is not None:
            self.report_not_continued(events)
        self._finish_call(events, whole=not self.is_cut_off)
        self._finish_text(events, cut=self.is_cut_off)

    def _check_complete(self) -> None:
        super()._check_complete()
        if self.failure is None and self._candidate < 0:
            name, body = self.target.provider.name, b"".join(self.payloads[-1:])
            self.failure = from_status(200, provider=name, message="the response holds no candidate", body=body)

    # --- one document -----------------------------------------------------------------------------------------------

    def decode_document(self, payload: bytes, events: list[Event]) -> None:
        """Decode one document: a response, a chunk of one, or a list of chunks."""
        if payload[:1] == b"[":
            self._decode_list(payload, events)
        else:
            self._decode_chunk(self.read(payload, CHUNKS, events), payload, events)

    def _decode_list(self, payload: bytes, events: list[Event]) -> None:
        self._is_list = True
        self.payloads.pop()
        try:
            chunks = [bytes(chunk) for chunk in msgspec.json.decode(payload, type=list[msgspec.Raw])]
        except msgspec.DecodeError:
            chunks = find_whole_items(payload)
        for chunk in chunks:
            if self.failure is None:
                self.payloads.append(chunk)
                self._decode_chunk(self.read(chunk, CHUNKS, events), chunk, events)

    def _decode_chunk(self, chunk: Chunk, payload: bytes, events: list[Event]) -> None:
        candidates = chunk.candidates
        if candidates:
            if not self._started:
                self._start(chunk, events)
            for place, candidate in enumerate(candidates):
                if candidate.index == self._candidate or self._is_first_candidate(candidate, events):
                    self._decode_candidate(candidate, place, events)
        elif chunk == _EMPTY and self.streamed:
            self.warn("unknown_event", "a chunk without any known field is only in metadata['raw']", events)
        usage = chunk.usage_metadata
        if usage is not None and usage != self._usage:
            self._usage = usage
            counted = read_usage(usage)
            if counted != _NO_COUNTS:
                if not self._started:
                    self._start(chunk, events)
                events.append(UsageReported(counted if self._counted == _NO_COUNTS else self._counted + counted))
        if chunk.prompt_feedback is not None and chunk.prompt_feedback.block_reason and self.failure is None:
            self._start(chunk, events)
            self.failure = build_blocked_prompt(chunk.prompt_feedback, payload, self.target)
        if chunk.error and self.failure is None:
            self.failure = build_error(200, {}, chunk.error, payload, self.target)

    def _start(self, chunk: Chunk, events: list[Event]) -> None:
        self.start(events, (chunk.model_version or "").removeprefix("models/"), chunk.response_id)

    def _is_first_candidate(self, candidate: Candidate, events: list[Event]) -> bool:
        index = candidate.index or 0
        if self._candidate < 0:
            self._candidate = index
        if index == self._candidate:
            return True
        detail = "only the first of several candidates is the reply; metadata['raw'] has the others"
        self.warn("other_choices", detail, events)
        return False

    def _decode_candidate(self, candidate: Candidate, place: int, events: list[Event]) -> None:
        content = candidate.content
        if content is not None and content.parts:
            for number, part in enumerate(content.parts):
                self._decode_part(part, place, number, events)
        if (
            candidate.grounding_metadata is not NOTHING
            or candidate.url_context_metadata is not NOTHING
            or candidate.citation_metadata is not NOTHING
        ):
            self._decode_metadata(candidate, events)
        if candidate.finish_reason:
            self._decode_finish(candidate.finish_reason, candidate.finish_message, events)
            if candidate.finish_reason == "CONTINUATION" and candidate.continuation_token:
                self.continuation = {"continuationToken": candidate.continuation_token}

    def _decode_metadata(self, candidate: Candidate, events: list[Event]) -> None:
        values = (candidate.grounding_metadata, candidate.url_context_metadata, candidate.citation_metadata)
        for offset, raw in enumerate(values):
            if bytes(raw) not in (b"null", b"{}"):
                tool = ServerTool(METADATA[offset], json=compact(self.clean(raw)), origin=self.origin)
                events.append(PartArrived(tool, _METADATA_BLOCK + offset))

    # --- one part ---------------------------------------------------------------------------------------------------

    def _decode_part(self, part: Part, candidate: int, number: int, events: list[Event]) -> None:
        text, signature, mark = part.text, part.thought_signature, part.thought
        is_thought = mark is True or (mark is not None and is_marked(mark))
        if text and self._has_tags and not is_thought and part.function_call is None:
            self._split_text(text, signature, events)
            return
        if text and self._open_kind == ("thought" if is_thought else "text") and signature is None:
            events.append(
                ThinkingDelta(text, self._block, "summary", "block") if is_thought else TextDelta(text, self._block)
            )
            return
        if text is not None and part.function_call is None:
            if text or signature:
                self._decode_text(text, is_thought, signature, events)
            return
        if part.function_call is not None:
            self._decode_call(part.function_call, signature, events)
            return
        self._finish_call(events, whole=True)
        self._begin_block(None, events)
        if is_thought:
            # A picture, or code: it is not part of the answer, and is sent back unchanged.
            raw = self._raw_parts.find(self.payloads[-1], candidate, number)
            events.append(ThoughtSealed(Seal(THOUGHT_PART, raw, self.origin), self._block, "hidden", "block"))
            return
        arrived = build_media(part) or self._build_part(
            self._raw_parts.find(self.payloads[-1], candidate, number), events
        )
        events.append(PartArrived(arrived, self._block))
        self._seal(signature, events)

    def _decode_text(self, text: str, is_thought: bool, signature: str | None, events: list[Event]) -> None:
        self._finish_call(events, whole=True)
        kind: OpenKind = "thought" if is_thought else "text"
        if signature or self._open_kind != kind:
            self._begin_block(None if signature else kind, events)
        if not is_thought:
            # Even if it is empty: a signature needs its part.
            events.append(TextDelta(text, self._block))
        elif text:
            events.append(ThinkingDelta(text, self._block, "summary", "block"))
        self._seal(signature, events)

    def _split_text(self, text: str, signature: str | None, events: list[Event]) -> None:
        """Add text that may hold thinking in tags. A signature closes it.

        A signed text is a part of its own, unless a tag or the beginning of one is open before it.
        """
        self._finish_call(events, whole=True)
        if signature and self._text is not None and self._text.in_answer:
            self._finish_text(events)
        if self._text is None:
            self._begin_block("text", events)
            self._text = TaggedText(self._block, self.target, "summary", first=self._block == 0)
        self._text.feed(text, events)
        if signature:
            self._finish_text(events)
            self._seal(signature, events)
            self._open_kind = None

    def _finish_text(self, events: list[Event], *, cut: bool = False) -> None:
        text, self._text = self._text, None
        if text is not None:
            text.finish(events, cut=cut)
            self._block = text.block
            self.truncated_thought = self.truncated_thought or text.truncated

    def _begin_block(self, kind: OpenKind, events: list[Event]) -> None:
        """Begin the next block; text of this `kind` may be added to it."""
        self._finish_text(events)
        self._block += 1
        self._open_kind = kind

    def _seal(self, signature: str | None, events: list[Event]) -> None:
        if signature:
            seal = Seal(SIGNATURE, signature, self.origin)
            events.append(ThoughtSealed(seal, self._block, "hidden", "block"))

    def _decode_call(self, call: FunctionCall, signature: str | None, events: list[Event]) -> None:
        if self._arguments is None and not signature and is_empty_call(call):
            return
        if self._arguments is None or call.name:
            self._finish_call(events, whole=True)
            self._begin_block(None, events)
            self._has_calls = True
            pieces = call.partial_args is not None or call.will_continue is True
            arguments = "" if pieces or call.args is None else msgspec.json.encode(call.args).decode()
            events.append(ToolCallDelta(self._block, call.id, call.name, arguments))
            if pieces:
                self._arguments = PartialArguments()
        self._seal(signature, events)
        if self._arguments is None:
            return
        for piece in call.partial_args or ():
            if not self._arguments.add(piece):
                self.warn("tool_argument_lost", "a piece of an argument has a path that cannot be parsed", events)
        if isinstance(call.args, dict):
            self._arguments.merge(call.args)
        if not call.will_continue:
            self._finish_call(events, whole=True)

    def _finish_call(self, events: list[Event], *, whole: bool) -> None:
        if self._arguments is not None:
            events.append(ToolCallDelta(self._block, arguments=self._arguments.to_json(whole=whole)))
            self._arguments = None

    def _build_part(self, raw: str, events: list[Event]) -> ServerTool | UnknownPart:
        """Build a part other than text, a call or a file: a tool that the provider ran, or an unknown part."""
        try:
            fields: Any = read_any(raw)
        except msgspec.DecodeError:
            fields = {}
        for name in SERVER_TOOLS:
            if isinstance(fields, dict) and isinstance(tool := fields.get(name), dict):
                status, call_id = tool.get("outcome"), tool.get("id")
                return ServerTool(
                    name,
                    call_id if isinstance(call_id, str) else None,
                    status if isinstance(status, str) else None,
                    raw,
                    self.origin,
                )
        names = ", ".join(sorted(fields)) if isinstance(fields, dict) else ""
        self.warn(
            "unknown_content_part", f"a part with {names or 'nothing'} is not known; it is stored unchanged", events
        )
        return UnknownPart(raw, self.origin)

    # --- the rest ---------------------------------------------------------------------------------------------------

    def _decode_finish(self, raw: str, message: str | None, events: list[Event]) -> None:
        reason = map_stop_reason(raw)
        if reason == "content_filter" and message and self.stop != StopReason(reason, raw):
            # Beside any other reason it describes what the reply holds anyway.
            self._finish_call(events, whole=True)
            self._begin_block(None, events)
            events.append(RefusalDelta(message, self._block))
        if reason is None:
            self.warn("unknown_stop_reason", f"the finish reason {raw!r} is not known", events)
        elif reason == "error":
            self.warn("reply_went_wrong", f"the model's reply could not be used ({raw})", events)
        elif reason == "stop" and self._has_calls:
            reason = "tool_calls"
        self.stop = StopReason(reason or "unknown", raw)
        self.ended = True


def build_file(address: str, media_type: str) -> File:
    """Return the file at an address, or with this id. A type that was not given stays unset: it may be a video."""
    file = File(url=address, media_type=media_type) if "://" in address else File(id=address, media_type=media_type)
    return file if media_type else msgspec.structs.replace(file, media_type="")


def build_media(part: Part) -> Image | File | None:
    """Return the picture or file of a part; None if it has none, or if the data contradict their type."""
    if part.file_data is not None:
        uri, kind = part.file_data.file_uri, part.file_data.mime_type
        return build_file(uri, kind) if uri else None
    if part.inline_data is None:
        return None
    media_type, encoded = part.inline_data.mime_type, part.inline_data.data
    try:
        data = a2b_base64(encoded.replace("-", "+").replace("_", "/"))
    except (NotBase64, ValueError):
        return None
    name, _, form = media_type.partition(";")[0].partition("/")
    try:
        if name == "image":
            return Image(data=data, media_type=media_type)
        return File(name=f"{name}.{form}", data=data, media_type=media_type)
    except ConfigError:  # empty, or it contradicts its type: the part stays unchanged
        return None


# --- arguments in pieces, each with its path: `$.items[0].name` -------------------------------------------------------


Step: TypeAlias = str | int

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")
# Models do not write larger list indexes.
_FARTHEST = 10_000
# The empty items before those indexes, in all lists of a call.
_MAX_PADDING = 100_000


class PartialArguments:
    """The arguments of one call, while they arrive."""

    __slots__ = ("_growing", "_padding", "_path", "_pieces", "_value")

    def __init__(self) -> None:
        self._value: dict[str, Any] = {}
        self._growing: str | None = None
        """The path of the text that is still open."""
        self._path: list[Step] = []
        """The steps of that path."""
        self._pieces: list[str] = []
        self._padding = _MAX_PADDING

    def add(self, piece: PartialArg) -> bool:
        """Add a piece; False when its path cannot be parsed."""
        value = _read_value(piece)
        if self._growing != piece.json_path or not isinstance(value, str):
            path = _parse_path(piece.json_path)
            if path is None:
                return False
            self._finish_text()
            if not self._put(path, value):
                return False
            self._growing, self._path = piece.json_path, path
        if isinstance(value, str):
            self._pieces.append(value)
        if not piece.will_continue:
            self._finish_text()
        return True

    def _finish_text(self) -> None:
        """Join the pieces of the open text: it is complete."""
        if self._growing is not None and self._pieces:
            self._put(self._path, "".join(self._pieces))
        self._growing, self._pieces = None, []

    def _put(self, path: list[Step], value: Any) -> bool:
        """Put a value at its path and create the objects and lists on the way; do nothing where another type is.

        False when the path needs more empty items than a call may have.
        """
        holder: Any = self._value
        for step, following in zip(path, (*path[1:], None), strict=True):
            if isinstance(step, int):
                if not isinstance(holder, list):
                    return True
                missing = step + 1 - len(holder)
                if missing > 1:
                    self._padding -= missing - 1
                    if self._padding < 0:
                        return False
                holder.extend([None] * missing)
            elif not isinstance(holder, dict):
                return True
            else:
                holder.setdefault(step, None)
            place: Any = holder
            if following is None:
                place[step] = value
            elif not isinstance(place[step], (dict, list)):
                place[step] = [] if isinstance(following, int) else {}
            holder = place[step]
        return True

    def merge(self, whole: dict[str, Any]) -> None:
        """Add arguments that arrived in one piece."""
        self._value |= whole

    def to_json(self, *, whole: bool) -> str:
        """Return the arguments as JSON. Those of a call that was cut off are cut off too, so that they do not parse."""
        self._finish_text()
        text = msgspec.json.encode(self._value).decode()
        return text if whole else text[:-1]


def _parse_path(path: str) -> list[Step] | None:
    rest = path.removeprefix("$")
    if rest and rest[0] not in ".[":
        rest = f".{rest}"
    steps: list[Step] = []
    start = 0
    while start < len(rest):
        found = _STEP.match(rest, start)
        if found is None:
            return None
        name, place, single, double = found.groups()
        if place is not None:
            if int(place) > _FARTHEST:
                return None
            steps.append(int(place))
        else:
            steps.append(name or re.sub(r"\\(.)", r"\1", single if single is not None else double or ""))
        start = found.end()
    return steps or None


def _read_value(piece: PartialArg) -> Any:
    if piece.string_value is not None:
        return piece.string_value
    if piece.bool_value is not None:
        return piece.bool_value
    number = piece.number_value
    # Numbers come as floats; one without a fraction was an integer.
    return int(number) if isinstance(number, float) and number.is_integer() else number
