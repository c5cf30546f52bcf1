"""The models that are suggested can be copied, exist as far as the rules know, and have a source."""

from __future__ import annotations

import re

import pytest

from asides.providers.find import find_provider, list_providers
from asides.providers.model_names import _EXAMPLES, list_model_names, sort_for_suggestions, suggest_models
from asides.providers.provider import ModelRule, Provider


@pytest.mark.parametrize("name", sorted(_EXAMPLES))
def test_an_example_is_a_whole_name_of_a_chat_model_with_a_source(name: str) -> None:
    row, examples = find_provider(name), _EXAMPLES[name]
    assert suggest_models(row) == examples.models
    assert 1 <= len(examples.models) <= 4
    assert re.fullmatch(r"2026-\d\d(-\d\d)?", examples.since)
    assert examples.source
    for model in examples.models:
        assert re.fullmatch(r"[\w.:@/-]*\w", model), model
        assert not re.search(
            r"image|tts|embed|audio|latest$(?<!mistral-medium-latest)(?<!mistral-small-latest)", model
        ), model
        if any(rule.models != "*" for rule in row.models):
            assert row.rule(model).thinking != "unknown", f"no rule knows {model}"


@pytest.mark.parametrize("name", ["openai", "anthropic", "google", "xai", "together", "nvidia", "groq", "fireworks"])
def test_the_large_providers_have_an_example(name: str) -> None:
    assert suggest_models(find_provider(name))


def test_names_to_complete_begin_with_the_examples_and_are_no_folders() -> None:
    for row in list_providers(()):
        names = list(list_model_names(row))
        assert tuple(names[: len(suggest_models(row))]) == suggest_models(row)
        assert len(set(names)) == len(names)
        assert [name for name in names if name.endswith(("/", ":", "-", "*"))] == []


def test_rows_of_the_user_come_first_with_the_names_of_their_rules() -> None:
    own = Provider(name="mine", tier="yours", models=(ModelRule(models="one"), ModelRule(models="two*")))
    renamed = Provider(name="openai", tier="yours")
    assert suggest_models(own) == ("one",)
    assert suggest_models(renamed) == ()
    ordered = sort_for_suggestions([*list_providers(()), own])
    assert [row.name for row in ordered[:4]] == ["mine", "openai", "anthropic", "google"]
