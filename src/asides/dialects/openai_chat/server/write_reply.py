"""Write replies (`ChatWriter`) and errors (`write_error`) as a server of chat completions does."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from asides.dialects.openai_chat.encode_messages import DETAILS
from asides.dialects.openai_chat.wire import COMMENTARY
from asides.dialects.server_half import NO_ARGUMENTS, CallerTool, ContentEvent, ReplyWriter, name_stop
from asides.providers.provider import THINKING_FIELDS
from asides.values.events import (
    BROKEN_OFF,
    CommentaryDelta,
    PartArrived,
    RefusalDelta,
    ReplyStarted,
    StopKind,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
)
from asides.values.fold import fold
from asides.values.usage import Usage

Delta: TypeAlias = dict[str, Any]

_KNOWN_FINISH_REASONS = frozenset({"stop", "length", "tool_calls", "content_filter", "function_call"})
_FINISH_REASONS: dict[StopKind, str] = {
    "length": "length",
    "tool_calls": "tool_calls",
    "content_filter": "content_filter",
    "error": "error",
}
_ID_PREFIX = "chatcmpl-"
_BETWEEN_THOUGHTS = "\n\n"

_ERROR_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


def write_error(status: int, message: str, kind: str | None = None, *, param: str | None = None) -> bytes:
    """Write an error body; clients match on `kind`. `param`: the field of the request that is wrong."""
    fallback = "server_error" if status >= 500 else "invalid_request_error"
    error = {"message": message, "type": _ERROR_TYPES.get(status, fallback), "param": param, "code": kind}
    return msgspec.json.encode({"error": error})


class ChatWriter(ReplyWriter):
    """Events of one reply in, a chat completion out, in chunks or whole.

    Chat has one field for thinking and one for the answer: blocks are joined, thoughts with a blank line between them.
    Commentary has a field of its own, `commentary`: clients read all of `content` as the answer.
    Parts that come whole, and seals of other dialects, are not written.
    """

    parts = ()
    # A comment, which every reader of events skips.
    ping = b": ping\n\n"
    id_prefix = _ID_PREFIX

    def __init__(
        self,
        *,
        model: str,
        stream: bool,
        include_usage: bool = True,
        thinking_field: str = "reasoning_content",
    ) -> None:
        content_type = "text/event-stream" if stream else "application/json"
        super().__init__(model, content_type, shows_usage=include_usage or not stream, stream=stream)
        self._deltas = _Deltas(thinking_field)
        self._output: Chunks | WholeCompletion = (Chunks if stream else WholeCompletion)()
        self._begun = False

    def use_thinking_field(self, name: str) -> None:
        """Write all thinking into this field, whatever its provider called it."""
        self._deltas.field = name

    def _name_call(self, event: ToolCallDelta, tool: CallerTool, arguments: str) -> ToolCallDelta:
        self._deltas.writes_custom = self._deltas.writes_custom or tool.custom
        return super()._name_call(event, tool, arguments)

    def _write_event(self, event: ContentEvent) -> bytes:
        return b"".join([*self._begin(), *map(self._output.add, self._deltas.write(event))])

    def _write_commentary(self, event: CommentaryDelta) -> bytes:
        return b"".join([*self._begin(), *map(self._output.add, self._deltas.write_commentary(event))])

    def _begin(self) -> list[bytes]:
        if self._begun:
            return []
        self._begun = True
        started = msgspec.structs.replace(self._started, id=self._find_id(_ID_PREFIX))
        return [self._output.begin(started, self.created)]

    def _write_end(self, stop: StopReason) -> bytes:
        started = msgspec.structs.replace(self._started, id=self._find_id(_ID_PREFIX))
        written = [*self._begin(), *map(self._output.add, self._deltas.write_waiting(started))]
        if self.request is not None and stop.reason not in BROKEN_OFF:
            written += map(self._output.add, self._deltas.write_no_arguments())
        shown = self._shown_usage
        counted: dict[str, Any] = {}
        if shown is not None:
            # Clients count on all three.
            required = ("prompt_tokens", "completion_tokens", "total_tokens") if self.request is not None else ()
            counted["usage"] = {**dict.fromkeys(required, 0), **_encode_usage(shown)}
            if shown.tier is not None:
                counted["service_tier"] = shown.tier
        reason = self._deltas.encode_stop(stop, is_certain=self.request is not None)
        return b"".join([*written, self._output.end(reason, counted)])

    def _write_failure(self, status: int, message: str, kind: str | None) -> bytes:
        body = write_error(status, message, kind)
        return b"data: %b\n\n" % body if self._stream else body


class _Deltas:
    """Converts events to deltas of the message."""

    def __init__(self, thinking_field: str) -> None:
        self._default_field = thinking_field
        self.field: str | None = None
        """The field of the thinking, once there is some."""
        self._last_thought: int | None = None
        self._blanks = ""
        self._at_start = True
        """Whether only blanks of the current thought have come."""
        self._has_thought = False
        self._last_commentary: int | None = None
        self._has_commentary = False
        self._calls: dict[int, int] = {}
        self.writes_custom = False
        """Whether the client supports free-text tools. Other clients read every call as a function call."""
        self._custom: set[int] = set()
        """The calls of free-text tools."""
        self._bare: dict[int, None] = {}
        """The calls of functions without a word of arguments so far, by their blocks."""
        self._waiting: dict[int, _WaitingCall] = {}
        self._refused = False

    def write(self, event: ContentEvent) -> list[Delta]:
        match event:
            case TextDelta():
                return [{"content": event.text}] if event.text else []
            case ThinkingDelta():
                return self._write_thinking(event)
            case ToolCallDelta():
                return self._write_call(event)
            case ThoughtSealed():
                return self._write_seal(event)
            case RefusalDelta():
                self._refused = self._refused or bool(event.text)
                return [{"refusal": event.text}] if event.text else []
            case PartArrived():
                return []

    def write_commentary(self, event: CommentaryDelta) -> list[Delta]:
        """Write commentary into a field of its own, blocks with a blank line between them."""
        begins, self._last_commentary = event.block != self._last_commentary, event.block
        blanks = _BETWEEN_THOUGHTS if begins and self._has_commentary else ""
        self._has_commentary = self._has_commentary or bool(event.text)
        return [{COMMENTARY: blanks + event.text}] if event.text else []

    def _write_thinking(self, event: ThinkingDelta) -> list[Delta]:
        if event.block != self._last_thought:
            self._last_thought = event.block
            self._blanks = _BETWEEN_THOUGHTS if self._has_thought else ""
            self._at_start = True
        text = event.text
        if self._at_start:
            self._blanks += text
            if not text or text.isspace():
                return []  # a block of blanks does not count as a thought: hold them until more arrives
            text = self._blanks
            self._at_start = False
            self._has_thought = True
        if self.field is None:
            # One name for the whole reply: readers treat two fields as two copies of the same thought.
            self.field = event.via if event.via in THINKING_FIELDS else self._default_field
        return [{self.field: text}] if text else []

    def _write_call(self, event: ToolCallDelta) -> list[Delta]:
        index = self._calls.get(event.block)
        if index is not None and event.block in self._custom:
            return [{"tool_calls": [{"index": index, "custom": {"input": event.arguments}}]}]
        if index is not None:
            if event.arguments:
                self._bare.pop(event.block, None)
            return [_encode_call(index, None, event.name, event.arguments)]
        waiting = self._waiting.setdefault(event.block, _WaitingCall())
        waiting.pieces.append(event)
        if event.id is None:
            # Clients answer a call by its id. A call without one waits for the end, when the fold can derive one.
            return []
        del self._waiting[event.block]
        return self._begin_call(event.block, event.id, waiting)

    def _begin_call(self, block: int, call_id: str, waiting: _WaitingCall) -> list[Delta]:
        index = self._calls[block] = len(self._calls)
        name = next((piece.name for piece in waiting.pieces if piece.name), None)
        arguments = "".join(piece.arguments for piece in waiting.pieces)
        if self.writes_custom and any(piece.custom for piece in waiting.pieces):
            self._custom.add(block)
            custom = {"name": name, "input": arguments}
            return [{"tool_calls": [{"index": index, "id": call_id, "type": "custom", "custom": custom}]}]
        if not arguments:
            self._bare[block] = None
        begun = _encode_call(index, call_id, name, arguments)
        return [begun, *(_encode_call_seal(index, entry) for entry in waiting.seals)]

    def write_waiting(self, started: ReplyStarted) -> list[Delta]:
        """Write the calls that have no id, with the ids that the fold of the same events derives."""
        all_waiting = [self._waiting[block] for block in sorted(self._waiting)]
        folded = fold([started, *(piece for waiting in all_waiting for piece in waiting.pieces)]).tool_calls
        return [
            delta
            for waiting, call in zip(all_waiting, folded, strict=True)
            for delta in self._begin_call(waiting.pieces[0].block, call.id, waiting)
        ]

    def write_no_arguments(self) -> list[Delta]:
        """Write an empty object for each call without arguments: clients parse them as JSON."""
        bare, self._bare = self._bare, {}
        return [_encode_call(self._calls[block], None, None, NO_ARGUMENTS) for block in bare]

    def _write_seal(self, event: ThoughtSealed) -> list[Delta]:
        seal = event.seal
        entry = None if seal.entry is None else msgspec.Raw(seal.entry.encode())
        if seal.kind.startswith(DETAILS):
            return [] if entry is None else [{DETAILS: [entry]}]
        if seal.kind != "thought_signature":
            return []
        if event.block in self._calls:
            return [] if entry is None else [_encode_call_seal(self._calls[event.block], entry)]
        if event.block in self._waiting:
            self._waiting[event.block].seals += [] if entry is None else [entry]
            return []
        return [{"thought_signature": seal.value} if entry is None else {"extra_content": entry}]

    def encode_stop(self, stop: StopReason, *, is_certain: bool = False) -> str | None:
        """Return the original finish reason if this dialect has it, else the nearest; None if there is none and it
        need not be certain.
        """
        if stop.raw in _KNOWN_FINISH_REASONS:
            return stop.raw
        if stop == StopReason() and not is_certain:
            return None
        if stop.reason == "refusal" and self._refused:
            return "stop"
        return name_stop(stop, (), _FINISH_REASONS, complete="tool_calls" if self._calls else "stop")


class _WaitingCall:
    """A call that waits for its id."""

    def __init__(self) -> None:
        self.pieces: list[ToolCallDelta] = []
        self.seals: list[msgspec.Raw] = []


def _encode_call_seal(index: int, entry: msgspec.Raw) -> Delta:
    return {"tool_calls": [{"index": index, "extra_content": entry}]}


def _encode_call(index: int, call_id: str | None, name: str | None, arguments: str) -> Delta:
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    if call_id is None:
        return {"tool_calls": [{"index": index, "function": function}]}
    return {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]}


def _encode_usage(usage: Usage) -> dict[str, Any]:
    """Encode the counts by this dialect's names. A count that was not reported is absent, not zero."""
    counts = {"prompt_tokens": usage.input, "completion_tokens": usage.output, "total_tokens": usage.total}
    encoded: dict[str, Any] = {name: count for name, count in counts.items() if count is not None}
    details = {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_written}
    if known := {name: count for name, count in details.items() if count is not None}:
        encoded["prompt_tokens_details"] = known
    if usage.cost is not None:
        encoded["cost"] = float(usage.cost)
    if usage.thinking is not None:
        encoded["completion_tokens_details"] = {"reasoning_tokens": usage.thinking}
    if usage.tool_requests is not None:
        # A field of a router: the types of this dialect count no searches.
        encoded["server_tool_use"] = {"web_search_requests": usage.tool_requests}
    return encoded


# --- the two forms of a completion: chunks of a stream, and one document ----------------------------------------------


class Chunks:
    """Deltas as server-sent events."""

    def __init__(self) -> None:
        self._head = b""

    def begin(self, started: ReplyStarted, created: int) -> bytes:
        """Write the first chunk, which names the role."""
        head = {
            "id": started.id,
            "object": "chat.completion.chunk",
            "created": created,
            "model": started.model,
        }
        # Encoded once: it is the same for every chunk.
        self._head = b"data: " + msgspec.json.encode(head)[:-1]
        return self.add({"role": "assistant", "content": ""})

    def add(self, delta: Delta) -> bytes:
        """Write a chunk with this delta."""
        return self._write_chunk(msgspec.json.encode(delta), b"null")

    def end(self, finish_reason: str | None, counted: dict[str, Any]) -> bytes:
        """Write the last chunks. `counted`: the fields beside the choices."""
        finish = self._write_chunk(b"{}", msgspec.json.encode(finish_reason))
        if counted:
            finish += b'%b,"choices":[],%b\n\n' % (self._head, msgspec.json.encode(counted)[1:])
        return finish + b"data: [DONE]\n\n"

    def _write_chunk(self, delta: bytes, finish_reason: bytes) -> bytes:
        choice = b'{"index":0,"delta":%b,"finish_reason":%b}' % (delta, finish_reason)
        return b'%b,"choices":[%b]}\n\n' % (self._head, choice)


class WholeCompletion:
    """Deltas joined into one document."""

    def __init__(self) -> None:
        self._created = 0
        self._started = ReplyStarted()
        self._texts: dict[str, list[str]] = {"content": []}
        self._calls: list[dict[str, Any]] = []
        self._arguments: list[list[str]] = []
        self._objects: dict[str, Any] = {}

    def begin(self, started: ReplyStarted, created: int) -> bytes:
        """Read the facts known at the start."""
        self._started, self._created = started, created
        return b""

    def add(self, delta: Delta) -> bytes:
        """Add a delta to the message."""
        for name, value in delta.items():
            if name == "tool_calls":
                self._add_call(value[0])
            elif name == DETAILS:
                self._objects.setdefault(name, []).extend(value)
            elif name in ("extra_content", "thought_signature"):
                self._objects[name] = value
            else:
                self._texts.setdefault(name, []).append(value)
        return b""

    def _add_call(self, piece: dict[str, Any]) -> None:
        if "id" in piece:
            kind = piece["type"]
            self._calls.append({"id": piece["id"], "type": kind, kind: {}})
            self._arguments.append([])
        call, arguments = self._calls[piece["index"]], self._arguments[piece["index"]]
        if "custom" in piece:
            call["custom"] |= {name: value for name, value in piece["custom"].items() if name != "input"}
            arguments.append(piece["custom"]["input"])
            return
        if "extra_content" in piece:
            call["extra_content"] = piece["extra_content"]
        function = piece.get("function", {})
        if "name" in function:
            call["function"].setdefault("name", function["name"])
        if "arguments" in function:
            arguments.append(function["arguments"])

    def end(self, finish_reason: str | None, counted: dict[str, Any]) -> bytes:
        """Write the document. `counted`: the fields beside the choices."""
        texts = {name: "".join(pieces) for name, pieces in self._texts.items()}
        message: dict[str, Any] = {"role": "assistant", **texts, **self._objects}
        message["content"] = message["content"] or None
        if self._calls:
            for call, arguments in zip(self._calls, self._arguments, strict=True):
                is_custom = call["type"] == "custom"
                call[call["type"]]["input" if is_custom else "arguments"] = "".join(arguments)
            message["tool_calls"] = self._calls
        document: dict[str, Any] = {
            "id": self._started.id,
            "object": "chat.completion",
            "created": self._created,
            "model": self._started.model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
            **counted,
        }
        return msgspec.json.encode(document)
