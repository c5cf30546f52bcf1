"""`main`: commands that do not exist, the version, bugs, signals, and streams that break."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from asides import __version__
from asides.cli.app import main
from asides.conversations.store.sqlite import SqliteStore
from asides_stage.stage import OpenStage, Say
from tests.cli.children import (
    at,
    at_terminal,
    command,
    dialogue,
    environment,
    here,
    load_saved,
    read_some,
    run_process,
    started,
)


def test_a_missing_and_an_unknown_command_are_usage_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("usage: asides COMMAND")
    assert main(["aks"]) == 2
    assert capsys.readouterr().err == (
        "asides: no command is called 'aks'; did you mean ask? To ask a question that begins like this, put it in "
        "quotes or write `asides ask` before it.\n"
    )
    assert main(["config", "--", "x"]) == 2


# --- a bare question --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "question"),
    [
        (("What is this?",), "What is this?"),
        (("what", "is", "this"), "what is this"),
        (("hello",), "hello"),
        (("chat about it",), "chat about it"),
        (("ask me",), "ask me"),
        (("porviders?",), "porviders?"),
        (("--", "chat"), "chat"),
        (("-s", "be brief", "chat, please"), "chat, please"),
    ],
)
def test_a_bare_question_is_asked(
    arguments: tuple[str, ...], question: str, stage: OpenStage, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = stage(Say(text="A."))
    options = [*at(server), "--no-stdin"]
    # Options come before the question, or after it.
    calls = (
        [[*options, *arguments]] if arguments[0].startswith("-") else [[*options, *arguments], [*arguments, *options]]
    )
    for call in calls:
        assert here(capsys, *call) == (0, "A.\n", "")
    assert [dialogue(server, number)[-1] for number in range(len(calls))] == [("user", question)] * len(calls)


def test_a_pipe_alone_is_a_question_too(stage: OpenStage, state: Path) -> None:
    server = stage(Say(text="A."))
    state.mkdir(parents=True)
    (state / "own.toml").write_text(f'[providers.mine]\nbase_url = "{server.url}"\n', "utf-8")
    environ = {"ASIDES_MODEL": "mine:staged", "ASIDES_CONFIG": str(state / "own.toml")}
    assert run_process(stdin="from a pipe", env=environ) == (0, "A.\n", "")
    assert dialogue(server, 0) == [("user", "from a pipe")]


@pytest.mark.parametrize("word", ["porviders", "hcat", "sak", "exlpain", "Hepl", "histroy", "seperate"])
def test_a_misspelt_command_is_no_question(word: str, stage: OpenStage, capsys: pytest.CaptureFixture[str]) -> None:
    server = stage(Say(text="Never."))
    for more in ((), ("and", "words")):
        code, out, err = here(capsys, word, *at(server), *more)
        assert (code, out) == (2, "")
        assert err.startswith(f"asides: no command is called {word!r}; did you mean ")
    assert server.requests == []


def test_a_command_behind_options_is_no_question(stage: OpenStage, capsys: pytest.CaptureFixture[str]) -> None:
    server = stage(Say(text="Never."))
    code, out, err = here(capsys, *at(server), "chat")
    assert (code, out) == (2, "")
    assert err.startswith("asides: chat is a command, and a command comes first")
    assert server.requests == []


def test_at_a_terminal_nothing_is_asked_without_words() -> None:
    with at_terminal() as keyboard:
        keyboard.wait_for("usage: asides COMMAND")
        assert keyboard.end() == 2


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"asides {__version__}\n"


def test_a_bug_shows_a_traceback_only_on_request(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down(*_: object) -> None:
        raise RuntimeError("SECRET QUESTION")

    monkeypatch.setattr("asides.cli.ask.read_call_config", break_down)
    assert main(["ask", "?"]) == 1
    assert capsys.readouterr().err == (
        "asides: unexpected RuntimeError: this is a bug in asides. ASIDES_DEBUG=1 shows where it happened.\n"
    )
    monkeypatch.setenv("ASIDES_DEBUG", "1")
    assert main(["ask", "?"]) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_closed_and_full_streams_are_not_reported_as_a_bug() -> None:
    shell = f"{shlex.quote(sys.executable)} -m asides"
    closed = subprocess.run(
        ["sh", "-c", f"echo x | {shell} separate 1>&- 2>&-"], env=environment(), check=False, timeout=20
    )
    assert closed.returncode == 0
    full = subprocess.run(
        ["sh", "-c", f"echo x | {shell} separate >/dev/full"],
        env=environment(),
        capture_output=True,
        check=False,
        timeout=20,
    )
    assert full.returncode == 1
    assert full.stderr == b"asides: the system says: No space left on device.\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_prints_the_answer_so_far_and_closes_the_connection(
    number: signal.Signals, code: int, stage: OpenStage
) -> None:
    server = stage(Say(text="one two three", piece=4, hang_after=500))
    with started("ask", *at(server), "?") as child:
        seen = read_some(child, b"one")
        child.send_signal(number)
        rest, err = child.communicate(timeout=10)
    assert child.returncode == code
    assert (seen + rest).decode().startswith("one")
    assert (seen + rest).endswith(b"\n")
    assert b"Traceback" not in err
    assert err == (b"asides: stopped; the answer is incomplete.\n" if number == signal.SIGINT else b"")
    assert server.wait_until(lambda: server.closed_early == 1)


def test_a_closed_terminal_keeps_what_arrived_and_leaves_no_draft(
    stage: OpenStage, state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafts = tmp_path / "drafts"
    drafts.mkdir()
    monkeypatch.setenv("TMPDIR", str(drafts))
    server = stage(Say(text="one two three", piece=4, hang_after=500))
    with at_terminal("ask", *at(server), "?") as keyboard:
        keyboard.wait_for("one")
        assert keyboard.hang_up() == 129
    with SqliteStore(state / "conversations.db") as store:
        (name,) = store.names()
    assert load_saved(state, name)[1][1].startswith("one")
    with at_terminal("chat", *at(server), env={"EDITOR": "sh -c 'echo editing; sleep 20' sh"}) as keyboard:
        keyboard.wait_for("> ")
        keyboard.type("/edit a secret\n")
        keyboard.wait_for("editing")
        assert keyboard.hang_up() == 129
    assert list(drafts.glob("*.md")) == []


def test_nohup_is_respected(stage: OpenStage) -> None:
    server = stage(Say(text="one two three", piece=4, pause=0.1))
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", ignoring, *command(["ask", *at(server), "?"])],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=environment(),
    ) as child:
        seen = read_some(child, b"one")
        child.send_signal(signal.SIGHUP)
        rest, _ = child.communicate(timeout=10)
    assert (child.returncode, seen + rest) == (0, b"one two three\n")


def test_a_reader_that_goes_away_ends_it_quietly(stage: OpenStage) -> None:
    server = stage(Say(text="word " * 2000, piece=5, pause=0.001))
    with started("ask", *at(server), "?") as child:
        read_some(child, b"word")
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        err = child.stderr.read()
        assert child.wait(10) == 141
    assert err == b""
    assert server.wait_until(lambda: server.closed_early == 1)


@pytest.mark.parametrize(
    ("loaded", "unloaded"),
    [
        ("asides.cli.app", "asides.values"),
        ("asides.cli.separate", "asides.providers"),
        ("asides.cli.ask", "asides.agents"),
    ],
)
def test_a_command_loads_only_what_it_needs(loaded: str, unloaded: str) -> None:
    code = f"import sys, {loaded}; print({unloaded!r} in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert done.stdout == "False\n"
