"""Requirements that a reader of the project can check: what is delivered and what the documents say."""

from __future__ import annotations

import re
from pathlib import Path

from tests.run_page import read

_ROOT = Path(__file__).resolve().parents[1]


def test_S0_11_every_dialect_is_code_with_tests_of_its_own_and_the_readme_mentions_thinking() -> None:
    dialects = [path.parent.name for path in sorted((_ROOT / "src/asides/dialects").glob("*/__init__.py"))]
    assert {"openai_chat", "openai_responses", "anthropic"} <= set(dialects)
    tested = {path.parent.name for path in (_ROOT / "tests/dialects").glob("*/test_*.py")}
    assert sorted(set(dialects) - tested) == []
    assert "`reply.thinking`" in (_ROOT / "README.md").read_text(encoding="utf-8")


def test_S0_37_the_readme_shows_metadata_thinking_in_an_example_that_runs() -> None:
    examples = read((_ROOT / "README.md").read_text(encoding="utf-8"))
    shown = [example for example in examples if 'reply.metadata["thinking"]' in example.code]
    assert [example.kind for example in shown] == ["python"]
    assert shown[0].printed is not None, "an example without its output shows nothing"


def test_every_paragraph_of_the_contract_that_is_cited_is_there() -> None:
    contract = (_ROOT / "docs" / "contract.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (\d+)\. [^\n]+\n(.*?)(?=^## |\Z)", contract, re.MULTILINE | re.DOTALL))
    cited: set[tuple[str, str]] = set()
    for path in _sources():
        cited |= set(re.findall(r"contract'?s?,?\s+§(\d+)(?:\.(\d+))?", path.read_text(encoding="utf-8")))
    assert cited
    for section, paragraph in sorted(cited):
        assert section in sections, section
        assert not paragraph or re.search(rf"^{paragraph}\. ", sections[section], re.MULTILINE), (section, paragraph)


def test_every_requirement_that_a_comment_cites_is_on_its_page() -> None:
    page = (_ROOT / "docs" / "requirements.md").read_text(encoding="utf-8")
    cited: set[str] = set()
    for path in _sources():
        cited |= set(re.findall(r"\(requirements,\s+([\w-]+)\)", path.read_text(encoding="utf-8")))
    assert cited
    assert sorted(one for one in cited if f"\n| {one} |" not in page) == []


def _sources() -> list[Path]:
    return [path for folder in ("src", "tests") for path in sorted((_ROOT / folder).rglob("*.py"))]


def test_FT_35_the_documents_explain_the_keys_of_metadata() -> None:
    quickstart = (_ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    for key in ("model", "usage", "raw", "thinking", "thinking_type", "thinking_source"):
        assert re.search(rf"`(?:reply\.metadata\[\")?{key}(?:\"\])?`", quickstart), key
