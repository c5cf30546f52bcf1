"""The question from words, files and piped text."""

from __future__ import annotations

from pathlib import Path

import pytest

from asides.testing.stage import OpenStage, Say
from tests.cli.children import asides, ask, at, only_body

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
    done = asides("ask", *at(server), "caf\udce9")
    assert done.out == "ok\n"
    assert server.requests[0].json["messages"][0]["content"] == "caf\ufffd"
    done = asides("ask", *at(server), "?", stdin=b"\xff\xfe")
    assert done.code == 2
    assert "not text in UTF-8" in done.err
