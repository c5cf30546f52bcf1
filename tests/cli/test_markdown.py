"""Rendered Markdown: the same screen for every chunking, nothing lost, nothing touched that has left the screen."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from asides.cli.markdown import (
    _FENCE,  # pyright: ignore[reportPrivateUsage]
    MarkdownWriter,
    PlainWriter,
    open_answer_writer,
)
from asides.cli.terminal import Terminal
from asides_stage.stage import OpenStage, Say
from tests.cli.children import asides, at, at_terminal, command, environment, show_at_terminal

pytest.importorskip("rich")

COLUMNS, ROWS = 40, 14
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"

PAGE = """\
# Title

Some **bold** text that is long enough to need more than one row of the screen, with `code`, a <div> and [a link](https://x.y).
More.

1. one
2. two

   inside two
3. three
a lazy line

Then:
```python
def f(x):

    return "a"
```
Next paragraph.
## Sub
- a
- b
  - c

  ```
  in b
  ```

| a | b |
|---|---|
| 1 | 2 |

> quote

![picture](https://p.q)
"""
SHOWN = """\
Title

Some bold text that is long enough to
need more than one row of the screen,
with code, a <div> and a link
(https://x.y). More.

 1 one
 2 two
   inside two
 3 three a lazy line

Then:

def f(x):

    return "a"

Next paragraph.

Sub

 • a
 • b
    • c
   in b

 a  b
 ────
 1  2

▌ quote

!picture (https://p.q)
"""


class Tty(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class Screen:
    """A terminal of unlimited height that notices when a cursor goes above what a real one still shows."""

    def __init__(self) -> None:
        self.lines: list[list[str]] = [[]]
        self.row = self.column = self.highest = 0

    def feed(self, written: str) -> str:
        for number, kind, char in re.findall(r"\x1b\[([0-9;]*)([A-Za-z])|([\s\S])", written):
            if char == "\n":
                self.row, self.column = self.row + 1, 0
                self.lines += [[] for _ in range(self.row - len(self.lines) + 1)]
                self.highest = max(self.highest, self.row - ROWS + 1)
            elif char == "\r":
                self.column = 0
            elif char:
                assert char >= " ", f"{char!r} controls the terminal"
                line = self.lines[self.row]
                line += " " * (self.column - len(line) + 1)
                line[self.column] = char
                self.column += 1
            elif kind == "A":
                self.row -= int(number)
                assert self.row >= self.highest, "the cursor went where the screen has scrolled away"
            elif kind == "D":
                self.column -= int(number)
            elif kind in "KJ":
                del self.lines[self.row][self.column :]
                if kind == "J":
                    del self.lines[self.row + 1 :]
            else:
                assert kind == "m", f"{kind} is no style"
        return "\n".join("".join(line).rstrip() for line in self.lines)


@pytest.fixture(autouse=True)
def _size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.setenv("LINES", str(ROWS))


def write(text: str, piece: int = 1 << 30) -> str:
    out = Tty()
    terminal = Terminal(out, Tty(), {"TERM": "xterm"})
    writer = open_answer_writer(terminal, render=True)
    assert isinstance(writer, MarkdownWriter)
    for start in range(0, len(text), piece):
        writer.write(text[start : start + piece])
    writer.end()
    terminal.end_answer()
    return out.getvalue()


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 40, 1 << 30])
def test_every_chunking_gives_the_same_page(piece: int) -> None:
    assert Screen().feed(write(PAGE, piece)) == SHOWN


@pytest.mark.parametrize("end", range(0, len(PAGE), 23))
def test_an_answer_may_end_anywhere(end: int) -> None:
    shown = Screen().feed(write(PAGE[:end], 3))
    words = re.findall(r"[a-z]{4,}", PAGE[:end].replace("python", ""))
    assert [word for word in words if word not in shown] == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("".join(f"- item {number} **b**\n" for number in range(60)), [f" • item {number} b" for number in range(60)]),
        (
            "```python\n" + "".join(f"line_{number} = {number}\n" for number in range(60)) + "```\n",
            [f"line_{number} = {number}" for number in range(60)],
        ),
    ],
)
def test_a_block_larger_than_the_screen_is_rendered_in_parts(text: str, shown: list[str]) -> None:
    for piece in (1, 5, 1 << 30):
        assert Screen().feed(write(text + "\nafter **it**\n", piece)).split("\n") == [*shown, "", "after it", ""]


def test_a_paragraph_larger_than_the_screen_stays_as_it_was_written() -> None:
    screen = Screen().feed(write("one **two** three " * 60 + "\n\nlast **one**\n", 4))
    assert screen.count("**two**") == 60
    assert screen.endswith("\n\nlast one\n")


def test_text_without_marks_is_written_once_and_never_repainted() -> None:
    assert write("Plain words.", 3) == "Plain words.\n"
    assert write("Plain words.\n\nAnd more of them.\n", 3) == "Plain words.\n\nAnd more of them.\n"
    long = "several words that need more than one row of a narrow screen to be shown"
    assert "\x1b[J" not in write(long, 3)


def test_wide_characters_are_counted_as_a_terminal_does() -> None:
    text = "**粗体**" + "漢字" * 40 + "\n\nend"
    lines = Screen().feed(write(text, 1)).split("\n")
    assert lines[-2:] == ["end", ""]
    assert "".join(lines[:-3]).replace(" ", "") == "粗体" + "漢字" * 40


@pytest.mark.parametrize(
    "text",
    [
        "a\x1b[2Jb",
        "`\x1b[31m`",
        "```\n\x1b]0;title\x07\n```\n",
        "&#27;[2J &#x9b;2J &#13;x &#8;",
        "[a\x1b[A](http://x/\x1b[A)",
        "| \x1b[A | b |\n|---|---|\n| \x9b2J | \x08 |\n",
        "# \x1b[5A\n- \x7f\n> \x00\n",
        "```\x1b[A\nx\n```\n",
        "a\u2028b\x85c\x0bd\x0ce\rf\n",
    ],
)
def test_a_model_cannot_control_the_terminal(text: str) -> None:
    """The screen takes only styles, and the escapes by which the writer moves within its own block."""
    screen = Screen()
    before = "above\n" * 3
    screen.feed(before)
    shown = screen.feed(write(text, 2))
    assert shown.startswith(before)


def test_a_resized_terminal_keeps_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Tty()
    writer = MarkdownWriter(Terminal(out, Tty(), {"TERM": "xterm"}))
    writer.write("some **bold**")
    monkeypatch.setenv("COLUMNS", "20")
    writer.end()
    assert out.getvalue() == "some **bold**\n"


def test_the_cost_is_linear() -> None:
    def measure(count: int) -> float:
        started = time.process_time()
        write("words **and** more of them\n\n" * count + "no end of words " * 20 * count, 4)
        return time.process_time() - started

    measure(2)
    small, large = min(measure(50) for _ in range(2)), measure(400)
    assert large < small * 8 * 3


@pytest.mark.parametrize(
    ("beginning", "more", "end"),
    [
        ("", "\u0301", ""),
        ("", "\u200b", "\n\n"),
        ("- a\n", "  - b\n", ""),
        ("- a\n", "  b\n", "\n\nc"),
        ("```", " ", "`\n"),
        ("~~~", "~", "`\n"),
        ("```python\n", "\u200b", "\n```\n"),
        ("", " ", "x"),
        ("", "[", "\n\n"),
    ],
)
def test_hostile_text_costs_no_more_than_other_text(beginning: str, more: str, end: str) -> None:
    count = 120_000 // len(more)
    # Each took minutes where the cost was quadratic, which the time limit of a test ends.
    shown = Screen().feed(write(beginning + more * count + end, 64))
    if more.strip("\u200b "):
        assert shown.count(more.strip()[-1]) >= count


@pytest.mark.parametrize(
    "text",
    [
        "- short\n- " + "long words " * 60 + "\n- c **d**\n",
        "- short\n- " + "long words " * 60 + "\n  inside\n- c **d**\n",
        "one **two** three " * 60 + "\n# Next\n\nlast **one**\n",
        "one **two** three " * 60 + "\n```\ncode\n```\nlast **one**\n",
        "|a|b|\n|-|-|\n" + "|1|2|\n" * 40 + "# Next\nlast **one**\n",
        "- a\n\n  ```\n" + "".join(f"- n{number}\n" for number in range(ROWS)) + "  ```\n  b\n- c\n",
    ],
)
def test_what_has_left_the_screen_is_not_written_twice(text: str) -> None:
    for piece in (1, 7, 1 << 30):
        shown = Screen().feed(write(text, piece))
        assert re.findall(r"[a-z0-9]+", shown) == re.findall(r"[a-z0-9]+", text)
    if "**" in text:
        assert "**" not in shown.splitlines()[-1]


def test_a_row_is_wrapped_whatever_a_terminal_thinks_of_the_width_of_a_word() -> None:
    """Modern terminals show a family in two columns, others in six. Going back six would erase words before it."""
    text = "thirty and more columns are full of 👨‍👩‍👧-families"
    written = write(text, 1)
    assert re.findall(r"\x1b\[\d+D", written.partition("\x1b[J")[0]) == []
    assert Screen().feed(written).split() == text.split()


@pytest.mark.parametrize(("environ", "render"), [({"TERM": "dumb"}, True), ({"TERM": "xterm"}, False)])
def test_only_a_terminal_that_can_and_shall_gets_styles(environ: dict[str, str], render: bool) -> None:
    assert isinstance(open_answer_writer(Terminal(Tty(), Tty(), environ), render=render), PlainWriter)
    assert isinstance(open_answer_writer(Terminal(io.StringIO(), Tty(), {}), render=True), PlainWriter)


def test_without_rich_the_answer_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    assert isinstance(open_answer_writer(Terminal(Tty(), Tty(), {"TERM": "xterm"}), render=True), PlainWriter)


def test_a_fault_of_the_renderer_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise RuntimeError

    monkeypatch.setattr("asides.cli.render_blocks.render_block", fail)
    assert Screen().feed(write("a **b**\n\n- c\n", 2)) == "a **b**\n\n- c\n"


# --- as a process -----------------------------------------------------------------------------------------------------


def test_at_a_terminal_the_answer_is_rendered_and_in_a_pipe_it_is_not(stage: OpenStage, state: Path) -> None:
    server = stage(*(Say(thinking="hm", text="It is **bold**.\n\n- a\n", piece=3) for _ in range(4)))
    shown = show_at_terminal("ask", *at(server), "?")
    assert shown.code == 0
    assert f"It is {BOLD}bold{PLAIN}." in shown.text
    for more, env in ((("--plain",), {}), ((), {"ASIDES_RENDER_MARKDOWN": "off"})):
        shown = show_at_terminal("ask", *at(server), "?", *more, env=env)
        assert shown.code == 0
        assert shown.screen == ["It is **bold**.", "", "- a", ""]
    assert asides("ask", *at(server), "?").out == "It is **bold**.\n\n- a\n"


def test_ctrl_c_leaves_what_arrived_on_a_clean_terminal(stage: OpenStage, state: Path) -> None:
    server = stage(Say(text="Done **one**.\n\nHalf **two** and" + " more" * 200, piece=4, hang_after=3000))
    with at_terminal("ask", *at(server), "?") as keyboard:
        keyboard.wait_for("**two** and more")
        keyboard.interrupt_for("stopped", seconds=5.0)
        assert keyboard.end() == 130
    assert f"Half {BOLD}two{PLAIN} and more" in keyboard.text
    assert keyboard.screen[-2:] == ["asides: stopped; the answer is incomplete.", ""]


def test_rich_is_loaded_only_to_render(stage: OpenStage, state: Path) -> None:
    code = "import sys; from asides.cli.app import main; main(); print('rich' in sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code, *command(["ask", *at(stage(Say(text="**x**"))), "?"])[3:]],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env=environment(),
        check=True,
    )
    assert done.stderr.decode().split() == ["False"]
    assert os.linesep.encode() not in done.stdout[:-1]


@pytest.mark.parametrize("line", ["```" + "a" * 20_000 + "`", "```" + " " * 20_000 + "`", "`" * 20_000 + "a`"])
def test_no_line_of_a_model_takes_long_to_read(line: str) -> None:
    from asides.cli.render_blocks import _FENCE as _OPENING  # pyright: ignore[reportPrivateUsage]

    for _ in range(200):
        assert _FENCE.match(line) is None
        assert _OPENING.match(line) is None
    assert _FENCE.match("   ~~~~ python x") is not None
