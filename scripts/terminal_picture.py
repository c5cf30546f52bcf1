"""Draws the terminals of docs/*.svg: runs the command line at a real terminal, with the embedded model.

    python scripts/terminal_picture.py            write the pictures
    python scripts/terminal_picture.py --check    fail when one is not current

`dev.py docs` runs it, inside its environment. Needs a Unix system.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = 106


class Picture(NamedTuple):
    """A picture of one command."""

    name: str
    words: tuple[str, ...]
    about: str
    """What a reader who does not see it is told."""
    exit_code: int = 0
    rows: tuple[str, ...] = ()
    """The lines of answers.jsonl in the folder in which the command runs."""

    @property
    def path(self) -> Path:
        """The file of the picture."""
        return ROOT / "docs" / self.name


PICTURES = (
    Picture(
        "terminal.svg",
        ("ask", "-m", "local:tiny", "-t", "--usage", "What is 23 * 47?"),
        "The thinking is dim, the answer is plain.",
    ),
    Picture(
        "data-at-rest.svg",
        ("separate", "answers.jsonl", "--column", "response", "-o", "separated.jsonl"),
        "A table counts the rows by what was found in them, and names the file of the undecided ones.",
        9,
        (
            '{"id": 1, "response": "<think>6 times 7</think>42"}',
            '{"id": 2, "response": "Paris"}',
            '{"id": 3, "response": "<think>They ask for the ca"}',
            '{"id": 4, "response": "Spring first.</think>Lisbon"}',
            '{"id": 5, "resp',
        ),
    ),
)

_PIECE = re.compile(r"\x1b\[(\d*)m|\x1b\[K|([^\x1b]+)")
_DIM = "2"
_WIDTH, _HEIGHT, _MARGIN, _BAR = 8.4, 19, 18, 30
_COLOUR = re.compile(r"--(\w+): (#[0-9a-f]{6});")


def read_colours() -> dict[str, str]:
    """The dark colours of the site and the gateway's page, by name."""
    sheet = (ROOT / "docs" / "site.css").read_text(encoding="utf-8")
    return dict(_COLOUR.findall(sheet.partition('[data-md-color-scheme="slate"] {')[2].partition("}")[0]))


_COLOURS = read_colours()
_STYLE = (
    "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    f"fill:{_COLOURS['ink']}}}.dim{{fill:{_COLOURS['aside']}}}.typed{{fill:{_COLOURS['accent']};font-weight:bold}}"
)

Line = list[tuple[str, str]]
"""Pieces of text, each with its class."""


def record(picture: Picture) -> str:
    """Run the command and return what it writes to a terminal, both streams in order."""
    with TemporaryDirectory() as folder:
        if picture.rows:
            Path(folder, "answers.jsonl").write_text("\n".join(picture.rows), encoding="utf-8")
        return _run(picture, folder)


def _run(picture: Picture, folder: str) -> str:
    master, slave = pty.openpty()
    inherited = ("PATH", "HOME", "LANG", "PYTHONPATH", "TMPDIR")
    environment = {name: os.environ[name] for name in inherited if name in os.environ}
    environment |= {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    with subprocess.Popen(
        [sys.executable, "-m", "asides", *picture.words],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
        cwd=folder,
    ) as child:
        os.close(slave)
        written = b"".join(_read(master))
    os.close(master)
    if child.returncode != picture.exit_code:
        raise SystemExit(f"the command ended with {child.returncode}: {written.decode()}")
    return written.decode().replace("\r\n", "\n")


def _read(descriptor: int) -> Iterator[bytes]:
    try:
        while data := os.read(descriptor, 65536):
            yield data
    except OSError:
        return  # Linux raises this when the last writer has closed the terminal.


def read_screen(written: str) -> list[Line]:
    """The lines of the screen, without text that was overwritten."""
    shown: list[Line] = [[]]
    style = ""
    for code, text in _PIECE.findall(written):
        if not text:
            style = "dim" if code == _DIM else ""
            continue
        for place, piece in enumerate(text.split("\n")):
            if place:
                shown.append([])
            if "\r" in piece:
                shown[-1] = []
                piece = piece.rpartition("\r")[2]
            if piece:
                shown[-1].append((piece, style))
    while shown and not shown[-1]:
        shown.pop()
    return shown


def draw(picture: Picture, shown: list[Line]) -> str:
    """The screen as SVG."""
    typed = " ".join(f'"{word}"' if " " in word else word for word in picture.words)
    screen: list[Line] = [[("$ ", "dim"), (f"asides {typed}", "typed")], *shown]
    width = _MARGIN * 2 + _WIDTH * COLUMNS
    height = _BAR + _MARGIN + _HEIGHT * len(screen)
    rows = [
        f'<text x="{_MARGIN}" y="{_BAR + _HEIGHT * place + 16}" xml:space="preserve">{_draw_line(line)}</text>'
        for place, line in enumerate(screen)
        if line
    ]
    paper, line_colour = _COLOURS["paper"], _COLOURS["line"]
    lights = [f'<circle cx="{_MARGIN + 6 + 18 * place}" cy="16" r="5" fill="{line_colour}"/>' for place in range(3)]
    label = escape(f"A terminal: asides {typed}. {picture.about}", quote=True)
    box = f"0 0 {width:.0f} {height}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" role="img" aria-label="{label}">',
            f"<style>{_STYLE}</style>",
            f'<rect width="{width:.0f}" height="{height}" rx="8" fill="{paper}" stroke="{line_colour}"/>',
            *lights,
            *rows,
            "</svg>\n",
        ]
    )


def _draw_line(line: Line) -> str:
    merged: Line = []
    for text, style in line:
        if merged and merged[-1][1] == style:
            merged[-1] = (merged[-1][0] + text, style)
        else:
            merged.append((text, style))
    return "".join(f'<tspan class="{style or "plain"}">{escape(text, quote=False)}</tspan>' for text, style in merged)


def _hide_seconds(picture: str) -> str:
    return re.sub(r" · \d+\.\d s thinking", "", picture)


def main(words: list[str]) -> int:
    """Write or check; 0 when all pictures are current."""
    old: list[Path] = []
    for picture in PICTURES:
        drawn, path = draw(picture, read_screen(record(picture))), picture.path
        if words != ["--check"]:
            path.write_text(drawn, encoding="utf-8")
        # How long the model thinks depends on the machine, and a very short time is not shown.
        elif not path.exists() or _hide_seconds(path.read_text(encoding="utf-8")) != _hide_seconds(drawn):
            old.append(path)
    for path in old:
        print(f"{path.relative_to(ROOT)} is not current; run python3 scripts/dev.py docs")
    return int(bool(old))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
