"""`BatchStatus`: how far a batch is, what it has cost, and when it will be done."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal, TypeAlias

import msgspec

from asides.values.money import to_dollars
from asides_batch.ledger_values import BatchRecord, Via, build_damage_error

RunState: TypeAlias = Literal["loading", "running", "stopped", "cancelled", "finished"]


class VendorBatchStatus(msgspec.Struct, frozen=True):
    """A batch at a vendor that has not ended."""

    id: str | None
    """The vendor's id; None before it is known."""
    state: str
    """The vendor's word for it; "creating" before there is one."""
    requests: int
    done: int | None
    """None if the vendor does not report it before the end."""
    provider: str = ""
    """Who runs it; "" where only the ledger was read, which does not know."""


class BatchStatus(msgspec.Struct, frozen=True):
    """How far a batch is. Equal rows are one request, which is asked once."""

    name: str
    state: RunState
    """running: a process is sending requests. stopped: none is, and some requests wait. finished: none waits."""
    model: str
    via: Via
    output: str
    rows: int
    requests: int
    done: int
    failed: int
    running: int | None
    """The requests that are being asked; None where it was not counted."""
    left: int
    """The requests that are neither done nor failed, those that are being asked included."""
    input_tokens: int
    output_tokens: int
    thinking_tokens: int
    cost: Decimal
    """In US dollars, of all replies whose cost is known."""
    unpriced: int
    """The replies whose cost is not known."""
    rate: float
    """Requests a second, since the run began."""
    seconds_left: float | None
    """None if it is not known yet."""
    first_error: str | None = None
    """The error of the first request that failed."""
    has_reached_max_cost: bool = False
    """Whether the run ended because the next request might have cost more than `max_cost` leaves."""
    vendor_batches: tuple[VendorBatchStatus, ...] = ()
    """The batches at a vendor that have not ended, with `via="vendor"`."""

    @property
    def has_rows(self) -> bool:
        """Whether all rows are loaded. If not, `resume` cannot be used, and `run` continues."""
        return self.state != "loading" and self.rows > 0

    @property
    def is_finished(self) -> bool:
        """Whether every request has an answer."""
        return self.state == "finished" and not self.failed


def build_status(
    record: BatchRecord, now: float, claimed: int | None = None, failure: bytes | None = None
) -> BatchStatus:
    """The status of a batch as the ledger has it."""
    elapsed = (record.updated if record.updated > record.began else now) - record.began
    rate = (record.done - record.done_before) / elapsed if elapsed > 0 else 0.0
    state: RunState
    if record.state != "open":
        state = record.state
    elif not record.left:
        state = "finished"
    else:
        state = "stopped" if claimed == 0 else "running"
    return BatchStatus(
        record.name,
        state,
        record.model,
        record.via,
        record.output,
        record.row_count,
        record.requests,
        record.done,
        record.failed,
        claimed,
        record.left,
        record.input_tokens,
        record.output_tokens,
        record.thinking_tokens,
        to_dollars(record.cost),
        record.unpriced,
        max(rate, 0.0),
        record.left / rate if rate > 0 and record.left else (0.0 if not record.left else None),
        None if failure is None else _read_error(failure),
    )


class _Failure(msgspec.Struct):
    error: dict[str, Any] | None = None
    outcome: str | None = None


def _read_error(failure: bytes) -> str:
    try:
        found = msgspec.json.decode(failure, type=_Failure)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise build_damage_error("a result") from None
    if found.error:
        return f"{found.error.get('type')}: {found.error.get('message')}"
    return f"no answer, the reply was {found.outcome}"
