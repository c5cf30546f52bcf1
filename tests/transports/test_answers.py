"""`ask_many` and its awaiting twin over sockets."""

from __future__ import annotations

import asyncio
import itertools
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any, TypeAlias

import pytest

import asides
from asides.dialects.dialect import HttpRequest, ServedRequest
from asides.flows.many import Progress
from asides.transports.protocols import Response
from asides.values.errors import AsidesError
from asides.values.reply import Reply
from asides_stage.stage import Fail, Hang, Say, Scene, Stage
from tests.decoding import whole
from tests.loopback import ReceivedRequest, serving, whole_response

MODEL = "openai-compatible:m"
Pairs: TypeAlias = list[tuple[int, "Reply | AsidesError"]]
AskMany: TypeAlias = Callable[..., Pairs]


def many_sync(stage_url: str, prompts: Iterable[Any], **options: Any) -> Pairs:
    with asides.Client(base_url=stage_url, retries=0) as client:
        return list(client.ask_many(MODEL, prompts, **options))


def many_async(stage_url: str, prompts: Iterable[Any], **options: Any) -> Pairs:
    async def run() -> Pairs:
        async with asides.AsyncClient(base_url=stage_url, retries=0) as client:
            return [pair async for pair in client.ask_many(MODEL, prompts, **options)]

    return asyncio.run(run())


both = pytest.mark.parametrize("many", [many_sync, many_async])


def last_text(request: ServedRequest) -> str:
    return request.prompt.messages[-1].text


def parrot(request: ServedRequest) -> Scene:
    text = last_text(request)
    if "fail" in text:
        return Fail(status=400, message="not this one")
    return Say(text=f"re {text}", delay=0.05 if "slow" in text else 0.0)


def texts(pairs: Pairs) -> dict[int, str]:
    return {index: outcome.text if isinstance(outcome, Reply) else type(outcome).__name__ for index, outcome in pairs}


@both
def test_each_question_gets_its_reply_or_its_error(many: AskMany) -> None:
    with Stage(parrot) as stage:
        asked = [f"{'fail' if number % 5 == 0 else 'ask'} {number}" for number in range(23)]
        got = texts(many(f"{stage.url}/v1", asked))
        assert got == {n: "BadRequest" if n % 5 == 0 else f"re ask {n}" for n in range(23)}
        assert len(stage.requests) == 23


@both
def test_a_prompt_takes_every_form_and_a_bad_one_fails_alone(many: AskMany) -> None:
    with Stage(parrot) as stage:
        prompts = [
            "a",
            asides.user("b"),
            [{"role": "user", "content": "c"}],
            42,
            [],
            asides.Conversation(messages=["d"]),
        ]
        got = texts(many(f"{stage.url}/v1", prompts))
        assert got == {0: "re a", 1: "re b", 2: "re c", 3: "ConfigError", 4: "ConfigError", 5: "re d"}
        assert len(stage.requests) == 4


@both
def test_as_many_are_asked_at_once_as_was_said_and_no_more(many: AskMany) -> None:
    lock, barrier, seen = threading.Lock(), threading.Barrier(4), []
    open_now = 0

    def answer(_: ReceivedRequest, connection: socket.socket) -> bool:
        nonlocal open_now
        with lock:
            open_now += 1
            seen.append(open_now)
        barrier.wait(10)
        with lock:
            open_now -= 1
        connection.sendall(whole_response(whole({"content": "here"})))
        return True

    with serving(answer) as server:
        got = texts(many(server.url, [str(number) for number in range(12)], concurrency=4))
    assert got == dict.fromkeys(range(12), "here")
    assert max(seen) == 4


@both
def test_an_error_of_the_iterable_is_raised_behind_the_replies(many: AskMany) -> None:
    def prompts() -> Iterator[str]:
        yield "slow one"
        yield "slow two"
        raise ZeroDivisionError("of the caller")

    with Stage(parrot) as stage:
        done: list[Progress] = []
        with pytest.raises(ZeroDivisionError, match="of the caller"):
            many(f"{stage.url}/v1", prompts(), on_progress=done.append)
        assert done[-1] == Progress(2, 0, 0, None)


@both
def test_an_error_of_on_progress_is_raised_behind_the_replies(many: AskMany) -> None:
    calls: list[Progress] = []
    got: Pairs = []

    def show(progress: Progress) -> None:
        calls.append(progress)
        raise ZeroDivisionError("of the caller")

    async def ask_async(url: str) -> None:
        async with asides.AsyncClient(base_url=url, retries=0) as client:
            async for pair in client.ask_many(MODEL, ["slow a", "slow b", "c"], on_progress=show):
                got.append(pair)

    def ask(url: str) -> None:
        if many is many_async:
            asyncio.run(ask_async(url))
        with asides.Client(base_url=url, retries=0) as client:
            for pair in client.ask_many(MODEL, ["slow a", "slow b", "c"], on_progress=show):
                got.append(pair)

    with Stage(parrot) as stage, pytest.raises(ZeroDivisionError, match="of the caller"):
        ask(f"{stage.url}/v1")
    assert texts(got) == {0: "re slow a", 1: "re slow b", 2: "re c"}
    assert len(calls) == 1


def test_several_threads_share_the_answers() -> None:
    got: Pairs = []
    with Stage(parrot) as stage, asides.Client(base_url=f"{stage.url}/v1", retries=0) as client:
        answers = client.ask_many(MODEL, [f"slow {number}" for number in range(20)], concurrency=4)
        threads = [threading.Thread(target=lambda: got.extend(answers)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
    assert sorted(index for index, _ in got) == list(range(20))


def test_several_tasks_share_the_answers_and_another_may_close_them() -> None:
    async def run(url: str) -> tuple[Pairs, Pairs]:
        async with asides.AsyncClient(base_url=url, retries=0) as client:
            answers = client.ask_many(MODEL, [f"slow {number}" for number in range(20)], concurrency=4)
            both_halves = await asyncio.gather(_list(answers), _list(answers))
            answers = client.ask_many(MODEL, ["hang"])
            waiting = asyncio.create_task(_list(answers))
            while len(stage.requests) < 21:
                await asyncio.sleep(0.01)
            await answers.close()
            return [pair for half in both_halves for pair in half], await asyncio.wait_for(waiting, 5)

    async def _list(answers: Any) -> Pairs:
        return [pair async for pair in answers]

    with Stage(lambda request: Hang() if "hang" in last_text(request) else parrot(request)) as stage:
        shared, closed = asyncio.run(run(f"{stage.url}/v1"))
    assert sorted(index for index, _ in shared) == list(range(20))
    assert closed == []


def test_nothing_is_asked_after_another_thread_closed_them_while_a_prompt_was_awaited() -> None:
    taken, go_on = threading.Event(), threading.Event()
    numbers: list[int] = []

    def prompts() -> Iterator[str]:
        for number in itertools.count():
            numbers.append(number)
            taken.set()
            go_on.wait(10)
            yield f"ask {number}"

    with Stage(parrot) as stage, asides.Client(base_url=f"{stage.url}/v1", retries=0) as client:
        answers = client.ask_many(MODEL, prompts())
        thread = threading.Thread(target=lambda: list(answers))
        thread.start()
        taken.wait(10)
        answers.close()
        go_on.set()
        thread.join(10)
        assert not thread.is_alive()
        assert (numbers, list(stage.requests)) == ([0], [])


class _Broken:
    """A transport with a bug."""

    def open(self, request: HttpRequest, timeout: asides.Timeout) -> Response:
        raise ZeroDivisionError("a bug")

    def close(self) -> None:
        """Nothing is open."""


def test_a_bug_is_raised_and_not_taken_for_an_answer() -> None:
    with pytest.raises(ZeroDivisionError, match="a bug"):
        list(asides.Client(transport=_Broken()).ask_many(MODEL, ["a"], base_url="http://127.0.0.1:1/v1"))


@both
def test_progress_is_told_after_each(many: AskMany) -> None:
    seen: list[Progress] = []
    with Stage(parrot) as stage:
        many(f"{stage.url}/v1", ["a", "fail", "c"], concurrency=1, on_progress=seen.append)
    assert [(told.done, told.failed, told.total) for told in seen] == [(1, 0, 3), (2, 1, 3), (3, 1, 3)]


@both
def test_what_is_wrong_with_all_is_raised_before_the_first_is_taken(many: AskMany) -> None:
    taken: list[int] = []

    def prompts() -> Iterator[str]:
        taken.append(1)
        yield "a"

    with Stage(parrot) as stage:
        with pytest.raises(asides.InvalidThinking):
            many(f"{stage.url}/v1", prompts(), thinking="much")
        with pytest.raises(TypeError, match="did you mean temperature"):
            many(f"{stage.url}/v1", prompts(), temprature=1)
        with pytest.raises(asides.ConfigError, match="prompts must be a list"):
            many(f"{stage.url}/v1", "a")
        assert (taken, stage.requests) == ([], [])


def _count_prompts(taken: list[int]) -> Iterator[str]:
    for number in itertools.count():
        taken.append(number)
        yield f"first {number}" if number == 0 else f"hang {number}"


def hang(request: ServedRequest) -> Scene:
    return Say(text="here", delay=0.3) if "first" in last_text(request) else Hang()


def busy_threads() -> int:
    return sum(thread.name == "asides-tool" for thread in threading.enumerate())


def test_leaving_early_closes_what_is_open() -> None:
    taken: list[int] = []
    with Stage(hang) as stage, asides.Client(base_url=f"{stage.url}/v1") as client:
        began = time.monotonic()
        for index, outcome in client.ask_many(MODEL, _count_prompts(taken), concurrency=4):
            assert (index, isinstance(outcome, Reply)) == (0, True)
            break
        assert time.monotonic() - began < 5
        assert len(taken) <= 5
        assert stage.wait_until(lambda: stage.closed_early >= 3, 5)
        client.close()
        assert stage.wait_until(lambda: stage.open_connections == 0, 5)


def test_leaving_early_leaves_no_task() -> None:
    taken: list[int] = []

    async def run(stage: Stage) -> None:
        async with asides.aio.ask_many(
            MODEL, _count_prompts(taken), concurrency=4, base_url=f"{stage.url}/v1"
        ) as pairs:
            async for index, _ in pairs:
                assert index == 0
                break
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with Stage(hang) as stage:
        asyncio.run(run(stage))
        assert len(taken) <= 5
        assert stage.wait_until(lambda: stage.open_connections == 0, 5)


def test_a_cancelled_task_leaves_no_task() -> None:
    async def run(stage: Stage) -> None:
        async def read() -> None:
            async for _ in asides.aio.ask_many(MODEL, _count_prompts([]), base_url=f"{stage.url}/v1"):
                pass

        task = asyncio.create_task(read())
        await asyncio.to_thread(stage.wait_until, lambda: len(stage.requests) >= 8, 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with Stage(hang) as stage:
        asyncio.run(run(stage))
        assert stage.wait_until(lambda: stage.open_connections == 0, 5)


def test_another_thread_closes_it() -> None:
    with Stage(Hang()) as stage, asides.Client(base_url=f"{stage.url}/v1") as client:
        answers = client.ask_many(MODEL, ["a", "b"])
        threading.Timer(0.3, answers.close).start()
        assert list(answers) == []
        assert stage.wait_until(lambda: stage.open_connections == 0, 5)


def test_threads_end_or_wait_for_the_next_job() -> None:
    with Stage(Hang()) as stage, asides.Client(base_url=f"{stage.url}/v1") as client:
        before = busy_threads()
        for _ in range(3):
            with client.ask_many(MODEL, ["a"] * 6, concurrency=6) as answers:
                threading.Timer(0.2, answers.close).start()
                assert list(answers) == []
        # Not 18: the threads of the first six are used again.
        assert busy_threads() - before <= 12


def test_replies_arrive_while_the_next_prompt_is_awaited() -> None:
    async def run(stage: Stage) -> list[str]:
        seen: list[str] = []
        answered = asyncio.Event()

        async def prompts() -> AsyncIterator[str]:
            yield "one"
            async with asyncio.timeout(5):
                await answered.wait()
            yield "two"

        async for _, outcome in asides.aio.ask_many(MODEL, prompts(), base_url=f"{stage.url}/v1"):
            assert isinstance(outcome, Reply)
            seen.append(outcome.text)
            answered.set()
        return seen

    with Stage(parrot) as stage:
        assert asyncio.run(run(stage)) == ["re one", "re two"]


_INTERRUPTED = """
import sys, asides
try:
    for pair in asides.ask_many("openai-compatible:m", (str(n) for n in range(10**9)), base_url=sys.argv[1]):
        print("answered", flush=True)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_ctrl_c_ends_it_at_once() -> None:
    with Stage(Hang()) as stage:
        child = subprocess.Popen(
            [sys.executable, "-c", _INTERRUPTED, f"{stage.url}/v1"], stdout=subprocess.PIPE, text=True
        )
        try:
            assert stage.wait_until(lambda: len(stage.requests) == 8, 20)
            child.send_signal(signal.SIGINT)
            out, _ = child.communicate(timeout=10)
        finally:
            child.kill()
            child.wait()
        assert (out, child.returncode) == ("stopped\n", 0)
        assert len(stage.requests) == 8


def test_the_shared_client_answers_too() -> None:
    with Stage(parrot) as stage:
        got = texts(list(asides.ask_many(MODEL, ["a", "b"], base_url=f"{stage.url}/v1")))
    assert got == {0: "re a", 1: "re b"}


@both
def test_several_models_serve_each_question(many: AskMany) -> None:
    def answer(request: ServedRequest) -> Scene:
        return (
            Fail(status=503) if request.prompt.messages[-1].text == "b" and request.model == "m" else Say(text="here")
        )

    with Stage(answer) as stage, asides.Client(base_url=f"{stage.url}/v1", retries=0) as client:
        got = dict(client.ask_many([MODEL, "openai-compatible:n"], ["a", "b"]))
    warned = {
        index: [notice.code for notice in reply.warnings] for index, reply in got.items() if isinstance(reply, Reply)
    }
    assert warned == {0: [], 1: ["fell_back"]}
