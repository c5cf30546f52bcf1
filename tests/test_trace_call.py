"""The script that shows the path of a call (scripts/trace_call.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent


def test_the_lists_show_the_path_of_a_call() -> None:
    command = [sys.executable, str(_ROOT / "scripts" / "trace_call.py"), "--files", "--jumps"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "client.py:ask → flows/build_call.py:build" in done.stdout
    assert "transports/http_sync.py" in done.stdout
