"""Installs the npm packages whose readers the tests run, at the versions named here, into .npm-packages/.

    python scripts/npm_packages.py            install what is missing; print the folder

It uses npm's ordinary client, and runs no script of a package. The tests that need the packages call it, and skip where
there is no npm.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".npm-packages"
# `ai` 7 asks for Node 22, and reads streams with Node 20 too.
PACKAGES = {
    "ai": "6.0.326",
    "ai-5": "npm:ai@5.0.277",
    "ai-7": "npm:ai@7.0.169",
    "@ag-ui/client": "1.0.0",
    # What the page is checked with: the types of its modules, and how accessible it is.
    "typescript": "7.0.2",
    "axe-core": "4.14.0",
}


class NpmMissing(Exception):
    """There is no npm, or it could not install."""


def install(folder: Path = FOLDER) -> Path:
    """Install what is missing, and return the folder. Raises NpmMissing with the reason."""
    wanted = json.dumps({"private": True, "dependencies": PACKAGES}, indent=2)
    done = folder / "installed.json"
    if done.exists() and done.read_text(encoding="utf-8") == wanted:
        return folder
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise NpmMissing("node and npm are not installed")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(wanted, encoding="utf-8")
    words = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    try:
        ran = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise NpmMissing(f"npm did not finish: {type(problem).__name__}") from None
    if ran.returncode:
        raise NpmMissing(f"npm could not install: {ran.stderr.strip().splitlines()[-1:]}")
    done.write_text(wanted, encoding="utf-8")
    return folder


if __name__ == "__main__":
    try:
        print(install())
    except NpmMissing as problem:
        sys.exit(str(problem))
