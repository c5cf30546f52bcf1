"""`Batch` and `AsyncBatch`: many questions with a ledger, so that no answered question is sent or paid for again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import partial
from typing import Any, TypeVar

from asides_batch.any_batch import AnyBatch
from asides_batch.batch_status import BatchStatus
from asides_batch.check_rows import BatchCheck
from asides_batch.join_results import BatchResult, read_results

_Result = TypeVar("_Result")


class Batch(AnyBatch):
    """A batch: `rows` is a file or a list of questions, `output` the file of the answers, in the same order.

    What was answered is in a ledger beside the output (`ledger`: another file, or a postgresql:// URL). However a run
    ends, the next one asks only what has no answer. `rpm`, `tpm`: requests and tokens a minute. `max_cost`: a limit in
    dollars, never passed. `replace`: ask again what was asked of another model. `schema`: the form of the answers.
    `via`: "live" (the default), "vendor" or "ray"; `resume` continues as the batch began. `actors`, `ray_address`: how
    many actors, on which Ray cluster. Iterate for the results, in order. Other options are those of `ask`.
    """

    def run(self) -> BatchStatus:
        """Ask what has no answer, and write the output. Rows that failed before are asked again."""
        return _run_in_loop(self._run)

    def resume(self) -> BatchStatus:
        """Go on with the rows, the model and the options of the ledger. The rows need not be given."""
        return _run_in_loop(partial(self._run, resumes=True))

    def check(self) -> BatchCheck:
        """Read all rows and estimate what they take. Nothing is sent, and no ledger is made."""
        return self._check()

    @property
    def status(self) -> BatchStatus:
        """Progress of the batch, also if another process runs it."""
        return self._read_status()

    def cancel(self) -> BatchStatus:
        """Stop it, also if another process runs it: open requests finish, and `resume` continues."""
        return _run_in_loop(self._cancel)

    def __iter__(self) -> Iterator[BatchResult]:
        self._read_status()  # Raises if there is no such batch.
        return read_results(self._database, self._ledger)

    def close(self) -> None:
        """Close the ledger. The batch may still be used."""
        self._close()


class AsyncBatch(AnyBatch):
    """A batch for event loops: see `Batch`."""

    async def run(self) -> BatchStatus:
        """Ask what has no answer, and write the output. Rows that failed before are asked again."""
        return await self._run()

    async def resume(self) -> BatchStatus:
        """Go on with the rows, the model and the options of the ledger. The rows need not be given."""
        return await self._run(resumes=True)

    def stop(self) -> bool:
        """Ask nothing more in this process. `run` returns when what is under way has ended. False: nothing is."""
        job = self._job
        if job is not None:
            job.stop.set()
        return job is not None

    async def check(self) -> BatchCheck:
        """Read all rows and estimate what they take. Nothing is sent, and no ledger is made."""
        return await asyncio.to_thread(self._check)

    async def status(self) -> BatchStatus:
        """Progress of the batch, also if another process runs it."""
        return await asyncio.to_thread(self._read_status)

    async def cancel(self) -> BatchStatus:
        """Stop it, also if another process runs it: open requests finish, and `resume` continues."""
        return await self._cancel()

    async def __aiter__(self) -> AsyncIterator[BatchResult]:
        await self.status()
        results = read_results(self._database, self._ledger)
        while (result := await asyncio.to_thread(next, results, None)) is not None:
            yield result

    async def close(self) -> None:
        """Close the ledger. The batch may still be used."""
        await asyncio.to_thread(self._close)


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
