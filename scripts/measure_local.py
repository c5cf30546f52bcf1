"""Measures start, speed, memory and correct answers of the embedded model, and prints the table of docs/local.md.

    python scripts/measure_local.py

Run it in an environment with asides[local], on an idle machine. It reads memory from /proc.
"""

from __future__ import annotations

import asyncio
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import asides
from asides.local import launch, server_pool, stop

MODEL = "local:tiny"
QUESTION = "What is 23 * 47?"
STARTS = 10
SUMS = 300
STREAMS = 50


def main() -> None:
    """Measure and print."""
    rows = [("machine", f"{platform.machine()}, {os.cpu_count()} cores"), ("day", f"{datetime.now(UTC):%Y-%m-%d}")]
    rows.append(("server start, median", f"{statistics.median(_time_starts()):.2f} s"))
    rows.append(("`asides ask` with server start and stop, median", f"{statistics.median(_time_commands()):.2f} s"))
    asides.ask(MODEL, QUESTION)
    rows.append(("memory after the first answer", f"{_read_memory():.0f} MB"))
    rows.append(("tokens per second, one question after another", f"{_measure_speed():.0f}"))
    right, seconds, tokens = asyncio.run(_ask_sums())
    rows.append((f"tokens per second, {STREAMS} streams at once", f"{tokens / seconds:.0f}"))
    rows.append((f"correct of {SUMS} sums of two-digit numbers", str(right)))
    rows.append((f"memory after {SUMS} sums", f"{_read_memory():.0f} MB"))
    for name, value in rows:
        print(f"| {name} | {value} |")


def _time_starts() -> list[float]:
    seconds: list[float] = []
    for _ in range(STARTS):
        stop()
        began = time.monotonic()
        launch("tiny")
        seconds.append(time.monotonic() - began)
    return seconds


def _time_commands() -> list[float]:
    seconds: list[float] = []
    for _ in range(STARTS):
        began = time.monotonic()
        command = [sys.executable, "-m", "asides", "ask", "-q", "-m", MODEL, QUESTION]
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
        seconds.append(time.monotonic() - began)
    return seconds


def _read_memory() -> float:
    (child,) = server_pool.list_running()
    status = Path(f"/proc/{child.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) / 1000


def _measure_speed() -> float:
    began, tokens = time.monotonic(), 0
    for _ in range(20):
        tokens += asides.ask(MODEL, QUESTION).usage.output or 0
    return tokens / (time.monotonic() - began)


async def _ask_sums() -> tuple[int, float, int]:
    chance = random.Random(20261115)
    at_once = asyncio.Semaphore(STREAMS)

    async def is_right(client: asides.AsyncClient, sign: str) -> tuple[bool, int]:
        low, high = sorted(chance.sample(range(10, 100), 2))
        result = {"+": low + high, "-": high - low, "*": low * high}[sign]
        async with at_once, client.stream(MODEL, f"What is {high} {sign} {low}?") as events:
            reply = await events.drain()
        figures = re.findall(r"\d+", reply.text.replace(",", ""))
        return figures[-1:] == [str(result)], reply.usage.output or 0

    began = time.monotonic()
    async with asides.AsyncClient() as client:
        replies = await asyncio.gather(*(is_right(client, "+-*"[place % 3]) for place in range(SUMS)))
    seconds = time.monotonic() - began
    return sum(right for right, _ in replies), seconds, sum(tokens for _, tokens in replies)


if __name__ == "__main__":
    main()
