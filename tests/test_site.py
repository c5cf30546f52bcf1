"""The site of the docs builds strictly and offline, has every page and public name, and loads nothing from others."""

from __future__ import annotations

import html
import os
import re
import runpy
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import asides

pytestmark = pytest.mark.docs

_ROOT = Path(__file__).resolve().parent.parent
_LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href", "object": "data"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    # A proxy that refuses every connection: what needs a network fails.
    nowhere = {"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9", "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(
        command, cwd=_ROOT, env={**os.environ, **nowhere}, capture_output=True, text=True, timeout=150, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class _Loads(HTMLParser):
    """Collects the addresses that a browser loads with a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get(_LOADS.get(tag, ""))
        if address is not None:
            self.addresses.append(address)


def _is_foreign(address: str) -> bool:
    return re.match(r"(?:[a-z][a-z0-9+.-]*:)?//", address, re.IGNORECASE) is not None


@pytest.mark.timeout(170)
def test_the_site_loads_nothing_from_another_host(site: Path) -> None:
    foreign: list[str] = []
    for page in site.rglob("*.html"):
        loads = _Loads()
        loads.feed(page.read_text(encoding="utf-8"))
        foreign += [f"{page.name}: {address}" for address in loads.addresses if _is_foreign(address)]
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        found = re.findall(r"(?:@import|url\()\s*[\"']?([^\"')\s;]+)", text)
        foreign += [f"{sheet.name}: {address}" for address in found if _is_foreign(address)]
    assert foreign == []


@pytest.mark.timeout(170)
def test_every_page_and_every_public_name_is_on_the_site(site: Path) -> None:
    pages = [page.relative_to(_ROOT / "docs").with_suffix(".html") for page in (_ROOT / "docs").rglob("*.md")]
    built = {page.parent / "index.html" if page.stem == "README" else page for page in pages}
    assert sorted(str(page) for page in built if not (site / page).exists()) == []
    reference = "".join(page.read_text(encoding="utf-8") for page in (site / "api").glob("*.html"))
    public = [name for name in asides.__all__ if name != "__version__"]
    assert [name for name in public if f'id="asides.{name}"' not in reference] == []
    # Docstrings are on the page, not only names.
    assert "Ask a model; returns the whole reply." in reference
    assert (site / "search" / "search_index.json").exists()


@pytest.mark.timeout(170)
def test_every_page_links_its_version_to_the_changelog(site: Path) -> None:
    for page, address in (("index.html", "changelog.html"), ("api/calling.html", "../changelog.html")):
        text = (site / page).read_text(encoding="utf-8")
        assert f'<a href="{address}">asides {asides.__version__}</a>' in text
    assert "What changed, as seen by people who use asides." in (site / "changelog.html").read_text(encoding="utf-8")


def test_a_page_with_scripted_answers_says_so_at_its_top() -> None:
    silent = [
        page.name
        for page in (_ROOT / "docs").glob("*.md")
        if "<!-- stage:" in (text := page.read_text("utf-8"))
        and page.name != "testing-with-the-stage.md"
        and "scripted" not in "\n".join(text.splitlines()[:30])
    ]
    assert silent == []


def test_every_table_has_a_head() -> None:
    pages = [*(_ROOT / "docs").rglob("*.md"), _ROOT / "README.md"]
    assert [page.name for page in pages if re.search(r"^\|[ |]*\|$", page.read_text("utf-8"), re.MULTILINE)] == []


@pytest.mark.timeout(170)
def test_tables_lists_and_code_are_rendered_and_comments_for_the_tests_are_gone(site: Path) -> None:
    """The site's Markdown is stricter than that of repository viewers: a list wants a blank line before it."""
    raw = re.compile(r"^(?:<p>)?(?:\||```|:::|- |\d\. )", re.MULTILINE)
    strange: list[str] = []
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        paragraphs = re.findall(r"<p>.*?</p>", text, re.DOTALL)
        strange += [f"{page.name}: {paragraph[:80]}" for paragraph in paragraphs if raw.search(paragraph)]
        strange += [f"{page.name}: {comment}" for comment in re.findall(r"<!-- (?:stage|providers|thinking):", text)]
    assert strange == []


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("see [bench](../bench/README.md)", "see bench (`bench/README.md` in the repository)"),
        ("see [it](../CONTRIBUTING.md#tests)", "see it (`CONTRIBUTING.md` in the repository)"),
        ("see [tools](tools.md#errors)", "see [tools](tools.md#errors)"),
        ("see [lost](../nowhere.md)", "see [lost](../nowhere.md)"),
        ("![picture](../bench/README.md)", "![picture](../bench/README.md)"),
        ("<!-- providers:begin -->\ntext", "text"),
    ],
)
def test_a_link_out_of_the_docs_becomes_text(text: str, written: str) -> None:
    hooks = runpy.run_path(str(_ROOT / "scripts" / "site_hooks.py"))
    assert hooks["adapt"](text, "index.md") == written


def test_the_scenes_of_an_example_can_be_read() -> None:
    hooks = runpy.run_path(str(_ROOT / "scripts" / "site_hooks.py"))
    comment = '<!-- stage: [{"type": "say", "text": "<a> [b](c.md)"}] -->\n```python'
    shown = hooks["adapt"](comment, "index.md")
    assert html.unescape(shown).count('[{"type": "say", "text": "<a> [b](c.md)"}]') == 1
    assert "<details>" in shown
    assert "<!--" not in shown
    assert "<a>" not in shown
