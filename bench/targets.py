"""The goals of the project, as ratios within one run, and whether this run reaches them.

A goal is judged only if everything that it compares was measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.payloads import BODY_SIZES, DIALECTS
from bench.peers.vendors import VENDOR_OF
from bench.tables import Row, Table

Results = dict[str, list[Row]]
MODES = ("sync", "async")

# How many times less CPU than the peer, in a burst: in a dialect, or in all of them.
BURST_LEAST = {
    ("openai", "chat"): 35,
    ("openai", "responses"): 25,
    ("anthropic", "messages"): 10,
    ("google-genai", "gemini"): 30,
    ("cohere", "cohere"): 30,
    ("ollama", "ollama"): 5,
    ("boto3", "bedrock"): 5,
    **{("litellm", dialect): 150 for dialect in DIALECTS},
}
BURST_FLOOR, BURST_BARE = 1.9, 1.4
TRICKLE = 1.15
WHOLE = dict(zip(BODY_SIZES, (6, 2.5, 1.5), strict=True))
WHOLE_VENDOR = 4
ASK_MICROSECONDS = 120
TURN_MILLISECONDS = {1000: 1.5, 10_000: 8}
# A turn of 10,000 messages against one of 1,000, as a multiple of the same ratio of the bare client.
TURN_GROWTH = 1.2
TRIM_MILLISECONDS = 30
STEP_BARE, STEP_GROWTH, STEP_PYDANTIC_AI = 1.8, 1.15, 12
STREAMS_CPU, STREAMS_LAG, STREAMS_MEMORY = 1.2, 1.5, 1.5
COLD_BARE, COLD_OPENAI = 1.25, 5
TAGS, LINEAR = 1.1, 1.3
PACKAGES, MEGABYTES = 14, 16
TRANSLATED, DOOR = 2.0, 1.3


@dataclass(frozen=True)
class Target:
    figure: str
    measured: float
    reach: float
    # "most": the measured value may be at most `reach`. "least": it must be at least that.
    bound: str

    def row(self) -> Row:
        holds = self.measured <= self.reach if self.bound == "most" else self.measured >= self.reach
        return {
            "figure": self.figure,
            "reach": f"{'≤' if self.bound == 'most' else '≥'} {self.reach:g}",
            "measured": float(self.measured),
            "holds": "yes" if holds else "NO",
        }


def _find(rows: list[Row], **cells: Any) -> Row:
    return next((row for row in rows if all(row.get(key) == value for key, value in cells.items())), {})


def _ratio(one: Any, other: Any) -> float | None:
    return one / other if one is not None and other else None


class _Judge:
    def __init__(self, results: Results) -> None:
        self.results = results
        self.targets: list[Target] = []

    def rows(self, table: str) -> list[Row]:
        return self.results.get(table, [])

    def at_most(self, figure: str, measured: float | None, reach: float) -> None:
        if measured is not None:
            self.targets.append(Target(figure, measured, reach, "most"))

    def at_least(self, figure: str, measured: float | None, reach: float) -> None:
        if measured is not None:
            self.targets.append(Target(figure, measured, reach, "least"))

    def burst(self) -> None:
        for dialect in DIALECTS:
            rows = self.rows(dialect)
            for mode in MODES:
                ours = _find(rows, name="asides", mode=mode)
                if mode == "sync":
                    self.at_most(f"{dialect} burst, sync ÷ socket + httptools", ours.get("times_floor"), BURST_FLOOR)
                else:
                    self.at_most(f"{dialect} burst, async ÷ aiohttp", ours.get("times_bare"), BURST_BARE)
                for (peer, spoken), reach in BURST_LEAST.items():
                    if spoken == dialect and ours:
                        theirs = _find(rows, name=peer, mode=mode).get("times_asides")
                        self.at_least(f"{dialect} burst, {mode}: {peer} ÷ asides", theirs, reach)

    def trickle(self) -> None:
        for row in [*self.rows("trickle"), *self.rows("trickle_others")]:
            if row["name"] == "asides":
                figure = f"{row['dialect']} trickle, {row['mode']} ÷ bare client"
                self.at_most(figure, row.get("times_bare"), TRICKLE)

    def whole(self) -> None:
        from bench.whole import OURS

        for dialect in DIALECTS:
            ours = _find(self.rows("whole"), name=OURS, dialect=dialect)
            vendor = _find(self.rows("whole"), name=VENDOR_OF[dialect], dialect=dialect)
            for size, reach in WHOLE.items():
                self.at_most(f"{dialect} whole {size} ÷ typed decode", ours.get(f"{size} / typed"), reach)
                figure = f"{dialect} whole {size}: {VENDOR_OF[dialect]} ÷ asides"
                self.at_least(figure, vendor.get(f"{size} / asides"), WHOLE_VENDOR)

    def ask(self) -> None:
        for row in self.rows("ask"):
            if row["name"] == "asides":
                figure = f"{row['dialect']} ask of 2 KB, {row['mode']}: µs over the bare client"
                self.at_most(figure, row.get("over_bare"), ASK_MICROSECONDS)

    def conversations(self) -> None:
        rows = self.rows("conversations")
        for row in rows:
            reach = TURN_MILLISECONDS.get(row.get("size", 0))
            if row["name"] != "asides" or reach is None:
                continue
            where = {key: row[key] for key in ("dialect", "content", "mode")}
            what = f"{row['dialect']} turn, {row['content']}, {row['mode']}"
            self.at_most(f"{what}: ms at {row['size']:,}", row["warm_ms"], reach)
            if row["size"] == 10_000:
                ours = _ratio(row["warm_ms"], _find(rows, name="asides", size=1000, **where).get("warm_ms"))
                bare = _ratio(
                    *(_find(rows, name="bare client", size=n, **where).get("warm_ms") for n in (10_000, 1000))
                )
                self.at_most(f"{what}: growth ÷ that of the bare client", _ratio(ours, bare), TURN_GROWTH)
        for row in self.rows("trimming"):
            for kind in ("cold", "warm"):
                figure = f"{row['dialect']} trim_to at 10,000, {row['content']}, {kind}: ms"
                self.at_most(figure, row.get(f"{kind}_ms"), TRIM_MILLISECONDS)

    def agents(self) -> None:
        rows = self.rows("agents")
        for row in rows:
            if row["name"] == "asides":
                what = f"agent step, {row['calls']} calls, {row['mode']}"
                for length in (10, 40, 160):
                    self.at_most(f"{what}: {length} steps ÷ bare loop", row.get(f"{length} / bare"), STEP_BARE)
                bare = _find(rows, name="bare loop", mode=row["mode"], calls=row["calls"])
                growth = _ratio(row.get("growth"), bare.get("growth"))
                self.at_most(f"{what}: growth ÷ that of the bare loop", growth, STEP_GROWTH)
            elif row["name"] == "pydantic-ai":
                figure = f"agent step, {row['calls']} calls: pydantic-ai ÷ asides, 40 steps"
                self.at_least(figure, row.get("40 / asides"), STEP_PYDANTIC_AI)

    def concurrency(self) -> None:
        for streams in (200, 1000):
            ours = _find(self.rows(f"concurrency_{streams}"), name="asides")
            for figure, column, reach in (
                ("CPU", "times_bare", STREAMS_CPU),
                ("lag p99", "lag_p99_times", STREAMS_LAG),
                ("memory", "kb_per_stream_times", STREAMS_MEMORY),
            ):
                self.at_most(f"{streams:,} streams: {figure} ÷ aiohttp + typed decode", ours.get(column), reach)

    def imports(self) -> None:
        rows = self.rows("imports")
        for name in ("asides", "asides, async"):
            self.at_most(f"cold ask: {name} ÷ bare client", _find(rows, name=name).get("ask_bare"), COLD_BARE)
        self.at_least("cold ask: openai ÷ asides", _find(rows, name="openai").get("ask_times"), COLD_OPENAI)
        ours = _find(rows, name="asides")
        self.at_most("installed packages", ours.get("packages"), PACKAGES)
        self.at_most("installed MB", ours.get("megabytes"), MEGABYTES)

    def tags(self) -> None:
        for mode in MODES:
            row = _find(self.rows("tags"), name="asides, tags looked for", mode=mode)
            self.at_most(f"inline tags ÷ fields, {mode}", row.get("ratio"), TAGS)
        for row in self.rows("splitter"):
            self.at_most(f"splitter, {row['shape']}: longest ÷ shortest", row.get("growth"), LINEAR)

    def relay(self) -> None:
        for row in self.rows("relay"):
            what = f"relay, {row['name']}, {row.get('pace')}, {row.get('mode')}: translated ÷ forwarded"
            self.at_most(what, row.get("times"), TRANSLATED)
        for row in self.rows("doors"):
            what = f"{row['name']}, {row.get('profile')}, {row.get('mode')} ÷ the official client alone"
            self.at_most(what, row.get("times"), DOOR)


def targets(results: Results) -> Table | None:
    judge = _Judge(results)
    parts: tuple[Callable[[], None], ...] = (
        judge.burst,
        judge.trickle,
        judge.whole,
        judge.ask,
        judge.conversations,
        judge.agents,
        judge.concurrency,
        judge.imports,
        judge.tags,
        judge.relay,
    )
    for part in parts:
        part()
    if not judge.targets:
        return None
    rows = [target.row() for target in judge.targets]
    missed = sum(row["holds"] == "NO" for row in rows)
    columns = {"figure": "figure", "reach": "reach", "measured": "measured", "holds": "holds"}
    return Table("targets", f"goals: {len(rows)} judged, {missed} not reached", columns, rows)
