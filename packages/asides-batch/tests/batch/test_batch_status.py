"""The status of a batch, from the counts of its ledger."""

from __future__ import annotations

from decimal import Decimal

import pytest

from asides_batch.batch_status import build_status
from asides_batch.ledger_values import create_record


def test_rate_and_time_left_are_those_of_this_run() -> None:
    counts = {"requests": 100, "done": 60, "failed": 4, "cost": 1_500_000_000}
    record = create_record("b", state="open", **counts, began=1000.0, done_before=20, updated=1010.0)
    status = build_status(record, 1020.0, 3)
    assert (status.rate, status.seconds_left, status.left, status.cost) == (4.0, 9.0, 36, Decimal("1.5"))
    assert status.state == "running"


@pytest.mark.parametrize(
    ("fields", "claimed", "state"),
    [
        ({"state": "loading"}, 0, "loading"),
        ({"state": "open", "requests": 2}, 0, "stopped"),
        ({"state": "open", "requests": 2}, 1, "running"),
        ({"state": "cancelled", "requests": 2}, 1, "cancelled"),
        ({"state": "open", "requests": 2, "done": 1, "failed": 1}, 0, "finished"),
    ],
)
def test_the_state(fields: dict[str, object], claimed: int, state: str) -> None:
    assert build_status(create_record("b", **fields), 1.0, claimed).state == state


def test_the_first_error_is_read_from_its_result() -> None:
    record = create_record("b", state="open", requests=1, failed=1)
    error = build_status(record, 1.0, 0, b'{"error": {"type": "BadRequest", "message": "no"}}').first_error
    assert error == "BadRequest: no"
    assert build_status(record, 1.0, 0, b'{"outcome": "starved"}').first_error == "no answer, the reply was starved"
