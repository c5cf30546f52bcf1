"""`check_rows`: estimate what a batch would take, and find what is wrong with its rows. Sends nothing, needs no key."""

from __future__ import annotations

import tempfile
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from asides.database import Database
from asides.history.check import check_request
from asides.options import Options
from asides.providers.batch_facts import BATCH_PRICE, require_batch_facts
from asides.values.errors import AsidesError, ConfigError
from asides.values.money import to_dollars
from asides_batch.batch_plan import BatchPlan, decode_request, encode_request
from asides_batch.estimate_requests import RequestEstimator
from asides_batch.ledger import Ledger
from asides_batch.ledger_tables import open_ledger_database
from asides_batch.ledger_values import LoadedRow, RunLimits, Via, create_record
from asides_batch.load_rows import RowSource

if TYPE_CHECKING:
    from asides.flows.build_call import CallBuilder

_Number = TypeVar("_Number", int, Decimal)
_MOST_PROBLEMS = 1000
_ROWS = 1000


class BatchCheck(msgspec.Struct, frozen=True):
    """What a batch would take."""

    rows: int
    """The rows that can be asked."""
    requests: int
    """The different requests among them."""
    input_tokens: int
    """An estimate, from the length of the text."""
    most_output_tokens: int | None
    """The most that the limits of the rows and models allow; None if there is a request without one."""
    input_cost: Decimal | None
    """An estimate of what the input costs, in US dollars; None if a price is not known."""
    most_cost: Decimal | None
    """The most that all can cost; None if a price or a limit is not known."""
    problems: tuple[str, ...]
    """What is wrong, with the line; of very many, the first ones."""
    failed: int
    """The rows that cannot be asked."""


class _Sums:
    """What is added up."""

    def __init__(self) -> None:
        self.rows = self.failed = self.tokens = 0
        self.output: int | None = 0
        self.cost: Decimal | None = Decimal()
        self.most_cost: Decimal | None = Decimal()
        self.problems: list[str] = []

    def note(self, problem: AsidesError) -> None:
        self.failed += 1
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(str(problem))


def check_rows(source: RowSource, plan: BatchPlan, own: Options, builder: CallBuilder, via: Via) -> BatchCheck:
    """Read every row, build its request, and add up. Equal rows count once, as they are asked once. `own`: the options
    that are not in the plan.
    """
    sums = _Sums()
    with tempfile.TemporaryDirectory(prefix="asides-batch-") as folder:
        # A ledger of its own finds equal rows and equal ids, however many rows there are.
        database = open_ledger_database(str(Path(folder) / "ledger"))
        ledger = Ledger("check")
        database.run(lambda: ledger.begin(create_record("check"), lambda _: False))
        try:
            _load(source, plan, own, builder, via, database, ledger, sums)
            requests = database.run(partial(ledger.finish_loading, sums.rows, 0)).requests
        except ConfigError as problem:
            sums.note(problem)
            requests = 0
        _add_up(RequestEstimator(plan, builder, needs_price=False), database, ledger, sums)
        database.close()
    share = BATCH_PRICE if via == "vendor" else Decimal(1)
    cost, most_cost = (None if cost is None else cost * share for cost in (sums.cost, sums.most_cost))
    return BatchCheck(sums.rows, requests, sums.tokens, sums.output, cost, most_cost, tuple(sums.problems), sums.failed)


def _load(
    source: RowSource,
    plan: BatchPlan,
    own: Options,
    builder: CallBuilder,
    via: Via,
    database: Database,
    ledger: Ledger,
    sums: _Sums,
) -> None:
    group: list[LoadedRow] = []
    with source.read(sums.note) as questions:
        for question in questions:
            try:
                call = plan.build(builder, question, own, needs_key=False)
                if via == "vendor":
                    require_batch_facts(call.target)
                check_request(call.prompt, call.target, call.policy.on_conflict, [])
            except AsidesError as problem:
                sums.note(ConfigError(f"{source.name}, line {question.line}: {problem}"))
                continue
            hash_ = plan.compute_hash(question)
            group.append(LoadedRow(sums.rows, hash_, question.id, None, encode_request(question)))
            sums.rows += 1
            if len(group) >= _ROWS:
                database.run(partial(ledger.load, group, 0))
                group = []
    database.run(partial(ledger.load, group, 0))


def _add_up(estimator: RequestEstimator, database: Database, ledger: Ledger, sums: _Sums) -> None:
    work = partial(ledger.exchange, "check", (), _ROWS, RunLimits(), version=0)
    while claims := database.run(work).claims:
        for claim in claims:
            question = decode_request(claim.request, claim.number)
            tokens, cost = estimator.estimate_input(question, claim.request)
            estimate = estimator.estimate_question(question, claim.request)
            sums.tokens += tokens
            sums.output = _plus(sums.output, estimate.most_output)
            sums.cost = _plus(sums.cost, cost)
            sums.most_cost = _plus(sums.most_cost, to_dollars(estimate.most_cost) if estimate.is_cost_known else None)


def _plus(left: _Number | None, right: _Number | None) -> _Number | None:
    """The sum; None if one of them is not known."""
    return None if left is None or right is None else left + right
