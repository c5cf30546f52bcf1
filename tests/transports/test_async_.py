"""The async driver with a transport of this file: each step carried out, errors thrown in, closing, no result.

Calls over real sockets are in tests/test_aio.py; that both drivers do the same is in tests/laws.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from asides.agents.tools.executor import Job, JobOutcome, Returned
from asides.dialects.dialect import HttpRequest
from asides.flows.call import Call, Policy
from asides.flows.steps import Allow, Emit, Flow, Head, Now, Open, Read, RunTools, Sleep, Step
from asides.options import Timeout
from asides.providers.credentials import Secret
from asides.providers.find import find_target
from asides.transports.async_ import AsyncDriver, AsyncEvents, run_flow
from asides.transports.flow_state import FlowState
from asides.values.errors import ConnectionLost, IdleTimeout, NotFound, TransportError
from asides.values.messages import Prompt, user
from asides.values.parts import ToolCall

URL = "http://127.0.0.1:9/v1"
REQUEST = HttpRequest("POST", URL, {"Accept": "*/*"}, b"{}", ("Authorization", "Bearer "))
SENT = HttpRequest("POST", URL, {"Accept": "*/*", "Authorization": "Bearer k"}, b"{}")


class Made:
    """A transport whose responses are lists of bytes and errors."""

    def __init__(self, *bodies: list[bytes | TransportError]) -> None:
        self.bodies = list(bodies)
        self.requests: list[HttpRequest] = []
        self.timeouts: list[Timeout] = []
        self.done: list[str] = []

    def open(self, request: HttpRequest, timeout: Timeout) -> MadeResponse:
        self.requests.append(request)
        self.timeouts.append(timeout)
        return MadeResponse(self, len(self.requests), self.bodies.pop(0))

    async def close(self) -> None:
        self.done.append("close the transport")


class MadeResponse:
    def __init__(self, transport: Made, number: int, body: list[bytes | TransportError]) -> None:
        self.transport, self.number, self.body = transport, number, body

    async def head(self) -> Head:
        return Head(200, {"number": str(self.number)})

    async def read(self, patience: float | None = None) -> bytes:
        self.transport.done.append(f"read {self.number}, {patience}")
        found = self.body.pop(0)
        if isinstance(found, TransportError):
            raise found
        return found

    def close(self) -> None:
        self.transport.done.append(f"close {self.number}")


def call(timeout: Timeout | None = None) -> Call:
    target = find_target("openai-compatible:m", base_url=URL)
    return Call(Prompt((user("?"),)), target, Policy(timeout=timeout or Timeout()), Secret("k"))


def drive(
    flow: Callable[[], Flow[Any]], transport: Made, timeout: Timeout | None = None
) -> tuple[AsyncEvents[Any], FlowState[Any]]:
    state: FlowState[Any] = FlowState(call(timeout), flow)
    driver = AsyncDriver(state, transport)
    return AsyncEvents(driver, driver.batches()), state


def ask_twice() -> Flow[str]:
    """Opens a response, loses it, and reads another."""
    first = yield Open(REQUEST)
    try:
        yield Read()
    except ConnectionLost:
        yield Emit(["lost", first.headers["number"]])
    second = yield Open(REQUEST)
    data = yield Read(0.5)
    yield Emit([data])
    return f"{data!r} of {second.headers['number']}"


class Double(Step, frozen=True):
    """A step that the driver does not know."""

    number: int


def ask_to_double() -> Flow[int]:
    doubled: int = yield Double(21)
    yield Emit([doubled])
    return doubled


async def test_a_step_that_the_driver_does_not_know_gets_its_handler() -> None:
    async def double(step: Double) -> int:
        return 2 * step.number

    state: FlowState[int] = FlowState(call(), ask_to_double)
    driver = AsyncDriver(state, Made(), {Double: double})
    assert [batch async for batch in driver.batches()] == [[42]]
    assert state.whole == 42


async def test_a_step_without_a_handler_is_an_error_and_closes_the_flow() -> None:
    ended: list[str] = []

    def flow() -> Flow[None]:
        try:
            yield Open(REQUEST)
            yield Double(1)
        finally:
            ended.append("flow")

    transport = Made([])
    events, state = drive(flow, transport)
    with pytest.raises(TypeError, match=r"no handler for the step Double\. Pass one to the driver with handlers="):
        [event async for event in events]
    assert ended == ["flow"]
    assert transport.done[-1] == "close 1"
    assert state.whole is None


@pytest.mark.parametrize("cleans_up", [True, False])
async def test_a_handler_that_raises_closes_the_response_even_if_the_flow_cannot_be_closed(cleans_up: bool) -> None:
    def flow() -> Flow[None]:
        try:
            yield Open(REQUEST)
            yield Double(1)
        finally:
            if not cleans_up:
                raise ValueError("cleanup")

    async def fail(_: Double) -> int:
        raise KeyError("handler")

    transport = Made([])
    driver = AsyncDriver(FlowState(call(), flow), transport, {Double: fail})
    with pytest.raises(KeyError if cleans_up else ValueError):
        [batch async for batch in driver.batches()]
    assert transport.done[-1] == "close 1"


async def test_a_cancelled_handler_closes_the_flow_and_the_response() -> None:
    ended: list[str] = []

    def flow() -> Flow[None]:
        try:
            yield Open(REQUEST)
            yield Double(1)
        finally:
            ended.append("flow")

    async def wait(_: Double) -> None:
        await asyncio.Event().wait()

    transport = Made([])
    driver = AsyncDriver(FlowState(call(), flow), transport, {Double: wait})
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            [batch async for batch in driver.batches()]
    assert ended == ["flow"]
    assert transport.done[-1] == "close 1"


async def test_a_flow_is_carried_out_step_by_step() -> None:
    transport = Made([ConnectionLost("cut")], [b"two"])
    events, state = drive(ask_twice, transport)
    assert [event async for event in events] == ["lost", "1", b"two"]
    assert (state.whole, state.failure) == ("b'two' of 2", None)
    assert transport.requests == [SENT, SENT]
    assert transport.done == ["read 1, None", "close 1", "read 2, 0.5", "close 2"]


async def test_events_are_single_or_in_batches_and_next_goes_on_where_a_loop_ended() -> None:
    events, _ = drive(ask_twice, Made([ConnectionLost("cut")], [b"two"]))
    assert [batch async for batch in events.batches()] == [["lost", "1"], [b"two"]]
    events, _ = drive(ask_twice, Made([ConnectionLost("cut")], [b"two"]))
    assert (await anext(events), await anext(aiter(events)), [event async for event in events]) == (
        "lost",
        "1",
        [b"two"],
    )


async def test_run_flow_returns_what_the_flow_returns_and_raises_without_a_result() -> None:
    def nothing() -> Flow[str | None]:
        yield Now()
        return None

    assert await run_flow(call(), ask_twice, Made([ConnectionLost("cut")], [b"two"])) == "b'two' of 2"
    with pytest.raises(RuntimeError, match="ends with a result or raises"):
        await run_flow(call(), nothing, Made())


async def test_an_error_of_the_flow_is_raised_and_stays_with_the_state() -> None:
    problem = NotFound("no such model")

    def fail() -> Flow[str]:
        yield Open(REQUEST)
        raise problem

    transport = Made([])
    events, state = drive(fail, transport)
    with pytest.raises(NotFound) as caught:
        [event async for event in events]
    assert caught.value is problem
    assert (state.failure, state.whole, transport.done) == (problem, None, ["close 1"])


async def test_a_closed_stream_ends_its_flow_and_its_response() -> None:
    ended: list[str] = []

    def endless() -> Flow[str]:
        try:
            yield Open(REQUEST)
            while True:
                yield Emit([1, 2])
        finally:
            ended.append("flow")

    transport = Made([])
    events, state = drive(endless, transport)
    async with events:
        assert await anext(events) == 1
        await events.close()
        assert [batch async for batch in events.batches()] == []
    assert ended == ["flow"]
    assert (set(transport.done), state.whole, state.failure) == ({"close 1"}, None, None)


async def test_the_clock_goes_forward_and_a_limit_holds_from_where_it_is_set() -> None:
    def limited() -> Flow[list[float]]:
        before = yield Now()
        yield Open(REQUEST)
        yield Allow(7.0)
        yield Open(REQUEST)
        after = yield Now()
        return [before, after]

    transport = Made([], [])
    before, after = await run_flow(call(Timeout(total=100)), limited, transport)
    assert before <= after <= time.monotonic()
    first, second = (timeout.total for timeout in transport.timeouts)
    assert first is not None
    assert second is not None
    assert 90 < first <= 100
    assert 6 < second <= 7


async def test_a_wait_longer_than_the_time_left_is_an_error_inside_of_the_flow() -> None:
    def wait() -> Flow[str]:
        try:
            yield Sleep(1000.0)
        except IdleTimeout:
            return "no time"
        return "slept"

    def doze() -> Flow[str]:
        yield Sleep(0.0)
        return "slept"

    assert await run_flow(call(Timeout(total=1)), wait, Made()) == "no time"
    assert await run_flow(call(Timeout(total=1)), doze, Made()) == "slept"


class Doubled(msgspec.Struct, frozen=True):
    blocking: bool = True

    def run(self, call: ToolCall) -> int:
        return 2 * call.arguments["n"]  # type: ignore[no-any-return]


async def test_tools_run_and_their_outcomes_come_back_in_the_order_of_the_jobs() -> None:
    jobs = tuple(Job(ToolCall(f"c{n}", "f", {"n": n}), Doubled()) for n in (1, 2, 3))

    def report(number: int, outcome: JobOutcome) -> list[Any]:
        assert isinstance(outcome, Returned)
        return [(number, outcome.value)]

    def run_tools() -> Flow[list[int]]:
        outcomes = yield RunTools(jobs, 2, report)
        return [outcome.value for outcome in outcomes]

    events, state = drive(run_tools, Made())
    assert sorted([event async for event in events]) == [(0, 2), (1, 4), (2, 6)]
    assert state.whole == [2, 4, 6]


async def test_a_stream_of_its_own_closes_its_transport_however_it_ends() -> None:
    def three() -> Flow[str]:
        yield Open(REQUEST)
        yield Emit([1])
        yield Emit([2])
        return "done"

    async def read(most: int) -> list[str]:
        transport = Made([])
        batches = AsyncDriver(FlowState(call(), three), transport, ends_transport=True).batches()
        for _ in range(most):
            await anext(batches, None)
        await batches.aclose()
        return transport.done

    assert await read(3) == ["close 1", "close the transport"]
    assert await read(1) == ["close 1", "close the transport"]


async def test_a_cancelled_task_ends_its_flow_and_its_response() -> None:
    ended: list[str] = []

    def wait() -> Flow[str]:
        try:
            yield Open(REQUEST)
            yield Sleep(60.0)
        finally:
            ended.append("flow")
        return "slept"

    transport = Made([])
    task = asyncio.create_task(run_flow(call(), wait, transport))
    while not transport.requests:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (ended, transport.done) == (["flow"], ["close 1"])
