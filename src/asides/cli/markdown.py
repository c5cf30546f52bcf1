"""Writes the answer: as it is, or on a terminal with its Markdown rendered by `rich`, which is loaded when needed.

While a block (a paragraph, a list, fenced code …) arrives, it is shown as it is. When it is complete, it is replaced by
its rendered form, once. What has left the screen is never touched.
"""

from __future__ import annotations

import re
import shutil
import unicodedata
from importlib.util import find_spec
from typing import NamedTuple, Protocol

from asides.cli.terminal import Terminal, make_visible

# No step gives back what it took: else a long line of a model would take minutes.
_FENCE = re.compile(r" {0,3}(`{3,}+(?=[^`]*+$)|~{3,}+)")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:\s|$)")
_TAB = 4
# Far more than a screen shows. The renderer takes long for more, and an answer must not wait.
_MOST_CHARACTERS = 20_000


def find_last_code(text: str) -> str | None:
    """The code in the last fenced block, also of one that is still open; None without a block."""
    code: list[str] | None = None
    fence = ""
    for line in text.splitlines(keepends=True):
        marks = line.strip()
        if fence and marks.startswith(fence) and not marks.strip(fence[0]):
            fence = ""
        elif fence and code is not None:
            code.append(line)
        elif (found := _FENCE.match(line.rstrip("\n"))) is not None:
            fence, code = found[1], []
    return None if code is None else "".join(code)


class AnswerWriter(Protocol):
    """Writes the pieces of an answer as they arrive."""

    def write(self, text: str) -> None:
        """Write more of the answer."""
        ...

    def end(self) -> None:
        """Nothing more comes before other output does."""
        ...


def open_answer_writer(terminal: Terminal, *, render: bool) -> AnswerWriter:
    """The writer for this terminal. It renders only where that was asked for, a person looks on, and rich is there."""
    if render and terminal.can_render and find_spec("rich") is not None:
        return MarkdownWriter(terminal)
    return PlainWriter(terminal)


class PlainWriter:
    """Writes the answer as it is."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def write(self, text: str) -> None:
        """Write more of the answer."""
        self._terminal.write_answer(text)

    def end(self) -> None:
        """Nothing is held back, so there is nothing to do."""


class MarkdownWriter:
    """Shows the open block as it is, and replaces each finished one by its rendered form."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._lines: list[str] = []
        """The complete lines of the open block."""
        self._open: list[str] = []
        """The pieces of the line that is still open."""
        self._indent: list[str] = []
        """The blanks that began the open line, before a block has begun."""
        self._last_item = 0
        """The place of the last item in the lines of a list; 0 without a second one."""
        self._fence: str | None = None
        """The marks that close the code of the open block."""
        self._joins = False
        """Whether the next block continues the last one, so that no blank line comes between."""
        self._is_first = True
        self._screen = _Screen()

    def write(self, text: str) -> None:
        """Write more of the answer. A line that ends may end its block."""
        for piece in make_visible(text).splitlines(keepends=True) if "\n" in text else (make_visible(text),):
            ends = piece.endswith("\n")
            words = piece.removesuffix("\n")
            if self._lines or self._open or words.strip():
                # Blanks before a block are shown with it.
                self._open.append("".join((*self._indent, words)))
                self._show(self._open[-1])
                self._indent = []
            else:
                self._indent.append(words)
            if ends:
                line = "".join(self._open)
                self._open, self._indent = [], []
                self._take_line(line)

    def end(self) -> None:
        """Finish the open block, and reset."""
        if self._open:
            self._lines.append("".join(self._open))
        self._open, self._indent = [], []
        self._finish_block()
        self._is_first, self._joins = True, False

    # --- blocks -------------------------------------------------------------------------------------------------------

    def _take_line(self, line: str) -> None:
        """Add a complete line to the open block, and finish the block if the line ends it."""
        if not self._lines and not line.strip():
            return
        if not line.strip() and self._fence is None and not self._is_list:
            self._finish_block()
            return
        if self._begins_block(line):
            self._finish_block(line)
        if self._fence is None and _ITEM.match(line):
            self._last_item = len(self._lines)
        self._lines.append(line)
        self._show("\n")
        if self._fence is not None:
            if line.strip().startswith(self._fence) and not line.strip().strip(self._fence[0]) and len(self._lines) > 1:
                self._fence = None
                if not self._is_list:
                    self._finish_block()
            elif not self._is_list:
                self._make_room()
            return
        found = _FENCE.match(line.strip() if self._is_list else line)
        if found is not None:
            self._fence = found[1]
        elif _HEADING.match(line) and len(self._lines) == 1:
            self._finish_block()
        else:
            self._make_room()

    @property
    def _is_list(self) -> bool:
        return bool(self._lines) and _ITEM.match(self._lines[0].lstrip(" ")) is not None

    def _begins_block(self, line: str) -> bool:
        """Whether this line begins another block, though no blank line came before it."""
        if not self._lines or self._fence is not None or not line.strip():
            return False
        if self._is_list:
            # A list ends at a line that is neither an item nor indented, behind a blank line.
            is_inside = line.startswith((" ", "\t")) or _ITEM.match(line) is not None
            return not is_inside and (not self._lines[-1].strip() or _starts_alone(line))
        return _starts_alone(line)

    def _make_room(self) -> None:
        """Commit a part of a block that would leave the screen. What cannot be divided stays as it is."""
        if self._screen.has_room:
            return
        if self._fence is not None and not self._is_list:
            opening, fence = self._lines[0], self._fence
            self._finish_block()
            self._lines, self._fence, self._joins = [opening], fence, True
            return
        if self._is_list and self._fence is None and self._last_item:
            rest = self._lines[self._last_item :]
            self._lines = self._lines[: self._last_item]
            self._finish_block("".join(f"{line}\n" for line in rest), joins=True)
            self._lines = rest

    def _finish_block(self, rest: str = "", *, joins: bool = False) -> None:
        """Replace the open block by its rendered form. `rest` follows it on the screen, and begins the next
        block, which continues this one if it `joins`.
        """
        lines, self._lines = self._lines, []
        fence, self._fence, self._last_item = self._fence, None, 0
        while lines and not lines[-1].strip():
            lines.pop()
        screen, self._screen = self._screen, _Screen()
        if not lines:
            return
        gap = "" if self._is_first or self._joins else "\n"
        self._is_first, self._joins = False, joins
        # An open fence is closed, so that a part of a code block is one.
        text = "\n".join([*lines, fence] if fence is not None else lines)
        rendered = _render(text, screen.size.columns) if screen.can_erase else None
        if rendered is None and rest:
            # It has left the screen in part, or cannot be rendered: it stays, and so does the rest.
            self._screen = screen.begin_anew(rest)
        elif rendered is None or (not rest and screen.shown.rstrip("\n") == f"{gap}{rendered}".rstrip("\n")):
            # Unchanged, or not repaintable: leave it.
            self._terminal.write_rendered("" if screen.column == 0 else "\n")
            self._joins = screen.shown.endswith("\n\n")
        else:
            self._terminal.write_rendered(f"{screen.erase()}{gap}{rendered}")
            self._show(rest)

    def _show(self, text: str) -> None:
        if not text:
            return
        if self._screen.is_empty:
            self._screen.gap = not (self._is_first or self._joins)
        if written := self._screen.add(text):
            self._terminal.write_rendered(written)


def _starts_alone(line: str) -> bool:
    return _FENCE.match(line) is not None or _HEADING.match(line) is not None


def _render(text: str, columns: int) -> str | None:
    from asides.cli.render_blocks import render_block

    try:
        return render_block(text, max(columns - 1, 10))
    except Exception:  # noqa: BLE001 - a fault of the renderer must not lose the answer
        return None


# --- what is on the screen --------------------------------------------------------------------------------------------


class _Size(NamedTuple):
    columns: int
    rows: int


def _measure() -> _Size:
    size = shutil.get_terminal_size()
    return _Size(max(size.columns, 10), max(size.lines, 5))


class _Screen:
    """The open block on the screen: wrapped here, so that the number of its rows is known."""

    def __init__(self) -> None:
        self.size = _measure()
        self.column = 0
        self.gap = False
        """Whether a blank line has to come before it."""
        self._rows: list[str] = []
        """The rows that are full, without blanks at their ends."""
        self._row: list[str] = []
        self._word_start = 0
        """Where the word at the end of the row begins."""
        self._word_width = 0
        self._characters = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing was shown yet."""
        return not self._rows and not self._row

    @property
    def shown(self) -> str:
        """The text on the screen."""
        return "\n".join([*self._rows, "".join(self._row).rstrip(" ")])

    @property
    def has_room(self) -> bool:
        """Whether the next lines stay on the screen."""
        return len(self._rows) < self.size.rows - 4

    @property
    def can_erase(self) -> bool:
        """Whether all of it is still on the screen, in the rows that were counted, and not too long to be rendered.

        Characters without a width fill no screen, and there may be any number of them.
        """
        return len(self._rows) < self.size.rows - 1 and self._characters <= _MOST_CHARACTERS and _measure() == self.size

    def erase(self) -> str:
        """The escapes that erase it."""
        return f"\r\x1b[{len(self._rows)}A\x1b[J" if self._rows else "\r\x1b[K"

    def begin_anew(self, text: str) -> _Screen:
        """A new screen with this text, which is at the end of this one and began a row."""
        screen = _Screen()
        screen.size = self.size
        screen.add(text)
        return screen

    def add(self, text: str) -> str:
        """What to write to append this text."""
        written: list[str] = []
        if self.gap:
            self.gap = False
            written.append(self._end_row())
        self._characters += len(text)
        for char in text:
            if char == "\n":
                written.append(self._end_row())
                continue
            width = _TAB if char == "\t" else count_columns(char)
            if self.column + width >= self.size.columns:
                written.append(self._wrap(char))
            shown = " " * _TAB if char == "\t" else char
            self._row.append(shown)
            if char.isspace():
                self._word_start, self._word_width = len(self._row), 0
            else:
                self._word_width += width
            self.column += width
            written.append(shown)
        return "".join(written)

    def _wrap(self, char: str) -> str:
        """Begin a row. The word at the end of the last one moves to it, unless it is all of it."""
        row, word, width = self._row[: self._word_start], self._row[self._word_start :], self._word_width
        if char.isspace() or not 0 < width < self.column:
            return self._end_row()
        self._row = row
        self._end_row()
        self._row, self.column, self._word_width = word, width, width
        moved = "".join(word)
        if moved.isascii():
            return f"\x1b[{width}D\x1b[K\n{moved}"
        # Terminals differ about the width of other characters: not back over the word, but the row once more.
        return f"\r{''.join(row)}\x1b[K\n{moved}"

    def _end_row(self) -> str:
        self._rows.append("".join(self._row).rstrip(" "))
        self._row, self.column = [], 0
        self._word_start = self._word_width = 0
        return "\n"


def count_columns(char: str) -> int:
    """The columns that a character takes on a terminal."""
    if char < "\u0300":
        return 1
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
