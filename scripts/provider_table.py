"""Writes the facts of the provider rows into docs/providers.md and docs/thinking.md, between two marks.

python scripts/provider_table.py            write them
python scripts/provider_table.py --check    fail when one is not current
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
# A new value of AskBy raises KeyError here: describe it in this table.
_ASKED = {
    "reasoning_effort": "`reasoning_effort`",
    "reasoning_object": "`reasoning: {…}`",
    "thinking_toggle": "`thinking: {type}`",
    "thinking_toggle_and_effort": "`thinking: {type}` and `reasoning_effort`",
    "enable_thinking": "`enable_thinking`",
    "enable_thinking_and_effort": "`enable_thinking` and `reasoning_effort`",
    "template": "`chat_template_kwargs`",
    "template_and_effort": "`chat_template_kwargs` and `reasoning_effort`",
    "prompt_mode": "`prompt_mode` or `reasoning_effort`",
    "thinking_budget": "`thinkingConfig`",
    "thinking_level": "`thinkingConfig`",
    "think": "`think`",
    "max_reasoning_effort": "`reasoningConfig`",
    "reasoning_config": "`reasoning_config`",
    "nothing": "no field",
}
# Dialects with other fields for the same request.
_ASKED_IN_DIALECT = {
    ("openai_responses", "reasoning_effort"): "`reasoning: {effort, summary}`",
    ("ollama", "reasoning_effort"): _ASKED["think"],
    ("gemini_interactions", "thinking_level"): "`thinking_level`",
    ("anthropic", "thinking_toggle"): "`thinking: {type}` and `output_config: {effort}`",
}

_SENT_BACK = {
    "never": "never",
    "tool_turns": "on turns that call tools",
    "since_last_user": "since the last question",
    "sealed": "only if signed",
    "all": "always",
}


def write_provider_table(rows: Sequence[Provider]) -> str:
    """The table of docs/providers.md: every row."""
    lines = [
        "| write | provider | key | asked for thinking with | inline tags possible | thinking sent back | facts from |",
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
        cells = (write, name, key, _describe_request(row), tags, back, row.since or "–")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _describe_request(row: Provider) -> str:
    """The fields that ask for thinking. A host that forwards fields leaves them to each model."""
    forwards = row.quirks.ask_by == "nothing" and any(rule.ask_by is not None for rule in row.models)
    return "the fields of each model" if forwards else _describe_fields(row.quirks.ask_by, row)


def _describe_fields(ask_by: AskBy, row: Provider) -> str:
    """The fields in the dialect of the row."""
    takes_efforts = any(rule.efforts != () for rule in row.models if rule.thinking != "never")
    return _ASKED_IN_DIALECT.get((row.dialect, ask_by), _ASKED[ask_by]) if takes_efforts else _ASKED[ask_by]


# --- docs/thinking.md -------------------------------------------------------------------------------------------------

_EFFORTS: tuple[str, ...] = get_args(Effort)
_KINDS = {"raw": "the text itself", "summary": "a summary", "hidden": "nothing (hidden)"}


def write_thinking_table(rows: Sequence[Provider]) -> str:
    """The table of docs/thinking.md: how to ask a host for thinking, and what it allows. Equal hosts share a line."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        variants = _list_variants(row)
        rules = [rule for variant in variants for rule in variant.models if rule.thinking != "never"]
        cells = (
            _join(fields for variant in variants for fields in _list_requests(variant)),
            _describe_efforts(rules),
            _describe_off(rules),
            _describe_budgets(rules, row),
            _join(_KINDS[rule.kind] for rule in rules) or "whatever it sends",
            _join(_SENT_BACK[rule.when] for variant in variants for rule in variant.replay or (ReplayRule(),)),
            _describe_refusals(rules),
        )
        lines.setdefault(cells, []).append(f"`{row.name}:`")
    titles = "provider", "asked with", "efforts", "can be off", "budget, in tokens", "you receive", "sent back"
    head = [
        f"| {' | '.join((*titles, 'refused while thinking'))} |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *(f"| {' | '.join((', '.join(names), *cells))} |" for cells, names in lines.items())])


def _list_variants(row: Provider) -> list[Provider]:
    """The row in every dialect that a call may use."""
    others = [row.with_dialect(variant.dialect) for variant in row.also] if row.chooses else []
    return [row, *(other for other in others if other is not None)]


def _list_requests(row: Provider) -> list[str]:
    """The fields that ask the models of this host for thinking."""
    fields = [_describe_fields(rule.ask_by, row) for rule in row.models if rule.ask_by is not None]
    if row.quirks.ask_by == "nothing" and row.models:
        return fields
    return [_describe_fields(row.quirks.ask_by, row), *fields]


def _describe_efforts(rules: Sequence[ModelRule]) -> str:
    """The efforts that any of the models takes."""
    known = {effort for rule in rules for effort in rule.efforts or ()}
    named = ", ".join(f"`{effort}`" for effort in _EFFORTS if effort in known)
    return named or ("none" if rules and all(rule.efforts == () for rule in rules) else "passed on")


def _describe_off(rules: Sequence[ModelRule]) -> str:
    stops = {rule.thinking for rule in rules} - {"unknown"}
    if not stops:
        return "not known"
    return "depends on the model" if len(stops) > 1 else "yes" if stops == {"optional"} else "no"


def _describe_budgets(rules: Sequence[ModelRule], row: Provider) -> str:
    budgets = {rule.budget for rule in rules if rule.budget is not None}
    ranges = sorted(budgets, key=lambda budget: (budget[0], budget[1] or 0))
    cells = [f"{least} and more" if most is None else f"{least}–{most}" for least, most in ranges]
    where = "" if row.quirks.budget_in is None else f"in `{row.quirks.budget_in}`"
    return ", ".join(part for part in (_join(cells), where) if part) or "–"


def _describe_refusals(rules: Sequence[ModelRule]) -> str:
    """The settings that some of the models refuse, while they think or always."""
    refused = dict.fromkeys((name for rule in rules for name in (*rule.forbids, *rule.refuses)), "")
    for rule in rules:
        if rule.temperature is not None:
            refused["temperature"] = f" (some take {rule.temperature:g})"
        if rule.top_p is not None:
            refused["top_p"] = f" (some take {rule.top_p[0]:g}–{rule.top_p[1]:g})"
    cells = [f"`{name}`{exception}" for name, exception in refused.items()]
    if not all(rule.forced_tools and rule.forced_tools_with_budget for rule in rules):
        cells.append("a forced `tool_choice`")
    if not all(rule.tools_while_thinking for rule in rules):
        cells.append("tools in chat completions")
    return ", ".join(cells) or "–"


def _join(texts: Iterable[str]) -> str:
    """Alternatives that depend on the model, each once."""
    return ", or ".join(dict.fromkeys(texts))


def insert(page: str, content: str, name: str) -> str:
    """The page with the content between its marks of this name."""
    begin, end = f"<!-- {name}:begin -->\n", f"\n<!-- {name}:end -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"the page lacks its marks: {begin.strip()} and {end.strip()}")
    return before + begin + content + end + after


def main(words: list[str]) -> int:
    """Write or check; 0 when all pages are current."""
    rows = list_providers()
    stale: list[str] = []
    pages = (
        (ROOT / "docs" / "providers.md", write_provider_table(rows), "providers"),
        (ROOT / "docs" / "thinking.md", write_thinking_table(rows), "thinking"),
    )
    for path, content, name in pages:
        page = path.read_text(encoding="utf-8")
        written = insert(page, content, name)
        if written != page:
            stale.append(path.relative_to(ROOT).as_posix())
            if words != ["--check"]:
                path.write_text(written, encoding="utf-8")
    if stale and words == ["--check"]:
        print(f"not current: {', '.join(stale)}; run python3 scripts/dev.py docs")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
