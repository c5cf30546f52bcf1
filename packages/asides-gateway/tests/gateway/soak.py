"""Several gateways on one store behind a round-robin proxy, and many conversations through them while they are killed.

Used by test_instances and scripts/soak.py. Not a test.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from asides.dialects.dialect import ServedRequest
from asides.values.messages import Message
from asides.values.parts import Text, ToolCall
from asides.values.thinking import Thought
from asides_stage import Say
from asides_stage.stage import Stage
from tests.gateway.served import PATIENCE, fetch, make_environment
from tests.gateway.soak_budgets import QUESTION, REPLY, Spender, make_paid_keys, read_spent
from tests.laws.relay_clients import CLIENTS, Ask, Unreadable, WireClient
from tests.servers import find_free_port

_NGINX = Path(__file__).resolve().parents[4] / "deploy" / "nginx.conf"
TURNS = 5
TENANTS = tuple(f"sk-gateway-of-tenant-{number}" for number in range(4))
# Providers, and clients whose dialect is another one: all that goes back to the provider, the vault has to give.
HOUSES = {
    "anthropic:claude-sonnet-4-5": "",
    "anthropic:claude-opus-5-5": "",
    "openai-responses:gpt-5": "/v1",
    "google:gemini-3-pro-preview": "/v1beta",
    "deepseek:deepseek-v4-pro": "/v1",
}
PRICED = ("anthropic:claude-sonnet-4-5", "openai-responses:gpt-5")
"""Those of them whose price is known, so that keys with a budget may ask them."""
_OWN_DIALECT = {
    "anthropic": "anthropic",
    "openai-responses": "openai_responses",
    "google": "gemini",
    "deepseek": "openai_chat",
}
_SPEAKERS = ("openai_chat", "openai_chat", "ollama", "anthropic", "openai_responses", "gemini")
_NUMBER = re.compile(r"conversation (\d+)\b")
_PLAN = re.compile(r"plan (\d+)\.(\d+)")


# --- the model --------------------------------------------------------------------------------------------------------


class Model:
    """Thinks and calls a tool, turn after turn, and notes what of its thinking came back. Safe in threads."""

    def __init__(self, pause: float = 0.0, *, says_who: bool = False) -> None:
        """`says_who`: the words of each conversation are its own."""
        self._says_who = says_who
        self.asked = 0
        self.lost: list[str] = []
        """Requests in which state of an earlier turn was missing."""
        self.mixed: list[str] = []
        """Requests with state of another conversation."""
        self.harmed: set[int] = set()
        """The numbers of the conversations with one of the two."""
        self._pause = pause

    def play(self, request: ServedRequest) -> Say:
        """Answer a request. The thinking of each conversation is its own; the words need not be."""
        messages = request.prompt.messages
        if messages[-1].text == QUESTION:
            return REPLY
        number = int(_find_number(messages))
        turns = [message for message in messages if message.role == "assistant"]
        self.asked += 1
        bare = [place for place, turn in enumerate(turns) if not _has_state(turn)]
        if bare:
            self.lost.append(f"conversation {number}: turns {bare} of {len(turns)} ({request.model})")
            self.harmed.add(number)
        strange = {plan for turn in turns for plan in _find_plans(turn) if plan[0] != number}
        if strange:
            self.mixed.append(f"conversation {number} got {strange}")
            self.harmed.add(number)
        thinking = f"plan {number}.{len(turns)} of what to do next"
        if len(turns) + 1 >= TURNS:
            return Say(thinking=thinking, text="It is done.", piece=8, pause=self._pause)
        call = ToolCall(f"call_{secrets.token_hex(8)}", "look", {"at": len(turns)})
        text = f"I look for {number}." if self._says_who else "I look."
        return Say(thinking=thinking, text=text, tool_calls=(call,), piece=8, pause=self._pause)


def _find_number(messages: Sequence[Message]) -> str:
    for message in messages:
        if message.role == "user" and (found := _NUMBER.search(message.text)):
            return found[1]
    raise AssertionError("the question is gone")


def _has_state(turn: Message) -> bool:
    return any(
        isinstance(part, Thought) or (isinstance(part, (Text, ToolCall)) and bool(part.seals)) for part in turn.parts
    )


def _find_plans(turn: Message) -> set[tuple[int, int]]:
    texts = " ".join(part.text for part in turn.parts if isinstance(part, Thought))
    return {(int(number), int(place)) for number, place in _PLAN.findall(texts)}


# --- instances --------------------------------------------------------------------------------------------------------


class Instance:
    """One gateway, which may be killed and started again at the same port."""

    def __init__(self, folder: Path, number: int, environment: Mapping[str, str]) -> None:
        self.port = find_free_port()
        self.log_file = folder / f"log-{number}.txt"
        self._folder = folder
        self._state = folder / f"state-{number}"
        self._environment = {**environment, "ASIDES_STATE": str(self._state)}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start it."""
        self._state.mkdir(exist_ok=True, mode=0o700)
        words = ["serve", "--port", str(self.port), "--no-page", "--drain", "20"]
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "asides", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env=self._environment,
                cwd=self._folder,
            )

    def wait(self) -> None:
        """Wait until it answers."""
        assert self._process is not None
        deadline = time.monotonic() + PATIENCE
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the gateway does not start: {self.log}")
            time.sleep(0.02)

    def end(self, number: int) -> int:
        """Send a signal, and wait for the end."""
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(PATIENCE)

    def close(self) -> None:
        """Kill it, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(PATIENCE)

    @property
    def log(self) -> str:
        """What it has written to stderr."""
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def get(self, path: str) -> tuple[int, str]:
        """The status and the body of an answer."""
        from urllib.request import Request

        return fetch(Request(f"http://127.0.0.1:{self.port}{path}", headers={"authorization": f"Bearer {TENANTS[0]}"}))


@contextmanager
def instances_running(
    folder: Path, stage_url: str, store: str | None, redis: str | None, count: int = 2
) -> Generator[list[Instance]]:
    """Run gateways on one store. Without a URL, the store is a folder that they share."""
    root = stage_url.removesuffix("/v1")
    tables = "".join(
        # The address is another one, so the row has to say that the prices are those of the maker.
        f'[providers.{name}]\nbase_url = "{root}{base}"\nkey_env = "STAGE_KEY"\nprices = "{name.partition("-")[0]}"\n'
        for name, base in {house.partition(":")[0]: base for house, base in HOUSES.items()}.items()
    )
    (folder / "asides.toml").write_text(tables, encoding="utf-8")
    shared = {"ASIDES_STORE": store} if store else {"ASIDES_GATEWAY_FOLDER": str(folder / "shared")}
    shared |= {"ASIDES_GATEWAY_REDIS": redis} if redis else {}
    environment = make_environment(
        folder, {**shared, "ASIDES_RELAY_KEY": "5a" * 32, "ASIDES_GATEWAY_KEY": ",".join(TENANTS)}
    )
    instances = [Instance(folder, number, environment) for number in range(count)]
    try:
        for instance in instances:
            instance.launch()
        for instance in instances:
            instance.wait()
        yield instances
    finally:
        for instance in instances:
            instance.close()


# --- the proxy --------------------------------------------------------------------------------------------------------


@contextmanager
def proxy_running(folder: Path, ports: Sequence[int]) -> Generator[str]:
    """A round-robin proxy: nginx with the settings of deploy/, if it is installed; else one of our own."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        with _own_proxy(ports) as port:
            yield f"http://127.0.0.1:{port}"
        return
    port = find_free_port()
    text = _NGINX.read_text(encoding="utf-8").replace("listen 8080;", f"listen 127.0.0.1:{port};")
    for number, each in enumerate(ports, 1):
        text = text.replace(f"gateway-{number}:4242", f"127.0.0.1:{each}")
    place = folder / "nginx"
    place.mkdir(mode=0o755)
    (place / "nginx.conf").write_text("daemon off;\n" + text.replace("/tmp/", f"{place}/"), encoding="utf-8")
    with subprocess.Popen(
        [program, "-c", str(place / "nginx.conf"), "-p", str(place), "-e", "stderr"], stderr=subprocess.DEVNULL
    ) as process:
        try:
            _wait_for_port(port)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


@contextmanager
def _own_proxy(ports: Sequence[int]) -> Generator[int]:
    """Copies bytes to the next port that takes a connection."""
    loop = asyncio.new_event_loop()
    turn = iter(range(10**12))

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError):
                while data := await reader.read(65536):
                    writer.write(data)
                    await writer.drain()
        finally:
            with suppress(OSError, RuntimeError):
                writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = next(turn)
        for number in range(len(ports)):
            try:
                there = await asyncio.open_connection("127.0.0.1", ports[(first + number) % len(ports)])
            except OSError:
                continue
            await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))
            return
        writer.close()

    server = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield int(server.sockets[0].getsockname()[1])
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result(5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
        loop.close()


async def _end(server: asyncio.Server) -> None:
    """Stop listening and cancel open connections, so that nothing is left to the garbage collector."""
    server.close()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0.05)  # transports close in the next steps of the loop


def _wait_for_port(port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)
    raise AssertionError("the proxy does not listen")


# --- the clients ------------------------------------------------------------------------------------------------------


class Talk(NamedTuple):
    """A conversation to lead."""

    number: int
    model: str
    client: WireClient
    key: str


def plan_talks(count: int, seed: int, paying: Sequence[str] = (), *, first: int = 0) -> Iterator[Talk]:
    """Conversations of clients that send back nothing of the thinking, with providers of another dialect. `paying`:
    keys with a budget, which have a part of them."""
    chance = random.Random(seed)
    keys = (*TENANTS, *paying)
    for number in range(first, first + count):
        key = keys[number % len(keys)]
        model = chance.choice(PRICED if key in paying else sorted(HOUSES))
        own = _OWN_DIALECT[model.partition(":")[0]]
        speaker = chance.choice([name for name in _SPEAKERS if name != own])
        yield Talk(number, model, CLIENTS[speaker]("unthinking"), key)


class Tally:
    """What clients saw."""

    def __init__(self) -> None:
        self.turns = 0
        self.finished = 0
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        """What must not happen."""
        self.slowest = 0.0
        self.stories: dict[int, list[str]] = {}
        """What happened to the conversations of which a connection was cut."""

    def note_cut(self, talk: Talk, turn: int, what: str) -> None:
        """Count a connection that ended before its reply."""
        self.counts[f"cut: {what}"] += 1
        story = self.stories.setdefault(talk.number, [f"{talk.client.dialect} asks {talk.model}"])
        story.append(f"turn {turn} cut at {time.strftime('%H:%M:%S')} ({what})")

    @property
    def cuts(self) -> int:
        """How often a connection ended before its reply."""
        return sum(count for name, count in self.counts.items() if name.startswith("cut"))


class _Cut(Exception):
    """The connection ended before the reply did."""


async def _ask_once(session: aiohttp.ClientSession, url: str, talk: Talk, ask: Ask) -> tuple[int, bytes]:
    path, query = talk.client.address(ask)
    body = json.dumps(talk.client.write(ask)).encode()
    # Without a session, the state of a turn whose reply was cut off and asked for again is not used.
    session_id = {"x-session-id": f"talk-{talk.number}"}
    headers = {"content-type": "application/json", "authorization": f"Bearer {talk.key}", **session_id}
    try:
        async with session.post(f"{url}{path}{'?' + query if query else ''}", data=body, headers=headers) as response:
            return response.status, await response.read()
    except (aiohttp.ClientError, ConnectionError) as problem:
        raise _Cut(type(problem).__name__) from None


async def lead(session: aiohttp.ClientSession, url: str, talk: Talk, tally: Tally, most_attempts: int = 8) -> None:
    """Lead a conversation to its end. A turn that was cut is asked again, as clients do."""
    talk.client.say(f"conversation {talk.number}: look around")
    for turn in range(TURNS):
        ask = Ask(talk.model, stream=(talk.number + turn) % 3 != 0, thinking="high")
        began = time.monotonic()
        for attempt in range(most_attempts):
            if attempt:
                await asyncio.sleep(0.1 * attempt)
            try:
                status, body = await _ask_once(session, url, talk, ask)
                if status in (502, 504):
                    # The proxy says that the connection to a gateway broke.
                    raise _Cut(f"status {status}")
                if status != 200:
                    tally.problems.append(f"conversation {talk.number}.{turn}: {status} {body[:300]!r}")
                    return
                heard = talk.client.hear(body, ask)
            except _Cut as problem:
                tally.note_cut(talk, turn, str(problem))
            except Unreadable as problem:
                if "too early" not in str(problem):
                    tally.problems.append(f"conversation {talk.number}.{turn}: {problem}")
                    return
                tally.note_cut(talk, turn, "inside a stream")
            else:
                break
        else:
            tally.problems.append(f"conversation {talk.number}.{turn}: cut {most_attempts} times")
            return
        tally.slowest = max(tally.slowest, time.monotonic() - began)
        tally.turns += 1
        expected = "It is done." if turn == TURNS - 1 else "I look"
        if not heard.text.startswith(expected) or bool(heard.calls) != (turn < TURNS - 1) or "plan" in heard.text:
            tally.problems.append(f"conversation {talk.number}.{turn}: {heard.text!r} with {len(heard.calls)} calls")
            return
        if heard.calls:
            talk.client.answer({call.id: f"seen {turn}" for call in heard.calls})
    tally.finished += 1


@asynccontextmanager
async def _disturbed(disturb: Callable[[threading.Event], None] | None) -> AsyncGenerator[None]:
    """Something that goes on in a thread, as long as the block. What it raises, the block raises."""
    ended = threading.Event()
    task = None if disturb is None else asyncio.create_task(asyncio.to_thread(disturb, ended))
    try:
        yield
    finally:
        ended.set()
        if task is not None:
            await task


async def lead_all(
    url: str,
    talks: Iterator[Talk],
    tally: Tally,
    *,
    at_once: int,
    disturb: Callable[[threading.Event], None] | None = None,
    spender: Spender | None = None,
    note: Callable[[], None] = lambda: None,
) -> None:
    """Lead conversations, so many at a time, while something disturbs and somebody spends. `note` is called after each
    of them.
    """
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True), timeout=aiohttp.ClientTimeout(total=PATIENCE)
    ) as session:

        async def work() -> None:
            for talk in talks:
                await lead(session, url, talk, tally)
                note()

        async with _disturbed(disturb), asyncio.TaskGroup() as others:
            spending = None if spender is None else others.create_task(spender.spend(session, url))
            await asyncio.gather(*(work() for _ in range(at_once)))
            if spending is not None:
                spending.cancel()


# --- disturbances -----------------------------------------------------------------------------------------------------


def kill_at_random(
    instances: Sequence[Instance], tally: Tally, seed: int, pause: tuple[float, float]
) -> Callable[[threading.Event], None]:
    """Kill one instance after the other, with SIGKILL or by a rolling restart; one always runs."""
    chance = random.Random(seed)

    def disturb(ended: threading.Event) -> None:
        # Short soaks are disturbed too.
        for round_ in range(10**9):
            if ended.wait(chance.uniform(*pause)):
                return
            instance = instances[round_ % len(instances)]
            if round_ % 3 == 2:
                before = tally.cuts
                code = instance.end(signal.SIGTERM)
                tally.counts["restarts"] += 1
                tally.counts["restarts: replies cut"] += tally.cuts - before
                if code != 0:
                    tally.problems.append(f"a rolling restart ended with {code}: {instance.log[-500:]}")
            else:
                instance.end(signal.SIGKILL)
                tally.counts["kills"] += 1
            instance.start()

    return disturb


class Soak(NamedTuple):
    """What came of a soak."""

    tally: Tally
    model: Model
    refused: list[str]
    seconds: float
    logs: str
    spent: list[tuple[Decimal, Decimal]]
    """What each key with a budget has spent, and its budget."""
    spender: Spender | None
    """Somebody whose budget does not last."""

    def check(self, count: int, *, may_lose: bool = False) -> None:
        """The laws: every conversation ended, none was refused, nothing was lost or mixed up."""
        assert self.tally.problems == [], self.tally.problems[:5]
        assert self.tally.finished == count
        assert self.model.mixed == []
        assert [pair for pair in self.spent if not 0 < pair[0] <= pair[1]] == []
        if self.spender is not None:
            self.spender.check(self.spent[-1][0])
        if not may_lose:
            assert self.refused == [], self.refused[:5]
            assert self.model.lost == [], self.model.lost[:5]
        assert "Traceback" not in self.logs, self.logs[-3000:]

    def list_stories(self) -> list[str]:
        """What happened to each conversation whose state was lost or is another's."""
        stories = self.tally.stories
        return [
            f"conversation {number}: {', '.join(stories.get(number, ['no connection was cut']))}"
            for number in sorted(self.model.harmed)
        ]

    def describe(self) -> dict[str, Any]:
        """The figures."""
        return {
            "conversations": self.tally.finished,
            "turns": self.tally.turns,
            "seconds": round(self.seconds, 1),
            "turns per second": round(self.tally.turns / max(self.seconds, 0.001), 1),
            "asked of the model": self.model.asked,
            "refused by the stage": len(self.refused),
            "turns without their state": len(self.model.lost),
            "state of others": len(self.model.mixed),
            "slowest turn, seconds": round(self.tally.slowest, 2),
            "problems": len(self.tally.problems),
            "spent of budgets": [f"{spent} of {budget} USD" for spent, budget in self.spent],
            "answers to the one whose budget does not last": {} if self.spender is None else dict(self.spender.answers),
            **dict(self.tally.counts),
        }


def soak(
    folder: Path,
    count: int,
    store: str | None,
    redis: str | None,
    *,
    seed: int = 1,
    at_once: int = 8,
    pause: tuple[float, float] = (0.2, 0.6),
    speed: float = 0.01,
    disturb: Callable[[list[Instance], Tally], Callable[[threading.Event], None]] | None = None,
    note: Callable[[Tally, Model], None] = lambda *_: None,
) -> Soak:
    """Lead conversations through two instances that are killed at random, or disturbed in another way."""
    model, tally = Model(speed), Tally()
    refused: list[str] = []
    paid = [] if store is None else make_paid_keys(store, ("500", "500", str(max(1, count // 100))))
    spender = Spender(paid.pop()) if paid else None
    with Stage(model.play) as stage:
        # The stage remembers every request, and a long soak has many: what matters of them is taken out.
        log = stage._log
        log._on_refusal = lambda refusal: refused.append(refusal.text)
        with instances_running(folder, stage.url, store, redis) as instances:
            way = disturb(instances, tally) if disturb else kill_at_random(instances, tally, seed, pause)
            with proxy_running(folder, [instance.port for instance in instances]) as url:
                began = time.monotonic()

                def tell() -> None:
                    log._requests.clear()
                    note(tally, model)

                talks = plan_talks(count, seed, [each.key for each in paid])
                asyncio.run(lead_all(url, talks, tally, at_once=at_once, disturb=way, spender=spender, note=tell))
                seconds = time.monotonic() - began
            logs = "".join(instance.log for instance in instances)
    if spender is not None:
        paid.append(spender.paid)
    spent = [] if store is None else [(read_spent(store, each.id), each.budget) for each in paid]
    return Soak(tally, model, refused, seconds, logs, spent, spender)
