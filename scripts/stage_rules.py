"""Writes docs/stage-rules.md, the rules of the strict stage, from their data.

    python scripts/stage_rules.py            write it
    python scripts/stage_rules.py --check    fail when it is not current

The rules are in src/asides/dialects/<name>/rules.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from asides.dialects.rulebook import Rule, find_rulebook
from asides.providers.models.claude import claude_models
from asides.providers.provider import ModelRule
from asides_stage.stage.rules.openai_chat.hosts import HOSTS as CHAT_HOSTS
from asides_stage.stage.rules.openai_responses.response_hosts import HOSTS as RESPONSES_HOSTS
from asides_stage.stage.rules.openai_responses.response_hosts import OPENAI

PAGE = Path(__file__).resolve().parent.parent / "docs" / "stage-rules.md"
_DIALECTS = {
    "anthropic": "Claude: Messages, and Bedrock with its own words around them",
    "bedrock": "Bedrock's Converse itself",
    "gemini": "Gemini and Vertex",
    "gemini_interactions": "Gemini Interactions",
    "openai_chat": "Chat completions",
    "openai_responses": "Responses",
    "ollama": "Ollama",
    "cohere": "Cohere",
}
_MOST_WORDS = 110
_INTRODUCTION = """# Rules of the stage

The strict [stage](testing-with-the-stage.md#what-it-refuses) refuses requests by these rules. The kind is the one in
`error.kind`. Each rule has the words of the real server, the day on which they were seen or documented, and the source.
This page is generated from the data of the rules (`python scripts/stage_rules.py`). Words in `{…}` change.
"""


def write_page() -> str:
    """The whole page."""
    return "\n".join([_INTRODUCTION, *_write_dialects(), *_write_hosts(), *_write_generations()])


def _write_dialects() -> Iterator[str]:
    for name, title in _DIALECTS.items():
        yield f"## {title}\n"
        yield "| kind | the server says | since | source |\n|---|---|---|---|"
        for rule in _list_rules(name):
            kind = f"`{rule.kind}`" if rule.kind else "none"
            yield f"| {kind} | {_write_words(rule)} | {rule.since} | {_escape(rule.source)} |"
        yield ""


def _list_rules(dialect: str) -> tuple[Rule, ...]:
    rules = find_rulebook(dialect)
    return () if rules is None else rules.RULES


def _write_words(rule: Rule) -> str:
    """The words, cut and in code: those of a server contain marks of Markdown."""
    words = " ".join(rule.text.replace("{{", "{").replace("}}", "}").split())
    cut = words if len(words) <= _MOST_WORDS else f"{words[:_MOST_WORDS].rstrip()}…"
    status = "" if rule.status == 400 else f"{rule.status}: "
    return f"{status}`` {_escape(cut)} ``"


def _escape(text: str) -> str:
    return text.replace("|", "\\|")


def _write_hosts() -> Iterator[str]:
    yield "## Hosts of chat completions and Responses\n"
    yield (
        "The first part of the path chooses the host: `http://127.0.0.1:PORT/as-groq/v1`. Without it, the path of the "
        "real host or the name of the model does. For other names, only the rules of all hosts hold.\n"
    )
    yield "| path | host | models (a pattern) | Responses |\n|---|---|---|---|"
    in_responses = {host.at: host.title for host in (*RESPONSES_HOSTS, OPENAI) if host.at}
    for host in CHAT_HOSTS:
        models = f"`` {_escape(host.models)} ``" if host.models and len(host.models) <= _MOST_WORDS else ""
        models = "names with the maker in front" if host.upstreams and host.models else models
        yield f"| `/{host.at}/v1` | {host.title} | {models} | {'yes' if host.at in in_responses else ''} |"
    only = sorted(set(in_responses) - {host.at for host in CHAT_HOSTS})
    yield from (f"| `/{at}/v1` | {in_responses[at]} | | only |" for at in only)
    yield ""


def _write_generations() -> Iterator[str]:
    yield "## Claude's generations\n"
    yield "What each generation accepts, by the pattern of its name. The first matching row counts.\n"
    yield "| models | `thinking.type` | effort | sampling | forced tools | begun answers | thinking bound to |"
    yield "|---|---|---|---|---|---|---|"
    rules = [rule for rule in claude_models() if not rule.assumed]
    yield from map(_write_generation, rules)
    yield "\nSources:\n"
    yield from sorted({f"- {rule.source}" for rule in rules})
    yield ""


def _write_generation(rule: ModelRule) -> str:
    bound = ["model"]
    if rule.prefix_bound:
        since = f" (accounts since {rule.prefix_bound_since})" if rule.prefix_bound_since else ""
        bound.append(f"conversation{since}")
    if rule.account_bound:
        bound.append("account")
    unasked = " (on unasked)" if rule.default == "on" else ""
    cells = (
        f"`{rule.models}`",
        ", ".join(rule.forms) + unasked if rule.forms else "none",
        ", ".join(rule.efforts or ()) or "none",
        "no" if rule.refuses else "temperature or top_p" if rule.temperature_or_top_p else "yes",
        "no" if rule.thinking == "always" and rule.forced_tools is not True else "yes",
        "no" if rule.prefill == "never" else "yes",
        ", ".join(bound) if rule.forms else "–",
    )
    return f"| {' | '.join(cells)} |"


def main(words: list[str]) -> int:
    """Write the page, or check it."""
    page = write_page()
    if "--check" not in words:
        PAGE.write_text(page, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page:
        return 0
    print(f"{PAGE.name} is not current. Python scripts/stage_rules.py")
    return 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
