"""The models that a relay can name without asking anybody: `list_known_models(builder)`.

Routes and aliases of the settings, its default model, models of providers whose key is set, and the model that comes
with asides where it is installed. Not here: the models that a provider lists itself (flows/list_models), and the shape
of a list (model_answers).
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING

import msgspec

from asides.providers.find import find_row, list_providers
from asides.providers.key_file import locate_key
from asides.providers.provider import ModelRule, Provider
from asides.providers.table import WITHOUT_A_KEY
from asides.relay.routes import GLOB_MARKS, find_route, list_own_names
from asides.values.errors import AsidesError
from asides.values.thinking import EFFORTS

if TYPE_CHECKING:
    from asides.flows.build_call import CallBuilder

MOST_MODELS = 500
"""The most models in a list."""
_OFF = "off"


class KnownModel(msgspec.Struct, frozen=True):
    """A name that a request may use as its model."""

    id: str
    target: str
    """What it leads to first, as provider:model."""
    provider: str
    """The name of that provider's row; "" if there is none."""
    thinks: bool = True
    """Whether it may think. A model about which nothing is known may."""
    efforts: tuple[str, ...] = ()
    """The amounts of thinking that can be asked for, the lowest first; "off" where thinking can be turned off."""


def list_known_models(builder: CallBuilder) -> tuple[KnownModel, ...]:
    """The models, each name once: those of the settings first, at most `MOST_MODELS`. Nothing is sent."""
    known: dict[str, KnownModel] = {}
    for name in _list_names(builder):
        if name not in known and (found := describe_model(name, builder)) is not None:
            known[name] = found
        if len(known) >= MOST_MODELS:
            break
    return tuple(known.values())


def describe_model(name: str, builder: CallBuilder) -> KnownModel | None:
    """What is known about the model that a name leads to; None if the name leads nowhere."""
    try:
        target = find_route(name, builder, "", "").targets[0]
        found = builder.find_known(target).found
    except AsidesError:
        # The address of the provider is not set, or a route of the settings has an error, which a request tells.
        return None
    return KnownModel(name, target, found.provider.name, found.rule.thinking != "never", _list_efforts(found.rule))


def _list_names(builder: CallBuilder) -> Iterator[str]:
    yield from list_own_names(builder)
    if builder.settings.model is not None:
        yield builder.settings.model
    for row in find_keyed_providers(builder):
        yield from (f"{row.name}:{rule.models}" for rule in row.models if not GLOB_MARKS.intersection(rule.models))
    launched = find_row(WITHOUT_A_KEY.partition(":")[0], builder.rows)
    if launched is not None and launched.launcher and _is_installed(launched):
        yield WITHOUT_A_KEY


def find_keyed_providers(builder: CallBuilder) -> tuple[Provider, ...]:
    """The providers whose key is set. Rows of one host count once."""
    rows = list_providers(builder.rows)
    return tuple(row for row in rows if not row.launcher and row.host in ("", row.name) and _has_key(row))


def _has_key(row: Provider) -> bool:
    try:
        return locate_key(row, clouds=False) is not None
    except AsidesError:  # The key file cannot be read, which a request tells.
        return False


def _is_installed(row: Provider) -> bool:
    """Whether what a launcher starts is installed, as far as it can tell."""
    try:
        tell = getattr(import_module(row.launcher.partition(":")[0]), "is_installed", None)
    except ImportError:
        return False
    return tell is None or bool(tell())


def _list_efforts(rule: ModelRule) -> tuple[str, ...]:
    if rule.thinking == "never":
        return ()
    # Efforts that a model has no word for become a budget, or the switch that it has.
    efforts: tuple[str, ...] = rule.efforts or (() if rule.efforts == () else EFFORTS)
    return efforts if rule.thinking == "always" else (_OFF, *efforts)
