"""Runs the examples of one page of the docs, top to bottom in one process, against the offline stage.

    python tests/run_page.py docs/streaming.md

    ```python     runs; all blocks of a page share their names; one that defines tests is also given to pytest
    ```output     directly after such a block: exactly its output
    ```console    every line that starts with `$ ` runs in a shell; the lines below it are its standard output, where a
                  line of one `…` matches any lines
    ```toml       is loaded as settings

ASIDES_STAGE sends every request to the stage, so examples name real models and no example needs a key. Only servers
that are started on this machine answer themselves. The stage's actor answers, or a script in a comment before the
block:

    <!-- stage: [{"type": "say", "thinking": "…", "text": "…"}] -->

Blocks of other kinds do not run.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import traceback
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

import asides
from asides.dialects.dialect import ServedRequest
from asides_stage.stage import Scene, Stage, improvise
from asides_stage.stage.script import ScriptPlayer

RUN = ("python", "console", "toml")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SCRIPT = re.compile(r"<!-- stage:\s*(\[.*?\])\s*-->\s*\Z", re.DOTALL)


class Example(msgspec.Struct, frozen=True):
    """One block of a page."""

    kind: str
    line: int
    code: str
    scenes: tuple[Scene, ...] = ()
    printed: str | None = None
    """The expected output; None when the page does not show it."""


def read(page: str) -> list[Example]:
    """The blocks of a page that run, each with the output that follows it."""
    found: list[Example] = []
    end = 0
    for fence in _FENCE.finditer(page):
        between, end = page[end : fence.start()], fence.end()
        kind, code = fence[1], fence[2]
        if kind == "output":
            if not found or between.strip():
                raise ValueError(f"line {page.count(chr(10), 0, fence.start()) + 1}: output of nothing")
            found[-1] = msgspec.structs.replace(found[-1], printed=code)
        elif kind in RUN:
            script = _SCRIPT.search(between)
            scenes = msgspec.json.decode(script[1], type=tuple[Scene, ...]) if script else ()
            found.append(Example(kind, page.count("\n", 0, fence.start()) + 1, code, scenes))
    return found


class PageScript:
    """Answers the examples: with a script where there is one, else with the stage's actor."""

    def __init__(self) -> None:
        self._player: ScriptPlayer | None = None

    def play(self, scenes: tuple[Scene, ...]) -> None:
        """Answer with these scenes from now on; without any, with the actor."""
        self._player = ScriptPlayer(scenes) if scenes else None

    def __call__(self, request: ServedRequest) -> Scene:
        return improvise(request) if self._player is None else self._player.next(request)


def run(example: Example, names: dict[str, Any], where: str) -> str | None:
    """Run one block; return None when it did what the page says, else a description of what it did."""
    match example.kind:
        case "python":
            return _run_python(example, names, where)
        case "console":
            return _run_console(example)
        case _:
            return _load_settings(example)


def _run_python(example: Example, names: dict[str, Any], where: str) -> str | None:
    printed = io.StringIO()
    try:
        # Blank lines before it, so that a traceback names the line of the page.
        code = compile("\n" * example.line + example.code, where, "exec")
        with contextlib.redirect_stdout(printed):
            exec(code, names)
    except BaseException:  # noqa: BLE001 - an example may raise anything, and the report shows it
        return traceback.format_exc()
    if example.printed is not None and printed.getvalue().rstrip() != example.printed.rstrip():
        return f"printed:\n{printed.getvalue()}"
    return _run_tests(example) if re.search(r"^(?:async )?def test_", example.code, re.MULTILINE) else None


def _run_tests(example: Example) -> str | None:
    Path("test_example.py").write_text(example.code, encoding="utf-8")
    known = any(point.name == "asides" for point in entry_points(group="pytest11"))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        *(() if known else ("-p", "asides_stage.pytest_plugin")),
        "test_example.py",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    return done.stdout + done.stderr if done.returncode else None


def _run_console(example: Example) -> str | None:
    for block in re.split(r"^\$ ", example.code, flags=re.MULTILINE)[1:]:
        command, _, expected = block.partition("\n")
        while command.endswith("\\"):
            more, _, expected = expected.partition("\n")
            command = f"{command}\n{more.removeprefix('> ')}"
        done = subprocess.run(
            ["bash", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=90, check=False
        )
        pattern = "".join(
            r"(?:.*\n)*" if line == "…" else f"{re.escape(line)}\n" for line in expected.rstrip("\n").split("\n")
        )
        if expected.strip() and not re.fullmatch(pattern, done.stdout.rstrip("\n") + "\n"):
            return f"$ {command}\n{done.stdout}{done.stderr}(exit code {done.returncode})"
        if not expected.strip() and done.returncode:
            return f"$ {command}\n{done.stdout}{done.stderr}(exit code {done.returncode})"
    return None


def _load_settings(example: Example) -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "asides.toml"
        path.write_text(example.code, encoding="utf-8")
        try:
            asides.load_settings({}, files=[path])
        except asides.AsidesError as problem:
            return str(problem)
    return None


def prepare_environment(url: str, folder: Path) -> None:
    """Send every request to the stage at `url`, here and in the commands of the page; keep the user's settings out."""
    settings = folder / "empty.toml"
    settings.touch()
    command = folder / "asides"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m asides "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    os.environ.update(
        ASIDES_STAGE=url,
        ASIDES_CONFIG=str(settings),
        ASIDES_STATE=str(folder / "state"),
        XDG_CONFIG_HOME=str(folder / "config"),
        PATH=f"{folder}{os.pathsep}{os.environ['PATH']}",
        PYTHONPATH=str(Path(asides.__file__).parent.parent),
        COLUMNS="100",
        NO_COLOR="1",
    )


def main(page: Path) -> int:
    """Run a page; return 1, with a report on standard error, when an example does not do what the page says."""
    script = PageScript()
    failures = 0
    with tempfile.TemporaryDirectory() as scratch, Stage(script) as stage:
        text = page.read_text(encoding="utf-8")
        prepare_environment(stage.url, Path(scratch))
        # Examples may write files.
        os.chdir(scratch)
        # A real module, since dataclasses look up where they were defined.
        module = sys.modules["example"] = ModuleType("example")
        for example in read(text):
            script.play(example.scenes)
            problem = run(example, module.__dict__, str(page))
            if problem is not None:
                failures += 1
                print(f"{page}, line {example.line}:\n{problem}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
