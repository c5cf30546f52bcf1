"""The latest request of a conversation, and whether the next one gives up its cache.

Loaded only where `explain` or a question with `cache=` needs it.
"""

from __future__ import annotations

from typing import TypeAlias

from asides.conversations.turn import Turn
from asides.flows.build_call import CallBuilder
from asides.flows.offline import Explanation, explain_call
from asides.history.cache_break import SentBefore, find_cache_break
from asides.options import ModelLike, Options
from asides.values.errors import AsidesError
from asides.values.notices import Notice

AskedRequest: TypeAlias = tuple[Turn, ModelLike | None, Options]
"""A question, its model and its options: all by reference, so that to remember it costs nothing."""

# Options outside of the prompt: changing them does not affect the cache.
_OUTSIDE = frozenset({"timeout", "retries", "max_wait", "on_conflict", "keep_raw", "max_tokens", "stop", "temperature"})


def explain_next(now: AskedRequest, last: AskedRequest | None, builder: CallBuilder) -> Explanation:
    """Explain a question, compared with the one before."""
    turn, model, options = now
    call = builder.build(model, turn, options, stream=False, needs_key=False)
    return explain_call(call, None if last is None else _build_request(last, builder))


def _build_request(request: AskedRequest, builder: CallBuilder) -> SentBefore | None:
    """Build a request; None if that is no longer possible."""
    turn, model, options = request
    try:
        call = builder.build(model, turn, options, stream=True, needs_key=False)
    except (AsidesError, TypeError):
        return None
    return SentBefore(call.prompt, call.target)


def report_break(last: AskedRequest, now: AskedRequest, builder: CallBuilder) -> tuple[Notice, ...]:
    """A notice if a question gives up the cache of the one before it. Where settings and past are the same objects,
    nothing is built.
    """
    (old, old_model, _), (new, new_model, _) = last, now
    if old_model == new_model and old.system == new.system and _select(last) == _select(now):
        shorter = len(old.messages) <= len(new.messages)
        if shorter and all(one is other for one, other in zip(old.messages, new.messages, strict=False)):
            return ()
    before, request = _build_request(last, builder), _build_request(now, builder)
    if before is None or request is None:
        return ()
    found = find_cache_break(request.prompt, request.target, before=before, on_conflict="adjust")
    if found is None:
        return ()
    return (Notice("cache_broken", f"the prompt cache ends at {found.path}: {found.why}", "cache"),)


def _select(request: AskedRequest) -> dict[str, object]:
    return {name: value for name, value in request[2].items() if name not in _OUTSIDE}
