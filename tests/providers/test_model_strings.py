"""P1: model strings, and FT-45: what can be in front of the colon."""

from __future__ import annotations

import pytest

from asides.providers.find import find_target
from asides.values.errors import ConfigError, UnknownModel, UnknownProvider

NOTHING: dict[str, str] = {}


@pytest.mark.parametrize(
    ("written", "provider", "model"),
    [
        ("deepseek:deepseek-v4-pro", "deepseek", "deepseek-v4-pro"),
        ("deepseek/deepseek-v4-pro", "deepseek", "deepseek-v4-pro"),
        # The model part may hold both marks; the first colon counts.
        ("openrouter:deepseek/deepseek-r1:free", "openrouter", "deepseek/deepseek-r1:free"),
        ("openrouter/deepseek/deepseek-r1:free", "openrouter", "deepseek/deepseek-r1:free"),
        ("ollama:qwen3:8b", "ollama", "qwen3:8b"),
        ("ollama/qwen3:8b", "ollama", "qwen3:8b"),
        ("groq:openai/gpt-oss-20b", "groq", "openai/gpt-oss-20b"),
        # The left side of a slash counts only when nothing stands in front of a colon.
        ("openai/gpt-4o:ft", "openai", "gpt-4o:ft"),
        # Case, - and _ make no difference to a provider, and all of it to a model.
        ("DeepSeek:DeepSeek-V4", "deepseek", "DeepSeek-V4"),
        ("vercel_gateway:openai/gpt-5", "vercel-gateway", "openai/gpt-5"),
        ("LMStudio:Local_Model", "lmstudio", "Local_Model"),
        # Aliases.
        ("grok:grok-4.5", "xai", "grok-4.5"),
        ("hf:deepseek-ai/DeepSeek-R1", "huggingface", "deepseek-ai/DeepSeek-R1"),
        ("llama.cpp:qwen3", "llamacpp", "qwen3"),
        ("openai-chat:gpt-4o", "openai-chat", "gpt-4o"),
        # Blanks around the parts.
        ("  deepseek : deepseek-v4-pro ", "deepseek", "deepseek-v4-pro"),
    ],
)
def test_P1_FT_45_a_model_string_names_a_provider_and_a_model(written: str, provider: str, model: str) -> None:
    target = find_target(written, environ=NOTHING)
    assert (target.provider.name, target.model) == (provider, model)


@pytest.mark.parametrize("name", ["openai-compatible", "openaiCompatible", "OpenAI_Compatible", "openaicompatible"])
def test_P1_the_compatible_row_answers_to_every_spelling_and_needs_an_address(name: str) -> None:
    assert (
        find_target(f"{name}:any", base_url="http://localhost:1/v1", environ=NOTHING).provider.name
        == "openai-compatible"
    )
    with pytest.raises(ConfigError, match="base_url="):
        find_target(f"{name}:any", environ=NOTHING)


@pytest.mark.parametrize("empty", ["", " ", ":", "/", "openai:", "openai: ", ":gpt-5", " :gpt-5", "openai/", "/gpt-5"])
def test_P1_an_empty_part_is_an_error_that_says_what_to_write(empty: str) -> None:
    with pytest.raises(UnknownModel, match=r"[Ww]rite"):
        find_target(empty, environ=NOTHING)


def test_P1_a_provider_alone_has_no_model() -> None:
    with pytest.raises(UnknownModel, match="'Open_AI' names a provider and no model; write openai:model"):
        find_target("Open_AI", environ=NOTHING)


def test_P1_a_bare_model_is_an_error_that_lists_candidates() -> None:
    with pytest.raises(UnknownModel, match=r"[Ww]rite one of openai:gpt-5-mini, azure:gpt-5-mini\."):
        find_target("gpt-5-mini", environ=NOTHING)
    with pytest.raises(UnknownModel, match=r"[Ww]rite one of deepseek:deepseek-v4-pro, .* more"):
        find_target("deepseek-v4-pro", environ=NOTHING)
    with pytest.raises(UnknownModel, match=r"[Ww]rite provider:nobody-knows-me, with one of openai,"):
        find_target("nobody-knows-me", environ=NOTHING)


def test_P1_a_slash_behind_something_else_is_part_of_a_models_name() -> None:
    with pytest.raises(UnknownModel, match="vllm:deepseek-ai/DeepSeek-R1"):
        find_target("deepseek-ai/DeepSeek-R1", environ=NOTHING)


def test_P1_an_unknown_provider_is_met_with_close_names_and_how_to_add_a_row() -> None:
    with pytest.raises(UnknownProvider) as problem:
        find_target("deepsek:deepseek-v4", environ=NOTHING)
    said = str(problem.value)
    assert "'deepsek'" in said
    assert "Did you mean deepseek?" in said
    assert "Provider(name='deepsek'" in said
    assert "[providers.deepsek]" in said


def test_P1_a_tagged_model_without_a_provider_is_advised_too() -> None:
    with pytest.raises(UnknownProvider, match=r"If 'qwen3:8b' is a model's own name, write one of .*ollama:qwen3:8b"):
        find_target("qwen3:8b", environ=NOTHING)


def test_P1_several_models_in_one_string_are_not_understood() -> None:
    """The form of one other library; a model for each purpose is a call for each purpose here."""
    for written in ("openai?chat=gpt-4o&embeddings=e3&media=d3", "nobody?chat=x"):
        with pytest.raises(UnknownModel, match="cannot be parsed"):
            find_target(written, environ=NOTHING)
