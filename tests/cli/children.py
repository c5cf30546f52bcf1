"""Runs the command line for the tests: in this process, or in its own with pipes or a terminal. Not a test."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from io import BytesIO, TextIOWrapper
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import pytest

from asides.cli.app import main
from asides.conversations.store.sqlite import SqliteStore
from asides_stage.stage import Stage

MODEL = "openai-compatible:staged"
_SOURCES = Path(__file__).resolve().parents[2] / "src"
_PATIENCE_SECONDS = 20.0


class Ended(NamedTuple):
    """A process that has ended."""

    code: int
    out: str
    err: str


def at(stage: Stage) -> list[str]:
    """The options that send the question to this stage."""
    return ["-m", MODEL, "--base-url", stage.url]


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONUNBUFFERED", "NO_COLOR")}
    return {**inherited, "PYTHONPATH": str(_SOURCES), "PYTHONIOENCODING": "utf-8", **(more or {})}


def command(arguments: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "asides", *arguments]


def run_process(*arguments: str, stdin: str | bytes = b"", env: Mapping[str, str] | None = None) -> Ended:
    """Run it as a process until it ends."""
    done = subprocess.run(
        command(arguments),
        input=_encode(stdin),
        capture_output=True,
        env=environment(env),
        timeout=_PATIENCE_SECONDS,
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def asides(*arguments: str, stdin: str | bytes = b"", env: Mapping[str, str] | None = None) -> Ended:
    """Run it in this process, with files as its standard streams, as in a pipeline."""
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        for name, value in (env or {}).items():
            patch.setenv(name, value)
        streams = [TextIOWrapper(stack.enter_context(TemporaryFile()), "utf-8") for _ in range(3)]
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            patch.setattr(sys, name, stream)
        streams[0].buffer.write(_encode(stdin))
        streams[0].seek(0)
        code = main(arguments)
        for stream in streams[1:]:
            stream.seek(0)
        return Ended(code, streams[1].read(), streams[2].read())


def _encode(stdin: str | bytes) -> bytes:
    return stdin.encode() if isinstance(stdin, str) else stdin


def here(capsys: pytest.CaptureFixture[str], *arguments: str) -> Ended:
    """Run it in this process: the sockets are real, and starting costs nothing."""
    code = main(arguments)
    captured = capsys.readouterr()
    return Ended(code, captured.out, captured.err)


def piped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stdin: str | bytes, *arguments: str
) -> Ended:
    """Run it in this process, with this on its standard input."""
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(_encode(stdin)), "utf-8"))
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
    """Start it, with its output in pipes."""
    with subprocess.Popen(
        command(arguments), stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as child:
        try:
            yield child
        finally:
            if child.poll() is None:
                child.kill()


def read_some(child: subprocess.Popen[bytes], until: bytes) -> bytes:
    """Read its stdout until `until` is in it."""
    assert child.stdout is not None
    seen = _read_until(child.stdout.fileno(), until, b"", _PATIENCE_SECONDS)
    assert until in seen, f"{until!r} did not appear; there is {seen!r}"
    return seen


def _read_until(descriptor: int, until: bytes, seen: bytes, seconds: float) -> bytes:
    """Read until `until` is there, the time is over, or the stream has ended."""
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
    except OSError:  # Linux raises this when the last writer has closed the terminal.
        return b""


# The session leader takes the terminal, so that Ctrl-C becomes a signal; then it becomes the command. This does not
# happen between fork and exec, since the process that forks has the threads of a stage.
_TAKE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


class Keyboard:
    """A process at a terminal: reads what it wrote, and types keys."""

    def __init__(self, child: subprocess.Popen[bytes], descriptor: int) -> None:
        self._child = child
        self._descriptor = descriptor
        self.seen = b""
        self._waited_for = 0

    def wait_for(self, text: str) -> None:
        """Wait until this is on the terminal, after the text of the last wait."""
        assert self._wait(text, _PATIENCE_SECONDS), (
            f"{text!r} did not appear; there is {self.seen[self._waited_for :]!r}"
        )

    def interrupt_for(self, text: str, *, seconds: float = 1.0) -> None:
        """Press Ctrl-C until this appears, as a person does.

        Python's readline misses a signal between the prompt and its first read, and an exception that a signal raises
        inside a finalizer is dropped.
        """
        for _ in range(20):
            self.interrupt()
            if self._wait(text, seconds):
                return
        raise AssertionError(f"{text!r} did not appear; there is {self.seen[self._waited_for :]!r}")

    def interrupt_to_end(self) -> int:
        """Press Ctrl-C until the process ends, as a person does, and return the exit code."""
        for _ in range(20):
            self.interrupt()
            if self._closes_within(5.0):
                return self._child.wait(_PATIENCE_SECONDS)
        raise AssertionError(f"it does not end; there is {self.seen[self._waited_for :]!r}")

    def _closes_within(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self._descriptor], [], [], left)[0]:
                if not (data := _read(self._descriptor)):
                    return True
                self.seen += data
        return False

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
        """Press Ctrl-C."""
        self.type("\x03")

    def hang_up(self) -> int:
        """Close the terminal, as a window does, and return the exit code."""
        os.close(self._descriptor)
        self._descriptor = os.open(os.devnull, os.O_RDWR)
        return self._child.wait(_PATIENCE_SECONDS)

    def close(self) -> None:
        os.close(self._descriptor)

    def end(self) -> int:
        """Read the rest, and return the exit code."""
        while data := _read(self._descriptor):
            self.seen += data
        return self._child.wait(_PATIENCE_SECONDS)

    @property
    def text(self) -> str:
        """Everything it wrote, escapes included."""
        return self.seen.decode()

    @property
    def screen(self) -> list[str]:
        """The lines that a person sees in the end."""
        return screen_of(self.text)


@contextmanager
def at_terminal(
    *arguments: str, env: Mapping[str, str] | None = None, stdout: int | None = None
) -> Generator[Keyboard]:
    """Start it at its own terminal; with `stdout`, only stdin and stderr are connected to that."""
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
    keyboard = Keyboard(child, master)
    try:
        yield keyboard
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGKILL)
            child.wait()
        keyboard.close()


class Shown(NamedTuple):
    """What a command wrote at a terminal."""

    code: int
    text: str

    @property
    def screen(self) -> list[str]:
        """The lines that a person sees in the end."""
        return screen_of(self.text)


def show_at_terminal(*arguments: str, env: Mapping[str, str] | None = None) -> Shown:
    """Run it in this process, at a terminal where nobody types."""
    master, slave = pty.openpty()
    seen: list[bytes] = []

    def read_all() -> None:
        while data := _read(master):
            seen.append(data)

    reader = threading.Thread(target=read_all)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("NO_COLOR", raising=False)
        for name, value in {"TERM": "xterm", "COLUMNS": "80", **(env or {})}.items():
            patch.setenv(name, value)
        reader.start()
        try:
            with os.fdopen(os.dup(slave)) as stdin, os.fdopen(slave, "w", encoding="utf-8") as stdout:
                patch.setattr(sys, "stdin", stdin)
                patch.setattr(sys, "stdout", stdout)
                patch.setattr(sys, "stderr", stdout)
                code = main(arguments)
        finally:
            reader.join(_PATIENCE_SECONDS)
            os.close(master)
    return Shown(code, b"".join(seen).decode())


_STEP = re.compile(r"\x1b\[\d*(?:;\d+)*m|\x1b\[\?\d+[hl]|\x1b\[K|\r|\n|[^\x1b\r\n]+|\x1b.")


def screen_of(written: str) -> list[str]:
    """The lines that remain on a screen after carriage returns and erases."""
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
