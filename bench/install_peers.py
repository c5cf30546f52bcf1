"""Create one environment per contestant under `bench/.venvs`: `python bench/install_peers.py [NAME ...] [--upgrade]`.

Uses uv if it is installed, else venv and pip. The peers are dependencies of this comparison, never of asides.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.environments import ENVIRONMENTS, find_folder, find_python


def find_uv() -> str | None:
    beside_python = Path(sys.executable).parent / "uv"
    return shutil.which("uv") or (str(beside_python) if beside_python.exists() else None)


def install(environment: str, uv: str | None, upgrade: bool) -> None:
    folder = find_folder(environment)
    if not folder.exists():
        make = [uv, "venv", "-q", "-p", sys.executable] if uv else [sys.executable, "-m", "venv"]
        subprocess.run([*make, str(folder)], check=True)
    python = str(find_python(environment))
    command = [uv, "pip", "install", "-q", "-p", python] if uv else [python, "-m", "pip", "install", "-q"]
    if uv:
        command.append("--compile-bytecode")
    if upgrade:
        command.append("--upgrade")
    subprocess.run([*command, *ENVIRONMENTS[environment]], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *ENVIRONMENTS], metavar="NAME", help="default: all")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    options = parser.parse_args()
    uv = find_uv()
    failed = []
    for environment in options.names or ENVIRONMENTS:
        began = time.monotonic()
        try:
            install(environment, uv, options.upgrade)
        except subprocess.CalledProcessError as error:
            failed.append(environment)
            shutil.rmtree(find_folder(environment), ignore_errors=True)
            print(f"{environment}: failed ({error.returncode})", file=sys.stderr, flush=True)
        else:
            print(f"{environment}: ready in {time.monotonic() - began:.0f} s", flush=True)
    if failed:
        print(f"not installed: {', '.join(failed)}; their rows will be left out", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
