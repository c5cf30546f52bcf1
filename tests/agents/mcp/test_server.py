"""An open server: its tools, calls of them, and who may call from where."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from asides.agents.mcp.server import McpServer
from asides.agents.tools.runnable import BadArguments, Runnable
from asides.values.errors import ConfigError
from asides.values.messages import File, Image, Text, ToolCall
from tests.agents.mcp.running import asked, auntil, called, child_of, named, official, old, old_address, until
from tests.loopback import serving

PIXEL = b"\x89PNG pixel"
CANARY = "canary-2718281828"


def test_tools_are_found_and_named_behind_their_server(server: McpServer) -> None:
    names = [tool.tool.name for tool in server.tools]
    assert names[:3] == ["test__add", "test__echo", "test__fail"]
    assert all(re.fullmatch(r"test__[a-zA-Z0-9_-]{1,58}", name) for name in names)
    assert "test__dotted_name_with_strange_letters" in names


def test_a_tool_is_what_an_agent_runs(server: McpServer) -> None:
    tool = named(server, "add")
    assert isinstance(tool, Runnable)
    assert (tool.blocking, tool.approval, tool.timeout) == (False, None, None)


def test_descriptions_and_schemas_are_the_servers_own(server: McpServer) -> None:
    tool = named(server, "add").tool
    assert tool.description == "Add two numbers."
    assert tool.parameters == {
        "title": "addArguments",
        "type": "object",
        "properties": {"a": {"title": "A", "type": "integer"}, "b": {"title": "B", "type": "integer"}},
        "required": ["a", "b"],
    }


def test_what_the_server_says_of_itself(server: McpServer) -> None:
    assert server.instructions == "Add before you echo."


def test_a_call_gives_text(server: McpServer) -> None:
    result = called(server, "echo", text="grüß dich")
    assert (result.call_id, result.name, result.content, result.is_error) == (
        "call_1",
        "test__echo",
        "grüß dich",
        False,
    )


@pytest.mark.parametrize("own", ["dotted.name/with strange letters", "t" * 80])
def test_a_tool_that_is_named_otherwise_here_is_called_by_its_own_name(server: McpServer, own: str) -> None:
    assert called(server, own).content in ("dotted", "long")


def test_a_call_gives_structured_content_once(server: McpServer) -> None:
    assert called(server, "add", a=20, b=22).content == "42"
    assert called(server, "read_structured").content == '{"city":"Köln","degrees":21}'


def test_a_call_gives_pictures_and_files(server: McpServer) -> None:
    assert called(server, "read_mixed").content == (
        Text("words"),
        Image(data=PIXEL, media_type="image/png"),
        File("audio.wav", PIXEL, media_type="audio/wav"),
        Text("file:///notes.txt\na note"),
        File("report.pdf", PIXEL, media_type="application/pdf"),
        Text("log (text/plain) at file:///log.txt: what happened"),
    )


def test_a_tool_that_fails_gives_an_error_for_the_model(server: McpServer) -> None:
    result = called(server, "fail", reason="no such city")
    assert (result.is_error, "no such city" in result.text) == (True, True)


def test_arguments_that_do_not_fit_are_an_error_for_the_model(server: McpServer) -> None:
    result = called(server, "add", a="many")
    assert (result.is_error, "Field required" in result.text) == (True, True)


async def test_arguments_that_are_no_json_never_leave(server: McpServer) -> None:
    tool = named(server, "add")
    with pytest.raises(BadArguments, match="JSON object"):
        await tool.run(ToolCall("call_1", tool.tool.name, raw_arguments='{"a": 1'))


async def test_many_calls_at_once_get_each_its_own_answer(server: McpServer) -> None:
    results = await asyncio.gather(*(asked(server, "add", a=number, b=1) for number in range(40)))
    assert [result.content for result in results] == [str(number + 1) for number in range(40)]


def test_threads_with_loops_of_their_own_share_a_server(server: McpServer) -> None:
    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(lambda number: called(server, "echo", text=str(number)), range(24)))
    assert [result.content for result in results] == [str(number) for number in range(24)]


async def test_a_caller_that_is_cancelled_cancels_the_request(server: McpServer, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    waiting = asyncio.create_task(asked(server, "slow", seconds=60, mark=str(mark)))
    await auntil(mark.with_suffix(".started").exists, "the tool starts")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await auntil(mark.with_suffix(".cancelled").exists, "the server hears of it")
    assert (await asked(server, "add", a=1, b=1)).content == "2"


def test_a_server_may_say_how_long_and_whether_its_tools_run() -> None:
    with old(name="o", approval="ask", timeout=0.3) as server:
        assert {(tool.approval, tool.timeout) for tool in server.tools} == {("ask", 0.3)}
        result = called(server, "three")
        assert (result.is_error, result.text) == (
            True,
            "the server o did not answer within 0.3 seconds, and was told to stop",
        )
        until(lambda: server.tools[-1].own_name == "cancelled", "the server hears of it")


def test_only_what_is_allowed_and_not_denied_is_there() -> None:
    with old(allow=("t*", "liar"), deny="two") as server:
        assert [tool.own_name for tool in server.tools] == ["three", "liar"]


def test_a_filter_that_leaves_nothing_is_a_mistake() -> None:
    with (
        pytest.raises(ConfigError, match=r"none of the 6 tools.*it has one, two, three, unreadable, liar, sorry"),
        old(allow="read_*"),
    ):
        pass


def test_a_list_in_pages_is_read_to_its_end_and_servers_of_before_2026_are_spoken_to() -> None:
    with old() as server:
        assert [tool.own_name for tool in server.tools] == ["one", "two", "three", "unreadable", "liar", "sorry"]
        assert server.tools[0].tool.name == "old__one"


def test_a_server_that_tells_of_a_change_is_listed_again() -> None:
    with old() as server:
        called(server, "two")
        until(lambda: len(server.tools) == 7, "the new tool is known")
        assert server.tools[-1].tool.name == "old__five"


def test_a_server_that_tells_only_whom_has_asked_is_asked() -> None:
    with official() as server:
        assert server.name == "Test_server"
        assert called(server, "grow", name="more").content == "grown"
        until(lambda: server.tools[-1].own_name == "more", "the new tool is known")
        assert called(server, "more", text="hello").content == "hello"


async def test_tools_are_listed_again_on_request() -> None:
    async with old() as server:
        before = server.tools
        assert server.tools is before
        assert [tool.own_name for tool in await server.arefresh()] == [tool.own_name for tool in before]
        assert server.tools is not before
        assert len(await asyncio.to_thread(server.refresh)) == 6


def test_a_large_picture_comes_through_an_address_of_before_2026(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asides.agents.mcp.session._CLOSE_SECONDS", 0.1)
    picture = bytes(range(256)) * 8192
    with serving(old_address(picture)) as host, McpServer.http(host.url) as server:
        assert called(server, "picture").content == (Image(data=picture, media_type="image/png"),)


@pytest.mark.parametrize(
    ("own", "told"),
    [
        ("unreadable", "the server's answer does not read"),
        ("liar", "the server's answer is not what the server says that the tool gives"),
        ("sorry", "not with the key ***"),
    ],
)
def test_answers_that_are_none_are_errors_for_the_model(own: str, told: str) -> None:
    with old(name="o") as server:
        result = called(server, own)
    assert (result.is_error, result.text) == (True, f"the server o did not run {own}: {told}")


def test_a_child_gets_no_key_and_what_it_is_given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MADE_UP_API_KEY", CANARY)
    with old(env={"CITY": "Köln"}, cwd=tmp_path) as server:
        seen = child_of(server)
    assert {"CITY", "PATH"} <= set(seen["environment"])
    assert "MADE_UP_API_KEY" not in seen["environment"]
    assert Path(seen["folder"]) == tmp_path.resolve()


def test_nothing_that_is_said_is_logged(server: McpServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    called(server, "echo", text=CANARY)
    called(server, "fail", reason=CANARY)
    called(server, "add", a=CANARY)
    logging.getLogger("mcp.client.stdio").warning("of somebody else")
    heard = [record for record in caplog.records if record.name.partition(".")[0] != "asyncio"]
    assert [record.getMessage() for record in heard] == ["of somebody else"]


def test_nothing_is_logged_from_the_first_word_on(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    talker = "import sys; print('canary'); sys.stdin.readline(); print('{}'); sys.exit('canary')"
    with pytest.raises(ConfigError), McpServer.stdio(sys.executable, "-c", talker):
        pass
    assert {record.name for record in caplog.records} <= {"asyncio"}


def test_reprs_show_no_secret() -> None:
    child = McpServer.stdio("server", "--token", CANARY, env={"TOKEN": CANARY})
    assert repr(child) == "McpServer('server', Stdio('server', <2 arguments>, env=['TOKEN']), closed)"
    there = McpServer.http(f"https://me:{CANARY}@example.test/mcp?key={CANARY}", headers={"Authorization": CANARY})
    assert repr(there) == (
        "McpServer('example_test', Http('https://example.test/mcp', headers={'Authorization': '***'}), closed)"
    )


def test_an_open_server_says_how_many_tools_it_has(server: McpServer) -> None:
    assert repr(server).endswith(f"{len(server.tools)} tools)")
    assert repr(named(server, "add")) == "McpTool('test__add')"
