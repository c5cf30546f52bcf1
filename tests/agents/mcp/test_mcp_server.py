"""An open server: its options, its tools, and calls of them from any thread and loop."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from asides.agents.mcp.mcp_server import McpServer
from asides.agents.tools.executor import BadArguments, Runnable
from asides.values.errors import ConfigError
from asides.values.parts import File, Image, Text, ToolCall
from tests.agents.mcp.running import (
    answer_as_old_server,
    describe_child,
    find_tool,
    official,
    old,
    run_call,
    start_call,
    wait_until,
    wait_until_async,
)
from tests.loopback import serving

PIXEL = b"\x89PNG pixel"
CANARY = "canary-2718281828"


def test_the_names_of_tools_start_with_their_server(server: McpServer) -> None:
    names = [tool.tool.name for tool in server.tools]
    assert names[:3] == ["test__add", "test__echo", "test__fail"]
    assert all(re.fullmatch(r"test__[a-zA-Z0-9_-]{1,58}", name) for name in names)
    assert "test__dotted_name_with_strange_letters" in names


def test_a_tool_is_runnable(server: McpServer) -> None:
    tool = find_tool(server, "add")
    assert isinstance(tool, Runnable)
    assert (tool.blocking, tool.approval, tool.timeout) == (False, None, None)


def test_descriptions_and_schemas_come_from_the_server_unchanged(server: McpServer) -> None:
    tool = find_tool(server, "add").tool
    assert tool.description == "Add two numbers."
    assert tool.parameters == {
        "title": "addArguments",
        "type": "object",
        "properties": {"a": {"title": "A", "type": "integer"}, "b": {"title": "B", "type": "integer"}},
        "required": ["a", "b"],
    }


def test_instructions_come_from_the_server(server: McpServer) -> None:
    assert server.instructions == "Add before you echo."


def test_a_call_returns_text(server: McpServer) -> None:
    result = run_call(server, "echo", text="grüß dich")
    assert (result.call_id, result.name, result.content, result.is_error) == (
        "call_1",
        "test__echo",
        "grüß dich",
        False,
    )


@pytest.mark.parametrize("own", ["dotted.name/with strange letters", "t" * 80])
def test_a_renamed_tool_is_called_by_its_own_name(server: McpServer, own: str) -> None:
    assert run_call(server, own).content in ("dotted", "long")


def test_a_call_returns_structured_content_once(server: McpServer) -> None:
    assert run_call(server, "add", a=20, b=22).content == "42"
    assert run_call(server, "read_structured").content == '{"city":"Köln","degrees":21}'


def test_a_call_returns_pictures_and_files(server: McpServer) -> None:
    assert run_call(server, "read_mixed").content == (
        Text("words"),
        Image(data=PIXEL, media_type="image/png"),
        File("audio.wav", PIXEL, media_type="audio/wav"),
        Text("file:///notes.txt\na note"),
        File("report.pdf", PIXEL, media_type="application/pdf"),
        Text("log (text/plain) at file:///log.txt: what happened"),
    )


def test_a_tool_that_fails_returns_an_error_for_the_model(server: McpServer) -> None:
    result = run_call(server, "fail", reason="no such city")
    assert (result.is_error, "no such city" in result.text) == (True, True)


def test_arguments_that_do_not_fit_are_an_error_for_the_model(server: McpServer) -> None:
    result = run_call(server, "add", a="many")
    assert (result.is_error, "Field required" in result.text) == (True, True)


async def test_arguments_that_are_no_json_are_not_sent(server: McpServer) -> None:
    tool = find_tool(server, "add")
    with pytest.raises(BadArguments, match="JSON object"):
        await tool.run(ToolCall("call_1", tool.tool.name, raw_arguments='{"a": 1'))


async def test_each_of_many_parallel_calls_gets_its_own_answer(server: McpServer) -> None:
    results = await asyncio.gather(*(start_call(server, "add", a=number, b=1) for number in range(40)))
    assert [result.content for result in results] == [str(number + 1) for number in range(40)]


def test_threads_with_their_own_loops_share_a_server(server: McpServer) -> None:
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda number: run_call(server, "echo", text=str(number)), range(24)))
    assert [result.content for result in results] == [str(number) for number in range(24)]


async def test_a_caller_that_is_cancelled_cancels_the_request(server: McpServer, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    waiting = asyncio.create_task(start_call(server, "slow", seconds=60, mark=str(mark)))
    await wait_until_async(mark.with_suffix(".started").exists, "the tool starts")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await wait_until_async(mark.with_suffix(".cancelled").exists, "the server gets the cancellation")
    assert (await start_call(server, "add", a=1, b=1)).content == "2"


def test_a_server_sets_the_approval_and_the_timeout_of_its_tools() -> None:
    with old(name="o", approval="ask", timeout=0.3) as server:
        assert {(tool.approval, tool.timeout) for tool in server.tools} == {("ask", 0.3)}
        result = run_call(server, "three")
        assert (result.is_error, result.text) == (
            True,
            "the server o did not answer within 0.3 seconds, and was asked to stop",
        )
        wait_until(lambda: server.tools[-1].own_name == "cancelled", "the server gets the cancellation")


def test_only_tools_that_are_allowed_and_not_denied_are_taken() -> None:
    with old(allow=("t*", "liar"), deny="two") as server:
        assert [tool.own_name for tool in server.tools] == ["three", "liar"]


def test_a_filter_that_leaves_no_tool_is_refused() -> None:
    with (
        pytest.raises(ConfigError, match=r"none of the 6 tools.*it has one, two, three, unreadable, liar, sorry"),
        old(allow="read_*"),
    ):
        pass


def test_a_list_in_pages_is_read_to_its_end_from_a_server_of_before_2026() -> None:
    with old() as server:
        assert [tool.own_name for tool in server.tools] == ["one", "two", "three", "unreadable", "liar", "sorry"]
        assert server.tools[0].tool.name == "old__one"


def test_tools_are_listed_again_after_a_notification() -> None:
    with old() as server:
        run_call(server, "two")
        wait_until(lambda: len(server.tools) == 7, "the new tool is known")
        assert server.tools[-1].tool.name == "old__five"


def test_changes_are_subscribed_to_if_the_server_wants_that() -> None:
    with official() as server:
        assert server.name == "Test_server"
        assert run_call(server, "grow", name="more").content == "grown"
        wait_until(lambda: server.tools[-1].own_name == "more", "the new tool is known")
        assert run_call(server, "more", text="hello").content == "hello"


async def test_tools_are_listed_again_on_request() -> None:
    async with old() as server:
        before = server.tools
        assert server.tools is before
        assert [tool.own_name for tool in await server.arefresh()] == [tool.own_name for tool in before]
        assert server.tools is not before
        assert len(await asyncio.to_thread(server.refresh)) == 6


def test_a_large_picture_arrives_from_an_http_server_of_before_2026(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asides.agents.mcp.session._CLOSE_SECONDS", 0.1)
    picture = bytes(range(256)) * 8192
    with serving(answer_as_old_server(picture)) as host, McpServer.http(host.url) as server:
        assert run_call(server, "picture").content == (Image(data=picture, media_type="image/png"),)


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        ("unreadable", "the server's answer cannot be read"),
        ("liar", "the server's answer does not match the tool's own output schema"),
        ("sorry", "not with the key ***"),
    ],
)
def test_invalid_answers_are_errors_for_the_model(own: str, reason: str) -> None:
    with old(name="o") as server:
        result = run_call(server, own)
    assert (result.is_error, result.text) == (True, f"the server o did not run {own}: {reason}")


def test_a_child_gets_env_and_no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MADE_UP_API_KEY", CANARY)
    with old(env={"CITY": "Köln"}, cwd=tmp_path) as server:
        seen = describe_child(server)
    assert {"CITY", "PATH"} <= set(seen["environment"])
    assert "MADE_UP_API_KEY" not in seen["environment"]
    assert Path(seen["folder"]) == tmp_path.resolve()


def test_reprs_show_no_secret() -> None:
    child = McpServer.stdio("server", "--token", CANARY, env={"TOKEN": CANARY})
    assert repr(child) == "McpServer('server', Stdio('server', <2 arguments>, env=['TOKEN']), closed)"
    there = McpServer.http(f"https://me:{CANARY}@example.test/mcp?key={CANARY}", headers={"Authorization": CANARY})
    assert repr(there) == (
        "McpServer('example_test', Http('https://example.test/mcp', headers={'Authorization': '***'}), closed)"
    )


def test_the_repr_of_an_open_server_counts_its_tools(server: McpServer) -> None:
    assert repr(server).endswith(f"{len(server.tools)} tools)")
    assert repr(find_tool(server, "add")) == "McpTool('test__add')"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "two words"}, "'two words' cannot be the name"),
        ({"name": "x" * 33}, "up to 32 of the characters"),
        ({"approval": "maybe"}, 'Write "allow", "deny" or "ask"'),
        ({"timeout": 0}, "more than 0"),
        ({"start_timeout": -1}, "more than 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        McpServer.stdio("server", **options)


def test_a_url_of_another_scheme_is_refused() -> None:
    with pytest.raises(ConfigError, match="starts with http:// or https://"):
        McpServer.http("ftp://example.test")


def test_a_server_is_opened_once_at_a_time_and_may_be_opened_again() -> None:
    server = old()
    with server, pytest.raises(ConfigError, match="the MCP server old is already open"):
        server.open()
    with server:
        assert len(server.tools) == 6


async def test_a_server_that_is_not_open_has_no_tools_and_runs_none() -> None:
    async with old() as server:
        tool = find_tool(server, "one")
    message = "the MCP server old is not open. Use it inside `with` or `async with`, or call"
    with pytest.raises(ConfigError, match=message):
        _ = server.tools
    with pytest.raises(ConfigError, match=message):
        server.refresh()
    with pytest.raises(ConfigError, match=message):
        await tool.run(ToolCall("call_1", tool.tool.name))
    assert tool.fatal == (ConfigError,)
