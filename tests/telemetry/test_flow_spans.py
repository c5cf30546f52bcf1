"""The spans of calls: what they say, what they are inside of, and that each ends once, however its flow ends."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Generator
from contextlib import suppress
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

import asides
from asides.dialects.dialect import HttpRequest
from asides.flows.steps import Tracing
from asides.options import Timeout
from asides.transports.http_sync import HttpTransport
from asides.transports.protocols import Response
from asides.values.usage import Usage
from asides_stage.stage import Fail, Say, Stage
from tests.telemetry.recorded import Recorded, get, identify, is_inside, recording

MODEL = "openai-compatible:m"
COUNTS = Usage(input=11, output=7, thinking=3, cached=5, total=18)


@pytest.fixture
def recorded() -> Generator[Recorded]:
    with recording() as recorded:
        yield recorded


def _say(**more: Any) -> Say:
    return Say(text="the answer", thinking="hm", usage=COUNTS, **more)


def _ask(stage: Stage, **options: Any) -> asides.Reply:
    with asides.Client() as client:
        return client.ask(MODEL, "?", base_url=stage.url, api_key="k", **options)


def _stream(stage: Stage, client: asides.Client, **options: Any) -> asides.Stream[Any]:
    return client.stream(MODEL, "?", base_url=stage.url, api_key="k", **options)


# --- what a span says -------------------------------------------------------------------------------------------------


def test_a_call_is_a_client_span_with_the_conventions_attributes(recorded: Recorded) -> None:
    with Stage([_say()]) as stage:
        reply = _ask(stage, max_tokens=100, temperature=0.5, seed=4)
    span = recorded.find("chat m")
    assert span.kind is SpanKind.CLIENT
    assert span.status.status_code is StatusCode.UNSET
    known = get(span)
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai-compatible",
        "gen_ai.request.model": "m",
        "gen_ai.request.max_tokens": 100,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.seed": 4,
        "gen_ai.request.stream": False,
        "gen_ai.response.model": "m",
        "gen_ai.response.id": reply.id,
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.reasoning.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 5,
        "server.address": "127.0.0.1",
    }
    assert expected.items() <= known.items()
    assert known["server.port"] > 0
    assert "gen_ai.response.time_to_first_chunk" not in known, "a whole reply does not show when it began"


def test_a_stream_shows_when_it_began_and_when_it_answered(recorded: Recorded) -> None:
    with Stage([_say(pause=0.03)]) as stage, asides.Client() as client:
        for _ in _stream(stage, client):
            pass
    known = get(recorded.find("chat m"))
    assert known["gen_ai.request.stream"] is True
    first, thought = known["gen_ai.response.time_to_first_chunk"], known["asides.response.time_to_first_thought"]
    assert 0 < first <= thought < known["asides.response.time_to_first_answer"]


def test_a_span_is_inside_the_callers_and_covers_the_whole_stream(recorded: Recorded) -> None:
    start = recorded.tracer.start_as_current_span
    with Stage([_say(pause=0.01)]) as stage, asides.Client() as client, start("mine") as mine:
        for _ in _stream(stage, client):
            assert trace.get_current_span() is mine, "between chunks the caller's span is the current one"
    assert recorded.names == ["chat m", "mine"]
    assert is_inside(recorded.find("chat m"), recorded.find("mine"))


def test_http_libraries_find_the_span_while_they_are_used(recorded: Recorded) -> None:
    seen: list[int] = []

    class Transport(HttpTransport):
        def open(self, request: HttpRequest, timeout: Timeout) -> Response:
            seen.append(trace.get_current_span().get_span_context().span_id)
            return super().open(request, timeout)

    call = asides.ToolCall("c1", "add", {})
    with Stage([_say(), Say(tool_calls=(call,)), _say()]) as stage:
        client = asides.Client(transport=Transport(), base_url=stage.url, api_key="k")
        client.ask(MODEL, "?")
        asides.Agent(MODEL, tools=[asides.tool(_add)], client=client).run("?")
        client.close()
    chats = [identify(span).span_id for span in recorded.spans if span.name == "chat m"]
    assert seen == chats, "in an agent's run too"
    assert not trace.get_current_span().get_span_context().is_valid


def _add() -> int:
    """Add."""
    return 3


def test_an_error_has_its_type_and_its_status_and_none_of_its_words(recorded: Recorded) -> None:
    with Stage([Fail(400, message="canary: your prompt '?' is bad")]) as stage, pytest.raises(asides.BadRequest):
        _ask(stage)
    span = recorded.find("chat m")
    assert span.status.status_code is StatusCode.ERROR
    assert get(span)["error.type"] == "BadRequest"
    assert get(span)["http.response.status_code"] == 400
    assert "canary" not in recorded.dump()
    assert not span.events, "no exception with its stack is recorded"


def test_a_retry_is_an_event_of_the_same_span(recorded: Recorded) -> None:
    with Stage([Fail(503, headers={"retry-after": "0"}), _say()]) as stage:
        _ask(stage)
    assert recorded.names == ["chat m"]
    span = recorded.find("chat m")
    assert get(span)["http.request.resend_count"] == 1
    (event,) = span.events
    assert event.name == "asides.retry"
    assert dict(event.attributes or {}) == {"asides.attempt": 2, "error.type": "503"}


def test_each_model_of_a_call_with_fallbacks_has_a_span_inside_one(recorded: Recorded) -> None:
    with Stage([Fail(400), _say()]) as stage:
        _ask_both(stage)
    assert recorded.names == ["chat a", "chat b", "ask a"]
    whole = recorded.find("ask a")
    assert all(is_inside(recorded.find(name), whole) for name in ("chat a", "chat b"))
    assert recorded.find("chat a").status.status_code is StatusCode.ERROR
    assert whole.status.status_code is StatusCode.UNSET
    assert get(whole)["asides.model"] == "openai-compatible:b"
    assert [event.name for event in whole.events] == ["asides.fallback"]


def _ask_both(stage: Stage) -> None:
    with asides.Client() as client:
        client.ask(["openai-compatible:a", "openai-compatible:b"], "?", base_url=stage.url, api_key="k", retries=0)


def test_async_calls_and_many_calls_are_inside_the_callers_span(recorded: Recorded) -> None:
    async def ask() -> None:
        async with asides.AsyncClient(base_url=stage.url, api_key="k") as client:
            await client.ask(MODEL, "?")
            async with client.stream(MODEL, "?") as stream:
                async for _ in stream:
                    pass

    with Stage() as stage, recorded.tracer.start_as_current_span("mine"):
        asyncio.run(ask())
        with asides.Client(base_url=stage.url, api_key="k") as client:
            assert len(list(client.ask_many(MODEL, ["1", "2", "3"]))) == 3
    mine = recorded.find("mine")
    chats = [span for span in recorded.spans if span.name == "chat m"]
    assert len(chats) == 5
    assert all(is_inside(span, mine) for span in chats)


# --- however it ends --------------------------------------------------------------------------------------------------


def test_a_stream_that_nobody_reads_has_no_span(recorded: Recorded) -> None:
    with Stage([_say()]) as stage, asides.Client() as client:
        _stream(stage, client)
        closed = _stream(stage, client)
        closed.close()
        assert list(closed) == []
    assert recorded.names == []


@pytest.mark.parametrize("how", ["close", "with", "drop", "generator", "error in the loop"])
def test_a_stream_that_is_left_ends_its_span_once_as_closed(recorded: Recorded, how: str) -> None:
    with Stage([_say(pause=0.01)]) as stage, asides.Client() as client:
        stream = _stream(stage, client)
        next(stream)
        if how == "close":
            stream.close()
            stream.close()
        elif how == "with":
            with stream:
                pass
        elif how == "generator":
            batches = stream.batches()
            batches.close()  # type: ignore[attr-defined]
        elif how == "error in the loop":
            with suppress(ZeroDivisionError), stream:
                for _ in stream:
                    raise ZeroDivisionError
        del stream
        gc.collect()
        span = recorded.find("chat m")
    assert get(span)["asides.closed"] is True
    assert span.status.status_code is StatusCode.UNSET
    assert "error.type" not in get(span)


@pytest.mark.parametrize("how", ["close", "cancel", "drop", "another task"])
def test_an_async_stream_that_is_left_ends_its_span_once(recorded: Recorded, how: str) -> None:
    async def leave() -> None:
        client = asides.AsyncClient(base_url=stage.url, api_key="k")
        stream = client.stream(MODEL, "?")
        await anext(stream)
        if how == "close":
            await stream.close()
        elif how == "another task":
            await asyncio.create_task(stream.close())
        elif how == "cancel":
            task = asyncio.create_task(stream.drain())
            await asyncio.sleep(0.02)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        del stream
        gc.collect()
        await asyncio.sleep(0.05)
        await client.close()

    with Stage([_say(hang_after=400)]) as stage:
        asyncio.run(leave())
    assert get(recorded.find("chat m"))["asides.closed"] is True


def test_a_cancelled_call_that_waits_for_its_head_ends_its_span(recorded: Recorded) -> None:
    async def cancel() -> None:
        async with asides.AsyncClient(base_url=stage.url, api_key="k") as client:
            task = asyncio.create_task(client.ask(MODEL, "?"))
            await asyncio.sleep(0.05)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            assert not trace.get_current_span().get_span_context().is_valid

    with Stage([_say(delay=5)]) as stage:
        asyncio.run(cancel())
    assert get(recorded.find("chat m"))["asides.closed"] is True


def test_ctrl_c_ends_the_span_and_leaves_no_current_one(recorded: Recorded) -> None:
    class Transport(HttpTransport):
        def open(self, request: HttpRequest, timeout: Timeout) -> Response:
            raise KeyboardInterrupt

    client = asides.Client(transport=Transport(), api_key="k", base_url="http://127.0.0.1:1")
    with pytest.raises(KeyboardInterrupt):
        client.ask(MODEL, "?")
    assert recorded.names == ["chat m"]
    assert not trace.get_current_span().get_span_context().is_valid


@pytest.mark.parametrize("scene", [_say(cut_after=1), _say(cut_after=300), Say(events=()), Fail(500)])
def test_whatever_breaks_the_span_ends_once_with_an_error(recorded: Recorded, scene: Any) -> None:
    with Stage([scene]) as stage, asides.Client() as client, pytest.raises(asides.AsidesError) as caught:
        for _ in _stream(stage, client, retries=0):
            pass
    span = recorded.find("chat m")
    assert span.status.status_code is StatusCode.ERROR
    assert get(span)["error.type"] == type(caught.value).__name__


def test_a_server_that_is_not_there_is_an_error(recorded: Recorded) -> None:
    with asides.Client() as client, pytest.raises(asides.TransportError):
        client.ask(MODEL, "?", base_url="http://127.0.0.1:1", api_key="k", retries=0)
    assert get(recorded.find("chat m"))["error.type"] == "ConnectionLost"


def test_a_stream_closed_by_another_thread_ends_its_span_once(recorded: Recorded) -> None:
    with Stage([_say(hang_after=300)]) as stage, asides.Client() as client:
        stream = _stream(stage, client)
        next(stream)
        timer = threading.Timer(0.05, stream.close)
        timer.start()
        with suppress(asides.AsidesError):
            list(stream)
        timer.join()
    assert recorded.names == ["chat m"]


# --- telemetry that fails ---------------------------------------------------------------------------------------------


def test_a_tracer_that_fails_costs_no_answer() -> None:
    with recording() as recorded, Stage([_say(), _say()]) as stage:
        tracer: Any = Tracing.tracer
        tracer._metrics = None
        assert _ask(stage).text == "the answer"
        assert recorded.names == ["chat m"], "the span ends all the same"
        tracer._tracer = None
        assert _ask(stage).text == "the answer"


def test_without_it_nothing_of_opentelemetry_is_loaded(run_python: Any) -> None:
    done = run_python(
        "import sys, asides, asides.client, asides.aio\n"
        "from asides_stage.stage import Stage\n"
        "with Stage() as stage: asides.ask('openai-compatible:m', '?', base_url=stage.url, api_key='k')\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
        "assert 'asides.telemetry' not in sys.modules\n"
    )
    assert done.returncode == 0, done.stderr
