"""The command line where things are odd: names that are no text, runs that break off, calls too long for a line."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from asides.conversations.store.sqlite import SqliteStore
from asides.testing.stage import Fail, OpenStage, Say
from asides.values.messages import ToolCall, user
from tests.cli.children import asides, at, at_terminal, command, environment, here

TOOLS = '''
import time
import asides

@asides.tool
def look(at: str) -> str:
    """Looks."""
    return "blue"

@asides.tool
def nap(hours: int) -> str:
    """Sleeps."""
    time.sleep(30)
    return "rested"
'''
LOOK = Say(thinking="hm", text="Let me look.", tool_calls=(ToolCall("call_1", "look", {"at": "the sky"}),))
CANARY = "rm -rf /everything"


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    path = tmp_path / "tools_at_the_edges.py"
    path.write_text(TOOLS, encoding="utf-8")
    return path


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    monkeypatch.setenv("ASIDES_STATE", str(folder))
    return folder


# --- runs that break off ----------------------------------------------------------------------------------------------


def test_the_json_of_a_run_without_an_end_has_its_steps(stage: OpenStage, tools: Path) -> None:
    done = asides("ask", *at(stage(LOOK)), "--tools", str(tools), "--max-turns", "2", "--json", "?")
    told = json.loads(done.out)
    assert (done.code, told["outcome"], told["error"]["type"]) == (7, None, "TooManyTurns")
    assert [step["results"][0]["text"] for step in told["steps"]] == ["blue", "blue"]
    assert told["usage"]["output"] == sum(step["usage"]["output"] for step in told["steps"])
    assert (told["model"], told["text"]) == ("staged", "Let me look.")
    assert "raise --max-turns." in done.err
    assert "Limits" not in done.err


def test_the_json_of_a_run_that_fails_later_has_the_steps_before(stage: OpenStage, tools: Path) -> None:
    theatre = stage(LOOK, Fail(status=400))
    done = asides("ask", *at(theatre), "--tools", str(tools), "--retries", "0", "--json", "?")
    told = json.loads(done.out)
    assert (done.code, told["outcome"], told["error"]["status"]) == (6, None, 400)
    assert [call["name"] for call in told["steps"][0]["tool_calls"]] == ["look"]


def test_the_json_of_a_run_that_fails_at_once_has_an_error_alone(stage: OpenStage, tools: Path) -> None:
    done = asides("ask", *at(stage(Fail(status=400))), "--tools", str(tools), "--retries", "0", "--json", "?")
    told = json.loads(done.out)
    assert (done.code, told["text"], told["error"]["status"]) == (6, "", 400)
    assert not told.get("steps")


def test_the_json_of_a_run_that_was_stopped_has_its_steps(stage: OpenStage, tools: Path, tmp_path: Path) -> None:
    nap = Say(tool_calls=(ToolCall("call_2", "nap", {"hours": 8}),))
    out = tmp_path / "out.json"
    with (
        out.open("wb") as file,
        at_terminal(
            "ask", *at(stage(LOOK, nap)), "--tools", str(tools), "--json", "?", stdout=file.fileno()
        ) as keyboard,
    ):
        keyboard.wait_for("nap(hours=8)")
        keyboard.interrupt()
        code = keyboard.end()
    told = json.loads(out.read_text(encoding="utf-8"))
    assert (code, told["error"]["type"]) == (130, "Interrupted")
    assert told["steps"][0]["results"][0]["text"] == "blue"


# --- approval ---------------------------------------------------------------------------------------------------------


def test_whoever_approves_a_call_sees_all_of_it(stage: OpenStage, tools: Path) -> None:
    call = ToolCall("call_1", "look", {"at": f"{'harmless ' * 60}{CANARY}"})
    theatre = stage(Say(tool_calls=(call,)), Say(text="Fine."))
    with at_terminal("ask", *at(theatre), "--tools", str(tools), "--confirm", "?") as keyboard:
        keyboard.wait_for("[y]es")
        assert CANARY in keyboard.text
        keyboard.type("n\n")
        assert keyboard.end() == 0
    assert "not allowed" in theatre.requests[1].json["messages"][-1]["content"]


def test_no_name_of_a_tool_is_told_as_such(capsys: pytest.CaptureFixture[str], stage: OpenStage) -> None:
    done = here(capsys, "ask", *at(stage()), "--no-stdin", "--tools", "", "?")
    assert (done.code, done.out) == (2, "")
    assert "--tools needs a module or a file" in done.err


def test_tools_that_end_the_program_are_a_mistake_in_them(
    capsys: pytest.CaptureFixture[str], stage: OpenStage, tmp_path: Path
) -> None:
    path = tmp_path / "tools_that_leave.py"
    path.write_text("import sys\nsys.exit(3)\n", encoding="utf-8")
    done = here(capsys, "ask", *at(stage()), "--no-stdin", "--tools", str(path), "?")
    assert (done.code, done.out) == (2, "")
    assert "loading it ends the program" in done.err


def test_explain_takes_the_tools_that_ask_takes(
    capsys: pytest.CaptureFixture[str], stage: OpenStage, tools: Path
) -> None:
    theatre = stage()
    named = ("--no-stdin", "--json", "--tools", f"{tools}:look", "?")
    told = json.loads(here(capsys, "explain", *at(theatre), *named).out)
    assert [tool["function"]["name"] for tool in told["body"]["tools"]] == ["look"]
    asides("ask", *at(theatre), *named)
    assert theatre.requests[0].json["tools"] == told["body"]["tools"]


@pytest.mark.parametrize("port", ["99999", "-1", "x"])
def test_a_port_that_cannot_be_is_a_mistake_of_the_user(capsys: pytest.CaptureFixture[str], port: str) -> None:
    done = here(capsys, "stage", f"--port={port}")
    assert (done.code, done.out) == (2, "")
    assert "is no port" in done.err


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="arguments are text there")
def test_a_name_that_is_no_text_is_a_mistake_of_the_user(stage: OpenStage, state: Path) -> None:
    theatre = stage(Say(text="fine"))
    line = [argument.encode() for argument in command(["chat", *at(theatre), "--conversation"])]
    done = subprocess.run(
        [*line, b"\xff\xfe"], input=b"?\n", capture_output=True, env=environment(), timeout=20, check=False
    )
    assert (done.returncode, done.stdout, theatre.requests) == (2, b"", [])
    assert b"half a character" in done.stderr


def test_names_cannot_break_the_list(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stage: OpenStage, state: Path
) -> None:
    state.mkdir()
    with SqliteStore(state / "conversations.db") as store:
        for name in ("plain", "two\nlines", "\x1b[31mred"):
            store.append(name, [user("Hello")])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"/list\n"), "utf-8"))
    done = here(capsys, "chat", *at(stage()))
    assert [line.split("  ")[0] for line in done.err.splitlines()] == ["'\\x1b[31mred'", "'two\\nlines'", "plain"]


def test_a_chat_whose_conversation_was_deleted_is_kept_under_another_name(stage: OpenStage, state: Path) -> None:
    theatre = stage(Say(text="Well."))
    with at_terminal("chat", *at(theatre), "--conversation", "old") as keyboard:
        keyboard.wait_for("> ")
        keyboard.type("one\n")
        keyboard.wait_for("Well.")
        keyboard.wait_for("> ")
        keyboard.type("/keep new\n")
        keyboard.wait_for("is kept already, as 'old'")
        keyboard.wait_for("> ")
        with SqliteStore(state / "conversations.db") as store:
            assert store.delete("old")
        keyboard.type("two\n")
        keyboard.wait_for("was deleted by somebody else meanwhile. To do: write /keep and a name to go on with it.")
        keyboard.wait_for("> ")
        keyboard.type("/keep new\n")
        keyboard.wait_for("(kept as 'new'")
        keyboard.wait_for("> ")
        keyboard.type("two\n")
        keyboard.wait_for("Well.")
        keyboard.wait_for("> ")
        keyboard.type("/quit\n")
        assert keyboard.end() == 0
    with SqliteStore(state / "conversations.db") as store:
        kept = store.load("new")
    assert kept is not None
    assert [message.text for message in kept.messages] == ["one", "Well.", "two", "Well."]
