"""The spans of flows: `chat` for each request to a model, `invoke_agent` and its steps for a run, `ask` for a call that
has fallbacks. `FlowSpans` is the tracer of flows.

A span ends with its flow, however that ends. It is not the current span while the caller reads events.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, set_span_in_context

from asides.flows.agent import Run
from asides.flows.call import Call
from asides.flows.exchange import Exchange
from asides.flows.steps import Done, Emit, Flow, Open, UseCall, Whole, advance
from asides.telemetry.client_metrics import ClientMetrics
from asides.telemetry.current_span import CurrentSpan, Propagation
from asides.telemetry.run_spans import StepSpans
from asides.telemetry.span_attributes import (
    CLOSED,
    ERROR,
    REQUEST_MODEL,
    Attributes,
    ReplyClock,
    describe_error,
    describe_reply,
    describe_request,
    describe_target,
    describe_usage,
    shorten,
)
from asides.telemetry.span_content import ContentWriter
from asides.transports.flow_state import ExchangeState
from asides.transports.run_state import RunState
from asides.values.errors import AsidesError
from asides.values.reply import Reply

_log = logging.getLogger("asides")


class _Chat(NamedTuple):
    """A request under way."""

    span: Span
    attributes: Attributes
    clock: ReplyClock
    writer: ContentWriter | None


class FlowSpans:
    """Makes a span of each flow."""

    def __init__(self, tracer: Tracer, metrics: ClientMetrics, propagation: Propagation, *, content: bool) -> None:
        self._tracer = tracer
        self._metrics = metrics
        self._propagation = propagation
        self._content = content

    def trace_flow(self, state: Any, flow: Flow[Whole]) -> Flow[Whole]:
        """The flow in a span, if it is a run, or may ask several models. Other flows unchanged."""
        if isinstance(state, RunState):
            return self._trace_run(state.run, flow)
        if isinstance(state, ExchangeState) and not isinstance(state.exchange, Exchange):
            return self._trace_ask(cast("Call", state.call), flow)
        return flow

    # --- one request --------------------------------------------------------------------------------------------------

    def trace_exchange(self, call: Call, exchange: Any, flow: Flow[Whole]) -> Flow[Whole]:
        """The flow in a span `chat MODEL`."""
        chat = self._begin_chat(call)
        if chat is None:
            return (yield from flow)
        error: BaseException | None = None
        result: Whole | None = None
        is_closed = False

        def describe() -> None:
            reply = result if isinstance(result, Reply) else _find_partial(error, exchange)
            ended: Attributes = {} if error is None else describe_error(error)
            if is_closed:
                ended[CLOSED] = True
            if reply is not None:
                ended |= describe_reply(reply) | chat.clock.describe(reply)
                if chat.writer is not None:
                    ended |= chat.writer.write_reply(reply)
            chat.span.set_attributes(ended)
            usage = None if reply is None else reply.usage
            self._metrics.record({**chat.attributes, **ended}, chat.clock.elapsed, usage)

        try:
            result = yield from self._follow(call, flow, chat.span, chat.clock)
            return result
        except GeneratorExit:
            is_closed = True
            raise
        except BaseException as problem:
            error = problem
            raise
        finally:
            flow.close()
            _end(chat.span, error, describe)
            error = None  # Its traceback holds this frame, and with it the key.

    def _begin_chat(self, call: Call) -> _Chat | None:
        """Start the span of a request; None if that fails, since telemetry must not fail a call."""
        try:
            attributes = describe_target(call.target, "chat")
            writer = ContentWriter(call) if self._content else None
            begun = {**attributes, **describe_request(call), **({} if writer is None else writer.write_prompt())}
            name = f"chat {attributes[REQUEST_MODEL]}"
            clock = ReplyClock()
            span = self._tracer.start_span(name, kind=SpanKind.CLIENT, attributes=begun)
        except Exception as problem:  # noqa: BLE001
            _log.debug("a span could not be made: %s", type(problem).__name__)
            return None
        return _Chat(span, attributes, clock, writer)

    def _follow(self, call: Call, flow: Flow[Whole], span: Span, clock: ReplyClock) -> Flow[Whole]:
        """Forward the steps. No request is sent after the first events, so the rest of the flow is delegated."""
        current = CurrentSpan(set_span_in_context(span))
        propagates = self._propagation.reaches(call.target)
        value: Any = None
        error: Exception | None = None
        sent = 0
        last: Any = None
        try:
            while not isinstance(step := advance(flow, value, error), Done):
                value = error = None
                if type(step) is Emit:
                    clock.stamp()
                    yield step
                    return (yield from flow)
                if type(step) is Open:
                    if sent:
                        span.add_event("asides.retry", _describe_attempt(sent, last))
                    sent += 1
                    request = self._propagation.inject(step.request, current.context) if propagates else step.request
                    # Instrumentation of HTTP libraries finds this span as the parent.
                    current.enter()
                    try:
                        value = last = yield Open(request)
                    except Exception as problem:  # noqa: BLE001 - it is the flow's
                        error = last = problem
                    finally:
                        current.leave()
                    continue
                try:
                    value = yield step
                except Exception as problem:  # noqa: BLE001
                    error = problem
            return step.result
        finally:
            if sent > 1:
                span.set_attribute("http.request.resend_count", sent - 1)

    # --- several requests ---------------------------------------------------------------------------------------------

    def _trace_ask(self, call: Call, flow: Flow[Whole]) -> Flow[Whole]:
        """The flow in a span `ask MODEL`, with the model that is asked first."""
        attributes: Attributes = {"asides.request.models": [shorten(each.model) for each in (call, *call.fallbacks)]}
        span = self._tracer.start_span(f"ask {shorten(call.target.model)}", attributes=attributes)
        asked = 0

        def note_fallback(step: Any) -> Any:
            nonlocal asked
            if type(step) is UseCall:
                if asked:
                    span.add_event("asides.fallback", {"asides.model": shorten(step.call.model)})
                asked += 1
            return step

        current = CurrentSpan(set_span_in_context(span))
        return (yield from _follow_all(flow, span, current, note_fallback, _describe_asked))

    def _trace_run(self, run: Run[Any], flow: Flow[Whole]) -> Flow[Whole]:
        """The flow in a span `invoke_agent`, with one for each step and each tool."""
        attributes = describe_target(run.call.target, "invoke_agent")
        clock = ReplyClock()
        span = self._tracer.start_span("invoke_agent", attributes=attributes)
        steps = StepSpans(self._tracer, set_span_in_context(span), self._metrics, content=self._content)

        def describe(_: Any, error: BaseException | None) -> Attributes:
            failed = {} if error is None else describe_error(error)
            steps.close(failed)
            self._metrics.record({**attributes, **failed}, clock.elapsed)
            so_far = run.so_far()
            counts = {"asides.run.outcome": so_far.outcome, "asides.run.steps": len(so_far.steps)}
            return describe_usage(so_far.usage) | counts

        return (yield from _follow_all(flow, span, steps.current, steps.trace_step, describe))


def _follow_all(
    flow: Flow[Whole],
    span: Span,
    current: CurrentSpan,
    on_step: Callable[[Any], Any],
    describe: Callable[[Any, BaseException | None], Attributes],
) -> Flow[Whole]:
    """Forward each step, with the span as the parent of what begins inside."""
    value: Any = None
    result: Whole | None = None
    error: BaseException | None = None
    thrown: Exception | None = None
    is_closed = False
    try:
        while True:
            current.enter()
            try:
                step = advance(flow, value, thrown)
            finally:
                current.leave()
            if isinstance(step, Done):
                result = step.result
                return step.result
            value = thrown = None
            try:
                value = yield on_step(step)
            except Exception as problem:  # noqa: BLE001 - it is the flow's
                thrown = problem
    except GeneratorExit:
        is_closed = True
        raise
    except BaseException as problem:
        error = problem
        raise
    finally:
        current.enter()
        try:
            flow.close()
        finally:
            current.leave()

        def finish() -> None:
            ended = describe(result, error) | ({} if error is None else describe_error(error))
            span.set_attributes({**ended, CLOSED: True} if is_closed else ended)

        _end(span, error, finish)
        error = None


def _describe_asked(result: Any, error: BaseException | None) -> Attributes:
    """The model that answered. The tokens are in the spans inside."""
    del error
    origin = result.origin if isinstance(result, Reply) else None
    return {} if origin is None else {"asides.model": shorten(f"{origin.provider}:{origin.model}")}


def _describe_attempt(sent: int, last: Any) -> Attributes:
    """Why a request is retried: the error, or the status of the previous response."""
    attributes: Attributes = {"asides.attempt": sent + 1}
    if isinstance(last, BaseException):
        return attributes | describe_error(last)
    return attributes | ({} if last is None else {ERROR: str(last.status)})


def _find_partial(error: BaseException | None, exchange: Any) -> Reply | None:
    """The part of the reply that arrived."""
    if isinstance(error, AsidesError) and error.partial is not None:
        return error.partial
    partial: Reply | None = exchange.partial
    return partial


def _end(span: Span, error: BaseException | None, describe: Callable[[], None]) -> None:
    """Describe a span and end it. An error in its description must not fail the call."""
    try:
        describe()
        if error is not None:
            span.set_status(Status(StatusCode.ERROR, type(error).__name__))
    except Exception as problem:  # noqa: BLE001
        _log.debug("a span could not be described: %s", type(problem).__name__)
    finally:
        span.end()
