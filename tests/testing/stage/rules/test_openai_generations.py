"""OpenAI's models by generation, and the providers' rows: two statements of the same facts."""

from __future__ import annotations

import pytest

from asides.providers.find import find_target
from asides.testing.stage.rules.openai_generations import NAMES, count_tokens, find_generation, list_values

MODELS = (
    "gpt-4o gpt-4.1 o3 o4-mini gpt-5 gpt-5-mini gpt-5-pro gpt-5-codex gpt-5.1 gpt-5.1-codex-max gpt-5.2 gpt-5.2-pro "
    "gpt-5.4 gpt-5.5 gpt-5.6 gpt-6-astra gpt-6-sol gpt-6.1-sol gpt-6.1-terra"
).split()


@pytest.mark.parametrize("model", MODELS)
def test_the_rows_know_the_same_efforts(model: str) -> None:
    """Where the two differ, one of them is wrong: look at the sources of both."""
    rule = find_target(f"openai-responses:{model}").rule
    generation = find_generation(model)
    assert generation is not None
    assert (rule.thinking != "never") is generation.thinks
    assert tuple(effort for effort in generation.efforts if effort != "none") == (rule.efforts or ())
    assert ("none" in generation.efforts) is (rule.thinking == "optional")


@pytest.mark.parametrize("model", MODELS)
def test_the_names_are_openai_s(model: str) -> None:
    assert NAMES.match(model)
    assert find_generation(f"openai/{model}") is find_generation(model)


@pytest.mark.parametrize("model", ["gpt-oss-120b", "claude-opus-5", "orca", "glm-5", "o", "gptx"])
def test_other_names_are_not(model: str) -> None:
    assert not NAMES.match(model)


def test_a_model_thinks_at_its_effort() -> None:
    found = {name: find_generation(name) for name in ("gpt-5.1", "gpt-5", "gpt-4o", "gpt-6-sol")}
    thinks = {name: (each.thinks_at(None), each.thinks_at("low")) for name, each in found.items() if each is not None}
    assert thinks == {
        "gpt-5.1": (False, True),
        "gpt-5": (True, True),
        "gpt-4o": (False, False),
        "gpt-6-sol": (False, True),
    }


def test_values_are_listed_as_openai_lists_them() -> None:
    lists = [list_values(values) for values in (["a"], ["a", "b"], ["a", "b", "c"])]
    assert lists == ["'a'", "'a' and 'b'", "'a', 'b', and 'c'"]


def test_words_are_tokens() -> None:
    assert count_tokens(" one two\nthree ") == 3
