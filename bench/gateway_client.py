"""The client of the table of gateways: requests over kept connections, and what their answers say. It costs little."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable
from typing import Any, NamedTuple

KEY = "sk-bench"
ENDS = {
    "chat": b"data: [DONE]",
    "messages": b"event: message_stop",
    "responses": b"event: response.completed",
    "gemini": b'"finishReason"',
}
# The text of an event of the profile `ticks`: the nanoseconds at which it was sent. Only deltas hold it alone.
_TICK = re.compile(rb'": ?" ?(\d{9,})"')


class Failed(Exception):
    """A gateway answered something else than 200, or less than it had to."""


class Connection(asyncio.Protocol):
    """One kept connection. `ask` sends a request and waits for the end of its response."""

    def __init__(self) -> None:
        self._received = b""
        self._left = 0
        """Bytes of the body, or of its chunk, that are still to come; -1: a head, or the size of a chunk, is next."""
        self._is_chunked = self._in_body = False
        self._take: Callable[[bytes], object] = bytes
        self._done: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(f"the connection broke off: {exc}")

    def close(self) -> None:
        self._transport.abort()

    async def ask(self, path: str, body: bytes, take: Callable[[bytes], object], key: str = KEY) -> None:
        """Send a request; `take` gets the bytes of the body as they come. Raises Failed."""
        self._take, self._in_body, self._received = take, False, b""
        self._done = asyncio.get_running_loop().create_future()
        self._transport.write(
            b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (path.encode(), key.encode(), len(body), body)
        )
        await self._done

    def _fail(self, problem: str) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(Failed(problem))

    def _end(self) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_result(None)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._in_body and not self._read_head():
            return
        if self._is_chunked:
            self._read_chunks()
            return
        self._left -= len(self._received)
        self._take(self._received)
        self._received = b""
        if self._left <= 0:
            self._end()

    def _read_head(self) -> bool:
        head, found, rest = self._received.partition(b"\r\n\r\n")
        if not found:
            return False
        if not head.startswith(b"HTTP/1.1 200"):
            self._fail(f"{head[:40]!r} {rest[:200]!r}")
            return False
        _, has_length, after = head.lower().partition(b"content-length:")
        self._in_body, self._received = True, rest
        self._is_chunked = not has_length
        self._left = int(after.split(b"\r\n", 1)[0]) if has_length else -1
        return True

    def _read_chunks(self) -> None:
        taken: list[bytes] = []
        received, at = self._received, 0
        while True:
            line = received.find(b"\r\n", at)
            if line < 0:
                break
            size = int(received[at:line], 16)
            if len(received) < line + 4 + size:
                break
            if size == 0:
                self._take(b"".join(taken))
                self._end()
                return
            taken.append(received[line + 2 : line + 2 + size])
            at = line + 4 + size
        self._received = received[at:]
        if taken:
            self._take(b"".join(taken))


async def connect(port: int) -> Connection:
    return (await asyncio.get_running_loop().create_connection(Connection, "127.0.0.1", port))[1]


# --- what an answer says ----------------------------------------------------------------------------------------------


class Said(NamedTuple):
    thinking: str
    text: str
    arguments: str = ""


def read_whole(dialect: str, body: bytes) -> Said:
    """The words of a whole answer."""
    answer = json.loads(body)
    if dialect == "chat":
        message = answer["choices"][0]["message"]
        return Said(message.get("reasoning_content") or "", message["content"])
    if dialect == "messages":
        blocks = answer["content"]
        thinking = "".join(block.get("thinking", "") for block in blocks)
        return Said(thinking, "".join(block.get("text", "") for block in blocks))
    if dialect == "gemini":
        parts = answer["candidates"][0]["content"]["parts"]
        thinking = "".join(part.get("text", "") for part in parts if _is_thought(part))
        return Said(thinking, "".join(part.get("text", "") for part in parts if not _is_thought(part)))
    items = answer["output"]
    thoughts = [part for item in items if item["type"] == "reasoning" for part in _list_thoughts(item)]
    texts = [part for item in items if item["type"] == "message" for part in item["content"]]
    return Said("".join(part["text"] for part in thoughts), "".join(part["text"] for part in texts))


def _is_thought(part: dict[str, Any]) -> bool:
    return bool(part.get("thought"))


def _list_thoughts(item: dict[str, Any]) -> list[dict[str, Any]]:
    return [*item.get("summary", ()), *(item.get("content") or ())]


def read_stream(dialect: str, body: bytes) -> Said:
    """The words of a streamed answer. Raises Failed if it has no end."""
    if ENDS[dialect] not in body:
        raise Failed("the stream has no end")
    thinking: list[str] = []
    text: list[str] = []
    arguments: list[str] = []
    for line in body.split(b"\n"):
        if not line.startswith(b"data: ") or line == b"data: [DONE]":
            continue
        event = json.loads(line[6:])
        if dialect == "chat":
            for choice in event["choices"]:
                delta = choice["delta"]
                thinking.append(delta.get("reasoning_content") or "")
                text.append(delta.get("content") or "")
                arguments += [call["function"].get("arguments") or "" for call in delta.get("tool_calls") or ()]
        elif dialect == "messages":
            delta = event.get("delta", {})
            thinking.append(delta.get("thinking", ""))
            text.append(delta.get("text", ""))
            arguments.append(delta.get("partial_json", ""))
        elif dialect == "gemini":
            for part in event["candidates"][0]["content"]["parts"]:
                (thinking if _is_thought(part) else text).append(part.get("text", ""))
                if "functionCall" in part:
                    arguments.append(json.dumps(part["functionCall"]["args"], separators=(",", ":")))
        else:
            kind = event["type"]
            if kind in ("response.reasoning_text.delta", "response.reasoning_summary_text.delta"):
                thinking.append(event["delta"])
            elif kind == "response.output_text.delta":
                text.append(event["delta"])
            elif kind == "response.function_call_arguments.delta":
                arguments.append(event["delta"])
    return Said("".join(thinking), "".join(text), "".join(arguments))


class TickReader:
    """Takes the bytes of one stream of the profile `ticks`: when each event was sent, and how late it came."""

    def __init__(self, dialect: str) -> None:
        self._end = ENDS[dialect]
        self._rest = b""
        self._last = 0
        self.has_end = self.is_out_of_order = False
        self.lags: list[int] = []

    def take(self, data: bytes) -> None:
        now = time.monotonic_ns()
        data = self._rest + data
        # Gemini ends its events with \r\n\r\n.
        whole = max(data.rfind(b"\n\n"), data.rfind(b"\n\r\n") + 1)
        whole = whole + 2 if whole > 0 else 0
        data, self._rest = data[:whole], data[whole:]
        for found in _TICK.finditer(data):
            sent = int(found[1])
            self.is_out_of_order |= sent <= self._last
            self._last = sent
            self.lags.append(now - sent)
        self.has_end = self.has_end or self._end in data

    def check(self, events: int) -> None:
        """Raises Failed unless every event came, in order, and the end."""
        if len(self.lags) != events or self.is_out_of_order or not self.has_end:
            raise Failed(f"{len(self.lags)} of {events} events, end: {self.has_end}")
