"""`asides doctor --clean`: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asides.cli.app import main
from tests.cli.children import piped

BLOCK = {"type": "redacted_thinking", "data": "asd1.0a0b0c0d.AAAA"}
STUCK = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": [BLOCK, {"type": "text", "text": "hello"}]},
]
CLEAN = [STUCK[0], {"role": "assistant", "content": [{"type": "text", "text": "hello"}]}]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(STUCK))
    return path


def test_the_history_is_printed_alone(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--clean", str(saved)]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == CLEAN
    assert "1 envelope(s) removed, 1 of them with its thinking" in err
    assert json.loads(saved.read_text()) == STUCK
    assert main(["doctor", "--clean", str(saved), "-q"]) == 0
    assert capsys.readouterr().err == ""


def test_a_file_is_replaced_and_the_original_is_kept(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--clean", str(saved), "--fix", str(saved)]) == 0
    assert json.loads(saved.read_text()) == CLEAN
    assert json.loads((saved.parent / "saved.json.orig").read_text()) == STUCK
    before = saved.read_bytes()
    assert main(["doctor", "--clean", str(saved), "--fix", str(saved)]) == 0
    assert saved.read_bytes() == before
    assert "no envelope was found" in capsys.readouterr().err


def test_lines_of_a_session_stay_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps({"message": message}) + "\n" for message in STUCK))
    assert main(["doctor", "--clean", str(path), "-q"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line) for line in lines] == [{"message": message} for message in CLEAN]


def test_a_history_without_envelopes_is_copied_byte_for_byte(tmp_path: Path) -> None:
    path, copy = tmp_path / "a.json", tmp_path / "b.json"
    path.write_text('[ {"role" : "user",\n "content": "hi"} ]\n')
    assert main(["doctor", "--clean", str(path), "--fix", str(copy), "-q"]) == 0
    assert copy.read_bytes() == path.read_bytes()


def test_standard_input_is_read(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = piped(capsys, monkeypatch, json.dumps(STUCK), "doctor", "--clean", "-")
    assert code == 0
    assert json.loads(out) == CLEAN


def test_what_cannot_be_read_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--clean", str(tmp_path / "nowhere.json")]) == 2
    (tmp_path / "text.json").write_text("not json")
    assert main(["doctor", "--clean", str(tmp_path / "text.json")]) == 2
    assert "Check" in capsys.readouterr().err


@pytest.mark.parametrize("more", [["--to", "openai:gpt-5"], ["--json"], ["--other-account"]])
def test_what_a_diagnosis_takes_is_refused(saved: Path, more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--clean", str(saved), *more]) == 2
    assert "--clean allows only --fix and -q" in capsys.readouterr().err
    assert main(["doctor", "--clean"]) == 2
    assert "there is no history" in capsys.readouterr().err


def test_the_command_of_before_is_named_and_not_asked_as_a_question(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clean", "saved.json"]) == 2
    assert capsys.readouterr().err == "asides: `asides clean FILE` is now `asides doctor FILE --clean`.\n"
