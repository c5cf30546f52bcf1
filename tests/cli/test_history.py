"""`asides chat` with a memory: kept only when asked, gone on with by other processes, listed and forgotten."""

from __future__ import annotations

import io
import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from asides.cli.history import state_folder
from asides.conversations.store.sqlite import SqliteStore
from asides.testing.stage import Fail, OpenStage, Say, Stage
from asides.values.errors import ConfigError
from asides.values.messages import ToolCall
from tests.cli.children import MODEL, Ended, asides, at, at_terminal, here

PROMPT = "> "


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "deep" / "state"
    monkeypatch.setenv("ASIDES_STATE", str(folder))
    return folder


def kept(state: Path, name: str) -> list[tuple[str, str]]:
    with SqliteStore(state / "conversations.db") as store:
        found = store.load(name)
    return [] if found is None else [(message.role, message.text) for message in found.messages]


def said(stage: Stage, number: int) -> list[tuple[str, Any]]:
    return [(message["role"], message.get("content")) for message in stage.requests[number].json["messages"]]


def chat(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stage: Stage, lines: str, *more: str
) -> Ended:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines.encode()), "utf-8"))
    return here(capsys, "chat", *at(stage), *more)


def test_another_process_goes_on_with_what_was_said(stage: OpenStage, state: Path) -> None:
    theatre = stage(Say(thinking="the canary sings", text="A."), Say(text="B."), Say(text="C."))
    named = ("--conversation", "my work")
    first = asides("chat", *at(theatre), *named, "-s", "be brief", stdin="a?\n")
    # Neither the model nor the system prompt has to be said again.
    second = asides("chat", "--base-url", theatre.url, "--continue", stdin="b?\n")
    third = asides("chat", "--base-url", theatre.url, *named, "-s", "be long", stdin="c?\n")
    assert (first, second, third) == ((0, "A.\n", ""), (0, "B.\n", ""), (0, "C.\n", ""))
    assert said(theatre, 1) == [("system", "be brief"), ("user", "a?"), ("assistant", "A."), ("user", "b?")]
    assert said(theatre, 2)[0] == ("system", "be long")
    assert len(said(theatre, 2)) == 6
    assert [request.json["model"] for request in theatre.requests] == ["staged"] * 3
    assert b"canary" not in b"".join(path.read_bytes() for path in state.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="has no such bits")
def test_the_folder_is_its_owners_alone(stage: OpenStage, state: Path) -> None:
    asides("chat", *at(stage(Say(text="A."))), "--conversation", "work", stdin="a?\n")
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in state.iterdir()} == {0o600}


def test_nothing_is_kept_that_nobody_asked_to_keep(
    stage: OpenStage, state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert chat(capsys, monkeypatch, stage(Say(text="A.")), "a?\n") == (0, "A.\n", "")
    assert not state.exists()


def test_thinking_is_kept_where_the_settings_say_so(
    stage: OpenStage, state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASIDES_KEEP_THINKING", "yes")
    chat(capsys, monkeypatch, stage(Say(thinking="the canary sings", text="A.")), "a?\n", "--conversation", "work")
    assert b"canary sings" in b"".join(path.read_bytes() for path in state.iterdir())


def test_ctrl_c_in_the_middle_keeps_what_was_shown(stage: OpenStage, state: Path) -> None:
    theatre = stage(Say(text="one two three four", piece=4, hang_after=500), Say(text="Good."))
    with at_terminal("chat", *at(theatre), "--conversation", "work") as keyboard:
        keyboard.wait_for("what is said now is kept there")
        keyboard.wait_for(PROMPT)
        keyboard.type("count\n")
        keyboard.wait_for("\none")
        keyboard.interrupt()
        keyboard.wait_for("what was shown of the answer is kept")
        # On the disk already, whatever happens to the process now.
        question, answer = kept(state, "work")
        keyboard.wait_for(PROMPT)
        keyboard.type("\x04")
        assert keyboard.end() == 0
    assert question == ("user", "count")
    assert "one two three four".startswith(answer[1])
    with at_terminal("chat", "--base-url", theatre.url, "--continue") as keyboard:
        keyboard.wait_for("2 messages in 'work'")
        keyboard.wait_for(PROMPT)
        keyboard.type("go on\n")
        keyboard.wait_for("Good.")
        keyboard.type("/quit\n")
        assert keyboard.end() == 0
    assert said(theatre, 1) == [question, answer, ("user", "go on")]


def test_what_was_said_can_be_kept_later_listed_and_forgotten(
    stage: OpenStage, state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    theatre = stage(Say(text="A."), Say(text="B."), Say(text="C."))
    lines = "/list\na?\n/keep\n/keep my talk\n/keep other\nb?\n/list\n/delete my talk\n/delete nobody\n"
    code, out, err = chat(capsys, monkeypatch, theatre, lines)
    assert (code, out) == (0, "A.\nB.\n")
    told = [line.removeprefix("asides: ") for line in err.splitlines()]
    assert told[0] == "nothing is kept; /keep NAME keeps this conversation."
    assert "write /keep and a name for it." in told
    assert "this conversation is kept already, as 'my talk'." in told
    assert any(line.startswith("my talk  ") and line.endswith(f"4 messages  {MODEL}") for line in told)
    assert any("not of the one that is open" in line for line in told)
    assert "no conversation is called 'nobody'; /list shows them." in told
    assert kept(state, "my talk") == [("user", "a?"), ("assistant", "A."), ("user", "b?"), ("assistant", "B.")]
    _, _, err = chat(capsys, monkeypatch, theatre, "/keep my talk\n/delete my talk\n/list\n")
    assert "there is a conversation 'my talk' already" in err
    assert kept(state, "my talk") == []


def test_a_reset_forgets_what_is_kept_too(
    stage: OpenStage, state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chat(capsys, monkeypatch, stage(Say(text="A.")), "a?\n/reset\nb?\n", "--conversation", "work")
    assert kept(state, "work") == [("user", "b?"), ("assistant", "A.")]


def test_a_failed_question_is_not_kept(
    stage: OpenStage, state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    theatre = stage(Say(text="A."), Fail(status=500, message="down"))
    code, _, err = chat(capsys, monkeypatch, theatre, "a?\nb?\n", "--conversation", "work", "--retries", "0")
    assert code == 4
    assert "down" in err
    assert kept(state, "work") == [("user", "a?"), ("assistant", "A.")]


def test_steps_with_tools_are_kept(stage: OpenStage, state: Path, tmp_path: Path) -> None:
    tools = tmp_path / "my_tools.py"
    tools.write_text(
        'import asides\n\n@asides.tool\ndef add(a: int, b: int) -> int:\n    """Add."""\n    return a + b\n', "utf-8"
    )
    call = ToolCall("call_1", "add", {"a": 1, "b": 2})
    theatre = stage(Say(tool_calls=(call,)), Say(text="Three."), Say(text="Yes."))
    run = ("--conversation", "work", "--tools", f"{tools}:add")
    assert asides("chat", *at(theatre), *run, stdin="1 + 2?\n")[:2] == (0, "Three.\n")
    assert [role for role, _ in kept(state, "work")] == ["user", "assistant", "tool", "assistant"]
    assert asides("chat", *at(theatre), *run, stdin="sure?\n")[:2] == (0, "Yes.\n")
    assert [role for role, _ in said(theatre, 2)] == ["user", "assistant", "tool", "assistant", "user"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--continue",), "no conversation is kept yet"),
        (("--conversation", " "), "not blank"),
        (("--continue", "--conversation", "work"), "not allowed with"),
    ],
)
def test_what_cannot_be_gone_on_with_is_said(
    options: tuple[str, ...],
    told: str,
    stage: OpenStage,
    state: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    theatre = stage(Say(text="A."))
    code, out, err = chat(capsys, monkeypatch, theatre, "a?\n", *options)
    assert (code, out) == (2, "")
    assert told in err
    assert theatre.requests == []


def test_a_folder_that_cannot_be_made_is_named(
    stage: OpenStage, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way", "utf-8")
    monkeypatch.setenv("ASIDES_STATE", str(tmp_path / "file" / "state"))
    code, _, err = chat(capsys, monkeypatch, stage(Say(text="A.")), "a?\n", "--conversation", "work")
    assert code == 2
    assert "set ASIDES_STATE to another one" in err


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"ASIDES_STATE": "/s", "XDG_STATE_HOME": "/x", "HOME": "/h"}, "/s"),
        ({"XDG_STATE_HOME": "/x", "HOME": "/h"}, "/x/asides"),
        ({"HOME": "/h"}, "/h/.local/state/asides"),
        ({"USERPROFILE": "/u"}, "/u/.local/state/asides"),
    ],
)
def test_where_conversations_are_kept(environ: dict[str, str], folder: str) -> None:
    assert state_folder(environ) == Path(folder)
    with pytest.raises(ConfigError, match="ASIDES_STATE"):
        state_folder({})


def test_explain_shows_the_next_question_of_a_kept_conversation_and_writes_nothing(
    stage: OpenStage, state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    theatre = stage(Say(thinking="the canary sings", text="A."))
    assert chat(capsys, monkeypatch, theatre, "a?\n", "--conversation", "work", "-s", "be brief").code == 0
    before = kept(state, "work")
    words = ("explain", "--base-url", theatre.url, "--conversation", "work", "--json", "--no-stdin", "b?")
    told = json.loads(here(capsys, *words).out)
    assert [message["content"] for message in told["body"]["messages"]] == ["be brief", "a?", "A.", "b?"]
    assert [(decision["action"], decision["what"]) for decision in told["decisions"]] == [("drop", "thought")]
    assert kept(state, "work") == before
    assert len(theatre.requests) == 1
    missing = here(capsys, "explain", *at(theatre), "--conversation", "play", "--no-stdin", "b?")
    assert missing.code == 2
    assert "no conversation is called 'play'" in missing.err
