"""The front door for contributors: one command, its own environment, the same in CI and on a desk.

python3 scripts/dev.py check           lint, types, test: all that CI runs
python3 scripts/dev.py lint            ruff: rules and format
python3 scripts/dev.py format          ruff: mend what can be mended
python3 scripts/dev.py types           mypy and pyright, both strict, tests included
python3 scripts/dev.py test [...]      pytest; what follows goes to it
python3 scripts/dev.py coverage        the tests, with branch coverage
python3 scripts/dev.py docs            write the generated pages, then run every example of the docs
python3 scripts/dev.py bench [...]     the benchmark; what follows goes to it
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from environment import CONSTRAINTS, PROJECT, ROOT, ensure, run

Task = Callable[[Path, Sequence[str]], int]


def lint(python: Path, _: Sequence[str]) -> int:
    """Rules and format, nothing changed."""
    return max(run([python, "-m", "ruff", "check"]), run([python, "-m", "ruff", "format", "--check"]))


def format_(python: Path, _: Sequence[str]) -> int:
    """Mend what can be mended without thinking."""
    return run([python, "-m", "ruff", "check", "--fix"]) or run([python, "-m", "ruff", "format"])


def types(python: Path, _: Sequence[str]) -> int:
    """Two checkers, since they disagree on what they catch."""
    return max(run([python, "-m", "mypy"]), run([python, "-m", "basedpyright", "--pythonpath", python]))


def test(python: Path, words: Sequence[str]) -> int:
    """The suite on all cores; what the words name by file, on one, where a debugger works too."""
    named = any(word.startswith(("tests", "-n")) for word in words)
    return run([python, "-m", "pytest", *([] if named else ["-n", "auto"]), *words])


def coverage(python: Path, words: Sequence[str]) -> int:
    """The suite, with the branches it took."""
    return run([python, "-m", "pytest", "--cov", "--cov-report=term", *words])


def docs(python: Path, _: Sequence[str]) -> int:
    """Write the generated pages, then run every example."""
    for page in ("public_names.py", "provider_table.py", "requirements_map.py", "terminal_picture.py"):
        failed = run([python, ROOT / "scripts" / page])
        if failed:
            return failed
    return run([python, "-m", "pytest", "tests/test_docs.py"])


def bench(python: Path, words: Sequence[str]) -> int:
    """The benchmark. The peers get environments of their own, once; `--quick` does without them."""
    if "--quick" not in words and not (ROOT / "bench" / ".venvs").exists():
        failed = run([python, "bench/install_peers.py"])
        if failed:
            return failed
    return run([python, "-m", "bench.compare", *words])


def check(python: Path, words: Sequence[str]) -> int:
    """What has to be green before anything is merged; every part is run, so that one visit shows every fault."""
    failures: list[str] = []
    for task in (lint, types, test):
        print(f"── {task.__name__} ──", flush=True)
        began = time.monotonic()
        if task(python, words if task is test else ()):
            failures.append(task.__name__)
        print(f"   {task.__name__}: {time.monotonic() - began:.0f} s", flush=True)
    if failures:
        print(f"not green: {', '.join(failures)}")
    return 1 if failures else 0


TASKS: dict[str, Task] = {
    "check": check,
    "lint": lint,
    "format": format_,
    "types": types,
    "test": test,
    "coverage": coverage,
    "docs": docs,
    "bench": bench,
}


def main() -> int:
    """Do the task that the first word names."""
    task = TASKS.get(sys.argv[1]) if len(sys.argv) > 1 else None
    if task is None:
        print(__doc__, file=sys.stderr)
        return 2
    return task(ensure(".venv", ["-e", ".[dev]"], [PROJECT, CONSTRAINTS]), sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
