"""The reading spine stays short: how many files and jumps between files a call takes (scripts/trace_call.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(_ROOT / "scripts" / "trace_call.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_a_call_takes_no_more_files_and_jumps_than_the_goals() -> None:
    done = _run("--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_limit_that_is_exceeded_fails_and_the_lists_show_where() -> None:
    done = _run("--check", "--limits", "1", "1", "1", "1", "--files", "--jumps")
    assert done.returncode == 1
    assert "client.py:ask → flows/build_call.py:build" in done.stdout
    assert "transports/urllib3.py" in done.stdout
