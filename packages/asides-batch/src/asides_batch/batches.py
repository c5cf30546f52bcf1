"""`Batch` and `AsyncBatch`: many questions with a ledger, so that no answered question is sent or paid for again."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, TypeVar, Unpack

from asides.options import ModelLike, Options, SharedOptions
from asides.providers.provider import Provider
from asides.settings import Settings
from asides_batch.batch_core import BatchCore, OnStatus, RowsLike, read_max_cost
from asides_batch.batch_plan import RunSettings
from asides_batch.batch_status import BatchStatus
from asides_batch.check_rows import BatchCheck, check_rows
from asides_batch.join_results import BatchResult, read_results
from asides_batch.ledger_values import Via

_Result = TypeVar("_Result")


class BatchOptions(SharedOptions, total=False):
    """The options of `ask` that a batch has too. The form of the answers is `schema`."""


class _AnyBatch:
    """The arguments of both."""

    def __init__(
        self,
        rows: RowsLike | None = None,
        *,
        output: str | os.PathLike[str],
        model: ModelLike | None = None,
        via: Via | None = None,
        schema: Any = None,
        concurrency: int | None = None,
        rpm: float | None = None,
        tpm: float | None = None,
        max_cost: float | str | Decimal | None = None,
        ledger: str | os.PathLike[str] | None = None,
        name: str | None = None,
        actors: int | None = None,
        ray_address: str | None = None,
        keep_thinking: bool | None = None,
        settings: Settings | None = None,
        providers: Sequence[Provider] = (),
        on_progress: OnStatus | None = None,
        on_note: Callable[[str], object] | None = None,
        replace: bool = False,
        fill_prompt: Callable[[str], str] | None = None,
        **options: Unpack[BatchOptions],
    ) -> None:
        run = RunSettings(
            concurrency=concurrency,
            rpm=rpm,
            tpm=tpm,
            max_cost=read_max_cost(max_cost),
            retries=options.get("retries"),
            keep_thinking=keep_thinking,
            actors=actors,
            ray_address=ray_address,
        )
        shared = Options(**options)  # type: ignore[typeddict-item]
        if schema is not None:
            shared["output"] = schema
        self._core = BatchCore(
            rows,
            output,
            model=model,
            via=via,
            run=run,
            ledger=ledger,
            name=name,
            settings=settings,
            providers=providers,
            on_progress=on_progress,
            on_note=on_note,
            replace=replace,
            fill_prompt=fill_prompt,
            options=shared,
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(output={str(self._core.output)!r})"


class Batch(_AnyBatch):
    """A batch: `rows` is a file or a list of questions, `output` the file of the answers, in the same order.

    What was answered is in a ledger beside the output (`ledger`: another file, or a postgresql:// URL). However a run
    ends, the next one asks only what has no answer. `rpm`, `tpm`: requests and tokens a minute. `max_cost`: a limit in
    dollars, never passed. `replace`: ask again what was asked of another model. `schema`: the form of the answers.
    `via`: "live" (the default), "vendor" or "ray"; `resume` goes on as the batch began. `actors`, `ray_address`: how
    many actors of which Ray cluster take part. Iterate for the results, in order. Other options are those of `ask`.
    """

    def run(self) -> BatchStatus:
        """Ask what has no answer, and write the output. Rows that failed before are asked again."""
        return _run_in_loop(self._core.run)

    def resume(self) -> BatchStatus:
        """Go on with the rows, the model and the options of the ledger. The rows need not be given."""
        return _run_in_loop(partial(self._core.run, resumes=True))

    def check(self) -> BatchCheck:
        """Read all rows and estimate what they take. Nothing is sent, and no ledger is made."""
        return check_rows(self._core)

    @property
    def status(self) -> BatchStatus:
        """How far it is, whoever runs it."""
        return self._core.read_status()

    def cancel(self) -> BatchStatus:
        """Stop it, whoever runs it: what is under way is finished, and `resume` goes on."""
        return _run_in_loop(self._core.cancel)

    def __iter__(self) -> Iterator[BatchResult]:
        self._core.read_status()  # Raises if there is no such batch.
        return read_results(self._core.database, self._core.ledger)

    def close(self) -> None:
        """Close the ledger. The batch may still be used."""
        self._core.close()


class AsyncBatch(_AnyBatch):
    """A batch for event loops: see `Batch`."""

    async def run(self) -> BatchStatus:
        """Ask what has no answer, and write the output. Rows that failed before are asked again."""
        return await self._core.run()

    async def resume(self) -> BatchStatus:
        """Go on with the rows, the model and the options of the ledger. The rows need not be given."""
        return await self._core.run(resumes=True)

    def stop(self) -> bool:
        """Ask nothing more in this process. `run` returns when what is under way has ended. False: nothing is."""
        job = self._core.job
        if job is not None:
            job.stop.set()
        return job is not None

    async def check(self) -> BatchCheck:
        """Read all rows and estimate what they take. Nothing is sent, and no ledger is made."""
        return await asyncio.to_thread(check_rows, self._core)

    async def status(self) -> BatchStatus:
        """How far it is, whoever runs it."""
        return await asyncio.to_thread(self._core.read_status)

    async def cancel(self) -> BatchStatus:
        """Stop it, whoever runs it: what is under way is finished, and `resume` goes on."""
        return await self._core.cancel()

    async def __aiter__(self) -> AsyncIterator[BatchResult]:
        await self.status()
        results = read_results(self._core.database, self._core.ledger)
        while (result := await asyncio.to_thread(next, results, None)) is not None:
            yield result

    async def close(self) -> None:
        """Close the ledger. The batch may still be used."""
        await asyncio.to_thread(self._core.close)


def _run_in_loop(work: Callable[[], Coroutine[Any, Any, _Result]]) -> _Result:
    """Run work in an event loop of its own; in a thread, where the caller is in a loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work())
    outcome: list[_Result] = []
    problems: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(asyncio.run(work()))
        except BaseException as problem:  # noqa: BLE001 - raised in the caller's thread
            problems.append(problem)

    thread = threading.Thread(target=run, name="asides-batch")
    thread.start()
    thread.join()
    if problems:
        raise problems[0]
    return outcome[0]
