"""The names of models that a row's rules contain, for people to choose from."""

from __future__ import annotations

from collections.abc import Iterator

from asides.providers.provider import Provider

_GLOB_MARKS = frozenset("*?[")


def list_model_names(row: Provider) -> Iterator[str]:
    """Each model that a rule names, in the order of the rules; of a family such as gpt-5.6*, its first name."""
    for rule in row.models:
        name = rule.models.removesuffix("*").removesuffix("-")
        if name and rule.thinking != "unknown" and _GLOB_MARKS.isdisjoint(name):
            yield name
