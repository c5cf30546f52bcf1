"""The answers to many questions as they arrive: `Answers` with threads, `AsyncAnswers` with tasks."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Generator, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias, cast

from asides.flows.call import Call
from asides.flows.many import OpenQuestions
from asides.transports.async_ import AsyncStream
from asides.transports.protocols import AsyncTransport, Transport
from asides.transports.sync import Stream
from asides.transports.tool_executor import start_thread
from asides.values.errors import AsidesError
from asides.values.fork_guard import ForkGuard
from asides.values.reply import Reply
from asides.values.result import Result

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from asides.transports.run_state import RunState
    from asides.transports.run_sync import RunStream

    Answered = TypeVar("Answered", default=Reply[Any])
else:
    from typing import TypeVar

    Answered = TypeVar("Answered")

Build: TypeAlias = "Callable[[], Call | RunState[Any]]"
"""Builds the call of one question, or the run of an agent. An AsidesError that it raises is the answer to it alone."""
_Outcome: TypeAlias = "Reply[Any] | Result[Any] | BaseException"
_Ended: TypeAlias = "queue.SimpleQueue[tuple[int, _Outcome] | None]"
# How often a wait looks whether this is a forked child, without the threads. It also lets Ctrl-C in on Windows.
_POLL_SECONDS = 0.5


class Answers(Generic[Answered]):
    """Pairs of an index and a Reply, or the AsidesError of this question, as they arrive. Runs of an agent: a Result.

    The first question is sent when the first pair is read. Leave the `with`, call `close`, or drop the iterator: open
    connections close immediately. An error outside of a question, such as one of your iterable, is raised when the
    questions in progress have ended.
    """

    def __init__(self, calls: Iterable[Build], transport: Transport, batch: OpenQuestions) -> None:
        self._ended: _Ended = queue.SimpleQueue()
        self._batch = batch
        self._pairs = _answer(iter(calls), transport, batch, self._ended)
        self._turn = threading.RLock()

    def __iter__(self) -> Iterator[tuple[int, Answered | AsidesError]]:
        return self

    def __next__(self) -> tuple[int, Answered | AsidesError]:
        with self._turn:  # Several threads may share the pairs.
            return cast("tuple[int, Answered | AsidesError]", next(self._pairs))

    def close(self) -> None:
        """Close open connections and ask nothing more, from any thread."""
        self._batch.exhaust()
        self._ended.put(None)
        with suppress(ValueError):  # Another thread waits for the next pair, and is woken.
            self._pairs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _answer(
    calls: Iterator[Build], transport: Transport, batch: OpenQuestions, ended: _Ended
) -> Generator[tuple[int, object], None, None]:
    running: dict[int, Stream[Any] | RunStream[Any] | None] = {}
    forks = ForkGuard()
    try:
        while True:
            while batch.has_room_for_more:
                try:
                    build = next(calls)
                except StopIteration:
                    batch.exhaust()
                    break
                except Exception as problem:  # noqa: BLE001 - it is the caller's, and raised when the others have ended
                    batch.fail(problem)
                    break
                if not batch.has_room_for_more:
                    break  # Another thread has closed it meanwhile.
                index = batch.take()
                if batch.error is None:
                    running[index] = _start(index, build, transport, ended)
                else:
                    running[index] = None
                    ended.put((index, batch.error))
            if not running:
                batch.end()
                return
            outcome = _wait(ended, forks)
            if outcome is None:
                return
            del running[outcome[0]]
            pair = batch.finish(*outcome)
            if pair is not None:
                yield pair
    finally:
        for stream in running.values():
            if stream is not None:
                stream.close()


def _start(index: int, build: Build, transport: Transport, ended: _Ended) -> Stream[Any] | RunStream[Any] | None:
    """Start a question in a thread. None: it failed before anything was sent."""
    stream: Stream[Any] | RunStream[Any]
    try:
        built = build()
        if isinstance(built, Call):
            stream = Stream(built, transport)
        else:
            from asides.transports.run_sync import RunStream

            stream = RunStream(built, transport)
        start_thread(partial(_ask, index, stream, ended))
    except Exception as problem:  # noqa: BLE001 - the batch decides whose it is
        ended.put((index, problem))
        return None
    return stream


def _ask(index: int, stream: Stream[Any] | RunStream[Any], ended: _Ended) -> None:
    outcome: _Outcome
    try:
        outcome = stream.reply if isinstance(stream, Stream) else stream.result
    except BaseException as problem:  # noqa: BLE001 - nothing else catches it in this thread
        outcome = problem
    ended.put((index, outcome))


def _wait(ended: _Ended, forks: ForkGuard) -> tuple[int, _Outcome] | None:
    while True:
        with suppress(queue.Empty):
            return ended.get(timeout=_POLL_SECONDS)
        if forks.is_in_child:
            raise RuntimeError("the process was forked while questions were open, and only its parent has the threads.")


class AsyncAnswers(Generic[Answered]):
    """Pairs of an index and a Reply, or the AsidesError of this question, as they arrive. Runs of an agent: a Result.

    The first question is sent when the first pair is read. Leave the `async with` or await `close` to close open
    connections immediately. An error outside of a question, such as one of your iterable, is raised when the questions
    in progress have ended.
    """

    def __init__(
        self,
        calls: Iterable[Build] | AsyncIterable[Build],
        transport: AsyncTransport,
        batch: OpenQuestions,
        *,
        ends_transport: bool = False,
    ) -> None:
        self._closed = asyncio.Event()
        self._pairs = _answer_async(calls, transport, batch, self._closed, ends_transport)
        self._turn = asyncio.Lock()

    def __aiter__(self) -> AsyncIterator[tuple[int, Answered | AsidesError]]:
        return self

    async def __anext__(self) -> tuple[int, Answered | AsidesError]:
        async with self._turn:  # Several tasks may share the pairs.
            return cast("tuple[int, Answered | AsidesError]", await anext(self._pairs))

    async def close(self) -> None:
        """Close open connections and ask nothing more, from any task of the event loop."""
        self._closed.set()
        async with self._turn:  # A task that waits for the next pair is woken.
            await self._pairs.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _answer_async(
    calls: Iterable[Build] | AsyncIterable[Build],
    transport: AsyncTransport,
    batch: OpenQuestions,
    closed: asyncio.Event,
    ends_transport: bool,
) -> AsyncGenerator[tuple[int, object], None]:
    source = calls if isinstance(calls, AsyncIterable) else _iterate(calls)
    waiting = aiter(source)
    running: dict[asyncio.Task[_Outcome], int] = {}
    taking: asyncio.Task[Build | BaseException | None] | None = None
    closing = asyncio.create_task(closed.wait())
    try:
        while True:
            if taking is None and batch.has_room_for_more:
                # A task: the next prompt may take long, and replies arrive meanwhile.
                taking = asyncio.create_task(_take(waiting))
            if taking is None and not running:
                batch.end()
                return
            await asyncio.wait((closing, *_list_tasks(running, taking)), return_when=asyncio.FIRST_COMPLETED)
            if closed.is_set():
                return
            if taking is not None and taking.done():
                taken, taking = taking.result(), None
                if taken is None:
                    batch.exhaust()
                elif isinstance(taken, BaseException):
                    batch.fail(taken)
                else:
                    running[asyncio.create_task(_ask_async(taken, transport, batch))] = batch.take()
                continue
            for task in [task for task in running if task.done()]:
                pair = batch.finish(running.pop(task), task.result())
                if pair is not None:
                    yield pair
    finally:
        left = [closing, *_list_tasks(running, taking)]
        for open_task in left:
            open_task.cancel()
        try:
            await asyncio.wait(left)
        finally:  # Also after a second cancellation, which ends the wait.
            if ends_transport:
                await transport.close()


def _list_tasks(running: Iterable[asyncio.Task[Any]], taking: asyncio.Task[Any] | None) -> list[asyncio.Task[Any]]:
    return [*running] if taking is None else [*running, taking]


async def _iterate(calls: Iterable[Build]) -> AsyncGenerator[Build, None]:
    for build in calls:
        yield build


async def _take(calls: AsyncIterator[Build]) -> Build | BaseException | None:
    """The builder of the next call; None at the end; an error of the caller's iterable as a value."""
    try:
        return await anext(calls)
    except StopAsyncIteration:
        return None
    except Exception as problem:  # noqa: BLE001 - it is the caller's, and raised when the others have ended
        return problem


async def _ask_async(build: Build, transport: AsyncTransport, batch: OpenQuestions) -> _Outcome:
    if batch.error is not None:
        return batch.error
    try:
        built = build()
        if isinstance(built, Call):
            return await AsyncStream[Any](built, transport).drain()
        from asides.transports.run_async import AsyncRunStream

        async with AsyncRunStream(built, transport) as run:
            return await run.drain()
    except Exception as problem:  # noqa: BLE001 - the batch decides whose it is
        return problem
