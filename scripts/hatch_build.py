"""What hatchling asks while it builds asides: the README for a package index, and where the other packages come from.

pyproject.toml says what is published. Two things depend on where the build runs:

- On a package index, links into this repository lead nowhere. The description keeps their words without the link.
- In a clone, `asides[gateway]` takes the gateway from the folder `packages/` of the clone, and `asides[local]` the
  model, so that `pip install ".[gateway]"` and `pip install "asides[gateway] @ git+…"` need no second command. A source
  distribution, and the wheel built from it, name the published packages instead.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface
from packaging.requirements import Requirement

_FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^<!--.*?-->\n?", re.MULTILINE | re.DOTALL)
_PICTURE = re.compile(r"!\[[^\]]*\]\((?!https?://)[^)\s]*\)\n*")
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?://|mailto:|#)[^)\s]*\)")


def write_description(readme: str) -> str:
    """The README for a package index: without relative links, relative pictures and comments. Code stays as it is."""
    parts: list[str] = []
    end = 0
    for fence in _FENCE.finditer(readme):
        parts += [_write_prose(readme[end : fence.start()]), fence.group()]
        end = fence.end()
    return "".join([*parts, _write_prose(readme[end:])])


def _write_prose(text: str) -> str:
    return _LINK.sub(r"\1", _PICTURE.sub("", _COMMENT.sub("", text)))


def point_to_clone(extras: dict[str, list[str]], root: Path) -> None:
    """Let the extras take the packages from the clone, if `root` is one."""
    for requirements in extras.values():
        requirements[:] = [_point_to_folder(requirement, root / "packages") for requirement in requirements]


def _point_to_folder(requirement: str, packages: Path) -> str:
    name = _read_name(requirement)
    folder = packages / name
    return f"{name} @ {folder.as_uri()}" if (folder / "pyproject.toml").is_file() else requirement


def _read_name(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    return found[0] if found else ""


class MetadataHook(MetadataHookInterface):
    """Writes the description, and points the extras to the clone."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling with the table `project`."""
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": write_description(readme)}
        point_to_clone(metadata["optional-dependencies"], Path(self.root))


class SourceDistributionHook(BuildHookInterface[Any]):
    """Names the published packages in a source distribution: whoever unpacks it does not have the clone."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's signature
        """Called by hatchling before it writes the archive."""
        project = self.metadata.config["project"]["optional-dependencies"]
        published = {_read_name(one): str(Requirement(one)) for extra in project.values() for one in extra}
        for requirements in self.metadata.core.optional_dependencies.values():
            requirements[:] = [published[_read_name(one)] if " @ " in one else one for one in requirements]
