"""The latest request of a conversation, and whether the next one gives up its cache.

Loaded only where `explain` or a question with `cache=` needs it. Not here: the comparison (history/cache_break).
"""

from __future__ import annotations

from typing import NamedTuple

from asides.conversations.turn import Turn
from asides.flows.build_call import CallBuilder
from asides.history.cache_break import SentBefore, find_cache_break
from asides.options import ModelLike, Options
from asides.values.errors import AsidesError
from asides.values.notices import Notice


class LastRequest(NamedTuple):
    """A question as it was asked: all by reference, so that to remember it costs nothing."""

    turn: Turn
    model: ModelLike | None
    options: Options


# Options that are no part of a prompt: a change of them changes no cache.
_OUTSIDE = frozenset({"timeout", "retries", "max_wait", "on_conflict", "keep_raw", "max_tokens", "stop", "temperature"})


def build_request(last: LastRequest, builder: CallBuilder) -> SentBefore | None:
    """Build the request again; None if it cannot be built any more."""
    try:
        call = builder.build(last.model, last.turn, last.options, stream=True, needs_key=False)
    except (AsidesError, TypeError):
        return None
    return SentBefore(call.prompt, call.target)


def report_break(last: LastRequest, now: LastRequest, builder: CallBuilder) -> tuple[Notice, ...]:
    """A notice if a question gives up the cache of the one before it. Where settings and past are the same objects,
    nothing is built.
    """
    if last.model == now.model and last.turn.system == now.turn.system and _select(last) == _select(now):
        earlier = last.turn.messages
        if all(one is other for one, other in zip(earlier, now.turn.messages, strict=False)):
            return ()
    before, request = build_request(last, builder), build_request(now, builder)
    if before is None or request is None:
        return ()
    found = find_cache_break(request.prompt, request.target, before=before, on_conflict="adjust")
    if found is None:
        return ()
    return (Notice("cache_broken", f"the prompt cache ends at {found.path}: {found.why}", "cache"),)


def _select(request: LastRequest) -> dict[str, object]:
    return {name: value for name, value in request.options.items() if name not in _OUTSIDE}
