"""The options of one relayed request: those of the relay and its route, and the object `asides` in the caller's body.

What the caller's dialect has a field for is in the request itself, and wins over defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from asides.dialects import DIALECTS, find_facts
from asides.flows.build_call import PROMPT_OPTIONS, CallBuilder
from asides.options import Options, merge_options
from asides.relay.error_response import RelayRefusal
from asides.relay.relay_config import OptionLayers, RelayConfig
from asides.relay.routes import Route
from asides.values.error_words import suggest_name
from asides.values.messages import Prompt, Sampling
from asides.values.visibility import Visibility

FIELD = "asides"
"""The object in the body of a request that holds options of ours."""

_ALLOWED = frozenset(
    """
    thinking reasoning_effort reasoning timeout retries max_wait on_conflict endpoint cache tags tag_position
    starts_inside heuristics thinking_field family extra max_tokens temperature top_p top_k seed stop compaction
    openai_responses_enabled
    """.split()
)
# Options that set the destination and key of a request, or protect the memory of this process.
_TRUSTED_ONLY_OPTIONS = frozenset({"api_key", "base_url", "reply_limits"})
# Options that separate thinking from the answer: with them a caller could get hidden thinking as text.
_THINKING_OPTIONS = frozenset({"tags", "tag_position", "starts_inside", "heuristics", "thinking_field", "family"})
# Upper bounds for untrusted callers: retries, and how long a connection to a provider stays open.
_MOST = {"retries": 10, "max_wait": 600}
_MOST_SECONDS = 3600
_MOST_FALLBACKS = 16
# Fields of a body that choose a model. Callers choose with `model` and `fallbacks` instead.
_CHOOSES_MODEL = ("model", "models", "modelId")
# Fields that name objects in a provider's account. Where the caller's dialect has them, the relay checks the owner.
_ACCOUNT_FIELDS = (
    *(facts.previous_field for facts in map(find_facts, DIALECTS) if facts.stored_as),
    *("conversation", "prompt", "container", "cachedContent", "thread", "background"),
)
_OWN = frozenset({"fallbacks", "visibility", "forward"})
# The limits protect programs whose tools grow unnoticed. A relay's callers chose theirs, and agents have many.
_NO_TOOL_LIMITS = Options(tools_max_count=100_000, tools_max_json_kb=1_000_000)
_BASE = Options(on_conflict="adjust", keep_raw=False)


class RequestOptions(msgspec.Struct, frozen=True):
    """The options of one request."""

    options: Options
    models: tuple[str, ...]
    """The models to ask, in order."""
    changes_prompt: bool
    """Whether they say more than the body of the request, so that it cannot be forwarded."""
    visibility: tuple[str, ...] | None = None
    """The kinds of thinking that the caller wants at most; None: all that it may see."""
    may_forward: bool = True
    is_usual: bool = False
    """Whether they are those of the route alone, the same object for all its requests."""


def merge_layers(route: Route, config: RelayConfig, builder: CallBuilder) -> OptionLayers:
    """Merge what holds for all requests of a route."""
    own = merge_options(config.options, route.options)
    defaults = merge_options(builder.defaults, own)
    has_limits = not builder.settings.origins.keys().isdisjoint(_NO_TOOL_LIMITS)
    below = merge_options(_BASE, {} if has_limits else _NO_TOOL_LIMITS)
    return OptionLayers(merge_options(below, own), frozenset(defaults.keys() & PROMPT_OPTIONS))


def read_request_options(given: Any, config: RelayConfig, visibility: Visibility | None = None) -> dict[str, Any]:
    """Check the object `asides` of a body. Raises RelayRefusal for an unknown option, or one not allowed here.
    `visibility`: what callers may see of thinking; None: everything.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise RelayRefusal(f"{FIELD} is not an object. Write an object with options, such as timeout.", param=FIELD)
    allowed = _ALLOWED | _OWN | (_TRUSTED_ONLY_OPTIONS if config.trusts_callers else frozenset())
    for name in given:
        if name in _TRUSTED_ONLY_OPTIONS and name not in allowed:
            raise RelayRefusal(
                f"{FIELD}.{name} is not allowed: this relay chooses addresses, keys and limits itself. Leave it out.",
                param=f"{FIELD}.{name}",
            )
        if name not in allowed:
            meant = suggest_name(str(name), sorted(allowed), f"there are {', '.join(sorted(allowed))}.")
            raise RelayRefusal(f"unknown option {FIELD}.{name}; {meant}", param=FIELD)
    options = {name: value for name, value in given.items() if value is not None}
    if not config.trusts_callers:
        _check_limits(options)
        if visibility is not None and not visibility.allows(config.sink, "raw"):
            _refuse_separation(options)
    return options


def _refuse_separation(options: Mapping[str, Any]) -> None:
    """Raise a RelayRefusal for an option that decides what of a reply is thinking."""
    found = next((name for name in options if name in _THINKING_OPTIONS), None)
    if found is not None:
        raise RelayRefusal(
            f"{FIELD}.{found} is not allowed: it decides what of a reply is thinking, which callers of this relay do "
            "not see. Leave it out, or ask the operator of this relay for a route with it.",
            param=f"{FIELD}.{found}",
        )


def _check_limits(options: Mapping[str, Any]) -> None:
    """Raise a RelayRefusal for more than a caller that is not trusted may ask for."""
    for name, most in _MOST.items():
        value = options.get(name)
        if isinstance(value, (int, float)) and not value <= most:
            raise RelayRefusal(f"{FIELD}.{name} is at most {most} here.", param=f"{FIELD}.{name}")
    fallbacks = options.get("fallbacks")
    if isinstance(fallbacks, (list, dict)) and len(fallbacks) > _MOST_FALLBACKS:
        raise RelayRefusal(f"{FIELD}.fallbacks has at most {_MOST_FALLBACKS} models here.", param=f"{FIELD}.fallbacks")
    extra = options.get("extra")
    if isinstance(extra, Mapping) and any(name in extra for name in _CHOOSES_MODEL):
        raise RelayRefusal(f"{FIELD}.extra must not name a model. Use the field model.", param=f"{FIELD}.extra")
    held = next((name for name in _ACCOUNT_FIELDS if name in extra), None) if isinstance(extra, Mapping) else None
    if held is not None:
        raise RelayRefusal(
            f"{FIELD}.extra has no {held} here: the account of the provider is not the caller's own. Leave it out.",
            param=f"{FIELD}.extra",
        )
    _check_timeout(options.get("timeout"))


def _check_timeout(timeout: Any) -> None:
    """Raise a RelayRefusal for a wait that is longer than a caller may keep a connection, or has no end."""
    waits = timeout if isinstance(timeout, Mapping) else {} if timeout is None else {"timeout": timeout}
    for name, seconds in waits.items():
        is_long = isinstance(seconds, (int, float)) and not seconds <= _MOST_SECONDS
        if is_long or (seconds is None and name != "total"):
            raise RelayRefusal(
                f"{FIELD}.timeout is at most {_MOST_SECONDS} seconds here, for each wait.", param=f"{FIELD}.timeout"
            )


def collect_options(
    own: dict[str, Any],
    prompt: Prompt,
    route: Route,
    config: RelayConfig,
    builder: CallBuilder,
    known: dict[str, OptionLayers] | None = None,
) -> RequestOptions:
    """Merge the options of a request. `own` are those that `read_request_options` has checked. `known` are layers that
    were merged before, by the names of their routes.
    """
    layers = known.get(route.name) if known is not None else None
    if layers is None:
        layers = merge_layers(route, config, builder)
        if known is not None:
            known[route.name] = layers
    if not own and not layers.of_prompt:
        return RequestOptions(layers.options, route.targets, False, is_usual=known is not None)
    fallbacks = own.get("fallbacks", ())
    fallbacks = (fallbacks,) if isinstance(fallbacks, str) else tuple(fallbacks)
    if not all(isinstance(name, str) for name in fallbacks):
        raise RelayRefusal(
            f"{FIELD}.fallbacks is not a list of models. Name them as provider:model.",
            param=f"{FIELD}.fallbacks",
        )
    named = cast(Options, {name: value for name, value in own.items() if name not in _OWN})
    from_prompt = {name: value for name in layers.of_prompt if (value := _read_from_prompt(prompt, name)) is not None}
    options = merge_options(layers.options, Options(**from_prompt))  # type: ignore[typeddict-item]
    options = merge_options(options, named)
    new = layers.of_prompt - from_prompt.keys() | (named.keys() & PROMPT_OPTIONS)
    return RequestOptions(
        options,
        (*route.targets, *fallbacks),
        bool(new),
        None if "visibility" not in own else _read_kinds(own["visibility"]),
        own.get("forward", True) is not False,
    )


def _read_from_prompt(prompt: Prompt, name: str) -> Any:
    """What the request itself says about an option; None if nothing."""
    if name == "thinking":
        return prompt.thinking if prompt.thinking.asked else None
    if name in Sampling.__struct_fields__:
        return getattr(prompt.sampling, name)
    value = getattr(prompt, name, None)
    return None if value in ((), {}) else value


def _read_kinds(given: Any) -> tuple[str, ...]:
    kinds = (given,) if isinstance(given, str) else given
    if not isinstance(kinds, (list, tuple)) or not {*kinds} <= {"raw", "summary", "sealed", "none"}:
        raise RelayRefusal(
            f"{FIELD}.visibility is not a list of kinds of thinking. Use raw and summary, or none.",
            param=f"{FIELD}.visibility",
        )
    return tuple(kind for kind in kinds if kind != "none")
