"""The question from words, files and piped text; the tools of --tools, found by name and approved by the user."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from asides.cli.app import main
from asides.cli.inputs import clean_text, read_json_file
from asides.values.errors import ConfigError
from asides.values.parts import ToolCall
from asides_stage.stage import OpenStage, Say
from tests.cli.children import asides, ask, at, at_terminal, here, only_body, piped, run_process

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)


def test_piped_text_comes_after_the_words(stage: OpenStage) -> None:
    server = stage(Say(text="ok"))
    done = asides("ask", *at(server), "Sum", "up:", stdin="first\nsecond\n")
    assert done == (0, "ok\n", "")
    assert only_body(server)["messages"] == [{"role": "user", "content": "Sum up:\n\nfirst\nsecond"}]


def test_piped_text_can_be_the_whole_question(stage: OpenStage) -> None:
    server = stage(Say(text="ok"))
    assert asides("ask", *at(server), "--no-stream", stdin="Why?\n").out == "ok\n"
    assert only_body(server)["messages"] == [{"role": "user", "content": "Why?"}]
    assert only_body(server).get("stream", False) is False


def test_files_become_parts(stage: OpenStage, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "b.pdf").write_bytes(b"%PDF-1.7\n\xff")
    (tmp_path / "c.txt").write_text("the text\n")
    server = stage(Say(text="ok"))
    files = [word for name in ("a.png", "b.pdf", "c.txt") for word in ("-f", str(tmp_path / name))]
    assert ask(capsys, server, *files, "-f", "https://example.com/d.jpg", "What?")[0] == 0
    parts = only_body(server)["messages"][0]["content"]
    assert [part["type"] for part in parts] == ["image_url", "file", "text", "image_url", "text"]
    assert parts[0]["image_url"]["url"].startswith("data:image/png;base64,")
    assert parts[1]["file"]["filename"] == "b.pdf"
    assert parts[2]["text"] == '<file name="c.txt">\nthe text\n</file>'
    assert parts[3]["image_url"]["url"] == "https://example.com/d.jpg"
    assert parts[4]["text"] == "What?"


def test_a_text_file_and_a_question_are_one_text(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "c.txt").write_text("the text")
    server = stage(Say(text="ok"))
    ask(capsys, server, "-f", str(tmp_path / "c.txt"), "What?")
    assert only_body(server)["messages"][0]["content"] == '<file name="c.txt">\nthe text\n</file>\n\nWhat?'


def test_bytes_that_are_not_text_become_replacement_characters_or_an_error(stage: OpenStage) -> None:
    server = stage(Say(text="ok"))
    done = run_process("ask", *at(server), "caf\udce9")
    assert done.out == "ok\n"
    assert server.requests[0].json["messages"][0]["content"] == "caf\ufffd"
    done = run_process("ask", *at(server), "?", stdin=b"\xff\xfe")
    assert done.code == 2
    assert "not text in UTF-8" in done.err


# --- `--tools` --------------------------------------------------------------------------------------------------------

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
        ("json", "has no function marked"),
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
        # More than once: a signal that comes just before a thread falls asleep in C wakes no thread.
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


def test_the_question_for_approval_cannot_be_forged(stage: OpenStage, tools: Path) -> None:
    call = ToolCall("call_1", "hour", {"place": "x\u202ey\x1b[2K", "z\nrun harmless()? [y]es": 1})
    server = stage(Say(tool_calls=(call,)), Say(text="Fine."))
    with at_terminal("ask", *at(server), "--tools", str(tools), "--confirm", "?") as keyboard:
        keyboard.wait_for("[a]lways")
        keyboard.type("n\n")
        assert keyboard.end() == 0
    assert not any(line.startswith("run harmless") for line in keyboard.screen)
    assert "\u202e" not in keyboard.text
    assert "\x1b[2K" not in keyboard.text


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
    assert "they exit the program" in done.err


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('{"type": "objekt"}', "is not a JSON schema: $.type is 'objekt'"),
        ('{"name": "Ada"}', "is not a JSON schema: $ has no keyword of a JSON schema"),
        ('{"type": "json_schema", "schema": {"type": "int"}}', "is not a JSON schema: $.type is 'int'"),
        ('{"type": "json_schema", "json_schema": {"schema": {"required": 5}}}', "$.required is not a list of names"),
        ("[]", "has to be a JSON object"),
        ('{"items":' * 100_000, "is not valid JSON"),
        ('{"items":' * 900 + "{}" + "}" * 900, "nested too deeply"),
    ],
)
def test_a_schema_that_is_none_is_told_before_anything_is_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], written: str, said: str
) -> None:
    path = tmp_path / "answer.json"
    path.write_text(written)
    assert main(["explain", "-m", "groq:m", "--no-stdin", "--schema", str(path), "?"]) == 2
    assert said in capsys.readouterr().err


def test_a_schema_may_come_in_the_envelope_of_a_response_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "answer.json"
    path.write_text('{"type": "json_schema", "json_schema": {"name": "A", "schema": {"type": "object"}}}')
    assert main(["explain", "-m", "groq:m", "--no-stdin", "--json", "--schema", str(path), "?"]) == 0
    assert json.loads(capsys.readouterr().out)["body"]["response_format"]["json_schema"]["name"] == "A"


def test_what_is_piped_in_can_be_a_file(
    stage: OpenStage, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = stage(Say(text="red"), Say(text="a note"))
    assert piped(capsys, monkeypatch, PNG, "ask", *at(server), "-f", "-", "What is this?")[:2] == (0, "red\n")
    picture, words = server.requests[0].json["messages"][-1]["content"]
    assert picture["image_url"]["url"] == f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    assert words["text"] == "What is this?"
    assert piped(capsys, monkeypatch, "Buy bread.", "ask", *at(server), "-f", "-", "What is this?").code == 0
    assert "Buy bread." in server.requests[1].json["messages"][-1]["content"]


@pytest.mark.parametrize(("data", "files"), [(b"", ["-f", "-"]), (PNG, ["-f", "-", "-f", "-"])])
def test_a_piped_file_that_is_not_there_is_told(
    data: bytes, files: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = piped(capsys, monkeypatch, data, "ask", "-m", "vllm:m", *files, "What is this?")
    assert (code, out) == (2, "")
    assert "-f - attaches piped input, but nothing is piped in." in err


def test_text_and_paths_that_no_system_takes_are_no_fault_of_asides() -> None:
    assert clean_text("a\udcffb\ud83dc😀") == "a\ufffdb\ufffdc😀"
    assert clean_text("a\udcffb") == "a\ufffdb"
    for option in ("--schema", "--mcp"):
        with pytest.raises(ConfigError, match="null character"):
            read_json_file("a\0.json", option)
