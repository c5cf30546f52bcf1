"""Replies that the relay writes: `open_writer` makes the writer of one, `WrittenExchange` is the base of exchanges."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from asides.dialects import find_dialect
from asides.dialects.dialect import ServedRequest, Writer
from asides.dialects.server_half import ReplyWriter
from asides.flows.call import Call
from asides.flows.exchange import Exchange
from asides.providers.provider import Target
from asides.relay.endpoints import MakeWriter
from asides.relay.error_response import ErrorResponse, write_stream_error
from asides.relay.relay_config import STREAM_HEADERS, Caller
from asides.relay.relay_request import ResponseStart
from asides.relay.translate.translate_fields import find_tool_map
from asides.values.notices import Notice
from asides.values.reply import Reply


class WrittenExchange:
    """An exchange whose reply is written in the caller's dialect."""

    def __init__(self, caller: Caller, call: Call, exchange: Exchange, writer: Any = None) -> None:
        self._caller = caller
        self._call = call
        self._exchange = exchange
        self._writer: Any = writer
        self.status = 0
        """The status that the caller got."""

    @property
    def partial(self) -> Reply | None:
        """The reply so far."""
        return self._exchange.partial

    @property
    def emitted(self) -> bool:
        """Whether the caller got the head of the response."""
        return self._caller.started

    def write_last_error(self, response: ErrorResponse) -> bytes | None:
        """The error that ends a stream which has begun; None if the provider's bytes are the stream."""
        return write_stream_error(self._writer, response)

    def _write_head(self, notices: Iterable[Notice], *, stream: bool) -> list[ResponseStart]:
        """The head of a good response, if it has not left yet."""
        self.status = 200
        more = STREAM_HEADERS if stream else {}
        return self._caller.start(200, {"content-type": self._writer.content_type, **more}, notices)


def open_writer(
    served: ServedRequest,
    caller: str,
    target: Target,
    make_writer: MakeWriter | None = None,
    *,
    foreign: bool | None = None,
) -> Writer:
    """Make the writer of one reply: it writes the events of any provider in the caller's dialect, with the caller's
    names of its tools. Our dialects give a ReplyWriter; a registered one gives its own. `make_writer`: for a second
    form of the caller's dialect. `foreign`: whether the events are of another dialect; None: as the target's is.
    """
    make = make_writer or find_dialect(caller).writer
    writer = make(model=served.model, stream=served.stream, include_usage=served.include_usage)
    if isinstance(writer, ReplyWriter):
        tools = find_tool_map(served, caller, target).received
        writer.serve(served, tools, foreign=caller != target.dialect if foreign is None else foreign)
    return writer
