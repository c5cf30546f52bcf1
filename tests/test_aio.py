"""The async client: connections, tasks, loops, reading a stream. Tests of both clients are in requirements."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

import asides
from asides.dialects.dialect import HttpRequest
from asides.flows.steps import Head
from asides.transports.protocols import AsyncResponse
from asides_stage.stage import Fail, OpenStage, Say
from tests.decoding import whole
from tests.shells import KEY, MODEL


@pytest.fixture
async def client() -> AsyncIterator[asides.AsyncClient]:
    async with asides.AsyncClient(api_key=KEY) as client:
        yield client


async def test_connections_are_used_again(client: asides.AsyncClient, stage: OpenStage) -> None:
    open_stage = stage(Say(text="42", thinking="plan"))
    for _ in range(3):
        await client.ask(MODEL, "?", base_url=open_stage.url)
        async with client.stream(MODEL, "?", base_url=open_stage.url) as events:
            assert [event async for event in events]
    assert (len(open_stage.requests), open_stage.connections) == (6, 1)


async def test_a_refusal_costs_no_connection(client: asides.AsyncClient, stage: OpenStage) -> None:
    open_stage = stage(Fail(status=503, headers={"Retry-After-Ms": "1"}), Fail(status=400), Say(text="42"))
    with pytest.raises(asides.BadRequest):
        await client.ask(MODEL, "?", base_url=open_stage.url)
    assert (await client.ask(MODEL, "?", base_url=open_stage.url)).text == "42"
    assert (len(open_stage.requests), open_stage.connections) == (3, 1)


async def test_more_than_a_hundred_tasks_at_once(client: asides.AsyncClient, stage: OpenStage) -> None:
    open_stage = stage(lambda request: Say(text=request.prompt.messages[-1].text, thinking="plan", pause=0.01))

    async def ask(number: int) -> str:
        async with client.stream(MODEL, f"question {number}", base_url=open_stage.url) as events:
            return "".join([event.text async for event in events if isinstance(event, asides.TextDelta)])

    answers = await asyncio.gather(*(ask(number) for number in range(120)))
    assert answers == [f"question {number}" for number in range(120)]
    assert open_stage.connections == 120, "they are not made to wait for one another"


async def test_ask_takes_a_whole_answer_and_stream_a_stream(client: asides.AsyncClient, stage: OpenStage) -> None:
    open_stage = stage(Say(text="42", thinking="plan", id="chatcmpl-1"))
    asked = await client.ask(MODEL, "?", base_url=open_stage.url)
    async with client.stream(MODEL, "?", base_url=open_stage.url) as events:
        streamed = await events.drain()
    assert [bool(request.json.get("stream")) for request in open_stage.requests] == [False, True]
    assert asked == streamed == events.reply


async def test_a_stream_can_be_read_in_pieces_and_in_any_way(client: asides.AsyncClient, stage: OpenStage) -> None:
    open_stage = stage(Say(text="one two three four five", thinking="plan", piece=3))
    async with client.stream(MODEL, "?", base_url=open_stage.url) as events:
        seen = [await anext(events)]
        async for event in events:
            seen.append(event)
            if len(seen) == 3:
                break
        seen += [event async for event in events]
        assert asides.fold(seen) == events.reply
        assert events.partial == events.reply


async def test_batches_are_the_same_events_by_the_list(client: asides.AsyncClient, stage: OpenStage) -> None:
    open_stage = stage(Say(text="one two three", thinking="plan", piece=2))
    async with client.stream(MODEL, "?", base_url=open_stage.url) as events:
        batches = [batch async for batch in events.batches()]
    assert asides.fold(event for batch in batches for event in batch) == events.reply


async def test_the_reply_is_an_error_before_the_stream_has_ended(client: asides.AsyncClient, stage: OpenStage) -> None:
    async with client.stream(MODEL, "?", base_url=stage(Say(text="42")).url) as events:
        await anext(events)
        with pytest.raises(asides.TransportError, match=r"not at its end yet.*drain") as early:
            _ = events.reply
        assert early.value.partial == events.partial
        assert (await events.drain()).text == "42"


async def test_a_failed_stream_raises_its_error_again(client: asides.AsyncClient, stage: OpenStage) -> None:
    async with client.stream(MODEL, "?", base_url=stage(Fail(status=401)).url) as events:
        with pytest.raises(asides.AuthError) as first:
            await events.drain()
        with pytest.raises(asides.AuthError) as second:
            _ = events.reply
        assert first.value is second.value
    assert repr(events) == "AsyncStream(openai-compatible:made-up, failed)"


async def test_ask_and_stream_need_no_client(stage: OpenStage) -> None:
    open_stage = stage(Say(text="42"))
    assert (await asides.aio.ask(MODEL, "?", base_url=open_stage.url)).text == "42"
    async with asides.aio.stream(MODEL, "?", base_url=open_stage.url) as events:
        assert (await events.drain()).text == "42"
    assert await asyncio.to_thread(open_stage.wait_until, lambda: open_stage.open_connections == 0)


def test_one_client_in_several_loops(stage: OpenStage) -> None:
    open_stage = stage(Say(text="42"))
    client = asides.AsyncClient(base_url=open_stage.url)

    async def ask() -> str:
        async with client:
            return (await client.ask(MODEL, "?")).text

    assert [asyncio.run(ask()), asyncio.run(ask())] == ["42", "42"]


async def test_a_slow_reader_is_not_mistaken_for_a_silent_server(client: asides.AsyncClient, stage: OpenStage) -> None:
    open_stage = stage(Say(text="one two", piece=4, pause=0.05))
    async with client.stream(MODEL, "?", base_url=open_stage.url, timeout=0.25) as events:
        async for _ in events:
            await asyncio.sleep(0.4)
        assert (events.reply.text, events.reply.warnings) == ("one two", ())


async def test_silence_is_noticed_when_it_is_due(client: asides.AsyncClient, stage: OpenStage) -> None:
    """And not with the next look at all that waits, which is a second away."""
    open_stage = stage(Say(text="word " * 20, hang_after=900))
    took: list[float] = []
    now = asyncio.get_running_loop().time
    for _ in range(3):  # the machine may be busy with other things
        async with client.stream(MODEL, "?", base_url=open_stage.url, timeout=asides.Timeout(idle=0.1)) as events:
            await anext(events)
            began = now()
            with pytest.raises(asides.IdleTimeout):
                await events.drain()
            took.append(now() - began)
        if took[-1] < 0.6:
            break
    assert min(took) < 0.6


async def test_a_large_prompt_is_sent_without_a_warning(client: asides.AsyncClient, stage: OpenStage) -> None:
    open_stage = stage(Say(text="42"))
    await client.ask(MODEL, "x" * 3_000_000, base_url=open_stage.url)
    assert len(open_stage.requests[0].body) > 3_000_000


class Recorded:
    """A transport of one's own."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.closed = 0

    def open(self, request: HttpRequest, timeout: asides.Timeout) -> AsyncResponse:
        return RecordedResponse([self.body, b""])

    async def close(self) -> None:
        self.closed += 1


class RecordedResponse:
    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces

    async def head(self) -> Head:
        return Head(200, {})

    async def read(self, patience: float | None = None) -> bytes:
        return self.pieces.pop(0)

    def close(self) -> None:
        pass


async def test_a_client_takes_any_transport() -> None:
    transport = Recorded(whole({"content": "42"}))
    async with asides.AsyncClient(transport=transport, base_url="http://nowhere.example/v1", api_key=KEY) as client:
        assert (await client.ask(MODEL, "?")).text == "42"
    assert transport.closed == 1


async def test_a_stream_without_a_client_closes_its_connections_without_a_with(stage: OpenStage) -> None:
    open_stage = stage(Say(text="Hello."))
    stream = asides.aio.stream("openai-compatible:made-up", "?", base_url=open_stage.url)
    said = [event.text async for event in stream if isinstance(event, asides.TextDelta)]
    assert "".join(said) == "Hello."
    assert open_stage.wait_until(lambda: open_stage.open_connections == 0)


_GAP = """
import asyncio, sys, time
import asides

if sys.argv[2] in ("converse", "run_agent"):
    from asides import AsyncAgent, AsyncConversation

MODEL = "openai-compatible:m"

async def ask_by_client(url):
    async with asides.AsyncClient() as client:
        return (await client.ask(MODEL, "?", base_url=url)).text

async def stream(url):
    async with asides.aio.stream(MODEL, "?", base_url=url) as events:
        return "".join([event.text async for event in events if isinstance(event, asides.TextDelta)])

async def drain(url):
    return (await asides.aio.stream(MODEL, "?", base_url=url).drain()).text

async def read_without_a_with(url):
    events = asides.aio.stream(MODEL, "?", base_url=url)
    return "".join([event.text async for event in events if isinstance(event, asides.TextDelta)])

async def ask_many(url):
    return [reply.text async for _, reply in asides.aio.ask_many(MODEL, ["?"], base_url=url)][0]

async def fail(url):
    try:
        await asides.aio.stream(MODEL, "?", base_url=url, modle="m").drain()
    except TypeError as problem:
        return str(problem)

async def ask(url):
    return (await asides.aio.ask(MODEL, "?", base_url=url)).text

async def converse(url):
    return (await AsyncConversation(MODEL, base_url=url).ask("?")).text

async def run_agent(url):
    return (await AsyncAgent(MODEL, base_url=url).run("?")).output

async def main(url, door):
    gaps, last = [], time.thread_time()
    async def tick():
        nonlocal last
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            gaps.append(now - last)
            last = now
    task = asyncio.create_task(tick())
    await asyncio.sleep(0.01)
    text = await globals()[door](url)
    await asyncio.sleep(0.01)
    task.cancel()
    print(text, max(gaps), sep="|")

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("door", "text"),
    [
        ("ask", "42"),
        ("ask_by_client", "42"),
        ("stream", "42"),
        ("drain", "42"),
        ("read_without_a_with", "42"),
        ("ask_many", "42"),
        ("converse", "42"),
        ("run_agent", "42"),
        ("fail", "ask() and stream() have no option 'modle'"),
    ],
)
def test_the_first_call_does_not_hold_the_event_loop(stage: OpenStage, door: str, text: str) -> None:
    """What it imports and compiles is imported and compiled in a thread: the loop's own thread never works long."""
    command = [sys.executable, "-c", _GAP, stage(Say(text="42")).url, door]
    # On a busy machine one of two may be slower.
    done = [subprocess.run(command, capture_output=True, text=True, check=True, timeout=60) for _ in range(2)]
    assert all(one.stdout.startswith(text) for one in done)
    assert min(float(one.stdout.rpartition("|")[2]) for one in done) <= 0.020
