"""Which models read `reasoning_details` of which format."""

from __future__ import annotations

import pytest

from asides.providers.detail_formats import fits_format


@pytest.mark.parametrize(
    ("format_name", "model", "fits"),
    [
        ("anthropic-claude-v1", "anthropic/claude-sonnet-4.5", True),
        ("anthropic-claude-v1", "~anthropic/claude-opus-latest", True),
        ("anthropic-claude-v1", "openai/gpt-5", False),
        ("anthropic-claude-v1", "google/gemini-3-pro-preview", False),
        ("google-gemini-v1", "google/gemini-3-pro-preview", True),
        ("google-gemini-v1", "anthropic/claude-sonnet-4.5", False),
        ("openai-responses-v1", "openai/gpt-5.2", True),
        ("openai-responses-v1", "openai/o3", True),
        ("openai-responses-v1", "x-ai/grok-4", False),
        ("azure-openai-responses-v1", "openai/gpt-5", True),
        ("xai-responses-v1", "x-ai/grok-4.3", True),
        ("xai-responses-v1", "openai/gpt-5", False),
        ("anthropic-claude-v2", "openai/gpt-5", False),
        ("MiniMax-response-v1", "openai/gpt-5", True),
        ("unknown", "openai/gpt-5", True),
        ("", "openai/gpt-5", True),
    ],
)
def test_a_format_names_the_models_that_read_it(format_name: str, model: str, fits: bool) -> None:
    assert fits_format(format_name, model) is fits
