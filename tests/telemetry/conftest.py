"""What the tests of telemetry share."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

_SOURCES = Path(__file__).resolve().parents[2] / "src"
RunPython = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_python(tmp_path: Path) -> RunPython:
    """Run a program in a process of its own, with these variables and no others of this machine."""

    def run(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
        own = {"PYTHONPATH": str(_SOURCES), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin", **variables}
        return subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            env=own,
            cwd=tmp_path,
            timeout=60,
            check=False,
        )

    return run
