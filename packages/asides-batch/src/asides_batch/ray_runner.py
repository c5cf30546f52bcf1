"""`run(job)`: answers a batch on a Ray cluster. Ray Data keeps a pool of actors, each with an `AsyncClient` of its own.

The actors claim requests from the ledger and write the answers there, as several processes of a live batch do; limits
are shared through it. Ray Data places the actors, and starts one again that was lost. Nothing of a row goes through
Ray.
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from asides.values.errors import AsidesError, ConfigError
from asides_batch.batch_job import BatchJob, JobSetup
from asides_batch.batch_plan import decode_plan
from asides_batch.leases import name_machine
from asides_batch.ray_actor import DROP, FINISH, Coordinator, Invitation, RowAnswerer, ShareResult
from asides_batch.ray_cluster import check_ledger, count_cpus, describe_problem, open_cluster

_LOOK_SECONDS = 1.0
_DROP_SECONDS = 10.0
"""How long actors have to write what was answered, when a run is dropped."""
_PLACE_SECONDS = 60.0
"""After this time without an actor, a note says that Ray has not placed any."""


async def run(job: BatchJob) -> None:
    """Answer what waits in the ledger. When cancelled, what is under way is dropped, and what was answered is kept."""
    setup = job.setup.prepare_to_send()
    driver = _Driver(job, setup)
    thread = threading.Thread(target=driver.drive, name="asides-ray", daemon=True)
    thread.start()
    try:
        while not driver.ended.is_set():
            if job.stop.is_set():
                driver.order(FINISH)
            await job.refresh()
            driver.note_waiting()
            await _wait(driver.ended, _LOOK_SECONDS, job.stop if not driver.ordered else None)
    except asyncio.CancelledError:
        driver.order(DROP)
        await _wait(driver.ended, _DROP_SECONDS)
        raise
    except BaseException:
        driver.order(DROP)
        raise
    await job.refresh()
    if job.error is None:
        job.error = driver.error
    job.has_reached_max_cost = driver.has_reached_max_cost and job.error is None
    if driver.bug is not None:
        raise driver.bug


async def _wait(ended: asyncio.Event, seconds: float, stop: asyncio.Event | None = None) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in (ended, stop) if event is not None]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


class _Driver:
    """Everything that waits for Ray, in a thread of its own: Ray's calls block, and its start takes seconds."""

    def __init__(self, job: BatchJob, setup: JobSetup) -> None:
        self._job = job
        self._setup = setup
        self._loop = asyncio.get_running_loop()
        self._run = decode_plan(job.record.plan).run
        self._lock = threading.Lock()
        self._coordinator: Any = None
        self._began: float | None = None
        self._is_placed = False
        self.ordered = 0
        self.ended = asyncio.Event()
        self.error: AsidesError | None = None
        self.bug: BaseException | None = None
        self.has_reached_max_cost = False

    def order(self, order: int) -> None:
        """Tell the actors to finish, or to drop what is under way."""
        with self._lock:
            if order > self.ordered:
                self.ordered = order
                if self._coordinator is not None:
                    self._coordinator.order.remote(order)

    def note_waiting(self) -> None:
        """Note once that Ray has placed no actor for a minute: the cluster may be full."""
        if self._began is None or self._is_placed or self._loop.time() - self._began < _PLACE_SECONDS:
            return
        self._is_placed = True
        if self._job.on_note is not None:
            self._job.on_note("Ray has placed no actor yet: the cluster has no free CPU, or its nodes are starting")

    # --- in the thread ------------------------------------------------------------------------------------------------

    def drive(self) -> None:
        """Run the actors until they have ended."""
        try:
            cpus = self._run.actors or os.cpu_count() or 1
            with open_cluster(self._run.ray_address, cpus) as ray:
                check_ledger(ray, self._setup.place)
                self._drive(ray)
        except AsidesError as error:
            self.error = self.error or error
        except BaseException as bug:  # noqa: BLE001 - raised where the run is awaited
            self.bug = bug
        finally:
            _call(self._loop, self.ended.set)

    def _drive(self, ray: Any) -> None:
        if self.ordered:
            return  # It was stopped while Ray was starting.
        actors = self._count_actors(ray)
        coordinator = ray.remote(Coordinator).options(num_cpus=0, **_place_beside_driver(ray)).remote()
        ray.get(coordinator.open.remote(Invitation(self._setup, name_machine())))
        with self._lock:
            self._coordinator = coordinator
            if self.ordered:
                ray.get(coordinator.order.remote(self.ordered))
        self._began = self._loop.time()
        watch = threading.Thread(target=self._wait_for_actors, args=(ray, coordinator), daemon=True)
        watch.start()
        try:
            for row in build_shares(ray, coordinator, actors).iter_rows():
                self._note(ShareResult(row["error"], bool(row["has_reached_max_cost"])))
        except AsidesError:
            raise
        except Exception as problem:  # noqa: BLE001 - Ray raises errors of many kinds
            raise self.error or ConfigError(
                f"the actors of Ray have failed: {describe_problem(problem)}. Every answer is in the ledger. See"
                " that asides is installed on every node, in the same version, and resume the batch."
            ) from None
        finally:
            with self._lock:
                self._coordinator = None
            ray.kill(coordinator)

    def _note(self, end: ShareResult) -> None:
        self.has_reached_max_cost |= end.has_reached_max_cost
        error = end.read_error()
        if error is not None and self.error is None:
            self.error = error
            self.order(FINISH)

    def _count_actors(self, ray: Any) -> int:
        """As many as are asked for, or one for each CPU; no more than have something to do."""
        most = math.ceil(max(self._job.record.left, 1) / self._job.concurrency)
        return min(self._run.actors or count_cpus(ray), most)

    def _wait_for_actors(self, ray: Any, coordinator: Any) -> None:
        try:
            ray.get(coordinator.wait_for_actor.remote())
            self._is_placed = True
        except Exception:  # noqa: BLE001 - the run has ended meanwhile
            return


def build_shares(ray: Any, coordinator: Any, actors: int) -> Any:
    """A dataset with one share for each actor of a pool. Ray replaces a lost actor, however often."""
    shares = ray.data.from_items([{"share": number} for number in range(actors)], override_num_blocks=actors)
    shares.context.enable_progress_bars = False
    shares.context.print_on_execution_start = False
    return shares.map_batches(
        RowAnswerer,
        fn_constructor_args=(coordinator,),
        batch_size=1,
        num_cpus=1,
        compute=ray.data.ActorPoolStrategy(size=actors, max_tasks_in_flight_per_actor=1),
    )


def _place_beside_driver(ray: Any) -> dict[str, Any]:
    """The options that place an actor on the node of the driver, so that it does not end before the driver does."""
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
    return {"scheduling_strategy": strategy(ray.get_runtime_context().get_node_id(), soft=True)}


def _call(loop: asyncio.AbstractEventLoop, work: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # The loop is closed: nothing waits any more.
        loop.call_soon_threadsafe(work)
