"""How a call travels: retries, timeouts, interruption, cancellation. Both shells, over real sockets on the loopback."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

import asides
from asides_stage.stage import Fail, Garbage, Hang, OpenStage, Raw, Refuse, Say, Scene
from tests.decoding import chunk, sse, stream
from tests.loopback import serving
from tests.shells import KEY, MODEL, Shell, both_shells

# --- M2: trying again ---------------------------------------------------------------------------------------------


@pytest.mark.requirement("FT-46")
@both_shells
def test_M2_a_429_is_tried_again_after_the_wait_it_asks_for(shell: Shell, stage: OpenStage) -> None:
    open_stage = stage(Fail(status=429, retry_after=0.2), Say(text="42"))
    began = time.monotonic()
    outcome = shell(open_stage.url)
    assert outcome.reply is not None
    assert outcome.reply.text == "42"
    assert len(open_stage.requests) == 2
    assert 0.2 <= time.monotonic() - began < 3


@both_shells
def test_M2_the_wait_may_be_a_date(shell: Shell, stage: OpenStage) -> None:
    now = datetime(2026, 10, 21, 7, 28, tzinfo=UTC)
    headers = {
        "Date": format_datetime(now, usegmt=True),
        "Retry-After": format_datetime(now + timedelta(seconds=1), usegmt=True),
    }
    open_stage = stage(Fail(status=503, headers=headers), Say(text="42"))
    began = time.monotonic()
    outcome = shell(open_stage.url)
    assert outcome.reply is not None
    assert 1.0 <= time.monotonic() - began < 4


@both_shells
def test_M2_a_wait_beyond_the_cap_ends_the_call_at_once(shell: Shell, stage: OpenStage) -> None:
    open_stage = stage(Fail(status=429, retry_after=3600), Say(text="42"))
    began = time.monotonic()
    outcome = shell(open_stage.url)
    assert isinstance(outcome.raised, asides.RateLimited)
    assert outcome.raised.retry_after == 3600
    assert "max_wait" in str(outcome.raised)
    assert len(open_stage.requests) == 1
    assert time.monotonic() - began < 3


@both_shells
@pytest.mark.parametrize("status", [408, 409, 500, 502, 529])
def test_M2_attempts_are_the_first_and_the_retries(shell: Shell, status: int, stage: OpenStage) -> None:
    open_stage = stage(Fail(status=status, headers={"Retry-After-Ms": "1"}))
    outcome = shell(open_stage.url, retries=3)
    assert isinstance(outcome.raised, asides.ProviderError)
    assert (outcome.raised.status, outcome.partial) == (status, None)
    assert "after 4 attempts" in str(outcome.raised)
    assert len(open_stage.requests) == 4


@both_shells
def test_M2_a_connection_that_is_hung_up_is_tried_again(shell: Shell, stage: OpenStage) -> None:
    open_stage = stage(Refuse(), Refuse(reset=True), Say(text="42"))
    outcome = shell(open_stage.url)
    assert outcome.reply is not None
    assert len(open_stage.requests) == 3


@both_shells
@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, asides.BadRequest), (401, asides.AuthError), (403, asides.AuthError), (404, asides.NotFound)],
)
def test_M2_a_refusal_that_stays_is_not_tried_again(
    shell: Shell, status: int, kind: type[asides.ProviderError], stage: OpenStage
) -> None:
    open_stage = stage(Fail(status=status, message="no"), Say(text="42"))
    outcome = shell(open_stage.url)
    assert type(outcome.raised) is kind
    assert len(open_stage.requests) == 1


# --- M3: never twice ----------------------------------------------------------------------------------------------


@both_shells
@pytest.mark.parametrize("reset", [False, True])
def test_M3_nothing_is_tried_again_once_an_event_was_delivered(shell: Shell, reset: bool, stage: OpenStage) -> None:
    open_stage = stage(Say(text="the answer " * 20, cut_after=900, reset=reset, pause=0.002), Say(text="42"))
    outcome = shell(open_stage.url)
    assert isinstance(outcome.raised, asides.ConnectionLost)
    assert len(open_stage.requests) == 1
    assert outcome.events
    assert outcome.raised.partial is not None
    assert outcome.raised.partial == asides.fold(outcome.events) == outcome.partial
    assert outcome.raised.partial.text.startswith("the answer")
    assert not outcome.raised.partial.complete


# --- M4: silence --------------------------------------------------------------------------------------------------


@both_shells
def test_M4_silence_before_the_first_byte_ends_the_wait(shell: Shell, stage: OpenStage) -> None:
    open_stage = stage(Hang())
    began = time.monotonic()
    outcome = shell(open_stage.url, timeout=asides.Timeout(connect=30, first_byte=0.15))
    assert isinstance(outcome.raised, asides.IdleTimeout)
    assert "0.15 s" in str(outcome.raised)
    assert "first_byte" in str(outcome.raised)
    assert time.monotonic() - began < 3
    assert len(open_stage.requests) == 1


@both_shells
def test_M4_a_head_without_a_body_is_silence_too(shell: Shell, stage: OpenStage) -> None:
    outcome = shell(stage(Say(text="42", hang_after=0)).url, timeout=asides.Timeout(first_byte=0.15, idle=30))
    assert isinstance(outcome.raised, asides.IdleTimeout)
    assert "first_byte" in str(outcome.raised)
    assert outcome.partial is None


@pytest.mark.requirement("FT-46")
@both_shells
def test_M4_silence_in_the_middle_ends_the_wait_and_keeps_what_came(shell: Shell, stage: OpenStage) -> None:
    open_stage = stage(Say(text="the answer " * 20, hang_after=900))
    began = time.monotonic()
    outcome = shell(open_stage.url, timeout=asides.Timeout(first_byte=30, idle=0.15))
    assert isinstance(outcome.raised, asides.IdleTimeout)
    assert "fell silent for 0.15 s" in str(outcome.raised)
    assert outcome.raised.partial is not None
    assert outcome.raised.partial.text.startswith("the answer")
    assert time.monotonic() - began < 3


@both_shells
def test_M4_a_reply_that_keeps_coming_is_never_too_slow(shell: Shell, stage: OpenStage) -> None:
    open_stage = stage(Say(text="a b c d e f g h i j k l", piece=2, pause=0.05))
    outcome = shell(open_stage.url, timeout=asides.Timeout(first_byte=5, idle=0.3))
    assert outcome.reply is not None


@both_shells
def test_M4_a_sign_of_life_counts_although_it_says_nothing(shell: Shell) -> None:
    def answer(_: Any, connection: Any) -> bool:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for _ in range(6):
            connection.sendall(b": keep-alive\n\n")
            time.sleep(0.1)
        connection.sendall(stream({"content": "42"}))
        return False

    with serving(answer) as server:
        outcome = shell(server.url, timeout=asides.Timeout(first_byte=5, idle=0.4))
    assert outcome.reply is not None
    assert outcome.reply.text == "42"


@both_shells
def test_M4_the_whole_call_can_be_bounded(shell: Shell, stage: OpenStage) -> None:
    open_stage = stage(Say(text="word " * 400, piece=5, pause=0.02))
    began = time.monotonic()
    outcome = shell(open_stage.url, timeout=asides.Timeout(total=0.5))
    assert isinstance(outcome.raised, asides.IdleTimeout)
    assert "total" in str(outcome.raised)
    assert outcome.raised.partial is not None
    assert outcome.raised.partial.text.startswith("word")
    assert time.monotonic() - began < 3


@both_shells
def test_M4_attempts_and_waits_count_toward_the_whole_call(shell: Shell, stage: OpenStage) -> None:
    open_stage = stage(Fail(status=503, retry_after=30))
    began = time.monotonic()
    outcome = shell(open_stage.url, timeout=asides.Timeout(total=0.5))
    assert isinstance(outcome.raised, asides.IdleTimeout)
    assert time.monotonic() - began < 3
    assert len(open_stage.requests) == 1


@both_shells
def test_M4_a_server_that_never_hangs_up_behind_its_last_word_is_not_waited_for(shell: Shell, stage: OpenStage) -> None:
    body = stream({"content": "42"})
    began = time.monotonic()
    outcome = shell(stage(Raw(body=body + b": and so on", hang_after=len(body))).url)
    assert outcome.reply is not None
    assert (outcome.reply.text, outcome.reply.warnings) == ("42", ())
    assert time.monotonic() - began < 3


# --- C8: a stream that ends too early -----------------------------------------------------------------------------


@both_shells
def test_C8_a_stream_that_is_closed_cleanly_without_its_end_is_an_error(shell: Shell, stage: OpenStage) -> None:
    body = sse(chunk({"reasoning_content": "plan"}), chunk({"content": "half"}), done=False)
    outcome = shell(stage(Raw(body=body)).url)
    assert isinstance(outcome.raised, asides.ConnectionLost)
    assert outcome.raised.partial is not None
    assert outcome.raised.partial.text == "half"
    assert outcome.raised.partial.thinking
    assert not any(isinstance(event, asides.ReplyEnded) for event in outcome.events)


CUT = Say(text="word " * 100, piece=5, cut_after=4000)


def test_C8_what_was_received_before_the_cut_counts_also_when_it_is_read_later(stage: OpenStage) -> None:
    with asides.Client(base_url=stage(CUT).url) as client, client.stream(MODEL, "?") as events:
        next(events)
        time.sleep(0.2)
        with pytest.raises(asides.ConnectionLost) as lost:
            list(events)
    check_all_came(lost.value.partial)


async def test_C8_what_was_received_before_the_cut_counts_also_when_it_is_read_later_awaiting(stage: OpenStage) -> None:
    async with asides.AsyncClient(base_url=stage(CUT).url) as client, client.stream(MODEL, "?") as events:
        await anext(events)
        await asyncio.sleep(0.2)
        with pytest.raises(asides.ConnectionLost) as lost:
            await events.drain()
    check_all_came(lost.value.partial)


def check_all_came(partial: asides.Reply | None) -> None:
    assert partial is not None
    # A delta of five characters takes some 220 bytes on the wire.
    assert len(partial.text) > 4000 / 300 * 5
    assert not partial.complete


# --- C10: cancelling ----------------------------------------------------------------------------------------------

SLOW = Say(thinking="thinking aloud", text="word " * 200, piece=5, pause=0.01)


def test_C10_leaving_a_stream_closes_its_connection_and_keeps_what_came(stage: OpenStage) -> None:
    open_stage = stage(SLOW)
    with asides.Client() as client:
        with client.stream(MODEL, "?", base_url=open_stage.url, api_key=KEY) as events:
            for event in events:
                if isinstance(event, asides.TextDelta):
                    break
        assert open_stage.wait_until(lambda: open_stage.closed_early == 1)
        check_cut_short(events.partial, lambda: events.reply)
        # The connection was not clean and did not go back to be used again.
        client.ask(MODEL, "?", base_url=open_stage.url, api_key=KEY)
        assert open_stage.connections == 2


async def test_C10_leaving_a_stream_closes_its_connection_and_keeps_what_came_awaiting(stage: OpenStage) -> None:
    open_stage = stage(SLOW)
    async with asides.AsyncClient() as client:
        async with client.stream(MODEL, "?", base_url=open_stage.url, api_key=KEY) as events:
            async for event in events:
                if isinstance(event, asides.TextDelta):
                    break
        assert await asyncio.to_thread(open_stage.wait_until, lambda: open_stage.closed_early == 1)
        check_cut_short(events.partial, lambda: events.reply)
        await client.ask(MODEL, "?", base_url=open_stage.url, api_key=KEY)
        assert open_stage.connections == 2


def check_cut_short(partial: asides.Reply | None, reply: Callable[[], asides.Reply]) -> None:
    assert partial is not None
    assert (partial.text, partial.complete) == ("word ", False)
    assert partial.thinking
    assert partial.thinking.text == "thinking aloud"
    with pytest.raises(asides.TransportError, match="closed before the reply was whole") as closed:
        reply()
    assert closed.value.partial == partial


@pytest.mark.parametrize(
    "scene",
    [Say(text="word " * 20, hang_after=900), Hang(), Fail(status=503, retry_after=30)],
    ids=["body", "head", "wait"],
)
def test_C10_another_thread_can_close_a_stream_whatever_it_waits_for(scene: Scene, stage: OpenStage) -> None:
    open_stage = stage(scene)
    ended = threading.Event()
    with asides.Client() as client:
        stream = client.stream(MODEL, "?", base_url=open_stage.url, api_key=KEY)

        def read() -> None:
            list(stream)
            ended.set()

        reader = threading.Thread(target=read)
        reader.start()
        assert open_stage.wait_until(lambda: len(open_stage.requests) == 1)
        time.sleep(0.2)  # to be inside the wait
        stream.close()
        assert ended.wait(3), "the reader still waits"
        reader.join()
    assert open_stage.wait_until(lambda: open_stage.open_connections == 0)
    assert len(open_stage.requests) == 1


@pytest.mark.parametrize(
    "scene",
    [Say(text="word " * 20, hang_after=900), Hang(), Fail(status=503, retry_after=30)],
    ids=["body", "head", "wait"],
)
@pytest.mark.parametrize("how", ["close", "cancel"])
async def test_C10_a_task_can_be_cancelled_or_its_stream_closed_whatever_it_waits_for(
    scene: Scene, how: str, stage: OpenStage
) -> None:
    open_stage = stage(scene)

    async def read(stream: asides.AsyncStream) -> None:
        async with stream:
            async for _ in stream:
                pass

    async with asides.AsyncClient() as client:
        stream = client.stream(MODEL, "?", base_url=open_stage.url, api_key=KEY)
        reader = asyncio.create_task(read(stream))
        assert await asyncio.to_thread(open_stage.wait_until, lambda: len(open_stage.requests) == 1)
        await asyncio.sleep(0.2)
        if how == "cancel":
            reader.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(reader, 3)
        else:
            await stream.close()
            await asyncio.wait_for(reader, 3)
        if isinstance(scene, Say):
            assert stream.partial is not None
            assert stream.partial.text.startswith("word")
        if not isinstance(scene, Fail):
            assert await asyncio.to_thread(open_stage.wait_until, lambda: open_stage.open_connections == 0)
    assert len(open_stage.requests) == 1


def test_C10_an_interrupt_closes_the_connection_and_the_partial_stays(stage: OpenStage) -> None:
    open_stage = stage(Say(text="word " * 20, hang_after=900))
    interrupt = threading.Timer(0.3, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT))
    interrupt.start()
    with asides.Client() as client, client.stream(MODEL, "?", base_url=open_stage.url, api_key=KEY) as events:
        with pytest.raises(KeyboardInterrupt):
            list(events)
        assert open_stage.wait_until(lambda: open_stage.closed_early == 1)
        assert events.partial is not None
        assert events.partial.text.startswith("word")
    interrupt.join()


# --- M5: what is nobody's business --------------------------------------------------------------------------------


@both_shells
@pytest.mark.parametrize(
    "scene",
    [
        Say(thinking="canary-thought", text="canary-answer"),
        Say(thinking="canary-thought " * 20, text="canary-answer", cut_after=700),
        Fail(status=401, message=f"Incorrect API key provided: {KEY}"),
        Fail(status=500, message=f"Bearer {KEY} was not understood", headers={"Retry-After-Ms": "1"}),
        Garbage(),
        Raw(body=b"data: {nonsense canary-thought\n\n"),
        Raw(status=307, headers={"Location": f"https://elsewhere.example/?key={KEY}"}),
        Refuse(),
        Hang(),
    ],
    ids=lambda scene: type(scene).__name__,
)
def test_M5_no_key_prompt_thinking_or_answer_in_messages_reprs_and_logs(
    shell: Shell, scene: Scene, stage: OpenStage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    outcome = shell(stage(scene).url, "canary-prompt", retries=1, timeout=0.3)
    shown = [*map(repr, outcome.events), repr(outcome.reply), repr(outcome.partial)]
    if outcome.error is not None:
        shown += [str(outcome.error), repr(outcome.error), *traceback.format_exception(outcome.error)]
        shown += [str(outcome.error.__cause__), str(outcome.error.__context__)]
    logged = [record.getMessage() for record in caplog.records]
    assert [text for text in [*shown, *logged] if KEY in text] == []
    private = ("canary-prompt", "canary-thought", "canary-answer")
    assert [text for text in logged if any(word in text for word in private)] == []
    assert [text for text in shown if "canary-prompt" in text or "canary-thought" in text] == []


def test_M5_the_key_goes_over_the_wire_and_nowhere_else(stage: OpenStage) -> None:
    open_stage = stage(Say(text="42"), key=KEY)
    client = asides.Client(api_key=KEY, base_url=open_stage.url)
    stream = client.stream(MODEL, "?")
    assert KEY not in "".join([repr(client), repr(stream), repr(vars(client)), repr(vars(stream))])
    assert stream.reply.text == "42"
    client.close()
    assert open_stage.requests[0].headers["authorization"] == f"Bearer {KEY}"
    explained = asides.explain(MODEL, "?", base_url=open_stage.url, api_key=KEY)
    assert explained.headers["Authorization"] == "Bearer ***"
    assert KEY not in repr(explained) + explained.to_text()
