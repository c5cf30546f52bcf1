"""What hatchling asks while it builds asides: the README for a package index, and where the small model comes from.

pyproject.toml says what is published. Two things depend on where the build runs:

- On a package index, links into this repository lead nowhere. The description keeps their words without the link.
- In a clone, `asides[local]` takes the model from the folder of the clone, so that `pip install ".[local]"` and
  `pip install "asides[local] @ git+…"` need no second command. A source distribution, and the wheel built from it, name
  the published package instead.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface
from packaging.requirements import Requirement

MODEL = "asides-tiny-model"
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
    """Let the extras take the model from the clone, if `root` is one."""
    folder = root / "packages" / MODEL
    if (folder / "pyproject.toml").is_file():
        for requirements in extras.values():
            requirements[:] = [
                f"{MODEL} @ {folder.as_uri()}" if _is_model(requirement) else requirement
                for requirement in requirements
            ]


def _is_model(requirement: str) -> bool:
    return re.match(rf"{MODEL}(?![\w.-])", requirement) is not None


class MetadataHook(MetadataHookInterface):
    """Writes the description, and points the extra `local` to the clone."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Called by hatchling with the table `project`."""
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": write_description(readme)}
        point_to_clone(metadata["optional-dependencies"], Path(self.root))


class SourceDistributionHook(BuildHookInterface[Any]):
    """Names the published model in a source distribution: whoever unpacks it does not have the clone."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling's signature
        """Called by hatchling before it writes the archive."""
        project = self.metadata.config["project"]["optional-dependencies"]
        published = next(requirement for extra in project.values() for requirement in extra if _is_model(requirement))
        for requirements in self.metadata.core.optional_dependencies.values():
            requirements[:] = [str(Requirement(published)) if _is_model(one) else one for one in requirements]
