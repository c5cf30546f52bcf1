"""The environments of the scripts: made with `venv` and `pip` alone, and made again when their inputs change.

Uses only the standard library, since it runs before anything is installed. Not here: what runs in them (try, dev).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
PROJECT = ROOT / "pyproject.toml"
MINIMUM = (3, 11)


def ensure(folder: str, install: Sequence[str], inputs: Iterable[Path]) -> Path:
    """The Python of an environment with `install` in it. It is made again when the content of an input changes."""
    if sys.version_info < MINIMUM:
        sys.exit(f"asides needs Python {'.'.join(map(str, MINIMUM))} or newer; this is {sys.version.split()[0]}.")
    home = ROOT / folder
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = home / "inputs.sha256"
    digest = _digest(install, inputs)
    if python.exists() and stamp.exists() and stamp.read_text() == digest:
        return python
    print(f"· creating {folder} with Python {sys.version.split()[0]}: {' '.join(install)}", file=sys.stderr, flush=True)
    shutil.rmtree(home, ignore_errors=True)
    if subprocess.run([sys.executable, "-m", "venv", str(home)], check=False).returncode:
        sys.exit("python3 -m venv failed; on Debian and Ubuntu it is in the package python3-venv.")
    # A variable, since it must also reach the environment that builds the wheel; a relative path, since pip splits
    # its value at spaces.
    environment = {**os.environ, "PIP_CONSTRAINT": CONSTRAINTS.name, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    installed = subprocess.run(
        [str(python), "-m", "pip", "install", "--quiet", *install], cwd=ROOT, env=environment, check=False
    )
    if installed.returncode:
        sys.exit(f"pip could not install {' '.join(install)}; see the lines above.")
    stamp.write_text(digest)
    return python


def run(command: Sequence[str | Path]) -> int:
    """Run a command in the root of the project and return its exit code."""
    return subprocess.run([str(word) for word in command], cwd=ROOT, check=False).returncode


def _digest(install: Sequence[str], inputs: Iterable[Path]) -> str:
    digest = hashlib.sha256(repr((sys.version, sys.prefix, list(install))).encode())
    for path in sorted(inputs):
        digest.update(f"{path.relative_to(ROOT).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
