"""The relay: what forwarding and translating cost per chunk, and the official clients over it and alone.

`relay(…)` and `doors(…)` make the tables. Both run this module in one process of the environment of asides
(`python -m bench.relay TABLE BASE_URL ROUNDS CHUNKS`), so that every figure of a table is of the same process: each
round runs every entry once, and a ratio is the median of the ratios of all rounds. Every character is checked, outside
of what is timed.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any, cast
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.contestant import Sink
from bench.ours import TARGETS, locate
from bench.payloads import QUESTION, Expected, count_expected
from bench.processes import ContestantFailed, run_module
from bench.tables import Row, Table

# Callers of the relay, and providers behind it.
CALLERS = ("chat", "responses", "messages", "gemini")
UPSTREAM = ("chat", "responses", "messages", "gemini", "bedrock", "cohere", "ollama")
# The dialects by our names, and the paths of a stream.
NAMES = {
    "chat": "openai_chat",
    "responses": "openai_responses",
    "messages": "anthropic",
    "gemini": "gemini",
    "bedrock": "bedrock",
    "cohere": "cohere",
    "ollama": "ollama",
}
PATHS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
    "gemini": "/v1beta/models/{}:streamGenerateContent",
    "bedrock": "/model/{}/converse-stream",
    "cohere": "/v2/chat",
    "ollama": "/api/chat",
}
SECONDS_PER_MEASUREMENT = 0.15
TRICKLE_CHUNKS = 500


@dataclass
class Entry:
    """Something to measure: `run` reads one answer, `count` says what arrived with it, when nothing is timed."""

    name: str
    run: Callable[[], Any]
    count: Callable[[], Expected]
    expected: Expected
    chunks: int
    facts: Row = field(default_factory=dict)
    repeats: int = 1
    seconds: list[float] = field(default_factory=list)

    def measure(self) -> None:
        gc.collect()
        began = time.process_time()
        for _ in range(self.repeats):
            self.run()
        self.seconds.append((time.process_time() - began) / self.repeats)

    def warm_up(self, seconds: float) -> None:
        self.measure()
        self.measure()
        self.repeats = max(1, min(400, int(seconds / max(self.seconds.pop(), 1e-6))))
        self.seconds.clear()

    def row(self, base: Entry | None) -> Row:
        got = self.count()
        lost = "all" if got == self.expected else f"LOST {tuple(got)} of {tuple(self.expected)}"
        each = [1e6 * seconds / self.chunks for seconds in self.seconds]
        row: Row = {"name": self.name, **self.facts, "cpu_us": median(each), "least_us": min(each), "delivered": lost}
        if base is not None:
            ratios = [mine / theirs for mine, theirs in zip(self.seconds, base.seconds, strict=True)]
            more = [
                1e6 * (mine - theirs) / self.chunks for mine, theirs in zip(self.seconds, base.seconds, strict=True)
            ]
            row |= {"times": median(ratios), "more_us": median(more)}
        return row


def race(entries: list[Entry], rounds: int, seconds: float = SECONDS_PER_MEASUREMENT) -> None:
    """Measure all, once per round, in rotating order."""
    for entry in entries:
        entry.warm_up(seconds)
    for number in range(rounds):
        shift = number * len(entries) // max(1, rounds)
        for entry in entries[shift:] + entries[:shift]:
            entry.measure()


# --- forwarding and translating ---------------------------------------------------------------------------------------


def write_request(caller: str, model: str) -> tuple[str, str, bytes]:
    """The path, the query and the body with which a client of this dialect asks for a stream."""
    asked: Row = {"role": "user", "content": QUESTION}
    bodies: dict[str, Row] = {
        "chat": {"model": model, "messages": [asked], "stream": True, "stream_options": {"include_usage": True}},
        "responses": {"model": model, "input": QUESTION, "stream": True, "reasoning": {"summary": "auto"}},
        "messages": {"model": model, "max_tokens": 8192, "messages": [asked], "stream": True},
        "gemini": {
            "contents": [{"role": "user", "parts": [{"text": QUESTION}]}],
            "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
        },
        "bedrock": {"messages": [{"role": "user", "content": [{"text": QUESTION}]}]},
        "cohere": {"model": model, "messages": [asked], "stream": True},
        "ollama": {"model": model, "messages": [asked], "stream": True},
    }
    query = "alt=sse" if caller == "gemini" else ""
    return PATHS[caller].format(quote(model, safe="")), query, json.dumps(bodies[caller]).encode()


class Relayed:
    """Relays one request over and over, blocking or awaiting."""

    def __init__(self, caller: str, upstream: str, profile: str, base_url: str, mode: str) -> None:
        from msgspec.structs import replace

        from asides.dialects import plain_row
        from asides.flows.build_call import CallBuilder
        from asides.options import Options
        from asides.providers.provider import Provider
        from asides.relay.relay import Relay, RelayConfig
        from asides.relay.relay_request import RelayRequest

        self._caller = caller
        options: Any = locate(base_url, profile, upstream)
        model: str = TARGETS[upstream][0]
        rows: tuple[Provider, ...] = ()
        if upstream == "chat":
            # A host whose answers need no search for tags, so that it can be forwarded.
            row = plain_row("openai_chat")
            rows = (replace(row, name="plain-chat", quirks=replace(row.quirks, tags=())),)
            model = "plain-chat:any"
        self._relay = Relay(CallBuilder(cast("Options", options), providers=rows), RelayConfig())
        path, query, body = write_request(caller, model)
        headers = {"content-type": "application/json"}
        self._request = RelayRequest(NAMES[caller], "POST", path, query, headers, body)
        self._mode = mode
        self.body = b""
        self.outcome: Any = None

    def run(self) -> None:
        if self._mode == "async":
            LOOP.run_until_complete(self._run_async())
            return
        from asides.relay.streams.relay_stream import RelayStream

        stream = RelayStream(self._relay.begin(self._request), TRANSPORTS.blocking())
        self._check(stream.start().status)
        self.body = b"".join(stream)
        self.outcome = stream.outcome

    async def _run_async(self) -> None:
        from asides.relay.streams.relay_stream import AsyncRelayStream

        stream = AsyncRelayStream(self._relay.begin(self._request), TRANSPORTS.awaiting())
        start = await stream.start()
        self.body = b"".join([piece async for piece in stream])
        self.outcome = stream.outcome
        self._check(start.status)

    def _check(self, status: int) -> None:
        if status != 200:
            raise RuntimeError(f"{status}: {self.outcome}")

    def count(self) -> Expected:
        """Count what the last response says, by reading it again as its caller would."""
        import asides

        reply = asides.decode(NAMES[self._caller], self.body, streaming=True)
        arguments = sum(len(_compact(call.arguments)) for call in reply.tool_calls)
        thinking = sum(len(part.text) for part in reply.parts if isinstance(part, asides.Thought))
        return Expected(thinking, len(reply.text), arguments)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class _Transports:
    """The transports of asides, made when they are first used."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def blocking(self) -> Any:
        from asides.transports.http_sync import HttpTransport

        return self._made.setdefault("sync", None) or self._keep("sync", HttpTransport())

    def awaiting(self) -> Any:
        from asides.transports.http_async import AsyncHttpTransport

        return self._made.setdefault("async", None) or self._keep("async", AsyncHttpTransport())

    def _keep(self, name: str, made: Any) -> Any:
        self._made[name] = made
        return made


TRANSPORTS = _Transports()
LOOP = asyncio.new_event_loop()


def measure_relay(base_url: str, rounds: int, chunks: int) -> list[Row]:
    """Each caller over each provider. The base of a row is the same provider, forwarded to a caller of its dialect."""
    rows: list[Row] = []
    for pace, mode, number in (
        ("burst", "sync", chunks),
        ("burst", "async", chunks),
        ("trickle", "async", TRICKLE_CHUNKS),
    ):
        callers = CALLERS if pace == "burst" else CALLERS[:1]
        profile = f"{pace}-{number}"
        for upstream in UPSTREAM if pace == "burst" else UPSTREAM[:3]:
            entries: list[tuple[Entry, Relayed]] = []
            for caller in dict.fromkeys((upstream, *callers)):
                relayed = Relayed(caller, upstream, profile, base_url, mode)
                expected = count_expected(upstream, profile)
                facts = {"pace": pace, "mode": mode, "caller": caller, "upstream": upstream}
                entry = Entry(f"{caller} → {upstream}", relayed.run, relayed.count, expected, number, facts)
                entries.append((entry, relayed))
            race([entry for entry, _ in entries], rounds if pace == "burst" else 2, 0.001 if pace == "trickle" else 0.1)
            base, first = entries[0]
            for entry, relayed in entries:
                row = entry.row(None if entry is base or first.outcome.mode != "forward" else base)
                rows.append({**row, "how": relayed.outcome.mode})
    return rows


# --- official clients -------------------------------------------------------------------------------------------------


def measure_doors(base_url: str, rounds: int, chunks: int) -> list[Row]:
    """Each official client alone, over our transport at the same server, and over it with another provider."""
    rows: list[Row] = []
    for dialect, other in (("chat", "messages"), ("responses", "chat"), ("messages", "chat")):
        for profile, unit in (
            (f"burst-{chunks}", chunks),
            (f"trickle-{TRICKLE_CHUNKS}", TRICKLE_CHUNKS),
            ("body-2048", 1),
        ):
            for mode in ("sync", "async"):
                if profile.startswith("trickle") and mode == "sync":
                    continue
                entries = [
                    _client(kind, dialect, upstream, profile, unit, mode, base_url)
                    for kind, upstream in (("alone", dialect), ("asides", dialect), ("asides", other))
                ]
                race(entries, rounds if not profile.startswith("trickle") else 2, 0.1)
                rows += [entry.row(None if entry is entries[0] else entries[0]) for entry in entries]
    return rows


def _client(kind: str, dialect: str, upstream: str, profile: str, unit: int, mode: str, base_url: str) -> Entry:
    from bench.peers import vendors

    client = _make_client(kind, dialect, upstream, profile, mode, base_url)
    model = (
        TARGETS[upstream][0]
        if upstream != dialect
        else {"chat": "deepseek-reasoner"}.get(dialect, TARGETS[dialect][0].partition(":")[2])
    )
    is_whole = profile.startswith("body")
    messages: Any = vendors.MESSAGES
    calls: dict[str, tuple[Callable[..., Any], Row, Any, Any]] = {
        "chat": (
            lambda **more: client.chat.completions.create(model=model, messages=messages, **more),
            vendors.STREAMED,
            vendors.take_chat_chunk,
            vendors.take_completion,
        ),
        "responses": (
            lambda **more: client.responses.create(model=model, input=QUESTION, reasoning={"summary": "auto"}, **more),
            {"stream": True},
            vendors.take_response_event,
            vendors.take_response,
        ),
        "messages": (
            lambda **more: client.messages.create(
                model=model, max_tokens=8192, messages=messages, **vendors.THINKING, **more
            ),
            {"stream": True},
            vendors.take_message_event,
            vendors.take_message,
        ),
    }
    create, streamed, take_item, take_whole = calls[dialect]
    last: list[Sink] = [Sink()]

    def read() -> None:
        sink = last[0] = Sink()
        if is_whole:
            take_whole(sink, create())
            return
        for item in create(**streamed):
            take_item(sink, item)

    async def read_async() -> None:
        sink = last[0] = Sink()
        if is_whole:
            take_whole(sink, await create())
            return
        async for item in await create(**streamed):
            take_item(sink, item)

    run = (lambda: LOOP.run_until_complete(read_async())) if mode == "async" else read
    name = {"alone": f"{dialect}: the official client alone"}.get(kind, f"{dialect}: asides → {upstream}")
    facts = {"mode": mode, "profile": profile}
    expected = count_expected(upstream, profile)
    return Entry(name, run, lambda: Expected(*last[0].characters()), expected, unit, facts)


def _make_client(kind: str, dialect: str, upstream: str, profile: str, mode: str, base_url: str) -> Any:
    """An official client that asks the server, or one of ours that asks a provider there."""
    is_anthropic = dialect == "messages"
    name = "anthropic" if is_anthropic else "openai"
    names = ("Anthropic", "AsyncAnthropic") if is_anthropic else ("OpenAI", "AsyncOpenAI")
    address = f"{base_url}/{profile}" if is_anthropic else f"{base_url}/{profile}/v1"
    package = import_module(name if kind == "alone" else f"asides.{name}")
    make = getattr(package, names[mode == "async"])
    more: Row = {"asides": locate(base_url, profile, upstream)} if upstream != dialect else {}
    return make(api_key="x", base_url=address, max_retries=0, timeout=300, **more)


# --- tables -----------------------------------------------------------------------------------------------------------


def _run(table: str, base_url: str, rounds: int, quick: bool) -> list[Row]:
    try:
        rows: list[Row] = run_module("asides", "bench.relay", table, base_url, str(rounds), "1000" if quick else "4000")
    except ContestantFailed as error:
        return [{"name": f"failed: {str(error)[:200]}"}]
    return rows


def relay(base_url: str, *, rounds: int, quick: bool) -> Table:
    columns = {
        "name": "caller → provider",
        "how": "",
        "pace": "pace",
        "mode": "mode",
        "cpu_us": "CPU µs/chunk",
        "least_us": "least",
        "times": "÷ forwarded",
        "delivered": "delivered",
    }
    note = "Forwarded: the same stream of the same provider to a caller that speaks its dialect."
    return Table(
        "relay", f"relay: one stream, {rounds} rounds", columns, _run("relay", base_url, rounds, quick), [note]
    )


def doors(base_url: str, *, rounds: int, quick: bool) -> Table:
    columns = {
        "name": "client",
        "profile": "answer",
        "mode": "mode",
        "cpu_us": "CPU µs/chunk",
        "more_us": "more than alone, µs",
        "times": "÷ alone",
        "delivered": "delivered",
    }
    note = "An answer in one body counts as one chunk. Alone: the same class of the same package, without asides."
    title = f"official clients over the relay in this process, {rounds} rounds"
    return Table("doors", title, columns, _run("doors", base_url, rounds, quick), [note])


def main() -> None:
    table, base_url, rounds, chunks = sys.argv[1:5]
    measure = measure_relay if table == "relay" else measure_doors
    print(json.dumps(measure(base_url, int(rounds), int(chunks))))


if __name__ == "__main__":
    main()
