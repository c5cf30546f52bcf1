"""Cache of built calls: `KnownCalls`. Most requests to a model differ only in their messages and tools.

A call expires after a second, so that changed keys and variables take effect.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import msgspec

from asides.flows.call import Call
from asides.providers.credentials import KeySource
from asides.providers.provider import Target
from asides.relay.routes import Route
from asides.values.messages import Prompt
from asides.values.notices import Notice

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_MOST = 256
_SECONDS = 1.0
_LONGEST_NAME = 200
_NO_PROMPT = Prompt(())


class KnownCalls:
    """What one relay keeps of its calls. It holds what its settings hold: no option, key or address of a request. Safe
    to use from many threads.
    """

    def __init__(self) -> None:
        self._calls: dict[Hashable, tuple[Call, float]] = {}
        self._routes: dict[Hashable, tuple[Route, float]] = {}
        self._facts: dict[Hashable, tuple[Target, Any]] = {}
        self._without_responses: dict[str, bool] = {}

    def lacks_responses(self, base_url: str) -> bool:
        """Whether a server said that it has no Responses."""
        return base_url in self._without_responses

    def note_no_responses(self, base_url: str) -> None:
        """A server has no Responses."""
        _store(self._without_responses, base_url, True)

    def build(
        self,
        model: str,
        place: Hashable,
        prompt: Prompt,
        stream: bool,
        now: float,
        build: Callable[[], Call],
        report: Callable[[Prompt, Target], tuple[Notice, ...]],
    ) -> Call:
        """The call of a model for this prompt. `place`: what else decides it, beside the prompt. `now`: by a clock that
        only goes forward. `build` builds it; `report` checks a prompt for the target of a call that is kept, and
        returns its notices."""
        if prompt.output is not None or prompt.compaction is not None or len(model) > _LONGEST_NAME:
            return build()
        state, thinking = prompt.state, prompt.thinking
        is_stored = state.continues or state.resume or state.store is True
        key = (model, place, stream, bool(prompt.tools), is_stored, thinking.wanted, thinking.show == "raw")
        known = self._calls.get(key)
        if known is not None and now - known[1] < _SECONDS:
            call = known[0]
            prompt = prompt if prompt.stream is stream else msgspec.structs.replace(prompt, stream=stream)
            notices = report(prompt, call.target)
            if notices:
                return msgspec.structs.replace(call, prompt=prompt, notices=(*call.notices, *notices))
            return msgspec.structs.replace(call, prompt=prompt)
        call = build()
        if not (call.fallbacks or isinstance(call.key, KeySource) or call.target.launches):
            # The notices about its prompt are its last.
            others = len(call.notices) - len(report(call.prompt, call.target))
            bare = msgspec.structs.replace(call, prompt=_NO_PROMPT, notices=call.notices[:others])
            _store(self._calls, key, (bare, now))
        return call

    def find_route(self, model: str, dialect: str, now: float, find: Callable[[], Route]) -> Route:
        """The route of a model as callers of a dialect name it. `find` finds it."""
        known = self._routes.get(key := (model, dialect))
        if known is not None and now - known[1] < _SECONDS:
            return known[0]
        route = find()
        if len(model) <= _LONGEST_NAME:
            _store(self._routes, key, (route, now))
        return route

    def find_fact(self, target: Target, name: Hashable, find: Callable[[], Value]) -> Value:
        """What follows from a target alone, such as the address and headers of a forwarded request.
        `name`: of the fact. `find` finds it.
        """
        known = self._facts.get(key := (id(target), name))
        if known is not None and known[0] is target:
            fact: Value = known[1]
            return fact
        fact = find()
        if any(call.target is target for call, _ in list(self._calls.values())):
            # Of a call that is kept, so that its address is one of the settings.
            _store(self._facts, key, (target, fact))
        return fact


def _store(known: dict[Key, Value], key: Key, value: Value) -> None:
    if len(known) >= _MOST:
        known.clear()
    known[key] = value
