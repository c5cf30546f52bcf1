"""Routes: what the model's name of a request means. `find_route(name, …) → Route`.

In order: a route of the settings, an alias, provider:model, and else a model of the caller's home provider or of
the dialect's maker.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, cast

import msgspec

from asides.options import Options
from asides.providers.find import OWN_STAGE, RUNNING_STAGE, find_row
from asides.providers.table import WITHOUT_A_KEY, find_maker
from asides.relay.client_names import drop_marks, list_meant_names
from asides.relay.error_response import RelayRefusal
from asides.values.errors import ConfigError, UnknownModel

if TYPE_CHECKING:
    from asides.flows.build_call import CallBuilder

GLOB_MARKS = frozenset("*?[")
"""What makes a name a pattern."""


class Route(msgspec.Struct, frozen=True):
    """The targets of a name, in order, and the options that hold where the request says nothing."""

    targets: tuple[str, ...]
    options: Options = msgspec.field(default_factory=Options)
    name: str = ""
    """The name of the route in the settings; "" if it is not one."""
    is_guess: bool = False
    """The prefix looks like a provider but is unknown: it may be part of a model's name at the home."""
    renames: bool = False
    """The request named a route or an alias from the settings."""
    is_bare: bool = False
    """The name says neither a provider nor a route: it was taken for a model of the home, or of the dialect's maker."""
    meant: str = ""
    """The name that led here: without what clients of a dialect add to it. Access is checked against this name."""


def find_route(model: str, builder: CallBuilder, home: str, dialect: str) -> Route:
    """Find the route of a model as a request names it. Raises UnknownModel."""
    name = model.strip()
    if not name:
        raise refuse_unnamed()
    settings = builder.settings
    if (found := _find_named(name, settings.routes)) is not None:
        return found
    for meant in list_meant_names(name, dialect):
        if (found := _find_named(meant, settings.routes)) is not None:
            return found
        if meant in settings.aliases:
            return Route((settings.resolve_model(meant),), renames=True, meant=meant)
        # Models of hosts that serve those of many makers have names with a slash.
        if is_qualified(meant, builder, slashes=home in ("", find_maker(dialect))):
            return Route((meant,), meant=meant)
    name = drop_marks(name, dialect)
    if (matching := _find_matching(name, settings.routes)) is not None:
        return matching
    provider = home or find_maker(dialect)
    if provider is None:
        raise UnknownModel(f"the model {name!r} names no provider. Write provider:model.")
    is_guess = home in ("", find_maker(dialect)) and ":" in name
    return Route((f"{provider}:{name}",), is_guess=is_guess, is_bare=True, meant=name)


def refuse_unnamed() -> RelayRefusal:
    """The error of a request that names no model."""
    return RelayRefusal("model is missing. Name one, as provider:model.", param="model")


def is_qualified(name: str, builder: CallBuilder, *, slashes: bool = True) -> bool:
    """Whether a name begins with that of a provider: provider:model, or with `slashes` also provider/model."""
    return any(
        mark and rest.strip() and find_row(before, builder.rows) is not None
        for before, mark, rest in (name.partition(mark) for mark in (":/" if slashes else ":"))
    )


def refuse_file(names: Iterable[str], builder: CallBuilder) -> None:
    """Raise UnknownModel for a name that is the path of a file which a server would be started with: `names` come from
    a stranger. Names from the settings are allowed, and so is the bundled model.
    """
    for name in names:
        if name in builder.settings.aliases:
            continue
        try:
            found = builder.find_target(name)
        except ConfigError:
            continue  # Building its call reports the reason.
        starts = found.launches and found.provider.launcher not in (OWN_STAGE, RUNNING_STAGE)
        if starts and f"{found.provider.name}:{found.model}".lower() != WITHOUT_A_KEY:
            raise UnknownModel(
                "clients cannot name model files on the gateway's machine. Ask its operator for an alias."
            )


def list_own_names(builder: CallBuilder) -> list[str]:
    """The names that the settings give to models, for lists: routes, then aliases."""
    settings = builder.settings
    routes = [name for name in settings.routes if not GLOB_MARKS.intersection(name)]
    return list(dict.fromkeys([*routes, *settings.aliases]))


def _find_named(name: str, routes: dict[str, Any]) -> Route | None:
    table = routes.get(name)
    return None if table is None else _build_route(name, table, name)


def _find_matching(name: str, routes: dict[str, Any]) -> Route | None:
    """The first route whose name is a pattern that fits."""
    for pattern, table in routes.items():
        if GLOB_MARKS.intersection(pattern) and fnmatchcase(name, pattern):
            return _build_route(pattern, table, name)
    return None


def _build_route(name: str, table: Any, meant: str) -> Route:
    return Route(table.targets, cast(Options, table.collect_options()), name, renames=True, meant=meant)
