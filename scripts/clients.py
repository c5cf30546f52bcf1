"""Installs the command lines of other makers that the tests run against the gateway, into .clients/.

    python scripts/clients.py install [NAME …]     install what is missing; without names, all that npm has
    python scripts/clients.py list                 print the clients, their versions, and where they are
    python scripts/clients.py run NAME [WORD …]    run one

It uses the ordinary clients of the registries, npm and pip, and runs no script of a package: what a script would copy
is in a package for this platform, and is run from there. The versions are those that `asides connect` was checked with.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".clients"
_SECONDS = 900
_SYSTEMS = {"Linux": "linux", "Darwin": "darwin", "Windows": "win32"}
_MACHINES = {"x86_64": "x64", "AMD64": "x64", "arm64": "arm64", "aarch64": "arm64"}


class Client(NamedTuple):
    """A command line, and the package that has it."""

    package: str
    version: str
    programs: tuple[str, ...]
    """Where its program may be, seen from its folder; the first that exists is run."""
    registry: str = "npm"

    @property
    def is_default(self) -> bool:
        """Whether it is installed without being named. The Python ones bring a hundred packages each."""
        return self.registry == "npm"


CLIENTS = {
    "claude": Client("@anthropic-ai/claude-code", "2.1.197", ("@anthropic-ai/claude-code-{platform}/claude{exe}",)),
    "codex": Client("@openai/codex", "0.166.0", ("@openai/codex/bin/codex.js",)),
    "gemini": Client("@google/gemini-cli", "0.61.0", ("@google/gemini-cli/bundle/gemini.js",)),
    "opencode": Client(
        "opencode-ai",
        "1.18.33",
        # The newest instructions of a processor, or those that all have.
        ("opencode-{opencode}/bin/opencode{exe}", "opencode-{opencode}-baseline/bin/opencode{exe}"),
    ),
    "qwen": Client("@qwen-code/qwen-code", "0.15.10", ("@qwen-code/qwen-code/cli.js",)),
    "pi": Client("@mariozechner/pi-coding-agent", "0.73.1", ("@mariozechner/pi-coding-agent/dist/cli.js",)),
    "llm": Client("llm", "0.30", ("{scripts}/llm{exe}",), "pip"),
    "aider": Client("aider-chat", "0.86.2", ("{scripts}/aider{exe}",), "pip"),
}


class ClientMissing(Exception):
    """A client is not installed, or cannot be."""


def find_command(name: str, folder: Path = FOLDER) -> list[str]:
    """The words that run a client. Raises ClientMissing where it is not installed, in this version."""
    client = CLIENTS[name]
    home = _find_home(name, folder)
    if not _is_installed(name, folder):
        raise ClientMissing(f"{name} {client.version} is not installed: run scripts/clients.py install {name}")
    places = {
        "platform": f"{_SYSTEMS.get(platform.system(), '')}-{_MACHINES.get(platform.machine(), '')}",
        "exe": ".exe" if os.name == "nt" else "",
        "scripts": "Scripts" if os.name == "nt" else "bin",
    }
    places["opencode"] = places["platform"].replace("win32", "windows")
    inside = home / "node_modules" if client.registry == "npm" else home
    for program in client.programs[1:] if _needs_baseline(client) else client.programs:
        place = inside / program.format(**places)
        if place.exists():
            return [str(place)] if place.suffix != ".js" else [_find_node(), str(place)]
    raise ClientMissing(f"{name} has no program for {platform.system()} on {platform.machine()}")


def _find_node() -> str:
    node = shutil.which("node")
    if node is None:
        raise ClientMissing("node is not installed")
    return node


def install(names: Sequence[str], folder: Path = FOLDER) -> None:
    """Install clients, each in a folder of its own. Raises ClientMissing with the reason."""
    for name in names:
        if _is_installed(name, folder):
            continue
        print(f"· installing {name}: {CLIENTS[name].package} {CLIENTS[name].version}", file=sys.stderr, flush=True)
        home = _find_home(name, folder)
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        (_install_with_npm if CLIENTS[name].registry == "npm" else _install_with_pip)(CLIENTS[name], home)
        (home / "installed.json").write_text(_describe(name), encoding="utf-8")


def _install_with_npm(client: Client, home: Path) -> None:
    _find_node()
    npm = shutil.which("npm")
    if npm is None:
        raise ClientMissing("npm is not installed")
    wanted = {"private": True, "dependencies": {client.package: client.version}}
    (home / "package.json").write_text(json.dumps(wanted, indent=2), encoding="utf-8")
    _run([npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"], home)


def _install_with_pip(client: Client, home: Path) -> None:
    venv.create(home, with_pip=True)
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    words = ["-m", "pip", "install", "--quiet", "--only-binary", ":all:", f"{client.package}=={client.version}"]
    _run([str(python), *words], home)


def _run(words: Sequence[str], home: Path) -> None:
    try:
        ran = subprocess.run(words, cwd=home, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise ClientMissing(f"{Path(words[0]).name} did not finish: {type(problem).__name__}") from None
    if ran.returncode:
        lines = ran.stderr.strip().splitlines()
        raise ClientMissing(f"{Path(words[0]).name} could not install: {' '.join(lines[:3])}")


def _find_home(name: str, folder: Path) -> Path:
    return folder / name


def _describe(name: str) -> str:
    return json.dumps({"package": CLIENTS[name].package, "version": CLIENTS[name].version})


def _is_installed(name: str, folder: Path) -> bool:
    try:
        return (_find_home(name, folder) / "installed.json").read_text(encoding="utf-8") == _describe(name)
    except OSError:
        return False


def _needs_baseline(client: Client) -> bool:
    """Whether this processor lacks what the first program of a client needs."""
    if len(client.programs) == 1 or platform.system() != "Linux" or _MACHINES.get(platform.machine()) != "x64":
        return False
    try:
        return " avx2" not in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def _list(folder: Path) -> None:
    for name, client in CLIENTS.items():
        try:
            place = find_command(name, folder)[-1]
        except ClientMissing:
            place = "not installed"
        print(f"{name:10}{client.version:10}{client.package:32}{place}")


def main(words: Sequence[str] | None = None) -> int:
    """Carry out one of the actions."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    actions = parser.add_subparsers(dest="action", required=True)
    installing = actions.add_parser("install", help="install clients")
    installing.add_argument("names", nargs="*", metavar="NAME", help="default: those of npm")
    actions.add_parser("list", help="print the clients, and where they are")
    running = actions.add_parser("run", help="run a client")
    running.add_argument("name", choices=list(CLIENTS), metavar="NAME")
    running.add_argument("words", nargs=argparse.REMAINDER, metavar="WORD")
    arguments = parser.parse_args(words)
    if unknown := [name for name in getattr(arguments, "names", ()) if name not in CLIENTS]:
        parser.error(f"no client is called {unknown[0]!r}: there are {', '.join(CLIENTS)}")
    try:
        match arguments.action:
            case "install":
                install(arguments.names or [name for name, client in CLIENTS.items() if client.is_default])
                _list(FOLDER)
            case "run":
                return subprocess.run([*find_command(arguments.name), *arguments.words], check=False).returncode
            case _:
                _list(FOLDER)
    except ClientMissing as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
