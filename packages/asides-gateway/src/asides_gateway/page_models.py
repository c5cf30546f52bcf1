"""Models for the page: which there are, which is the default, and what a conversation's model and thinking mean."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from asides.flows.build_call import CallBuilder
from asides.options import Options, merge_options
from asides.providers.find import find_row
from asides.providers.provider import ModelRule
from asides.relay.allowed_models import AllowedModels
from asides.relay.known_models import list_known_models, select_models
from asides.relay.listed_models import ListedModels
from asides.relay.routes import find_route, refuse_file
from asides.values.errors import AsidesError, ConfigError, UnknownModel
from asides.values.thinking import EFFORTS, read_thinking

_OFF = "off"
ALL_EFFORTS = (_OFF, "auto", *EFFORTS)
MOST_MODELS = 3000
"""The most models in the list."""
# As for relayed requests: what a model does not take is adjusted, with a notice.
_OPTIONS = Options(on_conflict="adjust", keep_raw=False)


class ChosenModel(NamedTuple):
    """What a turn asks."""

    name: str
    """As it was named: a route, an alias, or provider:model."""
    targets: tuple[str, ...]
    """The models to ask, in order."""
    options: Options
    is_exact: bool = False
    """Whether no other model is asked, though the settings name some after these."""

    @property
    def target(self) -> str:
        """The model that is asked first."""
        return self.targets[0]

    @property
    def asked(self) -> str | list[str]:
        """The model, or several, as a question takes them."""
        return self.targets[0] if len(self.targets) == 1 and not self.is_exact else list(self.targets)


def choose_model(
    name: str | None,
    thinking: str | int | None,
    builder: CallBuilder,
    *,
    may_name_files: bool = True,
    allowed: AllowedModels | None = None,
) -> ChosenModel:
    """Find what to ask, and check that it can be asked: its key is there, and the amount of thinking is one. Raises an
    AsidesError before anything is sent or saved. `may_name_files`: whether the name may be that of a file here.
    `allowed`: the models that the caller may use; None: all.
    """
    name = name or find_default_model(builder, allowed)
    if name is None:
        raise UnknownModel(
            "no model is named, and no default is set. Name one as provider:model, or run "
            "`asides config set model PROVIDER:MODEL`."
        )
    check_thinking(thinking)
    return _choose(name, thinking, builder, may_name_files=may_name_files, allowed=allowed)


def _choose(
    name: str,
    thinking: str | int | None,
    builder: CallBuilder,
    *,
    may_name_files: bool = True,
    allowed: AllowedModels | None = None,
) -> ChosenModel:
    route = find_route(name, builder, "", "")
    targets = route.targets if allowed is None else allowed.keep_targets(name, route.targets, builder)
    if not (may_name_files or route.renames):
        refuse_file(route.targets, builder)
    options = merge_options(_OPTIONS, route.options)
    if thinking is None and "thinking" not in options and builder.defaults.get("thinking") is None:
        # Most providers send no words of a thought unless they are asked to; the page is there to show them.
        thinking = "auto" if _may_think(targets[0], builder) else None
    if thinking is not None:
        options = merge_options(options, Options(thinking=thinking))
    is_exact = allowed is not None and not allowed.allows(name)
    chosen = ChosenModel(name, targets, options, is_exact)
    builder.build(chosen.asked, "?", options, stream=True)
    return chosen


def _may_think(target: str, builder: CallBuilder) -> bool:
    try:
        return builder.find_target(target, builder.defaults.get("base_url")).rule.thinking != "never"
    except ConfigError:
        return False  # Building its call reports the reason.


def check_thinking(thinking: str | int | None) -> None:
    """Raise InvalidThinking for what is not an amount of thinking."""
    if thinking is not None:
        read_thinking(thinking)


def find_default_model(builder: CallBuilder, allowed: AllowedModels | None = None) -> str | None:
    """The model of the settings, else the first known one that can be asked; None if there is none. `allowed`: the
    models that the caller may use; None: all.
    """
    default = builder.settings.model
    if default is not None and (allowed is None or allowed.can_ask(default, builder)):
        return default
    return next((model.id for model in list_known_models(builder) if _can_ask(model.id, builder, allowed)), None)


def _can_ask(name: str, builder: CallBuilder, allowed: AllowedModels | None) -> bool:
    """Whether a model can be asked: its key is there. Nothing is sent."""
    try:
        _choose(name, None, builder, allowed=allowed)
    except AsidesError:
        return False
    return True


# --- the list ---------------------------------------------------------------------------------------------------------


class PageModel(msgspec.Struct, frozen=True):
    """A name that the page can offer as a model."""

    id: str
    target: str
    """What it leads to first, as provider:model."""
    provider: str
    """The name of that provider's row."""
    thinks: bool = True
    """Whether it may think. An unknown model may."""
    efforts: tuple[str, ...] = ()
    """The amounts of thinking that can be asked for, the lowest first; "off" where thinking can be turned off."""


def list_models(
    builder: CallBuilder,
    allowed: AllowedModels | None = None,
    listed: ListedModels | None = None,
    shown: tuple[str, ...] = (),
) -> tuple[PageModel, ...]:
    """The models that the page offers: the default of the settings, then all known ones.

    `allowed`: the models that the caller may use; None: all. `listed`, `shown`: as for the relay's lists.
    """
    names = [model.id for model in select_models(list_known_models(builder, listed), builder, shown)]
    if builder.settings.model is not None:
        names.insert(0, builder.settings.model)
    if allowed is not None:
        names = [name for name in names if allowed.can_ask(name, builder)]
    described = (show_model(name, builder) for name in list(dict.fromkeys(names))[:MOST_MODELS])
    return tuple(model for model in described if model is not None)


def show_model(name: str, builder: CallBuilder) -> PageModel | None:
    """What is known about the model that a name leads to; None if the name leads nowhere."""
    try:
        target = find_route(name, builder, "", "").targets[0]
    except ConfigError:
        return None
    try:
        found = builder.find_target(target, builder.defaults.get("base_url"))
        row, rule = found.provider, found.rule
    except ConfigError:
        # Its address is not set, which a request reports; the model exists.
        provider, _, model = target.partition(":")
        known = find_row(provider, builder.rows)
        if known is None:
            return None
        row, rule = known, known.rule(model)
    return PageModel(name, target, row.name, rule.thinking != "never", _list_efforts(rule))


def _list_efforts(rule: ModelRule) -> tuple[str, ...]:
    if rule.thinking == "never":
        return ()
    # Efforts that a model has no word for become a budget, or the switch that it has.
    efforts: tuple[str, ...] = rule.efforts or (() if rule.efforts == () else EFFORTS)
    return efforts if rule.thinking == "always" else (_OFF, *efforts)
