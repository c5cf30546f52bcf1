"""`--tools`: functions found by name, their calls shown, approved by whoever sits at the terminal, and Ctrl-C."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asides.testing.stage import OpenStage, Say
from asides.values.messages import ToolCall
from tests.cli.children import asides, at, at_terminal, here

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
    theatre = stage(HOUR, NOON)
    done = asides("ask", *at(theatre), "-t", "--tools", f"{tools}:hour", "What time is it?")
    assert (done.code, done.out) == (0, "It is noon.\n")
    lines = done.err.splitlines()
    assert lines[:2] == ["I need the hour.", '→ hour(place="Oslo")']
    assert lines[2].startswith("← hour: 12 o'clock in Oslo (")
    assert "Noon, then." in lines
    assert theatre.requests[1].json["messages"][-1]["content"] == "12 o'clock in Oslo"


def test_words_before_a_call_are_not_the_answer_for_a_program(stage: OpenStage, tools: Path) -> None:
    first = Say(text="Let me look.", tool_calls=HOUR.tool_calls)
    done = asides("ask", *at(stage(first, NOON)), "--tools", f"{tools}:hour", "?")
    assert done.out == "It is noon.\n"


def test_a_module_of_the_folder_and_all_that_it_marks(
    stage: OpenStage, tools: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tools.parent)
    theatre = stage(NOON)
    assert here(capsys, "ask", *at(theatre), "--tools", "tools_of_a_test", "?", "--no-stdin").code == 0
    assert [tool["function"]["name"] for tool in theatre.requests[0].json["tools"]] == ["hour", "remove"]


def test_json_has_every_step(stage: OpenStage, tools: Path) -> None:
    done = asides("ask", *at(stage(HOUR, NOON)), "--json", "--tools", f"{tools}:hour", "--tools", f"{tools}:plain", "?")
    told = json.loads(done.out)
    assert told["text"] == "It is noon."
    assert told["outcome"] == "answered"
    assert [step["thinking"] for step in told["steps"]] == ["I need the hour.", "Noon, then."]
    assert told["steps"][0]["tool_calls"][0]["arguments"] == {"place": "Oslo"}
    assert told["steps"][0]["results"] == [{"call_id": "call_1", "text": "12 o'clock in Oslo", "is_error": False}]


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("no_such_module_at_all:x", "no_such_module_at_all"),
        ("missing.py:x", "missing.py"),
        ("{tools}:nothing", "no tool called nothing"),
        ("json", "marks nothing"),
        ("{broken}", "ZeroDivisionError"),
    ],
)
def test_what_cannot_be_found_is_said_before_anything_is_sent(
    named: str, told: str, stage: OpenStage, tools: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0", encoding="utf-8")
    theatre = stage(NOON)
    words = named.format(tools=tools, broken=broken)
    done = here(capsys, "ask", *at(theatre), "--tools", words, "--no-stdin", "?")
    assert done.code == 2
    assert told in done.err
    assert theatre.requests == []


def test_a_limit_ends_it_with_a_code_of_its_own(stage: OpenStage, tools: Path) -> None:
    theatre = stage(HOUR)
    done = asides("ask", *at(theatre), "--tools", f"{tools}:hour", "--max-turns", "2", "?")
    assert done.code == 7
    assert "2 turns" in done.err
    assert len(theatre.requests) == 2


def test_without_a_person_nothing_is_approved(stage: OpenStage, tools: Path) -> None:
    call = Say(tool_calls=(ToolCall("call_1", "remove", {"path": "x"}),))
    theatre = stage(call, Say(text="Then not."))
    done = asides("ask", *at(theatre), "--tools", f"{tools}:remove", "?")
    assert done.out == "Then not.\n"
    assert "✗ remove" in done.err
    assert "removed x" not in str(theatre.requests[1].json)


def test_a_person_is_asked_and_may_say_always(stage: OpenStage, tools: Path) -> None:
    calls = [
        Say(tool_calls=(ToolCall(f"call_{place}", "remove", {"path": f"file {place}"}),)) for place in ("a", "b", "c")
    ]
    theatre = stage(*calls, Say(text="Done."))
    with at_terminal("ask", *at(theatre), "--tools", f"{tools}:remove", "?") as keyboard:
        keyboard.wait_for('run remove(path="file a")?')
        keyboard.type("n\n")
        keyboard.wait_for('run remove(path="file b")?')
        keyboard.type("always\n")
        assert keyboard.end() == 0
    last = theatre.requests[3].json["messages"]
    results = [message["content"] for message in last if message["role"] == "tool"]
    assert "not allowed" in results[0]
    assert results[1:] == ["removed file b", "removed file c"]
    assert keyboard.text.count("run remove") == 2


def test_a_chat_with_tools_goes_on_after_ctrl_c_in_a_tool(stage: OpenStage, tools: Path) -> None:
    theatre = stage(
        HOUR,
        NOON,
        Say(thinking="A nap.", tool_calls=(ToolCall("call_2", "nap"),)),
        Say(text="Awake."),
    )
    with at_terminal("chat", *at(theatre), "--tools", f"{tools}:hour", "--tools", f"{tools}:nap") as keyboard:
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
    said = [message["role"] for message in theatre.requests[3].json["messages"]]
    assert said == [*("user", "assistant", "tool", "assistant"), *("user", "assistant", "tool", "user")]
    assert all(received.problem is None for received in theatre.requests)
    assert "Traceback" not in keyboard.text


def test_ctrl_c_while_a_tool_is_at_work_ends_it_at_once(stage: OpenStage, tools: Path) -> None:
    theatre = stage(Say(tool_calls=(ToolCall("call_1", "nap"),)))
    with at_terminal("ask", *at(theatre), "--tools", f"{tools}:nap", "?") as keyboard:
        keyboard.wait_for("→ nap()")
        keyboard.interrupt_for("stopped")
        assert keyboard.end() == 130
    assert "Traceback" not in keyboard.text
