"""What the other packages of asides bring: each declares its commands and parts as entry points of its wheel.

Nothing here or elsewhere in the library imports a package by its name. The entry points are read from the files beside
the installed packages, of those whose name begins with `asides`: `importlib.metadata` takes longer than all of
`asides --help`.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from asides.values.errors import ConfigError

COMMANDS, PARTS = "asides.commands", "asides.parts"
"""The groups: commands of the command line, and functions that the library calls."""

EXTRAS: Mapping[str, str] = MappingProxyType(
    {"serve": "gateway", "gateway": "gateway", "store": "gateway", "batch": "batch", "stage": "stage"}
)
"""Which extra of asides installs a command of ours."""

MOVED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        **{
            name: (f"from asides_batch import {name}", "batch")
            for name in ("AsyncBatch", "Batch", "BatchCheck", "BatchResult", "BatchStatus")
        },
        "batch": ("import asides_batch", "batch"),
        "gateway": ("import asides_gateway", "gateway"),
        "testing": ("import asides_stage", "stage"),
    }
)
"""What `asides` had, where it is now, and the extra that installs it."""


@cache
def list_entries(group: str) -> Mapping[str, str]:
    """The entry points of a group by their names, each as "module:object"."""
    found: dict[str, str] = {}
    for file in _list_files():
        for name, value in _read_group(file, group):
            found.setdefault(name, value)
    return MappingProxyType(found)


def load_entry(group: str, name: str) -> Any:
    """The object of an entry point; None where no installed package has it."""
    value = list_entries(group).get(name)
    if value is None:
        return None
    module, _, attribute = value.partition(":")
    return getattr(import_module(module), attribute)


def explain_missing(what: str, extra: str) -> ConfigError:
    """The error for something whose package is not installed."""
    from asides.values.errors import ConfigError

    return ConfigError(f"{what} needs a package that is not installed. Run pip install 'asides[{extra}]'.")


def explain_unknown(name: str) -> Exception:
    """The error for a name that `asides` does not have; for one that moved into a package, with the new import."""
    if name not in MOVED:
        return AttributeError(f"module 'asides' has no attribute {name!r}")
    code, extra = MOVED[name]
    return ImportError(f"asides.{name} is in a package of its own: {code} (pip install 'asides[{extra}]').")


def _list_files() -> Iterator[str]:
    """The files with entry points of installed packages whose name begins with ours; the first of each name counts.

    Without pathlib, which takes a quarter of the time of `asides --help` to load.
    """
    for folder in dict.fromkeys(sys.path):
        try:
            names = sorted(os.listdir(folder or "."))  # noqa: PTH208
        except OSError:
            continue
        for name in names:
            if name.startswith("asides") and name.endswith(".dist-info"):
                yield os.path.join(folder, name, "entry_points.txt")  # noqa: PTH118


def _read_group(file: str, group: str) -> Iterator[tuple[str, str]]:
    try:
        with open(file, encoding="utf-8") as opened:  # noqa: PTH123
            lines = opened.read().splitlines()
    except OSError:
        return
    section = ""
    for line in map(str.strip, lines):
        if line.startswith("["):
            section = line.strip("[]")
        elif section == group and "=" in line:
            name, _, value = line.partition("=")
            yield name.strip(), value.strip()
