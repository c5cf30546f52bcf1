"""What hatchling asks while it builds a package of the street: each needs the library of exactly its own version."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_VERSION = re.compile(r'^__version__ = "([^"]+)"', re.MULTILINE)
_LIBRARY = re.compile(r"asides(\[[\w,-]*\])?")


def pin_library(dependencies: list[str], version: str) -> None:
    """Let the requirements name this version of the library: packages use modules of it that are not public."""
    dependencies[:] = [f"{one}=={version}" if _LIBRARY.fullmatch(one) else one for one in dependencies]


class MetadataHook(MetadataHookInterface):
    """Pins the library."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling with the table `project`."""
        library = Path(self.root).parent.parent / "src" / "asides" / "__init__.py"
        found = _VERSION.search(library.read_text(encoding="utf-8"))
        if found is None:
            raise ValueError(f"{library} has no __version__")
        pin_library(metadata["dependencies"], found[1])
