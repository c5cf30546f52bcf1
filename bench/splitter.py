"""The tag splitter alone, one character at a time: `python -m bench.splitter SIZE …` prints nanoseconds per character.

Runs in the environment of asides. The shapes make a careless splitter quadratic.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from bench.payloads import stream


def _words(size: int) -> str:
    deltas = [json.loads(event[6:])["choices"] for event in stream("chat", 4000).events[:-1]]
    text = "".join(choice["delta"].get("content") or "" for choices in deltas for choice in choices)
    return (text * (size // len(text) + 1))[:size]


def _thought_then_answer(size: int) -> str:
    half = size // 2
    return f"<think>{_words(half - 15)}</think>{_words(half)}"


SHAPES: dict[str, Callable[[int], str]] = {
    "a thought, then the answer": _thought_then_answer,
    "an answer without tags": _words,
    "a thought that never ends": lambda size: "<think>" + _words(size - 7),
    "many unfinished tags": lambda size: ("<think>" + "a <thin b </thi " * (size // 16))[:size],
    "many blocks": lambda size: ("<think>plan</think>step " * (size // 24 + 1))[:size],
}


def _seconds(text: str) -> float:
    import asides

    separator: Any = asides.Separator(starts_inside=False)
    feed = separator.feed
    began = time.process_time()
    for character in text:
        feed(character)
    separator.finish()
    return time.process_time() - began


def main() -> None:
    sizes = [int(argument) for argument in sys.argv[1:]]
    rows = []
    for shape, make in SHAPES.items():
        row: dict[str, Any] = {"shape": shape}
        for size in sizes:
            text = make(size)
            row[str(size)] = median(_seconds(text) for _ in range(3)) / len(text) * 1e9
        row["growth"] = row[str(sizes[-1])] / row[str(sizes[0])]
        rows.append(row)
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
