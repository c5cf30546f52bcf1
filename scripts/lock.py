"""Writes deploy/requirements.txt and deploy/build-requirements.txt: what the image of the gateway runs and is built by.

    python3 scripts/lock.py            write them, each version with its hashes
    python3 scripts/lock.py --check    fail if a dependency of ours is not among them; asks no index

It asks pip for the wheels of each platform of the image, with the versions of constraints.txt, and installs nothing.
The hashes are those of the index that pip uses.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from environment import PACKAGES, PROJECT, ROOT, build_pip_environment

PYTHON = "3.13"
"""The Python of deploy/Dockerfile."""
_PLATFORMS = tuple(
    [f"{name}_{machine}" for name in ("manylinux_2_34", "manylinux_2_28", "manylinux_2_17", "manylinux2014")]
    for machine in ("x86_64", "aarch64")
)
_EXTRAS = ("", "gateway", "postgres", "redis", "otel", "prices")
_MORE = ("uvloop",)
RUN, BUILD = ROOT / "deploy" / "requirements.txt", ROOT / "deploy" / "build-requirements.txt"
_OURS = re.compile(r"asides(?:-(?P<package>[a-z-]+))?(?:\[(?P<extras>[^\]]*)\])?$")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s\\]+)((?:[ \\\n]+--hash=sha256:[0-9a-f]{64})+)", re.MULTILINE)


def list_requirements(extras: Iterable[str]) -> list[str]:
    """What these extras of asides install of others, as pyproject.toml writes it. "": asides itself."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    known: dict[str, list[str]] = {"": project["dependencies"], **project["optional-dependencies"]}
    return list(dict.fromkeys(each for extra in extras for each in _expand(known, known[extra])))


def _expand(known: Mapping[str, list[str]], written: list[str]) -> Iterator[str]:
    for each in written:
        ours = _OURS.match(each)
        if ours is None:
            yield each
            continue
        for extra in filter(None, (ours["extras"] or "").split(",")):
            yield from _expand(known, known[extra])
        if ours["package"] is not None:
            own = tomllib.loads((PACKAGES / each / "pyproject.toml").read_text(encoding="utf-8"))["project"]
            yield from _expand(known, own.get("dependencies", []))


def resolve(requirements: Iterable[str]) -> dict[str, tuple[str, set[str]]]:
    """The version and the hashes of everything that pip would install, on all platforms, by name."""
    found: dict[str, tuple[str, set[str]]] = {}
    for platforms in _PLATFORMS:
        for item in _ask_pip(requirements, platforms):
            name = normalise(item["metadata"]["name"])
            digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
            version, hashes = found.setdefault(name, (item["metadata"]["version"], set()))
            if version != item["metadata"]["version"]:
                sys.exit(f"{name} has other versions on other platforms. Name one in constraints.txt.")
            hashes.add(digest)
    return found


def _ask_pip(requirements: Iterable[str], platforms: Iterable[str]) -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        command += ["--report", str(report), "--target", str(Path(folder, "nothing")), "--only-binary=:all:"]
        command += ["--python-version", PYTHON, *(word for name in platforms for word in ("--platform", name))]
        if subprocess.run([*command, *requirements], cwd=ROOT, env=build_pip_environment(), check=False).returncode:
            sys.exit("pip could not find a version for each requirement; see the lines above.")
        installed: list[Any] = json.loads(report.read_bytes())["install"]
        return installed


def normalise(name: str) -> str:
    """The name of a package as indexes write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def write(found: Mapping[str, tuple[str, set[str]]], what: str) -> str:
    """The text of a file with hashes."""
    lines = [f"# {what}, for Python {PYTHON} on x86_64 and aarch64. Made by scripts/lock.py."]
    for name, (version, hashes) in sorted(found.items()):
        lines.append(" \\\n".join([f"{name}=={version}", *(f"    --hash=sha256:{each}" for each in sorted(hashes))]))
    return "\n".join(lines) + "\n"


def read(path: Path) -> dict[str, tuple[str, list[str]]]:
    """The versions and hashes of a file that `write` made, by name."""
    text = path.read_text(encoding="utf-8")
    return {name: (version, re.findall(r"[0-9a-f]{64}", hashes)) for name, version, hashes in _PINNED.findall(text)}


def list_needed() -> dict[Path, list[str]]:
    """What each file has to cover."""
    builds = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["build-system"]["requires"]
    return {RUN: [*list_requirements(_EXTRAS), *_MORE], BUILD: builds}


def list_missing() -> list[str]:
    """The names of our dependencies that are not in their file."""
    named = ((path, each, _NAME.match(each)) for path, written in list_needed().items() for each in written)
    return [each for path, each, name in named if name is None or normalise(name[0]) not in read(path)]


def main() -> int:
    """Write the files, or check them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        for each in (missing := list_missing()):
            print(f"{each} is not in deploy/. Run scripts/lock.py.", file=sys.stderr)
        return 1 if missing else 0
    for path, written in list_needed().items():
        what = "What the image of the gateway runs" if path == RUN else "What builds the image of the gateway"
        path.write_text(write(resolve(written), what), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
