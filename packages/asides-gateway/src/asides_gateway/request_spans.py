"""The server spans and metrics of a gateway's requests: `RequestSpans` watches requests, as logs and figures do.

The parent of a span is the one in the client's `traceparent`. While a request is answered, its span is the current one,
so that the spans of its requests to providers are inside it. A turn of the page links to the turn before it.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import NamedTuple

from opentelemetry import propagate
from opentelemetry.context import Context
from opentelemetry.metrics import Meter
from opentelemetry.trace import Link, Span, SpanContext, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from asides.providers.provider import Provider
from asides.providers.trace_names import name_for_traces
from asides.relay.relay_request import RelayRequest
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
    describe_reply,
    describe_usage,
    shorten,
)
from asides_gateway.request_record import RequestRecord
from asides_gateway.watcher import RequestWatcher

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
_SERVER_ERROR = 500


class RequestSpans(RequestWatcher):
    """Makes a span of each request. It belongs to the event loop."""

    def __init__(self, tracer: Tracer, meter: Meter) -> None:
        self._tracer = tracer
        self._open: dict[str, _OpenSpan] = {}
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

    def begin(self, record: RequestRecord, request: RelayRequest | None) -> None:
        """Begin the span of a request. It is the current one until the request ends."""
        labels = self._label(record)
        parent = Context() if request is None else propagate.extract(request.headers, Context())
        span = self._start(record, labels, parent)
        current = CurrentSpan(set_span_in_context(span, parent))
        current.enter()
        self._active.add(1, {METHOD: labels[METHOD], "url.scheme": "http"})
        self._open[record.id] = _OpenSpan(span, current, labels)

    def end(self, record: RequestRecord) -> None:
        """End the span of a request, and record its metrics."""
        opened = self._open.pop(record.id, None)
        if opened is None:
            # It was refused before it began, and its body was not read.
            labels = self._label(record)
            span = self._start(record, labels, Context())
        else:
            span, current, labels = opened
            current.leave()
            self._active.add(-1, {METHOD: labels[METHOD], "url.scheme": "http"})
        try:
            ended = describe_end(record)
            labels |= {name: ended[name] for name in (STATUS, ERROR) if name in ended}
            span.set_attributes(ended)
            if ERROR in ended and (record.status >= _SERVER_ERROR or record.ended == "failed"):
                span.set_status(Status(StatusCode.ERROR, str(ended[ERROR])))
        finally:
            span.end()
        self._measure(record, labels)

    def _label(self, record: RequestRecord) -> Attributes:
        """The attributes of a request that metrics have too. Their number of values is bounded."""
        method = record.method if record.method in _METHODS else OTHER
        return {METHOD: method, ROUTE: self._routes.bound(find_route(record.path)), "url.scheme": "http"}

    def _start(self, record: RequestRecord, labels: Attributes, parent: Context) -> Span:
        attributes: Attributes = {
            **labels,
            "url.path": shorten(record.path),
            "user_agent.original": shorten(record.client),
            "asides.request.id": record.id,
            "asides.request.dialect": record.dialect,
            "asides.tenant": shorten(record.tenant),
        }
        links: list[Link] = []
        if (found := _CONVERSATION.search(record.path)) is not None:
            attributes["gen_ai.conversation.id"] = shorten(found[1])
            if (before := self._turns.get(found[1])) is not None:
                links.append(Link(before, {"asides.link": "the turn before"}))
        span = self._tracer.start_span(
            f"{labels[METHOD]} {labels[ROUTE]}",
            context=parent,
            kind=SpanKind.SERVER,
            attributes={name: value for name, value in attributes.items() if value != ""},
            links=links,
            start_time=int(record.at * 1e9),
        )
        if found is not None:
            self._turns[found[1]] = span.get_span_context()
            self._turns.move_to_end(found[1])
            while len(self._turns) > _MOST_TURNS:
                self._turns.popitem(last=False)
        return span

    def _measure(self, record: RequestRecord, labels: Attributes) -> None:
        self._seconds.record(record.seconds, labels)
        if record.provider is None:
            return
        own = _describe_target(record, record.provider)
        own[REQUEST_MODEL] = self._models.bound(own[REQUEST_MODEL])
        if record.first_event is not None:
            self._first_seconds.record(record.first_event, own)
        self._reply_seconds.record(record.seconds, own | ({ERROR: labels[ERROR]} if ERROR in labels else {}))


class _OpenSpan(NamedTuple):
    """The span of a request under way."""

    span: Span
    current: CurrentSpan
    labels: Attributes


def describe_end(record: RequestRecord) -> Attributes:
    """The attributes of a request that has ended."""
    ended: Attributes = {"asides.end": record.ended, "http.response.body.size": record.sent_bytes}
    if record.status:
        ended[STATUS] = record.status
    if record.ended == "left":
        ended[CLOSED] = True
    if record.error is not None:
        ended[ERROR] = record.error.name
    elif record.status >= _SERVER_ERROR:
        ended[ERROR] = str(record.status)
    if record.mode is not None:
        ended["asides.mode"] = record.mode
    counts = {"asides.attempts": record.attempts, "asides.state.restored": record.restored}
    counts["asides.state.missed"] = record.missed
    ended |= {name: count for name, count in counts.items() if count}
    if codes := sorted({notice.code for notice in record.notices}):
        ended["asides.notices"] = codes
    ended |= describe_usage(record.usage) if record.reply is None else describe_reply(record.reply)
    if record.stream is not None:
        ended["gen_ai.request.stream"] = record.stream
        ended["asides.request.model"] = shorten(record.asked)
    if record.provider is not None:
        ended |= _describe_target(record, record.provider)
    firsts = ((FIRST_CHUNK, record.first_event), (FIRST_THOUGHT, record.first_thought))
    for name, seconds in (*firsts, (FIRST_ANSWER, record.first_answer)):
        if seconds is not None:
            ended[name] = seconds
    return ended


def _describe_target(record: RequestRecord, provider: Provider) -> Attributes:
    return {
        OPERATION: "chat",
        PROVIDER: name_for_traces(provider),
        REQUEST_MODEL: shorten(record.target_model),
    }


def find_route(path: str) -> str:
    """The path with placeholders for the names that clients choose, so that there are few routes."""
    for pattern, name in _NAMES:
        path = pattern.sub(name, path)
    return shorten(path)
