"""A loopback server that replays prepared bytes: HTTP/1.1 keep-alive, one HTTP chunk per event, no work per request.

It runs as a separate process (`with replay_server() as base_url`) until its standard input closes. The path is
`/<profile>/…`, where the rest is that of the provider and shows the dialect. The profile is `<pace>-<number>[-tags]`:

    burst-4000    everything in one write: many events per read, so parsing dominates
    trickle-1000  one event per write, one write per millisecond: one event per read, as a real model sends
    ticks-100     one text event per 50 ms with its sending time in nanoseconds as content: many streams, delivery lag
    body-2048     a whole response of about this many bytes
    calls-4       a whole response with this many tool calls
    steps-10-4    an agent's run of this many steps, with this many calls in each but the last
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import payloads
from bench.environments import ROOT, build_environ, find_python

TICK_MILLISECONDS = 50
TRICKLE_SECONDS = 0.001

_STREAM_HEAD = (
    "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nCache-Control: no-cache\r\n"
    "x-request-id: req_1\r\nTransfer-Encoding: chunked\r\n\r\n"
)
_BODY_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nx-request-id: req_1\r\nContent-Length: %d\r\n\r\n"
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}"
_END = b"0\r\n\r\n"
_ENDINGS = {
    "/chat/completions": "chat",
    "/messages": "messages",
    "/responses": "responses",
    "enerateContent": "gemini",
    "/v2/chat": "cohere",
    "/api/chat": "ollama",
    "/converse": "bedrock",
    "/converse-stream": "bedrock",
}


def _head(dialect: str) -> bytes:
    return _STREAM_HEAD.format(payloads.CONTENT_TYPES.get(dialect, "text/event-stream; charset=utf-8")).encode()


def _whole(document: bytes) -> bytes:
    return _BODY_HEAD % len(document) + document


def _frame(payload: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(payload), payload)


@cache
def _frames(dialect: str, chunks: int, inline_tags: bool) -> tuple[bytes, ...]:
    frames = [_frame(event) for event in payloads.stream(dialect, chunks, inline_tags=inline_tags).events]
    frames[-1] += _END
    return tuple(frames)


@cache
def _burst(dialect: str, chunks: int, inline_tags: bool) -> bytes:
    return _head(dialect) + b"".join(_frames(dialect, chunks, inline_tags))


def _step(dialect: str, steps: int, calls: int, request: bytes) -> bytes:
    """The answer to one request of an agent: how many results it carries shows how far the run is."""
    done = request.count(b'"tool_call_id"') // calls
    if done >= steps - 1:
        return _whole(payloads.body(dialect, 1024)[0])
    return _whole(payloads.calls(dialect, done, calls))


class _TickFrames(NamedTuple):
    begin: bytes
    before: bytes
    after: bytes
    finish: bytes

    def now(self) -> bytes:
        """An event whose text is the time."""
        return _frame(self.before + b" %d" % time.monotonic_ns() + self.after)


@cache
def _tick_frames(dialect: str) -> _TickFrames:
    begin, event, finish = payloads.ticks(dialect)
    before, after = event.split(payloads.MARK.encode())
    joined = [b"".join(map(_frame, events)) for events in (begin, finish)]
    return _TickFrames(_head(dialect) + joined[0], before, after, joined[1] + _END)


class _Ticker:
    """Write one event to every stream each 50 ms; the streams are spread evenly over the milliseconds of a turn."""

    def __init__(self) -> None:
        self.slots: list[dict[_Connection, tuple[int, _TickFrames]]] = [{} for _ in range(TICK_MILLISECONDS)]
        self.turn = self.joined = 0
        self.running = False
        self.due = 0.0

    def add(self, connection: _Connection, events: int, dialect: str) -> None:
        frames = _tick_frames(dialect)
        connection.write(frames.begin + frames.now())
        self.slots[self.joined % TICK_MILLISECONDS][connection] = events - 1, frames
        self.joined += 1
        if not self.running:
            self.running = True
            self.due = asyncio.get_running_loop().time()
            self.tick()

    def tick(self) -> None:
        slot = self.slots[self.turn % TICK_MILLISECONDS]
        self.turn += 1
        for connection, (left, frames) in list(slot.items()):
            if connection.closed:
                del slot[connection]
            elif left == 0:
                connection.write(frames.finish)
                del slot[connection]
            else:
                connection.write(frames.now())
                slot[connection] = left - 1, frames
        loop = asyncio.get_running_loop()
        # More than 50 ms late: skip events instead of sending many at once.
        self.due = max(self.due + 0.001, loop.time() - 0.05)
        self.running = any(self.slots)
        if self.running:
            loop.call_at(self.due, self.tick)


_ticker = _Ticker()


class _Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self.received = bytearray()
        self.closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        transport.set_write_buffer_limits(high=1 << 26)
        self.write = transport.write

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.closed = True

    def data_received(self, data: bytes) -> None:
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            head = bytes(self.received[:end])
            _, found, after = head.lower().partition(b"content-length:")
            length = int(after.split(b"\r\n", 1)[0]) if found else 0
            if len(self.received) < end + 4 + length:
                return
            request = bytes(self.received[end + 4 : end + 4 + length])
            del self.received[: end + 4 + length]
            self.answer(head.split(b" ", 2)[1].split(b"?")[0].decode(), request)

    def answer(self, path: str, request: bytes) -> None:
        _, profile, rest = path.split("/", 2)
        dialect = next((dialect for ending, dialect in _ENDINGS.items() if f"/{rest}".endswith(ending)), None)
        if dialect is None:
            self.write(_NOT_FOUND)
            return
        pace, *details = profile.split("-")
        if pace == "steps":
            self.write(_step(dialect, int(details[0]), int(details[1]), request))
            return
        pace, number, inline_tags = payloads.read_profile(profile)
        if pace == "body":
            self.write(_whole(payloads.body(dialect, number)[0]))
        elif pace == "calls":
            self.write(_whole(payloads.calls(dialect, 0, number)))
        elif pace == "ticks":
            _ticker.add(self, number, dialect)
        elif pace == "trickle":
            self.write(_head(dialect))
            self.trickle(iter(_frames(dialect, number, inline_tags)), asyncio.get_running_loop().time())
        else:
            self.write(_burst(dialect, number, inline_tags))

    def trickle(self, frames: Iterator[bytes], due: float) -> None:
        frame = None if self.closed else next(frames, None)
        if frame is not None:
            self.write(frame)
            loop = asyncio.get_running_loop()
            due = max(due + TRICKLE_SECONDS, loop.time())
            loop.call_at(due, self.trickle, frames, due)


@contextmanager
def replay_server() -> Generator[str]:
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
