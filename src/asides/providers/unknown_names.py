"""What to say about a model or a provider that is not known: what was probably meant, and how to write it.

Loaded only with such an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from asides.providers.find import find_row, list_names, list_providers, normalise_name
from asides.providers.provider import Provider
from asides.values.error_words import find_near_names
from asides.values.errors import UnknownModel, UnknownProvider

_MAX_CANDIDATES = 8


def explain_model(text: str, rows: Sequence[Provider]) -> UnknownModel | UnknownProvider:
    """The error for a model string that names no known provider."""
    before, colon, _ = text.partition(":")
    left, slash, _ = text.partition("/")
    if "?" in (before if colon else text):
        return UnknownModel(f"{text!r} cannot be parsed. Name one model, written provider:model.")
    if (colon and not before.strip()) or (slash and not left.strip()):
        return UnknownModel(f"{text!r} has no provider; write provider:model.")
    if not colon and not slash and (row := find_row(text, rows)) is not None:
        return UnknownModel(f"{text!r} names a provider and no model; write {row.name}:model.")
    if colon and "/" not in before:
        # A name such as qwen3:8b may be a model with a tag, or a misspelt provider.
        more = f" If {text!r} is a model's own name, {_advise(text, rows)}" if find_candidates(text, rows) else ""
        return explain_provider(before.strip(), rows, more)
    return UnknownModel(f"{text!r} is a model without a provider: {_advise(text, rows)}")


def _advise(model: str, rows: Sequence[Provider]) -> str:
    """The model strings to write instead of a bare model name. We never guess the provider from it."""
    found = [f"{name}:{model}" for name in find_candidates(model, rows)]
    if not found:
        return f"write provider:{model}, with one of {_list_some(row.name for row in list_providers(rows))}."
    more = f" (and {len(found) - _MAX_CANDIDATES} more)" if len(found) > _MAX_CANDIDATES else ""
    return f"write one of {', '.join(found[:_MAX_CANDIDATES])}{more}."


def find_candidates(model: str, rows: Sequence[Provider] = ()) -> tuple[str, ...]:
    """The providers with a rule for this model: first makers, then the user's own servers, then hosts."""
    # A maker's pattern begins with a name and not with `*`. Rows of one host count once.
    known = [(row, row.rule(model).models) for row in list_providers(rows) if not row.host]
    ranked = [((pattern.startswith("*"), row.key), row.name) for row, pattern in known if pattern != "*"]
    return tuple(name for _, name in sorted(ranked, key=lambda entry: entry[0]))


def explain_provider(name: str, rows: Sequence[Provider], more: str = "") -> UnknownProvider:
    """The error for a provider that no row has: the nearest names, and how to add a row. `more` ends the message."""
    by_key = {key: row.name for row in list_providers(rows) for key in list_names(row)}
    close = dict.fromkeys(by_key[key] for key in find_near_names(normalise_name(name), by_key, most=3))
    meant = (
        f"Did you mean {' or '.join(close)}?"
        if close
        else f"There are {_list_some(row.name for row in list_providers(rows))}."
    )
    return UnknownProvider(
        f"unknown provider {name!r}. {meant} To add a server: Provider(name={name!r}, base_url=…) in code, or "
        f"[providers.{name}] in asides.toml; for a single call use openai-compatible: with base_url=.{more}"
    )


def _list_some(names: Iterable[str]) -> str:
    listed = list(names)
    shown = ", ".join(listed[:_MAX_CANDIDATES])
    return f"{shown} … (`asides providers` lists all {len(listed)})" if len(listed) > _MAX_CANDIDATES else shown
