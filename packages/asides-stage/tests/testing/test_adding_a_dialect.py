"""The table of files in docs/adding-a-dialect.md is true: a dialect of asides has each of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from asides.dialects import DIALECTS

ROOT = Path(__file__).resolve().parents[4]
PAGE = (ROOT / "docs" / "adding-a-dialect.md").read_text(encoding="utf-8")
FILES = re.findall(r"^\| `((?:src/asides|tests|docs)/[^`…]+)` \|", PAGE, re.MULTILINE)


def test_the_table_is_there() -> None:
    assert len([name for name in FILES if "<name>" in name]) >= 10


@pytest.mark.parametrize("name", [name for name in FILES if name.startswith("src") or "<name>" in name])
def test_a_dialect_has_the_file(name: str) -> None:
    assert any((ROOT / name.replace("<name>", dialect)).exists() for dialect in DIALECTS)
