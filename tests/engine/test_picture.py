"""The picture of a terminal in the docs is what a terminal shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.local.processes import ROOT, needs_engine

pytestmark = [needs_engine, pytest.mark.engine]


@pytest.mark.skipif(sys.platform == "win32", reason="draws a terminal of Unix")
def test_the_picture_is_what_a_terminal_shows() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "terminal_picture.py", "--check"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_pictures_have_the_dark_colours_of_the_site() -> None:
    sheet = Path(ROOT / "docs" / "site.css").read_text(encoding="utf-8")
    dark = sheet.partition('"slate"')[2].partition("}")[0]
    for name in ("terminal.svg", "data-at-rest.svg"):
        used = set(re.findall(r"#[0-9a-f]{6}", Path(ROOT / "docs" / name).read_text(encoding="utf-8")))
        assert used == {colour for colour in used if colour in dark}


def test_the_picture_shows_thinking_dim_and_the_answer_plain() -> None:
    picture = Path(ROOT / "docs" / "terminal.svg").read_text(encoding="utf-8")
    assert '<tspan class="dim">Add the parts: 920 + 161 = 1081.</tspan>' in picture
    assert '<tspan class="plain">23 x 47 = 1081.</tspan>' in picture
