"""Servers that do not open, the reason that the error names, and the muted logs of the official client."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asides.agents.mcp.connect import Http, ServerDiagnostics, Stdio, redact_words
from asides.agents.mcp.mcp_server import McpServer
from asides.values.errors import ConfigError
from tests.agents.mcp.running import expect_no_thread_left, run_call
from tests.loopback import ReceivedRequest, saying, serving, whole_response

SECRET = "canary-1414213562"
CANARY = "canary-2718281828"


def refusal(server: McpServer) -> str:
    """Return the error of a server that does not open and leaves nothing behind; sync and async errors are the same."""

    async def open_async() -> None:
        async with server:
            pass

    with expect_no_thread_left():
        with pytest.raises(ConfigError) as caught, server:
            pass
        with pytest.raises(ConfigError) as caught_async:
            asyncio.run(open_async())
    assert str(caught.value) == str(caught_async.value)
    return str(caught.value)


def test_a_command_that_does_not_exist() -> None:
    assert refusal(McpServer.stdio("no-such-command")) == (
        "the MCP server no-such-command could not be opened: there is no command 'no-such-command'. "
        "Install it, or give its whole path."
    )


def test_a_file_that_does_not_run(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    assert "does not run (permission denied)" in refusal(McpServer.stdio(tmp_path / "notes.txt"))


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    assert "the folder of cwd= does not exist" in refusal(McpServer.stdio(sys.executable, cwd=tmp_path / "no"))


def test_a_child_that_ends_at_once_is_quoted_without_secrets() -> None:
    program = "import os, sys; sys.exit(f'bad token {os.environ[\"TOKEN\"]}, Bearer abc.def')"
    message = refusal(McpServer.stdio(sys.executable, "-c", program, env={"TOKEN": SECRET}, name="s"))
    assert "ended before it answered; its last output: bad token ***, ***. Run the command" in message


def test_a_child_with_much_output_is_quoted_from_its_end() -> None:
    program = "import sys; sys.stderr.write('x' * 1_000_000 + ' and the reason'); sys.exit(1)"
    message = refusal(McpServer.stdio(sys.executable, "-c", program))
    assert message.endswith("x and the reason. Run the command in a terminal to see why.")
    assert len(message) < 800


def test_only_the_end_of_the_standard_error_is_kept() -> None:
    diagnostics = ServerDiagnostics()
    with os.fdopen(diagnostics.open_stderr_pipe(), "wb") as stderr:
        stderr.write(b"x" * 1_000_000 + b"end")
    diagnostics.wait()
    assert len(diagnostics._stderr) == 2048
    assert diagnostics._stderr.endswith(b"xend")


def test_a_child_without_output_is_described_so() -> None:
    assert "ended before it answered and wrote nothing" in refusal(McpServer.stdio(sys.executable, "-c", ""))


def test_a_child_that_does_not_answer_times_out() -> None:
    silent = McpServer.stdio(sys.executable, "-c", "import sys; sys.stdin.read()", start_timeout=0.3)
    assert "it did not answer within 0.3 seconds. Raise start_timeout=" in refusal(silent)


def test_an_address_without_a_server() -> None:
    with serving(saying(b"")) as gone:
        url = gone.url
    assert f"no server answers at {url}. Start the server, or check the URL." in refusal(McpServer.http(url))


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ("401 Unauthorized", "answered 401. Check the key in headers=."),
        ("404 Not Found", "answered 404. Check the URL, the path included."),
        ("500 Internal Server Error", "answered 500. Check the URL, the path included."),
    ],
)
def test_an_address_that_refuses(status: str, message: str) -> None:
    with serving(saying(whole_response(b"{}", status=status))) as host:
        assert refusal(McpServer.http(f"{host.url}?key={SECRET}")).endswith(f"{host.url} {message}")


def test_an_address_of_something_else() -> None:
    with serving(saying(whole_response(b"<html>", "text/html"))) as host:
        message = refusal(McpServer.http(host.url))
    assert "Unexpected content type: text/html. Check that it is an MCP server." in message


def test_headers_are_sent() -> None:
    with serving(saying(whole_response(b"{}", status="401 Unauthorized"))) as host:
        refusal(McpServer.http(host.url, headers={"Authorization": f"Bearer {SECRET}"}))
        assert {heard.headers["authorization"] for heard in host.heard} == {f"Bearer {SECRET}"}


def test_without_the_official_package_the_error_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['mcp'] = None\n"
        "from asides.agents.mcp.mcp_server import McpServer\n"
        "import asides\n"
        "try: McpServer.stdio('x').open()\n"
        "except asides.ConfigError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout == "tools of MCP servers need another package. Run pip install 'asides[mcp]'\n"


def test_the_official_package_loads_only_when_a_server_is_opened() -> None:
    program = (
        "import sys, asides\n"
        "from asides.agents.mcp.mcp_server import McpServer\n"
        "McpServer.stdio('x'), McpServer.http('http://127.0.0.1')\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('mcp', 'mcp_types', 'pydantic', 'httpx2')])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout == "[]\n"


def test_the_content_of_messages_is_not_logged(server: McpServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    run_call(server, "echo", text=CANARY)
    run_call(server, "fail", reason=CANARY)
    run_call(server, "add", a=CANARY)
    logging.getLogger("mcp.client.stdio").warning("from another thread")
    logged = [record for record in caplog.records if record.name.partition(".")[0] != "asyncio"]
    assert [record.getMessage() for record in logged] == ["from another thread"]


def test_nothing_is_logged_from_the_first_message_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    talker = "import sys; print('canary'); sys.stdin.readline(); print('{}'); sys.exit('canary')"
    with pytest.raises(ConfigError), McpServer.stdio(sys.executable, "-c", talker):
        pass
    assert {record.name for record in caplog.records} <= {"asyncio"}


# --- what a server may send -------------------------------------------------------------------------------------------

LIMIT = 20_000
Answer = Callable[[ReceivedRequest, socket.socket], bool]


def as_json(body: bytes) -> bytes:
    return whole_response(body)


def as_event(body: bytes) -> bytes:
    return whole_response(b"event: message\ndata: " + body + b"\n\n", "text/event-stream")


def as_gzip(body: bytes) -> bytes:
    return whole_response(gzip.compress(body), Content_Encoding="gzip")


def as_error(body: bytes) -> bytes:
    return whole_response(body, status="400 Bad Request")


def without_length(body: bytes) -> bytes:
    pieces = [body[start : start + 1000] for start in range(0, len(body), 1000)]
    chunks = b"".join(f"{len(piece):x}\r\n".encode() + piece + b"\r\n" for piece in pieces)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + chunks + b"0\r\n\r\n"


def hostile(write: Callable[[bytes], bytes], pages: Callable[[str | None], dict[str, Any]]) -> Answer:
    """A server of before 2026 whose first call of a tool has a large answer, and the next a small one."""
    calls: list[str] = []

    def answer(heard: ReceivedRequest, connection: socket.socket) -> bool:
        if not heard.line.startswith("POST"):
            connection.sendall(whole_response(b"", status="405 Method Not Allowed"))
            return True
        message = json.loads(heard.body)
        result: dict[str, Any]
        match message["method"]:
            case "initialize":
                info = {"name": "hostile", "version": "1"}
                result = {"serverInfo": info, "capabilities": {"tools": {}}, "protocolVersion": "2025-06-18"}
            case "tools/list":
                result = pages((message.get("params") or {}).get("cursor"))
            case "tools/call":
                calls.append("call")
                size = 3 * LIMIT if len(calls) == 1 else 10
                result = {"content": [{"type": "text", "text": "x" * size}]}
            case _:
                connection.sendall(whole_response(b"", status="400 Bad Request" if "id" in message else "202 Accepted"))
                return True
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        is_large = message["method"] == "tools/call" and len(calls) == 1
        connection.sendall(write(body) if is_large else whole_response(body))
        return True

    return answer


def one_page(_: str | None) -> dict[str, Any]:
    return {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]}


@pytest.mark.parametrize("write", [as_json, as_event, as_gzip, as_error, without_length])
def test_an_answer_that_is_too_large_fails_its_call_and_the_connection_stays(
    write: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("asides.agents.mcp.connect._MAX_ANSWER_BYTES", LIMIT)
    with serving(hostile(write, one_page)) as host, McpServer.http(host.url) as server:
        result = run_call(server, "look")
        assert result.is_error
        assert len(result.text) < 500
        if write in (as_json, as_gzip, without_length):
            assert f"the answer is larger than {LIMIT} bytes" in result.text
        assert run_call(server, "look").text == "x" * 10


@pytest.mark.parametrize(
    ("pages", "reason"),
    [
        (lambda cursor: {**one_page(cursor), "nextCursor": "again"}, "the pages of its list form a circle"),
        (lambda cursor: {"tools": [], "nextCursor": str(int(cursor or 0) + 1)}, "more than 50 tools"),
        (lambda cursor: {"tools": one_page(cursor)["tools"] * 60, "nextCursor": "2"}, "more than 50 tools"),
        (lambda _: {"tools": [{"name": "y" * 3 * LIMIT, "inputSchema": {"type": "object"}}]}, "is larger than"),
    ],
    ids=["a circle", "empty pages", "too many", "too large"],
)
def test_a_list_of_tools_that_is_too_long_is_refused_with_the_reason(
    pages: Callable[[str | None], dict[str, Any]], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("asides.agents.mcp.connect._MAX_ANSWER_BYTES", LIMIT)
    monkeypatch.setattr("asides.agents.mcp.session._MAX_TOOLS", 50)
    with serving(hostile(as_json, pages)) as host:
        message = refusal(McpServer.http(host.url))
    assert reason in message
    assert "" in message


@pytest.mark.parametrize(
    "config",
    [
        Http(
            "https://me:canary-in-login@mcp.example/p?a=canary-in-query", {"Authorization": "Bearer canary-in-header"}
        ),
        Stdio("run", env={"TOKEN": "canary-in-environment"}),
    ],
    ids=["address", "command"],
)
def test_the_words_of_a_server_lose_what_is_secret_in_its_configuration(config: Http | Stdio) -> None:
    assert config.secrets
    for secret in config.secrets:
        for shown in (secret, base64.b64encode(f"me:{secret}".encode()).decode(), secret.upper()):
            redacted = redact_words(f"refused {shown} here", config)
            assert "canary" not in redacted.lower()
            assert base64.b64encode(secret.encode()).decode()[:12] not in redacted
