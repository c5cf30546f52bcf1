"""A loopback server that replays prepared bytes: HTTP/1.1 keep-alive, one HTTP chunk per event, no work per request.

It runs as a separate process (`with replay_server() as base_url`) until its standard input closes. The path is
`/<profile>/…/chat/completions` (or `messages`, `responses`), the profile `<pace>-<chunks>[-tags]`:

    burst     everything in one write: many events per read, so parsing dominates
    trickle   one event per write, one write per millisecond: one event per read, as a real model sends
    ticks     one text event per 50 ms with its sending time in nanoseconds as content: many streams, delivery lag
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import payloads
from bench.environments import ROOT, build_environ, find_python

TICK_MILLISECONDS = 50
TRICKLE_SECONDS = 0.001

_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n"
    b"x-request-id: req_1\r\nTransfer-Encoding: chunked\r\n\r\n"
)
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}"
_END = b"0\r\n\r\n"
_DIALECTS = {"completions": "chat", "messages": "messages", "responses": "responses"}


def _frame(payload: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(payload), payload)


@cache
def _frames(dialect: str, chunks: int, inline_tags: bool) -> tuple[bytes, ...]:
    frames = [_frame(event) for event in payloads.stream(dialect, chunks, inline_tags=inline_tags).events]
    frames[-1] += _END
    return tuple(frames)


@cache
def _burst(dialect: str, chunks: int, inline_tags: bool) -> bytes:
    return _HEAD + b"".join(_frames(dialect, chunks, inline_tags))


class _Ticker:
    """Write one event to every stream each 50 ms; the streams are spread evenly over the milliseconds of a turn."""

    _BEGIN = _HEAD + _frame(payloads.chat_chunk({"role": "assistant", "content": ""}))
    _BEFORE, _AFTER = payloads.chat_chunk({"content": "@@"}).split(b"@@")
    _FINISH = _frame(payloads.chat_chunk({}, "stop")) + _frame(payloads.chat_usage()) + _frame(payloads.DONE) + _END

    def __init__(self) -> None:
        self.slots: list[dict[_Connection, int]] = [{} for _ in range(TICK_MILLISECONDS)]
        self.turn = self.joined = 0
        self.running = False
        self.due = 0.0

    def _now(self) -> bytes:
        return _frame(self._BEFORE + b" %d" % time.monotonic_ns() + self._AFTER)

    def add(self, connection: _Connection, events: int) -> None:
        connection.write(self._BEGIN + self._now())
        self.slots[self.joined % TICK_MILLISECONDS][connection] = events - 1
        self.joined += 1
        if not self.running:
            self.running = True
            self.due = asyncio.get_running_loop().time()
            self.tick()

    def tick(self) -> None:
        slot = self.slots[self.turn % TICK_MILLISECONDS]
        self.turn += 1
        for connection, left in list(slot.items()):
            if connection.closed:
                del slot[connection]
            elif left == 0:
                connection.write(self._FINISH)
                del slot[connection]
            else:
                connection.write(self._now())
                slot[connection] = left - 1
        loop = asyncio.get_running_loop()
        # More than 50 ms late: skip events instead of sending many at once.
        self.due = max(self.due + 0.001, loop.time() - 0.05)
        self.running = any(self.slots)
        if self.running:
            loop.call_at(self.due, self.tick)


_ticker = _Ticker()


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self.received = b""
        self.closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        transport.set_write_buffer_limits(high=1 << 26)
        self.write = transport.write

    def connection_lost(self, _error: Exception | None) -> None:
        self.closed = True

    def data_received(self, data: bytes) -> None:
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            head = self.received[:end].lower()
            _, found, after = head.partition(b"content-length:")
            length = int(after.split(b"\r\n", 1)[0]) if found else 0
            if len(self.received) < end + 4 + length:
                return
            self.received = self.received[end + 4 + length :]
            self.answer(head.split(b" ", 2)[1].split(b"?")[0].decode())

    def answer(self, path: str) -> None:
        _, profile, *rest = path.split("/")
        dialect = _DIALECTS.get(rest[-1]) if rest else None
        if dialect is None:
            self.write(_NOT_FOUND)
            return
        pace, chunks, inline_tags = payloads.read_profile(profile)
        if pace == "ticks":
            _ticker.add(self, chunks)
        elif pace == "trickle":
            self.write(_HEAD)
            self.trickle(iter(_frames(dialect, chunks, inline_tags)), asyncio.get_running_loop().time())
        else:
            self.write(_burst(dialect, chunks, inline_tags))

    def trickle(self, frames: Iterator[bytes], due: float) -> None:
        frame = None if self.closed else next(frames, None)
        if frame is not None:
            self.write(frame)
            loop = asyncio.get_running_loop()
            due = max(due + TRICKLE_SECONDS, loop.time())
            loop.call_at(due, self.trickle, frames, due)


@contextmanager
def replay_server() -> Iterator[str]:
    """Start the server, yield its base url, and end it."""
    command = [str(find_python("floor")), "-m", "bench.server"]
    with subprocess.Popen(
        command, cwd=ROOT, env=build_environ("floor"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        process.stdin.close()


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Connection, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(_serve())
