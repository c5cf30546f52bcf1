"""The state of a running flow, shared by the sync and the async driver, and the credential of a request."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import msgspec

from asides.dialects.dialect import HttpRequest
from asides.flows.call import Call, CallLike
from asides.flows.exchange import Exchange
from asides.flows.retry import clean_error
from asides.flows.steps import Flow, Step, Tracing, Whole
from asides.options import Timeout
from asides.providers.credentials import AwsCredentials, KeySource, Secret
from asides.transports.transport_errors import get_host, total_timeout
from asides.values.errors import AsidesError, IdleTimeout, TransportError
from asides.values.reply import Reply

if TYPE_CHECKING:
    from concurrent.futures import Executor

    # Most calls name no type for their answer.
    from asides.agents.outputs.expected_output import ExpectedOutput, PartialOutput
    from asides.flows.fallback import ExchangeInOrder
    from asides.flows.recover import RecoveringExchange

Result = TypeVar("Result")
StepHandlers: TypeAlias = Mapping[type[Step], Callable[[Any], Result]]
"""Handlers of steps that the drivers do not know, by type of step. Each gets the step and returns its result."""


def find_handler(handlers: StepHandlers[Result], step: Step) -> Callable[[Any], Result]:
    """The handler for this step. Raises TypeError if it is missing."""
    handler = handlers.get(type(step))
    if handler is None:
        raise TypeError(f"no handler for the step {type(step).__name__}. Pass one to the driver with handlers=.")
    return handler


class FlowState(Generic[Whole]):
    """A running flow: its call, its result or failure, and its deadline."""

    __slots__ = ("_deadline", "_failure", "_flow", "_total", "call", "output", "planner", "whole")

    def __init__(
        self,
        call: CallLike,
        flow: Callable[[], Flow[Whole]],
        find_expected: Callable[[], ExpectedOutput | None] | None = None,
    ) -> None:
        self.call = call
        """The current call. A flow with fallbacks replaces it, and with it the target and the key of requests."""
        self.output: PartialOutput | None = None
        """The output in progress, if requested. It gets the same events as the caller."""
        if find_expected is not None and (expected := find_expected()) is not None:
            from asides.agents.outputs.expected_output import PartialOutput

            self.output = PartialOutput(expected, find_expected)
        self.planner: Executor | None = None
        """Runs the flow of an async driver until a response begins; None: the event loop runs it."""
        self.whole: Whole | None = None
        """The result, once the flow has returned."""
        self._failure: AsidesError | None = None
        self._flow = flow
        self._deadline: float | None = None
        self._total: float | None = None

    @property
    def failure(self) -> AsidesError | None:
        """The error that ended the flow, with keys redacted."""
        return self._failure

    @failure.setter
    def failure(self, error: AsidesError) -> None:
        clean_error(error, self.call.target, self.call.key)
        self._failure = error

    @property
    def host(self) -> str:
        """Host and port of the call, for error messages."""
        return get_host(self.call.target.base_url)

    def begin(self) -> Flow[Whole]:
        """Return the flow to drive, and start the clock of the whole call."""
        self.allow(self.call.policy.timeout.total)
        flow, tracer = self._flow(), Tracing.tracer
        return flow if tracer is None else tracer.trace_flow(self, flow)

    def allow(self, seconds: float | None) -> None:
        """Limit everything that follows to this many seconds from now; None: no limit."""
        self._total = seconds
        self._deadline = None if seconds is None else time.monotonic() + seconds

    def timeout(self) -> Timeout:
        """The timeouts of an attempt that begins now."""
        left = None if self._deadline is None else self._compute_time_left(self._deadline)
        timeout = self.call.policy.timeout
        return timeout if timeout.total is left else msgspec.structs.replace(timeout, total=left)

    def settle_error(self, problem: TransportError) -> TransportError:
        """The error for the flow. A transport only knows the remaining time of the whole call."""
        if isinstance(problem, IdleTimeout) and self._deadline is not None and self._deadline <= time.monotonic():
            return total_timeout(self.host, self._total)
        return problem

    def report_total_timeout(self) -> IdleTimeout:
        """The error of a call that has no time left."""
        return total_timeout(self.host, self._total)

    def check_wait(self, seconds: float) -> None:
        """Raise if the time for the whole call ends before a wait of these seconds."""
        if self._deadline is not None and self._compute_time_left(self._deadline) < seconds:
            raise total_timeout(self.host, self._total)

    def _compute_time_left(self, deadline: float) -> float:
        left = deadline - time.monotonic()
        if left <= 0:
            raise total_timeout(self.host, self._total)
        return left


class ExchangeState(FlowState[Reply]):
    """The state of one call for a reply."""

    __slots__ = ("exchange",)

    def __init__(self, call: Call) -> None:
        self.exchange: Exchange | ExchangeInOrder | RecoveringExchange = _begin(call)
        super().__init__(call, self.exchange.steps, None if call.expected is None else lambda: call.expected)

    @property
    def partial(self) -> Reply | None:
        """The reply so far; None when nothing has arrived."""
        return self.exchange.partial if self.whole is None else self.whole

    def show_output(self) -> Any:
        """The output so far; without `output=`, the text so far."""
        if self.output is None:
            return None if self.partial is None else self.partial.text
        return self.output.show(self.whole)

    def reply(self, *, closed: bool) -> Reply:
        """The complete reply. Raises the failure, or an error that says why there is no reply yet."""
        if self.whole is not None:
            return self.whole
        if self.failure is not None:
            raise self.failure
        error = TransportError(
            f"the stream from {self.host} was closed before the reply was whole. Read it to its end; .partial "
            "has what arrived."
            if closed
            else f"the stream from {self.host} is not at its end yet. Read on, or await drain()."
        )
        error.partial = self.partial
        raise error

    def __repr__(self) -> str:
        state = "whole" if self.whole is not None else "failed" if self.failure is not None else "running"
        return f"{self.call.target.provider.name}:{self.call.target.model}, {state}"


def _begin(call: Call) -> Exchange | ExchangeInOrder | RecoveringExchange:
    # Most calls have one model, and neither recover nor correct an answer.
    if call.policy.recover is not None or (call.policy.attempts is not None and call.expected is not None):
        from asides.flows.recover import begin_recovering

        return begin_recovering(call)
    if not call.is_one_of_several:
        return Exchange(call)
    from asides.flows.fallback import ExchangeInOrder

    return ExchangeInOrder(call)


def add_credential(request: HttpRequest, key: Secret | None) -> HttpRequest:
    """The request as it goes over the wire: with the key in its header, or signed with AWS credentials.

    A signature holds the time, so it is made for each attempt.
    """
    if isinstance(key, KeySource):
        key = key.current
    if key is None or request.credential_header is None:
        return request
    if isinstance(key, AwsCredentials):
        from asides.providers.aws_signing import sign

        credential = sign(request.method, request.url, request.headers, request.body, key, time.time())
    else:
        name, prefix = key.header or request.credential_header
        credential = {name: prefix + key.reveal()}
    headers = {**request.headers, **credential}
    return HttpRequest(request.method, request.url, headers, request.body, direct=request.direct)
