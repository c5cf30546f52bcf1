"""One client's connection: requests in, planned responses out."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from collections import deque
from http import HTTPStatus
from typing import Protocol, cast

import msgspec

from asides_stage.stage.http_requests import BrokenRequest, Request, RequestReader
from asides_stage.stage.request_log import RequestLog
from asides_stage.stage.response_plan import ResponsePlan

# After this many writes without a pause, other connections get a turn.
_WRITES_PER_TURN = 32


class Answers(Protocol):
    """Who plans the responses."""

    def answer(self, request: Request) -> ResponsePlan:
        """Plan the response to a request."""
        ...

    def refuse_broken(self, problem: BrokenRequest) -> ResponsePlan:
        """Plan the response to bytes that are not a valid request."""
        ...


class Connection(asyncio.Protocol):
    """Answers the requests of one client in order. Runs in the stage's event loop."""

    def __init__(self, answers: Answers, log: RequestLog, all_connections: set[Connection]) -> None:
        self._answers = answers
        self._log = log
        self._all = all_connections
        self._reader = RequestReader()
        self._waiting: deque[Request | BrokenRequest] = deque()
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._responding = False
        self._broken = False
        self._transport: asyncio.Transport
        self._task: asyncio.Task[None]

    # --- called by the event loop -------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start to answer requests."""
        self._transport = cast("asyncio.Transport", transport)
        # A byte counts as written once the system has it: a client that leaves after that did not leave early.
        self._transport.set_write_buffer_limits(high=0)
        self._all.add(self)
        self._log.record_opened()
        self._task = asyncio.get_running_loop().create_task(self._answer_all())

    def data_received(self, data: bytes) -> None:
        """Take more bytes of a request."""
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
        """Treat the end of the client's bytes as leaving, since a client that closes looks the same."""
        self._leave()
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Record that the connection is gone, from either side."""
        self._leave()
        self._all.discard(self)
        self._log.record_closed()

    def pause_writing(self) -> None:
        """Wait for a client that reads too slowly."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Go on after the client has caught up."""
        self._writable.set()

    # --- answering ----------------------------------------------------------------------------------------------------

    async def end(self) -> None:
        """Close the connection immediately."""
        self._responding = False
        self._task.cancel()
        self._transport.abort()
        await asyncio.gather(self._task, return_exceptions=True)

    def _leave(self) -> None:
        if self._responding:
            self._responding = False
            self._log.record_early_close()
        self._task.cancel()

    async def _answer_all(self) -> None:
        try:
            while await self._answer_next():
                pass
        except Exception as problem:  # noqa: BLE001 - no caller awaits this task; the stage raises it on closing
            self._log.record_problem(problem)
        finally:
            self._responding = False
            self._transport.close()

    async def _answer_next(self) -> bool:
        """Answer one request; return whether the connection stays open."""
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()
        request = self._waiting.popleft()
        if isinstance(request, BrokenRequest):
            await self._send(self._answers.refuse_broken(request), http10=False, keep_alive=False)
            return False
        keep_alive = request.keeps_alive
        plan = self._answers.answer(request)
        if request.method == "HEAD":
            # The head announces the length, and no body follows.
            plan = msgspec.structs.replace(plan, pieces=())
        return await self._send(plan, http10=request.http10, keep_alive=keep_alive)

    async def _send(self, plan: ResponsePlan, *, http10: bool, keep_alive: bool) -> bool:
        self._responding = True
        if plan.delay:
            await asyncio.sleep(plan.delay)
        if plan.status is not None:
            chunked = plan.length is None and not http10
            keep_alive = keep_alive and (chunked or plan.length is not None)
            await self._write_all(plan, _write_head(plan, chunked=chunked, keep_alive=keep_alive), chunked=chunked)
        match plan.ending:
            case "whole":
                self._responding = False
                return keep_alive
            case "hang":
                if plan.hang_seconds is None:
                    await asyncio.Event().wait()
                else:
                    await asyncio.sleep(plan.hang_seconds)
            case "cut":
                pass
            case "reset":
                self._reset()
        self._responding = False
        return False

    async def _write_all(self, plan: ResponsePlan, head: bytes, *, chunked: bool) -> None:
        """Write the head, then the pieces. The last piece carries the end mark: a client that has read it may leave."""
        writes = list(plan.pieces)
        if chunked:
            writes = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in writes]
            if plan.ending == "whole":
                last = writes.pop() if writes else b""
                writes.append(last + b"0\r\n\r\n")
        if writes and not plan.pause:
            writes[0] = head + writes[0]
        else:
            writes.insert(0, head)
        for number, write in enumerate(writes):
            if number and plan.pause:
                await asyncio.sleep(plan.pause)
            elif number % _WRITES_PER_TURN == _WRITES_PER_TURN - 1:
                await asyncio.sleep(0)
            await self._write(write)

    async def _write(self, data: bytes) -> None:
        if self._transport.is_closing():
            # The client is gone, and the event loop is about to cancel this task.
            await asyncio.Event().wait()
        self._transport.write(data)
        await self._writable.wait()

    def _reset(self) -> None:
        # A linger time of zero turns the close into a reset (on Windows the two numbers are short).
        linger = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)
        self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._transport.abort()


def _write_head(plan: ResponsePlan, *, chunked: bool, keep_alive: bool) -> bytes:
    status = plan.status
    try:
        phrase = HTTPStatus(status or 0).phrase
    except ValueError:  # such as 529, which one provider invented
        phrase = "Status"
    headers = {"server": "asides-stage", **plan.headers}
    if plan.length is not None:
        headers["content-length"] = str(plan.length)
    elif chunked:
        headers["transfer-encoding"] = "chunked"
    headers["connection"] = "keep-alive" if keep_alive else "close"
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
