"""The environments of the scripts: made with `venv` and `pip` alone, and made again when their inputs change.

Uses only the standard library, since it runs before anything is installed.
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
PACKAGES = ROOT / "packages"
# The packages that are installed with the extras of asides, and developed with it.
STREET = (PACKAGES / "asides-gateway", PACKAGES / "asides-batch", PACKAGES / "asides-stage")
HOOKS = (ROOT / "scripts" / "hatch_build.py", ROOT / "scripts" / "hatch_package.py")
MINIMUM = (3, 11)


def ensure(folder: str, requirements: Sequence[str], inputs: Iterable[Path], *, editable: Sequence[Path] = ()) -> Path:
    """The Python of an environment with `requirements` in it. It is made again when the content of an input changes.

    The packages in `editable` are among what the requirements install, and then read from their folders.
    """
    if sys.version_info < MINIMUM:
        sys.exit(f"asides needs Python {'.'.join(map(str, MINIMUM))} or newer; this is {sys.version.split()[0]}.")
    home = ROOT / folder
    python = find_python(home)
    stamp = home / "inputs.sha256"
    digest = _digest(requirements, inputs)
    if python.exists() and stamp.exists() and stamp.read_text() == digest:
        return python
    words = " ".join(requirements)
    print(f"· creating {folder} with Python {sys.version.split()[0]}: {words}", file=sys.stderr, flush=True)
    shutil.rmtree(home, ignore_errors=True)
    if subprocess.run([sys.executable, "-m", "venv", str(home)], check=False).returncode:
        sys.exit("python3 -m venv failed; on Debian and Ubuntu it is in the package python3-venv.")
    if install(python, requirements):
        sys.exit(f"pip could not install {words}; see the lines above.")
    # In a second step: pip refuses one folder as a requirement of an extra and as an editable one.
    folders = [word for path in editable for word in ("-e", str(path))]
    if folders and install(python, ["--no-deps", *folders]):
        sys.exit("pip could not install the packages of this repository; see the lines above.")
    stamp.write_text(digest)
    return python


def find_python(home: Path) -> Path:
    """The Python of an environment."""
    return home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def install(python: Path, requirements: Sequence[str]) -> int:
    """Install with the versions of constraints.txt, seen from the root of the project. Returns pip's exit code."""
    command = [str(python), "-m", "pip", "install", "--quiet", *requirements]
    return subprocess.run(command, cwd=ROOT, env=build_pip_environment(), check=False).returncode


def build_pip_environment() -> dict[str, str]:
    """The variables that hold pip to constraints.txt, with the root of the project as the current folder.

    Variables, since they must also reach the environment that builds a wheel, for which newer versions of pip read
    another one. Relative paths, since pip splits the values at spaces.
    """
    constraints = dict.fromkeys(("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT"), CONSTRAINTS.name)
    return {**os.environ, **constraints, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def list_install_inputs() -> list[Path]:
    """The files that decide what an installation contains, apart from the sources: changed, they ask for a new one."""
    projects = sorted(PACKAGES.glob("*/pyproject.toml"))
    return [PROJECT, CONSTRAINTS, *HOOKS, *projects, *list_sources(PACKAGES / "asides-tiny-model")]


def list_sources(folder: Path) -> list[Path]:
    """The files below a folder, without what Python compiled or a killed process left half written."""
    below = ((path, path.relative_to(folder).parts) for path in folder.rglob("*"))
    return [path for path, parts in below if "__pycache__" not in parts and path.suffix != ".pyc" and path.is_file()]


def run(command: Sequence[str | Path]) -> int:
    """Run a command in the root of the project and return its exit code."""
    return subprocess.run([str(word) for word in command], cwd=ROOT, check=False).returncode


def _digest(requirements: Sequence[str], inputs: Iterable[Path]) -> str:
    digest = hashlib.sha256(repr((sys.version, sys.prefix, list(requirements))).encode())
    for path in sorted(inputs):
        digest.update(f"{path.relative_to(ROOT).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
