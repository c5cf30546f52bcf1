"""How far a call has come: what a blocking and an awaiting stream keep, and decide, alike.

Not here: the driving itself, which is the one thing that differs between the shells.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic

import msgspec

from asides.flows.call import Call, CallLike
from asides.flows.exchange import Exchange
from asides.flows.steps import Flow, Whole
from asides.options import Timeout
from asides.transports.transport_errors import out_of_time, place_of
from asides.values.errors import AsidesError, TransportError
from asides.values.reply import Reply


class FlowState(Generic[Whole]):
    """A flow in the hands of a shell: what it is for, what came of it, and the time that it has left."""

    __slots__ = ("_deadline", "_flow", "_total", "call", "failure", "whole")

    def __init__(self, call: CallLike, flow: Callable[[], Flow[Whole]]) -> None:
        self.call = call
        self.whole: Whole | None = None
        self.failure: AsidesError | None = None
        self._flow = flow
        self._deadline: float | None = None
        self._total: float | None = None

    @property
    def place(self) -> str:
        """Where the call goes, for messages."""
        return place_of(self.call.target.base_url)

    def begin(self) -> Flow[Whole]:
        """The flow to drive; the time of the whole call runs from now on."""
        self.allow(self.call.policy.timeout.total)
        return self._flow()

    def allow(self, seconds: float | None) -> None:
        """What follows may take so long, from now on."""
        self._total = seconds
        self._deadline = None if seconds is None else time.monotonic() + seconds

    def timeout(self) -> Timeout:
        """What an attempt that begins now may take."""
        timeout = self.call.policy.timeout
        return timeout if self._deadline is None else msgspec.structs.replace(timeout, total=self._left(self._deadline))

    def check_wait(self, seconds: float) -> None:
        """Raise if the whole call will be over before a wait of these seconds is."""
        if self._deadline is not None and self._left(self._deadline) < seconds:
            raise out_of_time(self.place, self._total)

    def _left(self, deadline: float) -> float:
        left = deadline - time.monotonic()
        if left <= 0:
            raise out_of_time(self.place, self._total)
        return left


class Progress(FlowState[Reply]):
    """One call for a reply."""

    __slots__ = ("exchange",)

    def __init__(self, call: Call) -> None:
        self.exchange = Exchange(call)
        super().__init__(call, self.exchange.steps)

    @property
    def partial(self) -> Reply | None:
        """What has come so far."""
        return self.exchange.partial if self.whole is None else self.whole

    def reply(self, *, closed: bool) -> Reply:
        """The whole reply, or the reason why there is none."""
        if self.whole is not None:
            return self.whole
        if self.failure is not None:
            raise self.failure
        error = TransportError(
            f"the stream from {self.place} was closed before the reply was whole. To do: read it to its end; .partial "
            "has what came."
            if closed
            else f"the stream from {self.place} is not at its end yet. To do: read on, or await drain()."
        )
        error.partial = self.partial
        raise error

    def __repr__(self) -> str:
        state = "whole" if self.whole is not None else "failed" if self.failure is not None else "under way"
        return f"{self.call.target.provider.name}:{self.call.target.model}, {state}"
