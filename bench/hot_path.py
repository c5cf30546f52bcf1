"""A profile of asides: `python -m bench.hot_path [sync|async|decode|whole] [--tags] [--short]`.

A CPU timer samples the running Python frame. Nothing is instrumented, so the proportions are real. C functions count
for the line that calls them.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from bench.contestant import Sink
from bench.contestants import find
from bench.environments import ROOT
from bench.payloads import BODY_SIZES, CHUNKS, body, stream
from bench.server import replay_server
from bench.streams import ASIDES, BARE_CLIENT, TAGGED
from bench.tables import Row, Table
from bench.worker import Worker

# The shortest interval of most kernels.
SAMPLE_SECONDS = 0.001
READ_SIZE = 65536
SHORT = 10


class Samples:
    """Sample counts by line (own time only), and by function of asides (with the functions that it calls)."""

    def __init__(self) -> None:
        self.lines: Counter[tuple[str, int, str]] = Counter()
        self.modules: Counter[str] = Counter()
        self.inclusive: Counter[tuple[str, str]] = Counter()

    def take(self, _signal: int, frame: FrameType | None) -> None:
        if frame is None:
            return
        name = _short(frame.f_code.co_filename)
        self.lines[name, frame.f_lineno, frame.f_code.co_qualname] += 1
        self.modules[name] += 1
        within: set[tuple[str, str]] = set()
        above: FrameType | None = frame
        while above is not None:
            if (name := _short(above.f_code.co_filename)).startswith("asides/"):
                within.add((name, above.f_code.co_qualname))
            above = above.f_back
        self.inclusive.update(within)

    def functions(self) -> Counter[tuple[str, str]]:
        found: Counter[tuple[str, str]] = Counter()
        for (name, _, function), count in self.lines.items():
            found[name, function] += count
        return found


@cache
def _short(file_name: str) -> str:
    path = Path(file_name)
    if path.is_relative_to(ROOT / "src"):
        return str(path.relative_to(ROOT / "src"))
    return "/".join(path.parts[-2:])


def sample(action: Callable[[], object], seconds: float) -> tuple[Samples, float, int]:
    """Repeat an action for some seconds of CPU; return the samples, the CPU per run and the number of runs."""
    samples, runs = Samples(), 0
    previous = signal.signal(signal.SIGPROF, samples.take)
    signal.setitimer(signal.ITIMER_PROF, SAMPLE_SECONDS, SAMPLE_SECONDS)
    began = time.process_time()
    while time.process_time() - began < seconds:
        action()
        runs += 1
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, previous)
    return samples, (time.process_time() - began) / runs, runs


def measure_cpu(action: Callable[[], object], runs: int = 30) -> float:
    for _ in range(3):
        action()
    began = time.process_time()
    for _ in range(runs):
        action()
    return (time.process_time() - began) / runs


def decode_recorded(*, inline_tags: bool) -> Callable[[], object]:
    import asides

    recorded = b"".join(stream("chat", inline_tags=inline_tags).events)
    pieces = [recorded[at : at + READ_SIZE] for at in range(0, len(recorded), READ_SIZE)]
    provider = "openai-compatible" if inline_tags else "deepseek"
    return lambda: asides.decode("openai_chat", pieces, streaming=True, provider=provider)


def read_events(field: bytes = b"data: ") -> Callable[[], object]:
    """Read the recorded events without decoding them. A field without a space takes the general way of the reader."""
    from asides.wire.sse import SseReader

    recorded = b"".join(stream("chat").events).replace(b"data: ", field)
    pieces = [recorded[at : at + READ_SIZE] for at in range(0, len(recorded), READ_SIZE)]

    def read() -> None:
        reader = SseReader()
        for piece in pieces:
            reader.feed(piece)

    return read


def decode_whole() -> Callable[[], object]:
    import asides

    data, _ = body("chat", BODY_SIZES["2 KB"])
    return lambda: asides.decode("openai_chat", data, streaming=False)


def stream_with(key: str, base_url: str, profile: str) -> Callable[[], object]:
    worker = Worker(find(key).build(base_url, "chat"))
    return lambda: worker.once(profile, Sink())


def layers(base_url: str, *, inline_tags: bool) -> Table:
    """The table of costs: of a chunk in a long stream, and of a request with a very short reply."""
    suffix = "-tags" if inline_tags else ""
    ours = TAGGED if inline_tags else ASIDES
    rows: list[Row] = [
        {"name": "server-sent events", "us": measure_cpu(read_events()) / CHUNKS * 1e6},
        {"name": "server-sent events, without the fast way", "us": measure_cpu(read_events(b"data:")) / CHUNKS * 1e6},
        {
            "name": "asides.decode of the recorded bytes",
            "us": measure_cpu(decode_recorded(inline_tags=inline_tags)) / CHUNKS * 1e6,
        },
    ]
    for mode in ("sync", "async"):
        for name in (BARE_CLIENT[mode], ours[mode]):
            long = measure_cpu(stream_with(name, base_url, f"burst-{CHUNKS}{suffix}"))
            short = measure_cpu(stream_with(name, base_url, f"burst-{SHORT}{suffix}"), runs=300)
            rows.append({"name": name, "us": long / CHUNKS * 1e6, "request_us": short * 1e6})
    columns = {"name": "what", "us": "CPU µs/chunk", "request_us": f"CPU µs/request of {SHORT} chunks"}
    return Table("layers", "layers, in this process", columns, rows)


def report(samples: Samples, cpu: float, runs: int, unit: str, units: int) -> list[Table]:
    total = sum(samples.modules.values())
    per_sample = cpu / units * 1e6 / max(1, total)

    def shares(count: int) -> Row:
        return {"share": f"{count / total:.1%}", "us": count * per_sample}

    columns = {"us": f"µs/{unit}", "share": "share"}
    modules: list[Row] = [{**shares(count), "where": name} for name, count in samples.modules.most_common(15)]
    functions: list[Row] = [
        {**shares(count), "where": f"{name} {function}"}
        for (name, function), count in samples.functions().most_common(25)
    ]
    inclusive: list[Row] = [
        {**shares(count), "where": f"{name} {function}"}
        for (name, function), count in samples.inclusive.most_common(40)
    ]
    lines: list[Row] = [
        {**shares(count), "where": f"{name}:{line} {function}"}
        for (name, line, function), count in samples.lines.most_common(30)
    ]
    title = f"{cpu / units * 1e6:.2f} µs/{unit}, {total} samples of {runs} runs"
    return [
        Table("modules", f"by module: {title}", {**columns, "where": "module"}, modules),
        Table("functions", "by function", {**columns, "where": "function"}, functions),
        Table("inclusive", "by function of asides, with what it calls", {**columns, "where": "function"}, inclusive),
        Table("lines", "by line", {**columns, "where": "line"}, lines),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.hot_path")
    parser.add_argument("what", nargs="?", default="sync", choices=["sync", "async", "decode", "whole"])
    parser.add_argument("--tags", action="store_true", help="thinking inline in tags")
    parser.add_argument("--short", action="store_true", help=f"streams of {SHORT} chunks: what a request costs")
    parser.add_argument("--seconds", type=float, default=4.0, help="CPU seconds to sample")
    options = parser.parse_args()
    logging.disable()
    unit, units = ("body", 1) if options.what == "whole" else ("request", 1) if options.short else ("chunk", CHUNKS)
    with replay_server() as base_url:
        print(layers(base_url, inline_tags=options.tags).text())
        if options.what == "whole":
            action = decode_whole()
        elif options.what == "decode":
            action = decode_recorded(inline_tags=options.tags)
        else:
            profile = f"burst-{SHORT if options.short else CHUNKS}{'-tags' if options.tags else ''}"
            action = stream_with((TAGGED if options.tags else ASIDES)[options.what], base_url, profile)
        for table in report(*sample(action, options.seconds), unit, units):
            print(table.text(), flush=True)
    # The clients leave open sessions; do not wait for them.
    os._exit(0)


if __name__ == "__main__":
    main()
