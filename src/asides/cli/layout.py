"""Lines and tables that fit the terminal: text is padded, wrapped or shortened.

Tables that go into a pipe are neither wrapped nor shortened.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence

from asides.cli.markdown import count_columns
from asides.cli.render import format_columns, indent_lines
from asides.cli.terminal import Terminal

_GAP = 2
_NARROWEST = 6


def find_width(terminal: Terminal) -> int | None:
    """The columns of the terminal; None if stdout is not a terminal: lines may have any length."""
    return max(shutil.get_terminal_size().columns, 20) if terminal.out_is_terminal else None


def wrap_columns(table: Sequence[Sequence[str]], width: int | None, *, indent: int = 0) -> list[str]:
    """Rows of cells as lines of at most this width: cells that are too wide continue on the next line."""
    if width is None or not table:
        lines = format_columns(table)
        return indent_lines(lines) if indent else lines
    widths = _share_width(table, width - indent)
    lines = []
    for row in table:
        cells = [_wrap(cell, limit) for cell, limit in zip(row, widths, strict=True)]
        for number in range(max(map(len, cells))):
            parts = [
                (cell[number] if number < len(cell) else "").ljust(limit)
                for cell, limit in zip(cells, widths, strict=True)
            ]
            lines.append((" " * indent + (" " * _GAP).join(parts)).rstrip())
    return lines


def measure(text: str) -> int:
    """The columns that a text takes on a terminal."""
    return len(text) if text.isascii() else sum(map(count_columns, text))


def pad(text: str, width: int) -> str:
    """The text with blanks behind it, up to this width."""
    return text + " " * (width - measure(text))


def shorten(text: str, width: int) -> str:
    """The text on one line of at most this width; an ellipsis replaces its end."""
    if measure(text) <= width:
        return text
    used = 0
    for end, char in enumerate(text):
        used += count_columns(char)
        if used > width - 1:
            return f"{text[:end]}…"
    return text


def wrap_field(name: str, value: str, width: int | None, column: int) -> list[str]:
    """A name and its value from this column on; the value continues below itself."""
    if width is None:
        return [f"{name:<{column}}{value}".rstrip()]
    lines = _wrap(value, max(width - column, _NARROWEST))
    return [f"{name:<{column}}{lines[0]}".rstrip(), *(f"{'':<{column}}{line}" for line in lines[1:])]


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, 1), break_on_hyphens=False) or [""]


def _share_width(table: Sequence[Sequence[str]], width: int) -> list[int]:
    """The width of each column. The widest ones give way, down to their longest word where that is possible."""
    widths = [max(len(row[place]) for row in table) for place in range(len(table[0]))]
    words = [
        max((len(word) for row in table for word in row[place].split()), default=0) for place in range(len(widths))
    ]
    available = width - _GAP * (len(widths) - 1)
    for floors in (words, [_NARROWEST] * len(widths)):
        while sum(widths) > available:
            places = [place for place in range(len(widths)) if widths[place] > floors[place]]
            if not places:
                break
            widest = max(places, key=lambda place: widths[place])
            widths[widest] -= 1
    return widths
