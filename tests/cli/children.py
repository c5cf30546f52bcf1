"""The command line as people run it: a process of its own, with pipes or with a terminal. Not a test."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from asides.cli.app import main
from asides.conversations.store.sqlite import SqliteStore
from asides.testing.stage import Stage

MODEL = "openai-compatible:staged"
_SOURCES = Path(__file__).resolve().parents[2] / "src"
_PATIENCE_SECONDS = 20.0


class Ended(NamedTuple):
    """A process that is over."""

    code: int
    out: str
    err: str


def at(stage: Stage) -> list[str]:
    """The options that ask this stage."""
    return ["-m", MODEL, "--base-url", stage.url]


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONUNBUFFERED", "NO_COLOR")}
    return {**inherited, "PYTHONPATH": str(_SOURCES), "PYTHONIOENCODING": "utf-8", **(more or {})}


def command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "asides", *arguments]


def asides(*arguments: str, stdin: str | bytes = b"", env: Mapping[str, str] | None = None) -> Ended:
    """Run it to its end."""
    done = subprocess.run(
        command(arguments),
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        env=environment(env),
        timeout=_PATIENCE_SECONDS,
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def here(capsys: pytest.CaptureFixture[str], *arguments: str) -> Ended:
    """Run it in this process, where sockets are as real and starting is free."""
    code = main(arguments)
    captured = capsys.readouterr()
    return Ended(code, captured.out, captured.err)


def piped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stdin: str | bytes, *arguments: str
) -> Ended:
    """Run it in this process, with this on its standard input."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), "utf-8"))
    return here(capsys, *arguments)


def ask(capsys: pytest.CaptureFixture[str], stage: Stage, *arguments: str) -> Ended:
    """Run `asides ask` in this process, against this stage."""
    return here(capsys, "ask", *at(stage), "--no-stdin", *arguments)


def only_body(stage: Stage) -> dict[str, Any]:
    """The body of the only request."""
    (request,) = stage.requests
    return dict(request.json)


def dialogue(stage: Stage, number: int) -> list[tuple[str, Any]]:
    """The roles and texts of the request of this number."""
    return [(message["role"], message.get("content")) for message in stage.requests[number].json["messages"]]


def load_saved(folder: Path, name: str) -> list[tuple[str, str]]:
    """The roles and texts of a saved conversation."""
    with SqliteStore(folder / "conversations.db") as store:
        found = store.load(name)
    return [] if found is None else [(message.role, message.text) for message in found.messages]


@contextmanager
def started(*arguments: str, stdin: int = subprocess.DEVNULL) -> Generator[subprocess.Popen[bytes]]:
    """One that is still running, its output in pipes."""
    with subprocess.Popen(
        command(arguments), stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as child:
        try:
            yield child
        finally:
            if child.poll() is None:
                child.kill()


def read_some(child: subprocess.Popen[bytes], until: bytes) -> bytes:
    """What it has written to stdout, once `until` is in it."""
    assert child.stdout is not None
    seen = _read_until(child.stdout.fileno(), until, b"", _PATIENCE_SECONDS)
    assert until in seen, f"{until!r} did not come; there is {seen!r}"
    return seen


def _read_until(descriptor: int, until: bytes, seen: bytes, seconds: float) -> bytes:
    """What there is once `until` is in it, or the time is over, or nothing more can come."""
    deadline = time.monotonic() + seconds
    while until not in seen:
        ready, _, _ = select.select([descriptor], [], [], max(deadline - time.monotonic(), 0))
        if not ready or not (data := _read(descriptor)):
            break
        seen += data
    return seen


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # What Linux says of a terminal when its last writer is gone.
        return b""


# A session's leader takes its terminal, so that Ctrl-C becomes a signal; then it becomes the command. Not done between
# fork and exec: a stage has threads in the process that forks.
_TAKE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


class Keyboard:
    """A process at a terminal: what it wrote to it, and keys for it."""

    def __init__(self, child: subprocess.Popen[bytes], descriptor: int) -> None:
        self._child = child
        self._descriptor = descriptor
        self.seen = b""
        self._waited_for = 0

    def wait_for(self, text: str) -> None:
        """Until this is on the terminal, behind what was waited for before."""
        assert self._wait(text, _PATIENCE_SECONDS), f"{text!r} did not come; there is {self.seen[self._waited_for :]!r}"

    def interrupt_for(self, text: str) -> None:
        """Ctrl-C until this comes: between showing a prompt and listening, Python's own readline hears no signal."""
        for _ in range(20):
            self.interrupt()
            if self._wait(text, 1.0):
                return
        raise AssertionError(f"{text!r} did not come; there is {self.seen[self._waited_for :]!r}")

    def _wait(self, text: str, seconds: float) -> bool:
        awaited = text.encode()
        fresh = _read_until(self._descriptor, awaited, self.seen[self._waited_for :], seconds)
        self.seen = self.seen[: self._waited_for] + fresh
        if awaited in fresh:
            self._waited_for += fresh.index(awaited) + len(awaited)
        return awaited in fresh

    def type(self, keys: str) -> None:
        os.write(self._descriptor, keys.encode())

    def interrupt(self) -> None:
        """Ctrl-C, as the terminal passes it on."""
        self.type("\x03")

    def end(self) -> int:
        """Read what is left; the exit code."""
        while data := _read(self._descriptor):
            self.seen += data
        return self._child.wait(_PATIENCE_SECONDS)

    @property
    def text(self) -> str:
        """Everything that was written, escapes included."""
        return self.seen.decode()

    @property
    def screen(self) -> list[str]:
        """What a person sees in the end."""
        return screen_of(self.text)


@contextmanager
def at_terminal(
    *arguments: str, env: Mapping[str, str] | None = None, stdout: int | None = None
) -> Generator[Keyboard]:
    """Start it at a terminal of its own; with `stdout`, only stdin and stderr are there."""
    master, slave = pty.openpty()
    terminal = {"TERM": "xterm", "COLUMNS": "80", **(env or {})}
    try:
        child = subprocess.Popen(
            [sys.executable, "-S", "-c", _TAKE_TERMINAL, *command(arguments)],
            stdin=slave,
            stdout=slave if stdout is None else stdout,
            stderr=slave,
            env=environment(terminal),
            start_new_session=True,
        )
    finally:
        os.close(slave)
    try:
        yield Keyboard(child, master)
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGKILL)
            child.wait()
        os.close(master)


_STEP = re.compile(r"\x1b\[\d*(?:;\d+)*m|\x1b\[\?\d+[hl]|\x1b\[K|\r|\n|[^\x1b\r\n]+|\x1b.")


def screen_of(written: str) -> list[str]:
    """The lines that are left on a screen: carriage returns cover, an erase erases."""
    lines = [""]
    column = 0
    for step in _STEP.findall(written):
        if step == "\r":
            column = 0
        elif step == "\n":
            lines.append("")
            column = 0
        elif step == "\x1b[K":
            lines[-1] = lines[-1][:column]
        elif not step.startswith("\x1b"):
            lines[-1] = lines[-1][:column].ljust(column) + step + lines[-1][column + len(step) :]
            column += len(step)
    return [line.rstrip() for line in lines]
