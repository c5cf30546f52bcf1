"""Tables of single streams: burst and trickle per dialect, growth with length, inline tags, memory.

Every contestant has its own process. Each round runs all of them once, in rotating order, so a ratio compares
measurements that are seconds apart. CPU is that of the client process, all threads, garbage collection on.
Figures are medians.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from statistics import median
from typing import Any

from bench.contestant import Contestant
from bench.contestants import choose, find
from bench.floors import SPLIT_ONLY
from bench.payloads import CHUNKS, Expected, count_expected, read_profile
from bench.processes import ContestantFailed, Process, run_module, start_process
from bench.tables import Row, Table

# The HTTP client that asides uses in each mode, with a typed decode and nothing else.
BARE_CLIENT = {"sync": "urllib3 + typed decode, sync", "async": "aiohttp + typed decode, async"}
ASIDES = {"sync": "asides, sync", "async": "asides, async"}
TAGGED = {"sync": "asides, tags looked for, sync", "async": "asides, tags looked for, async"}

SECONDS_PER_MEASUREMENT = 0.25
GROWTH = (1000, 4000, 16000)
QUICK_FLOORS = (SPLIT_ONLY, "socket + typed decode", "urllib3 + typed decode", "aiohttp + typed decode")


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def describe_delivery(contestant: Contestant, got: Iterable[int], expected: Expected) -> str:
    if contestant.name == SPLIT_ONLY:
        return "not decoded"
    names = ("thinking", "text", "tool arguments")
    short = [f"{name} {have}/{want}" for name, have, want in zip(names, got, expected, strict=True) if have != want]
    return "LOST " + ", ".join(short) if short else "all"


class Race:
    """The contestants of one table, started, warmed up and checked, ready for interleaved rounds."""

    def __init__(self, stack: ExitStack, contestants: list[Contestant], dialect: str, base_url: str) -> None:
        self.dialect = dialect
        self.processes: dict[str, Process] = {}
        self.failures: dict[str, str] = {}
        for contestant in contestants:
            try:
                process = stack.enter_context(start_process(contestant, dialect, base_url))
            except ContestantFailed as error:
                self.failures[contestant.key] = str(error)
            else:
                self.processes[contestant.key] = process

    def run(self, profiles: list[str], rounds: int, seconds: float) -> dict[tuple[str, str], list[dict[str, Any]]]:
        """Measure every contestant with every profile, once per round."""
        repeats: dict[tuple[str, str], int] = {}
        for key in list(self.processes):
            for profile in profiles:
                try:
                    warm = self.processes[key].ask("stream", profile=profile)
                    if not profile.startswith("trickle"):
                        warm = self.processes[key].ask("stream", profile=profile)
                except ContestantFailed as error:
                    self.failures[key] = str(error)
                    del self.processes[key]
                    break
                fit = int(seconds / max(warm["cpu"], 1e-6))
                repeats[key, profile] = 1 if profile.startswith("trickle") else max(1, min(400, fit))
        order = [pair for pair in repeats if pair[0] in self.processes]
        measured: dict[tuple[str, str], list[dict[str, Any]]] = {pair: [] for pair in order}
        for number in range(rounds):
            shift = number * len(order) // max(1, rounds)
            for key, profile in order[shift:] + order[:shift]:
                answer = self.processes[key].ask("stream", profile=profile, repeats=repeats[key, profile])
                measured[key, profile].append(answer)
            progress(f"  round {number + 1} of {rounds}, load {os.getloadavg()[0]:.1f}")
        return measured


def ratio(ones: list[float], others: list[float] | None) -> float | None:
    """The median of the ratios, round by round."""
    return median(a / b for a, b in zip(ones, others, strict=True)) if others else None


def choose_contestants(dialect: str, *, quick: bool, only: list[str] | None) -> list[Contestant]:
    chosen = choose(dialect, peers=not quick)
    if quick:
        chosen = [c for c in chosen if c.kind != "floor" or c.name in QUICK_FLOORS]
    if only:
        references = {*BARE_CLIENT.values(), *ASIDES.values()}
        chosen = [c for c in chosen if c.key in references or any(part in c.key for part in only)]
    return chosen


def single_streams(
    base_url: str, name: str, dialect: str, pace: str, *, rounds: int, quick: bool, only: list[str] | None
) -> Table:
    """CPU per chunk of every contestant, in one dialect, at one pace."""
    chunks = CHUNKS if pace == "burst" else 1000
    if quick:
        chunks = 1000 if pace == "burst" else 300
    profile = f"{pace}-{chunks}"
    with ExitStack() as stack:
        race = Race(stack, choose_contestants(dialect, quick=quick, only=only), dialect, base_url)
        measured = race.run([profile], rounds, seconds=0.1 if quick else SECONDS_PER_MEASUREMENT)
    cpu = {key: [answer["cpu"] for answer in answers] for (key, _), answers in measured.items()}
    expected = count_expected(dialect, profile)
    rows: list[Row] = []
    for (key, _), answers in measured.items():
        contestant = find(key)
        rows.append(
            {
                "name": contestant.name,
                "mode": contestant.mode,
                "kind": contestant.kind,
                "cpu_us": median(cpu[key]) / chunks * 1e6,
                "min_us": min(cpu[key]) / chunks * 1e6,
                "times_bare": ratio(cpu[key], cpu.get(BARE_CLIENT[contestant.mode])),
                "times_asides": ratio(cpu[key], cpu.get(ASIDES[contestant.mode])),
                "chunks_per_second": round(chunks / median(answer["wall"] for answer in answers)),
                "peak_mb": max(answer["peak_kb"] for answer in answers) // 1024,
                "delivered": describe_delivery(contestant, answers[-1]["got"], expected),
            }
        )
    rows.sort(key=lambda row: row["cpu_us"])
    rows += [{"name": key, "delivered": f"failed: {error[:100]}"} for key, error in race.failures.items()]
    columns = {
        "name": "contestant",
        "mode": "mode",
        "cpu_us": "CPU µs/chunk",
        "min_us": "least",
        "times_bare": "÷ bare client",
        "times_asides": "÷ asides",
        "chunks_per_second": "chunks/s",
        "peak_mb": "peak MB",
        "delivered": "delivered",
    }
    title = f"{dialect}, {pace}: one stream of {chunks:,} chunks, {rounds} rounds"
    note = (
        "Bare client: the HTTP client that asides uses in that mode (urllib3, aiohttp) with a typed decode, no library."
    )
    return Table(name, title, columns, rows, [note])


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
        race = Race(stack, contestants, "chat", base_url)
        measured = race.run(profiles, rounds, seconds=0.1)
    rows: list[Row] = []
    for key in race.processes:
        row: Row = {"name": find(key).name, "mode": find(key).mode}
        for length, profile in zip(lengths, profiles, strict=True):
            row[str(length)] = median(answer["cpu"] for answer in measured[key, profile]) / length * 1e6
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
        race = Race(stack, contestants, "chat", base_url)
        measured = race.run([fields, inline], rounds, seconds=0.1 if quick else SECONDS_PER_MEASUREMENT)
    rows: list[Row] = []
    for key in race.processes:
        contestant = find(key)
        cpu = {profile: [answer["cpu"] for answer in measured[key, profile]] for profile in (fields, inline)}
        searched = contestant.key in TAGGED.values()
        got = measured[key, inline][-1]["got"]
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
    rows += [{"name": key, "delivered": f"failed: {error[:100]}"} for key, error in race.failures.items()]
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
