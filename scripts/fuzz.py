"""Feeds changed bodies, errors, lists, conversations, stores, arguments and HTTP to asides, and lists what goes wrong.

    python scripts/fuzz.py --seconds 600           all targets, in turn
    python scripts/fuzz.py --target decoders       one of them
    python scripts/fuzz.py --target decoders --example 1:4711    one input again, with its traceback

A finding is anything but a value or an AsidesError, a result that depends on the chunking, or thinking in a text. Each
input is drawn from its seed, its target and its number, so a finding can be repeated.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.fuzz.targets import CRASHES, TARGETS, Finding  # noqa: E402 - after the path is set


def run_example(target: str, seed: str, number: int) -> None:
    """Draw one input and feed it."""
    TARGETS[target](random.Random(f"{seed}:{target}:{number}"))


def main() -> int:
    """Fuzz; return how many findings there were, at most 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--target", choices=TARGETS)
    parser.add_argument("--example", help="seed:number of one input")
    given = parser.parse_args()
    if given.example:
        seed, _, number = given.example.rpartition(":")
        run_example(given.target or "decoders", seed, int(number))
        return 0
    targets = [given.target] if given.target else list(TARGETS)
    inputs: Counter[str] = Counter()
    findings: Counter[str] = Counter()
    end = time.monotonic() + given.seconds
    while time.monotonic() < end:
        for target in targets:
            # Each target gets an equal share of time, not of inputs.
            share = time.monotonic() + min(1.0, given.seconds / len(targets))
            while time.monotonic() < min(share, end):
                inputs[target] += 1
                try:
                    run_example(target, given.seed, inputs[target])
                except Finding as finding:
                    text = str(finding)[:300]
                    findings[target] += 1
                    if findings[target] <= 20:
                        print(f"{target} --example {given.seed}:{inputs[target]}  {text}", flush=True)
    for target in targets:
        print(f"{target:16}{inputs[target]:10} inputs {findings[target]:6} findings")
    for crash, count in CRASHES.most_common(20):
        print(f"guarded {count:6}  {crash}")
    return min(1, findings.total())


if __name__ == "__main__":
    sys.exit(main())
