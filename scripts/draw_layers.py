"""Writes the table of packages ("rooms") into docs/developing.md, from the table that tests/test_layers.py checks.

    python scripts/draw_layers.py             write the drawing
    python scripts/draw_layers.py --check     fail when the drawing is not current

The drawing has a row for each room: the first line of its docstring, and the rooms that it imports.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "developing.md"
HOME = ROOT / "src" / "asides"
BEGIN, END = "<!-- layers:begin -->", "<!-- layers:end -->"


def read_arrows() -> Mapping[str, Sequence[str]]:
    """The table ARROWS of tests/test_layers.py, read as data, so that nothing has to be imported."""
    tree = ast.parse((ROOT / "tests" / "test_layers.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "ARROWS":
            found: Mapping[str, Sequence[str]] = ast.literal_eval(ast.unparse(node.value or node))
            return found
    raise SystemExit("tests/test_layers.py has no table ARROWS")


def find_home(room: str) -> Path:
    """The folder that the name of a room starts from: src/asides, or the one with the package that it belongs to."""
    package = room.partition(".")[0]
    sources = ROOT / "packages" / package.replace("_", "-") / "src"
    return sources if sources.is_dir() else HOME


def describe(room: str) -> str:
    """The first line of the room's docstring."""
    path = find_home(room) / Path(*room.split("."))
    module = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    return docstring.split("\n\n")[0].replace("\n", " ").split(". ")[0].rstrip(".")


def draw(arrows: Mapping[str, Sequence[str]]) -> str:
    """The drawing: a row for each room, in the order in which they may import each other."""
    rows = [
        f"| {_path(room)} | {describe(room)} | {', '.join(map(_path, lefts))} |"
        for room, lefts in arrows.items()
        if not room.startswith("__")
    ]
    return "\n".join(("| room | what it is | imports, with what those import |", "|---|---|---|", *rows))


def _path(room: str) -> str:
    return f"`{room.replace('.', '/')}`"


def main(words: Sequence[str]) -> int:
    """Write the drawing, or check it."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    drawn = f"{before}{BEGIN}\n{draw(read_arrows())}\n{END}{after}"
    if "--check" in words:
        if drawn != page:
            print("the drawing in docs/developing.md is not current: python3 scripts/dev.py docs")
        return int(drawn != page)
    PAGE.write_text(drawn, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
