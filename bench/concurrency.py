"""The table of many streams at once in one async process, with an event each 50 ms per stream, as in a server.

Each text is the time at which it was sent, so the lag of every delivery is known. The first arrives with the head.
"""

from __future__ import annotations

from statistics import median

from bench.contestants import choose, find
from bench.processes import ContestantFailed, start_process
from bench.streams import ASIDES, BARE_CLIENT, FLOOR, REFERENCES, TAGGED, progress, ratio
from bench.tables import Row, Table

EVENTS = 100
QUICK_EVENTS = 20
# One run of these takes many seconds with 200 streams, minutes with 1,000: they run once, and one of them with 1,000.
SLOW = ("pydantic-ai, async", "langchain, async", "litellm, async", "any-llm, async")
MANY = 1000
ORDER = (
    FLOOR["async"],
    BARE_CLIENT["async"],
    ASIDES["async"],
    TAGGED["async"],
    "httpx + typed decode, async",
    "openai, async",
    *SLOW,
)


def concurrency(base_url: str, streams: int, *, rounds: int, quick: bool, only: list[str] | None) -> Table:
    events = QUICK_EVENTS if quick else EVENTS
    installed = {contestant.key for contestant in choose("chat", peers=not quick, mode="async")}
    keys = [key for key in ORDER if key in installed]
    if quick:
        keys = [FLOOR["async"], BARE_CLIENT["async"], ASIDES["async"]]
    if only:
        references = {BARE_CLIENT["async"], ASIDES["async"]}
        keys = [key for key in keys if key in references or any(part in key for part in only)]
    if streams >= MANY:
        keys = [key for key in keys if key not in SLOW[1:]]
    answers: dict[str, list[Row]] = {key: [] for key in keys}
    failures: dict[str, str] = {}
    for number in range(rounds):
        shift = number * len(keys) // rounds
        for key in keys[shift:] + keys[:shift]:
            if key in failures or (number and key in SLOW):
                continue
            try:
                with start_process(find(key), "chat", base_url) as process:
                    answers[key].append(process.ask("many", profile=f"ticks-{events}", streams=streams))
            except ContestantFailed as error:
                failures[key] = str(error)
        progress(f"  round {number + 1} of {rounds}")
    rows = [_row(key, answers[key], streams * events) for key in keys if answers[key]]
    for row in rows:
        mine = answers[f"{row['name']}, async"]
        for column, reference in (
            ("times_floor", FLOOR["async"]),
            ("times_bare", BARE_CLIENT["async"]),
            ("times_asides", ASIDES["async"]),
        ):
            # A slow contestant runs once: it is compared with the first round of the others.
            others = answers.get(reference, [])[: len(mine)]
            row[column] = ratio(_per_event(mine), _per_event(others)) if len(others) == len(mine) else None
    bare = next((row for row in rows if f"{row['name']}, async" == BARE_CLIENT["async"]), None)
    for row in rows:
        for column in ("lag_p99", "kb_per_stream"):
            if bare is not None and bare[column] and row[column] is not None:
                row[f"{column}_times"] = row[column] / bare[column]
    rows += [{"name": key, "delivered": f"failed: {error[:100]}"} for key, error in failures.items()]
    columns = {
        "name": "contestant",
        "us_per_event": "CPU µs/event",
        "times_floor": "÷ floor",
        "times_bare": "÷ bare client",
        "times_asides": "÷ asides",
        "kb_per_stream": "KB/stream",
        "kb_per_stream_times": "÷ bare client",
        "first_p50": "first p50 ms",
        "first_p99": "p99 ms",
        "lag_p50": "lag p50 ms",
        "lag_p99": "p99 ms",
        "lag_p99_times": "÷ bare client",
        "delivered": "delivered",
    }
    title = f"concurrency: {streams:,} streams of {events} events in one process, {rounds} rounds"
    # Short streams measure the start more than the run, so the targets are not judged on them.
    name = f"concurrency_{streams}_quick" if quick else f"concurrency_{streams}"
    return Table(name, title, columns, rows, [REFERENCES])


def _per_event(answers: list[Row]) -> list[float]:
    return [answer["cpu"] / max(1, answer["events"]) for answer in answers]


def _row(key: str, answers: list[Row], expected: int) -> Row:
    def middle(name: str, quantile: str | None = None) -> float | None:
        values = [answer[name][quantile] if quantile else answer[name] for answer in answers]
        return None if None in values else float(median(values))

    events = min(answer["events"] for answer in answers)
    failed = max(answer["errors"] for answer in answers)
    error = next((answer["error"] for answer in answers if answer["error"]), None)
    return {
        "name": find(key).name,
        "us_per_event": median(_per_event(answers)) * 1e6,
        "kb_per_stream": middle("kb_per_stream"),
        "first_p50": middle("first_ms", "p50"),
        "first_p99": middle("first_ms", "p99"),
        "lag_p50": middle("lag_ms", "p50"),
        "lag_p99": middle("lag_ms", "p99"),
        "delivered": "all" if events == expected else f"{events}/{expected}, {failed} failed: {error}",
    }
