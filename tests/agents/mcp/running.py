"""Servers for tests, calls to them, and checks that they leave nothing running."""

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

from asides.agents.mcp.mcp_server import McpServer, McpTool
from asides.values.parts import ToolCall, ToolResult
from tests.loopback import ReceivedRequest, whole_response

HERE = Path(__file__).resolve().parent
OFFICIAL = HERE / "server.py"
OLD = HERE / "old_server.py"


def official(**options: Any) -> McpServer:
    """Return the server written with the official package, as a child process."""
    return McpServer.stdio(sys.executable, OFFICIAL, **options)


def old(*arguments: str, **options: Any) -> McpServer:
    """Return the server of before 2026, as a child process."""
    return McpServer.stdio(sys.executable, OLD, *arguments, **options)


@contextmanager
def at_loopback() -> Generator[tuple[str, subprocess.Popen[str]], None, None]:
    """Run the server written with the official package at an address."""
    command = [sys.executable, str(OFFICIAL), "http"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp", process
        finally:
            process.kill()


def answer_as_old_server(picture: bytes) -> Callable[[ReceivedRequest, socket.socket], bool]:
    """Return the answers of an HTTP server of before 2026: its tool returns a picture as an event, and it ignores
    DELETE, which ends a session."""

    def answer(heard: ReceivedRequest, connection: socket.socket) -> bool:
        if not heard.line.startswith("POST"):
            return heard.line.startswith("DELETE")  # Read on, and answer nothing.
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
        body = f"event: message\ndata: {event}\n\n".encode()
        connection.sendall(whole_response(body, "text/event-stream", Mcp_Session_Id="s1"))
        return True

    return answer


def find_tool(server: McpServer, own_name: str) -> McpTool:
    """Return the tool of this name at the server."""
    return next(tool for tool in server.tools if tool.own_name == own_name)


def start_call(server: McpServer, own_name: str, /, **arguments: Any) -> Any:
    """Return the awaitable of a call's result."""
    return find_tool(server, own_name).run(ToolCall("call_1", find_tool(server, own_name).tool.name, arguments))


def run_call(server: McpServer, own_name: str, /, **arguments: Any) -> ToolResult:
    """Return the result of a call, in its own event loop."""

    async def call() -> ToolResult:
        result = await start_call(server, own_name, **arguments)
        assert isinstance(result, ToolResult)
        return result

    return asyncio.run(call())


def describe_child(server: McpServer) -> dict[str, Any]:
    """Return what a child made by `old` reports: its pid, the names in its environment, its folder."""
    child: dict[str, Any] = json.loads(run_call(server, "one").text)
    return child


def is_alive(pid: int) -> bool:
    """Whether the process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_until(holds: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
    """Wait for a condition that has to become true."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"{what}: not within {seconds} seconds"
        time.sleep(0.01)


async def wait_until_async(holds: Callable[[], bool], what: str) -> None:
    """`wait_until` for async tests."""
    await asyncio.to_thread(wait_until, holds, what)


def _threads(start: str) -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name.startswith(start)}


@contextmanager
def expect_no_thread_left() -> Generator[None, None, None]:
    """Check that every thread started in the block has ended after it."""
    before = set(threading.enumerate())
    yield
    assert _threads("asides-mcp") <= before
    # The standard library waits for a child in its own thread, which may end a moment later.
    wait_until(lambda: _threads("waitpid") <= before, "threads of the standard library end")
