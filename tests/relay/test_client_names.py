"""Names of models as clients show and send them: each leads back to one model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.flows.build_call import CallBuilder
from asides.options import Options
from asides.relay.client_names import drop_marks, list_meant_names, show_name
from asides.relay.routes import find_route
from tests.relay.relaying import ROUTES, load

NAMES = st.text(st.sampled_from("abcl/:-1[]m"), min_size=1).map(lambda text: text.replace("c", "claude"))


@given(one=NAMES, other=NAMES)
def test_law_two_models_are_never_shown_alike(one: str, other: str) -> None:
    assert (show_name(one, "anthropic") == show_name(other, "anthropic")) == (one == other)


@given(name=NAMES)
def test_law_claude_code_lists_every_name_and_sends_it_back(name: str) -> None:
    shown = show_name(name, "anthropic")
    assert shown.lower().startswith(("claude", "anthropic"))
    if drop_marks(name, "anthropic") == name:
        assert name in list_meant_names(shown, "anthropic")
        assert name in list_meant_names(f"{shown}[1m]", "anthropic")


@pytest.mark.parametrize(
    ("dialect", "sent", "meant"),
    [
        ("anthropic", "claude/openai:gpt-5", "openai:gpt-5"),
        ("anthropic", "claude/openai:gpt-5[1m]", "openai:gpt-5"),
        ("anthropic", "claude/best", "openai-compatible:big"),
        ("anthropic", "claude/mine", "google:gemini-3-pro-preview"),
        ("anthropic", "claude-opus-4-5[1m]", "openai-compatible:any"),
        ("anthropic", "anthropic:claude-opus-4-5[1M]", "anthropic:claude-opus-4-5"),
        ("anthropic", "claude/claude-opus-4-5", "claude/claude-opus-4-5"),
        ("anthropic", "best", "openai-compatible:big"),
        ("gemini", "models/openai:gpt-5", "openai:gpt-5"),
        ("gemini", "models/gemini-3-pro-preview", "google:gemini-3-pro-preview"),
        ("ollama", "best:latest", "openai-compatible:big"),
        ("ollama", "mine:latest", "google:gemini-3-pro-preview"),
        ("ollama", "ollama:qwen3:latest", "ollama:qwen3:latest"),
        ("ollama", "openai:gpt-5", "openai:gpt-5"),
        ("ollama", "llama3:latest", "ollama:llama3:latest"),
        ("openai_chat", "best:latest", "openai:best:latest"),
    ],
)
def test_what_a_client_sends_leads_to_what_it_was_shown(dialect: str, sent: str, meant: str) -> None:
    settings = load(routes=ROUTES, aliases={"mine": "google:gemini-3-pro-preview"})
    route = find_route(sent, CallBuilder(Options(), settings=settings), "", dialect)
    assert route.targets[0] == meant
