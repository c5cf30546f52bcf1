"""What a flow may ask of its shell, and `advance`, the only place that touches a generator's send and throw.

A flow is a generator of steps. The shell carries out each step and hands the result back:

    Open(request)   → Head        closes what was open before; transport errors are thrown into the flow
    Read()          → bytes       b"" at the end of the body; transport errors are thrown into the flow
    Sleep(seconds)  → None
    Emit(events)    → None        a batch for the caller
    Now()           → float       seconds of a clock that only goes forward
    Allow(seconds)  → None        what follows may take so long
    RunTools(jobs)  → outcomes    of all jobs, in their order; side by side, since concurrency is the shell's
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import msgspec

from asides.dialects.dialect import HttpRequest

if TYPE_CHECKING:
    # A plain question needs none of what an agent needs.
    from asides.agents.tools.runnable import Job, JobOutcome
    from asides.values.result import RunEvent

Whole = TypeVar("Whole")


class Head(msgspec.Struct, frozen=True):
    """The beginning of a response; header names are in lower case."""

    status: int
    headers: dict[str, str]
    received: float = 0.0
    """Unix time at which it came, since a flow has no clock."""


class Open(msgspec.Struct, frozen=True):
    """Send a request and wait for the head of its response."""

    request: HttpRequest


class Read(msgspec.Struct, frozen=True):
    """The next bytes of the open response."""

    patience: float | None = None
    """Silence of so many seconds is the end of the body too; None: as long as the call's timeouts allow."""


class Sleep(msgspec.Struct, frozen=True):
    """Wait."""

    seconds: float


class Emit(msgspec.Struct, frozen=True):
    """Hand events to the caller; a batch at a time, since the hot path is per chunk."""

    events: list[Any]
    """Of a reply; in an agent's run, also of the run."""


class Now(msgspec.Struct, frozen=True):
    """What the clock says, in seconds that only go up."""


class Allow(msgspec.Struct, frozen=True):
    """From here on there are so many seconds for all that follows; None: as many as it takes."""

    seconds: float | None = None


class RunTools(msgspec.Struct, frozen=True):
    """Run these jobs, at most so many at a time. One step: how they run side by side is the shell's business."""

    jobs: tuple[Job, ...]
    most: int
    report: Callable[[int, JobOutcome], list[RunEvent]]
    """The events for the caller when the job of this number has ended; asked as they end, in any order."""


Step: TypeAlias = Open | Read | Sleep | Emit | Now | Allow | RunTools
Flow: TypeAlias = Generator[Step, Any, Whole]


class Done(Generic[Whole]):
    """The flow returned."""

    __slots__ = ("result",)

    def __init__(self, result: Whole) -> None:
        self.result = result


def advance(flow: Flow[Whole], value: Any = None, error: BaseException | None = None) -> Step | Done[Whole]:
    """Give the flow what it asked for; what it asks for next. StopIteration never leaves this frame."""
    try:
        return flow.send(value) if error is None else flow.throw(error)
    except StopIteration as stop:
        return Done(stop.value)
