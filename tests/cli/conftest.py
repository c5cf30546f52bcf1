"""Fixtures of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

TOOLS = '''
import time
import asides

@asides.tool
def look(at: str) -> str:
    """Looks."""
    return "blue"

@asides.tool
def nap(hours: int) -> str:
    """Sleeps."""
    time.sleep(30)
    return "rested"
'''


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "deep" / "state"
    monkeypatch.setenv("ASIDES_STATE", str(folder))
    return folder


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    path = tmp_path / "tools_at_the_edges.py"
    path.write_text(TOOLS, encoding="utf-8")
    return path
