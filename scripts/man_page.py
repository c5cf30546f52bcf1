"""Writes man/asides.1, the manual page, from the same declarations as `asides --help`: `python scripts/man_page.py`."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "man" / "asides.1"


def main() -> int:
    """Write the page; return 0."""
    sys.path.insert(0, str(ROOT / "src"))
    from asides.cli.manual import format_man_page

    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(format_man_page(), encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
