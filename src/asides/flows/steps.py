"""The steps that a flow may ask for. A driver (transports/sync, transports/async_) carries out each one.

A flow is a generator of steps. The driver sends the result of each step back:

    UseCall(call)   → None        what follows has the target, the policy and the key of this call
    Open(request)   → Head        closes the previous response; transport errors are thrown into the flow
    Read()          → bytes       b"" at the end of the body; transport errors are thrown into the flow
    Sleep(seconds)  → None
    Emit(events)    → None        a batch for the caller
    Now()           → float       seconds of a clock that only goes forward
    Allow(seconds)  → None        limits everything that follows
    FetchKey(key)   → a key or the error of the fetching, as a value: KeySource.take reads it
    RunTools(jobs)  → outcomes    of all jobs, in their order; the driver runs them concurrently

A flow may yield other steps, such as those of the relay (relay/steps). The caller of the driver passes a handler for
each of them. A step without a handler is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

import msgspec

from asides.dialects.dialect import HttpRequest
from asides.providers.credentials import KeySource

if TYPE_CHECKING:
    # A plain call loads nothing that only agents need.
    from asides.agents.tools.executor import Job, JobOutcome
    from asides.flows.call import Call
    from asides.values.result import RunEvent

Whole = TypeVar("Whole")


class Head(msgspec.Struct, frozen=True):
    """Status and headers of a response. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    received: float = 0.0
    """Unix time of arrival, since a flow has no clock."""


class Step(msgspec.Struct, frozen=True):
    """A request of a flow to its driver."""


class Open(Step, frozen=True):
    """Send a request and wait for the head of its response."""

    request: HttpRequest


class Read(Step, frozen=True):
    """Read the next bytes of the open response."""

    patience: float | None = None
    """Treat this many seconds without data as the end of the body. None: wait as long as the timeouts allow."""


class Sleep(Step, frozen=True):
    """Wait."""

    seconds: float


class Emit(Step, frozen=True):
    """Hand a batch of events to the caller. One batch for each read, since the hot path is per chunk."""

    events: list[Any]
    """Events of a reply. In an agent's run, also events of the run."""


class Now(Step, frozen=True):
    """Read a clock that only goes forward, in seconds."""


class Allow(Step, frozen=True):
    """Limit everything that follows to this many seconds from now; None: no limit."""

    seconds: float | None = None


class FetchKey(Step, frozen=True):
    """Fetch the key of the next attempt: call the caller's function, or ask a cloud's library."""

    key: KeySource


class RunTools(Step, frozen=True):
    """Run these jobs, at most `most` at a time. One step, since concurrency belongs to the driver."""

    jobs: tuple[Job, ...]
    most: int
    report: Callable[[int, JobOutcome], list[RunEvent]]
    """Returns the events for the caller when the job of this number has ended. Called as the jobs end."""


class UseCall(Step, frozen=True):
    """Send what follows to the target of this call, with its key. Another call's key never goes there."""

    call: Call


Flow: TypeAlias = Generator[Step, Any, Whole]


class Done(Generic[Whole]):
    """The flow returned."""

    __slots__ = ("result",)

    def __init__(self, result: Whole) -> None:
        self.result = result


def advance(flow: Flow[Whole], value: Any = None, error: BaseException | None = None) -> Step | Done[Whole]:
    """Send the flow a result or an error. Returns its next step; for code that forwards the steps of another flow."""
    try:
        return flow.send(value) if error is None else flow.throw(error)
    except StopIteration as stop:
        return Done(stop.value)


# --- tracing ----------------------------------------------------------------------------------------------------------


class FlowTracer(Protocol):
    """Sees flows while they run, for telemetry. What it returns takes the place of the flow, and does the same."""

    def trace_exchange(self, call: Call, exchange: Any, flow: Flow[Whole]) -> Flow[Whole]:
        """One request to one model, with its retries and repairs. `exchange.partial` is the reply so far."""
        ...

    def trace_flow(self, state: Any, flow: Flow[Whole]) -> Flow[Whole]:
        """A whole flow: a call with fallbacks, a run of an agent, a relayed request. `state` is that of its driver."""
        ...


class Tracing:
    """The tracer of flows."""

    tracer: ClassVar[FlowTracer | None] = None
    """None: tracing is off and costs nothing. `asides.instrument` sets it."""


_Steps = TypeVar("_Steps", bound=Callable[..., Flow[Any]])


def traced(steps: _Steps) -> _Steps:
    """Pass the flow of an exchange to the tracer. Decorates a method that returns it; the call is in `_call`."""

    @wraps(steps)
    def begin(exchange: Any, began: float | None = None) -> Flow[Any]:
        flow: Flow[Any] = steps(exchange, began)
        tracer = Tracing.tracer
        return flow if tracer is None else tracer.trace_exchange(exchange._call, exchange, flow)

    return begin  # type: ignore[return-value]
