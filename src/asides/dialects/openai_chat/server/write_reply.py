"""The server half: requests in (`read`, `import_message`), replies and errors out (`ChatWriter`, `write_error`).

Not here: sockets and status lines, which are the stage's and the gateway's. A whole response is a stream that was put
together: both are made of the same deltas.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from asides.dialects.openai_chat.encode_messages import DETAILS
from asides.dialects.openai_chat.server.read_request import read
from asides.dialects.server_half import ReplyWriter
from asides.providers.provider import THINKING_FIELDS
from asides.values.events import (
    Event,
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

__all__ = ["ChatWriter", "read", "read_message", "read_messages", "write_error"]

Delta: TypeAlias = dict[str, Any]

_FINISH_REASONS = frozenset({"stop", "length", "tool_calls", "content_filter", "function_call"})
_BETWEEN_THOUGHTS = "\n\n"

_ERROR_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


def write_error(status: int, message: str, kind: str | None = None) -> bytes:
    """An error body; `kind` is what clients match on."""
    fallback = "server_error" if status >= 500 else "invalid_request_error"
    error = {"message": message, "type": _ERROR_TYPES.get(status, fallback), "param": None, "code": kind}
    return msgspec.json.encode({"error": error})


class ChatWriter(ReplyWriter):
    """Events of one reply in, a chat completion out, in chunks or whole.

    Chat has one field for thinking and one for the answer: blocks flow together, thoughts with a blank line between
    them. Warnings are not on this wire, nor are seals of other dialects.
    """

    def __init__(
        self,
        *,
        model: str,
        stream: bool,
        include_usage: bool = True,
        thinking_field: str = "reasoning_content",
        created: int = 0,
    ) -> None:
        content_type = "text/event-stream" if stream else "application/json"
        super().__init__(model, content_type, shows_usage=include_usage or not stream)
        self._deltas = _Deltas(thinking_field)
        self._out: _Chunks | _Whole = (_Chunks if stream else _Whole)(created)
        self._begun = False

    def _write_event(self, event: Event) -> bytes:
        return b"".join([*self._begin(), *map(self._out.add, self._deltas.of(event))])

    def _begin(self) -> list[bytes]:
        if self._begun:
            return []
        self._begun = True
        return [self._out.begin(self._started)]

    def _write_end(self, stop: StopReason) -> bytes:
        written = [*self._begin(), *map(self._out.add, self._deltas.held(self._started))]
        usage = None if self._shown_usage is None else _usage(self._shown_usage)
        return b"".join([*written, self._out.end(self._deltas.finish_reason(stop), usage)])


class _Deltas:
    """What each event is on the wire, as a delta of the message."""

    def __init__(self, thinking_field: str) -> None:
        self._default_field = thinking_field
        self._field: str | None = None
        self._thought: int | None = None
        self._blanks = ""
        self._at_start = True
        """Nothing but blanks has come of the thought under way."""
        self._has_thought = False
        self._calls: dict[int, int] = {}
        self._unidentified: dict[int, _Unidentified] = {}
        self._refused = False

    def of(self, event: Event) -> list[Delta]:
        match event:
            case TextDelta():
                return [{"content": event.text}] if event.text else []
            case ThinkingDelta():
                return self._thinking(event)
            case ToolCallDelta():
                return self._call(event)
            case ThoughtSealed():
                return self._sealed(event)
            case RefusalDelta():
                self._refused = self._refused or bool(event.text)
                return [{"refusal": event.text}] if event.text else []
            case _:
                return []

    def _thinking(self, event: ThinkingDelta) -> list[Delta]:
        if event.block != self._thought:
            self._thought = event.block
            self._blanks = _BETWEEN_THOUGHTS if self._has_thought else ""
            self._at_start = True
        text = event.text
        if self._at_start:
            self._blanks += text
            if not text or text.isspace():
                return []  # a block of blanks is no thought, so they wait for a word
            text = self._blanks
            self._at_start = False
            self._has_thought = True
        if self._field is None:
            # One name for the whole reply: readers take two fields for two tellings of the same thought.
            self._field = event.via if event.via in THINKING_FIELDS else self._default_field
        return [{self._field: text}] if text else []

    def _call(self, event: ToolCallDelta) -> list[Delta]:
        index = self._calls.get(event.block)
        if index is not None:
            return [_call_delta(index, None, event.name, event.arguments)]
        waiting = self._unidentified.setdefault(event.block, _Unidentified())
        waiting.pieces.append(event)
        if event.id is None:
            # Clients answer a call by its id. Without one it waits for the end, when one can be derived from all of it.
            return []
        del self._unidentified[event.block]
        return self._begin_call(event.block, event.id, waiting)

    def _begin_call(self, block: int, call_id: str, waiting: _Unidentified) -> list[Delta]:
        index = self._calls[block] = len(self._calls)
        name = next((piece.name for piece in waiting.pieces if piece.name), None)
        begun = _call_delta(index, call_id, name, "".join(piece.arguments for piece in waiting.pieces))
        return [begun, *(_call_seal(index, entry) for entry in waiting.seals)]

    def held(self, started: ReplyStarted) -> list[Delta]:
        """The calls that nobody gave an id, with the ids that the fold of the same events gives them."""
        waiting = [self._unidentified[block] for block in sorted(self._unidentified)]
        folded = fold([started, *(piece for one in waiting for piece in one.pieces)]).tool_calls
        return [
            delta
            for one, call in zip(waiting, folded, strict=True)
            for delta in self._begin_call(one.pieces[0].block, call.id, one)
        ]

    def _sealed(self, event: ThoughtSealed) -> list[Delta]:
        seal = event.seal
        entry = None if seal.entry is None else msgspec.Raw(seal.entry.encode())
        if seal.kind.startswith(DETAILS):
            return [] if entry is None else [{DETAILS: [entry]}]
        if seal.kind != "thought_signature":
            return []
        if event.block in self._calls:
            return [] if entry is None else [_call_seal(self._calls[event.block], entry)]
        if event.block in self._unidentified:
            self._unidentified[event.block].seals += [] if entry is None else [entry]
            return []
        return [{"thought_signature": seal.value} if entry is None else {"extra_content": entry}]

    def finish_reason(self, stop: StopReason) -> str | None:
        """The provider's own word where this dialect has it, else ours in its words; None where nobody said."""
        if stop.raw in _FINISH_REASONS:
            return stop.raw
        if stop == StopReason():
            return None
        spoken: dict[StopKind, str] = {
            "length": "length",
            "tool_calls": "tool_calls",
            "content_filter": "content_filter",
            "refusal": "stop" if self._refused else "content_filter",
            "error": "error",
        }
        return spoken.get(stop.reason, "tool_calls" if self._calls else "stop")


class _Unidentified:
    """A call that waits for its id."""

    def __init__(self) -> None:
        self.pieces: list[ToolCallDelta] = []
        self.seals: list[msgspec.Raw] = []


def _call_seal(index: int, entry: msgspec.Raw) -> Delta:
    return {"tool_calls": [{"index": index, "extra_content": entry}]}


def _call_delta(index: int, call_id: str | None, name: str | None, arguments: str) -> Delta:
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    if call_id is None:
        return {"tool_calls": [{"index": index, "function": function}]}
    return {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]}


def _usage(usage: Usage) -> dict[str, Any]:
    """Counts under their chat names; what was not reported is absent, not zero."""
    counts = {"prompt_tokens": usage.input, "completion_tokens": usage.output, "total_tokens": usage.total}
    spelled: dict[str, Any] = {name: count for name, count in counts.items() if count is not None}
    if usage.cached is not None:
        spelled["prompt_tokens_details"] = {"cached_tokens": usage.cached}
    if usage.thinking is not None:
        spelled["completion_tokens_details"] = {"reasoning_tokens": usage.thinking}
    return spelled


class _Chunks:
    """Deltas as server-sent events."""

    def __init__(self, created: int) -> None:
        self._created = created
        self._head = b""

    def begin(self, started: ReplyStarted) -> bytes:
        said = {
            "id": started.id or "",
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": started.model,
        }
        # The same for every chunk, so it is written once.
        self._head = b"data: " + msgspec.json.encode(said)[:-1]
        return self.add({"role": "assistant", "content": ""})

    def add(self, delta: Delta) -> bytes:
        return self._chunk(msgspec.json.encode(delta), b"null")

    def end(self, finish_reason: str | None, usage: dict[str, Any] | None) -> bytes:
        finish = self._chunk(b"{}", msgspec.json.encode(finish_reason))
        if usage is not None:
            finish += b'%b,"choices":[],"usage":%b}\n\n' % (self._head, msgspec.json.encode(usage))
        return finish + b"data: [DONE]\n\n"

    def _chunk(self, delta: bytes, finish_reason: bytes) -> bytes:
        choice = b'{"index":0,"delta":%b,"finish_reason":%b}' % (delta, finish_reason)
        return b'%b,"choices":[%b]}\n\n' % (self._head, choice)


class _Whole:
    """Deltas put together into one document."""

    def __init__(self, created: int) -> None:
        self._created = created
        self._started = ReplyStarted()
        self._texts: dict[str, list[str]] = {"content": []}
        self._calls: list[dict[str, Any]] = []
        self._arguments: list[list[str]] = []
        self._objects: dict[str, Any] = {}

    def begin(self, started: ReplyStarted) -> bytes:
        self._started = started
        return b""

    def add(self, delta: Delta) -> bytes:
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
            self._calls.append({"id": piece["id"], "type": "function", "function": {}})
            self._arguments.append([])
        call, arguments = self._calls[piece["index"]], self._arguments[piece["index"]]
        if "extra_content" in piece:
            call["extra_content"] = piece["extra_content"]
        function = piece.get("function", {})
        if "name" in function:
            call["function"].setdefault("name", function["name"])
        if "arguments" in function:
            arguments.append(function["arguments"])

    def end(self, finish_reason: str | None, usage: dict[str, Any] | None) -> bytes:
        texts = {name: "".join(pieces) for name, pieces in self._texts.items()}
        message: dict[str, Any] = {"role": "assistant", **texts, **self._objects}
        message["content"] = message["content"] or None
        if self._calls:
            for call, arguments in zip(self._calls, self._arguments, strict=True):
                call["function"]["arguments"] = "".join(arguments)
            message["tool_calls"] = self._calls
        document: dict[str, Any] = {
            "id": self._started.id or "",
            "object": "chat.completion",
            "created": self._created,
            "model": self._started.model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        }
        if usage is not None:
            document["usage"] = usage
        return msgspec.json.encode(document)
