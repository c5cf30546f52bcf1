"""What real clients send, for every provider: read, translated, accepted by its strict rules, all left out told.

The captures are in a folder beside the repository; a clone without it skips these tests.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from asides.relay.translate.translate_fields import UntranslatableField
from asides.values.errors import InvalidThinking
from asides.values.parts import ToolResult
from tests.relay.translated import TARGETS, Translated, read, target_of

FOLDER = Path(__file__).parents[3] / "shared" / "reference" / "clients"

_DIALECTS = (
    ("/messages", "anthropic"),
    ("/chat/completions", "openai_chat"),
    ("/responses", "openai_responses"),
    ("Content", "gemini"),
    ("/converse", "bedrock"),
)
# Its client asks for a budget below zero: a fault of its own, for which 400 is right.
BROKEN = ("opencode-anthropic/01",)

# The names under which a field of a body may be told.
_TOLD_AS = {
    "context_management": "context_management",
    "client_metadata": "client_metadata",
    "prompt_cache_key": "prompt_cache_key",
    "store": "store",
}


def list_captures() -> list[tuple[str, str]]:
    """The requests for a reply, with their dialects."""
    found: list[tuple[str, str]] = []
    for file in sorted(FOLDER.glob("*/*.json")) if FOLDER.is_dir() else ():
        captured = json.loads(file.read_bytes())
        path = captured["path"].partition("?")[0]
        dialect = next((name for part, name in _DIALECTS if part in path), None)
        if captured["method"] == "POST" and dialect is not None and "count" not in path:
            found.append((f"{file.parent.name}/{file.name[:2]}", dialect))
    return found


CAPTURES = list_captures()
needs_captures = pytest.mark.skipif(not CAPTURES, reason="the captured requests are not in a clone")


def load(name: str) -> tuple[dict[str, Any], str]:
    """The body of a capture, and its path."""
    client, _, number = name.partition("/")
    (file,) = (FOLDER / client).glob(f"{number}-*.json")
    captured = json.loads(file.read_bytes())
    return captured["body"], captured["path"].partition("?")[0]


@needs_captures
@pytest.mark.parametrize("to", sorted(TARGETS))
@pytest.mark.parametrize(("name", "dialect"), [each for each in CAPTURES if each[0] not in BROKEN])
def test_a_request_of_a_real_client_is_accepted_by_every_other_provider(name: str, dialect: str, to: str) -> None:
    if to == dialect:
        return  # its signatures are those of another stage
    body, path = load(name)
    served = read(dialect, body, path)
    if "thread" in body:
        with pytest.raises(UntranslatableField) as refused:
            Translated(served, dialect, target_of(to))
        assert refused.value.details == {"error_code": "thread_unsupported_request"}
        return
    translated = Translated(served, dialect, target_of(to))
    assert translated.find_refusal() is None
    leaked = set(translated.prompt.extra) & set(served.prompt.extra) - {"prompt_cache_key"}
    assert not leaked
    for field in set(body) & set(_TOLD_AS):
        # Responses stores by itself, through the relay.
        if not (field == "store" and dialect == "openai_responses") and field not in translated.body:
            assert _TOLD_AS[field] in translated.told
    for tool in body.get("tools") or ():
        if tool.get("type") == "web_search":
            sent = [own.name for own in translated.prompt.tools if own.native is not None]
            assert "web_search" in (sent or translated.told)


@needs_captures
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_request_is_refused_with_its_reason(name: str) -> None:
    body, path = load(name)
    with pytest.raises(InvalidThinking, match="-1"):
        read("anthropic", body, path)


@needs_captures
@pytest.mark.parametrize("to", sorted(set(TARGETS) - {"openai_responses"}))
def test_codex_keeps_its_tools_in_namespaces(to: str) -> None:
    body, path = load("codex/01")
    translated = Translated(read("openai_responses", body, path), "openai_responses", target_of(to))
    names = {tool.name for tool in translated.prompt.tools}
    assert {"exec_command", "write_stdin", "multi_agent_v1__spawn_agent"} <= names
    assert "namespace" not in json.dumps(translated.body.get("tools") or translated.body.get("toolConfig"))


@needs_captures
def test_claude_code_keeps_its_history_and_tools() -> None:
    body, path = load("claude-code/03")
    for to in sorted(set(TARGETS) - {"anthropic"}):
        translated = Translated(read("anthropic", body, path), "anthropic", target_of(to))
        assert [tool.name for tool in translated.prompt.tools] == [tool["name"] for tool in body["tools"]]
        results = [
            part for message in translated.prompt.messages for part in message.parts if isinstance(part, ToolResult)
        ]
        assert len(results) == 1
        assert translated.prompt.max_tokens == 64000
