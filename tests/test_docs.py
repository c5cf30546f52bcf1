"""The docs tell the truth: every example runs, every generated page is current, every link leads somewhere."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import asides
import asides_batch
import asides_gateway
import asides_stage
from asides.agents.config import AgentOptions
from asides.options import OPTIONS
from asides.providers.provider import AskBy
from asides.settings import SETTINGS
from asides.values.result import RunEvent
from tests.run_page import RUN, read

_ROOT = Path(__file__).resolve().parent.parent
_RUNNER = _ROOT / "tests" / "run_page.py"
_PAGES = sorted([_ROOT / "README.md", _ROOT / "CONTRIBUTING.md", *(_ROOT / "docs").rglob("*.md")])
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]+)(?:#([\w-]+))?\)")


def _name(page: Path) -> str:
    return page.relative_to(_ROOT).as_posix()


def _run(script: Path, word: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(_ROOT / "src")}
    command = [sys.executable, str(script), str(word)]
    return subprocess.run(command, capture_output=True, text=True, timeout=170, check=False, env=environment)


@pytest.mark.requirement("FT-35")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=_name(page), marks=[] if page.name == "README.md" else pytest.mark.docs)
        for page in _PAGES
        if read(page.read_text(encoding="utf-8"))
    ],
)
@pytest.mark.timeout(180)
def test_the_examples_of_a_page_do_what_it_says(page: Path) -> None:
    done = _run(_RUNNER, page)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("```python\nprint(1 + 1)\n```\n\n```output\n3\n```\n", "printed:\n2"),
        ("```python\nraise ValueError('no')\n```\n", "ValueError: no"),
        ("```console\n$ echo a\nb\n```\n", "$ echo a"),
        ("```toml\nmodle = 'a:b'\n```\n", "did you mean model?"),
        (
            '<!-- stage: [{"type": "fail"}] -->\n```python\nimport asides\nasides.ask("groq:m", "?", retries=0)\n```\n',
            "Overloaded",
        ),
    ],
)
def test_an_example_that_does_something_else_is_found(text: str, told: str, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    done = _run(_RUNNER, page)
    assert done.returncode == 1
    assert told in done.stderr


_MODELS = (
    "openai:gpt-5",
    "openai-chat:gpt-5",
    "openai:gpt-4.1",
    "mistral:mistral-large-latest",
    "anthropic:claude-3-5-haiku-latest",
    "anthropic:claude-sonnet-5-5",
    "gemini:gemini-2.0-flash",
    "groq:llama-3.3-70b-versatile",
)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/quickstart.md", "docs/agents.md"])
def test_the_first_program_of_a_page_runs_with_any_model(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASIDES_STAGE", "1")
    program = next(each for each in read((_ROOT / page).read_text(encoding="utf-8")) if each.kind == "python").code
    for model in _MODELS:
        exec(re.sub(r'"[\w-]+:[\w./-]+"', f'"{model}"', program), {})


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    missing: list[str] = []
    for path, heading in _LINK.findall(page.read_text(encoding="utf-8")):
        target = (page.parent / path).resolve()
        if not target.exists() or (heading and heading not in _headings(target)):
            missing.append(f"{path}#{heading}" if heading else path)
    assert missing == []


def _headings(page: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_page_is_reached_from_the_readme() -> None:
    reached = {_ROOT / "README.md"}
    waiting = list(reached)
    while waiting:
        page = waiting.pop()
        for path, _ in _LINK.findall(page.read_text(encoding="utf-8")):
            target = (page.parent / path).resolve()
            if target.suffix == ".md" and target.exists() and target not in reached:
                reached.add(target)
                waiting.append(target)
    assert sorted(map(_name, set(_PAGES) - reached)) == []


def test_the_table_of_providers_is_current() -> None:
    done = _run(_ROOT / "scripts" / "provider_table.py", "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rules_of_the_stage_are_current() -> None:
    done = _run(_ROOT / "scripts" / "stage_rules.py", "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_api_reference_lists_every_public_name_once() -> None:
    pages = dict(runpy.run_path(str(_ROOT / "scripts" / "api_pages.py"))["write_pages"]())
    listed = re.findall(r"^::: ([\w.]+)$", "\n".join(pages.values()), re.MULTILINE)
    public = [f"asides.{name}" for name in asides.__all__ if name != "__version__"]
    clients = [f"asides.{name}" for name in ("openai", "anthropic", "langchain")]
    others = [
        f"{module.__name__}.{name}" for module in (asides_batch, asides_gateway, asides_stage) for name in dir(module)
    ]
    assert sorted(listed) == sorted([*public, "asides.options.Options", *clients, *others])


def test_every_provider_and_every_way_of_asking_is_in_the_table_of_thinking() -> None:
    page = (_ROOT / "docs" / "thinking.md").read_text(encoding="utf-8")
    table = page.partition("<!-- thinking:begin -->")[2].partition("<!-- thinking:end -->")[0]
    assert [row.name for row in asides.list_providers() if f"`{row.name}:`" not in table] == []
    described = runpy.run_path(str(_ROOT / "scripts" / "provider_table.py"))["_ASKED"]
    assert set(described) == set(get_args(AskBy))


def test_code_that_is_not_run_is_rare_and_has_its_own_fence() -> None:
    """`py` or a fence without a word would be an example that nobody runs."""
    # The gateway's test_behind_a_proxy.py runs what nginx reads, tests/test_operations.py checks what Prometheus does.
    known = {*RUN, "before", "output", "sh", "text", "json", "nginx", "yaml"}
    strange = [
        f"{_name(page)}: {word or 'no word'}"
        for page in _PAGES
        for word in re.findall(r"^```(\w*)\n(?:.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        if word not in known
    ]
    assert strange == []


def test_code_to_migrate_from_is_python() -> None:
    """It needs libraries that are not installed here, so it does not run."""
    page = (_ROOT / "docs" / "migrating.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```before\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == page.count("## From ")
    for block in blocks:
        compile(block, "before", "exec")


def test_every_event_and_every_error_has_its_line() -> None:
    streaming = (_ROOT / "docs" / "streaming.md").read_text(encoding="utf-8")
    assert [kind.__name__ for kind in get_args(asides.Event) if f"| `{kind.__name__}` |" not in streaming] == []
    told = (_ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    values = [getattr(asides, name) for name in asides.__all__]
    errors = [value.__name__ for value in values if isinstance(value, type) and issubclass(value, Exception)]
    assert len(errors) > 20
    assert [name for name in errors if name not in told] == []


def test_every_option_and_every_setting_has_its_line() -> None:
    options = (_ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    assert sorted(name for name in OPTIONS if f"`{name}`" not in options) == []
    settings = (_ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    names = [name.rpartition(".")[2] for name in SETTINGS]
    assert [name for name in names if not re.search(rf"^\| `[^|]*\b{name}`", settings, re.MULTILINE)] == []


def test_every_notice_has_its_line() -> None:
    page = (_ROOT / "docs" / "notices.md").read_text(encoding="utf-8")
    makers = r"(?<!\w)(?:Notice|Contradiction|add_notice|_?warn|_report(?:_conflict)?|_make_notice)\("
    before = r"\s*(?:(?:self\.)?(?:notices|events),\s*)?"
    sources = [path.read_text(encoding="utf-8") for path in (_ROOT / "src").rglob("*.py")]
    codes = {code for text in sources for code in re.findall(makers + before + r'"([a-z]+(?:_[a-z]+)+)"', text)}
    assert len(codes) > 70
    assert sorted(code for code in codes if f"`{code}`" not in page) == []


def test_every_option_of_an_agent_every_limit_and_every_event_has_its_line() -> None:
    page = (_ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    table = page.partition("## Every option")[2]
    own = [*(set(AgentOptions.__annotations__) - OPTIONS), "tools", "output"]
    assert sorted(name for name in own if not re.search(rf"^\| `{name}` \|", table, re.MULTILINE)) == []
    assert [name for name in asides.Limits.__struct_fields__ if f"`{name}`" not in table] == []
    told = [kind.__name__ for kind in get_args(RunEvent) if kind not in get_args(asides.Event)]
    assert len(told) > 4
    assert [name for name in told if name not in page] == []


def test_the_readme_leads_from_the_install_to_the_first_answer() -> None:
    readme = (_ROOT / "README.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", readme, re.MULTILINE)
    assert headings[:4] == ["Install", "Ten lines of Python", "Five lines of shell", "The gateway"]
    assert {"What it costs", "From a clone: two commands"} < set(headings)
    assert "ASIDES_STAGE=1" in readme.partition("## Ten lines of Python")[0]


def test_the_two_commands_of_the_readme_are_what_ci_runs() -> None:
    readme = (_ROOT / "README.md").read_text(encoding="utf-8")
    ci = (_ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for command in ("python3 scripts/try.py", "python3 scripts/dev.py check"):
        assert re.search(rf"^{re.escape(command)}\b", readme, re.MULTILINE)
        assert re.search(rf"^(?:\w+=\$\()?{re.escape(command)}", ci, re.MULTILINE)


# Models that have ended, or end within weeks, with the day. Sources: the makers' lists of deprecations as the SDKs and
# catalogues of 2026-11-15 have them (anthropic-sdk-python 2.8, api-docs.deepseek.com, ai.google.dev, litellm 1.108).
_ENDED = {
    r"claude-(?:[123]\b|instant|v[12])[\w.:-]*": "2026-02-19",
    r"claude-(?:opus|sonnet)-4-(?:0\b|2025)\w*": "2026-06-15",
    r"claude-mythos-preview": "2026-06-30",
    r"claude-sonnet-4-5[\w.:-]*": "2026-11-30",
    r"deepseek-(?:chat|reasoner)": "2026-07-24",
    r"gemini-(?:1\.|2\.0)[\w.-]*": "2026-06-01",
    r"gemini-3-pro(?:-preview)?(?!-image)\b": "2026-03-09",
    r"gemini-3\.1-flash-lite-preview": "2026-05-25",
    r"gpt-5(?:\.[123])?-chat-latest": "2026-08-10",
    r"minimax-m2\.[57][\w-]*": "2026-11-18",
    r"o1-preview": "2025-07-28",
}
# The text of the requirements is not ours to change. The rows and the stage's rules know old models on purpose.
_KNOW_OLD_MODELS = (
    "docs/requirements.md",
    "docs/stage-rules.md",
    "src/asides/providers/",
    "packages/asides-stage/src/asides_stage/stage/rules/",
)
_SHOWN = [*_PAGES, *sorted([*(_ROOT / "src").rglob("*.py"), *_ROOT.glob("packages/*/src/**/*.py")])]


def test_no_page_docstring_or_default_names_a_model_that_has_ended() -> None:
    ended = re.compile("|".join(rf"(?<![\w-])(?:{name})" for name in _ENDED), re.IGNORECASE)
    found = [
        f"{_name(path)}: {name}"
        for path in _SHOWN
        if not _name(path).startswith(_KNOW_OLD_MODELS)
        for name in ended.findall(path.read_text(encoding="utf-8"))
    ]
    assert found == [], f"use a model of today; the dates: {_ENDED}"


@pytest.mark.parametrize(
    ("text", "ended"),
    [
        ("deepseek:deepseek-reasoner", True),
        ("anthropic:claude-sonnet-4-5", True),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", True),
        ("`claude-3-7-sonnet-latest`", True),
        ("gemini-3-pro-preview", True),
        ("deepseek:deepseek-flash", False),
        ("claude-haiku-4-5, claude-opus-4-6", False),
        ("gemini-3-pro-image", False),
        ("gemini-3.1-pro-preview", False),
    ],
)
def test_the_list_of_ended_models_knows_them_by_all_their_names(text: str, ended: bool) -> None:
    assert any(re.search(rf"(?<![\w-])(?:{name})", text, re.IGNORECASE) for name in _ENDED) is ended


def test_the_pages_write_a_provider_as_the_table_does() -> None:
    """An alias works, but a reader who looks it up in the list of rows would not find it."""
    aliases = {alias: row.name for row in asides.list_providers() for alias in row.aliases}
    written = re.compile(rf'["\'](?:{"|".join(map(re.escape, aliases))}):[\w.-]+["\']')
    found = [f"{_name(page)}: {name}" for page in _PAGES for name in written.findall(page.read_text(encoding="utf-8"))]
    assert found == []
