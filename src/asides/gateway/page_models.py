"""Models for the page: which there are, which is the default, and what a conversation's model and thinking mean.

Not here: what is known about models without asking anybody (relay/answers/known_models).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from asides.flows.build_call import CallBuilder
from asides.options import Options, merge_options
from asides.relay.answers.known_models import KnownModel, list_known_models
from asides.relay.routes import find_route
from asides.values.errors import UnknownModel
from asides.values.thinking import EFFORTS, read_thinking

ALL_EFFORTS = ("off", "auto", *EFFORTS)
# As for relayed requests: what a model does not take is adjusted, with a notice.
_OPTIONS = Options(on_conflict="adjust", keep_raw=False)


class ChosenModel(NamedTuple):
    """What a turn asks."""

    name: str
    """As it was named: a route, an alias, or provider:model."""
    targets: tuple[str, ...]
    """The models to ask, in order."""
    options: Options

    @property
    def target(self) -> str:
        """The model that is asked first."""
        return self.targets[0]

    @property
    def asked(self) -> str | list[str]:
        """The model, or several, as a question takes them."""
        return self.targets[0] if len(self.targets) == 1 else list(self.targets)


def choose_model(name: str | None, thinking: str | int | None, builder: CallBuilder) -> ChosenModel:
    """Find what to ask, and check that it can be asked: its key is there, and the amount of thinking is one. Raises an
    AsidesError before anything is sent or saved.
    """
    name = name or find_default_model(builder)
    if name is None:
        raise UnknownModel(
            "no model is named, and there is none to begin with. To do: name one as provider:model, or run "
            "`asides config set model PROVIDER:MODEL`."
        )
    check_thinking(thinking)
    route = find_route(name, builder, "", "")
    options = merge_options(_OPTIONS, route.options)
    if thinking is not None:
        options = merge_options(options, Options(thinking=thinking))
    chosen = ChosenModel(name, route.targets, options)
    builder.build(chosen.asked, "?", options, stream=True)
    return chosen


def check_thinking(thinking: str | int | None) -> None:
    """Raise InvalidThinking for what is no amount of thinking."""
    if thinking is not None:
        read_thinking(thinking)


def find_default_model(builder: CallBuilder) -> str | None:
    """The model of the settings, else the first that is known to work; None if there is none."""
    if builder.settings.model is not None:
        return builder.settings.model
    return next((model.id for model in list_known_models(builder)), None)


def show_models(models: tuple[KnownModel, ...]) -> list[dict[str, Any]]:
    """The models as the page has them."""
    return [msgspec.to_builtins(model) for model in models]
