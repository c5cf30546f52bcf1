"""`run`: the stage in a process of its own, as the command line starts it, until a signal ends it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import asides
from asides.testing.stage import run
from asides.values.errors import ConfigError

PROGRAM = """
import sys
from pathlib import Path
from asides.testing.stage import run

run("127.0.0.1", 0, Path(sys.argv[1]) if sys.argv[1:] else None, lambda url: print(url, flush=True))
print("ended", flush=True)
"""


@contextmanager
def running(*arguments: str) -> Generator[tuple[subprocess.Popen[str], str], None, None]:
    source = str(Path(asides.__file__).parents[1])
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM, *arguments],
        env={**os.environ, "PYTHONPATH": source},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def ask(url: str, question: str) -> Any:
    body = json.dumps({"model": "stage", "messages": [{"role": "user", "content": question}]}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{url}/chat/completions", body), timeout=10) as response:
        return json.load(response)["choices"][0]["message"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals of this kind are not known there")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_plays_until_a_signal_and_ends_cleanly(number: signal.Signals) -> None:
    with running() as (process, url):
        assert ask(url, "What is 23 * 47?")["content"] == "23 × 47 = 1081"
        process.send_signal(number)
        out, err = process.communicate(timeout=10)
    assert (out, err, process.returncode) == ("ended\n", "", 0)


def test_it_plays_a_script_from_a_file(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('[{"type": "say", "text": "from a file", "thinking": "read it"}]')
    with running(str(script)) as (_, url):
        assert ask(url, "?") == {"role": "assistant", "content": "from a file", "reasoning_content": "read it"}


def test_what_cannot_be_played_is_said_before_a_port_is_open(tmp_path: Path) -> None:
    told: list[str] = []
    with pytest.raises(ConfigError, match="cannot be read"):
        run("127.0.0.1", 0, tmp_path / "none.json", told.append)
    with pytest.raises(ConfigError, match="other machines"):
        run("0.0.0.0", 0, None, told.append)
    assert told == []
