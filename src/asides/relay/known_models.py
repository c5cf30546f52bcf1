"""The models that a relay without a home can name: those of the settings, and of every provider that has a key.

With ASIDES_STAGE that is every provider, since the stage answers for all of them and needs no key. Nothing is asked of
a provider. A row knows few models by name: most of its rules are for families, and a pattern is no model.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec

from asides.flows.build_call import CallBuilder
from asides.providers.credentials import KeySource, find_key
from asides.providers.find import find_staged, list_providers
from asides.providers.provider import ModelRule, Provider, merge_facts
from asides.providers.table import WITHOUT_A_KEY
from asides.relay.routes import GLOB_MARKS, list_own_names
from asides.values.errors import ConfigError
from asides.values.model_info import ModelInfo, ThinkingInfo

TINY_PACKAGES = ("xllamacpp", "asides_tiny_model")
"""What the model that needs no key is made of: its engine, and its weights."""


def list_known_models(builder: CallBuilder) -> tuple[ModelInfo, ...]:
    """The models by the names that a request may use: routes, aliases, the default model, then provider:model."""
    default = builder.settings.model
    names = [*list_own_names(builder), *([] if default is None else [default])]
    own = [describe_model(name, builder) for name in names]
    tiny = [describe_model(WITHOUT_A_KEY, builder)] if has_tiny_model() else []
    return tuple({model.id: model for model in (*own, *_list_keyed(builder), *tiny)}.values())


def describe_model(name: str, builder: CallBuilder, *, target: str = "") -> ModelInfo:
    """What our table knows of a model. `target`: the model that the name leads to."""
    settings = builder.settings
    table = settings.routes.get(name)
    target = target or (table.targets[0] if table is not None else settings.aliases.get(name, name))
    try:
        found = builder.find_target(target)
    except ConfigError:
        return ModelInfo(name)  # Its address is not set, or nobody knows it.
    return _describe(name, None, found.rule, found.provider)


def find_keyed_providers(builder: CallBuilder) -> tuple[Provider, ...]:
    """The providers that have a key, or are played by the stage, and the user's own rows that need none. Rows of one
    host count once.
    """
    own = {row.name for row in builder.rows}
    return tuple(row for row in list_providers(builder.rows) if not row.host and _has_key(row, row.name in own))


@cache
def has_tiny_model() -> bool:
    """Whether the model that needs no key is installed."""
    return all(find_spec(package) is not None for package in TINY_PACKAGES)


def _list_keyed(builder: CallBuilder) -> Iterator[ModelInfo]:
    for row in find_keyed_providers(builder):
        for rule in row.models:
            if not GLOB_MARKS.intersection(rule.models):
                title = row.title or row.name
                yield _describe(f"{row.name}:{rule.models}", f"{rule.models} ({title})", rule, row)


def _has_key(row: Provider, is_own: bool) -> bool:
    try:
        if find_staged(row) is not None:
            return True
        key = find_key(row)
    except ConfigError:
        return False
    # Whether a cloud gives a token shows only when it is asked.
    return (key is not None and not isinstance(key, KeySource)) or (is_own and row.key == "optional")


def _describe(model_id: str, name: str | None, rule: ModelRule, row: Provider) -> ModelInfo:
    thinking = None
    if rule.thinking != "unknown":
        thinks = rule.thinking != "never"
        types = tuple(form for form in rule.forms if form != "disabled") if thinks else ()
        thinking = ThinkingInfo(thinks, rule.thinking == "always", types, rule.efforts if thinks else None)
    facts = rule.context, rule.max_output, thinking
    return ModelInfo(model_id, name, None, *facts, tools=rule.tools, pictures=merge_facts(rule, row.quirks).pictures)
