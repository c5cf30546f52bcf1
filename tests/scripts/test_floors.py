"""What users install admits no version with a published advisory, also of what our dependencies bring along."""

from __future__ import annotations

import sys
import tomllib
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]

# The first version without known advisories, and the last of these (2026-11-19). Only those that concern versions which
# the floors of others admit.
FIXED = {
    "aiohttp": ("3.14.3", "CVE-2026-69244"),
    "azure-core": ("1.38", "CVE-2026-21226"),
    "azure-identity": ("1.16.1", "CVE-2024-35255"),
    "cryptography": ("50", "CVE-2026-69247"),
    "h11": ("0.16", "CVE-2025-43859"),
    "langchain-core": ("1.2.22", "CVE-2026-34070"),
    "protobuf": ("6.33.5", "CVE-2026-0994"),
    "pyasn1": ("0.6.3", "CVE-2026-30922"),
    "pyjwt": ("2.13", "CVE-2026-48526"),
    "ray": ("2.54", "CVE-2026-27482"),
    "requests": ("2.33", "CVE-2026-25645"),
    "urllib3": ("2.7", "CVE-2026-44432"),
}
# Clients of other makers, which their users choose, and tools.
_NOT_OURS = ("all", "anthropic", "clients", "dev", "langchain", "mcp", "openai")


def list_extras() -> dict[str, list[Requirement]]:
    """What each extra of ours installs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = ["", *(name for name in project["optional-dependencies"] if name not in _NOT_OURS)]
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        lock: Any = import_module("lock")
    finally:
        sys.path.pop(0)
    return {name: [Requirement(each) for each in lock.list_requirements([name])] for name in names}


EXTRAS = list_extras()


def find_all(requirements: list[Requirement]) -> set[str]:
    """The names of what pip would install, as far as it is installed here."""
    found: set[str] = set()
    waiting = [(canonicalize_name(each.name), frozenset(each.extras)) for each in requirements]
    while waiting:
        name, extras = waiting.pop()
        if name in found and not extras:
            continue
        found.add(name)
        try:
            brought = [Requirement(each) for each in requires(name) or ()]
        except PackageNotFoundError:
            continue
        for each in brought:
            marker = each.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in (*extras, "")):
                inner = canonicalize_name(each.name)
                if inner not in found:
                    waiting.append((inner, frozenset(each.extras)))
    return found


def find_floor(requirements: list[Requirement], name: str) -> Version:
    """The lowest version that these requirements name; 0 if they name none."""
    floors = [
        Version(specifier.version)
        for each in requirements
        if canonicalize_name(each.name) == name
        for specifier in each.specifier
        if specifier.operator in (">=", "==", "~=")
    ]
    return max(floors, default=Version("0"))


@pytest.mark.parametrize("extra", EXTRAS)
def test_no_extra_admits_a_version_with_a_published_advisory(extra: str) -> None:
    required = EXTRAS[extra]
    low = {
        name: advisory
        for name in find_all(required)
        if (found := FIXED.get(name)) is not None
        for fixed, advisory in [found]
        if find_floor(required, name) < Version(fixed)
    }
    assert low == {}


def test_the_versions_that_ci_installs_have_none_either() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = [Requirement(line) for line in lines if line and not line.startswith("#")]
    names = {canonicalize_name(each.name) for each in pinned}
    assert [
        name for name, (fixed, _) in FIXED.items() if name in names and find_floor(pinned, name) < Version(fixed)
    ] == []
