"""Runs programs that use a local model as separate processes, and looks for processes that remain. Not a test."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from asides.local import is_installed

ROOT = Path(__file__).resolve().parents[2]
_PATIENCE_SECONDS = 30.0

needs_engine = pytest.mark.skipif(not is_installed(), reason="the extra is not installed: pip install 'asides[local]'")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system has no /proc")

# The beginning of every program: functions that ask, and that print which process serves.
_BEGIN = """
import os, signal, sys, time
import asides
from asides.local import server_pool

def ask():
    return asides.ask("local:tiny", "What is 2 + 3?", max_tokens=200).text

def servers():
    return [child.pid for child in server_pool.list_running()]

def tell(*words):
    print(*words, flush=True)
"""


@contextmanager
def program(code: str) -> Generator[subprocess.Popen[str]]:
    """Run a program of these lines during the block."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    with subprocess.Popen(
        [sys.executable, "-c", _BEGIN + code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as child:
        try:
            yield child
        finally:
            if child.poll() is None:
                child.kill()


def words_of(child: subprocess.Popen[str]) -> list[str]:
    """The words of the next line that it prints."""
    assert child.stdout is not None
    line = child.stdout.readline()
    if not line:
        assert child.stderr is not None
        pytest.fail(f"the program ended: {child.stderr.read()}")
    return line.split()


def ends(pid: int, seconds: float = 2.0) -> bool:
    """Whether a process ends within these seconds. A zombie, which has ended and was not waited for, counts."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not runs(pid):
            return True
        time.sleep(0.01)
    return False


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return True


def finish(child: subprocess.Popen[str]) -> int:
    """Let it run to its end."""
    assert child.stdin is not None
    child.stdin.close()
    return child.wait(_PATIENCE_SECONDS)
