"""Pings of a stream while its provider is silent, in the caller's dialect: `Pings(caller, make_writer, model)`.

Before the provider has answered, the head of the response can leave early, so that there is something to send them in.
"""

from __future__ import annotations

from typing import Any

from asides.relay.endpoints import MakeWriter
from asides.relay.relay_config import STREAM_HEADERS, Caller
from asides.relay.relay_request import ResponseStart

# Codex gives up after 300 seconds without an event. A comment does not count as one; an event of an unknown kind does,
# and is ignored (its source, process_sse in codex-api, read 2026-11-16).
_CODEX_PREFIX = "codex"
_EVENT = b'event: keepalive\ndata: {"type":"keepalive"}\n\n'
_COMMENT = b": "


class Pings:
    """Writes the pings of one stream."""

    def __init__(self, caller: Caller, make_writer: MakeWriter, model: str) -> None:
        self._caller = caller
        self._make_writer = make_writer
        self._model = model

    def open_early(self) -> ResponseStart | None:
        """The head of the stream before its provider has answered; None if it has left, or nothing could follow it."""
        caller = self._caller
        if caller.started or caller.opened_early:
            return None
        writer = self._make()
        if not _write(writer):
            return None
        return caller.open_early({"content-type": writer.content_type, **STREAM_HEADERS})

    def write(self, now: float, exchange: Any) -> bytes:
        """A ping, to be sent after everything that was emitted; b"" if none can be sent now. `now`: in seconds
        since 1970. `exchange`: the one under way, if there is one.
        """
        if self._caller.started and not getattr(exchange, "is_between_events", True):
            return b""
        writer = self._make()
        writer.created = int(now)
        ping = _write(writer)
        return _EVENT if ping.startswith(_COMMENT) and self._counts_events() else ping

    def _make(self) -> Any:
        return self._make_writer(model=self._model, stream=True, include_usage=False)

    def _counts_events(self) -> bool:
        """Whether the client takes a comment for silence."""
        headers = self._caller.request.headers
        return any(headers.get(name, "").lower().startswith(_CODEX_PREFIX) for name in ("originator", "user-agent"))


def _write(writer: Any) -> bytes:
    write = getattr(writer, "write_ping", None)
    return b"" if write is None else write()
