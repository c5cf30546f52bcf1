"""What `Batch` and `AsyncBatch` share: where the ledger is, how a run begins and ends, and its status."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, TypeAlias, Unpack

import msgspec

from asides.batch_rows import LEDGER_SUFFIX, FillPrompt
from asides.database import Database, StoreError
from asides.database.postgres_url import describe_url, is_postgres_url
from asides.datasets.parquet import clean_row
from asides.flows.build_call import CallBuilder
from asides.flows.many import check_call
from asides.options import ModelLike, Options, SharedOptions
from asides.providers.batch_facts import require_batch_facts
from asides.providers.provider import Provider
from asides.settings import Settings, load_settings
from asides.values.errors import ConfigError
from asides_batch.batch_job import BatchJob, JobSetup, build_changed_error, find_runner, open_job
from asides_batch.batch_plan import BatchPlan, RunSettings, decode_plan, encode_plan, read_plan
from asides_batch.batch_status import BatchStatus, build_status
from asides_batch.check_rows import BatchCheck, check_rows
from asides_batch.estimate_requests import RequestEstimator
from asides_batch.join_results import check_output, write_output
from asides_batch.leases import has_ended
from asides_batch.ledger import Ledger, list_records
from asides_batch.ledger_tables import open_ledger_database
from asides_batch.ledger_values import BatchRecord, Via, create_record
from asides_batch.load_rows import RowSource, load_rows, spool
from asides_batch.read_status import read_status

RowsLike: TypeAlias = "str | os.PathLike[str] | Iterable[Any]"
OnStatus: TypeAlias = Callable[[BatchStatus], object]


class BatchOptions(SharedOptions, total=False):
    """The options of `ask` that a batch has too. The form of the answers is `schema`."""


class AnyBatch:
    """One batch: its rows, its output and its ledger."""

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
        fill_prompt: FillPrompt | None = None,
        **options: Unpack[BatchOptions],
    ) -> None:
        self._given_run = RunSettings(
            concurrency=concurrency,
            rpm=rpm,
            tpm=tpm,
            max_cost=_read_max_cost(max_cost),
            retries=options.get("retries"),
            keep_thinking=keep_thinking,
            actors=actors,
            ray_address=ray_address,
        )
        self._given_run.check()
        if on_progress is not None and not callable(on_progress):
            raise ConfigError("on_progress is a function that takes a BatchStatus.")
        self._rows = rows
        self._output = Path(output).expanduser()
        self._options = Options(**options)  # type: ignore[typeddict-item]
        if schema is not None:
            self._options["output"] = schema
        self._model = model
        self._given_via = via
        self._via: Via = via or "live"
        self._on_progress = on_progress
        self._on_note = on_note
        self._replace = replace
        self._fill_prompt = fill_prompt
        self._settings = load_settings() if settings is None else settings
        self._providers = tuple(providers)
        self._builder = CallBuilder(providers=self._providers, settings=self._settings)
        self._place = self._choose_place(None if ledger is None else os.fspath(ledger))
        is_file = not is_postgres_url(self._place)
        self._ledger = Ledger(name or (self._output.name if is_file else str(self._output.absolute())))
        self._job: BatchJob | None = None
        """The run of this process, while there is one."""
        self._opened: Database | None = None
        self._is_dropped = False
        """Whether the rows need not be loaded any more, since the caller was cancelled."""
        find_runner(self._via)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(output={str(self._output)!r})"

    def _choose_place(self, given: str | None) -> str:
        beside = f"{self._output}{LEDGER_SUFFIX}"
        if given is not None:
            return given
        store = self._settings.store
        return beside if store is None or Path(beside).exists() else store

    @property
    def _has_ledger(self) -> bool:
        """Whether there is a ledger already."""
        return is_postgres_url(self._place) or Path(self._place).exists()

    @property
    def _database(self) -> Database:
        """The database of the ledger, opened when it is first needed."""
        if self._opened is None:
            self._opened = open_ledger_database(self._place)
        return self._opened

    def _close(self) -> None:
        """Close the ledger. A later call opens it again."""
        if self._opened is not None:
            self._opened.close()

    # --- a run --------------------------------------------------------------------------------------------------------

    async def _run(self, *, resumes: bool = False) -> BatchStatus:
        """Load the rows, answer what waits, and write the output, also if the run is stopped or fails halfway."""
        record, own = await self._prepare(self._resume if resumes else self._begin)
        if not record.is_loaded:  # It was cancelled meanwhile.
            return await asyncio.to_thread(self._read_status)
        job = await self._answer(record, own, record.via if resumes else self._via)
        if job.error is not None:
            raise job.error
        status = await asyncio.to_thread(self._read_status)
        return msgspec.structs.replace(status, has_reached_max_cost=job.has_reached_max_cost)

    async def _prepare(self, work: Callable[[], tuple[BatchRecord, Options]]) -> tuple[BatchRecord, Options]:
        """Begin in a thread, which ends soon when this task is cancelled."""
        self._is_dropped = False
        try:
            return await asyncio.to_thread(work)
        except asyncio.CancelledError:
            self._is_dropped = True
            raise

    async def _answer(self, record: BatchRecord, own: Options, via: Via) -> BatchJob:
        run = decode_plan(record.plan).run
        setup = JobSetup(self._place, self._ledger.name, record.version, self._show_thinking(run), self._providers, own)
        on_record = None if self._on_progress is None else self._report
        async with open_job(setup, self._database, record, on_record=on_record, on_note=self._on_note) as job:
            self._job = job
            try:
                await find_runner(via).run(job)
            except StoreError as error:
                job.error = job.error or error
            finally:
                self._job = None
                await asyncio.shield(self._end(job))
        return job

    async def _end(self, job: BatchJob) -> None:
        """Write the output. The error that ended the run takes precedence over one of the output."""
        try:
            await self._write_output()
        except ConfigError as problem:
            if job.error is None:
                raise
            if self._on_note is not None:
                self._on_note(str(problem))
        finally:
            await self._database.close_async()

    async def _write_output(self) -> None:
        found = await self._database.run_async(self._ledger.find, writes=False)
        # While another process loads other rows, the ledger has a mixture.
        if found is not None and found.is_loaded:
            await asyncio.to_thread(write_output, self._database, self._ledger, self._output)

    def _report(self, record: BatchRecord) -> None:
        if self._on_progress is not None:
            batches = () if self._job is None else self._job.vendor_batches
            self._on_progress(msgspec.structs.replace(build_status(record, time.time()), vendor_batches=batches))

    def _show_thinking(self, run: RunSettings) -> Settings:
        """The settings that decide whether the output has the thinking."""
        keeps = run.keep_thinking
        if keeps is None:
            keeps = self._settings.keep_thinking or self._settings.show_reasoning_thinking
        return msgspec.structs.replace(self._settings, show_reasoning_thinking=keeps)

    # --- its beginning ------------------------------------------------------------------------------------------------

    @contextmanager
    def _open_rows(self) -> Generator[RowSource]:
        """The rows as a file."""
        if self._rows is None:
            raise ConfigError("there are no rows. Name a file, or give a list; or resume a batch that has them.")
        if isinstance(self._rows, (str, os.PathLike)):
            path = Path(self._rows).expanduser()
            yield RowSource(path, str(path), path.name.lower().endswith(".txt"), self._fill_prompt)
            return
        rows: Any = self._rows
        if hasattr(rows, "iter_rows"):  # A dataset of Ray.
            rows = (clean_row(row, f"row {number}") for number, row in enumerate(rows.iter_rows(), start=1))
        if not isinstance(rows, Iterable):
            raise ConfigError(f"rows is a file or a list of questions, not {type(self._rows).__name__}.")
        with spool(rows, "rows") as source:
            yield msgspec.structs.replace(source, fill_prompt=self._fill_prompt)

    def _read_plan(self) -> tuple[BatchPlan, Options]:
        """The plan that the caller gave, and the options that stay in this process."""
        return read_plan(self._model, self._options, self._builder)

    def _check(self) -> BatchCheck:
        plan, own = self._read_plan()
        with self._open_rows() as source:
            return check_rows(source, plan, own, self._builder, self._via)

    def _begin(self) -> tuple[BatchRecord, Options]:
        plan, own = self._read_plan()
        self._given_run.check_via(self._via)
        if self._via == "ray":
            from asides_batch.ray_cluster import require_ray  # Most batches are live.

            require_ray()
        if plan.models:
            # Raises errors that concern every request, before anything is written.
            check_call(self._builder, list(plan.models), Options(**{**plan.options, **own}))  # type: ignore[typeddict-item]
            if self._via == "vendor":
                require_batch_facts(self._builder.find_target(plan.models[0]))
        if plan.models and self._given_run.max_cost is not None:
            RequestEstimator(plan, self._builder, needs_price=True).estimate(b'{"prompt":"?"}')
        has_ledger = self._has_ledger
        before = self._database.run(self._ledger.find, writes=False) if has_ledger else None
        if before is not None and before.done and not self._replace:
            _check_same_plan(decode_plan(before.plan).plan, plan, self._output)
        with self._open_rows() as source:
            digest = source.compute_digest()
            path = source.path if isinstance(self._rows, (str, os.PathLike)) else None
            check_output(self._output, path, has_ledger=has_ledger)
            wanted = create_record(
                self._ledger.name,
                via=self._via,
                model=plan.model,
                plan=encode_plan(plan, self._given_run),
                plan_digest=plan.digest,
                source="" if path is None else str(path.absolute()),
                source_digest=digest,
                output=str(self._output.absolute()),
            )
            record = self._database.run(lambda: self._ledger.begin(wanted, has_ended))
            if record.state == "loading":
                version = record.version
                record = load_rows(
                    source, plan, self._database, self._ledger, record, is_stopped=lambda: self._is_dropped
                )
                if record.version != version and record.state != "cancelled":
                    raise build_changed_error()
                if record.is_loaded and before is not None and before.state != "loading" and self._on_note is not None:
                    self._on_note(
                        f"the rows or the options are not those of the last run: {record.done} of {record.requests} "
                        "requests have an answer already"
                    )
        return record, own

    def _resume(self) -> tuple[BatchRecord, Options]:
        found = self._find()
        if not found.is_loaded:
            raise ConfigError(
                f"the rows of {self._output} were not all loaded, and the ledger has no others. Run "
                "`asides batch run` again with the same arguments, which continues."
            )
        if self._given_via not in (None, found.via):
            raise ConfigError(
                f"the batch {self._output} is via {found.via}, and resume continues the same way, not via "
                f"{self._given_via}. Leave out --via (via=); or run the batch again with the file of its rows "
                "and the other way, which asks only what has no answer."
            )
        check_output(self._output, None, has_ledger=True)
        _, own = self._read_plan()
        self._given_run.check_via(found.via)
        kept = decode_plan(found.plan)
        plan = encode_plan(kept.plan, kept.run.merge(self._given_run))
        return self._database.run(lambda: self._ledger.resume(has_ended, plan)), own

    # --- its status ---------------------------------------------------------------------------------------------------

    def _find(self) -> BatchRecord:
        found = self._database.run(self._ledger.find, writes=False) if self._has_ledger else None
        if found is None:
            raise self._explain_missing()
        return found

    def _explain_missing(self) -> ConfigError:
        place = describe_url(self._place) if is_postgres_url(self._place) else self._place
        output = str(self._output.absolute())
        records = self._database.run(list_records, writes=False) if self._has_ledger else []
        others = [record.name for record in records if record.output == output]
        advice = "Check the name, or run one first"
        if others:
            advice = f"Name it: --name (name=) {' or '.join(map(repr, others))}"
        return ConfigError(f"there is no batch for {self._output} in the ledger {place}. {advice}.")

    def _read_status(self) -> BatchStatus:
        """Progress of the batch, also if another process runs it. Raises a ConfigError if there is none."""
        return read_status(self._database, self._find())

    async def _cancel(self) -> BatchStatus:
        """Stop it, also if another process runs it. Vendor batches are cancelled there; their answers are written."""
        await asyncio.to_thread(self._find)
        record = await self._database.run_async(self._ledger.cancel)
        sent = await self._database.run_async(self._ledger.count_sent, writes=False)
        if record.via == "vendor" and sent:
            job = await self._answer(record, self._read_plan()[1], record.via)
            if job.error is not None:
                raise job.error
        status = await asyncio.to_thread(self._read_status)
        await self._database.close_async()
        return status


def _check_same_plan(before: BatchPlan, now: BatchPlan, output: Path) -> None:
    """Raise a ConfigError if answers would be replaced by those of another model, or of other options."""
    if before.digest == now.digest:
        return
    changed = sorted(
        name for name in {*before.options, *now.options} if before.options.get(name) != now.options.get(name)
    )
    if before.models != now.models:
        changed.insert(0, "the model")
    raise ConfigError(
        f"the output {output} has answers that were asked for with other settings ({', '.join(changed) or 'the model'})"
        ". Name another output; or ask all again with --replace (replace=True), which keeps the old answers in "
        "the ledger only."
    )


def _read_max_cost(given: float | str | Decimal | None) -> Decimal | None:
    """An amount in dollars. Raises a ConfigError for anything else."""
    if given is None:
        return None
    try:
        return Decimal(str(given))
    except InvalidOperation:
        raise ConfigError(f"max_cost is an amount in dollars, not {given!r}.") from None
