"""Servers that run while a test does, calls to them, and a look at what they leave behind."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from asides.agents.mcp.server import McpServer, McpTool
from asides.values.messages import ToolCall, ToolResult
from tests.loopback import Heard, whole_response

HERE = Path(__file__).resolve().parent
OFFICIAL = HERE / "server.py"
OLD = HERE / "old_server.py"


def official(**options: Any) -> McpServer:
    """The server written with the official package, as a child process."""
    return McpServer.stdio(sys.executable, OFFICIAL, **options)


def old(*arguments: str, **options: Any) -> McpServer:
    """The server of before 2026, as a child process."""
    return McpServer.stdio(sys.executable, OLD, *arguments, **options)


@contextmanager
def at_loopback() -> Generator[tuple[str, subprocess.Popen[str]], None, None]:
    """The server written with the official package, at an address."""
    command = [sys.executable, str(OFFICIAL), "http"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp", process
        finally:
            process.kill()


def old_address(picture: bytes) -> Callable[[Heard, socket.socket], bool]:
    """Answers of a server of before 2026 at an address, whose tool gives a picture as an event, and which is deaf to
    DELETE, by which its sessions end."""

    def answer(heard: Heard, connection: socket.socket) -> bool:
        if not heard.line.startswith("POST"):
            return heard.line.startswith("DELETE")  # Read on, and say nothing.
        message = json.loads(heard.body)
        result: dict[str, Any]
        match message["method"]:
            case "initialize":
                info = {"name": "deaf", "version": "1"}
                result = {"serverInfo": info, "capabilities": {"tools": {}}, "protocolVersion": "2025-06-18"}
            case "tools/list":
                result = {"tools": [{"name": "picture", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                data = base64.b64encode(picture).decode()
                result = {"content": [{"type": "image", "data": data, "mimeType": "image/png"}]}
            case _:
                status = "400 Bad Request" if "id" in message else "202 Accepted"
                connection.sendall(whole_response(b"", status=status))
                return True
        event = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
        said = f"event: message\ndata: {event}\n\n".encode()
        connection.sendall(whole_response(said, "text/event-stream", Mcp_Session_Id="s1"))
        return True

    return answer


def named(server: McpServer, own_name: str) -> McpTool:
    """The tool that the server calls so."""
    return next(tool for tool in server.tools if tool.own_name == own_name)


def asked(server: McpServer, own_name: str, /, **arguments: Any) -> Any:
    """What gives the result of a call when awaited."""
    return named(server, own_name).run(ToolCall("call_1", named(server, own_name).tool.name, arguments))


def called(server: McpServer, own_name: str, /, **arguments: Any) -> ToolResult:
    """The result of a call, in an event loop of its own."""

    async def call() -> ToolResult:
        result = await asked(server, own_name, **arguments)
        assert isinstance(result, ToolResult)
        return result

    return asyncio.run(call())


def child_of(server: McpServer) -> dict[str, Any]:
    """What a child made by `old` says of itself: its pid, the names in its environment, its folder."""
    said: dict[str, Any] = json.loads(called(server, "one").text)
    return said


def is_alive(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def until(holds: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
    """Wait for something that has to come."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"{what}: not within {seconds} seconds"
        time.sleep(0.01)


async def auntil(holds: Callable[[], bool], what: str) -> None:
    """The same, for tests that have a loop to keep running."""
    await asyncio.to_thread(until, holds, what)


def _threads(start: str) -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith(start)}


@contextmanager
def no_thread_is_left() -> Generator[None, None, None]:
    """Whatever was started in the block has ended behind it."""
    before = set(threading.enumerate())
    yield
    assert _threads("asides-mcp") <= before
    # The standard library waits for a child in a thread of its own, which may be a moment behind.
    until(lambda: _threads("waitpid") <= before, "threads of the standard library end")
