"""`open_job`: opens a batch of a ledger as a `BatchJob`, with a client of its own. `JobSetup`: what a process needs.

A run opens one (any_batch), and so does each process that takes part in it (ray_actor).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from asides import __version__
from asides.aio import AsyncClient
from asides.database import Database
from asides.flows.build_call import CallBuilder
from asides.options import Options
from asides.providers.credentials import Secret
from asides.providers.provider import Provider
from asides.settings import GatewayTable, Settings
from asides.values.errors import ConfigError
from asides.values.money import to_billionths
from asides_batch.batch_job import BatchJob, OnRecord
from asides_batch.batch_plan import decode_plan
from asides_batch.estimate_requests import RequestEstimator
from asides_batch.ledger import Ledger
from asides_batch.ledger_values import BatchRecord, RunLimits

USUAL_CONCURRENCY = 16
_USUAL_RETRIES = 5


class JobSetup(msgspec.Struct, frozen=True):
    """What a process needs to take part in a batch. It may hold a key and a password, so its repr shows neither."""

    place: str
    """Where the ledger is."""
    name: str
    """The name of the batch in it."""
    version: int
    """The version of the rows and the plan."""
    settings: Settings
    providers: tuple[Provider, ...] = ()
    own: Options = {}
    """The options that are not in the ledger: a key, timeouts."""
    program: str = __version__
    """The version of asides."""

    def __repr__(self) -> str:
        return f"JobSetup(name={self.name!r})"

    def prepare_to_send(self) -> JobSetup:
        """The setup for another process, without settings that no request needs. Raises if a key cannot be sent."""
        settings = msgspec.structs.replace(
            self.settings, gateway=GatewayTable(), mcp=(), templates={}, routes={}, store=None, origins={}
        )
        own: dict[str, Any] = {**self.own}
        key = own.get("api_key")
        if type(key) is Secret:
            own["api_key"] = key.reveal()
        elif key is not None and not isinstance(key, str):
            raise ConfigError(
                f"an api_key that is a {type(key).__name__} cannot be given to other processes. Give it as text,"
                " or set the provider's variable in the environment of these processes."
            )
        return msgspec.structs.replace(self, settings=settings, own=Options(**own))  # type: ignore[typeddict-item]


@asynccontextmanager
async def open_job(
    setup: JobSetup,
    database: Database,
    record: BatchRecord,
    *,
    on_record: OnRecord | None = None,
    on_note: Callable[[str], object] | None = None,
) -> AsyncGenerator[BatchJob]:
    """A run of a batch by this process, with the plan and the limits of its ledger."""
    kept = decode_plan(record.plan)
    run = kept.run
    builder = CallBuilder(providers=setup.providers, settings=setup.settings)
    estimator = RequestEstimator(kept.plan, builder, needs_price=run.max_cost is not None)
    limits = RunLimits(
        run.rpm,
        run.tpm,
        None if run.max_cost is None else to_billionths(run.max_cost),
        estimator.estimate if run.tpm or run.max_cost is not None else None,
    )
    async with AsyncClient(settings=setup.settings, providers=setup.providers) as client:
        yield BatchJob(
            database,
            Ledger(setup.name),
            record,
            kept.plan,
            client,
            settings=setup.settings,
            own=setup.own,
            limits=limits,
            concurrency=run.concurrency or USUAL_CONCURRENCY,
            retries=_USUAL_RETRIES if run.retries is None else run.retries,
            on_record=on_record,
            setup=setup,
            on_note=on_note,
        )
