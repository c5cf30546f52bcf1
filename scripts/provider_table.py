"""Writes what the rows say into the docs: the table of docs/providers.md and the list in README.md, between marks.

    python scripts/provider_table.py            write both
    python scripts/provider_table.py --check    fail when one is not what would be written

Not here: the rows (src/asides/providers/table.py), which are the only place to change a fact.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from asides import Provider, list_providers

ROOT = Path(__file__).resolve().parent.parent
# KeyError on a new word is the reminder to describe it here.
_ASKED = {
    "reasoning_effort": "`reasoning_effort`",
    "reasoning_object": "`reasoning: {…}`",
    "thinking_toggle": "`thinking: {type}`",
    "thinking_toggle_and_effort": "`thinking: {type}` and `reasoning_effort`",
    "enable_thinking": "`enable_thinking`",
    "template": "`chat_template_kwargs`",
    "template_and_effort": "`chat_template_kwargs` and `reasoning_effort`",
    "prompt_mode": "`prompt_mode` or `reasoning_effort`",
    "nothing": "cannot be asked",
}


_SENT_BACK = {
    "never": "never",
    "tool_turns": "on turns that call tools",
    "since_last_user": "since the last question",
    "all": "always",
}


def table(rows: Sequence[Provider]) -> str:
    """Every row, for docs/providers.md."""
    lines = [
        "| write | is | key | asked for thinking by | may inline tags | thinking goes back | facts of |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        write = ", ".join(f"`{name}:`" for name in (row.name, *row.aliases))
        name = f"[{row.title or row.name}]({row.docs})" if row.docs else row.title or row.name
        key = " or ".join(f"`{variable}`" for variable in row.key_env) or "none"
        if row.key == "optional" and row.key_env:
            key += " (optional)"
        back = ", ".join(dict.fromkeys(_SENT_BACK[rule.when] for rule in row.replay)) or _SENT_BACK["never"]
        tags = "yes" if row.quirks.tags else "no"
        cells = (write, name, key, _ASKED[row.quirks.ask_by], tags, back, row.since or "–")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def names(rows: Sequence[Provider]) -> str:
    """The names alone, for README.md."""
    return ", ".join(f"`{row.name}`" for row in rows) + "."


def between(page: str, content: str) -> str:
    """The page with the content between its marks."""
    begin, end = "<!-- providers:begin -->\n", "\n<!-- providers:end -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError("the page has lost its marks: <!-- providers:begin --> and <!-- providers:end -->")
    return before + begin + content + end + after


def main(words: list[str]) -> int:
    """Write or check; 0 when all is well."""
    rows = list_providers()
    stale: list[str] = []
    for path, content in ((ROOT / "docs" / "providers.md", table(rows)), (ROOT / "README.md", names(rows))):
        page = path.read_text(encoding="utf-8")
        written = between(page, content)
        if written != page:
            stale.append(path.relative_to(ROOT).as_posix())
            if words != ["--check"]:
                path.write_text(written, encoding="utf-8")
    if stale and words == ["--check"]:
        print(f"{' and '.join(stale)}: not what the rows say: python3 scripts/dev.py docs")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
