"""The models that a relay without a home can name: those of the settings, and of every provider that has a key.

With ASIDES_STAGE that is every provider: the stage answers for all of them and needs no key. A provider's own list is
used where the gateway has it; else the models that its row names. Most rules are for families, and a pattern does not
name a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

import msgspec

from asides.flows.build_call import CallBuilder
from asides.providers.credentials import KeySource, find_key
from asides.providers.find import find_staged, list_providers
from asides.providers.provider import ModelRule, Provider, merge_facts
from asides.providers.table import WITHOUT_A_KEY
from asides.relay.routes import GLOB_MARKS, list_own_names
from asides.values.errors import ConfigError
from asides.values.model_info import ModelInfo, ThinkingInfo

if TYPE_CHECKING:
    from asides.relay.listed_models import ListedModels

TINY_PACKAGES = ("xllamacpp", "asides_tiny_model")
"""What the model that needs no key is made of: its engine, and its weights."""


def list_known_models(builder: CallBuilder, listed: ListedModels | None = None) -> tuple[ModelInfo, ...]:
    """The models by the names that a request may use: routes, aliases, the default model, then provider:model.

    `listed`: the lists of providers; None: only the models that our rows name.
    """
    default = builder.settings.model
    names = [*list_own_names(builder), *([] if default is None else [default])]
    own = [describe_model(name, builder) for name in names]
    tiny = [describe_model(WITHOUT_A_KEY, builder)] if has_tiny_model() else []
    return tuple({model.id: model for model in (*own, *_list_keyed(builder, listed), *tiny)}.values())


def select_models(
    models: Iterable[ModelInfo], builder: CallBuilder, patterns: tuple[str, ...]
) -> tuple[ModelInfo, ...]:
    """The models that lists show: the names in the settings, and models that match a pattern. (): all."""
    if not patterns:
        return tuple(models)
    own = {*list_own_names(builder), builder.settings.model}
    shown = tuple(pattern.lower() for pattern in patterns)
    return tuple(
        model for model in models if model.id in own or any(fnmatchcase(model.id.lower(), each) for each in shown)
    )


def describe_model(name: str, builder: CallBuilder, *, target: str = "") -> ModelInfo:
    """What our table knows of a model. `target`: the model that the name leads to."""
    settings = builder.settings
    table = settings.routes.get(name)
    target = target or (table.targets[0] if table is not None else settings.aliases.get(name, name))
    try:
        found = builder.find_target(target)
    except ConfigError:
        return ModelInfo(name)  # Its address is not set or not known.
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


def _list_keyed(builder: CallBuilder, listed: ListedModels | None) -> Iterator[ModelInfo]:
    for row in find_keyed_providers(builder):
        title = row.title or row.name
        models = None if listed is None else listed.find(row, builder)
        if models:
            for model in models:
                yield _merge_listed(model, row, title)
            continue
        for rule in row.models:
            if not GLOB_MARKS.intersection(rule.models):
                yield _describe(f"{row.name}:{rule.models}", f"{rule.models} ({title})", rule, row)


def _merge_listed(model: ModelInfo, row: Provider, title: str) -> ModelInfo:
    """A model of a provider's list with what our row knows of it. What the provider says of its sizes comes first."""
    known = _describe(f"{row.name}:{model.id}", f"{model.name or model.id} ({title})", row.rule(model.id), row)
    return msgspec.structs.replace(
        known,
        created=model.created,
        context=known.context if model.context is None else model.context,
        max_output=known.max_output if model.max_output is None else model.max_output,
        thinking=known.thinking or model.thinking,
        tools=model.tools if known.tools is None else known.tools,
        pictures=model.pictures if known.pictures is None else known.pictures,
    )


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
    pictures = merge_facts(rule, row.quirks).pictures
    return ModelInfo(model_id, name, None, *facts, tools=rule.tools is True, pictures=pictures)
