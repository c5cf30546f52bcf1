"""Run one relayed request over a transport: `RelayStream`, and `AsyncRelayStream` for event loops."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Executor
from contextlib import suppress
from typing import Any, Protocol

from asides.flows.call import CallLike
from asides.flows.steps import Flow
from asides.relay.relay_request import RelayOutcome, ResponseStart
from asides.relay.steps import UnconfirmedRecord
from asides.relay.streams.step_handlers import (
    RecordStore,
    UseMeter,
    confirm_delivery,
    handle_steps,
    handle_steps_async,
)
from asides.transports.async_ import AsyncDriver
from asides.transports.flow_state import FlowState
from asides.transports.protocols import AsyncTransport, Transport
from asides.transports.sync import SyncDriver


class Relayed(Protocol):
    """A request under way: a `RelayExchange`, or another flow that emits the head of a response, then its bytes."""

    @property
    def call(self) -> CallLike:
        """The call under way."""
        ...

    def steps(self) -> Flow[RelayOutcome]:
        """The flow."""
        ...

    unconfirmed: list[UnconfirmedRecord]
    """Records that are confirmed when the caller has what was emitted last."""


class RelayState(FlowState[RelayOutcome]):
    """The state of a relayed request."""

    __slots__ = ("_exchange", "_offered", "_records")

    def __init__(self, exchange: Relayed, records: RecordStore | None) -> None:
        super().__init__(exchange.call, exchange.steps)
        self._records = records
        self._exchange = exchange
        self._offered = 0

    def hand_over(self, batch: list[bytes]) -> bytes:
        """The bytes of a batch, which the caller gets now. They are the end of every turn that was recorded so far."""
        self._offered = len(self._exchange.unconfirmed)
        return b"".join(batch)

    def confirm(self) -> None:
        """Mark the delivered records as confirmed, without waiting."""
        if self._offered:
            delivered = self._exchange.unconfirmed[: self._offered]
            del self._exchange.unconfirmed[: self._offered]
            self._offered = 0
            confirm_delivery(delivered, self._records)


class RelayStream:
    """The response to one relayed request: `start()` first, then iterate over the bytes of its body."""

    def __init__(self, exchange: Relayed, transport: Transport, records: RecordStore | None = None) -> None:
        self._state = RelayState(exchange, records)
        self._driver = SyncDriver(self._state, transport, handle_steps(records))
        self._batches = self._driver.batches()
        self._first: list[bytes] = []

    def start(self) -> ResponseStart:
        """Send the request, and wait for the head of the response."""
        start: ResponseStart
        start, *self._first = next(self._batches)
        return start

    def __iter__(self) -> Iterator[bytes]:
        if self._first:
            yield self._state.hand_over(self._first)
        for batch in self._batches:
            yield self._state.hand_over(batch)

    def confirm(self) -> None:
        """Say that the caller has the bytes so far, and no more follow, or it wants no more. A turn whose end was among
        them stays in the store beside others of the same words. Any other makes way if the caller asks again.
        """
        self._state.confirm()

    def close(self) -> None:
        """Close the connection to the provider immediately. May be called from any thread."""
        self._driver.close()
        if (response := self._driver.response) is not None:
            response.close()
        with suppress(ValueError):
            self._batches.close()

    @property
    def outcome(self) -> RelayOutcome | None:
        """How it ended; None before that."""
        return self._state.whole


class AsyncRelayStream:
    """Async version of `RelayStream`. A cancelled task closes the connection to the provider."""

    def __init__(
        self,
        exchange: Relayed,
        transport: AsyncTransport,
        records: RecordStore | None = None,
        meter: UseMeter | None = None,
        planner: Executor | None = None,
    ) -> None:
        """`meter`: None if the caller has no limits. `planner`: reads and plans the request; None: the event loop."""
        self._state = RelayState(exchange, records)
        self._state.planner = planner
        self._meter = meter
        self._driver = AsyncDriver(self._state, transport, handle_steps_async(records, meter))
        self._batches = self._driver.batches()
        self._first: list[bytes] = []
        self.early: ResponseStart | None = None
        """The head, if the caller of this stream sent one before the flow emitted its own."""

    async def start(self) -> ResponseStart:
        """Send the request, and wait for the head of the response, and for the first bytes of its body."""
        first: list[Any] = await anext(self._batches, [])
        if self.early is not None:
            self._first = first
            return self.early
        start: ResponseStart
        start, *self._first = first
        return start

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._first:
            yield self._state.hand_over(self._first)
        async for batch in self._batches:
            yield self._state.hand_over(batch)

    def confirm(self) -> None:
        """Like `RelayStream.confirm`."""
        self._state.confirm()

    async def close(self) -> None:
        """Close the connection to the provider immediately."""
        self._driver.close()
        if (response := self._driver.response) is not None:
            response.close()
        with suppress(RuntimeError):
            await self._batches.aclose()
        if self._meter is not None:
            self._meter.leave()

    @property
    def outcome(self) -> RelayOutcome | None:
        """How it ended; None before that."""
        return self._state.whole
