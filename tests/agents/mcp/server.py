"""An MCP server to test against, written with the official package: `python server.py` speaks stdio, and `python
server.py http` streamable HTTP, with its port as its first line.
"""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import sys
from pathlib import Path

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

PIXEL = base64.b64encode(b"\x89PNG pixel").decode()

server = MCPServer("Test server", instructions="Add before you echo.", log_level="ERROR")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def echo(text: str) -> str:
    """Say it again."""
    return text


@server.tool()
def fail(reason: str) -> str:
    """Go wrong."""
    raise ToolError(reason)


@server.tool()
def read_mixed() -> CallToolResult:
    """Everything that a result can hold."""
    content: list[ContentBlock] = [
        TextContent(text="words"),
        ImageContent(data=PIXEL, mime_type="image/png"),
        AudioContent(data=PIXEL, mime_type="audio/wav"),
        EmbeddedResource(resource=TextResourceContents(uri="file:///notes.txt", text="a note")),
        EmbeddedResource(
            resource=BlobResourceContents(uri="file:///a/report.pdf", blob=PIXEL, mime_type="application/pdf")
        ),
        ResourceLink(uri="file:///log.txt", name="log", description="what happened", mime_type="text/plain"),
    ]
    return CallToolResult(content=content)


@server.tool(structured_output=False)
def read_structured() -> CallToolResult:
    """Structured content, and no text."""
    return CallToolResult(content=[], structured_content={"city": "Köln", "degrees": 21})


@server.tool()
def read_broken() -> CallToolResult:
    """A picture that is none."""
    return CallToolResult(content=[ImageContent(data="§", mime_type="image/png")])


@server.tool()
async def slow(seconds: float, mark: str) -> str:
    """Take a while; leaves a file at `mark` with what became of it."""
    Path(f"{mark}.started").touch()
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        Path(f"{mark}.cancelled").touch()
        raise
    return "done"


@server.tool()
def process() -> int:
    """Which process this is."""
    return os.getpid()


@server.tool()
def die() -> str:
    """End the process in the middle of a call."""
    os._exit(3)


@server.tool()
async def grow(name: str, ctx: Context) -> str:
    """Get one more tool."""
    server.add_tool(echo, name=name)
    await ctx.notify_tools_changed()
    return "grown"


@server.tool(name="dotted.name/with strange letters")
def dotted() -> str:
    """A name that no provider takes."""
    return "dotted"


@server.tool(name="t" * 80)
def long_name() -> str:
    """A name that is too long."""
    return "long"


def serve_http() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)  # noqa: T201 - the test reads it
    config = uvicorn.Config(server.streamable_http_app(), log_level="error", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    if sys.argv[1:] == ["http"]:
        serve_http()
    else:
        server.run()
