"""The settings of a chat as the rows know them: efforts, thinking by default, and how errors list values."""

from __future__ import annotations

import pytest

from asides.dialects.openai_chat.rules.settings import count_tokens, list_efforts, list_values, thinks_at
from asides.providers.find import find_target


@pytest.mark.parametrize(
    ("model", "efforts"),
    [
        ("gpt-5.1", ("none", "low", "medium", "high")),
        ("gpt-5", ("minimal", "low", "medium", "high")),
        ("gpt-4o", ()),
        ("gpt-5.9", None),
    ],
)
def test_efforts_include_none_where_thinking_can_be_turned_off(model: str, efforts: tuple[str, ...] | None) -> None:
    assert list_efforts(find_target(f"openai-chat:{model}").rule) == efforts


def test_a_model_thinks_at_its_effort() -> None:
    rules = {name: find_target(f"openai-chat:{name}").rule for name in ("gpt-5.1", "gpt-5", "gpt-4o", "gpt-6-sol")}
    assert {name: (thinks_at(rule, None), thinks_at(rule, "low")) for name, rule in rules.items()} == {
        "gpt-5.1": (False, True),
        "gpt-5": (True, True),
        "gpt-4o": (False, False),
        "gpt-6-sol": (False, True),
    }


def test_values_are_listed_as_errors_list_them() -> None:
    lists = [list_values(values) for values in (["a"], ["a", "b"], ["a", "b", "c"])]
    assert lists == ["'a'", "'a' and 'b'", "'a', 'b', and 'c'"]


def test_words_are_tokens() -> None:
    assert count_tokens(" one two\nthree ") == 3
