"""Observe a request whose flow may run in a thread: `LoopObserver(observer)`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import get_ident
from typing import TYPE_CHECKING

from asides.relay.observer import RelayObserver

if TYPE_CHECKING:
    from asides.dialects.dialect import HttpRequest, ServedRequest
    from asides.flows.call import Call
    from asides.history.plan import Decision
    from asides.relay.relay_request import RelayMode
    from asides.relay.state.turn_state import RestoredTurn
    from asides.values.events import Event

_SECONDS = 60.0
"""How long a thread waits for the loop. It takes longer only where the loop has ended."""


class LoopObserver(RelayObserver):
    """Calls an observer in the event loop in which it was made, from any thread, in the same order."""

    def __init__(self, observer: RelayObserver) -> None:
        self._observer = observer
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()

    def see_asked(self, asked: ServedRequest) -> None:  # noqa: D102 - as in RelayObserver
        self._call(self._observer.see_asked, asked)

    def see_target(self, call: Call, mode: RelayMode, reason: str) -> None:  # noqa: D102
        self._call(self._observer.see_target, call, mode, reason)

    def see_restored(self, turns: Sequence[RestoredTurn]) -> None:  # noqa: D102
        self._call(self._observer.see_restored, turns)

    def see_plan(self, decisions: Sequence[Decision]) -> None:  # noqa: D102
        self._call(self._observer.see_plan, decisions)

    def see_request(self, request: HttpRequest) -> None:  # noqa: D102
        self._call(self._observer.see_request, request)

    def see_events(self, events: Sequence[Event]) -> None:  # noqa: D102
        self._call(self._observer.see_events, events)

    def _call(self, see: Callable[..., None], *what: object) -> None:
        if get_ident() == self._thread:
            see(*what)
            return
        done: Future[None] = Future()

        def run() -> None:
            try:
                see(*what)
            except Exception as problem:  # noqa: BLE001 - the caller handles it
                done.set_exception(problem)
            else:
                done.set_result(None)

        self._loop.call_soon_threadsafe(run)
        done.result(_SECONDS)
