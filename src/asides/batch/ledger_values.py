"""The values of a ledger: a batch with its counts, claims, outcomes, and limits. Costs are in billionths of a dollar.

Not here: the tables (ledger_tables) and the work on them (ledger).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import msgspec

BatchState: TypeAlias = Literal["loading", "open", "cancelled"]
RequestState: TypeAlias = Literal["waiting", "claimed", "sent", "done", "failed"]
"""sent: it is in a batch of a vendor, and has no lease."""
Via: TypeAlias = Literal["live", "vendor", "ray"]


class BatchRecord(msgspec.Struct):
    """One batch, as the ledger has it. The fields are the columns of `batches`."""

    name: str
    version: int
    """Raised whenever its rows or its plan are loaded anew."""
    state: BatchState
    via: Via
    model: str
    plan: bytes
    """What shapes every request, as JSON: see `BatchPlan`."""
    plan_digest: str
    source: str
    """The file of the rows; "" if they came from a program."""
    source_digest: str
    output: str
    row_count: int
    """The rows: all of them, or those that are loaded so far."""
    requests: int
    """The different requests among the rows: equal rows are asked once."""
    done: int
    failed: int
    input_tokens: int
    output_tokens: int
    thinking_tokens: int
    cost: int
    """Of all replies, also of those that failed."""
    unpriced: int
    """Replies whose cost is not known."""
    reserved: int
    """The most that claimed requests may cost, where a limit is set."""
    next_request: float
    """When the next request may be sent, by the requests a minute. Unix time, as all times here."""
    next_token: float
    """When the next request may be sent, by the tokens a minute."""
    paused_until: float
    """Until when nobody sends: a provider asked to wait."""
    began: float
    """When the present run began."""
    done_before: int
    """How many requests were done then."""
    created: float
    updated: float

    @property
    def left(self) -> int:
        """The requests that are neither done nor failed."""
        return self.requests - self.done - self.failed


def create_record(name: str, **fields: Any) -> BatchRecord:
    """A batch that has no rows yet."""
    empty: dict[str, Any] = dict.fromkeys(BatchRecord.__struct_fields__, 0)
    empty |= dict.fromkeys(("model", "plan_digest", "source", "source_digest", "output"), "")
    empty |= {"name": name, "state": "loading", "via": "live", "plan": b"", **fields}
    return BatchRecord(**empty)


class Claim(msgspec.Struct, frozen=True):
    """A request that is this owner's to answer, until its lease ends."""

    hash: str
    number: int
    """The place of its first row."""
    request: bytes
    """The row to ask, as JSON: `batch_rows.read_row` reads it."""
    start: float
    """When it may be sent."""
    tokens: int = 0
    """An estimate of its input and output, for the tokens a minute."""


class Outcome(msgspec.Struct, frozen=True):
    """What became of a request."""

    hash: str
    is_answered: bool
    result: bytes
    """The fields of its output rows, as JSON."""
    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    cost: int | None = 0
    """None: not known."""
    estimated: int = 0
    """The tokens of its claim."""

    @property
    def tokens(self) -> int:
        """Input and output."""
        return self.input_tokens + self.output_tokens


class Weight(msgspec.Struct, frozen=True):
    """What a request may take."""

    tokens: int = 0
    """An estimate of its input."""
    most_output: int | None = None
    bound: int = 0
    """The most that it can cost; 0 if that is not known."""
    is_bound_known: bool = True


class RunLimits(msgspec.Struct, frozen=True):
    """The limits of a run. None: no limit."""

    rpm: float | None = None
    tpm: float | None = None
    max_cost: int | None = None
    weigh: Callable[[bytes], Weight] | None = None
    """Weighs a request. Needed with `tpm` and `max_cost`."""


class Exchange(msgspec.Struct, frozen=True):
    """What a ledger answered: the batch after the outcomes were written, and new claims."""

    record: BatchRecord
    claims: list[Claim]
    now: float
    """The time of the database."""
    is_out_of_money: bool = False
    """Whether there was a request that may cost more than is left."""
    wait: float = 0.0
    """Seconds until a request may be sent, where the limits a minute hold one back."""


class LoadedRow(msgspec.Struct, frozen=True):
    """One row, as it is loaded into the ledger."""

    place: int
    hash: str
    id: str | int | None
    rest: bytes | None
    """Its other fields, as JSON."""
    request: bytes


class JoinedRow(msgspec.Struct, frozen=True):
    """One row with the result of its request."""

    place: int
    hash: str
    id: str | int | None
    rest: bytes | None
    state: RequestState
    result: bytes | None
