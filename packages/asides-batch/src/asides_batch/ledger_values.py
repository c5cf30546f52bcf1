"""The values of a ledger: a batch with its counts, claims, outcomes and limits. Costs are in billionths of a dollar."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, TypeVar, cast

import msgspec

from asides.database import StoreError

BatchState: TypeAlias = Literal["loading", "open", "cancelled"]
RequestState: TypeAlias = Literal["waiting", "claimed", "sent", "done", "failed"]
"""sent: it is in a batch of a vendor, and has no lease."""
Via: TypeAlias = Literal["live", "vendor", "ray"]


class BatchRecord(msgspec.Struct):
    """One batch, as the ledger has it. The fields are the columns of `batches`."""

    name: str
    version: int
    """Increased whenever its rows or its plan are reloaded: processes that work on an older version stop."""
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
    """No process sends before this time: a provider asked to wait."""
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

    @property
    def is_loaded(self) -> bool:
        """Whether the ledger has all rows. A batch that was cancelled before has none."""
        return self.state != "loading" and self.row_count > 0


Columns = TypeVar("Columns")
_FIELDS = BatchRecord.__struct_fields__


def read_record(row: Sequence[Any]) -> BatchRecord:
    """A batch from its columns. Raises StoreError for values that no ledger has: SQLite takes any for any column."""
    try:
        record = msgspec.convert(dict(zip(_FIELDS, row, strict=True)), BatchRecord, builtin_types=(bytes,))
    except msgspec.ValidationError:
        raise build_damage_error("the figures of the batch") from None
    if record.state == "open" and record.left < 0:
        raise build_damage_error("the figures of the batch")
    return record


def read_columns(row: Sequence[Any], types: type[Columns], what: str) -> Columns:
    """The columns of a row with their types. Raises StoreError: SQLite takes any value for any column."""
    try:
        return msgspec.convert(row, types, builtin_types=(bytes,))
    except msgspec.ValidationError:
        raise build_damage_error(what) from None


def build_damage_error(what: str) -> StoreError:
    """The error for a ledger that holds something which asides never writes."""
    return StoreError(
        f"the ledger is damaged: {what} cannot be read. Restore it from a backup, or run the batch with another output."
    )


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


class RequestEstimate(msgspec.Struct, frozen=True):
    """What a request may take, before it is sent."""

    tokens: int = 0
    """An estimate of its input."""
    most_output: int | None = None
    most_cost: int = 0
    """The most that it can cost; 0 if that is not known."""
    is_cost_known: bool = True


class RunLimits(msgspec.Struct, frozen=True):
    """The limits of a run. None: no limit. Requests are spaced evenly over the minute: each takes a slot in the ledger,
    which the processes of a batch share, and is sent at its time."""

    rpm: float | None = None
    tpm: float | None = None
    max_cost: int | None = None
    estimate: Callable[[bytes], RequestEstimate] | None = None
    """Estimates a request. Needed with `tpm` and `max_cost`."""

    def find_slot(self, record: BatchRecord, now: float) -> float:
        """When the next request may be sent."""
        start = max(now, record.paused_until)
        if self.rpm:
            start = max(start, record.next_request)
        if self.tpm:
            start = max(start, record.next_token)
        return start

    def take_slot(self, record: BatchRecord, now: float, tokens: int) -> None:
        """Move the time of the next slot: a request with this many tokens is claimed."""
        if self.rpm:
            record.next_request = max(now, record.next_request) + 60.0 / self.rpm
        if self.tpm:
            record.next_token = max(now, record.next_token) + tokens * 60.0 / self.tpm


class ExchangeResult(msgspec.Struct, frozen=True):
    """What a ledger answered: the batch after the outcomes were written, and new claims."""

    record: BatchRecord
    claims: list[Claim]
    now: float
    """The time of the database."""
    has_reached_max_cost: bool = False
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
    request: bytes
    id: str | int | None
    rest: bytes | None
    state: RequestState
    result: bytes | None


def encode_id(given: str | int | None) -> str | None:
    """The id of a row, as its column has it."""
    return None if given is None else json.dumps(given)


def decode_id(stored: str | None) -> str | int | None:
    """The id of a row from its column."""
    try:
        return None if stored is None else cast("str | int", json.loads(stored))
    except (ValueError, TypeError, RecursionError):
        raise build_damage_error("the id of a row") from None


def read_object(stored: object) -> bytes | None:
    """A JSON object as bytes. It becomes a part of an output line, so it has to begin and end with braces."""
    if stored is None or (isinstance(stored, bytes) and stored[:1] == b"{" and stored[-1:] == b"}"):
        return stored
    raise build_damage_error("a result")


def split_hashes(hashes: Sequence[str], size: int = 500) -> list[Sequence[str]]:
    """Hashes in groups, since a statement takes a limited number of values."""
    return [hashes[place : place + size] for place in range(0, len(hashes), size)]
