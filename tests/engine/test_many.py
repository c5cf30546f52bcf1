"""Many at once, some of them cut short: every stream is whole or closed, and nobody gets the answer of another."""

from __future__ import annotations

import asyncio
import random
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import asides
from asides.options import Options
from tests.engine.engines import MODEL, PRODUCT, Essence, busy_slots, essence, server
from tests.local.processes import needs_engine

pytestmark = [needs_engine, pytest.mark.engine]

# More than the engine would write in the time that these tests allow it.
ENDLESS = Options(max_tokens=1900, thinking="high", extra={"ignore_eos": True})
# Longer than what one read can bring, so that the answer is still far when the first of it is seen.
LONG_THOUGHT = "What is 482 * 739?"
IDLE_SECONDS = 1.5


def sums(count: int) -> list[tuple[str, int]]:
    """Sums of two-digit numbers, always the same ones, and what they come to."""
    chance = random.Random(20261115)
    drawn: list[tuple[str, int]] = []
    for place in range(count):
        low, high = sorted(chance.sample(range(10, 100), 2))
        drawn.append(
            (
                (f"What is {low} + {high}?", low + high),
                (f"What is {high} - {low}?", high - low),
                (f"What is {low} * {high}?", low * high),
            )[place % 3]
        )
    return drawn


SUMS = sums(100)


def result_of(reply: asides.Reply) -> int | None:
    figures = re.findall(r"-?\d+", reply.text.replace(",", ""))
    return int(figures[-1]) if figures else None


async def test_a_hundred_sums_asked_by_fifty_streams_and_eight_threads_at_once() -> None:
    """97 of 100 have to be right, each with its working apart; the two shells give the same results."""
    server()
    awaited, blocking = SUMS[:58], SUMS[50:]

    async def ask(client: asides.AsyncClient, question: str) -> asides.Reply:
        async with client.stream(MODEL, question) as events:
            return await events.drain()

    async with asides.AsyncClient() as client:
        streamed = await asyncio.gather(*(ask(client, question) for question, _ in awaited[:50]))
        again = await asyncio.gather(*(client.ask(MODEL, question) for question, _ in awaited[50:]))

    with asides.Client() as threads_share, ThreadPoolExecutor(8) as pool:
        whole = await asyncio.to_thread(
            lambda: list(pool.map(lambda entry: threads_share.ask(MODEL, entry[0]), blocking))
        )
    # Word for word only when asked one at a time: how many it computes together shifts the engine's last digits.
    assert list(map(result_of, again)) == list(map(result_of, whole[: len(again)]))
    replies = [*streamed, *whole]
    right = [result_of(reply) == expected for reply, (_, expected) in zip(replies, SUMS, strict=True)]
    assert sum(right) >= 97
    assert all(reply.complete and reply.outcome == "answered" for reply in replies)
    for reply, (question, expected) in zip(replies, SUMS, strict=True):
        assert reply.thinking, question
        numbers = re.findall(r"\d+", question)
        assert all(number in reply.thinking.text for number in numbers), "the thought of another question"
        assert result_of(reply) != expected or str(expected) in reply.thinking.text


def idle_within(seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if busy_slots() == 0:
            return True
        time.sleep(0.01)
    return False


def test_a_stream_that_is_closed_inside_a_thought_frees_the_engine() -> None:
    with asides.stream(MODEL, LONG_THOUGHT, **ENDLESS) as events:
        for event in events:
            if isinstance(event, asides.ThinkingDelta):
                break
        assert busy_slots() == 1
    assert idle_within(IDLE_SECONDS)
    assert events.partial is not None
    text, thinking, *_ = essence(events.partial)
    assert text == ""
    assert thinking
    assert not events.partial.complete
    # The engine is as good as before.
    assert "1081" in asides.ask(MODEL, PRODUCT).text


async def test_a_task_that_is_cancelled_inside_a_thought_frees_the_engine() -> None:
    server()
    thinking = asyncio.Event()

    async def ask(client: asides.AsyncClient) -> None:
        async with client.stream(MODEL, LONG_THOUGHT, **ENDLESS) as events:
            async for event in events:
                if isinstance(event, asides.ThinkingDelta):
                    thinking.set()

    async with asides.AsyncClient() as client:
        task = asyncio.create_task(ask(client))
        await asyncio.wait_for(thinking.wait(), 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(idle_within, IDLE_SECONDS)


def test_a_question_asked_twice_gets_the_same_reply() -> None:
    first, second = (essence(asides.ask(MODEL, PRODUCT)) for _ in range(2))
    assert isinstance(first, Essence)
    assert first == second


async def test_one_connection_after_another_is_good() -> None:
    """This engine closes connections that it promised to keep. No question may meet one of them, and have to be asked
    again."""
    question = "What is 2 + 3?"
    async with asides.AsyncClient(retries=0) as client:
        for _ in range(12):
            async with client.stream(MODEL, question) as events:
                assert "5" in (await events.drain()).text
