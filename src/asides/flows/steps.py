"""What a flow may ask of its shell, and `advance`, the only place that touches a generator's send and throw.

A flow is a generator of steps. The shell carries out each step and hands the result back:

    Open(request)   → Head        closes what was open before; transport errors are thrown into the flow
    Read()          → bytes       b"" at the end of the body; transport errors are thrown into the flow
    Sleep(seconds)  → None
    Emit(events)    → None        a batch for the caller
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from asides.dialects.dialect import HttpRequest
from asides.events import Event

Result = TypeVar("Result")


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

    events: list[Event]


Step: TypeAlias = Open | Read | Sleep | Emit
Flow: TypeAlias = Generator[Step, Any, Result]


class Done(Generic[Result]):
    """The flow returned."""

    __slots__ = ("result",)

    def __init__(self, result: Result) -> None:
        self.result = result


def advance(flow: Flow[Result], value: Any = None, error: BaseException | None = None) -> Step | Done[Result]:
    """Give the flow what it asked for; what it asks for next. StopIteration never leaves this frame."""
    try:
        return flow.send(value) if error is None else flow.throw(error)
    except StopIteration as stop:
        return Done(stop.value)
