"""How far a call has come: what a blocking and an awaiting stream keep, and decide, alike.

Not here: the driving itself, which is the one thing that differs between the shells.
"""

from __future__ import annotations

import time

import msgspec

from asides.errors import AsidesError, TransportError
from asides.flows.call import Call, Timeout
from asides.flows.exchange import Exchange
from asides.flows.steps import Flow
from asides.network.faults import out_of_time, place_of
from asides.reply import Reply


class Progress:
    """One call in the hands of a shell."""

    __slots__ = ("_deadline", "call", "exchange", "failure", "place", "whole")

    def __init__(self, call: Call) -> None:
        self.call = call
        self.exchange = Exchange(call)
        self.place = place_of(call.target.base_url)
        self.whole: Reply | None = None
        self.failure: AsidesError | None = None
        self._deadline: float | None = None

    @property
    def partial(self) -> Reply | None:
        """What has come so far."""
        return self.exchange.partial if self.whole is None else self.whole

    def begin(self) -> Flow[Reply]:
        """The flow to drive; the time of the whole call runs from now on."""
        total = self.call.policy.timeout.total
        self._deadline = None if total is None else time.monotonic() + total
        return self.exchange.steps()

    def timeout(self) -> Timeout:
        """What an attempt that begins now may take."""
        timeout = self.call.policy.timeout
        return timeout if self._deadline is None else msgspec.structs.replace(timeout, total=self._left(self._deadline))

    def check_wait(self, seconds: float) -> None:
        """Raise if the whole call will be over before a wait of these seconds is."""
        if self._deadline is not None and self._left(self._deadline) < seconds:
            raise out_of_time(self.place, self.call.policy.timeout.total)

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

    def _left(self, deadline: float) -> float:
        left = deadline - time.monotonic()
        if left <= 0:
            raise out_of_time(self.place, self.call.policy.timeout.total)
        return left
