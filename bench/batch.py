"""The table of batches: CPU of `asides batch run` for each row, against a plain script of asyncio and aiohttp.

`python -m bench.batch [--rows N] [--rounds N]`. Each runs as a process, with few rows and with many; the difference
leaves out its start. The answers are counted, and their words compared.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.environments import ROOT, build_environ, find_python
from bench.floors.batch import CONCURRENCY
from bench.payloads import QUESTION, count_expected
from bench.processes import LOGS
from bench.server import replay_server
from bench.tables import Row, Table

PROFILE = "body-2048"
ASIDES, PLAIN = "asides batch run", "plain script"


class BatchFailed(Exception):
    """A batch ended with an error, or lost answers."""


def _write_command(name: str, url: str, source: Path, target: Path) -> list[str]:
    if name == PLAIN:
        python = str(find_python("floor"))
        return [python, "-m", "bench.floors.batch", f"{url}/chat/completions", str(source), str(target)]
    asides = [str(find_python("gateway")), "-m", "asides", "batch", "run", str(source), "-o", str(target), "-q"]
    return [*asides, "-m", "up:gpt-4.1-mini", "-t", "--no-stream", "--concurrency", str(CONCURRENCY)]


def _run(name: str, url: str, rows: int, folder: Path) -> tuple[float, float]:
    """The CPU seconds and the seconds of a batch of so many rows."""
    source, target, settings = folder / "in.jsonl", folder / "out.jsonl", folder / "asides.toml"
    # Equal rows are asked once.
    source.write_text("".join(json.dumps(f"{number}: {QUESTION}") + "\n" for number in range(rows)))
    settings.write_text(
        f'[providers.up]\ndialect = "openai_chat"\nbase_url = "{url}"\nkey = "optional"\nquirks = {{ tags = [] }}\n'
    )
    environ = build_environ("floor" if name == PLAIN else "asides")
    environ |= {"ASIDES_CONFIG": str(settings), "ASIDES_STATE": str(folder), "HOME": str(folder)}
    LOGS.mkdir(exist_ok=True)
    began = time.perf_counter()
    with (LOGS / f"batch_{name.replace(' ', '_')}.log").open("w") as log:
        command = _write_command(name, url, source, target)
        process = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=log, stderr=log)
        _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise BatchFailed(f"{name}: exit code {process.returncode}; its log is in {LOGS}")
    _check(name, target, rows)
    return used.ru_utime + used.ru_stime, seconds


def _check(name: str, target: Path, rows: int) -> None:
    expected = count_expected("chat", PROFILE).text
    answers = [json.loads(line) for line in target.read_text().splitlines()]
    lengths = {len(answer["text"]) for answer in answers}
    if {answer["index"] for answer in answers} != set(range(rows)) or lengths != {expected}:
        raise BatchFailed(f"{name}: LOST: {len(answers)} of {rows} answers, of {lengths} characters for {expected}")


def _measure(name: str, url: str, rows: int) -> tuple[float, float, float]:
    """CPU µs and µs of time for each row, and the CPU milliseconds of the start."""
    few = max(2, rows // 10)
    found: list[tuple[float, float]] = []
    for count in (few, rows):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            found.append(_run(name, url, count, Path(folder)))
    (few_cpu, few_seconds), (cpu, seconds) = found
    each = (cpu - few_cpu) / (rows - few)
    return 1e6 * each, 1e6 * (seconds - few_seconds) / (rows - few), 1000 * (few_cpu - few * each)


def measure_batches(base_url: str, *, rows: int, rounds: int) -> Table:
    """Each batch once in each round, in alternating order."""
    url = f"{base_url}/{PROFILE}/v1"
    figures: dict[str, list[tuple[float, float, float]]] = {PLAIN: [], ASIDES: []}
    problems: dict[str, str] = {}
    for number in range(rounds):
        for name in list(figures)[:: -1 if number % 2 else 1]:
            if name not in problems:
                try:
                    figures[name].append(_measure(name, url, rows))
                except BatchFailed as problem:
                    problems[name] = str(problem)
    table: list[Row] = []
    for name, measured in figures.items():
        row: Row = {"name": name, "delivered": problems.get(name, "all")}
        if measured:
            row |= {
                key: median(one[at] for one in measured) for at, key in enumerate(("cpu_us", "time_us", "start_ms"))
            }
        if name == ASIDES and measured and figures[PLAIN]:
            pairs = zip(measured, figures[PLAIN], strict=False)
            row["times"] = median(mine[0] / theirs[0] for mine, theirs in pairs)
        table.append(row)
    columns = {
        "name": "batch",
        "cpu_us": "CPU µs/row",
        "times": "÷ plain script",
        "time_us": "time µs/row",
        "start_ms": "start, CPU ms",
        "delivered": "delivered",
    }
    note = f"{CONCURRENCY} at once. asides keeps a ledger and writes the output in order; the script does neither."
    return Table("gateway_batch", f"batches of {rows:,} rows; {rounds} rounds", columns, table, [note])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.batch", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=5000, help="rows of the larger batch (default: 5000)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (default: 5)")
    options = parser.parse_args()
    with replay_server() as base_url:
        print(measure_batches(base_url, rows=options.rows, rounds=options.rounds).text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
