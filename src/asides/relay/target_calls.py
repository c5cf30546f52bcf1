"""The calls of a request: one for each of its targets, the first with the others as its fallbacks."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.flows.call import NO_STATE, Call
from asides.flows.fallback import join_calls
from asides.options import Options, merge_options
from asides.providers.endpoint import RESPONSES, is_canonical
from asides.providers.find import find_row
from asides.relay.relay_config import Caller
from asides.relay.request_options import RequestOptions
from asides.relay.routes import Route
from asides.values.errors import ConfigError, MissingKey, UnknownModel
from asides.values.messages import Prompt

_ENDPOINTS = {"openai_chat": "chat", "openai_responses": "responses"}

_ASK = "ask the operator of this relay"


def build_calls(caller: Caller, served: ServedRequest, options: RequestOptions) -> Call:
    """Build the call of the first model, with those of the others as its fallbacks. Raises before a byte is sent."""
    names: list[str] = []
    calls: list[Call | MissingKey] = []
    for model in options.models:
        try:
            call = _build_call(caller, model, served, options.options, has_usual_options=options.is_usual)
        except MissingKey as problem:
            names.append(model)
            calls.append(problem)
        else:
            if len(options.models) == 1 and not call.fallbacks:
                return call
            each = (msgspec.structs.replace(call, fallbacks=()), *call.fallbacks)
            names += [one.model for one in each]
            calls += each
    return join_calls(names, calls, ())


def explain_missing_key(problem: MissingKey, model: str, route: Route, caller: Caller) -> ConfigError:
    """The error for a request without a key: how to pass one, or the likely intended provider."""
    config, rows = caller.config, caller.builder.rows
    if route.is_guess:
        from asides.providers.unknown_names import explain_model

        # Untrusted callers cannot pass arguments.
        needed = problem if config.trusts_callers else problem.with_hint(_ASK)
        return UnknownModel(f"{explain_model(model[:200], rows)} If it is the whole name of a model: {needed}")
    row = find_row(route.targets[0].partition(":")[0], rows)
    if config.home and row is not None and row is find_row(config.home, rows):
        return problem
    # The client's own key belongs to its own address.
    own = 'pass extra_body={"asides": {"api_key": …}}'
    return problem.with_hint(own if config.trusts_callers else _ASK)


def _build_call(
    caller: Caller, model: str, served: ServedRequest, options: Options, *, has_usual_options: bool = False
) -> Call:
    builder, home = caller.builder, caller.config.home
    row = find_row(model.partition(":")[0], builder.rows)
    is_home = bool(home) and row is not None and row is find_row(home, builder.rows)
    at_home = caller.config.home_options
    # A caller that names another address also passes its key: the home's key goes only to the home.
    is_home = is_home and options.get("base_url") in (None, at_home.get("base_url"))
    if is_home:
        options = merge_options(at_home, options)
    prompt = served.prompt
    if prompt.state != NO_STATE:
        # What the provider stores for a forwarded request is in its bytes; for others the relay stores it.
        state = msgspec.structs.replace(prompt.state, store=None, previous_response_id=None, conversation=None)
        prompt = msgspec.structs.replace(prompt, state=state)
    endpoint = _ENDPOINTS.get(caller.dialect)
    others = row.also if is_home and row is not None and caller.dialect == RESPONSES else ()
    if "endpoint" not in options and any(other.dialect == RESPONSES for other in others):
        # A client of Responses asks its home for them, whatever asides would choose there.
        options = merge_options(options, Options(endpoint=endpoint))
    keeps = has_usual_options and not is_home
    # The options of a route are one object for all its requests.
    call = _build_known(caller, model, prompt, served.stream, options, id(options) if keeps else None)
    if endpoint is None or "endpoint" in options or call.target.dialect == caller.dialect:
        return call
    # The home is the address that the client itself would have asked, in its own dialect.
    is_known = is_home or is_canonical(call.target)
    speaks_it = row is not None and row.with_dialect(caller.dialect) is not None
    is_open = row is not None and row.chooses
    if speaks_it and not is_known and caller.dialect == RESPONSES and is_open:
        # Another server behind a row that chooses between both: it is asked as the client asks, until it says that it
        # does not know that path.
        known_calls = caller.known_calls
        if known_calls is None or known_calls.lacks_responses(call.target.base_url):
            return call
        caller.other_call = call
        is_known = True
    speaks_it = speaks_it and is_known
    # Only Responses returns requested thinking.
    if not speaks_it or (caller.dialect != RESPONSES and prompt.thinking.wanted):
        return call
    place = (id(options), endpoint) if keeps else None
    options = merge_options(options, Options(endpoint=endpoint))
    return _build_known(caller, model, prompt, served.stream, options, place)


def _build_known(caller: Caller, model: str, prompt: Prompt, stream: bool, options: Options, place: Hashable) -> Call:
    """Build a call, or take one of an earlier request. `place`: names the options, where they are the same for all
    requests; None: they are this request's.
    """
    builder, known, now = caller.builder, caller.known_calls, caller.now

    def build() -> Call:
        return builder.build(model, prompt, options, stream=stream)

    if known is None or now is None or place is None:
        return build()
    report = partial(builder.report_prompt, options=options)
    return known.build(model, place, prompt, stream, now, build, report)
