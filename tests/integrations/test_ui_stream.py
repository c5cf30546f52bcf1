"""Streams to front ends: one write per read, errors in words for users, and closing with the reader."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

import asides
from asides.integrations.ui_stream import describe_error
from asides.providers.provider_errors import from_status
from asides.values.events import ReplyEnded, ReplyStarted, TextDelta, ThinkingDelta
from asides_stage import Fail, OpenStage, Say
from tests.integrations.front_ends import Json, read_sse
from tests.integrations.web_server import serve_asgi, serve_wsgi

MODEL = "openai-compatible:made-up"
OPTIONS: dict[str, Any] = {"api_key": "sk-canary-2718281828", "retries": 0}
STORY = Say(text="word " * 400, pause=0.05)
WRITERS = [asides.ui.vercel, asides.ui.ag_ui]
ENDS = {"error", "RUN_ERROR"}


def kinds(body: bytes) -> list[str]:
    return [event if isinstance(event, str) else event["type"] for event in read_sse(body)]


# --- writes -----------------------------------------------------------------------------------------------------------


class Batches:
    """A source with batches, as streams are."""

    def __init__(self, *batches: list[Any]) -> None:
        self.given = batches
        self.closed = 0

    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("batches are cheaper")

    def batches(self) -> Iterator[list[Any]]:
        yield from self.given

    def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("write", WRITERS)
def test_each_batch_is_one_write(write: Any) -> None:
    source = Batches([ReplyStarted(), TextDelta("a"), TextDelta("b")], [TextDelta("c")], [ReplyEnded()])
    written = list(write(source))
    assert len(written) == 5  # the start, the batches, the end
    assert [item.count(b"data: ") for item in written[:3]] == [1, 4, 1]
    assert source.closed == 1


class AsyncBatches:
    """A source with batches that are awaited."""

    def __init__(self, *batches: list[Any], error: Exception | None = None) -> None:
        self.given = batches
        self.error = error
        self.closed = 0

    async def __aiter__(self) -> AsyncIterator[Any]:
        raise AssertionError("batches are cheaper")
        yield

    async def batches(self) -> AsyncIterator[list[Any]]:
        for batch in self.given:
            yield batch
        if self.error is not None:
            raise self.error

    async def close(self) -> None:
        self.closed += 1


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("error", [None, asides.ConnectionLost("made up")])
def test_the_source_is_closed_at_the_end(error: Exception | None, write: Any) -> None:
    source = AsyncBatches([ReplyStarted(), TextDelta("a")], [ReplyEnded()], error=error)

    async def main() -> list[bytes]:
        return [item async for item in write(source, on_error=lambda _: None)]

    assert len(asyncio.run(main())) == 4
    assert source.closed == 1


@pytest.mark.parametrize("write", WRITERS)
def test_a_connection_is_not_silent_while_the_model_thinks_unseen(write: Any) -> None:
    source: list[Any] = [ReplyStarted(), ThinkingDelta("a"), ThinkingDelta("b"), TextDelta("c", 1), ReplyEnded()]
    written = list(write(source, thinking=False))
    assert written[2:4] == [b":\n\n", b":\n\n"]
    chunks = asides.ui.vercel_chunks if write is asides.ui.vercel else asides.ui.ag_ui_events
    assert [event["type"] for event in read_sse(b"".join(written)) if event != "[DONE]"] == [
        chunk["type"] for chunk in chunks(source, thinking=False)
    ]


@pytest.mark.parametrize("write", WRITERS)
def test_a_stream_of_which_single_events_were_read_loses_none(write: Any, stage: OpenStage) -> None:
    opened = stage(Say(thinking="Let me see.", text="It is 42.", piece=100))
    with asides.stream(MODEL, "?", base_url=opened.url, **OPTIONS) as events:
        assert isinstance(next(events), ReplyStarted)
        body = b"".join(write(events))
    texts = [event.get("delta") for event in read_sse(body) if isinstance(event, dict) and "delta" in event]
    assert texts == ["Let me see.", "It is 42."]

    async def main() -> bytes:
        async with asides.aio.stream(MODEL, "?", base_url=opened.url, **OPTIONS) as events:
            assert isinstance(await anext(events), ReplyStarted)
            return b"".join([item async for item in write(events)])

    again = asyncio.run(main())
    assert [event.get("delta") for event in read_sse(again) if isinstance(event, dict) and "delta" in event] == texts


def test_a_conversation_of_which_single_events_were_read_loses_none(stage: OpenStage) -> None:
    opened = stage(Say(thinking="Let me see.", text="It is 42.", piece=100))
    events = asides.Conversation(MODEL, base_url=opened.url, **OPTIONS).stream("?")
    assert isinstance(next(events), ReplyStarted)
    assert b"Let me see." in b"".join(asides.ui.vercel(events))

    async def main() -> bytes:
        events = asides.AsyncConversation(MODEL, base_url=opened.url, **OPTIONS).stream("?")
        assert isinstance(await anext(events), ReplyStarted)
        return b"".join([item async for item in asides.ui.vercel(events)])

    assert b"Let me see." in asyncio.run(main())


@pytest.mark.parametrize("write", WRITERS)
def test_sync_and_async_write_the_same(write: Any, stage: OpenStage) -> None:
    opened = stage(Say(thinking="Let me see.", text="It is 42."))
    options = {"run": {"threadId": "t", "runId": "r"}} if write is asides.ui.ag_ui else {}
    one = b"".join(write(asides.stream(MODEL, "?", base_url=opened.url, **OPTIONS), **options))

    async def main() -> bytes:
        source = asides.aio.stream(MODEL, "?", base_url=opened.url, **OPTIONS)
        return b"".join([item async for item in write(source, **options)])

    assert read_sse(asyncio.run(main())) == read_sse(one)


def test_a_conversation_keeps_the_turn_that_a_page_read(stage: OpenStage) -> None:
    opened = stage(Say(thinking="Hm.", text="Hello."))
    chat = asides.Conversation(MODEL, base_url=opened.url, **OPTIONS)
    body = b"".join(asides.ui.vercel(chat.stream("Hi")))
    assert kinds(body)[-2:] == ["finish", "[DONE]"]
    assert [message.role for message in chat.messages] == ["user", "assistant"]

    async def main() -> list[str]:
        chat = asides.AsyncConversation(MODEL, base_url=opened.url, **OPTIONS)
        body = b"".join([item async for item in asides.ui.vercel(chat.stream("Hi"))])
        assert kinds(body)[-2:] == ["finish", "[DONE]"]
        return [message.role for message in chat.messages]

    assert asyncio.run(main()) == ["user", "assistant"]


def test_the_policy_of_a_client_counts(stage: OpenStage) -> None:
    opened = stage(Say(thinking="CANARY", text="Hello."))
    with asides.Client(base_url=opened.url, visibility={"user": ["summary"]}, api_key="sk-made-up-key") as client:
        assert b"CANARY" not in b"".join(asides.ui.vercel(client.stream(MODEL, "?")))
        chat = asides.Conversation(MODEL, client=client)
        assert b"CANARY" not in b"".join(asides.ui.ag_ui(chat.stream("?")))
        agent = asides.Agent(MODEL, client=client)
        assert b"CANARY" not in b"".join(asides.ui.ag_ui(agent.stream("?")))
        assert b"CANARY" in b"".join(asides.ui.vercel(client.stream(MODEL, "?"), visibility=asides.Visibility()))


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", WRITERS)
def test_an_error_is_told_in_words_for_a_user(write: Any, stage: OpenStage, caplog: pytest.LogCaptureFixture) -> None:
    opened = stage(Fail(status=401, message="org-4711: the key sk-canary-2718281828 is wrong"))
    with caplog.at_level(logging.WARNING, "asides"):
        body = b"".join(write(asides.stream(MODEL, "my prompt", base_url=opened.url, **OPTIONS)))
    assert b"4711" not in body
    assert b"canary" not in body
    assert b"127.0.0.1" not in body
    last = [event for event in read_sse(body) if event != "[DONE]"][-1]
    assert last["type"] in ENDS
    assert "The answer could not be completed." in last.values()
    (record,) = caplog.records
    assert "AuthError" in record.getMessage()
    assert "canary" not in record.getMessage()


@pytest.mark.parametrize("write", WRITERS)
def test_an_error_in_mid_stream_ends_the_open_part_first(write: Any, stage: OpenStage) -> None:
    opened = stage(Say(text="word " * 50, cut_after=700))
    body = b"".join(write(asides.stream(MODEL, "?", base_url=opened.url, **OPTIONS), on_error=lambda _: None))
    found = [kind for kind in kinds(body) if kind != "[DONE]"]
    assert found[-2:] in (["text-end", "error"], ["TEXT_MESSAGE_END", "RUN_ERROR"])
    assert b"The connection to the model broke. Please try again." in body


def test_on_error_gets_the_error_and_chooses_the_words(stage: OpenStage, caplog: pytest.LogCaptureFixture) -> None:
    opened, got = stage(Fail(status=429)), list[Exception]()

    def on_error(error: Exception) -> str:
        got.append(error)
        return "Später."

    body = b"".join(asides.ui.vercel(asides.stream(MODEL, "?", base_url=opened.url, **OPTIONS), on_error=on_error))
    assert [type(error) for error in got] == [asides.RateLimited]
    assert {"type": "error", "errorText": "Später."} in read_sse(body)
    assert caplog.records == []


def broken() -> Iterator[Any]:
    yield TextDelta("a")
    raise ZeroDivisionError("CANARY")


async def broken_async() -> AsyncIterator[Any]:
    for event in (TextDelta("a"),):
        yield event
    raise ZeroDivisionError("CANARY")


def collect(stream: Any, written: list[bytes]) -> None:
    for item in stream:
        written.append(item)  # noqa: PERF402 - what came before an error counts


async def collect_async(stream: Any, written: list[bytes]) -> None:
    async for item in stream:
        written.append(item)  # noqa: PERF401 - what came before an error counts


@pytest.mark.parametrize("write", WRITERS)
def test_an_error_of_the_program_is_told_and_raised(write: Any) -> None:
    written: list[bytes] = []
    with pytest.raises(ZeroDivisionError):
        collect(write(broken()), written)
    assert [kind for kind in kinds(b"".join(written)) if kind != "[DONE]"][-1] in ENDS
    assert b"CANARY" not in b"".join(written)
    again: list[bytes] = []
    with pytest.raises(ZeroDivisionError):
        asyncio.run(collect_async(write(broken_async()), again))
    assert kinds(b"".join(again)) == kinds(b"".join(written))


def test_an_agent_that_reaches_its_limit_ends_with_an_error(stage: OpenStage) -> None:
    call = asides.ToolCall("c1", "ping", {})
    opened = stage(Say(tool_calls=(call,)))

    def ping() -> str:
        """Ping."""
        return "pong"

    agent = asides.Agent(MODEL, tools=[ping], limits=asides.Limits(turns=2), base_url=opened.url, **OPTIONS)
    found = list(asides.ui.vercel_chunks(agent.stream("?"), on_error=lambda _: None))
    assert found[-1] == {"type": "error", "errorText": "The answer took more steps than allowed."}
    assert [chunk["type"] for chunk in found].count("tool-output-available") == 2


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (from_status(429, provider="CANARY", message="CANARY"), "rate_limited"),
        (from_status(503, provider="CANARY", message="CANARY"), "overloaded"),
        (from_status(400, provider="CANARY", message="CANARY is bad"), "bad_request"),
        (from_status(404, provider="CANARY"), "not_found"),
        (asides.MissingKey("CANARY", ("CANARY_KEY",)), "missing_key"),
        (asides.IdleTimeout("CANARY"), "idle_timeout"),
        (asides.ConnectionLost("CANARY"), "connection_lost"),
        (asides.ProtocolError("CANARY"), "protocol_error"),
        (RuntimeError("CANARY"), "internal_error"),
    ],
)
def test_the_words_of_an_error_name_nothing(error: Exception, code: str) -> None:
    words, found = describe_error(error)
    assert found == code
    assert "CANARY" not in words
    assert words.endswith(".")


# --- closing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", WRITERS)
def test_closing_lets_the_provider_go(write: Any, stage: OpenStage) -> None:
    opened = stage(STORY)
    stream = write(asides.stream(MODEL, "?", base_url=opened.url, **OPTIONS))
    for _ in range(3):
        next(stream)
    stream.close()
    assert opened.wait_until(lambda: opened.closed_early == 1)
    assert list(stream) == []


@pytest.mark.parametrize("write", WRITERS)
def test_a_cancelled_task_lets_the_provider_go(write: Any, stage: OpenStage) -> None:
    opened = stage(STORY)

    async def main() -> None:
        started = asyncio.Event()

        async def read() -> None:
            async for _ in write(asides.aio.stream(MODEL, "?", base_url=opened.url, **OPTIONS)):
                started.set()

        task = asyncio.create_task(read())
        await started.wait()
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(opened.wait_until, lambda: opened.closed_early == 1)

    asyncio.run(main())


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("serve", [serve_asgi, serve_wsgi])
def test_a_reader_who_leaves_lets_the_provider_go(serve: Any, write: Any, stage: OpenStage) -> None:
    opened = stage(STORY)

    def answer(_: Any) -> Any:
        source = asides.aio.stream if serve is serve_asgi else asides.stream
        return write(source(MODEL, "?", base_url=opened.url, **OPTIONS))

    with serve(answer, asides.ui.VERCEL_HEADERS) as url:
        with httpx.stream("POST", url, json={}) as response:
            assert response.headers["content-type"] == "text/event-stream"
            assert any(b"word" in piece for piece in response.iter_raw())
        assert opened.wait_until(lambda: opened.closed_early == 1)


def test_a_stream_that_nobody_reads_is_closed_too(stage: OpenStage) -> None:
    opened = stage(STORY, STORY)
    events = asides.stream(MODEL, "?", base_url=opened.url, **OPTIONS)
    next(events)
    asides.ui.vercel(events).close()
    assert opened.wait_until(lambda: opened.closed_early == 1)

    async def main() -> None:
        events = asides.aio.stream(MODEL, "?", base_url=opened.url, **OPTIONS)
        await anext(events)
        async with asides.ui.ag_ui(events):
            pass
        assert await asyncio.to_thread(opened.wait_until, lambda: opened.closed_early == 2)

    asyncio.run(main())


def test_a_stream_that_is_dropped_lets_the_provider_go(stage: OpenStage) -> None:
    """As servers do that forget a generator when the reader has gone."""
    opened = stage(STORY)
    stream = asides.ui.vercel(asides.stream(MODEL, "?", base_url=opened.url, **OPTIONS))
    next(stream)
    next(stream)
    del stream
    gc.collect()
    assert opened.wait_until(lambda: opened.closed_early == 1)


def test_a_stream_that_the_program_closes_ends_with_an_abort(stage: OpenStage) -> None:
    opened = stage(STORY)
    events = asides.stream(MODEL, "?", base_url=opened.url, **OPTIONS)
    found: list[Json] = []
    for chunk in asides.ui.vercel_chunks(events):
        found.append(chunk)
        if chunk["type"] == "text-delta":
            events.close()
    assert [chunk["type"] for chunk in found][-3:] == ["text-end", "finish-step", "abort"]


# --- mistakes ---------------------------------------------------------------------------------------------------------
