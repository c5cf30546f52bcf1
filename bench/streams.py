"""Tables of single requests: burst and trickle per dialect, `ask`, growth with length, inline tags, memory.

Every contestant has its own process. Each round runs all of them once, in rotating order, so a ratio compares
measurements that are seconds apart. CPU is that of the client process, all threads, garbage collection on.
Figures are medians.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from statistics import median
from typing import Any

from bench.contestant import Contestant
from bench.contestants import choose, find
from bench.floors import SPLIT_ONLY
from bench.payloads import BODY_SIZES, CHUNKS, Expected, count_expected, read_profile
from bench.processes import ContestantFailed, Process, run_module, start_process
from bench.tables import Row, Table

# A common HTTP client of each mode, with a typed decode and nothing else; and the cheapest client there is. asides uses
# plain sockets.
BARE_CLIENT = {"sync": "urllib3 + typed decode, sync", "async": "aiohttp + typed decode, async"}
FLOOR = {"sync": "socket + httptools + typed decode, sync", "async": "httptools protocol + typed decode, async"}
ASIDES = {"sync": "asides, sync", "async": "asides, async"}
TAGGED = {"sync": "asides, tags looked for, sync", "async": "asides, tags looked for, async"}

Entry = tuple[str, str]
SECONDS_PER_MEASUREMENT = 0.25
# A contestant that takes this long for one stream runs in the first rounds only.
SLOW_SECONDS = 2.0
SLOW_ROUNDS = 2
GROWTH = (1000, 4000, 16000)
QUICK_FLOORS = (*FLOOR.values(), *BARE_CLIENT.values())


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def describe_delivery(contestant: Contestant, got: Iterable[int], expected: Expected) -> str:
    if contestant.name == SPLIT_ONLY:
        return "not decoded"
    names = ("thinking", "text", "tool arguments")
    short = [f"{name} {have}/{want}" for name, have, want in zip(names, got, expected, strict=True) if have != want]
    return "LOST " + ", ".join(short) if short else "all"


class Race:
    """The contestants of one table, started, warmed up and checked, ready for interleaved rounds.

    Each is called by its key and its dialect, so that a table may have several dialects.
    """

    def __init__(self, stack: ExitStack, entries: list[tuple[Contestant, str]], base_url: str) -> None:
        self.processes: dict[Entry, Process] = {}
        self.failures: dict[Entry, str] = {}
        for contestant, dialect in entries:
            try:
                process = stack.enter_context(start_process(contestant, dialect, base_url))
            except ContestantFailed as error:
                self.failures[contestant.key, dialect] = str(error)
            else:
                self.processes[contestant.key, dialect] = process

    def run(self, profiles: list[str], rounds: int, seconds: float) -> dict[tuple[Entry, str], list[dict[str, Any]]]:
        """Measure every contestant with every profile, once per round."""
        repeats: dict[tuple[Entry, str], int] = {}
        slow: dict[tuple[Entry, str], bool] = {}
        for entry in list(self.processes):
            for profile in profiles:
                try:
                    warm = self.processes[entry].ask("stream", profile=profile)
                    if not profile.startswith("trickle") and warm["cpu"] < SLOW_SECONDS:
                        warm = self.processes[entry].ask("stream", profile=profile)
                except ContestantFailed as error:
                    self.failures[entry] = str(error)
                    del self.processes[entry]
                    break
                fit = int(seconds / max(warm["cpu"], 1e-6))
                slow[entry, profile] = warm["cpu"] > SLOW_SECONDS
                repeats[entry, profile] = 1 if profile.startswith("trickle") else max(1, min(400, fit))
        order = [pair for pair in repeats if pair[0] in self.processes]
        measured: dict[tuple[Entry, str], list[dict[str, Any]]] = {pair: [] for pair in order}
        for number in range(rounds):
            shift = number * len(order) // max(1, rounds)
            for entry, profile in order[shift:] + order[:shift]:
                if slow[entry, profile] and number >= SLOW_ROUNDS:
                    continue
                answer = self.processes[entry].ask("stream", profile=profile, repeats=repeats[entry, profile])
                measured[entry, profile].append(answer)
            progress(f"  round {number + 1} of {rounds}, load {os.getloadavg()[0]:.1f}")
        return measured


def ratio(ones: list[float], others: list[float] | None) -> float | None:
    """The median of the ratios, round by round. A slow contestant has fewer rounds than the others."""
    return median(a / b for a, b in zip(ones, others, strict=False)) if others else None


REFERENCES = (
    "Floor: the cheapest client (a socket or an asyncio protocol with httptools) and a typed decode. Bare client: a "
    "common HTTP client of that mode (urllib3, aiohttp) and a typed decode. No library on top of either."
)


def choose_contestants(dialect: str, *, quick: bool, only: list[str] | None) -> list[Contestant]:
    chosen = choose(dialect, peers=not quick)
    if quick:
        chosen = [c for c in chosen if c.kind != "floor" or c.key in QUICK_FLOORS]
    if only:
        references = {*FLOOR.values(), *BARE_CLIENT.values(), *ASIDES.values()}
        chosen = [c for c in chosen if c.key in references or any(part in c.key for part in only)]
    return chosen


def single_streams(
    base_url: str, name: str, dialects: Sequence[str], pace: str, *, rounds: int, quick: bool, only: list[str] | None
) -> Table:
    """CPU per chunk of every contestant, in some dialects, at one pace."""
    chunks = CHUNKS if pace == "burst" else 1000
    if quick:
        chunks = 1000 if pace == "burst" else 300
    profile = f"{pace}-{chunks}"
    # Peers in the trickle of one dialect only: it is the client that costs, and it is the same in all.
    entries = [
        (contestant, dialect)
        for dialect in dialects
        for contestant in choose_contestants(dialect, quick=quick or len(dialects) > 1, only=only)
    ]
    with ExitStack() as stack:
        race = Race(stack, entries, base_url)
        measured = race.run([profile], rounds, seconds=0.05 if quick else SECONDS_PER_MEASUREMENT)
    cpu = {entry: [answer["cpu"] for answer in answers] for (entry, _), answers in measured.items()}
    rows: list[Row] = []
    for (entry, _), answers in measured.items():
        contestant, dialect = find(entry[0]), entry[1]
        references = {"times_floor": FLOOR, "times_bare": BARE_CLIENT, "times_asides": ASIDES}
        rows.append(
            {
                "name": contestant.name,
                "mode": contestant.mode,
                "dialect": dialect,
                "kind": contestant.kind,
                "cpu_us": median(cpu[entry]) / chunks * 1e6,
                "min_us": min(cpu[entry]) / chunks * 1e6,
                **{
                    column: ratio(cpu[entry], cpu.get((keys[contestant.mode], dialect)))
                    for column, keys in references.items()
                },
                "chunks_per_second": round(chunks / median(answer["wall"] for answer in answers)),
                "peak_mb": max(answer["peak_kb"] for answer in answers) // 1024,
                "delivered": describe_delivery(contestant, answers[-1]["got"], count_expected(dialect, profile)),
            }
        )
    rows.sort(key=lambda row: (dialects.index(row["dialect"]), row["cpu_us"]))
    rows += describe_failures(race)
    columns = {
        "name": "contestant",
        "mode": "mode",
        "dialect": "dialect",
        "cpu_us": "CPU µs/chunk",
        "min_us": "least",
        "times_floor": "÷ floor",
        "times_bare": "÷ bare client",
        "times_asides": "÷ asides",
        "chunks_per_second": "chunks/s",
        "peak_mb": "peak MB",
        "delivered": "delivered",
    }
    if len(dialects) == 1:
        del columns["dialect"]
    title = f"{', '.join(dialects)}, {pace}: one stream of {chunks:,} chunks, {rounds} rounds"
    return Table(name, title, columns, rows, [REFERENCES])


def describe_failures(race: Race) -> list[Row]:
    return [
        {"name": key, "dialect": dialect, "delivered": f"failed: {error.splitlines()[0][:100]}"}
        for (key, dialect), error in race.failures.items()
    ]


def ask(base_url: str, dialects: Sequence[str], *, rounds: int, quick: bool, only: list[str] | None) -> Table:
    """CPU of a whole request with a body of 2 KB, over the loopback interface: `ask`, the bare client, the vendor."""
    profile = f"body-{BODY_SIZES['2 KB']}"
    entries = [
        (contestant, dialect)
        for dialect in dialects
        for contestant in choose_contestants(dialect, quick=quick, only=only)
        if contestant.reads_bodies and contestant.name != "asides, tags looked for"
    ]
    with ExitStack() as stack:
        race = Race(stack, entries, base_url)
        measured = race.run([profile], rounds, seconds=0.05 if quick else 0.15)
    cpu = {entry: [answer["cpu"] for answer in answers] for (entry, _), answers in measured.items()}
    rows: list[Row] = []
    for (entry, _), answers in measured.items():
        contestant, dialect = find(entry[0]), entry[1]
        bare = cpu.get((BARE_CLIENT[contestant.mode], dialect))
        rows.append(
            {
                "name": contestant.name,
                "mode": contestant.mode,
                "dialect": dialect,
                "cpu_us": median(cpu[entry]) * 1e6,
                "over_bare": median(a - b for a, b in zip(cpu[entry], bare, strict=False)) * 1e6 if bare else None,
                "times_bare": ratio(cpu[entry], bare),
                "times_asides": ratio(cpu[entry], cpu.get((ASIDES[contestant.mode], dialect))),
                "delivered": describe_delivery(contestant, answers[-1]["got"], count_expected(dialect, profile)),
            }
        )
    rows += describe_failures(race)
    columns = {
        "name": "contestant",
        "mode": "mode",
        "dialect": "dialect",
        "cpu_us": "CPU µs/request",
        "over_bare": "over the bare client, µs",
        "times_bare": "÷ bare client",
        "times_asides": "÷ asides",
        "delivered": "delivered",
    }
    return Table("ask", f"ask: a request with a whole body of 2 KB, {rounds} rounds", columns, rows, [REFERENCES])


GROWTH_CONTESTANTS = (
    *BARE_CLIENT.values(),
    *ASIDES.values(),
    *TAGGED.values(),
    "openai, sync",
    "pydantic-ai, async",
    "langchain, sync",
    "any-llm, async",
    "litellm, async",
)


def growth(base_url: str, *, rounds: int, quick: bool) -> Table:
    """CPU per chunk as the stream gets longer: flat means linear."""
    lengths = GROWTH[:2] if quick else GROWTH
    profiles = [f"burst-{length}" for length in lengths]
    keys = ASIDES.values() if quick else GROWTH_CONTESTANTS
    contestants = [c for c in choose("chat") if c.key in keys]
    with ExitStack() as stack:
        race = Race(stack, [(contestant, "chat") for contestant in contestants], base_url)
        measured = race.run(profiles, rounds, seconds=0.1)
    rows: list[Row] = []
    for entry in race.processes:
        contestant = find(entry[0])
        row: Row = {"name": contestant.name, "mode": contestant.mode}
        for length, profile in zip(lengths, profiles, strict=True):
            row[str(length)] = median(answer["cpu"] for answer in measured[entry, profile]) / length * 1e6
        row["growth"] = row[str(lengths[-1])] / row[str(lengths[0])]
        rows.append(row)
    columns = {"name": "contestant", "mode": "mode"}
    columns |= {str(length): f"µs/chunk at {length:,}" for length in lengths}
    columns["growth"] = "longest ÷ shortest"
    title = f"chat: growth with length, {rounds} rounds"
    return Table("growth", title, columns, rows, ["A flat line (1.0 or less) is linear; more is worse than linear."])


def tags(base_url: str, *, rounds: int, quick: bool) -> list[Table]:
    """The same stream with thinking in a field and inline in `<think>` tags; and the splitter alone."""
    chunks = 1000 if quick else CHUNKS
    fields, inline = f"burst-{chunks}", f"burst-{chunks}-tags"
    contestants = [find(key) for key in (*ASIDES.values(), *TAGGED.values())]
    with ExitStack() as stack:
        race = Race(stack, [(contestant, "chat") for contestant in contestants], base_url)
        measured = race.run([fields, inline], rounds, seconds=0.1 if quick else SECONDS_PER_MEASUREMENT)
    rows: list[Row] = []
    for entry in race.processes:
        contestant = find(entry[0])
        cpu = {profile: [answer["cpu"] for answer in measured[entry, profile]] for profile in (fields, inline)}
        searched = contestant.key in TAGGED.values()
        got = measured[entry, inline][-1]["got"]
        rows.append(
            {
                "name": contestant.name,
                "mode": contestant.mode,
                "fields_us": median(cpu[fields]) / chunks * 1e6,
                "inline_us": median(cpu[inline]) / chunks * 1e6 if searched else None,
                "ratio": ratio(cpu[inline], cpu[fields]) if searched else None,
                "delivered": describe_delivery(contestant, got, count_expected("chat", inline)) if searched else None,
            }
        )
    rows += describe_failures(race)
    columns = {
        "name": "contestant",
        "mode": "mode",
        "fields_us": "µs/chunk, fields",
        "inline_us": "µs/chunk, inline tags",
        "ratio": "inline ÷ fields",
        "delivered": "delivered",
    }
    title = f"inline tags: {chunks:,} chunks, {rounds} rounds"
    note = "The first two rows are a host that never inlines: its answer is not searched for tags."
    return [Table("tags", title, columns, rows, [note]), _splitter(quick=quick)]


def _splitter(*, quick: bool) -> Table:
    sizes = (16_384, 65_536) if quick else (16_384, 131_072, 1_048_576)
    rows: list[Row]
    try:
        rows = run_module("asides", "bench.splitter", *map(str, sizes))
    except ContestantFailed as error:
        rows = [{"shape": f"failed: {str(error)[:100]}"}]
    columns = {"shape": "text"}
    columns |= {str(size): f"ns/character at {size:,}" for size in sizes}
    columns["growth"] = "longest ÷ shortest"
    title = "inline tags: asides.Separator fed one character at a time"
    return Table("splitter", title, columns, rows, ["A flat line is linear."])


MEMORY_CONTESTANTS = (*GROWTH_CONTESTANTS, "openai, async")


def memory(base_url: str, *, quick: bool) -> Table:
    """Peak of the allocations of one stream at two lengths. The reader stores nothing."""
    profiles = ["burst-1000", "burst-4000"]
    rows: list[Row] = []
    keys = ASIDES.values() if quick else MEMORY_CONTESTANTS
    for contestant in choose("chat"):
        if contestant.key not in keys:
            continue
        row: Row = {"name": contestant.name, "mode": contestant.mode}
        try:
            with start_process(contestant, "chat", base_url) as process:
                peaks = [process.ask("memory", profile=profile)["peak_bytes"] for profile in profiles]
        except ContestantFailed as error:
            row["note"] = f"failed: {str(error)[:100]}"
        else:
            (short, long), (few, many) = peaks, (read_profile(profile)[1] for profile in profiles)
            row |= {"short_kb": short / 1024, "long_kb": long / 1024, "per_chunk": (long - short) / (many - few)}
        rows.append(row)
    few, many = (read_profile(profile)[1] for profile in profiles)
    characters = [sum(count_expected("chat", profile)) for profile in profiles]
    columns = {
        "name": "contestant",
        "mode": "mode",
        "short_kb": f"peak KB, {few:,} chunks",
        "long_kb": f"peak KB, {many:,} chunks",
        "per_chunk": "more bytes per chunk",
        "note": "",
    }
    note = f"The replies themselves have {characters[0]:,} and {characters[1]:,} characters."
    return Table("memory", "memory: peak of one stream's allocations", columns, rows, [note])
