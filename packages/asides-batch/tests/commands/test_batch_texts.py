"""What the command line says about a batch: counts, figures, and a command that can be typed."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import msgspec
import pytest

from asides_batch.batch_status import BatchStatus, VendorBatchStatus, build_status
from asides_batch.commands.batch_texts import advise, describe, describe_progress, describe_seconds, summarise
from asides_batch.ledger_values import create_record


def make_status(name: str = "out.jsonl", **fields: Any) -> BatchStatus:
    given = {"state": "open", "model": "m", "output": "/a/out.jsonl", "row_count": 9, "requests": 8, **fields}
    return build_status(create_record(name, **given), 0.0, 0)


def make_arguments(**fields: Any) -> Namespace:
    return Namespace(**{"path": "in.jsonl", "output": "my out.jsonl", "ledger": None, "name": None, **fields})


def test_the_advice_can_be_typed_and_has_no_password() -> None:
    assert advise(make_arguments()) == "Run `asides batch resume 'my out.jsonl'` to continue."
    shared = make_arguments(output=None, path="out", ledger="postgresql://me:hunter2@host/x", name="n")
    assert advise(shared, "then") == "Run `asides batch resume out --ledger URL --name n` then."


@pytest.mark.parametrize("fields", [{"state": "loading"}, {"state": "cancelled", "row_count": 0}])
def test_a_batch_without_all_its_rows_is_run_again_and_not_resumed(fields: dict[str, Any]) -> None:
    status = make_status(**fields)
    assert advise(make_arguments(), status=status) == (
        "Run `asides batch run` again with the same arguments to continue."
    )
    assert describe(status)[-1].startswith("  its rows are not all loaded. Run `asides batch run` again")


def test_counts_tokens_and_cost() -> None:
    figures: dict[str, Any] = {"done": 5, "failed": 1, "input_tokens": 3, "output_tokens": 4, "thinking_tokens": 2}
    status = make_status(**figures, cost=1_250_000_000, unpriced=1)
    rest = "3 tokens in, 4 out (2 thinking), $1.25 (and 1 replies without a known price)"
    assert summarise(status) == f"5 of 8 requests answered, for 9 rows, 1 failed, 2 not answered yet, {rest}."
    assert describe(status) == [f"/a/out.jsonl: stopped, {summarise(status)}", "  m, via live"]


@pytest.mark.parametrize(
    ("name", "shown"), [("out.jsonl", ""), ("/a/out.jsonl", ""), ("my batch", ", --name 'my batch'")]
)
def test_a_name_that_has_to_be_given_is_shown(name: str, shown: str) -> None:
    assert describe(make_status(name))[1] == f"  m, via live{shown}"


def test_batches_at_a_vendor_are_named() -> None:
    batches = (VendorBatchStatus("x-1", "in_progress", 5, 2), VendorBatchStatus(None, "creating", 3, None))
    status = msgspec.structs.replace(make_status(via="vendor"), vendor_batches=batches)
    first, second = "x-1, in_progress, 2 of 5 requests", "no id yet, creating, 3 requests"
    assert describe(status)[2:] == [f"  at the vendor: {first}", f"  at the vendor: {second}"]
    assert describe_progress(status) == f"0/8 requests, 0 tokens in, 0 out; at the vendor: {first}; {second}"


def test_times_are_as_exact_as_they_are_known() -> None:
    assert [describe_seconds(seconds) for seconds in (7.9, 99, 100, 5999, 9000)] == [
        "7 s",
        "99 s",
        "1 min",
        "99 min",
        "2.5 h",
    ]
