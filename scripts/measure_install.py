"""Measures what an installation takes on the disk, package by package, in fresh environments.

    python scripts/measure_install.py                       asides alone
    python scripts/measure_install.py local prices …        also with each of these extras, one environment each

It installs the checkout with the versions of constraints.txt. The size of a package is the sum of its files as the
installer recorded them, in megabytes of 1,000,000 bytes. Compiled files (.pyc) are not counted: pip and uv differ on
whether they write them. pip and setuptools are not counted, since asides does not bring them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from environment import ROOT, find_python, install

LIMIT_MEGABYTES = 7.0
LIMIT_PACKAGES = 5
_INSTALLERS = ("pip", "setuptools")
_MEASURE = """
import json
from importlib.metadata import distributions

def measure(distribution):
    files = [file.locate() for file in distribution.files or () if file.suffix != ".pyc"]
    return sum(file.stat().st_size for file in files if file.is_file())

print(json.dumps({one.name: measure(one) for one in distributions()}))
"""


def measure(python: Path) -> dict[str, int]:
    """The bytes of each package in the environment of this Python, without installers; the largest first."""
    found = subprocess.run([str(python), "-I", "-c", _MEASURE], capture_output=True, text=True, check=True)
    sizes: dict[str, int] = json.loads(found.stdout)
    kept = {name: size for name, size in sizes.items() if name not in _INSTALLERS}
    return dict(sorted(kept.items(), key=lambda item: -item[1]))


def find_excess(sizes: Mapping[str, int]) -> str | None:
    """What is too large about asides without extras; None if nothing is."""
    megabytes = sum(sizes.values()) / 1e6
    if megabytes > LIMIT_MEGABYTES:
        return f"{megabytes:.2f} MB are installed without extras; the limit is {LIMIT_MEGABYTES:g} MB"
    if len(sizes) > LIMIT_PACKAGES:
        return f"{len(sizes)} packages are installed without extras; the limit is {LIMIT_PACKAGES}"
    return None


def describe(title: str, sizes: Mapping[str, int]) -> str:
    """A table of the sizes."""
    lines = [f"  {name:<28}{size / 1e6:>8.2f} MB" for name, size in sizes.items()]
    return "\n".join([f"{title}: {len(sizes)} packages, {sum(sizes.values()) / 1e6:.2f} MB", *lines])


def main(extras: Sequence[str]) -> int:
    """Measure asides alone, then with each extra."""
    excess: str | None = None
    alone: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        for extra in ("", *extras):
            home = Path(folder, extra or "alone")
            subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
            python = find_python(home)
            if install(python, [f".[{extra}]" if extra else "."]):
                return 1
            sizes = measure(python)
            if extra:
                added = {name: size for name, size in sizes.items() if name not in alone}
                print(describe(f"asides[{extra}] adds", added))
            else:
                alone, excess = sizes, find_excess(sizes)
                print(describe(f"asides alone, from {ROOT.name}, Python {sys.version.split()[0]}", sizes))
    if excess:
        print(excess)
    return 1 if excess else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
