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
    ReadRecords     → records     that have one of the keys; None if there is no store, or it failed
    WriteRecord     → bool        whether the record is stored
    DeleteRecords   → int         how many were deleted; None as above
    ReserveUse      → an error if the caller may not use so much, as a value; None if it may, or nobody counts
    SettleUse       → None        what was reserved is replaced with what was used
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from decimal import Decimal
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


class Open(msgspec.Struct, frozen=True):
    """Send a request and wait for the head of its response."""

    request: HttpRequest


class Read(msgspec.Struct, frozen=True):
    """Read the next bytes of the open response."""

    patience: float | None = None
    """Treat this many seconds without data as the end of the body. None: wait as long as the timeouts allow."""


class Sleep(msgspec.Struct, frozen=True):
    """Wait."""

    seconds: float


class Emit(msgspec.Struct, frozen=True):
    """Hand a batch of events to the caller. One batch for each read, since the hot path is per chunk."""

    events: list[Any]
    """Events of a reply. In an agent's run, also events of the run."""


class Now(msgspec.Struct, frozen=True):
    """Read a clock that only goes forward, in seconds."""


class Allow(msgspec.Struct, frozen=True):
    """Limit everything that follows to this many seconds from now; None: no limit."""

    seconds: float | None = None


class FetchKey(msgspec.Struct, frozen=True):
    """Fetch the key of the next attempt: call the caller's function, or ask a cloud's library."""

    key: KeySource


class RunTools(msgspec.Struct, frozen=True):
    """Run these jobs, at most `most` at a time. One step, since concurrency belongs to the driver."""

    jobs: tuple[Job, ...]
    most: int
    report: Callable[[int, JobOutcome], list[RunEvent]]
    """Returns the events for the caller when the job of this number has ended. Called as the jobs end."""


class UseCall(msgspec.Struct, frozen=True):
    """Send what follows to the target of this call, with its key. Another call's key never goes there."""

    call: Call


PENDING = "pending-"
"""How the key begins that a record has until its reply was delivered."""


class StoredRecord(msgspec.Struct, frozen=True):
    """An immutable record of a store: opaque bytes under opaque keys. The store reads neither."""

    id: str
    """Unlike that of any other record."""
    keys: tuple[str, ...]
    """The keys under which it is found. Two records may share one."""
    payload: bytes
    asked_ago: float = 0.0
    """For a record that is written: how many seconds ago its request came."""

    @property
    def pending(self) -> str:
        """The key that says that nobody knows yet whether the reply was delivered; "" if it was. A later record with
        the same one is of the same words: its client was cut off, and has asked again.
        """
        return self.keys[-1] if self.keys and self.keys[-1][: len(PENDING)] == PENDING else ""

    def __repr__(self) -> str:
        return f"StoredRecord({len(self.keys)} keys, <{len(self.payload)} bytes>)"


class UnconfirmedRecord(msgspec.Struct, frozen=True):
    """A record of which nobody knows yet whether its reply was delivered."""

    tenant: str
    id: str
    pending: str
    """The key that goes when it was."""


class ReadRecords(msgspec.Struct, frozen=True):
    """Find the records of a tenant that have one of these keys, in one read."""

    tenant: str
    keys: tuple[str, ...]


class WriteRecord(msgspec.Struct, frozen=True):
    """Store a record. It is stored when the flow goes on."""

    tenant: str
    record: StoredRecord


class DeleteRecords(msgspec.Struct, frozen=True):
    """Delete the records of a tenant that have one of these keys."""

    tenant: str
    keys: tuple[str, ...]


class Use(msgspec.Struct, frozen=True):
    """What a request used, as far as that is known."""

    tokens: int = 0
    """Sent and received."""
    cost: Decimal | None = Decimal()
    """In US dollars; None if no price is known."""
    is_estimate: bool = False
    """Whether the provider reported neither tokens nor a cost, or the reply broke off."""


class ReserveUse(msgspec.Struct, frozen=True):
    """Reserve what a request may use, before its provider is asked. In place of what it has reserved before."""

    model: str
    """provider:model."""
    tokens: int
    """An estimate: what it will hardly exceed."""
    cost: Decimal | None
    """In US dollars: what it will not exceed; None if no price is known."""
    find_used: Callable[[float], Use]
    """What it used so far, in so many seconds: for a caller that leaves before `SettleUse`."""
    lost: Decimal = Decimal()
    """What the target before may have cost, in US dollars: it was not waited for, and may work on."""


class SettleUse(msgspec.Struct, frozen=True):
    """Replace what was reserved with what was used. It is done when the flow goes on."""

    use: Use


RecordStep: TypeAlias = ReadRecords | WriteRecord | DeleteRecords
UseStep: TypeAlias = ReserveUse | SettleUse
Step: TypeAlias = UseCall | Open | Read | Sleep | Emit | Now | Allow | FetchKey | RunTools | RecordStep | UseStep
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
    """Who traces flows."""

    tracer: ClassVar[FlowTracer | None] = None
    """None: nobody, and nothing is paid for it. `asides.instrument` sets it."""


_Steps = TypeVar("_Steps", bound=Callable[..., Flow[Any]])


def traced(steps: _Steps) -> _Steps:
    """Let the tracer see the flow of an exchange, a method that returns it. The exchange has its call in `_call`."""

    @wraps(steps)
    def begin(exchange: Any, began: float | None = None) -> Flow[Any]:
        flow: Flow[Any] = steps(exchange, began)
        tracer = Tracing.tracer
        return flow if tracer is None else tracer.trace_exchange(exchange._call, exchange, flow)

    return begin  # type: ignore[return-value]
