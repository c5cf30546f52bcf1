"""The tables of gateways: what `asides serve` adds to a request, with its files and with PostgreSQL, against a bare and
a parsing pass-through on the same stack and LiteLLM's proxy. Then batches, against a plain script.

`python -m bench.gateway [--quick] [--tiny] [--loops] [--json FILE] [--markdown FILE] [--only NAME …]`.

Every gateway runs in its own process on one core, the upstream and the load on the others. Each round asks every
gateway once, in rotating order, and small requests alternate one by one, also with the upstream itself. A ratio is the
median of the ratios of all rounds. The words of every answer are compared with those that the upstream sent.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import gateway_processes
from bench.batch import measure_batches
from bench.gateway_client import KEY, Connection, Failed, Said, TickReader, connect, read_stream, read_whole
from bench.gateway_processes import (
    ASIDES,
    ASIDES_ON_POSTGRES,
    ASIDES_WITH_KEYS,
    BARE,
    BARE_ON_ASYNCIO,
    BURST,
    FLOORS,
    GATEWAYS,
    HAS_CORES_FOR_TWO,
    KEYS,
    LOOPS,
    ONE_WORKER,
    PARSING,
    QUICK_TICKS,
    SMALL,
    STORED,
    TICKS,
    WORKERS,
    Gateway,
    name_model,
)
from bench.gateway_requests import CLIENTS as DIALECTS
from bench.gateway_requests import write_body, write_path
from bench.payloads import read_profile
from bench.server import replay_server
from bench.streams import progress
from bench.tables import Row, Table
from bench.targets import Target

CLIENTS, MANY_CLIENTS = 32, 128
HISTORIES = (1, 51, 501)
"""The messages of a request, the last one the user's: each message of a long conversation must cost little."""
SLOW = ("litellm",)
"""Gateways that get fewer requests and fewer rounds: one request takes them tens of milliseconds."""
DIRECT = "direct"


@dataclass(frozen=True)
class Counts:
    """How much a run measures."""

    rounds: int
    latency: int
    requests: int
    history: int
    endurance: int
    streams: tuple[int, ...]
    ticks: str
    batch_rows: int
    batch_rounds: int


FULL = Counts(5, 400, 4000, 20_000, 100_000, (100, 200), TICKS, 5000, 5)
QUICK = Counts(1, 100, 1500, 2500, 2500, (200,), QUICK_TICKS, 1500, 2)
# Only to see that everything works: its figures say nothing.
TINY = Counts(1, 5, 64, 100, 100, (10,), QUICK_TICKS, 100, 1)


@dataclass
class Entry:
    """A gateway as a client of one dialect sees it, with a host behind it."""

    gateway: Gateway
    dialect: str = "chat"
    host: str = "chat"
    """The dialect that the host speaks, or STORED."""
    key: str = ""
    """The kind of the client's key; none by default."""
    figures: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    problem: str = ""
    has_same_bytes: bool | None = None
    """Whether the bytes of its replies, whole and streamed, are those of the host."""
    said: dict[str, Said] = field(default_factory=dict[str, Said])
    """What it said of each profile when it was first asked: later replies say the same."""
    lost: str = ""
    """What its first replies lost. It is measured all the same."""

    @property
    def name(self) -> str:
        if not self.gateway.port:
            return self.gateway.name
        if not self.is_ours:
            return self.gateway.name if self.dialect == "chat" else f"{self.gateway.name}, {self.dialect}"
        how = "unchanged" if self.is_unchanged else "translated"
        stored = ", stored" if self.host == STORED else ""
        key = f", with {self.key}" if self.key else ""
        name = ASIDES if self.gateway.name == ASIDES_WITH_KEYS else self.gateway.name
        return f"{name}, {self.dialect} ({how}{stored}){key}"

    @property
    def is_ours(self) -> bool:
        return self.gateway.name.startswith(ASIDES)

    @property
    def is_unchanged(self) -> bool:
        """Whether the host speaks the dialect of the client, so that nothing has to change."""
        return self.host == self.dialect

    @property
    def is_slow(self) -> bool:
        return self.gateway.name in SLOW

    @property
    def is_plain(self) -> bool:
        """Whether it is the simplest client: chat, without a key and a store."""
        return self.dialect == self.host == "chat" and not self.key

    @property
    def is_extra(self) -> bool:
        """Whether only many clients are measured."""
        return self.gateway.name in (*WORKERS, *LOOPS)

    @property
    def host_dialect(self) -> str:
        return "chat" if self.host == STORED else self.host

    def path(self, profile: str, *, stream: bool = False) -> str:
        """Where a profile is asked for. The upstream itself, and what parses nothing, have it in the path."""
        path = write_path(self.dialect, name_model(self.host, profile), stream=stream)
        return f"/{profile}{path}" if self.gateway.name in (DIRECT, BARE, BARE_ON_ASYNCIO) else path

    def write_body(self, profile: str, *, stream: bool, messages: int = 1, with_tools: bool = False) -> bytes:
        """The request of its client."""
        model = name_model(self.host, profile)
        return write_body(self.dialect, model, stream=stream, messages=messages, with_tools=with_tools)

    def client_key(self) -> str:
        return self.gateway.keys.get(self.key, KEY)

    def note(self, figure: str, value: float) -> None:
        self.figures.setdefault(figure, []).append(value)

    def middle(self, figure: str) -> float | None:
        values = self.figures.get(figure)
        return median(values) if values else None


@dataclass(frozen=True)
class Asked:
    """Many requests: the time of all, the CPU time of the gateway and of its busiest process, and each latency."""

    seconds: float
    cpu: float
    busiest: float
    latencies: list[float]

    def percentile(self, share: float) -> float:
        """In milliseconds."""
        ordered = sorted(self.latencies)
        return 1000 * ordered[int(len(ordered) * share)]


class Load:
    """The measurements of one run."""

    def __init__(self, counts: Counts) -> None:
        self.counts = counts
        # (dialect of the host, profile) → what it says, to compare every answer with it
        self.bodies: dict[tuple[str, str], bytes] = {}
        self.expected: dict[tuple[str, str], Said] = {}

    async def learn(self, direct: Entry) -> None:
        """What the upstream says in a dialect."""
        for profile, read in ((SMALL, read_whole), (BURST, read_stream)):
            body = await self._ask_once(direct, profile, stream=profile == BURST)
            self.bodies[direct.host, profile] = body
            direct.said[profile] = self.expected[direct.host, profile] = read(direct.dialect, body)

    async def _ask_once(self, entry: Entry, profile: str, *, stream: bool) -> bytes:
        connection = await connect(entry.gateway.port)
        pieces: list[bytes] = []
        body = entry.write_body(profile, stream=stream)
        await connection.ask(entry.path(profile, stream=stream), body, pieces.append, entry.client_key())
        connection.close()
        return b"".join(pieces)

    async def check_words(self, entry: Entry) -> None:
        """Replies whose words are known: thinking, answer and the arguments of a call arrive whole."""
        bodies: list[bytes] = []
        for profile, read in ((SMALL, read_whole), (BURST, read_stream)):
            body = await self._ask_once(entry, profile, stream=profile == BURST)
            said, expected = read(entry.dialect, body), self.expected[entry.host_dialect, profile]
            entry.said[profile] = said
            if said != expected:
                lengths = [len(part) for part in said], [len(part) for part in expected]
                entry.lost += f"LOST of {profile}: {lengths[0]} of {lengths[1]} characters "
            bodies.append(body)
        entry.has_same_bytes = bodies == [self.bodies[entry.host_dialect, profile] for profile in (SMALL, BURST)]

    # --- small requests -----------------------------------------------------------------------------------------------

    async def measure_latency(self, entries: list[Entry], count: int) -> None:
        """One request after the other, each gateway in turn. What a gateway still has to do after its reply delays the
        next one, since they share a core; so the turns are shuffled."""
        connections = [await connect(entry.gateway.port) for entry in entries]
        seconds: list[list[float]] = [[] for _ in entries]
        turns, order = list(enumerate(entries)), random.Random(count)
        for number in range(count + 20):
            order.shuffle(turns)
            for index, entry in turns:
                if entry.is_slow and number > count // 5 + 20:
                    continue
                took = await self._ask_small(entry, connections[index])
                if number >= 20:
                    seconds[index].append(took)
        for entry, every in zip(entries, seconds, strict=True):
            ordered = sorted(every)
            entry.note("p50", 1000 * ordered[len(ordered) // 2])
            entry.note("p99", 1000 * ordered[int(len(ordered) * 0.99)])
        for connection in connections:
            connection.close()

    async def _ask_small(
        self, entry: Entry, connection: Connection, messages: int = 1, *, with_tools: bool = False
    ) -> float:
        pieces: list[bytes] = []
        body = entry.write_body(SMALL, stream=False, messages=messages, with_tools=with_tools)
        path, key = entry.path(SMALL), entry.client_key()
        began = time.perf_counter()
        await connection.ask(path, body, pieces.append, key)
        took = time.perf_counter() - began
        self._check_small(entry, b"".join(pieces))
        return took

    def _check_small(self, entry: Entry, body: bytes) -> None:
        is_same = entry.is_unchanged and body == self.bodies[entry.host, SMALL]
        if not is_same and read_whole(entry.dialect, body) != entry.said[SMALL]:
            raise Failed("LOST: a small answer says something else")

    async def measure_throughput(self, entry: Entry, count: int, clients: int = CLIENTS) -> None:
        """Requests per second of clients that ask again at once, their latency, and the gateway's CPU for each."""
        await self._ask_many(entry, count // 5, clients=clients)
        asked = await self._ask_many(entry, count, clients=clients)
        entry.note(f"rps_{clients}", count / asked.seconds)
        entry.note(f"p50_{clients}", asked.percentile(0.5))
        entry.note(f"p99_{clients}", asked.percentile(0.99))
        if entry.gateway.name != DIRECT:
            entry.note(f"request_us_{clients}", 1e6 * asked.cpu / count)
            entry.note(f"capacity_{clients}", count / asked.busiest)

    async def measure_histories(self, entry: Entry, count: int) -> None:
        """The gateway's CPU for a request, by the messages in it, without and with tools."""
        for with_tools in (False, True):
            for messages in HISTORIES:
                number = max(20, min(self.counts.requests // 3, count // messages))
                await self._ask_many(entry, number // 5, messages, with_tools=with_tools)
                asked = await self._ask_many(entry, number, messages, with_tools=with_tools)
                entry.note(f"history_{'tools_' * with_tools}us_{messages}", 1e6 * asked.cpu / number)

    async def _ask_many(
        self, entry: Entry, count: int, messages: int = 1, *, clients: int = CLIENTS, with_tools: bool = False
    ) -> Asked:
        left = count
        latencies: list[float] = []

        async def ask() -> None:
            nonlocal left
            connection = await connect(entry.gateway.port)
            while left > 0:
                left -= 1
                latencies.append(await self._ask_small(entry, connection, messages, with_tools=with_tools))
            connection.close()

        before, began = entry.gateway.cpu_by_process(), time.perf_counter()
        await asyncio.gather(*(ask() for _ in range(min(count, clients))))
        seconds = time.perf_counter() - began
        used = [after - before.get(pid, 0) for pid, after in entry.gateway.cpu_by_process().items()]
        return Asked(seconds, sum(used), max(used, default=0), latencies)

    async def measure_endurance(self, entry: Entry, count: int) -> None:
        """The memory of the gateway over many requests: from a fifth of them to all."""
        await self._ask_many(entry, count // 5)
        before = entry.gateway.memory_kb()
        await self._ask_many(entry, count - count // 5)
        after = entry.gateway.memory_kb()
        entry.note("rss_mb", after / 1024)
        entry.note("growth_mb", (after - before) / 1024)

    # --- streams ------------------------------------------------------------------------------------------------------

    async def measure_streams(self, entry: Entry, count: int) -> None:
        """Many streams at once, an event each 50 ms per stream. They begin one after the other within a second and a
        half; CPU per event is that of the time in which all are open."""
        profile = QUICK_TICKS if entry.is_slow else self.counts.ticks
        events = read_profile(profile)[1]
        body = entry.write_body(profile, stream=True)
        readers = [TickReader(entry.dialect) for _ in range(count)]
        gateway = entry.gateway
        idle_kb, cpu_before = gateway.memory_kb(), gateway.cpu_seconds()

        async def run(number: int) -> None:
            await asyncio.sleep(1.5 * number / count)
            connection = await connect(gateway.port)
            path = entry.path(profile, stream=True)
            await connection.ask(path, body, readers[number].take, entry.client_key())
            connection.close()

        def received() -> int:
            return sum(len(reader.lags) for reader in readers)

        running = [asyncio.create_task(run(number)) for number in range(count)]
        await asyncio.sleep(2.0)
        window, seen = gateway.cpu_seconds(), received()
        await asyncio.sleep(events * 0.05 - 2.5)
        window, seen = gateway.cpu_seconds() - window, received() - seen
        open_kb = gateway.memory_kb()
        for done in await asyncio.gather(*running, return_exceptions=True):
            if isinstance(done, BaseException):
                raise done
        for reader in readers:
            reader.check(events)
        firsts = sorted(reader.lags[0] for reader in readers)
        lags = sorted(lag for reader in readers for lag in reader.lags[1:])
        entry.note(f"event_us_{count}", 1e6 * window / max(1, seen))
        entry.note(f"whole_us_{count}", 1e6 * (gateway.cpu_seconds() - cpu_before) / (count * events))
        entry.note(f"first_p99_{count}", firsts[int(len(firsts) * 0.99)] / 1e6)
        entry.note(f"lag_p50_{count}", lags[len(lags) // 2] / 1e6)
        entry.note(f"lag_p99_{count}", lags[int(len(lags) * 0.99)] / 1e6)
        entry.note(f"kb_{count}", max(0.0, open_kb - idle_kb) / count)


# --- a run ------------------------------------------------------------------------------------------------------------


def _attempt(entry: Entry, work: Any) -> None:
    """Run a measurement; a gateway that fails once is left out from then on."""
    if entry.problem:
        work.close()
        return
    try:
        asyncio.run(asyncio.wait_for(work, 600))
    except (Failed, OSError, TimeoutError) as problem:
        entry.problem = f"{type(problem).__name__}: {problem}"[:160]


def measure(upstream: str, names: list[str], *, rounds: int, counts: Counts) -> list[Entry]:
    """Start the gateways and measure them all. The first entry is the upstream itself, asked in chat."""
    gateway_cores, load_cores = gateway_processes.choose_cores()
    gateway_processes.pin(0, load_cores)
    upstream_itself = Gateway(DIRECT, int(urlsplit(upstream).port or 0), os.getpid())
    entries = [Entry(upstream_itself, dialect, dialect) for dialect in DIALECTS]
    with ExitStack() as running:
        for name in names:
            folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
            progress(f"  starting {name}")
            try:
                gateway = running.enter_context(GATEWAYS[name](upstream, gateway_cores, folder))
            except Failed as problem:
                entries.append(Entry(Gateway(name, 0, 0), problem=str(problem)))
                continue
            entries += [Entry(gateway, *client) for client in _choose_clients(name)]
        load = Load(counts)
        for entry in entries[: len(DIALECTS)]:
            asyncio.run(load.learn(entry))
        for entry in entries[len(DIALECTS) :]:
            _attempt(entry, load.check_words(entry))
        # Memory per stream is that of a process whose heap has not grown yet.
        for number in range(rounds):
            _measure_round(load, entries, number, rounds)
        _measure_endurance(load, entries)
    return entries


def _choose_clients(name: str) -> list[tuple[str, str, str]]:
    """The clients of a gateway: dialect, host, and kind of key."""
    if name == ASIDES_WITH_KEYS:
        return [(dialect, dialect, kind) for dialect in ("chat", "messages") for kind in KEYS]
    return [(dialect, host, "") for dialect, host in _choose_keyless_clients(name)]


def _choose_keyless_clients(name: str) -> list[tuple[str, str]]:
    if name == BARE:
        return [(dialect, dialect) for dialect in DIALECTS]
    if name == ASIDES:
        unchanged = [(dialect, dialect) for dialect in DIALECTS]
        return [*unchanged, ("messages", "chat"), ("responses", "chat"), ("gemini", "chat"), ("messages", STORED)]
    return [("chat", "chat"), ("messages", STORED)] if name == ASIDES_ON_POSTGRES else [("chat", "chat")]


def _measure_round(load: Load, entries: list[Entry], number: int, rounds: int) -> None:
    counts = load.counts
    directs, others = entries[: len(DIALECTS)], entries[len(DIALECTS) :]
    shift = number * len(others) // max(1, rounds)
    order = [entry for entry in others[shift:] + others[:shift] if not (entry.is_slow and number)]
    for count in counts.streams:
        for entry in [directs[0], *order]:
            if not (entry.is_extra or entry.key or (entry.is_slow and count > counts.streams[0])):
                _attempt(entry, load.measure_streams(entry, count))
    alive = [*directs, *(entry for entry in order if not (entry.problem or entry.is_extra))]
    try:
        asyncio.run(load.measure_latency(alive, counts.latency))
    except Failed as problem:
        progress(f"  a small request failed: {problem}")
    for entry in [directs[0], *order]:
        requests = counts.requests // 20 if entry.is_slow else counts.requests
        _attempt(entry, load.measure_throughput(entry, requests))
        if entry.is_plain and not entry.is_slow:
            _attempt(entry, load.measure_throughput(entry, 2 * requests, MANY_CLIENTS))
        if not (entry.is_extra or entry is directs[0]):
            _attempt(entry, load.measure_histories(entry, counts.history // 20 if entry.is_slow else counts.history))
    progress(f"  round {number + 1} of {rounds}")


def _measure_endurance(load: Load, entries: list[Entry]) -> None:
    for entry in entries[len(DIALECTS) :]:
        if not (entry.is_slow or entry.is_extra) and (entry.is_plain or entry.host == STORED):
            progress(f"  many requests: {entry.name}")
            _attempt(entry, load.measure_endurance(entry, load.counts.endurance))


# --- tables -----------------------------------------------------------------------------------------------------------


def build_tables(entries: list[Entry], *, rounds: int, counts: Counts) -> list[Table]:
    shown = [entry for entry in entries if entry is entries[0] or entry.gateway.name != DIRECT]
    return [
        _small_table(entries, [entry for entry in shown if not entry.is_extra], rounds, counts),
        _many_table(entries, shown, rounds),
        *(_stream_table(entries, shown, count, rounds) for count in counts.streams),
        _key_table(entries, rounds),
        _worker_table(entries, rounds),
        _store_table(entries, rounds, counts),
        _history_table(entries, rounds, with_tools=False),
        _history_table(entries, rounds, with_tools=True),
    ]


def _delivered(entry: Entry) -> str:
    if entry.problem or entry.lost:
        return entry.problem or entry.lost
    return "all, same bytes" if entry.has_same_bytes or entry.gateway.name == DIRECT else "all"


def _small_table(entries: list[Entry], shown: list[Entry], rounds: int, counts: Counts) -> Table:
    rows: list[Row] = []
    parsing = _find(entries, PARSING)
    for entry in shown:
        direct, bare = _find(entries, DIRECT, entry.dialect), _find(entries, BARE, entry.host_dialect)
        is_direct = entry.gateway.name == DIRECT
        row: Row = {
            "name": entry.name,
            "p50": entry.middle("p50"),
            "delivered": _delivered(entry),
            "rps": entry.middle(f"rps_{CLIENTS}"),
            "rps_times": _ratio(entry, parsing, f"rps_{CLIENTS}"),
            "request_us": entry.middle(f"request_us_{CLIENTS}"),
            "request_times": _ratio(entry, bare, f"request_us_{CLIENTS}"),
            "rss_mb": entry.middle("rss_mb"),
            "growth_mb": entry.middle("growth_mb"),
        }
        if direct is not None and not is_direct:
            row["added"] = _subtract(row["p50"], direct.middle("p50"))
            row["added_times"] = _ratio_of_added(entry, parsing, entries[0])
            row["added_p99"] = _subtract(entry.middle("p99"), direct.middle("p99"))
        rows.append(row)
    columns = {
        "name": "gateway",
        "p50": "p50 ms",
        "added": "added p50 ms",
        "added_times": "÷ pass-through",
        "added_p99": "added p99 ms",
        "rps": "requests/s",
        "rps_times": "÷ pass-through",
        "request_us": "CPU µs/request",
        "request_times": "÷ bare",
        "rss_mb": "RSS MB",
        "growth_mb": "grown by MB",
        "delivered": "delivered",
    }
    title = f"gateways, small requests: one at a time, and {CLIENTS} clients; {rounds} rounds"
    note = f"RSS: after {counts.endurance:,} requests; grown: over the last four fifths. ÷ bare: in the host's dialect."
    return Table("gateway", title, columns, rows, [note])


def _many_table(entries: list[Entry], shown: list[Entry], rounds: int) -> Table:
    """The latency of requests that wait for each other."""
    rows: list[Row] = []
    for entry in shown:
        row: Row = {"name": entry.name}
        for clients in (CLIENTS, MANY_CLIENTS):
            bare = _find(entries, BARE, entry.host_dialect)
            for figure in ("p50", "p99"):
                row[f"{figure}_{clients}"] = entry.middle(f"{figure}_{clients}")
                row[f"{figure}_times_{clients}"] = _ratio(entry, bare, f"{figure}_{clients}")
        if row[f"p99_{CLIENTS}"] is not None:
            rows.append(row)
    columns = {"name": "gateway"}
    for clients in (CLIENTS, MANY_CLIENTS):
        columns[f"p50_{clients}"] = f"p50 ms, {clients}"
        columns[f"p99_{clients}"] = f"p99 ms, {clients}"
        columns[f"p99_times_{clients}"] = "p99 ÷ bare"
    return Table("gateway_clients", f"gateways, latency with many clients; {rounds} rounds", columns, rows)


def _stream_table(entries: list[Entry], shown: list[Entry], count: int, rounds: int) -> Table:
    direct, parsing = entries[0], _find(entries, PARSING)
    rows: list[Row] = []
    for entry in shown:
        if entry.middle(f"lag_p99_{count}") is None:
            continue
        bare = _find(entries, BARE, entry.host_dialect)
        row: Row = {
            "name": entry.name,
            "delivered": entry.problem or entry.lost or "all",
            "first_p99": entry.middle(f"first_p99_{count}"),
            "lag_p99": entry.middle(f"lag_p99_{count}"),
        }
        if entry is not direct:
            firsts = entry.figures[f"first_p99_{count}"]
            base = direct.figures[f"first_p99_{count}"][: len(firsts)]
            row |= {
                "event_us": entry.middle(f"event_us_{count}"),
                "event_bare": _ratio(entry, bare, f"event_us_{count}"),
                "event_times": _ratio(entry, parsing, f"event_us_{count}"),
                "whole_us": entry.middle(f"whole_us_{count}"),
                "whole_bare": _ratio(entry, bare, f"whole_us_{count}"),
                "first_added": median(mine - theirs for mine, theirs in zip(firsts, base, strict=True)),
                # The memory of streams is what the first round added; later ones find the heap grown.
                "kb": entry.figures[f"kb_{count}"][0],
            }
        rows.append(row)
    columns = {
        "name": "gateway",
        "event_us": "CPU µs/event",
        "event_bare": "÷ bare",
        "event_times": "÷ pass-through",
        "whole_us": "with begin and end",
        "whole_bare": "÷ bare",
        "first_p99": "first event p99 ms",
        "first_added": "added",
        "lag_p99": "lag p99 ms",
        "kb": "KB/stream",
        "delivered": "delivered",
    }
    note = "An event each 50 ms per stream. First event, lag: from the upstream's write to the client's read."
    return Table(f"gateway_{count}", f"gateways, {count} streams; {rounds} rounds", columns, rows, [note])


def _key_table(entries: list[Entry], rounds: int) -> Table:
    """What a key, its limits and a budget cost."""
    rows: list[Row] = []
    figure = f"request_us_{CLIENTS}"
    for entry in entries:
        if entry.key:
            base = _find(entries, ASIDES, entry.host, entry.dialect)
            row: Row = {"name": entry.name, "key": entry.key, "request_us": entry.middle(figure)}
            row |= {"times": _ratio(entry, base, figure), "p99_times": _ratio(entry, base, f"p99_{CLIENTS}")}
            rows.append({**row, "delivered": _delivered(entry)})
    columns = {
        "name": "gateway",
        "request_us": "CPU µs/request",
        "times": "÷ no key",
        "p99_times": "p99 ÷ no key",
        "delivered": "delivered",
    }
    return Table("gateway_keys", f"gateways, keys, {CLIENTS} clients; {rounds} rounds", columns, rows)


def _worker_table(entries: list[Entry], rounds: int) -> Table:
    """Two workers and one, on the same cores."""
    base = _find(entries, ONE_WORKER)
    rows: list[Row] = []
    for entry in entries:
        if entry.gateway.name in WORKERS:
            row: Row = {"name": entry.name, "delivered": _delivered(entry)}
            for figure in ("rps", "capacity", "request_us", "p99"):
                row[figure] = entry.middle(f"{figure}_{MANY_CLIENTS}")
                row[f"{figure}_times"] = _ratio(entry, base, f"{figure}_{MANY_CLIENTS}")
            rows.append(row)
    columns = {
        "name": "gateway",
        "rps": "requests/s",
        "rps_times": "÷ one",
        "capacity": "per CPU second of the busiest",
        "capacity_times": "÷ one",
        "request_us": "CPU µs/request",
        "request_us_times": "÷ one",
        "p99_times": "p99 ÷ one",
        "delivered": "delivered",
    }
    notes = ["Requests per CPU second of the busiest process: what it serves with a core for each process."]
    if not HAS_CORES_FOR_TWO:
        notes.append("The load and the upstream share the cores of the workers, so requests/s say little here.")
    return Table("gateway_workers", f"gateways, workers, {MANY_CLIENTS} clients; {rounds} rounds", columns, rows, notes)


def _store_table(entries: list[Entry], rounds: int, counts: Counts) -> Table:
    """What PostgreSQL costs beside a file, where a turn has to be stored before its reply ends and where it has not."""
    direct = entries[0]
    rows: list[Row] = []
    figures = {
        f"rps_{CLIENTS}": "requests/s",
        f"request_us_{CLIENTS}": "CPU/request",
        **{f"event_us_{count}": f"CPU/event, {count} streams" for count in counts.streams},
    }
    for entry in entries:
        if entry.gateway.name == ASIDES_ON_POSTGRES and not entry.problem:
            base = _find(entries, ASIDES, entry.host, entry.dialect)
            row: Row = {"name": entry.name, "added_times": _ratio_of_added(entry, base, direct)}
            rows.append(row | {figure: _ratio(entry, base, figure) for figure in figures})
    columns = {"name": "gateway", "added_times": "added p50", **figures}
    note = "Each ÷ the same with SQLite. The server of the store, with fsync, has the cores of the load."
    return Table("gateway_stores", f"asides on PostgreSQL ÷ asides on SQLite; {rounds} rounds", columns, rows, [note])


def _history_table(entries: list[Entry], rounds: int, *, with_tools: bool) -> Table:
    """What a request costs by the length of its conversation."""
    prefix, first, last = f"history_{'tools_' * with_tools}us", HISTORIES[0], HISTORIES[-1]
    rows: list[Row] = []
    for entry in entries:
        if entry.gateway.name == DIRECT or entry.is_extra:
            continue
        bare = _find(entries, BARE, entry.host_dialect)
        row: Row = {"name": entry.name, "delivered": entry.problem or entry.lost or "all"}
        for messages in HISTORIES:
            row[f"us_{messages}"] = entry.middle(f"{prefix}_{messages}")
            row[f"times_{messages}"] = _ratio(entry, bare, f"{prefix}_{messages}")
        more = _subtract(row[f"us_{last}"], row[f"us_{first}"])
        row["each"] = None if more is None else more / (last - first)
        rows.append(row)
    columns = {"name": "gateway"}
    for messages in HISTORIES:
        columns |= {f"us_{messages}": f"CPU µs, {messages}", f"times_{messages}": "÷ bare"}
    columns |= {"each": "µs/message", "delivered": "delivered"}
    name, what = ("gateway_tools", " with tools and a system prompt") if with_tools else ("gateway_histories", "")
    title = f"gateways, a request{what} by its messages; {rounds} rounds"
    return Table(name, title, columns, rows)


def _find(entries: list[Entry], name: str, host: str = "chat", dialect: str = "") -> Entry | None:
    """The client of a gateway, without a key, to whom others are compared."""
    return next(
        (
            entry
            for entry in entries
            if (entry.gateway.name, entry.host, entry.dialect) == (name, host, dialect or host)
            and not (entry.key or entry.problem)
        ),
        None,
    )


def _subtract(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _ratio(entry: Entry, floor: Entry | None, figure: str) -> float | None:
    """The median of the ratios of the rounds in which both were measured."""
    if floor is None or entry is floor or entry.gateway.name == DIRECT:
        return None
    pairs = list(zip(entry.figures.get(figure, ()), floor.figures.get(figure, ()), strict=False))
    return median(mine / theirs for mine, theirs in pairs if theirs) if pairs else None


def _ratio_of_added(entry: Entry, floor: Entry | None, direct: Entry) -> float | None:
    if floor is None or entry is floor or entry is direct:
        return None
    triples = zip(*(each.figures.get("p50", ()) for each in (entry, floor, direct)), strict=False)
    ratios = [(mine - base) / (theirs - base) for mine, theirs, base in triples if theirs > base]
    return median(ratios) if ratios else None


class _Judge:
    """Collects goals; one that was not measured is left out."""

    def __init__(self, tables: list[Table]) -> None:
        self.found: list[Target] = []
        self._rows = {table.name: {row["name"]: row for row in table.rows} for table in tables}

    def rows(self, table: str) -> dict[str, Row]:
        """The rows of asides."""
        return {name: row for name, row in self._rows.get(table, {}).items() if name.startswith(ASIDES)}

    def find(self, table: str, name: str) -> Row:
        return self._rows.get(table, {}).get(name, {})

    def at_most(self, figure: str, measured: float | None, reach: float) -> None:
        self._add(figure, measured, reach, "most")

    def at_least(self, figure: str, measured: float | None, reach: float) -> None:
        self._add(figure, measured, reach, "least")

    def _add(self, figure: str, measured: float | None, reach: float, bound: str) -> None:
        if measured is not None:
            self.found.append(Target(figure, measured, reach, bound))


def judge(tables: list[Table], counts: Counts) -> Table:
    """The goals, and whether this run reaches them."""
    goals = _Judge(tables)
    litellm = goals.find("gateway", "litellm")
    for name, row in goals.rows("gateway").items():
        if ", with " not in name and not name.startswith(ASIDES_ON_POSTGRES):
            reach = 1.5 if "unchanged" in name else 3.5
            goals.at_most(f"{name}: CPU per request ÷ bare", row["request_times"], reach)
            if litellm.get("request_us") and row["request_us"]:
                ratio = litellm["request_us"] / row["request_us"]
                goals.at_least(f"{name}: CPU per request, litellm ÷ asides", ratio, 40)
        goals.at_most(f"{name}: MB grown over many requests", row["growth_mb"], 5)
    for name, row in goals.rows("gateway_keys").items():
        goals.at_most(f"{name}: CPU per request ÷ no key", row["times"], 1.6 if row["key"] == "a budget" else 1.2)
    for name, row in goals.rows("gateway_clients").items():
        if "unchanged" in name and ", with " not in name and name.startswith(f"{ASIDES}, ") and "worker" not in name:
            goals.at_most(f"{name}: p99 of {CLIENTS} clients ÷ bare", row[f"p99_times_{CLIENTS}"], 2)
    for name, row in goals.rows("gateway_workers").items():
        figure, column = ("requests/s", "rps") if HAS_CORES_FOR_TWO else ("requests per busiest CPU second", "capacity")
        goals.at_least(f"{name}: {figure}, {MANY_CLIENTS} clients ÷ one worker", row[f"{column}_times"], 1.8)
    for count in counts.streams:
        for name, row in goals.rows(f"gateway_{count}").items():
            goals.at_most(f"{name}: CPU per event, {count} streams ÷ bare", row["event_bare"], 1.3)
            goals.at_most(f"{name}: first event p99 added, {count} streams, ms", row["first_added"], 5)
            goals.at_most(f"{name}: KB per open stream, {count}", row["kb"], 30)
    for table in ("gateway_histories", "gateway_tools"):
        for name, row in goals.rows(table).items():
            what = "a history with tools" if table == "gateway_tools" else "a history"
            goals.at_most(f"{name}: CPU µs per message of {what}", row["each"], 1 if "unchanged" in name else 8)
    for name, row in goals.rows("gateway_stores").items():
        goals.at_most(f"{name}: added p50 ÷ SQLite", row["added_times"], 1.3)
        goals.at_least(f"{name}: requests/s ÷ SQLite", row[f"rps_{CLIENTS}"], 1 / 1.3)
        for count in counts.streams:
            goals.at_most(f"{name}: CPU per event, {count} streams ÷ SQLite", row[f"event_us_{count}"], 1.3)
    for name, row in goals.rows("gateway_batch").items():
        goals.at_most(f"{name}: CPU per row ÷ plain script", row.get("times"), 2)
    judged = [target.row() for target in goals.found]
    missed = sum(row["holds"] == "NO" for row in judged)
    columns = {"figure": "figure", "reach": "reach", "measured": "measured", "holds": "holds"}
    return Table("gateway_goals", f"goals of the gateway: {len(judged)} judged, {missed} not reached", columns, judged)


def choose_names(*, quick: bool, loops: bool, only: list[str] | None) -> list[str]:
    """The gateways of a run. The floors are always measured."""
    names = [name for name in GATEWAYS if gateway_processes.is_installed(name)]
    if only:
        return [name for name in names if name in FLOORS or name in only]
    return [name for name in names if not (quick and name in SLOW) and (loops or name not in LOOPS)]


def gateway(base_url: str, names: list[str], *, rounds: int, counts: Counts) -> list[Table]:
    """The tables of the gateways and of batches, with their goals at the end."""
    entries = measure(base_url, names, rounds=rounds, counts=counts)
    tables = build_tables(entries, rounds=rounds, counts=counts)
    tables.append(measure_batches(base_url, rows=counts.batch_rows, rounds=min(rounds, counts.batch_rounds)))
    versions = ", ".join(f"{name}: {gateway_processes.find_version(name)}" for name in names)
    tables[0].notes.insert(0, versions)
    return [*tables, judge(tables, counts)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.gateway", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, help="rounds (default: 5; 1 with --quick)")
    parser.add_argument("--quick", action="store_true", help="without LiteLLM, fewer requests, four minutes")
    parser.add_argument("--tiny", action="store_true", help="a few requests, to see that everything works")
    parser.add_argument("--loops", action="store_true", help="also without uvloop, to compare the latency")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=GATEWAYS, help=f"of {', '.join(GATEWAYS)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows of every table")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables as Markdown")
    options = parser.parse_args()
    # Also whoever is told to end ends the gateways.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    counts = TINY if options.tiny else QUICK if options.quick else FULL
    names = choose_names(quick=counts is not FULL, loops=options.loops, only=options.only)
    with replay_server() as base_url:
        tables = gateway(base_url, names, rounds=options.rounds or counts.rounds, counts=counts)
    for table in tables:
        print(table.text(), flush=True)
    if options.json:
        rows = {table.name: table.rows for table in tables}
        options.json.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    if options.markdown:
        options.markdown.write_text("\n".join(table.markdown() for table in tables))
    return 0


if __name__ == "__main__":
    sys.exit(main())
