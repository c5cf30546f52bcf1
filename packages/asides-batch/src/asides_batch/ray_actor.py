"""What runs on a Ray cluster: `RowAnswerer`, which takes a share of a batch, and `Coordinator`, which stops it.

A share is not a list of rows: its actor claims requests from the ledger until nothing is left. So no rows are lost when
an actor is killed. Both are plain classes, which the driver (ray_runner) gives to Ray. Nothing here loads Ray.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from asides import __version__
from asides.database.postgres_url import is_postgres_url
from asides.values.errors import AsidesError, ConfigError
from asides_batch import live_runner
from asides_batch.batch_job import BatchJob, JobSetup, build_changed_error, open_job, wait_for_store
from asides_batch.leases import name_machine
from asides_batch.ledger import Ledger
from asides_batch.ledger_tables import open_ledger_database

RUN, FINISH, DROP = 0, 1, 2
"""The orders for actors: go on, finish what is under way, or drop it."""
_LOOK_SECONDS = 30.0


class Invitation(msgspec.Struct, frozen=True):
    """What the coordinator gives an actor that joins. Its repr shows no key and no password."""

    setup: JobSetup
    machine: str
    """The machine of the driver."""


class Coordinator:
    """An actor beside the driver. It gets the invitation by a method: Ray stores the arguments of constructors, and not
    those of methods, so that keys stay in memory.
    """

    def __init__(self) -> None:
        self._invitation: Invitation | None = None
        self._order = RUN
        self._changed = asyncio.Event()
        self._joined = asyncio.Event()

    async def open(self, invitation: Invitation) -> None:
        """Let actors take part."""
        self._invitation = invitation

    async def join(self) -> Invitation | None:
        """The invitation for an actor; None if there is nothing to do any more."""
        self._joined.set()
        return self._invitation if self._order == RUN else None

    async def wait_for_actor(self) -> None:
        """Wait until an actor takes part."""
        await self._joined.wait()

    async def order(self, order: int) -> None:
        """Tell all actors what to do."""
        self._order = max(self._order, order)
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait_for_order(self, known: int) -> int:
        """Wait for an order other than `known`, 30 seconds at most. Returns the order that holds now."""
        if self._order <= known:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._changed.wait()
        return self._order


class ShareResult(msgspec.Struct, frozen=True):
    """How a share ended."""

    error: bytes = b""
    """An AsidesError, pickled; empty if there is none."""
    has_reached_max_cost: bool = False

    def read_error(self) -> AsidesError | None:
        """The error that ended the share; None if there is none."""
        error = pickle.loads(self.error) if self.error else None  # noqa: S301 - an actor of this run wrote it
        return error if isinstance(error, AsidesError) else None


class RowAnswerer:
    """Ray Data keeps one in each actor, and calls it for each share. `coordinator`: the handle of a `Coordinator`."""

    def __init__(self, coordinator: Any) -> None:
        self._coordinator = coordinator
        self._loop = asyncio.Runner()

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        """Take a share, and return how it ended, as a batch of Ray Data."""
        end = self._loop.run(take_share(self._coordinator))
        return {"share": list(batch["share"]), "error": [end.error], "has_reached_max_cost": [end.has_reached_max_cost]}


async def take_share(coordinator: Any) -> ShareResult:
    """Answer what waits in the ledger, until nothing is left or the coordinator says so."""
    invitation: Invitation | None = await coordinator.join.remote()
    if invitation is None:
        return ShareResult()
    try:
        return await _take_part(coordinator, invitation)
    except AsidesError as error:
        return ShareResult(_encode_error(error))


async def _take_part(coordinator: Any, invitation: Invitation) -> ShareResult:
    setup = invitation.setup
    _check_worker(invitation)
    database = await asyncio.to_thread(open_ledger_database, setup.place)
    try:
        ledger = Ledger(setup.name)
        record = await wait_for_store(lambda: database.run_async(ledger.find, writes=False))
        if record is None or record.version != setup.version:
            raise build_changed_error()
        async with open_job(setup, database, record) as job:
            await _answer(coordinator, job)
            return ShareResult(b"" if job.error is None else _encode_error(job.error), job.has_reached_max_cost)
    finally:
        await database.close_async()


async def _answer(coordinator: Any, job: BatchJob) -> None:
    work = asyncio.ensure_future(live_runner.run(job))
    watch = asyncio.ensure_future(_watch(coordinator, job))
    try:
        await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():  # The order is DROP, or the coordinator is gone.
            work.cancel()
        with suppress(asyncio.CancelledError):
            await work
    finally:
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)


async def _watch(coordinator: Any, job: BatchJob) -> None:
    """Follow orders. Returns on DROP. Raises when the coordinator, and so the driver, is gone."""
    order = RUN
    while order < DROP:
        order = await coordinator.wait_for_order.remote(order)
        if order >= FINISH:
            job.stop.set()


def _check_worker(invitation: Invitation) -> None:
    setup = invitation.setup
    if setup.program != __version__:
        raise ConfigError(
            f"a worker of Ray has asides {__version__}, and this process has {setup.program}. Install the same "
            "version on every node."
        )
    if not is_postgres_url(setup.place) and name_machine() != invitation.machine:
        raise ConfigError(
            "the ledger is a SQLite file, and a worker of Ray is on another machine. Put the ledger into "
            "PostgreSQL, with ledger or the setting store, as postgresql://user@host/name."
        )


def _encode_error(error: AsidesError) -> bytes:
    """An error for the driver, without content. An error in the settings names the machine."""
    error.partial, error.result, error.earlier = None, None, ()
    if isinstance(error, ConfigError) and error.args:
        error.args = (f"{error.args[0]} (on a worker of Ray, {socket.gethostname()})", *error.args[1:])
    try:
        return pickle.dumps(error)
    except Exception:  # noqa: BLE001 - an attribute that cannot be sent
        return pickle.dumps(AsidesError(f"{type(error).__name__}: {error}"))
