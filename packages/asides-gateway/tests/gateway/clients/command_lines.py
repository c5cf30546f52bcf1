"""The command lines of other makers, as real processes, in front of `asides serve`, in front of the strict stage.

A model that follows a script looks at the tools that a client offers, and has it write a file and read it back. What a
client is told about the gateway comes from `asides connect`. No test is here (test_command_lines).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from asides.dialects.dialect import ServedRequest
from asides.values.messages import Message
from asides.values.parts import Text, ToolCall, ToolResult
from asides.values.thinking import Thought
from asides.values.tools import Tool
from asides_stage import Say, Stage
from tests.gateway.served import make_environment, serve

CANARY = "kumquat"
"""A word that only the thinking has."""
CONTENT = "plums 4711"
"""What the file says. The model has it only from the result of a tool."""
WRITE = "Please write the note."
READ = "Please read the note."
_SECONDS = 120
ONLY_THIS_MACHINE = {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1,localhost"}
"""Variables with which a program reaches no other machine."""


# --- the model --------------------------------------------------------------------------------------------------------


class NoteModel:
    """A model that thinks, writes a file with the client's own tool when asked to, and reads it when asked to."""

    def __init__(self, note: Path) -> None:
        self._note = note

    def __call__(self, request: ServedRequest) -> Say:
        """Answer a request. Requests without tools are the client's own business, such as a title."""
        messages = request.prompt.messages
        tools = {tool.name: tool for tool in request.prompt.tools}
        place, task = _find_task(messages)
        if not tools or not task:
            return Say("A note")
        thought = f"{CANARY} {len(messages)}: one step after the other."
        results = [part for message in messages[place:] for part in message.parts if isinstance(part, ToolResult)]
        if not results:
            name, arguments = self._choose(tools, task)
            # No id comes twice, as with real servers.
            return Say(thinking=thought, tool_calls=(ToolCall(f"call_{uuid4().hex[:20]}", name, arguments),))
        result = str(results[-1].text)
        said = "It is written." if task == WRITE else f"It says: {CONTENT if CONTENT in result else result}"
        return Say(said, thinking=thought)

    def _choose(self, tools: dict[str, Tool], task: str) -> tuple[str, dict[str, Any]]:
        """A tool that the client offers, and the arguments that it wants."""
        path, line = str(self._note), f"{CONTENT}\n"
        shell = f"printf '{CONTENT}\\n' > '{path}'" if task == WRITE else f"cat '{path}'"
        names = ("Write", "write_file", "write") if task == WRITE else ("Read", "read_file", "read")
        for name in names:
            if name in tools:
                fields = ("file_path", "filePath", "absolute_path", "path")
                field = next(field for field in fields if field in tools[name].parameters["properties"])
                return name, {field: path} | ({"content": line} if task == WRITE else {})
        if "apply_patch" in tools and task == WRITE and "patchText" in tools["apply_patch"].parameters["properties"]:
            patch = f"*** Begin Patch\n*** Add File: {path}\n+{CONTENT}\n*** End Patch"
            return "apply_patch", {"patchText": patch}
        if "exec_command" in tools:
            return "exec_command", {"cmd": shell}
        raise AssertionError(f"no tool fits: {', '.join(tools)}")


def _find_task(messages: Sequence[Message]) -> tuple[int, str]:
    """The last thing that the person asked for, and the place behind it."""
    for place in range(len(messages), 0, -1):
        message = messages[place - 1]
        if message.role == "user":
            words = "".join(part.text for part in message.parts if isinstance(part, Text))
            for task in (READ, WRITE):
                if task in words:
                    return place, task
    return 0, ""


def list_lost_states(stage: Stage, *, since_task: bool = False) -> list[str]:
    """The requests in which a turn with a call came back without its thinking or its seal. Every provider here wants
    them before calls; some want nothing back of a last answer. `since_task`: only of turns behind the person's words.
    """
    lost: list[str] = []
    for number, received in enumerate(stage.requests):
        if received.served is None or not received.served.prompt.tools:
            continue
        messages = received.served.prompt.messages
        messages = messages[_find_task(messages)[0] :] if since_task else messages
        turns = [message.parts for message in messages if message.role == "assistant"]
        kept = [
            any(isinstance(part, Thought) or getattr(part, "seals", ()) for part in parts)
            for parts in turns
            if any(isinstance(part, ToolCall) for part in parts)
        ]
        if not all(kept):
            lost.append(f"request {number}: {kept}")
    return lost


# --- the processes ----------------------------------------------------------------------------------------------------


class Ran(NamedTuple):
    """What a process printed."""

    code: int
    out: str
    err: str


class Desk:
    """A home folder, a folder to work in, and a gateway: what a person has who runs a client."""

    def __init__(self, folder: Path, stage: Stage | None = None) -> None:
        self._folder = folder
        self.home = folder / "home"
        self.work = folder / "work"
        self.note = self.work / "note.txt"
        for each in (self.home, self.work):
            each.mkdir(parents=True, exist_ok=True)
        self.url = ""
        self._stage = stage

    @property
    def environment(self) -> dict[str, str]:
        """The variables of a person who has set none."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "TERM": "dumb",
            "LANG": "C.UTF-8",
        }

    @contextmanager
    def serve(self) -> Generator[None]:
        """Run `asides serve` for as long as the block: before the stage, if there is one."""
        staged = {} if self._stage is None else {"ASIDES_STAGE": self._stage.url}
        with serve(self._folder, env=staged) as served:
            self.url = served.url
            yield

    def connect(self, client: str, model: str, *options: str) -> str:
        """Run `asides connect`, and return what it prints for the shell."""
        words = [sys.executable, "-m", "asides", "connect", client, "--url", self.url, "--model", model, *options]
        ran = self._run(words, make_environment(self._folder))
        assert ran.code == 0, ran.err
        return ran.out

    def run(self, lines: str, words: Sequence[str], **variables: str) -> Ran:
        """Run a client in a shell that has read these lines."""
        command = ["bash", "-c", 'eval "$1"; shift; exec "$@"', "bash", lines, *words]
        return self._run(command, {**self.environment, **variables})

    def _run(self, words: Sequence[str], environment: dict[str, str]) -> Ran:
        ran = subprocess.run(
            words,
            env=environment,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        return Ran(ran.returncode, ran.stdout, ran.stderr)
