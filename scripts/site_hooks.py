"""What the site needs beyond MkDocs: the pages of the API reference, links to files outside of docs/, and comments that
only the tests read.

MkDocs calls the functions by their names (`hooks` in mkdocs.yml).
"""

from __future__ import annotations

import os
import re
import runpy
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url

ROOT = Path(__file__).resolve().parent.parent
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[\w-]+)?\)")
_FILE_LINK = re.compile(r"\]\((?!https?:|mailto:|#)")
_COMMENT = re.compile(r"^<!--.*?-->\n?", re.MULTILINE | re.DOTALL)
_SCENES = re.compile(r"^<!-- stage:\s*(\[.*?\])\s*-->\n?", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, *, config: MkDocsConfig, **_: Any) -> Files:
    """Add the pages of the API reference, and the changelog."""
    for path, text in runpy.run_path(str(ROOT / "scripts" / "api_pages.py"))["write_pages"]():
        files.append(File.generated(config, path, content=text))
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "changelog.md", content=_FILE_LINK.sub("](../", changes)))
    return files


def on_page_context(context: Any, *, page: Any, config: MkDocsConfig, **_: Any) -> Any:
    """Show the version, with a link to the changelog, and where the source of a page is, below every page."""
    version = re.search(r'^__version__ = "(.+)"$', (ROOT / "src/asides/__init__.py").read_text("utf-8"), re.MULTILINE)
    if version is None:
        raise SystemExit("src/asides/__init__.py has no __version__")
    changelog = get_relative_url("changelog.html", page.url)
    source = "CHANGELOG.md" if page.file.src_uri == "changelog.md" else f"docs/{page.file.src_uri}"
    source = "the docstrings" if page.file.src_uri.startswith("api/") else f"<code>{source}</code> in the repository"
    config.copyright = f'<a href="{changelog}">asides {version[1]}</a> · MIT licence · source of this page: {source}'
    return context


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Change a page before it is rendered; code keeps its text."""
    parts = _FENCE.split(markdown)
    # Code of other libraries is Python too, though nobody runs it here.
    parts[1::2] = [re.sub(r"^```before$", "```python", code, flags=re.MULTILINE) for code in parts[1::2]]
    parts[::2] = [adapt(text, page.file.src_uri) for text in parts[::2]]
    return "".join(parts)


def adapt(text: str, page: str) -> str:
    """Show the scenes of the stage, drop other comments, and write links to files outside of docs/ as their text and
    the path in the repository.
    """

    def write_link(found: re.Match[str]) -> str:
        path = os.path.normpath(Path("docs", page).parent / found[2])
        if path.startswith(f"docs{os.sep}") or not (ROOT / path).exists():
            return found[0]
        return f"{found[1]} (`{Path(path).as_posix()}` in the repository)"

    def write_scenes(found: re.Match[str]) -> str:
        scenes = escape(" ".join(found[1].split())).replace("[", "&#91;")
        about = "The stage plays these scenes; without them it answers something of its own."
        return f"<details><summary>{about}</summary><pre><code>{scenes}</code></pre></details>\n\n"

    return _LINK.sub(write_link, _COMMENT.sub("", _SCENES.sub(write_scenes, text)))
