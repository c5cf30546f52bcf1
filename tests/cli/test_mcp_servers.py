"""`--mcp`: real servers as child processes and over HTTP, in every form that the option takes."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from asides.cli.mcp_servers import find_servers
from asides.settings import load_settings
from asides.values.errors import ConfigError
from asides.values.parts import ToolCall
from asides_stage.stage import OpenStage, Say, Stage
from tests.agents.mcp.running import OFFICIAL, OLD, at_loopback
from tests.cli.children import ask, at, here, piped, run_process, started

COMMAND = shlex.join([sys.executable, str(OLD)])
TABLE = {"command": sys.executable, "args": [str(OLD)]}
SETTINGS = f"command = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(OLD))}]\n"


def call(name: str, **arguments: Any) -> Say:
    return Say(tool_calls=(ToolCall("call_1", name, arguments),))


def offered(stage: Stage) -> list[str]:
    return [tool["function"]["name"] for tool in stage.requests[0].json["tools"]]


def result(stage: Stage) -> str:
    return str(stage.requests[-1].json["messages"][-1]["content"])


def process(result: str) -> int:
    """The process of the server, as its tool `one` says it."""
    return int(json.loads(result)["pid"])


def has_ended(process: int) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Write the user's settings file."""

    def write(text: str) -> None:
        (tmp_path / "asides.toml").write_text(text)
        monkeypatch.setenv("ASIDES_CONFIG", str(tmp_path / "asides.toml"))

    return write


@pytest.mark.parametrize("form", ["command", "name", "file", "one of a file"])
def test_the_model_calls_a_tool_of_a_server_in_each_form(
    form: str,
    stage: OpenStage,
    tmp_path: Path,
    settings: Callable[[str], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"sums": {**TABLE, "type": "stdio", "icon": "x"}, "bad": {}}}))
    if form == "file":
        path.write_text(json.dumps({"mcpServers": {"sums": TABLE, "off": {"command": "no", "disabled": True}}}))
    settings(f"[mcp.sums]\n{SETTINGS}")
    value = {"command": COMMAND, "name": "sums", "file": str(path), "one of a file": f"{path}#sums"}[form]
    name = "old__one" if form == "command" else "sums__one"
    server = stage(call(name), Say(text="It runs."))
    done = ask(capsys, server, "--mcp", value, "Does it run?")
    assert (done.code, done.out) == (0, "It runs.\n")
    assert f'← {name}: {{"pid"' in done.err
    assert name in offered(server)
    assert has_ended(process(result(server)))


def test_a_server_at_a_url_is_asked_over_http(stage: OpenStage, capsys: pytest.CaptureFixture[str]) -> None:
    server = stage(call("Test_server__add", a=1, b=2), Say(text="3"))
    with at_loopback() as (url, _):
        assert ask(capsys, server, "--mcp", url, "1 + 2?").out == "3\n"
    assert result(server) == "3"


def test_the_server_ends_with_the_command(stage: OpenStage) -> None:
    server = stage(call("old__one"), Say(text="done"))
    assert run_process("ask", *at(server), "--mcp", COMMAND, "?").out == "done\n"
    assert has_ended(process(result(server)))


def test_the_server_ends_with_ctrl_c(stage: OpenStage, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    server = stage(call("Test_server__process"), call("Test_server__slow", seconds=60, mark=str(mark)))
    with started("ask", *at(server), "--no-stdin", "--mcp", shlex.join([sys.executable, str(OFFICIAL)]), "?") as child:
        deadline = time.monotonic() + 20
        while not Path(f"{mark}.started").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        child.send_signal(2)
        assert child.wait(20) == 130
    assert has_ended(int(result(server)))


def test_ctrl_c_ends_a_server_that_never_answers(stage: OpenStage, tmp_path: Path) -> None:
    mark = tmp_path / "process"
    code = f"import os,time; open({str(mark)!r},'w').write(str(os.getpid())); time.sleep(60)"
    command = shlex.join([sys.executable, "-c", code])
    with started("ask", *at(stage()), "--no-stdin", "--mcp", command, "?") as child:
        deadline = time.monotonic() + 20
        while not (mark.exists() and mark.read_text()) and time.monotonic() < deadline:
            time.sleep(0.05)
        child.send_signal(2)
        assert child.wait(20) == 130
    assert has_ended(int(mark.read_text()))


def test_several_servers_and_functions_are_offered_together(
    stage: OpenStage, tools: Path, settings: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    settings(f'[mcp.a]\n{SETTINGS}allow = "one"\n[mcp.b]\n{SETTINGS}allow = ["two"]\napproval = "deny"\n')
    server = stage(call("b__two"), Say(text="ok"))
    done = ask(capsys, server, "--mcp", "a", "--mcp", "b", "--tools", f"{tools}:look", "?")
    assert done.code == 0
    assert offered(server) == ["look", "a__one", "b__two"]
    assert "not allowed" in result(server), "the table denies it"


def test_confirm_asks_before_a_tool_of_a_server_runs(stage: OpenStage, capsys: pytest.CaptureFixture[str]) -> None:
    server = stage(call("old__one"), Say(text="no"))
    assert ask(capsys, server, "--mcp", COMMAND, "--confirm", "?").out == "no\n"
    assert "no one at the terminal" in result(server)


def test_chat_keeps_the_server_for_all_questions(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scenes = [scene for _ in range(2) for scene in (call("old__one"), Say(text="ok"))]
    server = stage(*scenes)
    assert piped(capsys, monkeypatch, "one\ntwo\n", "chat", *at(server), "--mcp", COMMAND).out == "ok\nok\n"
    first, second = (process(server.requests[number].json["messages"][-1]["content"]) for number in (1, 3))
    assert first == second
    assert has_ended(first)


def test_explain_shows_the_tools_of_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    done = here(capsys, "explain", "-m", "vllm:qwen3", "--no-stdin", "--json", "--mcp", COMMAND, "?")
    names = [tool["function"]["name"] for tool in json.loads(done.out)["body"]["tools"]]
    assert (done.code, names[0]) == (0, "old__one")


# --- trust and secrets ------------------------------------------------------------------------------------------------


def test_a_file_that_was_only_found_defines_no_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = tmp_path / "ran"
    (tmp_path / "asides.toml").write_text(f'[mcp.evil]\ncommand = "touch"\nargs = ["{mark}"]\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ASIDES_CONFIG", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    done = ask(capsys, stage(Say(text="never")), "--mcp", "evil", "?")
    assert (done.code, done.out) == (2, "")
    assert "asides.toml may not set mcp.evil" in done.err
    assert not mark.exists()


def test_variables_are_filled_in_and_never_shown(
    settings: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    stage: OpenStage,
) -> None:
    monkeypatch.setenv("MY_TOKEN", "hunter2-hunter2")
    settings(
        f"[mcp.env]\ncommand = {json.dumps(sys.executable)}\n"
        'args = ["-c", "import os,sys; sys.exit(os.environ[\'T\'])"]\n'
        'env = { T = "$MY_TOKEN" }\n'
    )
    done = ask(capsys, stage(), "--mcp", "env", "?")
    assert done.code == 2
    assert "ended before it answered; its last output: ***" in done.err
    assert "hunter2" not in done.err
    assert "hunter2" not in repr(load_settings())
    monkeypatch.delenv("MY_TOKEN")
    done = ask(capsys, stage(), "--mcp", "env", "?")
    assert "[mcp.env] uses $MY_TOKEN, which is not in the environment" in done.err


def test_config_does_not_print_what_a_table_holds(
    settings: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    settings('[mcp.web]\nurl = "https://example.com/mcp"\nheaders = { Authorization = "Bearer hunter2" }\n')
    for arguments in (["config"], ["config", "--json"]):
        done = here(capsys, *arguments)
        assert (done.code, "hunter2" in done.out) == (0, False)


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, "names no server"),
        ({"mcpServers": {}}, "names no server"),
        ({"mcpServers": {"a": {}}}, "a needs a command or a url"),
        ({"mcpServers": {"a": {"command": "x", "url": "https://x"}}}, "and not both"),
        (
            {"mcpServers": {"a": {"command": 5}}},
            "Expected `str | null`, got `int` - at `$.command`",
        ),
        ({"mcpServers": {"a": {"url": "https://x", "type": "sse"}}}, "has the type 'sse'"),
        ({"mcpServers": {"a": {"url": "ftp://x"}}}, "starts with http:// or https://"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(document: object, words: str, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ConfigError) as caught:
        find_servers(str(path))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("sumz", "there is no [mcp.sumz] in the settings and no command of that name; did you mean sums?"),
        ("./no-such-program --x", "there is no command './no-such-program'"),
        ("https://127.0.0.1:1/mcp", "no server answers at https://127.0.0.1:1/mcp"),
        ("nowhere.json", "--mcp nowhere.json cannot be read"),
        ("'open quote", "is not a command: no closing quotation"),
        (" ", "--mcp needs a server"),
    ],
)
def test_a_server_that_does_not_open_is_wrong_usage(
    value: str, words: str, stage: OpenStage, settings: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    settings(f"[mcp.sums]\ncommand = {json.dumps(sys.executable)}\n")
    server = stage(Say(text="ok"))
    done = ask(capsys, server, "--mcp", value, "?")
    assert (done.code, done.out, len(server.requests)) == (2, "", 0)
    assert words in done.err


def test_one_server_twice_is_told_before_anything_is_sent(stage: OpenStage, capsys: pytest.CaptureFixture[str]) -> None:
    server = stage(Say(text="ok"))
    done = ask(capsys, server, "--mcp", COMMAND, "--mcp", COMMAND, "?")
    assert (done.code, len(server.requests)) == (2, 0)
    assert "two MCP servers have a tool 'old__one'" in done.err


def test_without_the_extra_the_error_says_how_to_install_it(stage: OpenStage, tmp_path: Path) -> None:
    fake = tmp_path / "fake" / "mcp"
    fake.mkdir(parents=True)
    (fake / "__init__.py").write_text("raise ImportError('not here')\n")
    source = Path(__file__).resolve().parents[2] / "src"
    path = os.pathsep.join([str(fake.parent), str(source)])
    done = run_process("ask", *at(stage(Say(text="ok"))), "--mcp", COMMAND, "?", env={"PYTHONPATH": path})
    assert (done.code, done.out) == (2, "")
    assert "pip install 'asides[mcp]'" in done.err
