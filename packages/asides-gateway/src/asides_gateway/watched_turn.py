"""A turn of the page as watchers see it: in the inspector, the log and the figures, beside relayed requests.

`WatchedTurn` reports a turn to the watchers, and sends it through its own client over the gateway's transport.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec

import msgspec

from asides.aio import AsyncClient, AsyncStream
from asides.dialects.dialect import HttpRequest, ServedRequest
from asides.flows.call import Call
from asides.history.plan import Decision, plan
from asides.options import ModelLike, PromptLike, Timeout
from asides.providers.credentials import is_secret_header
from asides.relay.observer import RelayObserver
from asides.relay.relay_config import make_request_id
from asides.relay.relay_request import RelayOutcome
from asides.transports.protocols import AsyncResponse, AsyncTransport
from asides.values.errors import AsidesError
from asides.values.events import Event
from asides.values.reply import Reply
from asides_gateway import web
from asides_gateway.relay_handler import collect_headers, read_client
from asides_gateway.report_fault import report_fault
from asides_gateway.request_record import RequestRecord
from asides_gateway.service import Service
from asides_gateway.watcher import RequestWatch

DIALECT = "page"
_WHY = "a turn of the page"

_Arguments = ParamSpec("_Arguments")


class WatchedTurn:
    """One turn, as reported to the gateway's watchers. Use it only in the event loop."""

    def __init__(self, request: web.Request, service: Service, tenant: str, key_id: str = "") -> None:
        self._service = service
        record = RequestRecord(
            make_request_id(),
            request.method,
            request.raw_path,
            DIALECT,
            read_client(collect_headers(request)),
            tenant,
            time.monotonic(),
            time.time(),
            request.remote,
            key_id,
        )
        self._watch = RequestWatch(service.watchers, record)
        self._observer: RelayObserver | None = None
        self._has_begun = False
        self._first_byte: float | None = None
        self._sent = 0
        self._attempts = 0
        self._seen: HttpRequest | None = None
        self._target: Call | None = None
        self.client = _TurnClient(service, self)
        """What asks."""

    @property
    def id(self) -> str:
        """The id under which the inspector shows the turn."""
        return self._watch.record.id

    def begin(self) -> None:
        """The model is about to be asked."""
        self._has_begun = True
        self._observer = self._watch.begin()
        call = self.client.call
        if call is not None and self._observer is not None:
            self._show(self._observer.see_asked, ServedRequest(call.prompt, self.client.asked, True))
            self._see_target(call)

    def see_request(self, request: HttpRequest) -> None:
        """A request leaves for a provider."""
        self._attempts += 1
        if self._observer is None:
            return
        call = self.client.call
        for each in () if call is None else (call, *call.fallbacks):
            if request.url.startswith(each.target.base_url):
                if each is not self._target:
                    self._see_target(each)
                break
        if self._seen is None or self._seen.body is not request.body:
            headers = {name: value for name, value in request.headers.items() if not is_secret_header(name)}
            self._seen = msgspec.structs.replace(request, headers=headers)
        self._show(self._observer.see_request, self._seen)

    def see_events(self, events: Sequence[Event]) -> None:
        """Events of the reply."""
        if self._observer is not None:
            self._show(self._observer.see_events, events)

    def see_bytes(self, count: int) -> None:
        """Bytes left for the page."""
        if not self._sent:
            self._first_byte = self._watch.elapsed
        self._sent += count

    def end(self, how: Literal["done", "failed", "left"], reply: Reply | None, error: AsidesError | None) -> None:
        """The turn has ended. A second call does nothing."""
        if not self._has_begun:
            return
        self._has_begun = False
        target = "" if self._target is None else self._target.model
        notices = () if reply is None else reply.warnings
        outcome = RelayOutcome(
            200,
            "own",
            _WHY,
            target,
            reply,
            notices,
            error,
            self._attempts,
            asked=self.client.asked,
        )
        self._watch.end(how, status=200, sent_bytes=self._sent, first_byte=self._first_byte, outcome=outcome)

    def _see_target(self, call: Call) -> None:
        self._target = call
        if self._observer is not None:
            self._show(self._observer.see_target, call, "own", _WHY)
        if self._observer is not None:
            self._show(self._observer.see_plan, self.client.find_decisions(call))

    def _show(self, method: Callable[_Arguments, None], *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> None:
        try:
            method(*args, **kwargs)
        except Exception as problem:  # noqa: BLE001 - an observer that fails must not fail the turn
            report_fault(problem)
            self._observer = None


class ServiceClient(AsyncClient):
    """A client with the settings of a service, as they are now, and its transport."""

    def __init__(self, service: Service, transport: AsyncTransport | None = None) -> None:
        super().__init__(transport=service.transport if transport is None else transport)
        self._call_builder = service.builder


class _TurnClient(ServiceClient):
    """Sends one turn over the gateway's transport, and records its requests."""

    def __init__(self, service: Service, turn: WatchedTurn) -> None:
        super().__init__(service, _WatchedTransport(service.transport, turn))
        self.asked = ""
        """The model as the page named it."""
        self.call: Call | None = None
        self._decisions: dict[int, tuple[Decision, ...]] = {}

    def stream(
        self, model: ModelLike | None = None, prompt: PromptLike | None = None, **options: Any
    ) -> AsyncStream[Any]:
        """The events of a reply. May take a moment for a long conversation, and so runs in a thread."""
        self.call = call = self._call_builder.build(model, prompt, options, stream=True)  # type: ignore[arg-type]
        self.find_decisions(call)
        return AsyncStream(call, self._transport)

    def find_decisions(self, call: Call) -> tuple[Decision, ...]:
        """What the plan decides about earlier turns. A request that cannot be planned says so itself."""
        if id(call) not in self._decisions:
            try:
                planned = plan(call.prompt, call.target, on_conflict=call.policy.on_conflict).decisions
            except AsidesError:
                planned = ()
            self._decisions[id(call)] = planned
        return self._decisions[id(call)]


class _WatchedTransport:
    """The transport of the gateway, for one turn."""

    def __init__(self, transport: AsyncTransport, turn: WatchedTurn) -> None:
        self._transport = transport
        self._turn = turn

    def open(self, request: HttpRequest, timeout: Timeout) -> AsyncResponse:
        """Send a request, and tell of it."""
        self._turn.see_request(request)
        return self._transport.open(request, timeout)

    async def close(self) -> None:
        """Nothing: the transport is the gateway's."""
