"""The file of answers: what it keeps, what it repairs, and what it leaves alone."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import asides
from asides.batch_rows import Question, read_row
from asides.cli.answer_rows import AnswerFile
from asides.cli.terminal import Terminal, open_terminal
from asides.flows.reply_fields import is_answered


def question(text: str, index: int = 0, **fields: Any) -> Question:
    return read_row({"prompt": text, **fields}, index, "here")


ANSWERED = {"text": "42", "outcome": "answered"}
FAILED = {"text": "", "outcome": None, "error": {"type": "Overloaded"}}


@pytest.fixture
def terminal() -> Terminal:
    return open_terminal()


def write(path: Path, terminal: Terminal, *rows: tuple[Question, dict[str, Any]]) -> None:
    with AnswerFile(str(path), "-", terminal) as answers:
        for row in rows:
            answers.write(*row)


def known(path: Path, terminal: Terminal, *questions: Question) -> list[bool]:
    with AnswerFile(str(path), "-", terminal) as answers:
        return [answers.has_answer(asked) for asked in questions]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (ANSWERED, True),
        ({"outcome": "tool_calls"}, True),
        ({"outcome": "refused"}, True),
        ({"outcome": "starved"}, False),
        ({"outcome": "unterminated"}, False),
        (FAILED, False),
        ({}, False),
    ],
)
def test_a_row_is_answered_when_it_has_a_final_reply(row: dict[str, Any], expected: bool) -> None:
    assert is_answered(row) is expected


def test_answers_are_found_again_by_id_and_content(tmp_path: Path, terminal: Terminal) -> None:
    path = tmp_path / "a.jsonl"
    write(path, terminal, (question("a", id=1), ANSWERED), (question("b", 1), ANSWERED))
    asked = [question("a", id=1), question("a changed", id=1), question("a", id=2), question("b"), question("b")]
    assert known(path, terminal, *asked) == [True, False, False, True, False]


def test_failed_and_torn_rows_go_and_answered_ones_stay_byte_for_byte(tmp_path: Path, terminal: Terminal) -> None:
    path = tmp_path / "a.jsonl"
    path.touch(0o600)
    rows = [(question(text), ANSWERED if text != "b" else FAILED) for text in "abc"]
    write(path, terminal, *rows)
    kept = path.read_bytes().splitlines(keepends=True)
    for torn in (b'{"ind', b'{"index": 7, "text": "hal', b"{", kept[0].rstrip(b"\n")[:-1]):
        path.write_bytes(b"".join(kept) + torn)
        assert known(path, terminal, question("a"), question("b"), question("c")) == [True, False, True]
        assert path.read_bytes() == kept[0] + kept[2]
    assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.jsonl"]


def test_a_whole_row_without_its_line_end_is_kept(tmp_path: Path, terminal: Terminal) -> None:
    path = tmp_path / "a.jsonl"
    write(path, terminal, (question("a"), ANSWERED))
    whole = path.read_bytes()
    path.write_bytes(whole.rstrip(b"\n"))
    assert known(path, terminal, question("a")) == [True]
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "content", [b"a shopping list", b"a shopping list\n", b'"a"\n', b'{"index": 1}\n', b"[]", b'{"prompt": "a"}']
)
def test_a_file_of_somebody_else_is_left_as_it_is(tmp_path: Path, terminal: Terminal, content: bytes) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(asides.ConfigError, match="line 1 is not an answer that --each wrote"):
        known(path, terminal)
    assert path.read_bytes() == content


def test_the_file_of_the_questions_is_never_written(tmp_path: Path, terminal: Terminal) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text('"a"\n')
    (tmp_path / "link.jsonl").symlink_to(path)
    for name in ("q.jsonl", "link.jsonl"):
        with pytest.raises(asides.ConfigError, match="is the file of the questions"):
            AnswerFile(str(tmp_path / name), str(path), terminal).__enter__()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, terminal: Terminal) -> None:
    with pytest.raises(asides.ConfigError, match="cannot be written: No such file"):
        AnswerFile(str(tmp_path / "no" / "a.jsonl"), "-", terminal).__enter__()


@pytest.mark.skipif(sys.platform == "win32", reason="no flock")
def test_two_processes_do_not_write_one_file(tmp_path: Path, terminal: Terminal) -> None:
    path = str(tmp_path / "a.jsonl")
    with AnswerFile(path, "-", terminal), pytest.raises(asides.ConfigError, match="another process writes"):
        AnswerFile(path, "-", terminal).__enter__()
    with AnswerFile(path, "-", terminal):
        pass


def test_a_pipe_gets_rows_and_is_not_read(tmp_path: Path, terminal: Terminal) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(path, terminal, (question("a"), ANSWERED))
        assert json.loads(os.read(reader, 65536))["text"] == "42"
    finally:
        os.close(reader)


def test_a_row_holds_what_is_no_utf8(tmp_path: Path, terminal: Terminal) -> None:
    path = tmp_path / "a.jsonl"
    write(path, terminal, (question("a"), {**ANSWERED, "text": "\ud83d"}))
    assert json.loads(path.read_bytes())["text"] == "\ud83d"


def test_a_row_is_json_that_every_program_reads(tmp_path: Path, terminal: Terminal) -> None:
    asked = read_row(json.loads('{"prompt": "a", "score": NaN, "most": 1e999}'), 0, "here")
    path = tmp_path / "answers.jsonl"
    write(path, terminal, (asked, ANSWERED))

    def refuse(name: str) -> None:
        raise AssertionError(name)

    row = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    assert row["row"] == {"score": "NaN", "most": "Infinity"}
    assert known(path, terminal, asked) == [True]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
def test_a_full_disk_is_told_with_the_file_and_how_to_go_on(terminal: Terminal) -> None:
    with pytest.raises(OSError, match=r"-o /dev/full cannot be written: No space.*Run the same command"):
        write(Path("/dev/full"), terminal, (question("a"), ANSWERED))


@pytest.mark.parametrize(
    ("changed", "is_known"),
    [
        ({"id": 1, "prompt": "a", "mine": 2}, True),
        ({"id": 1, "question": "a", "mine": 2}, True),
        ({"id": 2, "prompt": "a", "mine": 2}, False),
        ({"id": 1, "prompt": "b", "mine": 2}, False),
        ({"id": 1, "prompt": "a", "mine": 3}, False),
        ({"id": 1, "prompt": "a", "mine": 2, "seed": 1}, False),
        ({"id": 1, "prompt": "a", "mine": 2, "model": "m:n"}, False),
    ],
)
def test_what_makes_another_question_of_a_row(
    tmp_path: Path, terminal: Terminal, changed: dict[str, Any], is_known: bool
) -> None:
    path = tmp_path / "a.jsonl"
    write(path, terminal, (read_row({"id": 1, "prompt": "a", "mine": 2}, 0, "here"), ANSWERED))
    assert known(path, terminal, read_row(changed, 0, "here")) == [is_known]


def test_an_answer_of_the_file_serves_equal_questions(tmp_path: Path, terminal: Terminal) -> None:
    path = tmp_path / "a.jsonl"
    first, second = question("a", id=1), question("a", 1, id=2)
    write(path, terminal, (first, {**ANSWERED, "id": "r1"}), (question("b", 2), FAILED))
    with AnswerFile(str(path), "-", terminal, frozenset({first.fingerprint})) as answers:
        assert (answers.has_answer(first), answers.has_answer(second)) == (True, False)
        fields = answers.find_fields(second)
        assert fields is not None
        assert fields == {**ANSWERED, "response_id": "r1"}
        answers.write(second, fields)
        assert answers.find_fields(question("b")) is None
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(row["index"], row["id"], row["response_id"], row["text"]) for row in rows] == [
        (0, 1, "r1", "42"),
        (1, 2, "r1", "42"),
    ]


def test_the_output_of_a_batch_is_left_to_it(tmp_path: Path, terminal: Terminal) -> None:
    path = tmp_path / "a.jsonl"
    (tmp_path / "a.jsonl.ledger").touch()
    with pytest.raises(asides.ConfigError, match=r"its ledger is beside it.*asides batch resume"):
        AnswerFile(str(path), "-", terminal).__enter__()
    assert not path.exists()
