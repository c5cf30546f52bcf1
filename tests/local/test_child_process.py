"""No server survives the process that started it, however that process ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from asides.local.child_process import ServerSettings
from tests.local.processes import ends, finish, needs_engine, needs_fork, program, runs, words_of

_SERVER = Path(__file__).resolve().parents[2] / "src" / "asides" / "local" / "llama_server.py"

_STUCK_ENGINE = """
import ctypes
from types import SimpleNamespace

def CommonParams():
    return SimpleNamespace(model=SimpleNamespace())

def Server(parameters):
    ctypes.PyDLL(None).sleep(60)  # PyDLL keeps the interpreter's lock.
"""

pytestmark = [needs_engine, pytest.mark.engine]


@pytest.mark.parametrize(
    ("ending", "code"),
    [("pass", 0), ("raise ValueError('something went wrong')", 1), ("sys.exit(3)", 3), ("os._exit(4)", 4)],
)
def test_the_server_ends_with_its_program(ending: str, code: int) -> None:
    with program(f"ask(); tell(*servers()); sys.stdin.read()\n{ending}\n") as parent:
        (server,) = map(int, words_of(parent))
        assert runs(server)
        assert finish(parent) == code
        assert ends(server)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGHUP"])
def test_the_server_ends_when_a_signal_ends_its_program(name: str) -> None:
    with program("ask(); tell(*servers()); time.sleep(60)") as parent:
        (server,) = map(int, words_of(parent))
        parent.send_signal(signal.Signals[name])
        assert ends(server)


def test_the_server_ends_when_its_program_becomes_another() -> None:
    become = "os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(60)'])"
    with program(f"ask(); tell(*servers()); {become}") as parent:
        (server,) = map(int, words_of(parent))
        assert ends(server)
        assert parent.poll() is None


def test_a_program_killed_during_the_start_leaves_nothing() -> None:
    start = """
import subprocess, threading
started = subprocess.Popen.__init__
def report_start(self, *arguments, **options):
    started(self, *arguments, **options)
    tell(self.pid)
subprocess.Popen.__init__ = report_start
threading.Thread(target=ask).start()
time.sleep(60)
"""
    with program(start) as parent:
        (server,) = map(int, words_of(parent))
        parent.kill()
        assert ends(server)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signal for it")
@pytest.mark.parametrize("moment", ["asleep", "before"])
def test_the_server_ends_while_the_engine_holds_the_interpreter(tmp_path: Path, moment: str) -> None:
    """Loading a large model takes minutes in which no thread of Python runs. This engine sleeps, and lets none run."""
    (tmp_path / "stuck.py").write_text(_STUCK_ENGINE)
    settings = {
        **ServerSettings(file="", alias="", context=1, slots=1, threads=None, temperature=None)._asdict(),
        "key": "",
        "engine": "stuck",
        "path": [str(tmp_path), *sys.path],
    }
    with subprocess.Popen([sys.executable, "-P", _SERVER, str(os.getpid())], stdin=subprocess.PIPE) as server:
        assert server.stdin is not None
        server.stdin.write(json.dumps(settings).encode() + b"\n")
        if moment == "asleep":
            server.stdin.flush()
            time.sleep(0.5)  # By now it is asleep with the interpreter's lock in its hand.
            assert server.poll() is None
        server.stdin.close()
        try:
            assert server.wait(2) == (-signal.SIGIO if moment == "asleep" else 0)
        finally:
            server.kill()


@needs_fork
def test_a_fork_lets_the_server_of_its_parent_alone_and_starts_its_own() -> None:
    code = """
ask()
tell(*servers())
child = os.fork()
if child == 0:
    assert servers() == []
    tell(ask(), *servers())
    sys.exit()
os.waitpid(child, 0)
tell(ask(), *servers())
sys.stdin.read()
"""
    with program(code) as parent:
        (first,) = map(int, words_of(parent))
        *answer, own = words_of(parent)
        assert "5" in " ".join(answer)
        assert int(own) != first
        assert ends(int(own))
        *answer, same = words_of(parent)
        assert "5" in " ".join(answer)
        assert int(same) == first
        assert finish(parent) == 0
        assert ends(first)


@needs_fork
def test_a_fork_in_the_middle_of_a_start_is_not_stuck() -> None:
    """A lock that another thread held is held for ever in the fork, where that thread does not run."""
    code = """
import threading
from asides.local import launch
starting = threading.Thread(target=launch, args=("tiny",))
starting.start()
while not any(thread.name == "asides-server-start" for thread in threading.enumerate()):
    time.sleep(0.001)
time.sleep(0.02)  # Now it waits for the server, with the lock of this model in its hand.
child = os.fork()
if child == 0:
    tell(ask(), *servers())
    os._exit(0)
os.waitpid(child, 0)
starting.join()
tell(*servers())
sys.stdin.read()
"""
    with program(code) as parent:
        *answer, own = words_of(parent)
        assert "5" in " ".join(answer)
        (parents,) = words_of(parent)
        assert own != parents
        assert runs(int(parents))
        assert finish(parent) == 0


@needs_fork
def test_a_server_without_settings_ends_with_its_program_too() -> None:
    """The program is killed before it has sent the settings, and a fork holds the pipe."""
    code = f"""
import ctypes, subprocess
server = subprocess.Popen([sys.executable, "-P", {str(_SERVER)!r}, str(os.getpid())], stdin=subprocess.PIPE)
child = ctypes.CDLL(None).fork()
if child == 0:
    ctypes.CDLL(None).pause()
tell(child, server.pid)
time.sleep(60)
"""
    with program(code) as parent:
        fork, server = map(int, words_of(parent))
        parent.kill()
        try:
            assert ends(server)
            assert runs(fork)
        finally:
            os.kill(fork, signal.SIGKILL)


@needs_fork
def test_the_server_ends_with_its_program_also_while_a_fork_lives_on() -> None:
    """A fork has a copy of the pipe; it must not keep the server alive with it."""
    code = """
ask()
child = os.fork()
if child == 0:
    time.sleep(60)
    os._exit(0)
tell(child, *servers())
time.sleep(60)
"""
    with program(code) as parent:
        fork, server = map(int, words_of(parent))
        parent.kill()
        try:
            assert ends(server)
            assert runs(fork)
        finally:
            os.kill(fork, signal.SIGKILL)


@needs_fork
def test_the_server_ends_with_its_program_also_when_a_fork_holds_its_pipe() -> None:
    """Forked by code that does not tell Python, a fork cannot let go of the pipe."""
    code = """
import ctypes
ask()
child = ctypes.CDLL(None).fork()
if child == 0:
    ctypes.CDLL(None).pause()
tell(child, *servers())
time.sleep(60)
"""
    with program(code) as parent:
        fork, server = map(int, words_of(parent))
        parent.kill()
        try:
            assert ends(server)
            assert runs(fork)
        finally:
            os.kill(fork, signal.SIGKILL)


def test_ctrl_c_reaches_the_program_and_not_its_server() -> None:
    with program("ask(); tell(os.getsid(0), *servers()); sys.stdin.read()") as parent:
        session, server = map(int, words_of(parent))
        assert os.getsid(server) != session
        os.kill(server, signal.SIGINT)
        assert not ends(server, 0.3)
        assert finish(parent) == 0
