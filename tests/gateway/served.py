"""Runs `asides serve` as a process of its own, in a folder of its own, before a stage. Not a test."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

_SOURCES = Path(__file__).resolve().parents[2] / "src"
PATIENCE = 30.0
KEY = "sk-gateway-0123456789abcdef"
ROUTE = "thinker"


def write_settings(folder: Path, stage_url: str, more: str = "") -> Path:
    """The settings of a gateway before a stage: one route, whose model thinks and wants its thinking back."""
    path = folder / "asides.toml"
    path.write_text(
        f'{more}\n[providers.anthropic]\nbase_url = "{stage_url}"\nkey_env = "STAGE_KEY"\n'
        f'[routes.{ROUTE}]\ntargets = ["anthropic:claude-sonnet-4-5"]\nthinking = 2000\n',
        encoding="utf-8",
    )
    return path


def make_environment(folder: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment in which nothing of this machine is read or written."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ASIDES", "XDG", "PROMETHEUS"))}
    kept = {name: value for name, value in kept.items() if not name.endswith("_API_KEY")}
    own = {
        "HOME": str(folder / "home"),
        "ASIDES_STATE": str(folder / "state"),
        "PYTHONPATH": str(_SOURCES),
        "STAGE_KEY": "sk-stage",
        "TMPDIR": str(folder),
    }
    if (folder / "asides.toml").exists():
        own["ASIDES_CONFIG"] = str(folder / "asides.toml")
    (folder / "home").mkdir(exist_ok=True)
    return {**kept, **own, **(more or {})}


class Served:
    """A gateway that runs."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log_file = log
        self.url = ""

    @property
    def log(self) -> str:
        """What it has written to stderr."""
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def wait_until_open(self) -> None:
        """Wait for its address."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        line = self.process.stdout.readline().decode() if ready else ""
        assert line.startswith("http://"), f"{line!r}, and the log is {self.log}"
        self.url = line.strip()

    def wait_for_log(self, words: str, times: int = 1) -> float:
        """Wait until the log has these words so often. Returns the seconds that it took."""
        began = time.monotonic()
        while self.log.count(words) < times:
            assert time.monotonic() - began < PATIENCE, f"{words!r} is not in the log: {self.log}"
            time.sleep(0.01)
        return time.monotonic() - began

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, and wait for the end. Returns the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def find_workers(self) -> list[int]:
        """The ids of its child processes."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(word) for word in children.read_text(encoding="ascii").split()]

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        """The status and the body of an answer."""
        return fetch(Request(self.url + path, headers=headers))

    def post(self, path: str, body: Mapping[str, Any], **headers: str) -> tuple[int, Any]:
        """The status and the JSON of an answer."""
        content = {"content-type": "application/json", **headers}
        status, text = fetch(Request(self.url + path, json.dumps(body).encode(), content))
        return status, json.loads(text)


def fetch(request: Request) -> tuple[int, str]:
    """The status and the body of an answer, be it an error or not."""
    try:
        with urlopen(request, timeout=PATIENCE) as response:
            return response.status, response.read().decode()
    except HTTPError as problem:
        with problem:
            return problem.code, problem.read().decode()


@contextmanager
def serve(folder: Path, *arguments: str, env: Mapping[str, str] | None = None, waits: bool = True) -> Generator[Served]:
    """Run a gateway. At the end it is killed, if it still runs."""
    log = folder / "log.txt"
    with log.open("ab") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "asides", "serve", "--port", "0", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=make_environment(folder, env),
            cwd=folder,
        )
    served = Served(process, log)
    with process:
        try:
            if waits:
                served.wait_until_open()
            yield served
        finally:
            if process.poll() is None:
                process.kill()


def is_alive(pid: int) -> bool:
    """Whether a process runs."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


# --- a client of chat completions that knows nothing of thinking ------------------------------------------------------

TOOLS = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {}}}}]


def ask_first(number: int = 0) -> dict[str, Any]:
    """The first request of a conversation."""
    return {"model": ROUTE, "tools": TOOLS, "messages": [{"role": "user", "content": f"question {number}"}]}


def ask_second(first: Mapping[str, Any], message: Mapping[str, Any]) -> dict[str, Any]:
    """The second: the words and the call of the answer alone go back, with the result of the call."""
    calls = message["tool_calls"]
    answer = {"role": "assistant", "content": message.get("content"), "tool_calls": calls}
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "42"} for call in calls]
    return {**first, "messages": [*first["messages"], answer, *results]}
