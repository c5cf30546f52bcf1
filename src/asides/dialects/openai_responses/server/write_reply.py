"""Write replies (`ResponsesWriter`) as a server of Responses does: one output item for each block of the reply.

A whole response is built from the same items as a stream. An item that came from this dialect is written with the
fields of its entry. Not here: requests (read_request), single items (output_items), the settings that a response
repeats (echo_settings), the bodies of errors (openai_chat/server/write_reply), sockets and status lines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.dialects.openai_chat.server.write_reply import write_error
from asides.dialects.openai_responses.server.echo_settings import echo_settings
from asides.dialects.openai_responses.server.output_items import OutputItem, begin_item
from asides.dialects.server_half import CallerTool, ContentEvent, ReplyWriter
from asides.values.events import RefusalDelta, StopReason, TextDelta, ThinkingDelta, ToolCallDelta
from asides.values.parts import Image, ServerTool, UnknownPart
from asides.values.usage import Usage

Wire: TypeAlias = dict[str, Any]


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
        """Calls whose arguments may go on after the next item has begun."""
        self._namespaces: dict[int, str] = {}
        self._number = 0
        self._begun = False
        self._echo: Wire = {}
        """The settings of the request, as a response repeats them."""
        self._more = _MoreText()

    def serve(self, request: ServedRequest, tools: Mapping[str, CallerTool], *, foreign: bool) -> None:
        """Write for the client of this request, with its settings in the response."""
        super().serve(request, tools, foreign=foreign)
        self._echo = echo_settings(request.prompt)

    # Three short ways: more text for the item that is open in a stream.

    def _write_text(self, event: TextDelta) -> bytes:
        more = self._more
        if event.block == more.text and event.text:
            return self._write_more(more, event.text)
        return self._write_event(event)

    def _write_thinking(self, event: ThinkingDelta) -> bytes:
        more = self._more
        if event.block == more.thought and event.text:
            return self._write_more(more, event.text)
        return self._write_event(event)

    def _write_arguments(self, event: ToolCallDelta) -> bytes:
        more = self._more
        if event.block == more.call and event.arguments:
            return self._write_more(more, event.arguments)
        return self._write_event(event)

    def _write_more(self, more: _MoreText, text: str) -> bytes:
        more.pieces.append(text)
        self._number += 1
        return b"%b%d%b%b}\n\n" % (more.head, self._number - 1, more.place, _encode_text(text))

    def _write_event(self, event: ContentEvent) -> bytes:
        return b"".join([*self._begin(), *self._write_to_item(event)])

    def _name_call(self, event: ToolCallDelta, tool: CallerTool, arguments: str) -> ToolCallDelta:
        if tool.namespace:
            self._namespaces[event.block] = tool.namespace
        return super()._name_call(event, tool, arguments)

    # --- items ------------------------------------------------------------------------------------------------------

    def _write_to_item(self, event: ContentEvent) -> list[bytes]:
        item = self._items.get(event.block)
        written: list[bytes] = []
        if item is None or (item.closed and isinstance(event, (TextDelta, ThinkingDelta, RefusalDelta))):
            number = len(self._output)
            item = begin_item(event, self._id, number, self._namespaces.get(event.block, ""))
            if item is None:
                return []
            written += self._leave_item()
            item.index = number
            self._items[event.block] = self._open = item
            self._output.append((event.block, item))
            written.append(self._write_sse("response.output_item.added", output_index=item.index, item=item.start()))
            item.announced = self._stream
        if item.closed:
            return written  # the item is already sent, so a late seal is dropped
        for kind, fields in item.write(event):
            written.append(self._write_sse(kind, item_id=item.id, output_index=item.index, **fields))
        if self._stream and item is self._open:
            self._more.set(event, item)
        return written

    def _leave_item(self) -> list[bytes]:
        """End the open item, unless it is a call that may go on."""
        item = self._open
        if item is not None and self._stream and item.can_go_on():
            self._unfinished.append(item)
            self._open = None
            self._more.clear()
            return []
        return self._close_item()

    def _close_item(self) -> list[bytes]:
        item, self._open = self._open, None
        return [] if item is None or not self._stream else self._close(item)

    def _close(self, item: OutputItem) -> list[bytes]:
        self._more.clear()
        item.closed = True
        written = [
            self._write_sse(kind, item_id=item.id, output_index=item.index, **fields) for kind, fields in item.finish()
        ]
        done = self._write_sse("response.output_item.done", output_index=item.index, item=item.encode())
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
        return [self._write_sse(kind, response=response) for kind in ("response.created", "response.in_progress")]

    def _write_end(self, stop: StopReason) -> bytes:
        if stop.reason == "error" and self._is_foreign:
            return self._write_failure(502, "the model's provider ended the reply with an error", None)
        reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(stop.reason)
        if reason is not None and self._open is not None:
            self._open.status = "incomplete"
        written = [*self._begin(), *self._close_all()]
        response = self._finish_response("completed" if reason is None else "incomplete")
        if reason is not None:
            response["incomplete_details"] = {"reason": reason}
        if not self._stream:
            return msgspec.json.encode(response)
        return b"".join([*written, self._write_sse(f"response.{response['status']}", response=response)])

    def _write_failure(self, status: int, message: str, kind: str | None) -> bytes:
        if not self._stream:
            return write_error(status, message, kind)
        written = self._begin()
        response = self._finish_response("failed")
        response["error"] = {"code": kind or _ERROR_CODES.get(status, "server_error"), "message": message}
        return b"".join([*written, self._write_sse("response.failed", response=response)])

    def _finish_response(self, status: str) -> Wire:
        response = self._encode_response(status)
        items = [item for _, item in self._output] if self._stream else _sort_items(self._output)
        response["output"] = [item.encode() for item in items]
        usage = self._shown_usage
        if usage is not None and (usage != Usage() or self.request is not None):
            response["usage"] = _encode_usage(usage)
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
            "instructions": None,
            "metadata": {},
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            **self._echo,
            "output": [],
            "store": self._started.stored,
            "usage": None,
        }

    def _write_sse(self, kind: str, **fields: Any) -> bytes:
        if not self._stream:
            return b""
        document = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode(document))


_encode_text = msgspec.json.Encoder().encode
_NONE = -1


class _MoreText:
    """What is the same in all deltas of the open item, and the block whose text it is."""

    def __init__(self) -> None:
        self.text = self.thought = self.call = _NONE
        self.head = self.place = b""
        """A delta up to its number, and from there up to its text."""
        self.pieces: list[str] = []

    def clear(self) -> None:
        """Forget the item: it is no longer the open one."""
        self.text = self.thought = self.call = _NONE

    def set(self, event: ContentEvent, item: OutputItem) -> None:
        """Find them, once the first piece of the item is written."""
        self.clear()
        delta = item.delta if item.pieces else None
        if delta is None:
            return
        kind, fields = delta
        self.head = f'event: {kind}\ndata: {{"type":"{kind}","sequence_number":'.encode()
        place = {"item_id": item.id, "output_index": item.index, **fields}
        self.place = b",%b," % msgspec.json.encode(place)[1:-1] + b'"delta":'
        self.pieces = item.pieces
        if isinstance(event, TextDelta):
            self.text = event.block
        elif isinstance(event, ThinkingDelta):
            self.thought = event.block
        elif isinstance(event, ToolCallDelta):
            self.call = event.block


# Clients know these codes; some ask again after the first two.
_ERROR_CODES = {
    429: "rate_limit_exceeded",
    503: "server_is_overloaded",
    529: "server_is_overloaded",
    400: "invalid_prompt",
}


def _sort_items(placed: Sequence[tuple[int, OutputItem]]) -> list[OutputItem]:
    """The items in the order of their blocks. One that was added, with a block below zero, leads the one behind it."""
    places: list[tuple[float, bool, OutputItem]] = []
    behind = math.inf
    for block, item in reversed(placed):
        behind = block if block >= 0 else behind
        places.insert(0, (behind, block >= 0, item))
    return [item for *_, item in sorted(places, key=lambda place: place[:2])]


def _encode_usage(usage: Usage) -> Wire:
    """Encode the counts by this dialect's names. Clients may count on every one, so one that is unknown is zero."""
    received, sent = usage.input or 0, usage.output or 0
    return {
        "input_tokens": received,
        "input_tokens_details": {"cached_tokens": usage.cached or 0, "cache_write_tokens": usage.cache_written or 0},
        "output_tokens": sent,
        "output_tokens_details": {"reasoning_tokens": usage.thinking or 0},
        "total_tokens": received + sent if usage.total is None else usage.total,
    }
