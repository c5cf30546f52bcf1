"""The targets, as ratios within one run, and whether this run meets them.

A target is judged only if everything that it compares was measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.tables import Row, Table
from bench.whole import OURS, TYPED

Results = dict[str, list[Row]]
MODES = ("sync", "async")


@dataclass(frozen=True)
class Target:
    figure: str
    measured: float
    reach: float
    # "most": the measured value may be at most `reach`. "least": it must be at least that.
    bound: str = "most"
    then: float | None = None

    def holds(self, limit: float) -> bool:
        return self.measured <= limit if self.bound == "most" else self.measured >= limit

    def row(self) -> Row:
        sign = "≤" if self.bound == "most" else "≥"
        return {
            "figure": self.figure,
            "reach": f"{sign} {self.reach:g}",
            "measured": self.measured,
            "holds": "yes" if self.holds(self.reach) else "NO",
            "then": None if self.then is None else f"{sign} {self.then:g}",
            "then_holds": None if self.then is None else "yes" if self.holds(self.then) else "no",
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

    def add(self, figure: str, measured: float | None, reach: float, bound: str, then: float | None = None) -> None:
        if measured is not None:
            self.targets.append(Target(figure, measured, reach, bound, then))

    def at_most(self, figure: str, measured: float | None, reach: float, then: float | None = None) -> None:
        self.add(figure, measured, reach, "most", then)

    def at_least(self, figure: str, measured: float | None, reach: float, then: float | None = None) -> None:
        self.add(figure, measured, reach, "least", then)

    def burst(self) -> None:
        least = {"openai": (20, 30), "pydantic-ai": (35, 60), "litellm": (90, 150), "anthropic": (8, 12)}
        for dialect in ("chat", "messages", "responses"):
            for mode in MODES:
                for name in ("asides", "asides, tags looked for"):
                    ours = _find(self.rows(dialect), name=name, mode=mode)
                    self.at_most(f"{dialect} burst: {name} {mode} ÷ bare client", ours.get("times_bare"), 3, 2)
                if not _find(self.rows(dialect), name="asides", mode=mode):
                    continue
                for peer, (reach, then) in least.items():
                    if dialect == "chat" or peer in ("openai", "anthropic"):
                        theirs = _find(self.rows(dialect), name=peer, mode=mode).get("times_asides")
                        self.at_least(f"{dialect} burst: {peer} {mode} ÷ asides", theirs, reach, then)

    def trickle(self) -> None:
        for mode in MODES:
            ours = _find(self.rows("trickle"), name="asides", mode=mode)
            self.at_most(f"trickle: asides {mode} ÷ bare client", ours.get("times_bare"), 1.3, 1.15)
            for peer, reach in (("openai", 3), ("litellm", 8)):
                theirs = _find(self.rows("trickle"), name=peer, mode=mode).get("times_asides")
                self.at_least(f"trickle: {peer} {mode} ÷ asides", theirs, reach)

    def growth(self) -> None:
        for row in self.rows("growth"):
            if row["name"].startswith("asides"):
                self.at_most(f"growth: {row['name']} {row['mode']}, longest ÷ shortest", row.get("growth"), 1.15)

    def concurrency(self) -> None:
        for streams in (200, 1000):
            rows = self.rows(f"concurrency_{streams}")
            ours, bare = _find(rows, name="asides"), _find(rows, name="aiohttp + typed decode")
            openai = _find(rows, name="openai")
            self.at_most(f"{streams} streams: CPU ÷ aiohttp + typed decode", ours.get("times_bare"), 1.4)
            lag = _ratio(ours.get("lag_p99"), bare.get("lag_p99"))
            self.at_most(f"{streams} streams: lag p99 ÷ aiohttp + typed decode", lag, 2)
            memory = _ratio(ours.get("kb_per_stream"), bare.get("kb_per_stream"))
            self.at_most(f"{streams} streams: memory ÷ aiohttp + typed decode", memory, 2)
            if ours:
                self.at_least(f"{streams} streams: openai CPU ÷ asides", openai.get("times_asides"), 4)

    def tags(self) -> None:
        for mode in MODES:
            row = _find(self.rows("tags"), name="asides, tags looked for", mode=mode)
            self.at_most(f"inline tags ÷ fields, {mode}", row.get("ratio"), 1.5)
        for row in self.rows("splitter"):
            self.at_most(f"splitter, {row['shape']}: longest ÷ shortest", row.get("growth"), 1.3)

    def whole(self) -> None:
        ours = _find(self.rows("whole"), name=OURS, dialect="chat")
        self.at_most(f"whole body 2 KB ÷ {TYPED}", ours.get("2 KB / typed"), 6, 4)
        self.at_most(f"whole body 200 KB ÷ {TYPED}", ours.get("200 KB / typed"), 2)
        self.at_most("whole body 200 KB, ms", _ratio(ours.get("200 KB"), 1000), 2)
        if ours:
            theirs = _find(self.rows("whole"), name="openai", dialect="chat")
            self.at_least("whole body 2 KB: openai ÷ asides", theirs.get("2 KB / asides"), 10)

    def imports(self) -> None:
        rows = self.rows("imports")
        ours = _find(rows, name="asides")
        for peer, reach in (("openai", 10), ("litellm", 60)):
            theirs = _find(rows, name=peer)
            self.at_least(f"import {peer} ÷ import asides", theirs.get("import_ms_times"), reach)
        first = _find(rows, name="openai").get("first_ms_times")
        self.at_least("import + first answer: openai ÷ asides", first, 5)
        self.at_most("installed packages", ours.get("packages"), 12)
        self.at_most("installed MB", ours.get("megabytes"), 15)


def targets(results: Results) -> Table | None:
    judge = _Judge(results)
    parts: tuple[Callable[[], None], ...] = (
        judge.burst,
        judge.trickle,
        judge.concurrency,
        judge.tags,
        judge.whole,
        judge.growth,
        judge.imports,
    )
    for part in parts:
        part()
    if not judge.targets:
        return None
    columns = {
        "figure": "figure",
        "reach": "reach",
        "measured": "measured",
        "holds": "holds",
        "then": "then",
        "then_holds": "holds",
    }
    return Table("targets", "figures to hold", columns, [target.row() for target in judge.targets])
