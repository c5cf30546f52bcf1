"""The options of one relayed request: those of the relay and its route, and the object `asides` in the caller's body.

What the caller's dialect has a field for is in the request itself, and wins over defaults. Not here: the options of
`ask` (options).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from asides.flows.build_call import PROMPT_OPTIONS, CallBuilder
from asides.options import Options, merge_options
from asides.relay.error_response import RelayRefusal
from asides.relay.relay_config import OptionLayers, RelayConfig
from asides.relay.routes import Route
from asides.values.messages import Prompt, Sampling
from asides.values.thinking import Thinking

FIELD = "asides"
"""The object in the body of a request that holds options of ours."""

_ALLOWED = frozenset(
    """
    thinking reasoning_effort reasoning timeout retries max_wait on_conflict endpoint cache tags tag_position
    starts_inside heuristics thinking_field family extra max_tokens temperature top_p top_k seed stop compaction
    openai_responses_enabled reply_limits
    """.split()
)
# What decides where a request and its key go.
_OF_TRUSTED_CALLERS = frozenset({"api_key", "base_url"})
_OWN = frozenset({"fallbacks", "visibility", "forward"})
# The limits protect programs whose tools grow unnoticed. A relay's callers chose theirs, and agents have many.
_NO_TOOL_LIMITS = Options(tools_max_count=100_000, tools_max_json_kb=1_000_000)
_BASE = Options(on_conflict="adjust", keep_raw=False)
_PLAIN_THINKING = Thinking()


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


def merge_layers(route: Route, config: RelayConfig, builder: CallBuilder) -> OptionLayers:
    """Merge what holds for all requests of a route."""
    own = merge_options(config.options, route.options)
    defaults = merge_options(builder.defaults, own)
    has_limits = not builder.settings.origins.keys().isdisjoint(_NO_TOOL_LIMITS)
    below = merge_options(_BASE, {} if has_limits else _NO_TOOL_LIMITS)
    return OptionLayers(merge_options(below, own), frozenset(defaults.keys() & PROMPT_OPTIONS))


def read_request_options(given: Any, config: RelayConfig) -> dict[str, Any]:
    """Check the object `asides` of a body. Raises RelayRefusal for what is no option, or not allowed here."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise RelayRefusal(f"{FIELD} is an object with options, not {type(given).__name__}.", param=FIELD)
    allowed = _ALLOWED | _OWN | (_OF_TRUSTED_CALLERS if config.trusts_callers else frozenset())
    for name in given:
        if name in _OF_TRUSTED_CALLERS and name not in allowed:
            raise RelayRefusal(
                f"{FIELD}.{name} is not allowed: this relay chooses addresses and keys itself.", param=f"{FIELD}.{name}"
            )
        if name not in allowed:
            known = ", ".join(sorted(allowed))
            raise RelayRefusal(f"{FIELD}.{name} is no option of a request. To do: use {known}.", param=FIELD)
    return {name: value for name, value in given.items() if value is not None}


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
        return RequestOptions(layers.options, route.targets, False)
    fallbacks = own.get("fallbacks", ())
    fallbacks = (fallbacks,) if isinstance(fallbacks, str) else tuple(fallbacks)
    if not all(isinstance(name, str) for name in fallbacks):
        raise RelayRefusal(f"{FIELD}.fallbacks is a list of models.", param=f"{FIELD}.fallbacks")
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
        raise RelayRefusal(f"{FIELD}.visibility is a list of raw and summary.", param=f"{FIELD}.visibility")
    return tuple(kind for kind in kinds if kind != "none")
