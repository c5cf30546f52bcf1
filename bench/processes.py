"""Starts the process of a contestant, asks it for measurements, and ends it."""

from __future__ import annotations

import json
import re
import subprocess
from threading import Timer
from typing import Any, Self

from bench.contestant import Contestant
from bench.environments import BENCH, ROOT, build_environ, find_python

LOGS = BENCH / ".logs"
TIMEOUT_SECONDS = 600


class ContestantFailed(Exception):
    """The contestant's own error message. Its full log is in `bench/.logs`."""


class Process:
    """A module of the benchmark that runs in an environment and answers questions (`worker.serve`)."""

    def __init__(self, environment: str, module: str, *arguments: str) -> None:
        LOGS.mkdir(exist_ok=True)
        # The last argument is the address of the server.
        log = LOGS / (re.sub(r"[^\w.+-]+", "_", " ".join((module, *arguments[:-1]))) + ".log")
        with log.open("w") as stderr:
            self._process = subprocess.Popen(
                [str(find_python(environment)), "-m", module, *arguments],
                cwd=ROOT,
                env=build_environ(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        try:
            self._read()
        except ContestantFailed:
            self.close()
            raise

    def ask(self, do: str, **details: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **details}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        timer = Timer(TIMEOUT_SECONDS, self._process.kill)
        timer.start()
        line = self._process.stdout.readline()
        timer.cancel()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "the process ended"}
        if "error" in answer and answer["error"] is not None and len(answer) == 1:
            raise ContestantFailed(answer["error"])
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            self._process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def start_process(contestant: Contestant, dialect: str, base_url: str) -> Process:
    return Process(contestant.environment, "bench.worker", contestant.key, dialect, base_url)


def run_module(environment: str, module: str, *arguments: str) -> Any:
    """Run one of our modules in an environment and return the JSON on the last line of its output."""
    done = subprocess.run(
        [str(find_python(environment)), "-m", module, *arguments],
        cwd=ROOT,
        env=build_environ(environment),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode != 0 or not done.stdout.strip():
        lines = done.stderr.strip().splitlines()
        raise ContestantFailed(lines[-1] if lines else f"exit code {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])
