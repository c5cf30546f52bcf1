"""The server half: `ResponsesWriter`, events of one reply in, a response out, as a stream of events or whole.

Not here: requests (read_request), sockets and status lines. A whole response is a stream that was put together: both
are made of the same items.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from asides.dialects.openai_responses.server.items import WrittenItem, written_item
from asides.dialects.server_half import ReplyWriter
from asides.values.events import Event, StopReason
from asides.values.usage import Usage

Wire: TypeAlias = dict[str, Any]


class ResponsesWriter(ReplyWriter):
    """Events of one reply in, a response out. Warnings are not on this wire, nor are seals of other dialects."""

    def __init__(
        self,
        *,
        model: str,
        stream: bool,
        include_usage: bool = True,
        created: int = 0,
    ) -> None:
        super().__init__(model, "text/event-stream" if stream else "application/json", shows_usage=include_usage)
        self._stream = stream
        self._created = created
        self._items: dict[int, WrittenItem] = {}
        self._open: WrittenItem | None = None
        self._number = 0
        self._begun = False

    def _write_event(self, event: Event) -> bytes:
        return b"".join([*self._begin(), *self._add(event)])

    # --- items ------------------------------------------------------------------------------------------------------

    def _add(self, event: Event) -> list[bytes]:
        number: int = getattr(event, "block", 0)
        item = self._items.get(number)
        written: list[bytes] = []
        if item is None:
            made = written_item(event, self._id, len(self._items))
            if made is None:
                return []
            written += self._close()
            item = self._items[number] = self._open = made
            item.place = len(self._items) - 1
            written.append(self._event("response.output_item.added", output_index=item.place, item=item.announced()))
        if item.closed:
            return written  # its item is out; what comes late of it has no place any more
        for kind, fields in item.take(event):
            written.append(self._event(kind, item_id=item.id, output_index=item.place, **fields))
        return written

    def _close(self) -> list[bytes]:
        item, self._open = self._open, None
        if item is None:
            return []
        item.closed = True
        written = [
            self._event(kind, item_id=item.id, output_index=item.place, **fields) for kind, fields in item.finish()
        ]
        done = self._event("response.output_item.done", output_index=item.place, item=item.whole())
        return [*written, done]

    # --- the response -----------------------------------------------------------------------------------------------

    def _begin(self) -> list[bytes]:
        if self._begun:
            return []
        self._begun = True
        response = self._response("in_progress")
        return [self._event(kind, response=response) for kind in ("response.created", "response.in_progress")]

    def _write_end(self, stop: StopReason) -> bytes:
        written = [*self._begin(), *self._close()]
        reason = {"length": "max_output_tokens", "content_filter": "content_filter"}.get(stop.reason)
        response = self._response("completed" if reason is None else "incomplete")
        if reason is not None:
            response["incomplete_details"] = {"reason": reason}
        items = sorted(self._items.items()) if not self._stream else self._items.items()
        response["output"] = [item.whole() for _, item in items]
        if self._shown_usage is not None:
            response["usage"] = _usage(self._shown_usage)
        if not self._stream:
            return msgspec.json.encode(response)
        return b"".join([*written, self._event(f"response.{response['status']}", response=response)])

    @property
    def _id(self) -> str:
        return self._started.id or "resp_0"

    def _response(self, status: str) -> Wire:
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "model": self._started.model,
            "output": [],
            "store": self._started.stored,
            "usage": None,
        }

    def _event(self, kind: str, **fields: Any) -> bytes:
        if not self._stream:
            return b""
        document = {"type": kind, "sequence_number": self._number, **fields}
        self._number += 1
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode(document))


def _usage(usage: Usage) -> Wire:
    """Counts under their names here; what was not reported is absent, not zero."""
    counts = {"input_tokens": usage.input, "output_tokens": usage.output, "total_tokens": usage.total}
    spelled: Wire = {name: count for name, count in counts.items() if count is not None}
    if usage.cached is not None:
        spelled["input_tokens_details"] = {"cached_tokens": usage.cached}
    if usage.thinking is not None:
        spelled["output_tokens_details"] = {"reasoning_tokens": usage.thinking}
    return spelled
