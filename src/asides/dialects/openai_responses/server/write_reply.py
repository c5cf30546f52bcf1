"""Write replies (`ResponsesWriter`) as a server of Responses does: one output item for each block of the reply.

A whole response is built from the same items as a stream. An item that came from this dialect is written with the
fields of its entry. `CompactionWriter` writes what `/responses/compact` answers.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.dialects.openai_chat.server.write_reply import write_error
from asides.dialects.server_half import (
    NO_ARGUMENTS,
    CallerTool,
    ContentEvent,
    ReplyWriter,
    has_all_arguments,
)
from asides.values.events import (
    BROKEN_OFF,
    CommentaryDelta,
    PartArrived,
    RefusalDelta,
    StopKind,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    find_stop_word,
)
from asides.values.messages import OutputSchema, Prompt
from asides.values.parts import Image, ServerTool, UnknownPart
from asides.values.tools import Tool
from asides.values.usage import Usage
from asides.wire.lenient import read_part_json

Wire: TypeAlias = dict[str, Any]
ItemEvent: TypeAlias = ContentEvent | CommentaryDelta
WireEvent: TypeAlias = tuple[str, Wire]

_INCOMPLETE: dict[StopKind, str] = {
    "length": "max_output_tokens",
    "content_filter": "content_filter",
    "refusal": "",  # a response with a refusal is complete
}


class ResponsesWriter(ReplyWriter):
    """Events of one reply in, a response out. Files, and seals of other dialects, are not written.

    An item of a stream ends before the next one begins: text that returns to an earlier block begins another. Only a
    call whose arguments are not complete stays open.
    """

    parts = (ServerTool, UnknownPart, Image)
    # A comment, which every reader of events skips.
    ping = b": ping\n\n"
    id_prefix = "resp_"

    def __init__(self, *, model: str, stream: bool, include_usage: bool = True) -> None:
        content_type = "text/event-stream" if stream else "application/json"
        super().__init__(model, content_type, shows_usage=include_usage, stream=stream)
        self._items: dict[int, OutputItem] = {}
        """The last item of each block."""
        self._output: list[tuple[int, OutputItem]] = []
        """All items with their blocks, in order."""
        self._open: OutputItem | None = None
        self._unfinished: list[OutputItem] = []
        """Calls whose arguments may continue after the next item has begun."""
        self._namespaces: dict[int, str] = {}
        self._number = 0
        self._begun = False
        self._echo: Wire = {}
        """The settings of the request, as a response repeats them."""

    def serve(self, request: ServedRequest, tools: Mapping[str, CallerTool], *, foreign: bool) -> None:
        """Write for the client of this request, with its settings in the response."""
        super().serve(request, tools, foreign=foreign)
        self._echo = echo_settings(request.prompt)

    def _write_commentary(self, event: CommentaryDelta) -> bytes:
        return self._write_event(event)

    def _write_event(self, event: ItemEvent) -> bytes:
        return b"".join([*self._begin(), *self._write_to_item(event)])

    def _name_call(self, event: ToolCallDelta, tool: CallerTool, arguments: str) -> ToolCallDelta:
        if tool.namespace:
            self._namespaces[event.block] = tool.namespace
        return super()._name_call(event, tool, arguments)

    # --- items ------------------------------------------------------------------------------------------------------

    def _write_to_item(self, event: ItemEvent) -> list[bytes]:
        item = self._items.get(event.block)
        written: list[bytes] = []
        if item is None or (
            item.closed and isinstance(event, (TextDelta, CommentaryDelta, ThinkingDelta, RefusalDelta))
        ):
            number = len(self._output)
            item = begin_item(event, self._id, number, self._namespaces.get(event.block, ""))
            if item is None:
                return []
            written += self._leave_item()
            item.index = number
            self._items[event.block] = self._open = item
            self._output.append((event.block, item))
            added = {"output_index": item.index, "item": item.start()}
            written.append(self._write_sse("response.output_item.added", added))
            item.announced = self._stream
        if item.closed:
            return written  # the item is already sent, so a late seal is dropped
        for kind, fields in item.write(event):
            written.append(self._write_sse(kind, {"item_id": item.id, "output_index": item.index, **fields}))
        return written

    def _leave_item(self) -> list[bytes]:
        """End the open item, unless it is a call that may continue."""
        item = self._open
        if item is not None and self._stream and item.can_go_on():
            self._unfinished.append(item)
            self._open = None
            return []
        return self._close_item()

    def _close_item(self) -> list[bytes]:
        item, self._open = self._open, None
        return [] if item is None or not self._stream else self._close(item)

    def _close(self, item: OutputItem) -> list[bytes]:
        item.closed = True
        written = [
            self._write_sse(kind, {"item_id": item.id, "output_index": item.index, **fields})
            for kind, fields in item.finish()
        ]
        done = self._write_sse("response.output_item.done", {"output_index": item.index, "item": item.encode()})
        return [*written, done]

    def _close_all(self) -> list[bytes]:
        unfinished, self._unfinished = self._unfinished, []
        return [line for item in unfinished for line in self._close(item)] + self._close_item()

    # --- the response -----------------------------------------------------------------------------------------------

    def _begin(self) -> list[bytes]:
        if self._begun:
            return []
        self._begun = True
        if not self._stream:
            return []
        response = self._encode_response("in_progress")
        return [self._write_sse(kind, {"response": response}) for kind in ("response.created", "response.in_progress")]

    def _write_end(self, stop: StopReason) -> bytes:
        if stop.reason == "error" and self._is_foreign:
            return self._write_failure(502, "the model's provider ended the reply with an error", None)
        reason = find_stop_word(_INCOMPLETE, stop.reason) or None
        if reason is not None and self._open is not None:
            self._open.status = "incomplete"
        if self.request is not None and stop.reason not in BROKEN_OFF:
            for _, item in self._output:
                item.is_whole = True
        written = [*self._begin(), *self._close_all()]
        response = self._finish_response("completed" if reason is None else "incomplete")
        if reason is not None:
            response["incomplete_details"] = {"reason": reason}
        if not self._stream:
            return msgspec.json.encode(response)
        return b"".join([*written, self._write_sse(f"response.{response['status']}", {"response": response})])

    def _write_failure(self, status: int, message: str, kind: str | None) -> bytes:
        if not self._stream:
            return write_error(status, message, kind)
        written = self._begin()
        response = self._finish_response("failed")
        response["error"] = {"code": kind or _ERROR_CODES.get(status, "server_error"), "message": message}
        return b"".join([*written, self._write_sse("response.failed", {"response": response})])

    def _finish_response(self, status: str) -> Wire:
        response = self._encode_response(status)
        items = [item for _, item in self._output] if self._stream else _sort_items(self._output)
        response["output"] = [item.encode() for item in items]
        usage = self._shown_usage
        if usage is not None and (usage != Usage() or self.request is not None):
            response["usage"] = _encode_usage(usage)
            if usage.tool_requests is not None:
                response["tool_usage"] = {"web_search": {"num_requests": usage.tool_requests}}
            response["service_tier"] = usage.tier or response["service_tier"]
        return response

    @property
    def _id(self) -> str:
        return self._find_id("resp_")

    def _encode_response(self, status: str) -> Wire:
        return {
            "id": self._id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "model": self._started.model,
            **(self._echo or _echo_defaults()),
            "output": [],
            "store": self._started.stored,
            "usage": None,
        }

    def _write_sse(self, kind: str, fields: Wire) -> bytes:
        if not self._stream:
            return b""
        document = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode(document))


# Clients know these codes; some ask again after the first two.
_ERROR_CODES = {
    429: "rate_limit_exceeded",
    503: "server_is_overloaded",
    529: "server_is_overloaded",
    400: "invalid_prompt",
}


def _sort_items(placed: Sequence[tuple[int, OutputItem]]) -> list[OutputItem]:
    """The items in the order of their blocks. An added one, with a block below zero, precedes the next one."""
    places: list[tuple[float, bool, OutputItem]] = []
    behind = math.inf
    for block, item in reversed(placed):
        behind = block if block >= 0 else behind
        places.insert(0, (behind, block >= 0, item))
    return [item for *_, item in sorted(places, key=lambda place: place[:2])]


def _encode_usage(usage: Usage) -> Wire:
    """Encode the counts by this dialect's names. Clients may count on every one, so one that is unknown is zero."""
    received, sent = usage.input or 0, usage.output or 0
    cost = {} if usage.cost is None else {"cost": float(usage.cost)}
    return {
        "input_tokens": received,
        "input_tokens_details": {"cached_tokens": usage.cached or 0, "cache_write_tokens": usage.cache_written or 0},
        "output_tokens": sent,
        "output_tokens_details": {"reasoning_tokens": usage.thinking or 0},
        "total_tokens": received + sent if usage.total is None else usage.total,
        **cost,
    }


# --- items while they are written -------------------------------------------------------------------------------------


"""The type of an event on the wire, and its fields."""

_ID_PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "image_generation_call": "ig",
}


def make_item_id(kind: str, response_id: str, number: int) -> str:
    """Make the id of an item: unique if the response's id is."""
    return f"{_ID_PREFIXES.get(kind, 'item')}_{response_id.removeprefix('resp_')}_{number}"


def begin_item(event: ItemEvent, response_id: str, number: int, namespace: str = "") -> OutputItem | None:
    """Make the item that this event begins; None if it begins none. `namespace`: that of the tool which it calls."""
    match event:
        case ThinkingDelta():
            return _Reasoning(response_id, number)
        case ThoughtSealed():
            return _begin_sealed(event, response_id, number) if event.seal.kind == "encrypted" else None
        case TextDelta():
            return _Message(response_id, number)
        case CommentaryDelta():
            return _Message(response_id, number, phase="commentary")
        case RefusalDelta():
            return _Message(response_id, number, refuses=True)
        case ToolCallDelta():
            return _Call(response_id, number, event, namespace)
        case PartArrived(part=Image(data=bytes() as data)):
            return _Picture(response_id, number, data)
        case PartArrived(part=ServerTool() | UnknownPart()):
            return _Part(response_id, number, event)
        case PartArrived():
            return None


def _begin_sealed(event: ThoughtSealed, response_id: str, number: int) -> OutputItem:
    """A thought without text. Its own id is known before the item is announced."""
    item = _Reasoning(response_id, number)
    item.store_entry(event, "reasoning")
    item.id = str(item.entry.get("id") or item.id)
    return item


class OutputItem:
    """One item of the output."""

    def __init__(self, kind: str, response_id: str, number: int) -> None:
        self.id = make_item_id(kind, response_id, number)
        self.index = 0
        self.announced = False
        """Whether the client of a stream knows its id. It is fixed from then on: clients find the item by it."""
        self.closed = False
        self.status = "completed"
        """The status that it ends with."""
        self.pieces: list[str] = []
        self.is_whole = False
        """Whether the reply has ended, so that what has not come is not there."""
        self.entry: Wire = {}

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self.pieces)

    def can_go_on(self) -> bool:
        """Whether more of it may come after another item has begun."""
        return False

    def write(self, event: ItemEvent) -> Iterator[WireEvent]:
        """Add an event; yield its events on the wire."""
        raise NotImplementedError

    def finish(self) -> Iterator[WireEvent]:
        """Yield the events that end the parts of the item."""
        yield from ()

    def start(self) -> Wire:
        """Encode the item as it is announced, before its content."""
        return {**self.encode(), "status": "in_progress"}

    def encode(self) -> Wire:
        """Encode the item with its content so far."""
        raise NotImplementedError

    def store_entry(self, event: ThoughtSealed, *kinds: str) -> None:
        """Keep the item that a seal came in, if it is of one of these kinds."""
        if event.seal.entry is not None:
            entry = msgspec.json.decode(event.seal.entry)
            if isinstance(entry, dict) and entry.get("type") in kinds:
                self.entry = {**entry, "id": self.id} if self.announced else entry

    def _select_entry(self, *names: str) -> Wire:
        return {name: value for name, value in self.entry.items() if name in names}


class _Message(OutputItem):
    def __init__(self, response_id: str, number: int, *, refuses: bool = False, phase: str = "") -> None:
        super().__init__("message", response_id, number)
        self._phase: Wire = {"phase": phase} if phase else {}
        self._field = "refusal" if refuses else "text"
        self._kind = "refusal" if refuses else "output_text"
        # Clients count on a list of probabilities beside every piece of text, even if it is empty.
        self._more: Wire = {} if refuses else {"logprobs": []}

    def write(self, event: ItemEvent) -> Iterator[WireEvent]:
        if isinstance(event, ThoughtSealed):
            self.store_entry(event, "message")
        if isinstance(event, (TextDelta, CommentaryDelta, RefusalDelta)) and event.text:
            if not self.pieces:
                yield "response.content_part.added", {"content_index": 0, "part": self._encode_part("")}
            self.pieces.append(event.text)
            yield f"response.{self._kind}.delta", {"content_index": 0, **self._more, "delta": event.text}

    def finish(self) -> Iterator[WireEvent]:
        if self.pieces:
            yield f"response.{self._kind}.done", {"content_index": 0, self._field: self.text, **self._more}
            yield "response.content_part.done", {"content_index": 0, "part": self._encode_part(self.text)}

    def _encode_part(self, text: str) -> Wire:
        part: Wire = {"type": self._kind, self._field: text}
        return part if self._kind == "refusal" else {**part, "annotations": [], **self._more}

    def encode(self) -> Wire:
        content = [self._encode_part(self.text)] if self.pieces else []
        item = {"type": "message", "id": self.id, "role": "assistant", "status": self.status, "content": content}
        return {**item, **self._phase, **self._select_entry("id", "phase")}


class _Reasoning(OutputItem):
    def __init__(self, response_id: str, number: int) -> None:
        super().__init__("reasoning", response_id, number)
        self._raw = False
        self._encrypted: str | None = None

    def write(self, event: ItemEvent) -> Iterator[WireEvent]:
        if isinstance(event, ThoughtSealed):
            self.store_entry(event, "reasoning")
            if event.seal.kind == "encrypted":
                self._encrypted = event.seal.value
        if isinstance(event, ThinkingDelta) and event.text:
            if not self.pieces:
                self._raw = event.kind != "summary"
                if not self._raw:
                    part = {"type": "summary_text", "text": ""}
                    yield "response.reasoning_summary_part.added", {"summary_index": 0, "part": part}
            self.pieces.append(event.text)
            yield f"response.{self._kind}.delta", {**self._index, "delta": event.text}

    @property
    def _kind(self) -> str:
        return "reasoning_text" if self._raw else "reasoning_summary_text"

    @property
    def _index(self) -> Wire:
        return {"content_index": 0} if self._raw else {"summary_index": 0}

    def finish(self) -> Iterator[WireEvent]:
        if not self.pieces:
            return
        yield f"response.{self._kind}.done", {**self._index, "text": self.text}
        if not self._raw:
            part = {"type": "summary_text", "text": self.text}
            yield "response.reasoning_summary_part.done", {"summary_index": 0, "part": part}

    def encode(self) -> Wire:
        item: Wire = {"type": "reasoning", "id": self.id, "summary": []}
        if self.pieces and self._raw:
            item["content"] = [{"type": "reasoning_text", "text": self.text}]
        elif self.pieces:
            item["summary"] = [{"type": "summary_text", "text": self.text}]
        if self._encrypted is not None:
            item["encrypted_content"] = self._encrypted
        return {**item, **self.entry}


class _Call(OutputItem):
    def __init__(self, response_id: str, number: int, event: ToolCallDelta, namespace: str) -> None:
        self._kind = "custom_tool_call" if event.custom else "function_call"
        super().__init__(self._kind, response_id, number)
        self._field = "input" if event.custom else "arguments"
        self._call_id = event.id
        self._name = event.name
        self._beside: Wire = {"namespace": namespace} if namespace else {}

    def write(self, event: ItemEvent) -> Iterator[WireEvent]:
        if isinstance(event, ThoughtSealed):
            self.store_entry(event, "function_call", "custom_tool_call")
        if isinstance(event, ToolCallDelta):
            self._call_id, self._name = self._call_id or event.id, self._name or event.name
            if event.arguments:
                self.pieces.append(event.arguments)
                yield f"response.{self._kind}_{self._field}.delta", {"delta": event.arguments}

    def can_go_on(self) -> bool:
        return self._field == "arguments" and not has_all_arguments(self.pieces)

    def finish(self) -> Iterator[WireEvent]:
        if self._lacks_arguments:
            yield f"response.{self._kind}_{self._field}.delta", {"delta": NO_ARGUMENTS}
            self.pieces.append(NO_ARGUMENTS)
        yield f"response.{self._kind}_{self._field}.done", {self._field: self.text}

    @property
    def _lacks_arguments(self) -> bool:
        return self.is_whole and self._field == "arguments" and not self.text

    def encode(self) -> Wire:
        return {
            "type": self._kind,
            "id": self.id,
            "call_id": self._call_id or self.id,
            "name": self._name or "",
            **self._beside,
            self._field: NO_ARGUMENTS if self._lacks_arguments else self.text,
            "status": self.status,
            **self._select_entry("id", "namespace"),
        }


class _Picture(OutputItem):
    """A picture of the model, as the item of the tool that makes pictures here."""

    def __init__(self, response_id: str, number: int, data: bytes) -> None:
        super().__init__("image_generation_call", response_id, number)
        self._result = b64encode(data).decode()

    def write(self, event: ItemEvent) -> Iterator[WireEvent]:  # noqa: ARG002 - it has come whole
        yield from ()

    def encode(self) -> Wire:
        return {"type": "image_generation_call", "id": self.id, "status": self.status, "result": self._result}


class _Part(OutputItem):
    """An item written in one piece: a tool that the provider ran, or an unknown item."""

    def __init__(self, response_id: str, number: int, event: PartArrived) -> None:
        super().__init__("item", response_id, number)
        self._item = _encode_part(event)
        self.id = str(self._item.get("id") or self.id)

    def write(self, event: ItemEvent) -> Iterator[WireEvent]:
        if isinstance(event, PartArrived):
            self._item = _encode_part(event)
            if isinstance(event.part, ServerTool) and event.part.status:
                yield f"response.{event.part.name}.{event.part.status}", {}

    def start(self) -> Wire:
        return self._item

    def encode(self) -> Wire:
        return self._item


def _encode_part(event: PartArrived) -> Wire:
    if not isinstance(event.part, (ServerTool, UnknownPart)):
        return {}
    item = read_part_json(event.part.json)
    if isinstance(event.part, ServerTool):
        known = {"id": event.part.id, "status": event.part.status}
        return {**item, "type": event.part.name, **{name: value for name, value in known.items() if value is not None}}
    return item if isinstance(item, dict) else {"type": "unknown", "value": item}


# --- the settings that a response repeats -----------------------------------------------------------------------------


def echo_settings(prompt: Prompt) -> Wire:
    """Return the settings of a prompt by the names of this dialect: every field that a response must have, with the
    server's default where the request says nothing (Open Responses, schema of 2026-11).
    """
    extra, sampling = prompt.extra, prompt.sampling
    tools = extra.get("tools") or [_encode_tool(tool) for tool in prompt.tools]
    text: Wire = {"format": _encode_output(prompt), **(extra.get("text") or {})}
    return {
        "instructions": prompt.system,
        "metadata": prompt.metadata or {},
        "parallel_tool_calls": prompt.parallel_tool_calls is not False,
        "tool_choice": extra.get("tool_choice") or _encode_choice(prompt.tool_choice),
        # It is the longest setting, and three events repeat it.
        "tools": msgspec.Raw(msgspec.json.encode(tools)),
        "temperature": 1.0 if sampling.temperature is None else sampling.temperature,
        "top_p": 1.0 if sampling.top_p is None else sampling.top_p,
        "presence_penalty": sampling.presence_penalty or 0.0,
        "frequency_penalty": sampling.frequency_penalty or 0.0,
        "top_logprobs": sampling.top_logprobs or 0,
        "max_tool_calls": extra.get("max_tool_calls"),
        "background": bool(extra.get("background")),
        "service_tier": extra.get("service_tier") or "default",
        "safety_identifier": extra.get("safety_identifier"),
        "prompt_cache_key": extra.get("prompt_cache_key"),
        # The time of the end is not known here: who writes has no clock.
        "completed_at": None,
        "max_output_tokens": prompt.max_tokens,
        "previous_response_id": prompt.state.previous_response_id,
        "reasoning": {"effort": _encode_effort(prompt), "summary": prompt.thinking.summary},
        "text": text,
        "truncation": prompt.state.truncation or "disabled",
        "user": prompt.user,
    }


@cache
def _echo_defaults() -> Wire:
    """The settings in a response to a request that is not known."""
    return echo_settings(Prompt(()))


def _encode_tool(tool: Tool) -> Wire:
    described: Wire = {"type": "function", "name": tool.name, "description": tool.description or None}
    return {**described, "parameters": tool.parameters, "strict": tool.strict is True}


def _encode_choice(choice: str | None) -> str | Wire:
    if choice is None or choice in ("auto", "none", "required"):
        return choice or "auto"
    return {"type": "function", "name": choice}


def _encode_effort(prompt: Prompt) -> str | None:
    return "none" if prompt.thinking.mode == "off" else prompt.thinking.effort


def _encode_output(prompt: Prompt) -> Wire:
    match prompt.output:
        case OutputSchema(name=name, schema=schema, strict=strict):
            return {"type": "json_schema", "name": name, "schema": schema, "strict": strict}
        case "json":
            return {"type": "json_object"}
        case _:
            return {"type": "text"}


# --- a compacted conversation, as `/responses/compact` answers --------------------------------------------------------


_STAYING = frozenset({"user", "developer", "system"})


class CompactionWriter(ResponsesWriter):
    """Events of one reply in, a compacted conversation out: the messages that stay, then one item.

    `keep` says what stays beside the reply's items. Source: developers.openai.com
    api/reference/resources/responses/methods/compact (2026-11).
    """

    def __init__(self, *, model: str, stream: bool = False, include_usage: bool = True) -> None:  # noqa: ARG002 - as of its kind
        super().__init__(model=model, stream=False, include_usage=include_usage)
        self._kept: list[dict[str, Any]] = []

    def keep(self, items: Sequence[Mapping[str, Any]]) -> None:
        """Keep the words of the user, and instructions, out of these items of a request."""
        self._kept = [_write_message(item) for item in items if _is_staying(item)]

    def _write_end(self, stop: StopReason) -> bytes:  # noqa: ARG002 - whatever it is
        response = self._finish_response("completed")
        return msgspec.json.encode(
            {
                "id": self._id,
                "object": "response.compaction",
                "created_at": self.created,
                "output": [*self._kept, *response["output"]],
                "usage": response["usage"],
            }
        )


def _is_staying(item: Mapping[str, Any]) -> bool:
    return item.get("type", "message") == "message" and item.get("role") in _STAYING


def _write_message(item: Mapping[str, Any]) -> dict[str, Any]:
    content = item.get("content")
    parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
    return {**item, "status": "completed", "content": parts}
