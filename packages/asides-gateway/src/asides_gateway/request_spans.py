"""The server spans and metrics of a gateway's requests: `RequestSpans` watches requests, as logs and figures do.

The parent of a span is the one in the client's `traceparent`. While a request is answered, its span is the current one,
so that the spans of its requests to providers are inside it. A turn of the page links to the turn before it.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from opentelemetry import propagate
from opentelemetry.context import Context
from opentelemetry.metrics import Meter
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from asides.providers.trace_names import name_for_traces
from asides.relay.observer import RelayObserver
from asides.telemetry.client_metrics import FIRST_SECONDS, OTHER, SECONDS, BoundedNames
from asides.telemetry.current_span import CurrentSpan
from asides.telemetry.span_attributes import (
    CLOSED,
    ERROR,
    FIRST_ANSWER,
    FIRST_CHUNK,
    FIRST_THOUGHT,
    OPERATION,
    PROVIDER,
    REQUEST_MODEL,
    STATUS,
    Attributes,
    ReplyClock,
    describe_reply,
    name_error,
    shorten,
)
from asides.values.events import Event, PartArrived, RefusalDelta, TextDelta, ThinkingDelta, ToolCallDelta
from asides_gateway.watcher import RequestEnd, RequestInfo, RequestWatcher

if TYPE_CHECKING:
    from asides.dialects.dialect import ServedRequest
    from asides.flows.call import Call
    from asides.relay.relay_request import RelayMode

METHOD, ROUTE = "http.request.method", "http.route"
_METHODS = frozenset("GET HEAD POST PUT PATCH DELETE OPTIONS".split())
# The parts of paths that clients choose.
_NAMES = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"(?<=/models/).+(?=:[A-Za-z]+$)", "{model}"),
        (r"(?<=/model/)[^/]+", "{model}"),
        (r"(?<=/models/)[^{].*$", "{model}"),
        (r"(?<=/responses/)(?!input_tokens$|compact$)[^/]+", "{response}"),
        (r"(?<=/conversations/)[^/]+", "{conversation}"),
    )
)
_MOST_ROUTES = 100
_MOST_TURNS = 1000
_CONVERSATION = re.compile(r"/conversations/([^/]+)")
_ANSWERS = (TextDelta, RefusalDelta, ToolCallDelta, PartArrived)
_SERVER_ERROR = 500


class RequestSpans(RequestWatcher):
    """Makes a span of each request. It belongs to the event loop."""

    def __init__(self, tracer: Tracer, meter: Meter) -> None:
        self._tracer = tracer
        self._open: dict[str, _Request] = {}
        self._turns: OrderedDict[str, SpanContext] = OrderedDict()
        """The spans of the last turns of conversations, by their paths."""
        self._routes = BoundedNames(_MOST_ROUTES)
        self._models = BoundedNames()
        self._seconds = meter.create_histogram(
            "http.server.request.duration",
            "s",
            "Duration of requests to the gateway.",
            explicit_bucket_boundaries_advisory=FIRST_SECONDS,
        )
        self._active = meter.create_up_down_counter(
            "http.server.active_requests", "{request}", "Requests that have not ended."
        )
        self._reply_seconds = meter.create_histogram(
            "gen_ai.server.request.duration",
            "s",
            "Duration of requests for a reply.",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
        self._first_seconds = meter.create_histogram(
            "gen_ai.server.time_to_first_token",
            "s",
            "Time until the first events of a reply.",
            explicit_bucket_boundaries_advisory=FIRST_SECONDS,
        )

    def begin(self, info: RequestInfo) -> RelayObserver:
        """Begin the span of a request. It is the current one until the request ends."""
        labels = self._label(info)
        parent = Context() if info.request is None else propagate.extract(info.request.headers, Context())
        span = self._start(info, labels, parent)
        current = CurrentSpan(set_span_in_context(span, parent))
        current.enter()
        self._active.add(1, {METHOD: labels[METHOD], "url.scheme": "http"})
        self._open[info.id] = request = _Request(span, current, labels)
        return request

    def end(self, info: RequestInfo, end: RequestEnd) -> None:
        """End the span of a request, and record its metrics."""
        request = self._open.pop(info.id, None)
        if request is None:
            # It was refused before it began, and its body was not read.
            labels = self._label(info)
            span = self._start(info, labels, Context())
        else:
            labels, span = request.labels, request.span
            request.current.leave()
            self._active.add(-1, {METHOD: labels[METHOD], "url.scheme": "http"})
        try:
            self._describe(span, request, labels, end)
        finally:
            span.end()

    def _label(self, info: RequestInfo) -> Attributes:
        """The attributes of a request that metrics have too. Their number of values is bounded."""
        method = info.method if info.method in _METHODS else OTHER
        return {METHOD: method, ROUTE: self._routes.bound(find_route(info.path)), "url.scheme": "http"}

    def _start(self, info: RequestInfo, labels: Attributes, parent: Context) -> Span:
        attributes: Attributes = {
            **labels,
            "url.path": shorten(info.path),
            "user_agent.original": shorten(info.client),
            "asides.request.id": info.id,
            "asides.request.dialect": info.dialect,
            "asides.tenant": shorten(info.tenant),
        }
        links: list[Link] = []
        if (found := _CONVERSATION.search(info.path)) is not None:
            attributes["gen_ai.conversation.id"] = shorten(found[1])
            if (before := self._turns.get(found[1])) is not None:
                links.append(Link(before, {"asides.link": "the turn before"}))
        span = self._tracer.start_span(
            f"{labels[METHOD]} {labels[ROUTE]}",
            context=parent,
            kind=SpanKind.SERVER,
            attributes={name: value for name, value in attributes.items() if value != ""},
            links=links,
            start_time=int(info.at * 1e9),
        )
        if found is not None:
            self._turns[found[1]] = span.get_span_context()
            self._turns.move_to_end(found[1])
            while len(self._turns) > _MOST_TURNS:
                self._turns.popitem(last=False)
        return span

    def _describe(self, span: Span, request: _Request | None, labels: Attributes, end: RequestEnd) -> None:
        outcome = end.outcome
        ended: Attributes = {"asides.end": end.how, "http.response.body.size": end.sent_bytes}
        if end.status:
            ended[STATUS] = labels[STATUS] = end.status
        if end.how == "left":
            ended[CLOSED] = True
        error = None if outcome is None else outcome.error
        if error is not None:
            ended[ERROR] = labels[ERROR] = name_error(error)
        elif end.status >= _SERVER_ERROR:
            ended[ERROR] = labels[ERROR] = str(end.status)
        if outcome is not None:
            counts = {"asides.attempts": outcome.attempts, "asides.state.restored": outcome.restored}
            counts["asides.state.missed"] = outcome.missed
            ended |= {"asides.mode": outcome.mode, **{name: count for name, count in counts.items() if count}}
            if codes := sorted({notice.code for notice in outcome.notices}):
                ended["asides.notices"] = codes
            if outcome.reply is not None:
                ended |= describe_reply(outcome.reply)
        if request is not None:
            ended |= request.attributes
        span.set_attributes(ended)
        if ERROR in ended and (end.status >= _SERVER_ERROR or end.how == "failed"):
            span.set_status(Status(StatusCode.ERROR, str(ended[ERROR])))
        self._seconds.record(end.seconds, labels)
        if request is not None and PROVIDER in request.attributes:
            self._record_reply(request, labels, end)

    def _record_reply(self, request: _Request, labels: Attributes, end: RequestEnd) -> None:
        known = request.attributes
        own: Attributes = {name: known[name] for name in (OPERATION, PROVIDER)}
        own[REQUEST_MODEL] = self._models.bound(known[REQUEST_MODEL])
        if (first := known.get(FIRST_CHUNK)) is not None:
            self._first_seconds.record(first, own)
        self._reply_seconds.record(end.seconds, own | ({ERROR: labels[ERROR]} if ERROR in labels else {}))


class _Request(RelayObserver):
    """A request under way. Of its events, only the times are kept."""

    def __init__(self, span: Span, current: CurrentSpan, labels: Attributes) -> None:
        self.span = span
        self.current = current
        self.labels = labels
        self.attributes: Attributes = {}
        self._clock = ReplyClock()

    def see_asked(self, asked: ServedRequest) -> None:
        self.attributes["gen_ai.request.stream"] = asked.stream
        self.attributes["asides.request.model"] = shorten(asked.model)

    def see_target(self, call: Call, mode: RelayMode, reason: str) -> None:
        del mode, reason
        self.attributes |= {
            OPERATION: "chat",
            PROVIDER: name_for_traces(call.target.provider),
            REQUEST_MODEL: shorten(call.target.model),
        }

    def see_events(self, events: Sequence[Event]) -> None:
        known = self.attributes
        if FIRST_ANSWER in known:
            return
        if FIRST_CHUNK not in known:
            known[FIRST_CHUNK] = self._clock.elapsed
        for event in events:
            if isinstance(event, ThinkingDelta):
                if FIRST_THOUGHT not in known:
                    known[FIRST_THOUGHT] = self._clock.elapsed
            elif isinstance(event, _ANSWERS):
                known[FIRST_ANSWER] = self._clock.elapsed
                return


def find_route(path: str) -> str:
    """The path with placeholders for the names that clients choose, so that there are few routes."""
    for pattern, name in _NAMES:
        path = pattern.sub(name, path)
    return shorten(path)
