"""The names and the forms of what spans say."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

import asides
from asides.providers.find import find_target
from asides.telemetry import span_attributes
from asides.telemetry.span_attributes import (
    ReplyClock,
    describe_error,
    describe_reply,
    describe_target,
    describe_usage,
    name_error,
    name_provider,
    shorten,
)
from asides.values.usage import Timing, Usage

# They moved to a package of their own in 2026, and are marked as deprecated where they are installed.
gen_ai_attributes: Any = import_module("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
_NAMES = {value for name, value in vars(gen_ai_attributes).items() if name.startswith("GEN_AI")}
_PROVIDERS = {each.value for each in gen_ai_attributes.GenAiProviderNameValues}


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
    target = find_target(model)
    assert name_provider(target) == name
    assert name in _PROVIDERS


def test_a_provider_that_the_conventions_do_not_know_keeps_its_name() -> None:
    assert name_provider(find_target("vllm:m")) == "vllm"
    assert name_provider(find_target("openai-compatible:m", base_url="http://h/v1")) == "openai-compatible"


def test_every_name_of_the_conventions_that_is_used_exists() -> None:
    usage = describe_usage(Usage(1, 2, 3, 4, 5, cache_written=6))
    reply = describe_reply(asides.Reply(model="m", id="i"))
    own = {value for value in vars(span_attributes).values() if isinstance(value, str) and value.startswith("gen_ai.")}
    used = {*usage, *reply, *own}
    assert len(used) > 10
    assert {name for name in used if name.startswith("gen_ai.")} <= _NAMES


def test_the_address_is_a_host_and_a_port_and_nothing_else() -> None:
    target = find_target("openai-compatible:m", base_url="https://host.example/v1?key=secret")
    known = describe_target(target, "chat")
    assert (known["server.address"], known["server.port"]) == ("host.example", 443)
    assert "secret" not in str(known)


def test_names_of_others_are_short_and_forge_no_line() -> None:
    assert len(shorten("x" * 10_000)) == 200
    assert "\n" not in shorten("m\nforged")


def test_an_error_is_its_type_and_its_status() -> None:
    class Strange(Exception):
        pass

    assert name_error(ValueError("words")) == "ValueError"
    assert name_error(Strange()).endswith("Strange")
    error = asides.RateLimited("words", status=429)
    assert describe_error(error) == {"error.type": "RateLimited", "http.response.status_code": 429}


def test_tokens_that_are_not_known_are_left_out() -> None:
    assert describe_usage(Usage()) == {}
    assert describe_usage(Usage(input=0)) == {"gen_ai.usage.input_tokens": 0}


def test_the_times_of_a_fallback_count_from_its_own_start() -> None:
    moments = iter([100.0, 101.0])
    clock = ReplyClock(lambda: next(moments))
    clock.stamp()
    # The whole call began five seconds before.
    timing = Timing(first_event=6.0, first_thought=6.5, first_word=8.0)
    known = clock.describe(asides.Reply(streamed=True, timing=timing))
    assert list(known.values()) == [1.0, 1.5, 3.0]
    assert clock.describe(asides.Reply(streamed=False, timing=timing)) == {}
