"""The calls of a request by the name of its model: `find_calls(caller, asked, own) → FoundCalls`.

A name without a key goes to the fallback model of the relay, if it has one, with a notice.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.flows.call import Call
from asides.history.check import takes_choice
from asides.options import THINKING_OPTIONS
from asides.providers.table import WITHOUT_A_KEY
from asides.relay.allowed_models import refuse_model
from asides.relay.error_response import RelayRefusal
from asides.relay.known_models import list_known_models
from asides.relay.relay_config import Caller
from asides.relay.request_options import FIELD, RequestOptions, collect_options
from asides.relay.routes import Route, find_route, refuse_file
from asides.relay.target_calls import build_calls, explain_missing_key
from asides.values.errors import ConfigError, MissingKey, UnknownModel
from asides.values.notices import Notice

_FAMILY = re.compile(r"[A-Za-z]+(?=[-.\d])")


class FoundCalls(msgspec.Struct, frozen=True):
    """The call of the first target, with those of the others as its fallbacks, and its options."""

    call: Call
    options: RequestOptions
    renames: bool = False
    """Whether the request named another model than the first of these."""


def find_calls(caller: Caller, asked: ServedRequest, own: dict[str, Any]) -> FoundCalls:
    """Find and build the calls. `own`: the checked options of the request. Raises before a byte is sent."""
    config = caller.config
    _refuse_extra(caller, own)
    route: Route | None = None
    try:
        route = _find_route(caller, asked.model)
        return _build(caller, asked, own, route)
    except (MissingKey, UnknownModel) as problem:
        meant = asked.model if route is None else route.meant
        if caller.allowed is not None and not caller.allowed.allows(meant):
            # Do not reveal what is missing to a caller that may not use the model.
            raise refuse_model(asked.model) from None
        names_provider = route is not None and not route.is_bare
        if not config.fallback_model or names_provider:
            raise _explain(problem, asked.model, route, caller) from None
        error = problem
    try:
        fallback = find_route(config.fallback_model, caller.builder, "", "")
        fallback = msgspec.structs.replace(fallback, renames=True, meant=meant)
        found = _build(caller, asked, own, fallback)
    except (MissingKey, UnknownModel):
        raise _explain(error, asked.model, route, caller) from None
    detail = "no provider with a key here has this model, so the fallback model was asked"
    caller.notices.append(Notice("model_replaced", detail, "model", asked.model, config.fallback_model))
    return found


def _find_route(caller: Caller, model: str) -> Route:
    find = partial(find_route, model, caller.builder, caller.config.home, caller.dialect)
    if caller.known_calls is None or caller.now is None:
        return find()
    return caller.known_calls.find_route(model, caller.dialect, caller.now, find)


def _build(caller: Caller, asked: ServedRequest, own: dict[str, Any], route: Route) -> FoundCalls:
    options = collect_options(own, asked.prompt, route, caller.config, caller.builder, caller.layers)
    if caller.request.tenant:
        # What the settings say leads anywhere; what a stranger says, to no file of this machine.
        refuse_file(options.models[len(route.targets) :] if route.renames else options.models, caller.builder)
    if caller.allowed is not None:
        caller.allowed.check_fields(asked.prompt.extra)
        caller.allowed.check_fallbacks(options.models[len(route.targets) :], caller.builder)
    call = build_calls(caller, asked, options)
    if not (asked.prompt.thinking.asked or own.keys() & THINKING_OPTIONS):
        others = tuple(map(_let_tool_win, call.fallbacks))
        call = msgspec.structs.replace(_let_tool_win(call), fallbacks=others)
    if caller.allowed is not None:
        call = caller.allowed.keep_allowed(asked.model, route.meant, call)
    return FoundCalls(call, options, route.renames)


def _let_tool_win(call: Call) -> Call:
    """The call without the thinking of a route or the settings, where the client demands a tool that the model takes
    only while it does not think.
    """
    prompt, rule = call.prompt, call.target.rule
    is_free = rule.forced_tools == "never" or rule.thinking != "optional" or not prompt.thinking.wanted
    if is_free or takes_choice(prompt.tool_choice, prompt.thinking, rule):
        return call
    thinking = msgspec.structs.replace(prompt.thinking, mode=None, effort=None, budget=None)
    return msgspec.structs.replace(call, prompt=msgspec.structs.replace(prompt, thinking=thinking))


def _refuse_extra(caller: Caller, own: dict[str, Any]) -> None:
    """Raise RelayRefusal for fields that go to the provider as they are, if the caller has limits: they would replace
    those by which its model and its cost are known.
    """
    limits = caller.request.limits
    found = next((name for name in ("extra", "family") if own.get(name)), None)
    if limits is None or found is None:
        return
    if limits.models or limits.has_budget or limits.has_token_rate:
        raise RelayRefusal(
            f"{FIELD}.{found} is not allowed for this key, which has limits: the usage of such a request is not known "
            "in advance. Leave it out.",
            param=f"{FIELD}.{found}",
        )


def _explain(problem: ConfigError, model: str, route: Route | None, caller: Caller) -> ConfigError:
    """The error for the caller: what is missing, and the route that would help."""
    if not isinstance(problem, MissingKey) or route is None:
        return problem
    explained = explain_missing_key(problem, model, route, caller)
    if caller.config.home or not isinstance(explained, MissingKey) or not route.is_bare:
        return explained
    where = (
        "add to asides.toml" if not caller.request.tenant else "ask the operator of this relay to add to asides.toml"
    )
    return problem.with_hint(f"let another model answer: {where} {suggest_route(model, caller)}")


def suggest_route(model: str, caller: Caller) -> str:
    """The two lines of the settings that lead a model, and those like it, to one that works."""
    family = _FAMILY.match(model)
    pattern = f"{family[0]}-*" if family is not None and model.startswith(f"{family[0]}-") else model
    # Quotes and brackets of a stranger's name would break the line.
    pattern = re.sub(r"[^\w.:/*-]", "?", pattern)[:100]
    known = [each.id for each in list_known_models(caller.builder) if ":" in each.id]
    return f'[routes."{pattern}"] and, below it, targets = ["{next(iter(known), WITHOUT_A_KEY)}"]'
