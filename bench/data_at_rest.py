"""Rows of files: `python -m bench.data_at_rest` prints seconds, CPU seconds and memory of `asides separate`.

Beside it runs a plain regular expression with the standard library's `json`, on the same JSON lines.

    python -m bench.data_at_rest --rows 50000 --rounds 3
    python -m bench.data_at_rest --memory 10000 100000 1000000
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

_PLAIN = """
import json, re, sys
tags = re.compile(r"<think>(.*?)</think>\\s*(.*)", re.DOTALL)
with open(sys.argv[1], encoding="utf-8") as source, open(sys.argv[2], "w", encoding="utf-8") as target:
    for line in source:
        row = json.loads(line)
        found = tags.match(row["response"])
        row["thinking"], row["answer"] = found.groups() if found else (None, row["response"])
        target.write(json.dumps(row, ensure_ascii=False) + "\\n")
"""
_WORDS = "we need the sum of both numbers first so check each step again, then write 42 and say why it holds.\n".split(
    " "
)
_MARKED_WORDS = [*_WORDS * 4, "`x`", "<", "[1]", "a/b", "|", "<b>", "\n```python\nx = a < b\n```\n"]
_MEGABYTE = 1 << 20


def write_rows(path: Path, count: int, size: int, words: Sequence[str] = _WORDS) -> None:
    """Write rows whose texts have about this size: half of it is thinking."""
    chance = random.Random(1)
    texts = []
    for _ in range(200):
        half = " ".join(chance.choices(words, k=size // 10))[: size // 2]
        if half.count("```") % 2:
            half += "\n```"
        texts.append(f"<think>\n{half}\n</think>\n\n{half}")
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            row = {"id": number, "model": "qwen3", "response": texts[number % len(texts)]}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def run(command: list[str]) -> dict[str, float]:
    """Run a command; return its seconds, CPU seconds and the memory of its largest process."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - began
    assert process.returncode == 0, command
    megabytes = used.ru_maxrss * 1024 / _MEGABYTE
    return {"seconds": seconds, "cpu": used.ru_utime + used.ru_stime, "megabytes": megabytes}


def separate(source: Path, target: Path, *options: str) -> dict[str, float]:
    """Run `asides separate` on a file."""
    for path in target.parent.glob(f"{target.name}*"):
        path.unlink()
    command = [sys.executable, "-m", "asides", "separate", str(source), "--column", "response", "-q", *options]
    return run([*command, "-o", str(target)])


def compare(folder: Path, rows: int, rounds: int, words: Sequence[str] = _WORDS) -> dict[str, Any]:
    """Compare with the regular expression, and one process with two; each figure is a median of all rounds."""
    source, target = folder / "rows.jsonl", folder / "out.jsonl"
    write_rows(source, rows, 4000, words)
    found: dict[str, list[dict[str, float]]] = {"regex": [], "one": [], "two": []}
    for _ in range(rounds):
        found["regex"].append(run([sys.executable, "-c", _PLAIN, str(source), str(target)]))
        found["one"].append(separate(source, target))
        found["two"].append(separate(source, target, "--processes", "2"))

    def ratio(left: str, right: str, name: str) -> float:
        pairs = zip(found[left], found[right], strict=True)
        return round(median(mine[name] / theirs[name] for mine, theirs in pairs), 2)

    figures = {
        name: {key: round(median(each[key] for each in results), 2) for key in results[0]}
        for name, results in found.items()
    }
    return {
        "rows": rows,
        **figures,
        "regex / one, CPU": ratio("regex", "one", "cpu"),
        "one / two, seconds": ratio("one", "two", "seconds"),
    }


def measure_memory(folder: Path, counts: list[int]) -> dict[str, float]:
    """The peak memory for files of these numbers of short rows."""
    source, target = folder / "rows.jsonl", folder / "out.jsonl"
    peaks: dict[str, float] = {}
    for count in counts:
        write_rows(source, count, 400)
        peaks[f"{count:,} rows"] = round(separate(source, target)["megabytes"], 1)
    return peaks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", type=int, nargs="*", help="only measure memory, for files of so many rows")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.memory:
            print(json.dumps(measure_memory(folder, options.memory), indent=2))
        else:
            found = {
                name: compare(folder, options.rows, options.rounds, words)
                for name, words in (("plain rows", _WORDS), ("rows with code and brackets", _MARKED_WORDS))
            }
            print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
