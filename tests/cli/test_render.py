"""Replies and errors as people see them, at a real terminal (pty)."""

from __future__ import annotations

import os

import pytest

from asides.cli.app import main
from asides.cli.render import describe_call, describe_notice
from asides.cli.terminal import make_visible
from asides.values.notices import Notice
from asides.values.parts import ToolCall
from asides_stage.stage import OpenStage, Say
from tests.cli.children import at, at_terminal, screen_of, show_at_terminal

DIM, PLAIN, ERASE = "\x1b[2m", "\x1b[0m", "\r\x1b[K"


def test_the_reader_of_screens_covers_and_erases() -> None:
    assert screen_of("thinking… 1 s\r\x1b[K\x1b[2mab\x1b[0mc\r\nxyz\rq\n") == ["abc", "qyz", ""]


def test_a_live_line_shows_progress_of_hidden_thinking_and_is_erased_when_the_answer_begins(stage: OpenStage) -> None:
    server = stage(Say(thinking="hush " * 20, text="Forty-two.", piece=5, pause=0.03))
    shown = show_at_terminal("ask", *at(server), "?")
    code = shown.code
    assert code == 0
    before, _, after = shown.text.partition("Forty")
    assert "thinking… 0 s, ~" in before or "thinking… 1 s, ~" in before
    assert " tokens" in before
    assert before.endswith(ERASE)
    assert "thinking" not in after
    assert shown.screen == ["Forty-two.", ""]
    assert "hush" not in shown.text


def test_the_live_line_says_that_it_waits_and_stays_off_stdout(stage: OpenStage) -> None:
    server = stage(Say(text="ok", delay=0.6))
    reader, writer = os.pipe()
    with at_terminal("ask", *at(server), "--no-stream", "?", stdout=writer) as keyboard:
        os.close(writer)
        code = keyboard.end()
    with os.fdopen(reader, "rb") as out:
        assert out.read() == b"ok\n"
    assert code == 0
    assert "waiting… 0 s" in keyboard.text
    assert keyboard.text.endswith(ERASE)
    assert keyboard.screen == [""]


def test_shown_thinking_is_dim_and_a_blank_line_apart(stage: OpenStage) -> None:
    server = stage(Say(thinking="plan A", text="42"))
    shown = show_at_terminal("ask", *at(server), "-t", "?")
    assert shown.code == 0
    assert f"{DIM}plan A{PLAIN}" in shown.text
    assert shown.screen == ["plan A", "", "42", ""]
    assert shown.text.endswith("42\r\n"), "the answer is not dim"


def test_no_color_and_dumb_terminals_get_plain_text(stage: OpenStage) -> None:
    server = stage(Say(thinking="plan", text="42"), Say(thinking="plan", text="42", delay=0.4))
    shown = show_at_terminal("ask", *at(server), "-t", "?", env={"NO_COLOR": "1"})
    assert shown.code == 0
    assert DIM not in shown.text
    assert shown.screen == ["plan", "", "42", ""]
    shown = show_at_terminal("ask", *at(server), "?", env={"TERM": "dumb"})
    assert shown.code == 0
    assert shown.text == "42\r\n"


def test_the_text_of_a_model_cannot_control_the_terminal(stage: OpenStage) -> None:
    server = stage(Say(thinking="a\x1b]0;title\x07b", text="c\x1b[2Jd\re\tf\x9b1m"))
    shown = show_at_terminal("ask", *at(server), "-t", "?", env={"NO_COLOR": "1", "TERM": "dumb"})
    assert shown.code == 0
    assert "\x1b" not in shown.text
    assert "\x9b" not in shown.text
    assert shown.text.replace("\r\n", "\n") == "a␛]0;title␇b\n\nc␛[2Jde\tf\ufffd1m\n"


@pytest.mark.parametrize("code", [*range(0x202A, 0x202F), *range(0x2066, 0x206A)])
def test_the_text_of_a_model_cannot_turn_the_direction_of_a_line(code: int) -> None:
    assert make_visible(f"pay 10{chr(code)}001 now") == "pay 10\ufffd001 now"


@pytest.mark.parametrize("text", ["שלום\u200f!", "\u061cمرحبا", "a\u200db", "👩\u200d🚀", "e\u0301", "a\tb\n"])
def test_marks_that_ordinary_text_needs_stay(text: str) -> None:
    assert make_visible(text) == text


def test_separators_of_lines_are_line_breaks() -> None:
    assert make_visible("a\u2028b\u2029c") == "a\nb\nc"


def test_a_terminal_gets_no_turned_text(stage: OpenStage) -> None:
    server = stage(Say(thinking="a\u202eb", text="c\u2066d\u202ee"))
    shown = show_at_terminal("ask", *at(server), "-t", "?", env={"NO_COLOR": "1", "TERM": "dumb"})
    assert shown.code == 0
    assert shown.text.replace("\r\n", "\n") == "a\ufffdb\n\nc\ufffdd\ufffde\n"


def test_ctrl_c_while_it_thinks_leaves_a_clean_terminal(stage: OpenStage) -> None:
    server = stage(Say(thinking="hush " * 200, text="never", piece=5, pause=0.05))
    with at_terminal("ask", *at(server), "?") as keyboard:
        keyboard.wait_for("thinking…")
        code = keyboard.interrupt_to_end()
    assert code == 130
    assert keyboard.screen[-2:] == ["asides: stopped.", ""]
    assert not any("thinking" in line for line in keyboard.screen)
    assert keyboard.text.count(DIM) <= keyboard.text.count(PLAIN)
    assert server.wait_until(lambda: server.closed_early == 1)


def test_json_is_indented_for_people(stage: OpenStage) -> None:
    shown = show_at_terminal("ask", *at(stage(Say(text="42"))), "--json", "?")
    assert shown.code == 0
    assert shown.screen[:2] == ["{", '  "text": "42",']


def test_advice_about_code_stays_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "-m", "made-up:x", "hi"]) == 2
    err = capsys.readouterr().err
    assert "Provider(name='made-up', base_url=…)" in err
    assert "with --base-url" in err


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (ToolCall("1", "remove", {"path": "a b"}), 'remove(path="a b")'),
        (ToolCall("1", "remove", {"path": "a\n[y]es"}), 'remove(path="a\\n[y]es")'),
        (ToolCall("1", "remove", {"path\n→ hour(": 1}), 'remove("path\\n→ hour("=1)'),
        (ToolCall("1", "remove", {'a="x"), other(b': 1}), 'remove("a=\\"x\\"), other(b"=1)'),
        (ToolCall("1", "remove", {"path": "\u202egnp.exe\x1b[2J"}), 'remove(path="\\u202egnp.exe\\u001b[2J")'),
        (ToolCall("1", "remove", {"p\u200bath": ["\x9b", {"\u2028": None}]}), None),
        (ToolCall("1", "re\nmove\x1b[1A", {}), None),
        (ToolCall("1", "remove", {"path": "\ud83d"}), 'remove(path="\\ud83d")'),
        (ToolCall("1", "my-tool.v2", {"max-age": 1}), "my-tool.v2(max-age=1)"),
        (ToolCall("1", "shell", raw_arguments="rm -rf /\nok"), 'shell("rm -rf /\\nok")'),
    ],
)
def test_a_call_is_one_line_that_nothing_in_it_can_forge(call: ToolCall, shown: str | None) -> None:
    line = describe_call(call, whole=True)
    assert len(line.splitlines()) == 1
    assert line.isprintable()
    assert shown is None or line == shown


def test_a_warning_about_a_change_shows_what_was_asked_and_what_was_sent(
    stage: OpenStage, capsys: pytest.CaptureFixture[str]
) -> None:
    server = stage(Say(text="42"))
    arguments = ["-m", "xai:grok-4.3", "--base-url", server.url, "--api-key", "k", "--no-stdin", "--thinking", "max"]
    assert main(["ask", *arguments, "--on-conflict", "adjust", "?"]) == 0
    assert "(max → high)" in capsys.readouterr().err


def test_a_notice_is_one_line_with_its_change() -> None:
    notice = Notice("effort_mapped", "the nearest effort of a:b\n", "thinking", "max\x1b[2J", "high")
    assert describe_notice(notice) == "effort_mapped: the nearest effort of a:b\\x0a (max\\x1b[2J → high)"
    assert describe_notice(Notice("unknown_field")) == "unknown_field"
