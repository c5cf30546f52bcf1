"""The table of gateways: what `asides serve` adds to a request, with its files and with PostgreSQL, against a parsing
pass-through on the same stack and LiteLLM's proxy.

`python -m bench.gateway [--quick] [--json FILE] [--markdown FILE] [--only NAME …]`.

Every gateway runs in its own process on one core, the upstream and the load on the others. Each round asks every
gateway once, in rotating order, and small requests alternate one by one, also with the upstream itself. A ratio is the
median of the ratios of all rounds. Every answer is checked: its words against those that the upstream sent.
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
from bench.gateway_client import (
    PATHS,
    Connection,
    Failed,
    Said,
    TickReader,
    connect,
    read_stream,
    read_whole,
    write_body,
)
from bench.gateway_processes import (
    ASIDES,
    ASIDES_ON_POSTGRES,
    BURST,
    GATEWAYS,
    QUICK_TICKS,
    SMALL,
    STORED,
    TICKS,
    Gateway,
)
from bench.payloads import read_profile
from bench.server import replay_server
from bench.streams import progress
from bench.tables import Row, Table
from bench.targets import Target

CLIENTS = 32
STREAMS = (100, 200)
HISTORIES = (1, 51, 501)
"""The messages of a request, the last one the user's: each message of a long conversation must cost little."""
SLOW = ("litellm",)
"""Gateways that get fewer requests and fewer rounds: one request takes them tens of milliseconds."""
# caller's dialect → how asides relays it from a host that speaks chat
CALLERS = {"chat": "forwarded", "messages": "translated", "responses": "translated"}


@dataclass
class Entry:
    """A gateway as a client of one dialect sees it."""

    gateway: Gateway
    dialect: str = "chat"
    is_stored: bool = False
    """Whether its turns are stored, since the host wants thinking back."""
    figures: dict[str, list[float]] = field(default_factory=dict)
    problem: str = ""

    @property
    def name(self) -> str:
        stored = ", stored" if self.is_stored else ""
        how = f", {self.dialect} ({CALLERS[self.dialect]}{stored})" if self.is_ours else ""
        return f"{self.gateway.name}{how}"

    @property
    def is_ours(self) -> bool:
        return self.gateway.name in (ASIDES, ASIDES_ON_POSTGRES)

    @property
    def is_slow(self) -> bool:
        return self.gateway.name in SLOW

    def path(self, profile: str) -> str:
        """Where a profile is asked for. Only the upstream itself has it in the path."""
        return f"/{profile}{PATHS[self.dialect]}" if self.gateway.name == "direct" else PATHS[self.dialect]

    def write_body(self, profile: str, *, stream: bool, messages: int = 1) -> bytes:
        """The request of its client."""
        model = f"{STORED}{profile}" if self.is_stored else profile
        return write_body(self.dialect, model, stream=stream, messages=messages)

    def note(self, figure: str, value: float) -> None:
        self.figures.setdefault(figure, []).append(value)

    def middle(self, figure: str) -> float | None:
        values = self.figures.get(figure)
        return median(values) if values else None


class Load:
    """The measurements of one run."""

    def __init__(self, entries: list[Entry], quick: bool) -> None:
        self.entries = entries
        self.quick = quick
        self.expected: dict[str, Said] = {}

    async def learn(self, direct: Entry) -> None:
        """What the upstream says, to compare every answer with it."""
        for profile, read in ((SMALL, read_whole), (BURST, read_stream)):
            body = await self._ask_once(direct, profile, stream=profile == BURST)
            self.expected[profile] = read("chat", body)

    async def _ask_once(self, entry: Entry, profile: str, *, stream: bool) -> bytes:
        connection = await connect(entry.gateway.port)
        pieces: list[bytes] = []
        body = entry.write_body(profile, stream=stream)
        await connection.ask(entry.path(profile), body, pieces.append)
        connection.close()
        return b"".join(pieces)

    async def check_words(self, entry: Entry) -> None:
        """A stream whose words are known: thinking, answer and the arguments of a call arrive whole."""
        said = read_stream(entry.dialect, await self._ask_once(entry, BURST, stream=True))
        if said != self.expected[BURST]:
            lengths = [len(part) for part in said], [len(part) for part in self.expected[BURST]]
            raise Failed(f"LOST: {lengths[0]} of {lengths[1]} characters of thinking, text and arguments")

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

    async def _ask_small(self, entry: Entry, connection: Connection, messages: int = 1) -> float:
        pieces: list[bytes] = []
        body = entry.write_body(SMALL, stream=False, messages=messages)
        began = time.perf_counter()
        await connection.ask(entry.path(SMALL), body, pieces.append)
        took = time.perf_counter() - began
        if read_whole(entry.dialect, b"".join(pieces)) != self.expected[SMALL]:
            raise Failed("LOST: a small answer says something else")
        return took

    async def measure_throughput(self, entry: Entry, count: int) -> None:
        """Requests per second of 32 clients that ask again at once, and the gateway's CPU for each."""
        seconds, cpu = await self._ask_many(entry, count)
        entry.note("rps", count / seconds)
        entry.note("request_us", 1e6 * cpu / count)

    async def measure_histories(self, entry: Entry, count: int) -> None:
        """The gateway's CPU for a request, by the messages in it."""
        for messages in HISTORIES:
            asked = max(20, count // messages)
            await self._ask_many(entry, asked // 5, messages)
            _, cpu = await self._ask_many(entry, asked, messages)
            entry.note(f"history_us_{messages}", 1e6 * cpu / asked)

    async def _ask_many(self, entry: Entry, count: int, messages: int = 1) -> tuple[float, float]:
        left = count

        async def ask() -> None:
            nonlocal left
            connection = await connect(entry.gateway.port)
            while left > 0:
                left -= 1
                await self._ask_small(entry, connection, messages)
            connection.close()

        cpu, began = entry.gateway.cpu_seconds(), time.perf_counter()
        await asyncio.gather(*(ask() for _ in range(CLIENTS)))
        return time.perf_counter() - began, entry.gateway.cpu_seconds() - cpu

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
        profile = QUICK_TICKS if self.quick or entry.is_slow else TICKS
        events = read_profile(profile)[1]
        body = entry.write_body(profile, stream=True)
        readers = [TickReader(entry.dialect) for _ in range(count)]
        gateway = entry.gateway
        idle_kb, cpu_before = gateway.memory_kb(), gateway.cpu_seconds()

        async def run(number: int) -> None:
            await asyncio.sleep(1.5 * number / count)
            connection = await connect(gateway.port)
            await connection.ask(entry.path(profile), body, readers[number].take)
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


def measure(upstream: str, names: list[str], *, rounds: int, quick: bool) -> list[Entry]:
    """Start the gateways and measure them all."""
    gateway_cores, load_cores = gateway_processes.choose_cores()
    gateway_processes.pin(0, load_cores)
    direct = Entry(Gateway("direct", int(urlsplit(upstream).port or 0), os.getpid()))
    entries = [direct]
    with ExitStack() as running:
        for name in names:
            folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
            progress(f"  starting {name}")
            try:
                gateway = running.enter_context(GATEWAYS[name](upstream, gateway_cores, folder))
            except Failed as problem:
                entries.append(Entry(Gateway(name, 0, 0), problem=str(problem)))
                continue
            entries += [Entry(gateway, dialect, is_stored) for dialect, is_stored in _choose_callers(name)]
        load = Load(entries, quick)
        asyncio.run(load.learn(direct))
        for entry in entries[1:]:
            _attempt(entry, load.check_words(entry))
        # Memory per stream is that of a process whose heap has not grown yet.
        for number in range(rounds):
            _measure_round(load, entries, number, rounds)
        _measure_endurance(load, entries)
    return entries


def _choose_callers(name: str) -> list[tuple[str, bool]]:
    """The dialects of the clients of a gateway, and whether their turns are stored."""
    if name == ASIDES:
        return [*((dialect, False) for dialect in CALLERS), ("messages", True)]
    return [("chat", False), ("messages", True)] if name == ASIDES_ON_POSTGRES else [("chat", False)]


def _measure_round(load: Load, entries: list[Entry], number: int, rounds: int) -> None:
    quick = load.quick
    shift = 1 + number * (len(entries) - 1) // max(1, rounds)
    order = [entry for entry in entries[shift:] + entries[1:shift] if not (entry.is_slow and number)]
    for count in STREAMS:
        for entry in [entries[0], *order]:
            if not (entry.is_slow and count > STREAMS[0]):
                _attempt(entry, load.measure_streams(entry, count))
    alive = [entries[0], *(entry for entry in order if not entry.problem)]
    try:
        asyncio.run(load.measure_latency(alive, 100 if quick else 400))
    except Failed as problem:
        progress(f"  a small request failed: {problem}")
    for entry in order:
        _attempt(entry, load.measure_throughput(entry, 200 if entry.is_slow else 1500 if quick else 4000))
        _attempt(entry, load.measure_histories(entry, 200 if entry.is_slow else 5000 if quick else 20_000))
    progress(f"  round {number + 1} of {rounds}")


def _measure_endurance(load: Load, entries: list[Entry]) -> None:
    for entry in entries[1:]:
        if not entry.is_slow and (entry.dialect == "chat" or entry.is_stored):
            progress(f"  many requests: {entry.name}")
            _attempt(entry, load.measure_endurance(entry, 5_000 if load.quick else 100_000))


# --- tables -----------------------------------------------------------------------------------------------------------


def build_tables(entries: list[Entry], *, rounds: int, quick: bool) -> list[Table]:
    direct, floor = entries[0], _find(entries, "pass-through")
    small: list[Row] = []
    streamed: list[Row] = []
    for entry in entries:
        added = _subtract(entry.middle("p50"), direct.middle("p50"))
        row: Row = {
            "name": entry.name,
            "version": entry.gateway.version,
            "p50": entry.middle("p50"),
            "added": added if entry is not direct else None,
            "added_times": _ratio_of_added(entry, floor, direct),
            "added_p99": _subtract(entry.middle("p99"), direct.middle("p99")) if entry is not direct else None,
            "rps": entry.middle("rps"),
            "rps_times": _ratio(entry, floor, "rps"),
            "request_us": entry.middle("request_us"),
            "request_times": _ratio(entry, floor, "request_us"),
            "rss_mb": entry.middle("rss_mb"),
            "growth_mb": entry.middle("growth_mb"),
            "delivered": entry.problem or "all",
        }
        small.append(row)
        more: Row = {"name": entry.name, "delivered": entry.problem or "all"}
        for count in STREAMS:
            more |= {
                f"event_us_{count}": entry.middle(f"event_us_{count}") if entry is not direct else None,
                f"event_times_{count}": _ratio(entry, floor, f"event_us_{count}"),
                f"whole_us_{count}": entry.middle(f"whole_us_{count}") if entry is not direct else None,
                f"whole_times_{count}": _ratio(entry, floor, f"whole_us_{count}"),
                f"kb_{count}": entry.middle(f"kb_{count}") if entry is not direct else None,
                f"first_p99_{count}": entry.middle(f"first_p99_{count}"),
                f"lag_p99_{count}": entry.middle(f"lag_p99_{count}"),
            }
            if entry is not direct:
                firsts = entry.figures.get(f"first_p99_{count}", [])
                base = direct.figures.get(f"first_p99_{count}", [])[: len(firsts)]
                more[f"first_added_{count}"] = (
                    median(mine - theirs for mine, theirs in zip(firsts, base, strict=True)) if firsts else None
                )
        # The memory of streams is what the first round added; later ones find the heap grown.
        for count in STREAMS:
            if (values := entry.figures.get(f"kb_{count}")) and entry is not direct:
                more[f"kb_{count}"] = values[0]
        streamed.append(more)
    return [
        _small_table(small, rounds, quick),
        *(_stream_table(streamed, count, rounds) for count in STREAMS),
        _store_table(entries, rounds),
        _history_table(entries, rounds),
    ]


def _history_table(entries: list[Entry], rounds: int) -> Table:
    """What a request costs by the length of its conversation."""
    floor, first, last = _find(entries, "pass-through"), HISTORIES[0], HISTORIES[-1]
    rows: list[Row] = []
    for entry in entries[1:]:
        row: Row = {"name": entry.name, "delivered": entry.problem or "all"}
        for messages in HISTORIES:
            row[f"us_{messages}"] = entry.middle(f"history_us_{messages}")
            row[f"times_{messages}"] = _ratio(entry, floor, f"history_us_{messages}")
        more = _subtract(row[f"us_{last}"], row[f"us_{first}"])
        row["each"] = None if more is None else more / (last - first)
        rows.append(row)
    columns = {"name": "gateway"}
    for messages in HISTORIES:
        columns |= {f"us_{messages}": f"CPU µs, {messages}", f"times_{messages}": "÷ pass-through"}
    columns |= {"each": "µs/message", "delivered": "delivered"}
    return Table("gateway_histories", f"gateways, a request by its messages; {rounds} rounds", columns, rows)


def _store_table(entries: list[Entry], rounds: int) -> Table:
    """What PostgreSQL costs beside a file, where a turn has to be stored before its reply ends and where it has not."""
    direct = entries[0]
    rows: list[Row] = []
    for entry in entries:
        same = (ASIDES, entry.dialect, entry.is_stored)
        floor = next((each for each in entries if (each.gateway.name, each.dialect, each.is_stored) == same), None)
        if entry.gateway.name == ASIDES_ON_POSTGRES and not entry.problem:
            row: Row = {"name": entry.name, "added_times": _ratio_of_added(entry, floor, direct)}
            for figure in ("rps", "request_us", *(f"event_us_{count}" for count in STREAMS)):
                row[f"{figure}_times"] = _ratio(entry, floor, figure)
            rows.append(row)
    columns = {
        "name": "gateway",
        "added_times": "added p50",
        "rps_times": "requests/s",
        "request_us_times": "CPU/request",
        **{f"event_us_{count}_times": f"CPU/event, {count} streams" for count in STREAMS},
    }
    note = "Each ÷ the same with SQLite. The server of the store, with fsync, has the cores of the load."
    return Table("gateway_stores", f"asides on PostgreSQL ÷ asides on SQLite; {rounds} rounds", columns, rows, [note])


def _small_table(rows: list[Row], rounds: int, quick: bool) -> Table:
    columns = {
        "name": "gateway",
        "p50": "p50 ms",
        "added": "added p50 ms",
        "added_times": "÷ pass-through",
        "added_p99": "added p99 ms",
        "rps": "requests/s",
        "rps_times": "÷ pass-through",
        "request_us": "CPU µs/request",
        "request_times": "÷ pass-through",
        "rss_mb": "RSS MB",
        "growth_mb": "grown by MB",
        "delivered": "delivered",
    }
    requests = "5,000" if quick else "100,000"
    title = f"gateways, small requests: one at a time, and {CLIENTS} clients; {rounds} rounds"
    return Table(
        "gateway", title, columns, rows, [f"RSS: after {requests} requests; grown: over the last four fifths."]
    )


def _stream_table(rows: list[Row], count: int, rounds: int) -> Table:
    columns = {
        "name": "gateway",
        f"event_us_{count}": "CPU µs/event",
        f"event_times_{count}": "÷ pass-through",
        f"whole_us_{count}": "with begin and end",
        f"whole_times_{count}": "÷ pass-through",
        f"first_p99_{count}": "first event p99 ms",
        f"first_added_{count}": "added",
        f"lag_p99_{count}": "lag p99 ms",
        f"kb_{count}": "KB/stream",
        "delivered": "delivered",
    }
    shown = [row for row in rows if row.get(f"lag_p99_{count}") is not None]
    note = "An event each 50 ms per stream. First event, lag: from the upstream's write to the client's read."
    return Table(f"gateway_{count}", f"gateways, {count} streams; {rounds} rounds", columns, shown, [note])


def _find(entries: list[Entry], name: str) -> Entry | None:
    return next((entry for entry in entries if entry.gateway.name == name and not entry.problem), None)


def _subtract(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def _ratio(entry: Entry, floor: Entry | None, figure: str) -> float | None:
    """The median of the ratios of the rounds in which both were measured."""
    if floor is None or entry is floor or entry.gateway.name == "direct":
        return None
    pairs = list(zip(entry.figures.get(figure, ()), floor.figures.get(figure, ()), strict=False))
    return median(mine / theirs for mine, theirs in pairs if theirs) if pairs else None


def _ratio_of_added(entry: Entry, floor: Entry | None, direct: Entry) -> float | None:
    if floor is None or entry is floor or entry is direct:
        return None
    triples = zip(*(each.figures.get("p50", ()) for each in (entry, floor, direct)), strict=False)
    ratios = [(mine - base) / (theirs - base) for mine, theirs, base in triples if theirs > base]
    return median(ratios) if ratios else None


def judge(tables: list[Table]) -> Table:
    """The goals, and whether this run reaches them."""
    small, *streamed, stores, histories = [{row["name"]: row for row in table.rows} for table in tables]
    ours = [name for name in small if name.startswith("asides")]
    found: list[Target] = []

    def add(figure: str, measured: float | None, reach: float, bound: str) -> None:
        if measured is not None:
            found.append(Target(figure, measured, reach, bound))

    theirs = small.get("litellm", {})
    for name in ours:
        row = small[name]
        add(f"{name}: added p50 ÷ pass-through", row["added_times"], 1.5, "most")
        add(f"{name}: requests/s ÷ pass-through", row["rps_times"], 0.5, "least")
        if theirs.get("added") and row["added"]:
            add(f"{name}: added p50, litellm ÷ asides", theirs["added"] / row["added"], 20, "least")
        if theirs.get("rps") and row["rps"]:
            add(f"{name}: requests/s, asides ÷ litellm", row["rps"] / theirs["rps"], 20, "least")
        add(f"{name}: MB grown over many requests", row["growth_mb"], 5, "most")
        for count, rows in zip(STREAMS, streamed, strict=True):
            more = rows.get(name, {})
            reach = 1.2 if "forwarded" in name else 1.5
            add(
                f"{name}: CPU per event, {count} streams ÷ pass-through",
                more.get(f"event_times_{count}"),
                reach,
                "most",
            )
            add(f"{name}: first event p99 added, {count} streams, ms", more.get(f"first_added_{count}"), 5, "most")
            add(f"{name}: KB per open stream, {count}", more.get(f"kb_{count}"), 60, "most")
    for name, row in histories.items():
        if name.startswith("asides"):
            is_forwarded = "forwarded" in name
            add(
                f"{name}: CPU per request ÷ pass-through",
                row[f"times_{HISTORIES[0]}"],
                1.5 if is_forwarded else 3.5,
                "most",
            )
            add(f"{name}: CPU µs per message of a history", row["each"], 1 if is_forwarded else 8, "most")
    for name, row in stores.items():
        add(f"{name}: added p50 ÷ SQLite", row["added_times"], 1.3, "most")
        add(f"{name}: requests/s ÷ SQLite", row["rps_times"], 1 / 1.3, "least")
        for count in STREAMS:
            add(f"{name}: CPU per event, {count} streams ÷ SQLite", row[f"event_us_{count}_times"], 1.3, "most")
    judged = [target.row() for target in found]
    missed = sum(row["holds"] == "NO" for row in judged)
    columns = {"figure": "figure", "reach": "reach", "measured": "measured", "holds": "holds"}
    return Table("gateway_goals", f"goals of the gateway: {len(judged)} judged, {missed} not reached", columns, judged)


def gateway(base_url: str, *, rounds: int, quick: bool, only: list[str] | None = None) -> list[Table]:
    """The tables of the gateways, with their goals at the end."""
    names = [name for name in GATEWAYS if gateway_processes.is_installed(name) and not (quick and name in SLOW)]
    if only:
        names = [name for name in GATEWAYS if name == "pass-through" or any(part in name for part in only)]
    entries = measure(base_url, names, rounds=rounds, quick=quick)
    tables = build_tables(entries, rounds=rounds, quick=quick)
    versions = ", ".join(f"{name}: {gateway_processes.find_version(name)}" for name in names)
    tables[0].notes.insert(0, versions)
    return [*tables, judge(tables)]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.gateway", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, help="rounds (default: 5; 1 with --quick)")
    parser.add_argument("--quick", action="store_true", help="without LiteLLM, fewer and shorter requests, two minutes")
    parser.add_argument("--only", nargs="+", metavar="NAME", help=f"of {', '.join(GATEWAYS)}; the pass-through always")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows of every table")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables as Markdown")
    options = parser.parse_args()
    # Also whoever is told to end ends the gateways.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with replay_server() as base_url:
        rounds = options.rounds or (1 if options.quick else 5)
        tables = gateway(base_url, rounds=rounds, quick=options.quick, only=options.only)
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
