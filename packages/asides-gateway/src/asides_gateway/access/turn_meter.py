"""Count what a turn of the page uses of its key's limits: `TurnMeter`. The same rules as for relayed requests.

Several models may be asked in order, so the price of the most expensive one is reserved.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from asides.flows.call import Call
from asides.flows.cost_bounds import estimate_input, find_most_cost, find_most_output
from asides.flows.steps import Done, Flow, advance
from asides.relay.metered_use import MeteredUse
from asides.relay.streams.step_handlers import handle_steps_async
from asides.transports.flow_state import find_handler
from asides.values.errors import AsidesError
from asides.values.reply import Reply
from asides_gateway.access import KeyRecord
from asides_gateway.access.key_meter import KeyMeter, Meters, build_caller_limits


class TurnMeter:
    """Counts what one turn uses. It belongs to the event loop."""

    def __init__(self, meters: Meters, record: KeyRecord | None) -> None:
        limits = build_caller_limits(record)
        self._meters, self._record = meters, record
        self._meter: KeyMeter | None = meters.open(record)
        self._use = None if limits is None else MeteredUse(limits)
        self._calls: tuple[Call, ...] = ()

    async def reserve(self, call: Call | None, find_partial: Callable[[], Reply | None]) -> None:
        """Reserve what the turn may use. Raises the refusal if that is not possible."""
        if self._use is None or self._meter is None or call is None:
            return
        await self._meters.prepare(self._record)
        self._calls = (call, *call.fallbacks)
        most_expensive = max(self._calls, key=_find_call_cost) if len(self._calls) > 1 else call
        await self._carry_out(self._use.reserve(most_expensive, b"", {}, find_partial))
        self._use.note_asked()

    async def settle(self, reply: Reply | None, *, has_failed: bool, is_cut: bool) -> None:
        """Settle what the turn used, before the page gets its end. A second call does nothing. `is_cut`: the reply is
        not whole.
        """
        if self._use is None:
            return
        if reply is not None and reply.origin is not None:
            name = f"{reply.origin.provider}:{reply.origin.model}"
            self._use.price_as(next((call for call in self._calls if call.model == name), None))
        await self._carry_out(self._use.settle(reply, has_failed=has_failed, is_cut=is_cut))

    def note_problem(self, problem: AsidesError) -> None:
        """Note that the turn has failed. What it may still cost is settled."""
        if self._use is not None:
            self._use.note_problem(problem)

    def leave(self) -> None:
        """End the turn: settle what is still reserved."""
        if self._meter is not None:
            self._meter.leave()

    async def _carry_out(self, flow: Flow[None]) -> None:
        handlers = handle_steps_async(None, self._meter)
        value: object = None
        while not isinstance(step := advance(flow, value), Done):
            value = await find_handler(handlers, step)(step)


def _find_call_cost(call: Call) -> Decimal:
    """The most that a call may cost. One without a price counts as the most expensive, so that it is refused."""
    sent = estimate_input(call.prompt, call.target, b"")
    most = find_most_cost(call.target, sent, find_most_output(call.prompt, call.target))
    return Decimal("Infinity") if most is None else most
