"""Decodes chat completions into events; one decoder for streams and whole bodies.

Theory of operation. A chat message has one reasoning field, one content and a list of calls, without an order between
them. So blocks are numbered by their kind: the thought of the field first (0, or one number for each entry of
`reasoning_details` when only those carry the text), then the segments of the content, the refusal, and the calls by
index. A stream and a whole body then fold to the same reply. A whole body is a stream of one chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from asides.dialects.document_decoder import DocumentDecoder
from asides.dialects.openai_chat.wire import (
    ANALYSIS,
    COMMENTARY,
    NOTHING,
    ChunkReader,
    Function,
    ToolCallPart,
    WireUsage,
    build_error,
    find_reader,
    find_unknown_field,
    is_nothing,
    map_stop_reason,
    read_signature,
    read_usage,
)
from asides.dialects.tagged_text import TaggedText
from asides.providers.provider import Target
from asides.values.errors import ProtocolError
from asides.values.events import (
    CommentaryDelta,
    Event,
    RefusalDelta,
    StopReason,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
    Warned,
)
from asides.values.notices import Notice
from asides.values.thinking import Origin, Seal, ThoughtKind
from asides.wire.deduplicate import RepeatFilter, SharedText, SnapshotFilter
from asides.wire.framing import Framing
from asides.wire.inline_tags import Channel, Piece, Splitter
from asides.wire.lenient import (
    INVALID_TEXT,
    THOUGHT_FIELDS,
    find_mismatch,
    is_marked,
    names_thinking,
    read_document,
    read_thought_text,
    remove_mismatch,
    to_json_text,
)
from asides.wire.sse import DONE

ANALYSIS_BLOCK = 998
COMMENTARY_BLOCK = 999
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

    def __init__(self, target: Target) -> None:
        super().__init__(target, Framing())
        facts, kind = target.facts, target.rule.kind
        self._reader = find_reader(facts.thinking_in, facts.heuristics)
        self._decode = self._reader.decode
        self._choice: int | None = None
        self._phase: Any = None
        self._kind: ThoughtKind = "raw" if kind == "hidden" else kind
        shown: list[str] = []
        self._snapshots: SnapshotFilter | None = SnapshotFilter(snapshots=target.quirks.snapshots)
        self._content = TaggedText(CONTENT_BLOCK, target, self._kind, field_thinking=shown)
        self._thinking = ThinkingDecoder(target, self._kind, shown, self._content.thinking)

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

    def _start(self, chunk: Any, events: list[Event]) -> None:
        model, reply_id = chunk.model, chunk.id
        self.start(events, model if isinstance(model, str) else None, str(reply_id) if reply_id else None)

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

    def _decode_calls(self, message: Any, events: list[Event]) -> None:
        if self._calls is None:
            self._calls = ToolCalls(CALL_BLOCK, self.target.facts.tags, self.origin)
        self._calls.decode(message, events)

    def _decode_choice(self, choice: Any, events: list[Event]) -> None:
        # Some servers send both. In a stream the delta is the new part; in a whole body the message is complete.
        delta = choice.delta
        if choice.messages and delta is None and choice.message is None:
            self._decode_messages(choice.messages, events)
        if delta is None or (choice.message is not None and not self.streamed):
            delta = choice.message
        if delta is not None:
            values = self._reader.thinking_values(delta)
            if values != self._reader.no_thinking or delta.reasoning_details:
                self._thinking.decode(values, delta, self._reader, events)
            content = delta.content
            # A stream may name the phase of a message in its first delta only.
            self._phase = delta.phase or self._phase
            if delta.commentary and type(delta.commentary) is str:
                events.append(CommentaryDelta(delta.commentary, COMMENTARY_BLOCK))
            if content:
                if type(content) is str and COMMENTARY in (self._phase, delta.channel):
                    events.append(CommentaryDelta(content, COMMENTARY_BLOCK))
                elif type(content) is str and delta.channel == ANALYSIS:
                    kind = "raw" if self._kind == "hidden" else self._kind
                    events.append(ThinkingDelta(content, ANALYSIS_BLOCK, kind, "field"))
                elif type(content) is str:
                    self._decode_text(content, events)
                else:
                    self._decode_content_parts(content, events)
            if delta.tool_calls is not None or delta.function_call is not None:
                self._decode_calls(delta, events)
            if delta.refusal:
                events.append(RefusalDelta(str(delta.refusal), REFUSAL_BLOCK))
            if delta.extra_content is not NOTHING or delta.thought_signature or delta.reasoning_opaque:
                self._thinking.decode_signatures(delta, events)
        if choice.finish_reason is not None:
            self._decode_finish(choice.finish_reason, events)
        if choice.usage is not None:
            self._decode_usage(choice.usage, None, events)
        if choice.error and self.failure is None:
            self.failure = build_error(200, {}, choice.error, self.payloads[-1], self.target)

    def _decode_messages(self, messages: Any, events: list[Event]) -> None:
        """Decode an answer of several messages: those of the model, without the calls that the host ran itself."""
        found = [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []
        results = {message.get("tool_call_id") for message in found if message.get("role") == "tool"}
        if results:
            detail = "the results of tools that the host ran are only in metadata['raw']"
            self.warn("unknown_part", detail, events)
        has_text = False
        for message in found:
            if message.get("role") == "tool":
                continue
            calls = message.get("tool_calls")
            if isinstance(calls, list):
                own = [call for call in calls if not isinstance(call, dict) or call.get("id") not in results]
                message = {**message, "tool_calls": own}
            self._phase = None
            if has_text and message.get("content"):
                self._decode_text("\n\n", events)
            has_text = has_text or bool(message.get("content"))
            whole = {name: value for name, value in message.items() if name not in ("index", "metadata")}
            payload = msgspec.json.encode({"choices": [{"index": self._choice, "message": whole}]})
            try:
                chunk = self._decode(payload)
            except (msgspec.DecodeError, UnicodeDecodeError):
                chunk = self._decode_leniently(payload, events)
            for choice in chunk.choices or ():
                self._decode_choice(choice, events)

    # --- content ----------------------------------------------------------------------------------------------------

    def _decode_text(self, text: str, events: list[Event]) -> None:
        snapshots = self._snapshots
        if snapshots is not None:
            text = snapshots.feed(text)
            if snapshots.inactive:
                self._snapshots = None
            if not text:
                return
        self._content.feed(text, events)

    def _decode_content_parts(self, content: Any, events: list[Event]) -> None:
        if not isinstance(content, list):
            self.warn("content_not_text", f"the content is {type(content).__name__}; the answer is its JSON", events)
            self._decode_text(msgspec.json.encode(content).decode(), events)
            return
        for part in content:
            kind = part.get("type") if isinstance(part, dict) else None
            if isinstance(part, str):
                self._decode_text(part, events)
            elif isinstance(part, dict) and is_thinking_part(part):
                emit_part(part, self._content.open_block("thinking", events), self._kind, self.origin, events)
            elif isinstance(part, dict) and kind in ("text", "output_text", None) and isinstance(part.get("text"), str):
                if part["text"]:
                    self._decode_text(part["text"], events)
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
            tier = None if chunk is None else chunk.service_tier
            events.append(UsageReported(read_usage(usage, self.target.quirks.output_excludes_thinking, tier)))

    def flush(self, events: list[Event]) -> None:
        """Emit the held events: no more documents come."""
        if self._snapshots is not None and (held := self._snapshots.finish()):
            self._snapshots = None
            self._decode_text(held, events)
        self._content.finish(events, cut=self.is_cut_off)
        self.truncated_thought = self._content.truncated
        if self._calls is not None:
            self._calls.finish(events)
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


# --- thinking outside the text: fields, `reasoning_details`, signatures, content parts --------------------------------


FIELD_BLOCK = 0
DETAILS = "reasoning_details"


class ThinkingDecoder:
    """Decodes the thinking in the fields of one reply's messages.

    Each reply has one thought from its fields. The field that comes first provides the text; the others only repeat it.

    `shown` receives the text emitted from fields; `tagged` is the thinking emitted from tags in the content.
    """

    __slots__ = ("_details", "_filters", "_kind", "_repeat", "_shown", "_tagged", "_target")

    def __init__(self, target: Target, kind: ThoughtKind, shown: list[str], tagged: list[str]) -> None:
        self._target = target
        self._kind: ThoughtKind = kind
        self._tagged = tagged
        self._filters: dict[str, SnapshotFilter] = {}
        self._details: _Details | None = None
        self._repeat: RepeatFilter | None = None
        self._shown = SharedText(shown)

    def decode(self, values: tuple[Any, ...], delta: Any, reader: ChunkReader, events: list[Event]) -> None:
        """Decode the thinking in one message, or in a piece of one. `values` are those of the thinking fields."""
        kind = self._kind
        additions: list[_Addition] = []
        if delta.reasoning_details:
            if self._details is None:
                self._details = _Details(snapshots=self._target.quirks.snapshots)
                self._details.alone = not self._filters  # a field may have come in an earlier chunk
            entries = delta.reasoning_details if type(delta.reasoning_details) is list else [delta.reasoning_details]
            additions = self._details.merge(entries)
            if additions and additions[0].summary:
                kind = "summary"
            if loose := read_thought_text([entry for entry in entries if not isinstance(entry, dict)]):
                self._emit_field(DETAILS, loose, kind, events)
        has_field = False
        odd: list[tuple[str, str]] = []
        for name, value in zip(reader.thinking_fields, values, strict=True):
            if not value:
                continue
            if type(value) is not str:
                if text := read_thought_text(value):
                    odd.append((name, text))
                else:
                    _warn(events, "unreadable_thinking", f"the field {name} holds {type(value).__name__}, not text")
                continue
            has_field = True
            self._feed_field(name, value, kind, events)
        for name, text in odd:  # a field that holds text comes first (requirements, B4)
            has_field = True
            self._feed_field(name, text, kind, events)
        if self._details is not None:
            if has_field:
                self._details.alone = False
            elif additions:
                self._emit_details(self._details, additions, kind, events)

    def _feed_field(self, name: str, text: str, kind: ThoughtKind, events: list[Event]) -> None:
        snapshots = self._filters.get(name)
        if snapshots is None:
            snapshots = self._open_field(name, events)
        if not snapshots.inactive:
            text = snapshots.feed(text)
        self._emit_field(name, text, kind, events)

    def _open_field(self, name: str, events: list[Event]) -> SnapshotFilter:
        if name not in self._target.facts.thinking_in:
            _warn(events, "unknown_thinking_field", f"the field {name} was read as thinking")
        if self._tagged and not self._shown.pieces:
            self._repeat = RepeatFilter("".join(self._tagged).strip())
        snapshots = self._filters[name] = SnapshotFilter(snapshots=self._target.quirks.snapshots)
        return snapshots

    def _emit_field(self, name: str, text: str, kind: ThoughtKind, events: list[Event]) -> None:
        if not text:
            return
        differed = name in self._shown.differing
        text = self._shown.feed(name, text)
        if not text and name in self._shown.differing and not differed:
            _warn(events, "other_thinking_field", f"the field {name} holds other text and was left out")
        if text and self._repeat is not None:
            text = self._repeat.feed(text)
        if text:
            events.append(ThinkingDelta(text, FIELD_BLOCK, kind, "field", name))

    def _emit_details(
        self, details: _Details, additions: list[_Addition], kind: ThoughtKind, events: list[Event]
    ) -> None:
        for addition in additions:
            text = addition.text
            if text and (not details.alone or self._shown.pieces):
                text = self._shown.feed(DETAILS, text)
            if text:
                block = addition.number if details.alone else FIELD_BLOCK
                events.append(ThinkingDelta(text, block, "summary" if addition.summary else kind, "field", DETAILS))

    def decode_signatures(self, delta: Any, events: list[Event]) -> None:
        """Decode the signatures of a whole message, which are beside its other fields."""
        entry = None if is_nothing(delta.extra_content) else bytes(delta.extra_content)
        value = delta.thought_signature if isinstance(delta.thought_signature, str) else None
        if entry is not None:
            value = read_signature(entry) or value
        if value:
            text = None if entry is None else entry.decode("utf-8", "replace")
            seal = Seal("thought_signature", value, self._target.origin, text)
            events.append(ThoughtSealed(seal, FIELD_BLOCK))
        if isinstance(delta.reasoning_opaque, str) and delta.reasoning_opaque:
            seal = Seal("reasoning_opaque", delta.reasoning_opaque, self._target.origin)
            events.append(ThoughtSealed(seal, FIELD_BLOCK))

    def finish(self, events: list[Event]) -> None:
        """Emit the text that is still held, and the seals."""
        for name, snapshots in self._filters.items():
            self._emit_field(name, snapshots.finish(), self._kind, events)
        details = self._details
        if details is not None:
            self._emit_details(details, details.finish(), self._kind, events)
            for number, seal in details.seals(self._target.origin):
                events.append(ThoughtSealed(seal, number if details.alone else FIELD_BLOCK))


def _warn(events: list[Event], code: str, detail: str) -> None:
    events.append(Warned(Notice(code, detail)))


# --- reasoning_details --------------------------------------------------------------------------------------------

_SUMMARY = "reasoning.summary"
# The fields of an entry that arrive in pieces; every other field comes once.
_GROWING = ("text", "summary", "data", "signature")


class _Addition(msgspec.Struct):
    """The text that one fragment added to its entry."""

    number: int
    text: str
    summary: bool


class _Entry:
    __slots__ = ("fields", "number", "pieces", "snapshots")

    def __init__(self, number: int, *, snapshots: bool) -> None:
        self.number = number
        self.fields: dict[str, Any] = {}
        self.pieces: dict[str, list[str]] = {}
        self.snapshots = SnapshotFilter(snapshots=snapshots)

    def join(self) -> dict[str, Any]:
        """Return the entry as a whole response would have it."""
        return {
            name: "".join(self.pieces[name]) if name in self.pieces else value for name, value in self.fields.items()
        }


class _Details:
    """The entries of one reply: fragments merged by index, type and id. They go back verbatim."""

    __slots__ = ("_entries", "_snapshots", "alone")

    def __init__(self, *, snapshots: bool = False) -> None:
        self._entries: dict[tuple[Any, ...], _Entry] = {}
        self._snapshots = snapshots
        self.alone = True
        """True while no plain field carries the text as well."""

    def merge(self, fragments: list[Any]) -> list[_Addition]:
        """Merge the fragments of one message; return the text they add."""
        return [self._merge(fragment) for fragment in fragments if isinstance(fragment, dict)]

    def _merge(self, fragment: dict[str, Any]) -> _Addition:
        kind = fragment.get("type")
        entry = self._find(fragment.get("index"), kind, fragment.get("id"))
        shown = "summary" if kind == _SUMMARY else "text"
        text = ""
        for name, value in fragment.items():
            if name in _GROWING and isinstance(value, str):
                pieces = entry.pieces.setdefault(name, [])
                if name == shown and value:
                    text = value = value if entry.snapshots.inactive else entry.snapshots.feed(value)
                # A signature comes once, though some servers repeat it; data that repeats is a snapshot.
                if value and not (name in ("signature", "data") and pieces == [value]):
                    pieces.append(value)
                entry.fields.setdefault(name, "")
            elif value is not None or name not in entry.fields:
                entry.fields[name] = value
        if not text and not isinstance(fragment.get(shown), str):
            text = read_thought_text(fragment)
        return _Addition(entry.number, text, kind == _SUMMARY)

    def _find(self, *parts: Any) -> _Entry:
        """Return the entry of this index, type and id, or create it."""
        key = tuple(part if isinstance(part, (str, int, float)) else None for part in parts)
        if key not in self._entries:
            # An entry's id may come late. A fragment without an id belongs to the last entry of its index and type.
            key = next(
                (known for known in reversed(self._entries) if known[:2] == key[:2] and None in (known[2], key[2])), key
            )
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(len(self._entries), snapshots=self._snapshots)
        return entry

    def finish(self) -> list[_Addition]:
        """Return the text that is still held."""
        additions: list[_Addition] = []
        for (_, kind, _), entry in self._entries.items():
            if held := entry.snapshots.finish():
                entry.pieces["summary" if kind == _SUMMARY else "text"].append(held)
                additions.append(_Addition(entry.number, held, kind == _SUMMARY))
        return additions

    def seals(self, origin: Origin) -> Iterator[tuple[int, Seal]]:
        """Yield every entry as a seal: its opaque value, "" if it has none, and the entry verbatim."""
        for number, entry in enumerate(self._entries.values()):
            whole = entry.join()
            value = whole.get("signature") or whole.get("data") or ""
            yield number, Seal(DETAILS, str(value), origin, msgspec.json.encode(whole).decode())


# --- thinking as a part of the content ----------------------------------------------------------------------------

# The fields that hold a seal, and the kind of that seal.
_SEAL_FIELDS = (("signature", "signature"), ("data", "redacted"))


def is_thinking_part(part: dict[str, Any]) -> bool:
    """Whether a content part is thinking: by its type, or by a mark on a text part."""
    return names_thinking(part.get("type")) or is_marked(part.get("thought"))


def emit_part(part: dict[str, Any], block: int, kind: ThoughtKind, origin: Origin, events: list[Event]) -> None:
    """Emit the events of a content part that is thinking."""
    if text := read_thought_text(part):
        events.append(ThinkingDelta(text, block, kind, "block", "content"))
    for seal_kind, value in read_part_seals(part):
        events.append(ThoughtSealed(Seal(seal_kind, value, origin), block, source="block"))


def read_part_seals(part: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the seals of a part as (kind, value): its own, or those of the pieces of its text."""
    pieces = [item for name in THOUGHT_FIELDS if isinstance(part.get(name), list) for item in part[name]]
    return [
        (kind, value)
        for holder in (part, *pieces)
        if isinstance(holder, dict)
        for name, kind in _SEAL_FIELDS
        if isinstance(value := holder.get(name), str) and value
    ]


# --- calls: numbered, unnumbered or in the older form -----------------------------------------------------------------


class _Call:
    __slots__ = ("begun", "block", "custom", "id", "named", "splitter", "started")

    def __init__(self, block: int) -> None:
        self.block = block
        self.id: str | None = None
        self.named = False
        self.custom = False
        """It takes free text, not JSON."""
        self.started = False
        self.begun = False
        """Whether the arguments have begun, without a tag."""
        self.splitter: Splitter | None = None


class ToolCalls:
    """Decodes the calls of one reply."""

    __slots__ = ("_by_index", "_calls", "_first_block", "_origin", "_tags")

    def __init__(self, first_block: int, tags: tuple[str | tuple[str, str], ...], origin: Origin) -> None:
        self._first_block = first_block
        self._tags = tags
        self._origin = origin
        self._calls: list[_Call] = []
        self._by_index: dict[int | None, _Call] = {}

    def decode(self, delta: Any, events: list[Event]) -> None:
        """Decode the calls in one message, or pieces of them."""
        here: list[_Call] = []
        for part in delta.tool_calls or ():
            here.append(self._decode_part(part, events, here))
        legacy: Function | None = delta.function_call
        if legacy is not None and (legacy.name or legacy.arguments):
            self._decode_part(ToolCallPart(function=legacy, index=-1), events, here)

    def _decode_part(self, part: ToolCallPart, events: list[Event], here: list[_Call]) -> _Call:
        function = part.function
        if function is None or not (function.name or function.arguments):
            function = part.custom or function or Function()
        call = self._find_call(part, function, here)
        name = None if call.named or not function.name else function.name
        call_id = None if call.id or not part.id else part.id
        call.named = call.named or bool(name)
        call.id = call.id or call_id
        call.custom = call.custom or (part.custom is not None and function is part.custom)
        text = to_json_text(function.arguments if function.arguments is not None else function.input)
        if text and not call.custom:
            text = self._remove_thinking(call, text, events)
        if text or name or call_id or not call.started:
            call.started = True
            events.append(ToolCallDelta(call.block, call_id, name, text, call.custom))
        if not is_nothing(part.extra_content):
            self._seal(call, bytes(part.extra_content), events)
        return call

    def _find_call(self, part: ToolCallPart, function: Function, here: list[_Call]) -> _Call:
        call = self._by_index.get(part.index)
        is_new = call is None
        if call is not None and part.id and call.id and part.id != call.id and function.name:
            # Some servers number every call 0, or none at all; then the id distinguishes them.
            is_new = True
        elif call is not None and part.index is None and function.name and call.named:
            # Not numbered: a new call if it has no id, or if the earlier call is in the same list.
            is_new = not part.id or call in here
        if is_new or call is None:
            call = _Call(self._first_block + len(self._calls))
            self._calls.append(call)
            self._by_index[part.index] = call
        return call

    def _remove_thinking(self, call: _Call, text: str, events: list[Event]) -> str:
        """Remove a thinking block before the arguments, which some models write there."""
        if call.splitter is None:
            if call.begun or not self._tags or text.lstrip()[:1] not in ("<", "[", ""):
                call.begun = True
                return text
            call.splitter = Splitter(self._tags, "leading", False)
        return self._separate(call, call.splitter.feed(text), events)

    def _separate(self, call: _Call, pieces: list[Piece], events: list[Event]) -> str:
        for number, channel, text in pieces:
            if channel is Channel.THINKING:
                events.append(ThinkingDelta(text, call.block - self._first_block + 900 + number, "raw", "tags"))
        return "".join(text for _, channel, text in pieces if channel is not Channel.THINKING)

    def _seal(self, call: _Call, extra_content: bytes, events: list[Event]) -> None:
        value = read_signature(extra_content)
        if value:
            entry = extra_content.decode("utf-8", "replace")
            events.append(ThoughtSealed(Seal("thought_signature", value, self._origin, entry), call.block))

    def finish(self, events: list[Event]) -> None:
        """Emit the arguments that are still held."""
        for call in self._calls:
            if call.splitter is not None and (text := self._separate(call, call.splitter.finish(), events)):
                events.append(ToolCallDelta(call.block, arguments=text))
