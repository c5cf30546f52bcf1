"""`asides chat` with saved conversations: only on request, continued by other processes, listed and deleted."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from asides.cli.completion import find_conversations
from asides.cli.own_conversations import add_own
from asides.cli.private_files import make_private_folder
from asides.cli.saved_conversations import find_store_url
from asides.conversations.store.postgres_store import PostgresStore
from asides.conversations.store.sqlite import SqliteStore
from asides.settings_files import find_state_folder
from asides.values.errors import ConfigError
from asides.values.messages import user
from asides.values.parts import ToolCall
from asides_stage.stage import Fail, OpenStage, Say
from tests.cli.children import (
    MODEL,
    Ended,
    asides,
    at,
    at_terminal,
    command,
    dialogue,
    environment,
    here,
    load_saved,
    piped,
)
from tests.servers import find_free_port

PROMPT = "> "


def test_another_run_continues_a_saved_conversation(stage: OpenStage, state: Path) -> None:
    server = stage(Say(thinking="the canary sings", text="A."), Say(text="B."), Say(text="C."))
    named = ("--conversation", "my work")
    first = asides("chat", *at(server), *named, "-s", "be brief", stdin="a?\n")
    # Neither the model nor the system prompt has to be given again.
    second = asides("chat", "--base-url", server.url, "--continue", stdin="b?\n")
    third = asides("chat", "--base-url", server.url, *named, "-s", "be long", stdin="c?\n")
    assert (first, second, third) == ((0, "A.\n", ""), (0, "B.\n", ""), (0, "C.\n", ""))
    assert dialogue(server, 1) == [("system", "be brief"), ("user", "a?"), ("assistant", "A."), ("user", "b?")]
    assert dialogue(server, 2)[0] == ("system", "be long")
    assert len(dialogue(server, 2)) == 6
    assert [request.json["model"] for request in server.requests] == ["staged"] * 3
    assert b"canary" not in b"".join(path.read_bytes() for path in state.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="has no such bits")
def test_the_folder_is_its_owners_alone(stage: OpenStage, state: Path) -> None:
    asides("chat", *at(stage(Say(text="A."))), "--conversation", "work", stdin="a?\n")
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in state.iterdir()} == {0o600}


def test_nothing_is_saved_where_nothing_is_to_be_kept(
    stage: OpenStage, state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert piped(capsys, monkeypatch, "a?\n", "chat", "--no-keep", *at(stage(Say(text="A.")))) == (0, "A.\n", "")
    assert not state.exists()


def test_thinking_is_saved_where_the_settings_say_so(
    stage: OpenStage, state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASIDES_KEEP_THINKING", "yes")
    piped(
        capsys,
        monkeypatch,
        "a?\n",
        "chat",
        *at(stage(Say(thinking="the canary sings", text="A."))),
        "--conversation",
        "work",
    )
    assert b"canary sings" in b"".join(path.read_bytes() for path in state.iterdir())


def test_ctrl_c_saves_the_answer_so_far(stage: OpenStage, state: Path) -> None:
    server = stage(Say(text="one two three four", piece=4, hang_after=500), Say(text="Good."))
    with at_terminal("chat", *at(server), "--conversation", "work") as keyboard:
        keyboard.wait_for("new ones are saved there")
        keyboard.wait_for(PROMPT)
        keyboard.type("count\n")
        keyboard.wait_for("one ")
        keyboard.interrupt()
        keyboard.wait_for("the answer so far stays in the conversation")
        # On the disk already, whatever happens to the process now.
        question, answer = load_saved(state, "work")
        keyboard.wait_for(PROMPT)
        keyboard.type("\x04")
        assert keyboard.end() == 0
    assert question == ("user", "count")
    assert "one two three four".startswith(answer[1])
    with at_terminal("chat", "--base-url", server.url, "--continue") as keyboard:
        keyboard.wait_for("2 messages in 'work'")
        keyboard.wait_for(PROMPT)
        keyboard.type("go on\n")
        keyboard.wait_for("Good.")
        keyboard.type("/quit\n")
        assert keyboard.end() == 0
    assert dialogue(server, 1) == [question, answer, ("user", "go on")]


def test_a_conversation_can_be_saved_later_listed_and_deleted(
    stage: OpenStage, state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = stage(Say(text="A."), Say(text="B."), Say(text="C."))
    lines = "/list\na?\n/keep\n/keep my talk\n/keep other\nb?\n/list\n/delete my talk\n/delete nobody\n"
    code, out, err = piped(capsys, monkeypatch, lines, "chat", *at(server))
    assert (code, out) == (0, "A.\nB.\n")
    lines_shown = [line.removeprefix("asides: ") for line in err.splitlines()]
    assert lines_shown[0] == "no conversation is saved; /save NAME saves this one."
    assert "write /save and a name." in lines_shown
    assert "this conversation is already saved as 'my talk'." in lines_shown
    assert any(line.startswith("my talk  ") and line.endswith(f"4 messages  {MODEL}") for line in lines_shown)
    assert any("not of the one that is open" in line for line in lines_shown)
    assert "no conversation is called 'nobody'; /list shows them." in lines_shown
    assert load_saved(state, "my talk") == [("user", "a?"), ("assistant", "A."), ("user", "b?"), ("assistant", "B.")]
    _, _, err = piped(capsys, monkeypatch, "/keep my talk\n/delete my talk\n/list\n", "chat", *at(server))
    assert "there is a conversation 'my talk' in the store already" in err
    assert load_saved(state, "my talk") == []


def test_a_reset_begins_another_conversation_and_the_saved_one_stays(
    stage: OpenStage, state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    piped(capsys, monkeypatch, "a?\n/reset\nb?\n", "chat", *at(stage(Say(text="A."))), "--conversation", "work")
    assert load_saved(state, "work") == [("user", "a?"), ("assistant", "A.")]


def test_a_failed_question_is_not_saved(
    stage: OpenStage, state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = stage(Say(text="A."), Fail(status=500, message="down"))
    code, _, err = piped(
        capsys, monkeypatch, "a?\nb?\n", "chat", *at(server), "--conversation", "work", "--retries", "0"
    )
    assert code == 4
    assert "down" in err
    assert load_saved(state, "work") == [("user", "a?"), ("assistant", "A.")]


def test_steps_with_tools_are_saved(stage: OpenStage, state: Path, tmp_path: Path) -> None:
    tools = tmp_path / "my_tools.py"
    tools.write_text(
        'import asides\n\n@asides.tool\ndef add(a: int, b: int) -> int:\n    """Add."""\n    return a + b\n', "utf-8"
    )
    call = ToolCall("call_1", "add", {"a": 1, "b": 2})
    server = stage(Say(tool_calls=(call,)), Say(text="Three."), Say(text="Yes."))
    run = ("--conversation", "work", "--tools", f"{tools}:add")
    assert asides("chat", *at(server), *run, stdin="1 + 2?\n")[:2] == (0, "Three.\n")
    assert [role for role, _ in load_saved(state, "work")] == ["user", "assistant", "tool", "assistant"]
    assert asides("chat", *at(server), *run, stdin="sure?\n")[:2] == (0, "Yes.\n")
    assert [role for role, _ in dialogue(server, 2)] == ["user", "assistant", "tool", "assistant", "user"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--continue",), "no conversation is saved yet"),
        (("--conversation", " "), "not blank"),
        (("--continue", "--conversation", "work"), "not allowed with"),
    ],
)
def test_a_conversation_that_cannot_be_continued_is_an_error(
    options: tuple[str, ...],
    message: str,
    stage: OpenStage,
    state: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = stage(Say(text="A."))
    code, out, err = piped(capsys, monkeypatch, "a?\n", "chat", *at(server), *options)
    assert (code, out) == (2, "")
    assert message in err
    assert server.requests == []


def test_the_error_names_a_folder_that_cannot_be_created(
    stage: OpenStage, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way", "utf-8")
    monkeypatch.setenv("ASIDES_STATE", str(tmp_path / "file" / "state"))
    code, _, err = piped(capsys, monkeypatch, "a?\n", "chat", *at(stage(Say(text="A."))), "--conversation", "work")
    assert code == 2
    assert "Set ASIDES_STATE to another one" in err


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"ASIDES_STATE": "/s", "XDG_STATE_HOME": "/x", "HOME": "/h"}, "/s"),
        ({"XDG_STATE_HOME": "/x", "HOME": "/h"}, "/x/asides"),
        ({"HOME": "/h"}, "/h/.local/state/asides"),
        ({"USERPROFILE": "/u"}, "/u/.local/state/asides"),
    ],
)
def test_the_folder_of_saved_conversations(environ: dict[str, str], folder: str) -> None:
    assert find_state_folder(environ) == Path(folder)
    with pytest.raises(ConfigError, match="ASIDES_STATE"):
        find_state_folder({})


@pytest.mark.skipif(sys.platform == "win32", reason="arguments are text there")
def test_a_name_that_is_not_text_is_a_usage_error(stage: OpenStage, state: Path) -> None:
    server = stage(Say(text="fine"))
    line = [argument.encode() for argument in command(["chat", *at(server), "--conversation"])]
    done = subprocess.run(
        [*line, b"\xff\xfe"], input=b"?\n", capture_output=True, env=environment(), timeout=20, check=False
    )
    assert (done.returncode, done.stdout, server.requests) == (2, b"", [])
    assert b"half a character" in done.stderr


def test_names_cannot_break_the_list(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stage: OpenStage, state: Path
) -> None:
    state.mkdir(parents=True)
    with SqliteStore(state / "conversations.db") as store:
        for name in ("plain", "two\nlines", "\x1b[31mred"):
            store.append(name, [user("Hello")])
    done = piped(capsys, monkeypatch, "/list\n", "chat", *at(stage()))
    assert [line.split("  ")[0] for line in done.err.splitlines()] == ["'\\x1b[31mred'", "'two\\nlines'", "plain"]


def test_a_chat_whose_conversation_was_deleted_can_be_saved_under_another_name(stage: OpenStage, state: Path) -> None:
    server = stage(Say(text="Well."))
    with at_terminal("chat", *at(server), "--conversation", "old") as keyboard:
        keyboard.wait_for("> ")
        keyboard.type("one\n")
        keyboard.wait_for("Well.")
        keyboard.wait_for("> ")
        keyboard.type("/keep new\n")
        keyboard.wait_for("is already saved as 'old'")
        keyboard.wait_for("> ")
        with SqliteStore(state / "conversations.db") as store:
            assert store.delete("old")
        keyboard.type("two\n")
        keyboard.wait_for("was deleted by another process. Write /keep and a name to continue with it.")
        keyboard.wait_for("> ")
        keyboard.type("/keep new\n")
        keyboard.wait_for("(saved as 'new'")
        keyboard.wait_for("> ")
        keyboard.type("two\n")
        keyboard.wait_for("Well.")
        keyboard.wait_for("> ")
        keyboard.type("/quit\n")
        assert keyboard.end() == 0
    with SqliteStore(state / "conversations.db") as store:
        saved = store.load("new")
    assert saved is not None
    assert [message.text for message in saved.messages] == ["one", "Well.", "two", "Well."]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_every_folder_that_is_made_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_private_folder(tmp_path / "one" / "two" / "three")
        make_private_folder(tmp_path / "one" / "two" / "three")
    finally:
        os.umask(before)
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (tmp_path / "one").rglob("*")} == {0o700}
    assert stat.S_IMODE((tmp_path / "one").stat().st_mode) == 0o700


# --- the database of the settings -------------------------------------------------------------------------------------


@pytest.fixture
def shared(postgres_url: str, state: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresStore]:
    """The store that the settings name."""
    monkeypatch.setenv("ASIDES_STORE", postgres_url)
    with PostgresStore(postgres_url) as store:
        yield store


Run: TypeAlias = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command line in this process, with this on its standard input."""
    return lambda *arguments, stdin="": piped(capsys, monkeypatch, stdin, *arguments)


def test_a_conversation_goes_on_in_the_database_of_the_settings(
    stage: OpenStage, shared: PostgresStore, state: Path, run: Run
) -> None:
    server = stage(Say(text="A."), Say(text="B."), Say(text="C."))
    # Once in a process of its own, which has to end by itself.
    assert asides("ask", *at(server), "--conversation", "work", "a?") == (0, "A.\n", "")
    assert run("chat", "--base-url", server.url, "--continue", stdin="b?\n").out == "B.\n"
    assert run("ask", "--base-url", server.url, "-c", "c?").out == "C.\n"
    assert shared.names() == ("work",)
    assert len(dialogue(server, 2)) == 5
    assert not (state / "conversations.db").exists()
    assert "work" in run("history").out


def test_of_a_shared_store_a_user_continues_and_replaces_what_is_the_users_own(
    stage: OpenStage, shared: PostgresStore, state: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = stage(Say(text="A."), Say(text="B."), Say(text="C."), Say(text="D."))
    run("ask", *at(server), "mine?")
    (mine,) = shared.names()
    with monkeypatch.context() as patch:
        patch.setenv("ASIDES_STATE", str(tmp_path / "another user"))
        run("ask", *at(server), "theirs?")
    assert len(shared.names()) == 2, "what another user asked stays"
    assert run("ask", "--base-url", server.url, "-c", "and mine?").out == "C.\n"
    assert dialogue(server, 2) == [("user", "mine?"), ("assistant", "A."), ("user", "and mine?")]
    run("ask", *at(server), "mine again?")
    assert shared.about(mine) is None, "the next question without a name takes its place"
    assert len(shared.names()) == 2
    monkeypatch.setenv("ASIDES_STATE", str(tmp_path / "a third user"))
    nobody = run("ask", *at(server), "-c", "?")
    assert "no conversation is saved yet" in nobody.err
    assert nobody.code == 2


def test_a_chat_goes_on_with_a_question_of_a_shared_store(stage: OpenStage, shared: PostgresStore, run: Run) -> None:
    server = stage(Say(text="A."), Say(text="B."), Say(text="C."))
    run("ask", *at(server), "a?")
    run("chat", "--base-url", server.url, "-c", stdin="b?\n/keep my work\n")
    assert shared.names() == ("my work",)
    assert run("ask", "--base-url", server.url, "-c", "c?").out == "C.\n"
    assert len(dialogue(server, 2)) == 5


def test_a_database_that_does_not_answer_is_told_and_the_answer_is_not_lost(
    stage: OpenStage, state: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASIDES_STORE", f"postgresql://me:canary@127.0.0.1:{find_free_port()}/mine")
    server = stage(Say(text="A."))
    done = run("ask", *at(server), "a?")
    assert (done.code, done.out) == (0, "A.\n")
    assert "warning: the question is not kept: the database 127.0.0.1" in done.err
    for arguments in (("history",), ("ask", *at(server), "-c", "?"), ("chat", *at(server), "--conversation", "x")):
        done = run(*arguments)
        assert ". " in done.err
        assert "canary" not in done.err
        if "-c" in arguments:
            # Nothing of this user's was ever kept there.
            assert done.code == 2
        else:
            assert "does not answer" in done.err
            assert (done.code, done.out) == (5, "")
    assert len(server.requests) == 1, "nothing is asked that could not be kept"


def test_a_file_of_the_folder_does_not_choose_the_store(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "asides.toml").write_text('store = "postgresql://evil.example/asides"\n', encoding="utf-8")
    assert find_store_url({}) is None
    code, out, err = here(capsys, "history")
    assert (code, out) == (0, "")
    assert "store" in err
    assert "asides config trust" in err


def test_names_are_completed_without_a_server(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASIDES_STORE", f"postgresql://127.0.0.1:{find_free_port()}/mine")
    add_own(state, "my work")
    assert list(find_conversations()) == ["my work"]


def test_after_ctrl_c_in_a_thought_the_next_question_continues_that_one(stage: OpenStage, state: Path) -> None:
    server = stage(Say(text="A."), Say(thinking="one two three four", piece=4, hang_after=500), Say(text="42"))
    assert asides("ask", *at(server), "the first question").out == "A.\n"
    with at_terminal("ask", *at(server), "-t", "what is it?") as keyboard:
        keyboard.wait_for("one ")
        assert keyboard.interrupt_to_end() == 130
    with at_terminal("-c", "--base-url", server.url, "be quick") as keyboard:
        keyboard.wait_for('(continues "what is it?", 1 message)')
        keyboard.wait_for("42")
        assert keyboard.end() == 0
    assert [text for _, text in dialogue(server, 2)] == ["what is it?", "be quick"]


def test_a_question_that_was_stopped_is_asked_again_without_words(stage: OpenStage, state: Path) -> None:
    server = stage(Say(thinking="one two three four", piece=4, hang_after=500), Say(text="42"), Say(text="43"))
    with at_terminal("ask", *at(server), "-t", "what is it?") as keyboard:
        keyboard.wait_for("one ")
        assert keyboard.interrupt_to_end() == 130
    with at_terminal("-c", "--base-url", server.url) as keyboard:
        keyboard.wait_for("42")
        assert keyboard.end() == 0
    assert dialogue(server, 1) == [("user", "what is it?")]
    assert asides("-c", "--base-url", server.url, "and now?").out == "43\n"
    assert dialogue(server, 2) == [("user", "what is it?"), ("assistant", "42"), ("user", "and now?")]
