"""What a person types into `asides chat`: pasted paragraphs, the input history, the editor."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from asides.cli.line_input import InputHistory, edit_text
from asides.values.errors import ConfigError
from asides_stage.stage import OpenStage, Say
from tests.cli.children import at, at_terminal, dialogue

PROMPT = "> "
UP = "\x1b[A"


def paste(text: str) -> str:
    """What a terminal sends for a pasted text, if the program has asked for brackets."""
    return f"\x1b[200~{text}\x1b[201~"


@pytest.mark.parametrize("line_break", ["\n", "\r"])
def test_a_pasted_text_is_one_question_that_enter_sends(line_break: str, stage: OpenStage, state: Path) -> None:
    server = stage(Say(text="Read."), Say(text="Again."))
    with at_terminal("chat", *at(server)) as keyboard:
        keyboard.wait_for("\x1b[?2004h")
        keyboard.wait_for(PROMPT)
        keyboard.type(paste(f"line1{line_break}{line_break}line2{line_break}"))
        keyboard.wait_for("line2")
        assert server.requests == []
        keyboard.type("and\r")
        keyboard.wait_for("Read.")
        keyboard.wait_for(PROMPT)
        keyboard.type("plain\r")
        keyboard.wait_for("Again.")
        keyboard.wait_for(PROMPT)
        keyboard.type("\x04")
        assert keyboard.end() == 0
    assert len(server.requests) == 2
    assert dialogue(server, 0) == [("user", "line1\n\nline2\nand")]
    assert dialogue(server, 1)[-1] == ("user", "plain")


def test_a_pasted_text_is_never_a_command(stage: OpenStage, state: Path) -> None:
    server = stage(Say(text="Read."))
    with at_terminal("chat", *at(server)) as keyboard:
        keyboard.wait_for(PROMPT)
        keyboard.type(paste("/quit\nis a command, isn't it?") + "\r")
        keyboard.wait_for("Read.")
        keyboard.wait_for(PROMPT)
        keyboard.type("\x04")
        assert keyboard.end() == 0
    assert dialogue(server, 0) == [("user", "/quit\nis a command, isn't it?")]


def test_where_a_paste_has_no_brackets_lines_that_come_at_once_are_one_question(
    stage: OpenStage, state: Path, tmp_path: Path
) -> None:
    """With stdout in a file, nothing edits the line: the terminal hands over line by line."""
    server = stage(Say(text="Read."))
    with (tmp_path / "answers").open("wb") as out, at_terminal("chat", *at(server), stdout=out.fileno()) as keyboard:
        keyboard.wait_for(PROMPT)
        keyboard.type("line1\nline2\n")
        keyboard.wait_for("… ")
        keyboard.wait_for("… ")
        assert server.requests == []
        # Enter on its own, later than anything pasted.
        assert server.wait_until(lambda: False, 0.4) is False
        keyboard.type("\n")
        keyboard.wait_for(PROMPT)
        keyboard.type("\x04")
        assert keyboard.end() == 0
    assert dialogue(server, 0) == [("user", "line1\nline2")]
    assert len(server.requests) == 1
    assert (tmp_path / "answers").read_text("utf-8") == "Read.\n"


def test_the_arrow_key_recalls_what_was_typed_in_earlier_chats(stage: OpenStage, state: Path) -> None:
    server = stage(Say(text="One."), Say(text="Two."), Say(text="Three."))
    with at_terminal("chat", *at(server)) as keyboard:
        keyboard.wait_for(PROMPT)
        keyboard.type(paste("first\nquestion") + "\r")
        keyboard.wait_for("One.")
        keyboard.wait_for(PROMPT)
        keyboard.type(" a secret\r")
        keyboard.wait_for("Two.")
        keyboard.wait_for(PROMPT)
        keyboard.type("/quit\r")
        assert keyboard.end() == 0
    saved = state / "input-history.jsonl"
    assert [json.loads(line) for line in saved.read_text("utf-8").splitlines()] == ["first\nquestion", "/quit"]
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    with at_terminal("chat", *at(server)) as keyboard:
        keyboard.wait_for(PROMPT)
        keyboard.type(UP + UP + "\r")
        keyboard.wait_for("Three.")
        keyboard.wait_for(PROMPT)
        keyboard.type("\x04")
        assert keyboard.end() == 0
    assert dialogue(server, 2) == [("user", "first\nquestion")]


def test_the_input_history_can_be_switched_off(stage: OpenStage, state: Path) -> None:
    server = stage(Say(text="One."))
    with at_terminal("chat", "--no-keep", *at(server), env={"ASIDES_KEEP_INPUT_HISTORY": "off"}) as keyboard:
        keyboard.wait_for(PROMPT)
        keyboard.type("a?\r")
        keyboard.wait_for("One.")
        keyboard.wait_for(PROMPT)
        keyboard.type("\x04")
        assert keyboard.end() == 0
    assert not state.exists()


def test_the_input_history_stays_small_and_survives_damage(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    history = InputHistory(path, pytest.fail)
    assert history.load() == []
    for number in range(2500):
        history.add(f"question {number}")
    history.add("x" * 20_000)
    with path.open("ab") as file:
        file.write(b'\xff\xfe{"half\n17\n[]\n"\\ud800"\n"nul \\u0000"\n"  "\n')
    entries = history.load()
    assert entries == [f"question {number}" for number in range(1500, 2500)]
    assert len(path.read_bytes().splitlines()) == 1000
    assert history.load() == entries
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_history_that_cannot_be_written_is_reported_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    told: list[str] = []
    history = InputHistory(tmp_path / "file" / "history.jsonl", told.append)
    history.add("a")
    history.add("b")
    assert len(told) == 1
    assert told[0].startswith("(the input history is not saved: ")
    os.mkfifo(tmp_path / "pipe")
    assert InputHistory(tmp_path / "pipe", told.append).load() == []


EDITOR = """\
import os, sys
path = sys.argv[1]
text = open(path, encoding="utf-8").read()
assert os.stat(path).st_mode & 0o077 == 0
open(path, "w", encoding="utf-8").write(text.replace("sky", "sea") + "and more\\n")
"""


def test_edit_sends_what_the_editor_saved(stage: OpenStage, state: Path, tmp_path: Path) -> None:
    (tmp_path / "editor.py").write_text(EDITOR, "utf-8")
    server = stage(Say(text="Blue."), Say(text="Also blue."), Say(text="Third."))
    environ = {"EDITOR": f"{sys.executable} {tmp_path / 'editor.py'}", "VISUAL": ""}
    with at_terminal("chat", *at(server), env=environ) as keyboard:
        keyboard.wait_for(PROMPT)
        keyboard.type("why is the sky blue\r")
        keyboard.wait_for("Blue.")
        keyboard.wait_for(PROMPT)
        keyboard.type("/edit\r")
        keyboard.wait_for("Also blue.")
        keyboard.wait_for(PROMPT)
        # A line that was left with Ctrl-C is not lost.
        keyboard.type("half a sky")
        keyboard.wait_for("half a sky")
        keyboard.interrupt_for("Ctrl-D or /quit leaves")
        keyboard.wait_for(PROMPT)
        keyboard.type("/edit\r")
        keyboard.wait_for("Third.")
        keyboard.wait_for(PROMPT)
        keyboard.type("\x04")
        assert keyboard.end() == 0
    assert dialogue(server, 1)[-1] == ("user", "why is the sea blue\nand more")
    assert dialogue(server, 2)[-1] == ("user", "half a sea\nand more")


def test_an_editor_that_fails_or_saves_nothing_sends_nothing(stage: OpenStage, state: Path) -> None:
    server = stage(Say(text="Never."))
    for editor, message in (
        ("false", "the editor false ended with code 1"),
        ("true", "nothing was written"),
        ("/no/such/editor", "cannot be used: No such file or directory. Set EDITOR"),
    ):
        with at_terminal("chat", *at(server), env={"VISUAL": editor}) as keyboard:
            keyboard.wait_for(PROMPT)
            keyboard.type("/edit\r")
            keyboard.wait_for(message)
            keyboard.wait_for(PROMPT)
            keyboard.type("\x04")
            assert keyboard.end() == 0
    assert server.requests == []


def test_the_text_of_an_editor_is_removed_from_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert edit_text("kept", {"EDITOR": "true"}) == "kept"
    with pytest.raises(ConfigError, match="cannot be used: No closing quotation"):
        edit_text("kept", {"EDITOR": "'true"})
    assert list(tmp_path.iterdir()) == []
