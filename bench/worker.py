"""The process of one contestant: `python -m bench.worker <contestant> <dialect> <base url>`, JSON lines in and out.

    {"do": "stream", "profile": …, "repeats": n}    CPU and wall seconds per stream, characters delivered
    {"do": "many",   "profile": …, "streams": n}    many streams at once in one event loop
    {"do": "memory", "profile": …}                  the peak of one stream's allocations

Runs in the contestant's own environment. Ends when its standard input closes.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.contestant import Read, Sink

Answer = dict[str, Any]


def resident_kb() -> int:
    """Memory of this process now; 0 where /proc does not exist."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


def peak_kb() -> int:
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class Worker:
    def __init__(self, read: Read) -> None:
        self.read = read
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)

    def once(self, profile: str, sink: Sink) -> None:
        pending = self.read(profile, sink)
        if pending is not None:
            self.loop.run_until_complete(pending)

    def stream(self, profile: str, repeats: int = 1) -> Answer:
        gc.collect()
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(repeats):
            sink = Sink()
            self.once(profile, sink)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        return {"cpu": cpu / repeats, "wall": wall / repeats, "got": sink.characters(), "peak_kb": peak_kb()}

    def memory(self, profile: str) -> Answer:
        """The peak of traced allocations while one stream is read and the reader stores nothing."""
        sink = Sink()
        sink.thinking = sink.text = sink.tool_arguments = lambda _piece: None
        self.once(profile, sink)
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        self.once(profile, sink)
        peak = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()
        return {"peak_bytes": peak}

    def many(self, profile: str, streams: int) -> Answer:
        return self.loop.run_until_complete(self._many(profile, streams))

    async def _many(self, profile: str, streams: int) -> Answer:
        lags: list[int] = []
        first: list[int] = []
        await self._timed_stream(profile, [], [])
        resident = peak = resident_kb()

        async def watch() -> None:
            nonlocal peak
            while True:
                peak = max(peak, resident_kb())
                await asyncio.sleep(0.2)

        watcher = asyncio.ensure_future(watch())
        cpu, wall = time.process_time(), time.perf_counter()
        tasks = (self._timed_stream(profile, first, lags) for _ in range(streams))
        results = await asyncio.gather(*tasks, return_exceptions=True)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        watcher.cancel()
        errors = [repr(result)[:200] for result in results if isinstance(result, BaseException)]
        return {
            "cpu": cpu,
            "wall": wall,
            "events": len(lags),
            "kb_per_stream": (peak - resident) / streams,
            "first_ms": quantiles(first),
            "lag_ms": quantiles(lags),
            "errors": len(errors),
            "error": errors[0] if errors else None,
        }

    async def _timed_stream(self, profile: str, first: list[int], lags: list[int]) -> None:
        """Read one stream; each text is the time at which it was sent."""
        began = time.monotonic_ns()
        started = False

        def text(piece: str) -> None:
            nonlocal started
            if not piece.strip():
                return
            now = time.monotonic_ns()
            lags.append(now - int(piece))
            if not started:
                started = True
                first.append(now - began)

        sink = Sink()
        sink.text = text
        pending = self.read(profile, sink)
        assert pending is not None, "only async contestants read many streams"
        await pending


def quantiles(nanoseconds: list[int]) -> Answer:
    ordered = sorted(nanoseconds)

    def at(share: float) -> float | None:
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] / 1e6 if ordered else None

    return {"p50": at(0.5), "p99": at(0.99)}


def allow_many_files() -> None:
    try:
        import resource
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(65536, hard), hard))


def serve(name: str, build: Callable[[], Any]) -> None:
    """Build a worker and answer questions, one JSON line each: `{"do": method, …arguments}` → what it returns."""
    # Nothing that a library prints may reach the protocol.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    allow_many_files()

    def answer(value: Answer) -> None:
        print(json.dumps(value), file=answers, flush=True)

    def attempt(action: Callable[[], Any]) -> Any:
        try:
            return action()
        except Exception as error:  # Reported as the contestant's result, and in full in its log.
            logging.getLogger("bench").critical("failed", exc_info=True)
            answer({"error": f"{type(error).__name__}: {error}"[:400]})
            return None

    worker = attempt(build)
    if worker is None:
        return
    answer({"ready": name})
    for line in sys.stdin:
        question = json.loads(line)
        action = getattr(worker, question.pop("do"))
        result = attempt(partial(action, **question))
        if result is not None:
            answer(result)
    # Libraries leave threads and open loops; do not wait for them.
    answers.flush()
    os._exit(0)


def main() -> None:
    key, dialect, base_url = sys.argv[1:4]

    def build() -> Worker:
        from bench.contestants import find

        return Worker(find(key).build(base_url, dialect))

    serve(key, build)


if __name__ == "__main__":
    main()
