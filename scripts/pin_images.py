"""Writes the digest of each image behind its tag in deploy/: a tag may name another image tomorrow, a digest may not.

    python3 scripts/pin_images.py            ask the registries (docker buildx), and write name:tag@sha256:…
    python3 scripts/pin_images.py --check    fail if an image has no digest; asks nobody

A step of a release: the tags are in the repository, so that builds in between get the fixes of their distribution.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Callable

from environment import ROOT

FILES = tuple(ROOT / "deploy" / name for name in ("Dockerfile", "compose.yaml", "kubernetes.yaml"))
_IMAGE = re.compile(
    r"^(?P<before>ARG \w+_IMAGE=|\s*image: )(?P<tag>[\w./-]+:[\w.-]+)(?P<digest>@sha256:[0-9a-f]{64})?[ \t]*$",
    re.MULTILINE,
)
# Built from this repository: its digest is known when it is pushed.
_OWN = "asides-gateway"


def list_unpinned(text: str) -> list[str]:
    """The images of others in a file that are named by a tag alone."""
    return [found["tag"] for found in _IMAGE.finditer(text) if not found["digest"] and _OWN not in found["tag"]]


def pin(text: str, resolve: Callable[[str], str]) -> str:
    """The file with the present digest of each image. `resolve` returns the digest of a tag, as sha256:…"""

    def write(found: re.Match[str]) -> str:
        tag = found["tag"]
        return found[0] if _OWN in tag else f"{found['before']}{tag}@{resolve(tag)}"

    return _IMAGE.sub(write, text)


def ask_registry(tag: str) -> str:
    """The digest of the list of images, one for each platform, that a tag names now."""
    command = ["docker", "buildx", "imagetools", "inspect", "--format", "{{.Manifest.Digest}}", tag]
    digest = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
        sys.exit(f"docker gave no digest for {tag}.")
    return digest


def main() -> int:
    """Pin the images, or check them; return 1 if one has no digest."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    unpinned = []
    if parser.parse_args().check:
        unpinned = [f"{path.name}: {tag}" for path in FILES for tag in list_unpinned(path.read_text(encoding="utf-8"))]
    else:
        for path in FILES:
            path.write_text(pin(path.read_text(encoding="utf-8"), ask_registry), encoding="utf-8")
    for line in unpinned:
        print(f"no digest: {line}", file=sys.stderr)
    return 1 if unpinned else 0


if __name__ == "__main__":
    sys.exit(main())
