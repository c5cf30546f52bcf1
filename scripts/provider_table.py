"""Writes what the rows say into the docs, between marks: the tables of docs/providers.md and docs/thinking.md, and the
list in README.md.

    python scripts/provider_table.py            write them
    python scripts/provider_table.py --check    fail when one is not what would be written

Not here: the rows (src/asides/providers/table.py), which are the only place to change a fact.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

from asides import ModelRule, Provider, ReplayRule, list_providers
from asides.providers.provider import AskBy
from asides.values.thinking import Effort

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
    "thinking_budget": "`thinkingConfig`",
    "thinking_level": "`thinkingConfig`",
    "think": "`think`",
    "max_reasoning_effort": "`reasoningConfig`",
    "reasoning_config": "`reasoning_config`",
    "nothing": "cannot be asked",
}
# Where a dialect has fields of its own for the same wish.
_SPELLED = {
    ("openai_responses", "reasoning_effort"): "`reasoning: {effort, summary}`",
    ("ollama", "reasoning_effort"): _ASKED["think"],
    ("anthropic", "thinking_toggle"): "`thinking: {type}` and `output_config: {effort}`",
}

_SENT_BACK = {
    "never": "never",
    "tool_turns": "on turns that call tools",
    "since_last_user": "since the last question",
    "sealed": "what is signed",
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
        if row.signing == "aws":
            key += ", or `AWS_ACCESS_KEY_ID` with `AWS_SECRET_ACCESS_KEY`"
        if row.key == "optional" and row.key_env:
            key += " (optional)"
        back = ", ".join(dict.fromkeys(_SENT_BACK[rule.when] for rule in row.replay)) or _SENT_BACK["never"]
        tags = "yes" if row.quirks.tags else "no"
        cells = (write, name, key, _asked(row), tags, back, row.since or "–")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _asked(row: Provider) -> str:
    """How a host is asked; one that passes fields on leaves it to each model."""
    passes_on = row.quirks.ask_by == "nothing" and any(rule.ask_by is not None for rule in row.models)
    return "the fields of each model" if passes_on else _worded(row.quirks.ask_by, row)


def _worded(way: AskBy, row: Provider) -> str:
    """The fields, as the dialect of the row spells them."""
    takes_efforts = any(rule.efforts != () for rule in row.models if rule.thinking != "never")
    return _SPELLED.get((row.dialect, way), _ASKED[way]) if takes_efforts else _ASKED[way]


def names(rows: Sequence[Provider]) -> str:
    """The names alone, for README.md."""
    return ", ".join(f"`{row.name}`" for row in rows) + "."


# --- docs/thinking.md -------------------------------------------------------------------------------------------------

_EFFORTS: tuple[str, ...] = get_args(Effort)
_KINDS = {"raw": "the text itself", "summary": "a summary", "hidden": "nothing (hidden)"}


def thinking_table(rows: Sequence[Provider]) -> str:
    """How thinking is asked for, what comes and goes back, and what it is bound to; hosts that agree share a line."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        spoken = _spoken(row)
        rules = [rule for each in spoken for rule in each.models if rule.thinking != "never"]
        cells = (
            _some(way for each in spoken for way in _ways(each)),
            _efforts(rules),
            _off(rules),
            _budgets(rules, row),
            _some(_KINDS[rule.kind] for rule in rules) or "what it sends",
            _some(_SENT_BACK[rule.when] for each in spoken for rule in each.replay or (ReplayRule(),)),
            _limits(rules),
        )
        lines.setdefault(cells, []).append(f"`{row.name}:`")
    head = [
        "| write | asked by | efforts | off | budget, in tokens | comes back | goes back | not while it thinks |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *(f"| {' | '.join((', '.join(names), *cells))} |" for cells, names in lines.items())])


def _spoken(row: Provider) -> list[Provider]:
    """The row in every dialect that may be chosen for a call."""
    others = [row.speaking(variant.dialect) for variant in row.also] if row.chooses else []
    return [row, *(other for other in others if other is not None)]


def _ways(row: Provider) -> list[str]:
    """Every way in which a model of this host may be asked."""
    ways = [_worded(rule.ask_by, row) for rule in row.models if rule.ask_by is not None]
    return ways if row.quirks.ask_by == "nothing" and row.models else [_worded(row.quirks.ask_by, row), *ways]


def _efforts(rules: Sequence[ModelRule]) -> str:
    """The efforts that any of them takes."""
    known = {effort for rule in rules for effort in rule.efforts or ()}
    named = ", ".join(f"`{effort}`" for effort in _EFFORTS if effort in known)
    return named or ("none" if rules and all(rule.efforts == () for rule in rules) else "passed on")


def _off(rules: Sequence[ModelRule]) -> str:
    stops = {rule.thinking for rule in rules} - {"unknown"}
    if not stops:
        return "not known"
    return "by model" if len(stops) > 1 else "yes" if stops == {"optional"} else "no"


def _budgets(rules: Sequence[ModelRule], row: Provider) -> str:
    ranges = sorted(
        {rule.budget for rule in rules if rule.budget is not None}, key=lambda told: (told[0], told[1] or 0)
    )
    told = [f"{least} and more" if most is None else f"{least}–{most}" for least, most in ranges]
    where = "" if row.quirks.budget_in is None else f"in `{row.quirks.budget_in}`"
    return ", ".join(part for part in (_some(told), where) if part) or "–"


def _limits(rules: Sequence[ModelRule]) -> str:
    """What some of them refuse while they think, or always."""
    refused = dict.fromkeys((name for rule in rules for name in (*rule.forbids, *rule.refuses)), "")
    for rule in rules:
        if rule.temperature is not None:
            refused["temperature"] = f" (some take {rule.temperature:g})"
        if rule.top_p is not None:
            refused["top_p"] = f" (some take {rule.top_p[0]:g}–{rule.top_p[1]:g})"
    told = [f"`{name}`{but}" for name, but in refused.items()]
    if not all(rule.forced_tools and rule.forced_tools_with_budget for rule in rules):
        told.append("a forced `tool_choice`")
    if not all(rule.tools_while_thinking for rule in rules):
        told.append("tools in chat completions")
    return ", ".join(told) or "–"


def _some(told: Iterable[str]) -> str:
    """What differs by model."""
    return ", or ".join(dict.fromkeys(told))


def between(page: str, content: str, name: str) -> str:
    """The page with the content between its marks of this name."""
    begin, end = f"<!-- {name}:begin -->\n", f"\n<!-- {name}:end -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"the page has lost its marks: {begin.strip()} and {end.strip()}")
    return before + begin + content + end + after


def main(words: list[str]) -> int:
    """Write or check; 0 when all is well."""
    rows = list_providers()
    stale: list[str] = []
    pages = (
        (ROOT / "docs" / "providers.md", table(rows), "providers"),
        (ROOT / "docs" / "thinking.md", thinking_table(rows), "thinking"),
        (ROOT / "README.md", names(rows), "providers"),
    )
    for path, content, name in pages:
        page = path.read_text(encoding="utf-8")
        written = between(page, content, name)
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
