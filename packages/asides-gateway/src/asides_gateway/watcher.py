"""Who is told of the requests of a gateway: `RequestWatcher`, for logs, metrics and the inspector."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from asides.relay.observer import RelayObserver
from asides.relay.relay_request import RelayMode, RelayOutcome, RelayRequest
from asides.telemetry.instrument import get_sources
from asides_gateway.loop_observer import LoopObserver

if TYPE_CHECKING:
    from asides.dialects.dialect import HttpRequest, ServedRequest
    from asides.flows.call import Call
    from asides.history.plan import Decision
    from asides.relay.state.turn_state import RestoredTurn
    from asides.values.events import Event


LARGE_BODY = 64 * 1024
"""From this size on a request is planned in a thread: a small one takes less than its way there."""


class RequestInfo(msgspec.Struct, frozen=True):
    """What is known of a request before it is answered. Without its content, but for `request`."""

    id: str
    """The id that the client gets too, in the header of its dialect, unless the provider names one."""
    method: str
    path: str
    """As it was sent, without its query."""
    dialect: str
    """The caller's dialect; "page" for a turn of the page."""
    client: str
    """The first word of its User-Agent, such as "claude-cli/2.1.9"; "" without one."""
    tenant: str
    started: float
    """By the monotonic clock."""
    at: float
    """Seconds since 1970."""
    request: RelayRequest | None = None
    """The request itself, with its headers and its body; None if it was refused before its body was read."""
    address: str = ""
    """The IP address that it came from."""
    key_id: str = ""
    """The id of its key in the database; "" for a key of the settings, or none."""

    def __repr__(self) -> str:
        return f"RequestInfo({self.id}, {self.method}, {self.dialect})"


class RequestEnd(msgspec.Struct, frozen=True):
    """How a request ended."""

    how: Literal["done", "failed", "left", "refused"]
    """done: answered as the provider or the relay answered. failed: with an error, as a response or inside a stream.
    left: its client was gone first. refused: it never reached the relay."""
    status: int
    """The status that the client got; 0 if it was gone before."""
    sent_bytes: int
    """The bytes of the body that were written."""
    seconds: float
    first_byte: float | None = None
    """The seconds to the first byte of the body, without pings; None if there was none."""
    outcome: RelayOutcome | None = None
    """None if the relay did not come to its end."""


class RequestWatcher:
    """Is told of every relayed request, and of every turn of the page. Each method does nothing here; it must be fast
    and must raise nothing."""

    def begin(self, info: RequestInfo) -> RelayObserver | None:
        """A request goes to the relay, or a turn to its model. Returns who sees what happens to it, if anyone does."""

    def end(self, info: RequestInfo, end: RequestEnd) -> None:
        """A request has ended. One that was refused has no `begin` before it."""


class ObserverGroup(RelayObserver):
    """Several observers of one request."""

    def __init__(self, observers: Sequence[RelayObserver]) -> None:
        self._observers = observers

    def see_asked(self, asked: ServedRequest) -> None:  # noqa: D102
        for each in self._observers:
            each.see_asked(asked)

    def see_target(self, call: Call, mode: RelayMode, reason: str) -> None:  # noqa: D102 - as in RelayObserver
        for each in self._observers:
            each.see_target(call, mode, reason)

    def see_restored(self, turns: Sequence[RestoredTurn]) -> None:  # noqa: D102
        for each in self._observers:
            each.see_restored(turns)

    def see_plan(self, decisions: Sequence[Decision]) -> None:  # noqa: D102
        for each in self._observers:
            each.see_plan(decisions)

    def see_request(self, request: HttpRequest) -> None:  # noqa: D102
        for each in self._observers:
            each.see_request(request)

    def see_events(self, events: Sequence[Event]) -> None:  # noqa: D102
        for each in self._observers:
            each.see_events(events)


def list_span_watchers() -> list[RequestWatcher]:
    """The watcher that makes spans of requests, if telemetry is on in this process."""
    if (sources := get_sources()) is None:
        return []
    from asides_gateway.request_spans import RequestSpans  # It loads OpenTelemetry.

    return [RequestSpans(*sources)]


def begin_watching(watchers: Iterable[RequestWatcher], info: RequestInfo) -> RelayObserver | None:
    """Tell the watchers of a request. Returns one observer for all of them; None if none wants to see more."""
    observers = [observer for watcher in watchers if (observer := watcher.begin(info)) is not None]
    if not observers:
        return None
    observer = ObserverGroup(observers) if len(observers) > 1 else observers[0]
    is_large = info.request is not None and len(info.request.body) >= LARGE_BODY
    return LoopObserver(observer) if is_large else observer
