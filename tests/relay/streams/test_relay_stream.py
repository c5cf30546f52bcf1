"""Callers that leave: the provider's connection is closed at once. And the same relay in an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from asides.dialects.dialect import HttpRequest
from asides.relay.observer import RelayObserver
from asides.relay.relay_request import RelayRequest
from asides.relay.streams.relay_stream import AsyncRelayStream, RelayStream
from asides.transports.http_async import AsyncHttpTransport
from asides.values.messages import Prompt, user
from asides.values.thinking import Thinking
from asides_stage import Stage
from asides_stage.stage import Hang, Say
from tests.relay.relaying import CALLERS, Door, Response, read_response, write_request

_SLOW = Say(text="word " * 200, piece=5, pause=0.02)
_PROMPT = Prompt((user("?"),), stream=True)


@pytest.mark.parametrize("model", ["anthropic:claude-opus-4-5", "openai-compatible:any"], ids=["forward", "translate"])
def test_a_caller_that_leaves_closes_the_upstream(model: str) -> None:
    with Stage(_SLOW, rules="lenient") as stage:
        door = Door(stage)
        stream, start = door.open(write_request("anthropic", model, _PROMPT))
        assert start.status == 200
        assert next(iter(stream))
        stream.close()
        assert stage.wait_until(lambda: stage.closed_early == 1)
        assert stream.outcome is None


def test_a_caller_that_leaves_before_the_head() -> None:
    with Stage(Hang()) as stage:
        door = Door(stage)
        exchange = door.relay.begin(write_request("openai_chat", "openai-compatible:any", _PROMPT))
        stream = RelayStream(exchange, door.transport)
        stream.close()
        with pytest.raises(StopIteration):
            stream.start()
        assert stage.open_connections == 0


async def _with_transport(work: Callable[[AsyncHttpTransport], Awaitable[None]]) -> None:
    transport = AsyncHttpTransport()
    try:
        await work(transport)
    finally:
        await transport.close()


@pytest.mark.parametrize("caller", CALLERS)
def test_in_an_event_loop_it_is_the_same(caller: str) -> None:
    with Stage(Say(text="Hi", thinking="so")) as stage:
        door = Door(stage)
        prompt = Prompt((user("?"),), stream=True, thinking=Thinking(effort="high"))

        async def run(transport: AsyncHttpTransport) -> None:
            request: RelayRequest = write_request(caller, "gemini:gemini-3-pro-preview", prompt)
            stream = AsyncRelayStream(door.relay.begin(request), transport, door.records)
            start = await stream.start()
            body = b"".join([piece async for piece in stream])
            reply = read_response(caller, "any", Response(start.status, start.headers, body, stream.outcome))
            assert reply.text == "Hi"
            assert reply.thinking
            assert reply.thinking.text == "so"

        asyncio.run(_with_transport(run))


def test_a_cancelled_task_closes_the_upstream() -> None:
    with Stage(_SLOW, rules="lenient") as stage:
        door = Door(stage)

        async def run(transport: AsyncHttpTransport) -> None:
            request = write_request("openai_chat", "openai-compatible:any", _PROMPT)
            stream = AsyncRelayStream(door.relay.begin(request), transport, door.records)

            begun = asyncio.Event()

            async def read() -> None:
                await stream.start()
                begun.set()
                async for _ in stream:
                    await asyncio.sleep(0)

            task = asyncio.create_task(read())
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await stream.close()

        asyncio.run(_with_transport(run))
        assert stage.wait_until(lambda: stage.closed_early == 1)


class _Notes(RelayObserver):
    """Notes in which thread it was called, and how often the event loop ran until the request left."""

    def __init__(self) -> None:
        self.threads: set[str] = set()
        self.ticks = self.ticks_before = 0

    def see_request(self, request: HttpRequest) -> None:
        self.threads.add(threading.current_thread().name)
        self.ticks_before = self.ticks


@pytest.mark.parametrize("model", ["anthropic:claude-opus-4-5", "openai-compatible:any"], ids=["forward", "translate"])
def test_a_planner_leaves_the_event_loop_to_others(model: str) -> None:
    prompt = Prompt(tuple(user(f"{number}") for number in range(6000)), stream=True)
    with Stage(Say(text="Hi"), rules="lenient") as stage, ThreadPoolExecutor(1, thread_name_prefix="plan") as planner:
        door = Door(stage)

        async def run(transport: AsyncHttpTransport) -> None:
            async def tick() -> None:
                while True:
                    notes.ticks += 1
                    await asyncio.sleep(0)

            request, notes = write_request("anthropic", model, prompt), _Notes()
            ticking = asyncio.create_task(tick())
            exchange = door.relay.begin(request, notes)
            stream = AsyncRelayStream(exchange, transport, door.records, planner=planner)
            start = await stream.start()
            body = b"".join([piece async for piece in stream])
            ticking.cancel()
            reply = read_response("anthropic", "any", Response(start.status, start.headers, body, stream.outcome))
            assert reply.text == "Hi"
            assert [name.partition("_")[0] for name in notes.threads] == ["plan"]
            assert notes.ticks_before > 50, "in the event loop it would be a tick for each step"

        asyncio.run(_with_transport(run))
