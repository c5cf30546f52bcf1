"""An MCP server of before 2026, written by hand: it ends if the first message is not `initialize`, lists its tools in
pages, and announces changes without a subscription. It starts fast, so tests of starts and ends use it.

Arguments: with `stubborn` it does not end on request; with `mute` one of its tools closes its standard output and makes
it stubborn.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

PAGES = [["one", "two"], ["three"], ["unreadable", "liar", "sorry"]]


def tool(name: str) -> dict[str, Any]:
    promised = {"type": "object", "properties": {"a": {"type": "integer"}}}
    more = {"outputSchema": promised} if name == "liar" else {}
    return {"name": name, "inputSchema": {"type": "object", "properties": {}}, **more}


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def page(cursor: str | None) -> dict[str, Any]:
    number = int(cursor or 0)
    more = {"nextCursor": str(number + 1)} if number + 1 < len(PAGES) else {}
    return {"tools": [tool(name) for name in PAGES[number]], **more}


def stay() -> None:
    """Do not end on request."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    atexit.register(lambda: time.sleep(3600))


def grow(name: str) -> None:
    PAGES[-1].append(name)
    send(method="notifications/tools/list_changed")


def call(name: str) -> dict[str, Any] | None:
    match name:
        case "one":
            who = {"pid": os.getpid(), "environment": sorted(os.environ), "folder": str(Path.cwd())}
            return {"content": [{"type": "text", "text": json.dumps(who)}]}
        case "two":
            grow("five")
            return {"content": []}
        case "three":
            if "mute" in sys.argv:
                stay()
                os.close(1)
            return None  # An answer that never comes.
        case "liar":
            return {"content": [], "structuredContent": {"a": "canary"}}
        case _:
            return {"content": "not a list"}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            if "stubborn" in sys.argv:
                stay()
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "old", "version": "1"},
            }
        case "tools/list":
            return page(params.get("cursor"))
        case "tools/call":
            return call(params["name"])
        case _:
            return {}


def main() -> None:
    first = True
    for line in sys.stdin:
        message = json.loads(line)
        if first and message.get("method") != "initialize":
            sys.exit(f"expected initialize, got {message.get('method')}")
        first = False
        if message.get("method") == "notifications/cancelled":
            grow("cancelled")  # So that a test can see it.
        if message.get("params", {}).get("name") == "sorry":
            send(id=message["id"], error={"code": -32602, "message": "not with the key sk-canary12345"})
        elif "id" in message and (result := answer(message["method"], message.get("params", {}))) is not None:
            send(id=message["id"], result=result)


if __name__ == "__main__":
    main()
