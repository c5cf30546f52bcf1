"""Runs `asides serve` as a process of its own, in a folder of its own, before a stage. Not a test."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import aiohttp

from asides.dialects.dialect import ServedRequest
from asides.values.parts import ToolCall, ToolResult
from asides_stage import Say

_SOURCES = Path(__file__).resolve().parents[4] / "src"
PATIENCE = 40.0
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


async def _stream(session: aiohttp.ClientSession, url: str, body: dict[str, Any], begun: asyncio.Event) -> str:
    """The whole text of a stream, if it came whole."""
    text, ended = "", False
    async with session.post(f"{url}/v1/chat/completions", json={**body, "stream": True}) as response:
        assert response.status == 200
        async for line in response.content:
            begun.set()
            if line.strip() == b"data: [DONE]":
                ended = True
            elif line.startswith(b"data: "):
                document = json.loads(line[6:])
                assert "error" not in document
                text += "".join(choice["delta"].get("content") or "" for choice in document["choices"])
    assert ended, "the stream was cut"
    return text


async def stream_many(url: str, count: int, when_begun: Callable[[], object]) -> list[str | BaseException]:
    begun = [asyncio.Event() for _ in range(count)]
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        body = {"model": "thinker", "messages": [{"role": "user", "content": "talk"}]}
        tasks = [asyncio.create_task(_stream(session, url, body, event)) for event in begun]
        await asyncio.gather(*(event.wait() for event in begun))
        when_begun()
        return await asyncio.gather(*tasks, return_exceptions=True)


# --- a model that thinks and calls a tool -----------------------------------------------------------------------------


def play_turns() -> Callable[[ServedRequest], Say]:
    """A model that thinks and calls a tool, slowly; once it has the result, it answers."""

    def play(request: ServedRequest) -> Say:
        messages = request.prompt.messages
        if messages[-1].role != "user" or any(isinstance(part, ToolResult) for part in messages[-1].parts):
            return Say(thinking="it is there", text="42")
        question = messages[-1].text
        call = ToolCall(f"call_{abs(hash(question)) % 10**9}", "look_up", {})
        return Say(thinking=f"plan of {question}", text=f"I look: {question}", tool_calls=(call,), pause=0.01, piece=5)

    return play


async def ask_until_killed(
    url: str, bodies: Sequence[dict[str, Any]], kill: Callable[[], object], whole: int
) -> list[dict[str, Any] | None]:
    """Ask one after the other, and kill at the moment when so many replies are whole. Returns the messages of those
    that came whole; None for the others."""
    acknowledged: list[dict[str, Any]] = []

    async def ask(session: aiohttp.ClientSession, body: dict[str, Any]) -> dict[str, Any] | None:
        text, calls, ended = "", dict[int, dict[str, Any]](), False
        try:
            async with session.post(f"{url}/v1/chat/completions", json={**body, "stream": True}) as response:
                async for line in response.content:
                    if line.strip() == b"data: [DONE]":
                        ended = True
                        acknowledged.append(body)
                        if len(acknowledged) == whole:
                            kill()
                    elif line.startswith(b"data: "):
                        for choice in json.loads(line[6:])["choices"]:
                            delta = choice["delta"]
                            text += delta.get("content") or ""
                            for part in delta.get("tool_calls") or ():
                                call = calls.setdefault(
                                    part["index"],
                                    {"id": "", "type": "function", "function": {"name": "", "arguments": ""}},
                                )
                                call["id"] += part.get("id") or ""
                                call["function"]["name"] += part["function"].get("name") or ""
                                call["function"]["arguments"] += part["function"].get("arguments") or ""
        except aiohttp.ClientError:
            pass
        return {"content": text, "tool_calls": list(calls.values())} if ended else None

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        tasks: list[asyncio.Task[dict[str, Any] | None]] = []
        for body in bodies:
            tasks.append(asyncio.create_task(ask(session, body)))
            await asyncio.sleep(0.02)
        return await asyncio.gather(*tasks)


def find_thinking(document: Any) -> list[str]:
    """The signed thinking in the assistant's turns of a request to Anthropic."""
    return [
        block["thinking"]
        for message in document["messages"]
        if message["role"] == "assistant"
        for block in message["content"]
        if block["type"] == "thinking" and block["signature"]
    ]
