"""The models that a caller may ask: `AllowedModels(patterns)`. What it may not ask is refused, and in no list.

A pattern fits the name that a request has, be it a route, an alias or a model, and then everything that the name leads
to; or it fits a target as provider:model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import msgspec

from asides.relay.error_response import RelayRefusal
from asides.relay.routes import find_route
from asides.values.errors import ConfigError
from asides.values.notices import Notice

if TYPE_CHECKING:
    from asides.flows.build_call import CallBuilder
    from asides.flows.call import Call

NAMES_MORE_MODELS = ("models", "fallbacks", "fallback_models", "preset")
"""Fields of a body with which a host uses other models than the named one."""
# Lists of what a host does by itself. An entry may name a model that does it, such as an advisor or a painter.
_OF_HOST = ("tools", "plugins")


class AllowedModels:
    """What one caller may ask."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        """`patterns`: () allows all."""
        self._patterns = tuple(pattern.lower() for pattern in patterns)

    def allows(self, name: str) -> bool:
        """Whether one of the patterns fits a name. `Route.meant` is that of a request: what clients write before it
        could fit a pattern while the rest leads elsewhere.
        """
        name = name.strip().lower()
        return not self._patterns or any(fnmatchcase(name, pattern) for pattern in self._patterns)

    def can_ask(self, name: str, builder: CallBuilder, dialect: str = "", home: str = "") -> bool:
        """Whether a name of a list may be asked: itself, or one of the targets that it leads to."""
        try:
            route = find_route(name, builder, home, dialect)
        except ConfigError:
            return self.allows(name)
        return self.allows(route.meant) or any(self.allows(_complete(target, builder)) for target in route.targets)

    def keep_allowed(self, asked: str, meant: str, call: Call) -> Call:
        """The call with those of its fallbacks that may be asked. Raises RelayRefusal if none may. `meant`: the name
        that led to it.
        """
        if self.allows(meant):
            return call
        each = (msgspec.structs.replace(call, fallbacks=()), *call.fallbacks)
        kept = [one for one in each if self.allows(one.model)]
        if not kept:
            raise refuse_model(asked)
        if len(kept) == len(each):
            return call
        detail = "this key may not ask all models of the route"
        notice = Notice("model_not_allowed", detail, "model", asked, kept[0].model)
        return msgspec.structs.replace(kept[0], fallbacks=tuple(kept[1:]), notices=(*kept[0].notices, notice))

    def keep_targets(self, asked: str, targets: tuple[str, ...], builder: CallBuilder) -> tuple[str, ...]:
        """Those of the targets of a name that may be asked. Raises RelayRefusal if none may."""
        if self.allows(asked):
            return targets
        kept = tuple(target for target in targets if self.allows(_complete(target, builder)))
        if not kept:
            raise refuse_model(asked)
        return kept

    def check_fallbacks(self, names: Iterable[str], builder: CallBuilder) -> None:
        """Raise RelayRefusal for a model that a request names beside the first one, if it may not be asked."""
        for name in names:
            if not (self.allows(name) or self.allows(_complete(name, builder))):
                raise refuse_model(name)

    def check_fields(self, extra: Mapping[str, Any]) -> None:
        """Raise RelayRefusal for a field of a request that would let its host ask other models."""
        found = find_more_models(extra)
        if self._patterns and found is not None:
            raise RelayRefusal(
                f"{found} is not allowed for this key, which may not ask every model. Leave it out.",
                status=403,
                code="model_not_found",
                param=found,
            )


def find_more_models(extra: Mapping[str, Any]) -> str | None:
    """The field of a request with which its host uses other models than the named one; None if there is none."""
    found = next((name for name in NAMES_MORE_MODELS if extra.get(name)), None)
    return found or next((name for name in _OF_HOST if _names_model(extra.get(name))), None)


def _names_model(entries: Any) -> bool:
    if not isinstance(entries, list):
        return False
    named = (name for each in entries if isinstance(each, dict) for name, value in each.items() if value)
    return any(isinstance(name, str) and name.casefold().endswith(("model", "models")) for name in named)


def refuse_model(name: str) -> RelayRefusal:
    """The error of a request for a model that its caller may not ask."""
    return RelayRefusal(
        f"this key may not ask the model '{name[:200]}'. Request the list of models for the ones that it may ask, or "
        "ask the operator of the gateway for another key.",
        status=403,
        code="model_not_found",
        param="model",
    )


def _complete(target: str, builder: CallBuilder) -> str:
    """A target as provider:model, with the provider's own name."""
    try:
        found = builder.find_target(target)
    except ConfigError:
        return target
    return f"{found.provider.name}:{found.model}"
