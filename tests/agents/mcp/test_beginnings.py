"""Servers that do not open, and what is said of it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from asides.agents.mcp.connect import Heard
from asides.agents.mcp.server import McpServer
from asides.values.errors import ConfigError
from asides.values.messages import ToolCall
from tests.agents.mcp.running import named, no_thread_is_left, old, old_address
from tests.loopback import saying, serving, whole_response

SECRET = "canary-1414213562"


def refusal(server: McpServer) -> str:
    """What is said by a server that does not open, which leaves nothing behind; the same for both ways to open it."""

    async def awaiting() -> None:
        async with server:
            pass

    with no_thread_is_left():
        with pytest.raises(ConfigError) as told, server:
            pass
        with pytest.raises(ConfigError) as told_awaiting:
            asyncio.run(awaiting())
    assert str(told.value) == str(told_awaiting.value)
    return str(told.value)


def test_a_command_that_is_not_there() -> None:
    assert refusal(McpServer.stdio("no-such-command")) == (
        "the MCP server no-such-command could not be opened: there is no command 'no-such-command'. "
        "To do: install it, or give its whole path."
    )


def test_a_file_that_does_not_run(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    assert "does not run (permission denied)" in refusal(McpServer.stdio(tmp_path / "notes.txt"))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert "the folder of cwd= is not there" in refusal(McpServer.stdio(sys.executable, cwd=tmp_path / "no"))


def test_a_child_that_ends_at_once_is_quoted_without_secrets() -> None:
    program = "import os, sys; sys.exit(f'bad token {os.environ[\"TOKEN\"]}, Bearer abc.def')"
    told = refusal(McpServer.stdio(sys.executable, "-c", program, env={"TOKEN": SECRET}, name="s"))
    assert "ended before it answered; the last that it said: bad token ***, ***. To do: run the command" in told


def test_a_child_that_says_a_lot_is_quoted_from_its_end() -> None:
    program = "import sys; sys.stderr.write('x' * 1_000_000 + ' and the reason'); sys.exit(1)"
    told = refusal(McpServer.stdio(sys.executable, "-c", program))
    assert told.endswith("x and the reason. To do: run the command in a terminal and see.")
    assert len(told) < 800


def test_what_a_child_says_is_forgotten_but_for_its_end() -> None:
    heard = Heard()
    with os.fdopen(heard.listen(), "wb") as said:
        said.write(b"x" * 1_000_000 + b"end")
    heard.wait()
    assert len(heard._tail) == 2048
    assert heard._tail.endswith(b"xend")


def test_a_child_that_says_nothing_is_said_to() -> None:
    assert "ended before it answered and said nothing" in refusal(McpServer.stdio(sys.executable, "-c", ""))


def test_a_child_that_does_not_answer_is_not_waited_for() -> None:
    silent = McpServer.stdio(sys.executable, "-c", "import sys; sys.stdin.read()", start_timeout=0.3)
    assert "it did not answer within 0.3 seconds. To do: raise start_timeout=" in refusal(silent)


def test_an_address_where_nobody_is() -> None:
    with serving(saying(b"")) as gone:
        url = gone.url
    assert f"nobody answers at {url}. To do: start the server, or check the URL." in refusal(McpServer.http(url))


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ("401 Unauthorized", "answered 401. To do: check the key in headers=."),
        ("404 Not Found", "answered 404. To do: check the URL, the path included."),
        ("500 Internal Server Error", "answered 500. To do: check the URL, the path included."),
    ],
)
def test_an_address_that_refuses(status: str, told: str) -> None:
    with serving(saying(whole_response(b"{}", status=status))) as host:
        assert refusal(McpServer.http(f"{host.url}?key={SECRET}")).endswith(f"{host.url} {told}")


def test_an_address_of_something_else() -> None:
    with serving(saying(whole_response(b"<html>", "text/html"))) as host:
        told = refusal(McpServer.http(host.url))
    assert "Unexpected content type: text/html. To do: check that it is an MCP server." in told


def test_headers_go_along() -> None:
    with serving(saying(whole_response(b"{}", status="401 Unauthorized"))) as host:
        refusal(McpServer.http(host.url, headers={"Authorization": f"Bearer {SECRET}"}))
        assert {heard.headers["authorization"] for heard in host.heard} == {f"Bearer {SECRET}"}


def test_a_goodbye_that_nobody_takes_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asides.agents.mcp.session._CLOSE_SECONDS", 0.2)
    with serving(old_address(b"")) as host:
        with no_thread_is_left(), McpServer.http(host.url) as server:
            assert (server.name, len(server.tools)) == ("deaf", 1)
        assert [heard.line.partition(" ")[0] for heard in host.heard][-1] == "DELETE"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"name": "two words"}, "'two words' cannot be the name"),
        ({"name": "x" * 33}, "up to 32 of the characters"),
        ({"approval": "maybe"}, 'write "allow", "deny" or "ask"'),
        ({"timeout": 0}, "more than 0"),
        ({"start_timeout": -1}, "more than 0"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        McpServer.stdio("server", **options)


def test_a_url_of_another_kind() -> None:
    with pytest.raises(ConfigError, match="starts with http:// or https://"):
        McpServer.http("ftp://example.test")


def test_a_server_is_opened_once_at_a_time_and_may_be_opened_again() -> None:
    server = old()
    with server, pytest.raises(ConfigError, match="the MCP server old is open already"):
        server.open()
    with server:
        assert len(server.tools) == 6


async def test_a_server_that_is_not_open_has_no_tools_and_runs_none() -> None:
    async with old() as server:
        tool = named(server, "one")
    told = "the MCP server old is not open. To do: use it inside `with` or `async with`, or call"
    with pytest.raises(ConfigError, match=told):
        _ = server.tools
    with pytest.raises(ConfigError, match=told):
        server.refresh()
    with pytest.raises(ConfigError, match=told):
        await tool.run(ToolCall("call_1", tool.tool.name))
    assert tool.fatal == (ConfigError,)


def test_without_the_official_package_it_is_said_what_to_install() -> None:
    program = (
        "import sys; sys.modules['mcp'] = None\n"
        "from asides.agents.mcp.server import McpServer\n"
        "import asides\n"
        "try: McpServer.stdio('x').open()\n"
        "except asides.ConfigError as problem: print(problem)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout == "tools of MCP servers need another package. To do: pip install 'asides[mcp]'\n"


def test_the_official_package_loads_only_when_a_server_is_opened() -> None:
    program = (
        "import sys, asides\n"
        "from asides.agents.mcp.server import McpServer\n"
        "McpServer.stdio('x'), McpServer.http('http://127.0.0.1')\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('mcp', 'mcp_types', 'pydantic', 'httpx2')])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout == "[]\n"
