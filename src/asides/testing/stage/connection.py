"""One client's connection: requests in, performances out. Not here: what is performed."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from typing import cast

import msgspec

from asides.testing.stage.http_requests import BrokenRequest, Request, RequestReader
from asides.testing.stage.request_log import RequestLog
from asides.testing.stage.response_plan import ResponsePlan, document

# After so many writes without a pause the other connections get their turn.
_WRITES_PER_TURN = 32


class Connection(asyncio.Protocol):
    """Answers the requests of one client in the order they came. Lives in the loop of the stage."""

    def __init__(
        self, answer: Callable[[Request], ResponsePlan], ledger: RequestLog, all_connections: set[Connection]
    ) -> None:
        self._answer = answer
        self._ledger = ledger
        self._all = all_connections
        self._reader = RequestReader()
        self._waiting: deque[Request | BrokenRequest] = deque()
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._performing = False
        self._broken = False
        self._transport: asyncio.Transport
        self._task: asyncio.Task[None]

    # --- what the loop tells us ---------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the conversation."""
        self._transport = cast("asyncio.Transport", transport)
        # Written is what the system has taken: only then a client that leaves did not leave early.
        self._transport.set_write_buffer_limits(high=0)
        self._all.add(self)
        self._ledger.note_opened()
        self._task = asyncio.get_running_loop().create_task(self._converse())

    def data_received(self, data: bytes) -> None:
        """More of a request."""
        if self._broken:
            return
        try:
            self._waiting.extend(self._reader.feed(data))
        except BrokenRequest as problem:
            self._broken = True
            self._waiting.append(problem)
        if self._reader.take_continue():
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if self._waiting:
            self._arrived.set()

    def eof_received(self) -> bool:
        """The client will say no more; here that counts as leaving, since clients that close look the same."""
        self._leave()
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """The connection is gone, whoever closed it."""
        self._leave()
        self._all.discard(self)
        self._ledger.note_closed()

    def pause_writing(self) -> None:
        """The client reads too slowly."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The client has caught up."""
        self._writable.set()

    # --- what we do ---------------------------------------------------------------------------------------------------

    async def end(self) -> None:
        """Close at once, from our side."""
        self._performing = False
        self._task.cancel()
        self._transport.abort()
        await asyncio.gather(self._task, return_exceptions=True)

    def _leave(self) -> None:
        if self._performing:
            self._performing = False
            self._ledger.note_left()
        self._task.cancel()

    async def _converse(self) -> None:
        try:
            while await self._answer_next():
                pass
        except Exception as problem:  # noqa: BLE001 - a thread has nobody else to tell; the stage raises it on closing
            self._ledger.note_problem(problem)
        finally:
            self._performing = False
            self._transport.close()

    async def _answer_next(self) -> bool:
        """Answer one request; whether the connection stays open."""
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()
        request = self._waiting.popleft()
        if isinstance(request, BrokenRequest):
            error = {"error": {"message": str(request), "type": "broken_request", "code": request.status}}
            await self._play(document(error, request.status), http10=False, keep_alive=False)
            return False
        keep_alive = request.keeps_alive
        performance = self._answer(request)
        if request.method == "HEAD":
            # Its length is announced and its body stays away.
            performance = msgspec.structs.replace(performance, pieces=())
        return await self._play(performance, http10=request.http10, keep_alive=keep_alive)

    async def _play(self, performance: ResponsePlan, *, http10: bool, keep_alive: bool) -> bool:
        self._performing = True
        if performance.delay:
            await asyncio.sleep(performance.delay)
        if performance.status is not None:
            chunked = performance.length is None and not http10
            keep_alive = keep_alive and (chunked or performance.length is not None)
            await self._write_all(
                performance, _head(performance, chunked=chunked, keep_alive=keep_alive), chunked=chunked
            )
        match performance.ending:
            case "whole":
                self._performing = False
                return keep_alive
            case "hang":
                if performance.hang_seconds is None:
                    await asyncio.Event().wait()
                else:
                    await asyncio.sleep(performance.hang_seconds)
            case "cut":
                pass
            case "reset":
                self._reset()
        self._performing = False
        return False

    async def _write_all(self, performance: ResponsePlan, head: bytes, *, chunked: bool) -> None:
        """The head, then the pieces. The last goes with the mark of the end: a client that has read it may leave."""
        writes = list(performance.pieces)
        if chunked:
            writes = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in writes]
            if performance.ending == "whole":
                last = writes.pop() if writes else b""
                writes.append(last + b"0\r\n\r\n")
        if writes and not performance.pause:
            writes[0] = head + writes[0]
        else:
            writes.insert(0, head)
        for number, write in enumerate(writes):
            if number and performance.pause:
                await asyncio.sleep(performance.pause)
            elif number % _WRITES_PER_TURN == _WRITES_PER_TURN - 1:
                await asyncio.sleep(0)
            await self._write(write)

    async def _write(self, data: bytes) -> None:
        if self._transport.is_closing():
            # The client is gone, and the loop is about to say so and cancel us.
            await asyncio.Event().wait()
        self._transport.write(data)
        await self._writable.wait()

    def _reset(self) -> None:
        # Lingering for zero seconds makes the close a reset (on Windows the two numbers are short).
        linger = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
        self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._transport.abort()


def _head(performance: ResponsePlan, *, chunked: bool, keep_alive: bool) -> bytes:
    status = performance.status
    try:
        phrase = HTTPStatus(status or 0).phrase
    except ValueError:  # such as 529, which one provider made up
        phrase = "Status"
    headers = {"server": "asides-stage", **performance.headers}
    if performance.length is not None:
        headers["content-length"] = str(performance.length)
    elif chunked:
        headers["transfer-encoding"] = "chunked"
    headers["connection"] = "keep-alive" if keep_alive else "close"
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
