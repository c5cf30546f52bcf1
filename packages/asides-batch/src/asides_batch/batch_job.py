"""`BatchJob`: what every runner of a batch needs. It writes outcomes to the ledger, claims requests, and encodes
replies. A run opens one (`open_job`), and so does each process that takes part in it; it needs a `JobSetup`.

A runner is a module with `run(job)`, such as `live_runner`, which sends single requests, several in parallel.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any, Protocol, TypeAlias, TypeVar, cast

import msgspec

from asides import __version__
from asides.aio import AsyncClient
from asides.batch_rows import Question
from asides.database import Database, StoreUnavailable
from asides.flows.build_call import CallBuilder
from asides.flows.reply_fields import ThinkingVisibility, encode_answer, encode_failed, is_answered
from asides.options import Options
from asides.providers.credentials import Secret
from asides.providers.provider import Provider
from asides.settings import GatewayTable, Settings
from asides.values.errors import AsidesError, ConfigError
from asides.values.json_form import to_json_value, write_json
from asides.values.money import to_billionths
from asides.values.reply import Reply
from asides_batch.batch_plan import StoredPlan, decode_plan, decode_request
from asides_batch.batch_status import VendorBatchStatus
from asides_batch.estimate_requests import RequestEstimator
from asides_batch.leases import create_owner, has_ended
from asides_batch.ledger import Ledger
from asides_batch.ledger_values import BatchRecord, Claim, ExchangeResult, Outcome, RunLimits, Via

_Result = TypeVar("_Result")
OnRecord: TypeAlias = Callable[[BatchRecord], object]
# How long to wait for a database that restarts: until then, new answers are only in memory.
_OUTAGE_SECONDS = 300.0
_FIRST_PAUSE = 0.5
_USUAL_CONCURRENCY = 16
_USUAL_RETRIES = 5
_RUNNERS: dict[Via, str] = {
    "live": "asides_batch.live_runner",
    "vendor": "asides_batch.vendor.vendor_runner",
    "ray": "asides_batch.ray_runner",
}


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


class BatchJob:
    """One run of a batch by this process. `stop` ends it: nothing more is asked, and what is under way is awaited."""

    def __init__(
        self,
        setup: JobSetup,
        database: Database,
        record: BatchRecord,
        client: AsyncClient,
        *,
        on_record: OnRecord | None = None,
        on_note: Callable[[str], object] | None = None,
    ) -> None:
        kept = decode_plan(record.plan)
        run = kept.run
        self.setup = setup
        """What another process needs to take part in the batch."""
        self.database = database
        self.ledger = Ledger(setup.name)
        self.record = record
        """The batch, as the ledger had it last."""
        self.plan = kept.plan
        self.client = client
        self.limits = _build_limits(setup, kept)
        self.concurrency = run.concurrency or _USUAL_CONCURRENCY
        self.retries = _USUAL_RETRIES if run.retries is None else run.retries
        """How often a request is tried again after an error that may pass."""
        self.owner = create_owner()
        self.stop = asyncio.Event()
        self.error: AsidesError | None = None
        """The error that concerns every request, and ended the run."""
        self.has_reached_max_cost = False
        self.vendor_batches: tuple[VendorBatchStatus, ...] = ()
        """The batches at a vendor that have not ended."""
        self.on_note = on_note
        self._version = record.version
        self._on_record = on_record
        self._visibilities: dict[str, ThinkingVisibility] = {}

    # --- the ledger ---------------------------------------------------------------------------------------------------

    async def exchange(
        self,
        outcomes: Sequence[Outcome],
        want: int,
        *,
        held: Collection[str] = (),
        released: Sequence[str] = (),
        pause: float = 0.0,
        renew: bool = False,
    ) -> ExchangeResult:
        """Write outcomes, and claim requests. When this returns, the outcomes are stored. `held`: the hashes of the
        requests that are being asked, in case the answer of the database is lost. Waits while the database restarts.
        """
        is_lost = False

        async def try_once() -> ExchangeResult:
            nonlocal is_lost
            if is_lost:
                await self.database.run_async(
                    lambda: self.ledger.release(self.owner, {*held, *(outcome.hash for outcome in outcomes)})
                )
            is_lost = True
            return await self.database.run_async(
                lambda: self.ledger.exchange(
                    self.owner,
                    outcomes,
                    want,
                    self.limits,
                    version=self._version,
                    released=released,
                    pause=pause,
                    renew=renew,
                )
            )

        exchange = await wait_for_store(try_once)
        self._note(exchange.record)
        return exchange

    async def release(self) -> None:
        """Release the requests that this run has claimed and not answered."""
        await wait_for_store(lambda: self.database.run_async(lambda: self.ledger.release(self.owner)))

    async def release_ended(self) -> int:
        """Release the requests of owners that have ended. Returns how many are still claimed."""
        return await wait_for_store(lambda: self.database.run_async(lambda: self.ledger.release_ended(has_ended)))

    async def refresh(self) -> BatchRecord:
        """Read the batch from the ledger again."""
        found = await wait_for_store(lambda: self.database.run_async(self.ledger.find, writes=False))
        if found is not None:
            self._note(found)
        return self.record

    async def count_sent(self) -> int:
        """The requests that are in batches of a vendor."""
        return await wait_for_store(lambda: self.database.run_async(self.ledger.count_sent, writes=False))

    def _note(self, record: BatchRecord) -> None:
        self.record = record
        if self._on_record is not None:
            self._on_record(record)

    def show_vendor_batches(self, batches: tuple[VendorBatchStatus, ...]) -> None:
        """Report the batches at a vendor."""
        if batches != self.vendor_batches:
            self.vendor_batches = batches
            self._note(self.record)

    @property
    def is_changed(self) -> bool:
        """Whether another process has loaded other rows or another plan."""
        return self.record.version != self._version

    # --- requests and replies -----------------------------------------------------------------------------------------

    def read(self, claim: Claim) -> Question:
        """The row of a claim."""
        return decode_request(claim.request, claim.number)

    def encode(self, claim: Claim, outcome: Reply | AsidesError, question: Question | None = None) -> Outcome:
        """What the ledger keeps of a reply, or of the error of this request alone. Thinking only where it is shown.

        `question`: the row of the claim, if it was read before.
        """
        reply = outcome if isinstance(outcome, Reply) else outcome.partial
        if isinstance(outcome, Reply):
            models = self.plan.find_models(self.read(claim) if question is None else question)
            fields = encode_answer(outcome, self._find_visibility(models), option="the output that was asked for")
        else:
            fields = to_json_value(encode_failed(outcome))
        if reply is None:
            return Outcome(claim.hash, False, encode_fields(fields), estimated=claim.tokens)
        usage, cost = reply.usage, reply.cost
        return Outcome(
            claim.hash,
            is_answered(fields),
            encode_fields(fields),
            usage.input or 0,
            usage.output or 0,
            usage.thinking or 0,
            None if cost is None else to_billionths(cost.amount),
            claim.tokens,
        )

    def _find_visibility(self, models: tuple[str, ...]) -> ThinkingVisibility:
        """Of several models each must be allowed, since any of them may answer."""
        key = "\n".join(models)
        if key not in self._visibilities:
            each = [ThinkingVisibility(self.setup.settings, model) for model in models]
            self._visibilities[key] = next((one for one in each if not one.is_allowed), each[0])
        return self._visibilities[key]


def _build_limits(setup: JobSetup, kept: StoredPlan) -> RunLimits:
    run = kept.run
    builder = CallBuilder(providers=setup.providers, settings=setup.settings)
    estimator = RequestEstimator(kept.plan, builder, needs_price=run.max_cost is not None)
    return RunLimits(
        run.rpm,
        run.tpm,
        None if run.max_cost is None else to_billionths(run.max_cost),
        estimator.estimate if run.tpm or run.max_cost is not None else None,
    )


@asynccontextmanager
async def open_job(
    setup: JobSetup,
    database: Database,
    record: BatchRecord,
    *,
    on_record: OnRecord | None = None,
    on_note: Callable[[str], object] | None = None,
) -> AsyncGenerator[BatchJob]:
    """A run of a batch by this process, with a client of its own."""
    async with AsyncClient(settings=setup.settings, providers=setup.providers) as client:
        yield BatchJob(setup, database, record, client, on_record=on_record, on_note=on_note)


def encode_fields(fields: dict[str, Any]) -> bytes:
    """The fields of an output row for the ledger. The id of a row is its own; that of the reply gets another name."""
    renamed = {"response_id" if name == "id" else name: value for name, value in fields.items()}
    return write_json(renamed).encode()


def build_changed_error() -> ConfigError:
    """The error of a run whose batch was reloaded by another process."""
    return ConfigError(
        "another process has given this batch other rows, another model or other options. Wait for it, and run "
        "the batch again."
    )


async def wait_for_store(work: Callable[[], Awaitable[_Result]]) -> _Result:
    """Run work on a ledger; while its server does not answer, try again for some minutes."""
    loop = asyncio.get_running_loop()
    deadline, pause = loop.time() + _OUTAGE_SECONDS, _FIRST_PAUSE
    while True:
        try:
            return await work()
        except StoreUnavailable:
            if loop.time() > deadline:
                raise
        await asyncio.sleep(pause)
        pause = min(pause * 2, 10.0)


# --- runners ---------------------------------------------------------------------------------------------


class Runner(Protocol):
    """A module that answers a batch."""

    async def run(self, job: BatchJob) -> None:
        """Answer what waits in the ledger, until nothing is left, the job is stopped, or money runs out.

        An error of one request is its outcome. An error that concerns every request goes to `job.error`. Claims
        without an answer are released.
        """
        ...


def find_runner(via: str) -> Runner:
    """The runner with this name. Raises a ConfigError for an unknown one, or one that is not installed."""
    if via not in _RUNNERS:
        raise ConfigError(f"unknown via {via!r}. Use {', '.join(_RUNNERS)}.")
    try:
        return cast("Runner", import_module(_RUNNERS[via]))
    except ModuleNotFoundError as missing:
        if missing.name != _RUNNERS[via]:
            raise
        raise ConfigError(f"this version of asides cannot run a batch via {via}. Use live.") from None
