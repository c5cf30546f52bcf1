"""Providers have the names in traces that the conventions of OpenTelemetry give them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from asides.providers.find import find_target
from asides.providers.trace_names import name_for_traces

# They moved to a package of their own in 2026, and are marked as deprecated where they are installed.
_conventions: Any = import_module("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
_PROVIDERS = {each.value for each in _conventions.GenAiProviderNameValues}


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("openai:gpt-5.5", "openai"),
        ("openai-responses:gpt-5.5", "openai"),
        ("anthropic:claude-sonnet-4-5", "anthropic"),
        ("google:gemini-3-pro", "gcp.gemini"),
        ("google-openai:gemini-3-pro", "gcp.gemini"),
        ("bedrock:anthropic.claude-sonnet-4-5-20250929-v1:0", "aws.bedrock"),
        ("bedrock-anthropic:anthropic.claude-sonnet-4-5-20250929-v1:0", "aws.bedrock"),
        ("google-interactions:gemini-3-flash-preview", "gcp.gemini"),
        ("xai:grok-4", "x_ai"),
        ("mistral:magistral-medium-latest", "mistral_ai"),
        ("deepseek:deepseek-reasoner", "deepseek"),
        ("groq:m", "groq"),
        ("cohere:command-a-reasoning-08-2025", "cohere"),
        ("perplexity:sonar", "perplexity"),
    ],
)
def test_providers_have_the_conventions_names(model: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert name_for_traces(find_target(model).provider) == name
    assert name in _PROVIDERS


def test_a_provider_that_the_conventions_do_not_know_keeps_its_name() -> None:
    assert name_for_traces(find_target("vllm:m").provider) == "vllm"
    compatible = find_target("openai-compatible:m", base_url="http://h/v1")
    assert name_for_traces(compatible.provider) == "openai-compatible"
