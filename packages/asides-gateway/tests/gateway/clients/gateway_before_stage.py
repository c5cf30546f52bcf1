"""A real `asides serve` in its own process before one strict stage, and a notebook that models write in and read.

The stage plays every provider, by the script of the test under way: `before.play(…)`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from asides.dialects.dialect import ServedRequest
from asides.values.parts import ToolCall, ToolResult
from asides.values.thinking import Thought
from asides_stage import Hang, Say, Scene, Stage
from asides_stage.stage.actor import improvise
from asides_stage.stage.script import ScriptPlayer
from tests.integrations.upstreams import UPSTREAMS

Tool = Callable[..., str]
ROUTES = {
    "claude-notes": UPSTREAMS["gemini"],
    "gemini-notes": UPSTREAMS["anthropic"],
    "gpt-notes": UPSTREAMS["cohere"],
}
"""Names of the settings, each of a model of another maker."""


class GatewayBeforeStage:
    """The address of a gateway, and the stage behind it."""

    def __init__(self) -> None:
        self._script: Callable[[ServedRequest], Scene] = improvise
        self.stage = Stage(self._answer)
        self.url = ""

    def _answer(self, request: ServedRequest) -> Scene:
        return self._script(request)

    def play(self, *script: Scene | Callable[[ServedRequest], Scene]) -> None:
        """What the stage answers from now on: scenes in order, or a function; nothing: its actor."""
        [first, *_] = script or (improvise,)
        scenes: Any = script
        self._script = first if callable(first) else ScriptPlayer(scenes).next

    def hang(self) -> Callable[[], bool]:
        """Let the stage receive a request and say nothing. Returns what waits until it came, and then until its client
        has left."""
        self.play(Hang())
        stage, since = self.stage, len(self.stage.requests)
        states: list[int] = []

        def wait() -> bool:
            if not states:
                came = stage.wait_until(lambda: len(stage.requests) > since)
                states.append(stage.open_connections)
                return came
            return stage.wait_until(lambda: stage.open_connections < states[0], 2)

        return wait


@contextmanager
def serve_before_stage(folder: Path) -> Generator[GatewayBeforeStage, None, None]:
    """Run the gateway during the block, with nothing of whoever runs the tests."""
    before = GatewayBeforeStage()
    environ = {**os.environ, "HOME": str(folder), "ASIDES_STATE": str(folder / "state")}
    with before.stage:
        environ["ASIDES_STAGE"] = before.stage.url
        # The clients have attempts of their own.
        environ["ASIDES_RETRIES"] = "0"
        environ["ASIDES_CONFIG"] = str(folder / "asides.toml")
        (folder / "asides.toml").write_text(
            "".join(f'[routes.{name}]\ntargets = ["{target}"]\n' for name, target in ROUTES.items())
        )
        command = [sys.executable, "-m", "asides", "serve", "--port", "0"]
        piped: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True}
        with (
            (folder / "gateway.log").open("w") as log,
            subprocess.Popen(command, env=environ, cwd=folder, stderr=log, **piped) as process,
        ):
            try:
                assert process.stdout is not None
                before.url = process.stdout.readline().split()[-1]
                yield before
            finally:
                process.terminate()
                process.wait(20)
    said = (folder / "gateway.log").read_text()
    assert "Traceback" not in said, said


# --- a notebook -------------------------------------------------------------------------------------------------------

CANARY = "tamarillo"
"""A word that only the thinking has."""
NOTE = "buy seven kiwis"
CHECKED = f"The note says: {NOTE}"
DOUBT = "Are you sure?"
SURE = "Quite sure."
WRITE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "text": {"type": "string"}},
    "required": ["path", "text"],
}
READ_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
}
TOOLS = (
    ("write_note", "Write a note to a file.", WRITE_SCHEMA),
    ("read_note", "Read a note from a file.", READ_SCHEMA),
)
STEPS = 2


class Notebook:
    """Runs the tools for real, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.errand = f"Note {uuid4().hex}: write down that I have to buy seven kiwis, then check it."
        """The words of the user. No two are alike: of two equal conversations without ids, no state is restored."""

    def run(self, name: str, arguments: dict[str, Any]) -> str:
        tools: dict[str, Tool] = {"write_note": self.write_note, "read_note": self.read_note}
        return tools[name](**arguments)

    def write_note(self, path: str, text: str) -> str:
        """Write a note to a file.

        Args:
            path: The file.
            text: The note.
        """
        return f"{(self._folder / path).write_text(text)} characters written"

    def read_note(self, path: str) -> str:
        """Read a note from a file.

        Args:
            path: The file.
        """
        return (self._folder / path).read_text()


def run_errand(request: ServedRequest) -> Say:
    """Think and write a note, think and read it back, think and tell; then answer a doubt."""
    messages = request.prompt.messages
    if messages[-1].role == "user" and DOUBT in messages[-1].text:
        return Say(SURE, thinking=f"{CANARY}: I have read it.", piece=5)
    results = [part for message in messages for part in message.parts if isinstance(part, ToolResult)]
    thought = f"{CANARY} {len(results)}: a step."
    calls: Sequence[tuple[str, dict[str, Any]]] = (
        ("write_note", {"path": "note.txt", "text": NOTE}),
        ("read_note", {"path": "note.txt"}),
    )
    if len(results) < len(calls):
        name, arguments = calls[len(results)]
        return Say(thinking=thought, tool_calls=(ToolCall(f"call_{uuid4().hex[:20]}", name, arguments),), piece=5)
    return Say(f"The note says: {results[-1].text}", thinking=thought, piece=5)


def each_upstream_but(*dialects: str) -> pytest.MarkDecorator:
    """Parametrise over a model that thinks of each dialect, but not of the client's own."""
    others = {name: model for name, model in UPSTREAMS.items() if name.partition(",")[0] not in dialects}
    return pytest.mark.parametrize("model", others.values(), ids=others.keys())


def count_states(before: GatewayBeforeStage, since: int) -> list[int]:
    """How many turns of the model each request brought back with their reasoning state, from this request on."""
    return [
        sum(any(isinstance(part, Thought) or getattr(part, "seals", ()) for part in message.parts) for message in turns)
        for received in before.stage.requests[since:]
        if received.served is not None
        for turns in [[message for message in received.served.prompt.messages if message.role == "assistant"]]
    ]


EVERY_STATE = list(range(STEPS + 1))
"""What `count_states` finds in an errand when all of the state comes back, step after step."""
