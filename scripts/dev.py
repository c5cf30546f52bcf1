"""The commands for contributors. They run in their own environment, the same in CI and on your machine.

python3 scripts/dev.py check           lint, types and test
python3 scripts/dev.py lint            ruff: rules and format; the sync modules match their async versions
python3 scripts/dev.py format          ruff: fix what it can fix
python3 scripts/dev.py types           mypy and pyright, both strict, tests included
python3 scripts/dev.py test [...]      the tests of the library; `test packages`: those of the packages
python3 scripts/dev.py coverage        the tests with branch coverage
python3 scripts/dev.py docs            write the generated files, then run every example of the docs
python3 scripts/dev.py site [...]      build the site of the docs into site/; `serve` shows it while you write
python3 scripts/dev.py package [...]   build the packages and test them as installed; --help says more
python3 scripts/dev.py bench [...]     the benchmark; further arguments go to it
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from environment import ROOT, STREET, ensure, list_install_inputs, run

Task = Callable[[Path, Sequence[str]], int]


def lint(python: Path, _: Sequence[str]) -> int:
    """Check rules, format and the generated sync modules; change nothing."""
    checks: tuple[list[str | Path], ...] = (
        [python, "-m", "ruff", "check"],
        [python, "-m", "ruff", "format", "--check"],
        [python, ROOT / "scripts" / "unasync.py", "--check"],
    )
    return max(map(run, checks))


def format_(python: Path, _: Sequence[str]) -> int:
    """Fix what ruff can fix."""
    return run([python, "-m", "ruff", "check", "--fix"]) or run([python, "-m", "ruff", "format"])


def types(python: Path, _: Sequence[str]) -> int:
    """Run both type checkers, since each finds errors that the other misses; at once, since each uses one core."""
    checkers = ([python, "-m", "mypy"], [python, "-m", "basedpyright", "--pythonpath", python])
    with ThreadPoolExecutor() as threads:
        return max(threads.map(run, checkers))


_TESTS_FAILED = 1
"""The exit code of pytest if tests failed; other codes say that it could not run them."""


def test(python: Path, words: Sequence[str]) -> int:
    """Run the tests on all cores: those of the library, or what is named. Files run on one core, for a debugger.

    `packages` names the suites of the packages, `packages/asides-gateway` one of them with its servers, and `-m` runs
    the tests with a marker in all suites.
    """
    # Without it every process, of pytest and of the tests, compiles what it imports: half a minute for each worker.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    on_one_core = any(word.startswith(("tests/", "-n")) or "/tests/" in word for word in words)
    parallel = [] if on_one_core else ["-n", "auto", "--dist", "worksteal"]
    named = any(word.startswith(("tests", "packages")) for word in words)
    is_marked = "-m" in words and not words[words.index("-m") + 1].startswith("not ")
    suites = [] if named or is_marked else ["tests"]
    failed = run([python, "-m", "pytest", *parallel, *suites, *words])
    if failed != _TESTS_FAILED or on_one_core or "CI" not in os.environ:
        return failed
    # On a busy machine, a test of processes and deadlines may fail for want of time. It fails for good if it also fails
    # alone. Both runs are in the log.
    print("── the tests that failed, once more, one by one ──", flush=True)
    return run([python, "-m", "pytest", "--last-failed", "--last-failed-no-failures=none", *suites, *words])


def coverage(python: Path, words: Sequence[str]) -> int:
    """Run the tests with branch coverage."""
    return run([python, "-m", "pytest", "--cov", "--cov-report=term", *words])


def docs(python: Path, _: Sequence[str]) -> int:
    """Write the generated files, then run every example."""
    tables = ("public_names", "provider_table", "stage_rules", "requirements_map", "draw_layers")
    for script in (*tables, "terminal_picture", "man_page"):
        failed = run([python, ROOT / "scripts" / f"{script}.py"])
        if failed:
            return failed
    return run([python, "-m", "pytest", "tests/test_docs.py"])


def site(python: Path, words: Sequence[str]) -> int:
    """Build the site, strictly: a link that leads nowhere is an error. It needs no network."""
    # The theme prints a notice about its successor with every build.
    os.environ["NO_MKDOCS_2_WARNING"] = "1"
    return run([python, "-m", "mkdocs", *(words or ("build", "--strict", "--quiet"))])


def bench(python: Path, words: Sequence[str]) -> int:
    """Run the benchmark. The other libraries are installed once, each in its own environment; `--quick` skips them."""
    if "--quick" not in words and not (ROOT / "bench" / ".venvs").exists():
        failed = run([python, "bench/install_peers.py"])
        if failed:
            return failed
    return run([python, "-m", "bench.compare", *words])


def package(python: Path, words: Sequence[str]) -> int:
    """Build the packages and test them as installed: with this Python, or with the others that it is given."""
    return run([python, ROOT / "scripts" / "package.py", *words])


def check(python: Path, words: Sequence[str]) -> int:
    """Run lint, types and tests. A failure does not stop the others."""
    failures: list[str] = []
    for task in (lint, types, test):
        print(f"── {task.__name__} ──", flush=True)
        began = time.monotonic()
        if task(python, words if task is test else ()):
            failures.append(task.__name__)
        print(f"   {task.__name__}: {time.monotonic() - began:.0f} s", flush=True)
    if failures:
        print(f"failed: {', '.join(failures)}")
    return 1 if failures else 0


TASKS: dict[str, Task] = {
    "check": check,
    "lint": lint,
    "format": format_,
    "types": types,
    "test": test,
    "coverage": coverage,
    "docs": docs,
    "site": site,
    "package": package,
    "bench": bench,
}


def main() -> int:
    """Run the task that the first argument names."""
    task = TASKS.get(sys.argv[1]) if len(sys.argv) > 1 else None
    if task is None:
        print(__doc__, file=sys.stderr)
        return 2
    return task(ensure(".venv", ["-e", ".[dev]"], list_install_inputs(), editable=STREET), sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
