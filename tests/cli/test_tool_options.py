"""`--tools`: functions found by name, their calls shown and approved by the user, and Ctrl-C."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asides.testing.stage import OpenStage, Say
from asides.values.messages import ToolCall
from tests.cli.children import (
    asides,
    at,
    at_terminal,
    here,
)

TOOLS = '''
import time
import asides

@asides.tool
def hour(place: str) -> str:
    """The hour at a place."""
    return f"12 o'clock in {place}"

@asides.tool(approval="ask")
def remove(path: str) -> str:
    """Removes a file."""
    return "removed " + path

def plain(number: int) -> int:
    """Not marked, and a tool all the same when it is named."""
    return number + 1

def nap() -> None:
    """Sleeps."""
    time.sleep(30)
'''


HOUR = Say(thinking="I need the hour.", tool_calls=(ToolCall("call_1", "hour", {"place": "Oslo"}),))


NOON = Say(thinking="Noon, then.", text="It is noon.")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    path = tmp_path / "tools_of_a_test.py"
    path.write_text(TOOLS, encoding="utf-8")
    return path


def test_a_run_shows_its_steps_on_stderr_and_its_answer_on_stdout(stage: OpenStage, tools: Path) -> None:
    server = stage(HOUR, NOON)
    done = asides("ask", *at(server), "-t", "--tools", f"{tools}:hour", "What time is it?")
    assert (done.code, done.out) == (0, "It is noon.\n")
    lines = done.err.splitlines()
    assert lines[:2] == ["I need the hour.", '→ hour(place="Oslo")']
    assert lines[2].startswith("← hour: 12 o'clock in Oslo (")
    assert "Noon, then." in lines
    assert server.requests[1].json["messages"][-1]["content"] == "12 o'clock in Oslo"


def test_in_a_pipe_text_before_a_call_is_not_part_of_the_answer(stage: OpenStage, tools: Path) -> None:
    first = Say(text="Let me look.", tool_calls=HOUR.tool_calls)
    done = asides("ask", *at(stage(first, NOON)), "--tools", f"{tools}:hour", "?")
    assert done.out == "It is noon.\n"


def test_a_module_in_the_current_folder_gives_all_its_marked_tools(
    stage: OpenStage, tools: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tools.parent)
    server = stage(NOON)
    assert here(capsys, "ask", *at(server), "--tools", "tools_of_a_test", "?", "--no-stdin").code == 0
    assert [tool["function"]["name"] for tool in server.requests[0].json["tools"]] == ["hour", "remove"]


def test_json_has_every_step(stage: OpenStage, tools: Path) -> None:
    done = asides("ask", *at(stage(HOUR, NOON)), "--json", "--tools", f"{tools}:hour", "--tools", f"{tools}:plain", "?")
    fields = json.loads(done.out)
    assert fields["text"] == "It is noon."
    assert fields["outcome"] == "answered"
    assert [step["thinking"] for step in fields["steps"]] == ["I need the hour.", "Noon, then."]
    assert fields["steps"][0]["tool_calls"][0]["arguments"] == {"place": "Oslo"}
    assert fields["steps"][0]["results"] == [{"call_id": "call_1", "text": "12 o'clock in Oslo", "is_error": False}]


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("no_such_module_at_all:x", "no_such_module_at_all"),
        ("missing.py:x", "missing.py"),
        ("{tools}:nothing", "no tool called nothing"),
        ("json", "marks nothing"),
        ("{broken}", "ZeroDivisionError"),
    ],
)
def test_a_tool_that_cannot_be_found_is_an_error_before_anything_is_sent(
    named: str, message: str, stage: OpenStage, tools: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0", encoding="utf-8")
    server = stage(NOON)
    words = named.format(tools=tools, broken=broken)
    done = here(capsys, "ask", *at(server), "--tools", words, "--no-stdin", "?")
    assert done.code == 2
    assert message in done.err
    assert server.requests == []


def test_a_limit_ends_it_with_a_code_of_its_own(stage: OpenStage, tools: Path) -> None:
    server = stage(HOUR)
    done = asides("ask", *at(server), "--tools", f"{tools}:hour", "--max-turns", "2", "?")
    assert done.code == 7
    assert "2 turns" in done.err
    assert len(server.requests) == 2


def test_without_a_person_nothing_is_approved(stage: OpenStage, tools: Path) -> None:
    call = Say(tool_calls=(ToolCall("call_1", "remove", {"path": "x"}),))
    server = stage(call, Say(text="Then not."))
    done = asides("ask", *at(server), "--tools", f"{tools}:remove", "?")
    assert done.out == "Then not.\n"
    assert "✗ remove" in done.err
    assert "removed x" not in str(server.requests[1].json)


def test_a_person_is_asked_and_may_say_always(stage: OpenStage, tools: Path) -> None:
    calls = [
        Say(tool_calls=(ToolCall(f"call_{place}", "remove", {"path": f"file {place}"}),)) for place in ("a", "b", "c")
    ]
    server = stage(*calls, Say(text="Done."))
    with at_terminal("ask", *at(server), "--tools", f"{tools}:remove", "?") as keyboard:
        keyboard.wait_for('run remove(path="file a")?')
        keyboard.type("n\n")
        keyboard.wait_for('run remove(path="file b")?')
        keyboard.type("always\n")
        assert keyboard.end() == 0
    last = server.requests[3].json["messages"]
    results = [message["content"] for message in last if message["role"] == "tool"]
    assert "not allowed" in results[0]
    assert results[1:] == ["removed file b", "removed file c"]
    assert keyboard.text.count("run remove") == 2


def test_a_chat_with_tools_continues_after_ctrl_c_in_a_tool(stage: OpenStage, tools: Path) -> None:
    server = stage(
        HOUR,
        NOON,
        Say(thinking="A nap.", tool_calls=(ToolCall("call_2", "nap"),)),
        Say(text="Awake."),
    )
    with at_terminal("chat", *at(server), "--tools", f"{tools}:hour", "--tools", f"{tools}:nap") as keyboard:
        keyboard.wait_for("> ")
        keyboard.type("What time is it?\n")
        keyboard.wait_for("← hour: 12 o'clock in Oslo")
        keyboard.wait_for("It is noon.")
        keyboard.wait_for("> ")
        keyboard.type("Take a nap.\n")
        keyboard.wait_for("→ nap()")
        # More than once: a signal that comes just before a thread falls asleep in C wakes nobody.
        keyboard.interrupt_for("(stopped;")
        keyboard.wait_for("> ")
        keyboard.type("Still there?\n")
        keyboard.wait_for("Awake.")
        keyboard.wait_for("> ")
        keyboard.type("\x04")
        assert keyboard.end() == 0
    roles = [message["role"] for message in server.requests[3].json["messages"]]
    assert roles == [*("user", "assistant", "tool", "assistant"), *("user", "assistant", "tool", "user")]
    assert all(received.problem is None for received in server.requests)
    assert "Traceback" not in keyboard.text


def test_ctrl_c_while_a_tool_runs_ends_it_at_once(stage: OpenStage, tools: Path) -> None:
    server = stage(Say(tool_calls=(ToolCall("call_1", "nap"),)))
    with at_terminal("ask", *at(server), "--tools", f"{tools}:nap", "?") as keyboard:
        keyboard.wait_for("→ nap()")
        keyboard.interrupt_for("stopped")
        assert keyboard.end() == 130
    assert "Traceback" not in keyboard.text


CANARY = "rm -rf /everything"


def test_the_question_for_approval_shows_the_whole_call(stage: OpenStage, tools: Path) -> None:
    call = ToolCall("call_1", "hour", {"place": f"{'harmless ' * 60}{CANARY}"})
    server = stage(Say(tool_calls=(call,)), Say(text="Fine."))
    with at_terminal("ask", *at(server), "--tools", str(tools), "--confirm", "?") as keyboard:
        keyboard.wait_for("[y]es")
        assert CANARY in keyboard.text
        keyboard.type("n\n")
        assert keyboard.end() == 0
    assert "not allowed" in server.requests[1].json["messages"][-1]["content"]


def test_a_blank_tool_name_is_a_usage_error(capsys: pytest.CaptureFixture[str], stage: OpenStage) -> None:
    done = here(capsys, "ask", *at(stage()), "--no-stdin", "--tools", "", "?")
    assert (done.code, done.out) == (2, "")
    assert "--tools needs a module or a file" in done.err


def test_a_tool_file_that_exits_is_a_usage_error(
    capsys: pytest.CaptureFixture[str], stage: OpenStage, tmp_path: Path
) -> None:
    path = tmp_path / "tools_that_leave.py"
    path.write_text("import sys\nsys.exit(3)\n", encoding="utf-8")
    done = here(capsys, "ask", *at(stage()), "--no-stdin", "--tools", str(path), "?")
    assert (done.code, done.out) == (2, "")
    assert "loading it ends the program" in done.err
