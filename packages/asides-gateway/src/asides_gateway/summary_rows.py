"""The request rows in the database of a gateway: their fields, and the queries that write, read and delete them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, NamedTuple, TypeAlias

from asides.database import Queries, Query, QueryMany
from asides.relay.endpoints import NoEndpoint, find_endpoint
from asides.values.errors import redact_keys
from asides.values.money import to_billionths, to_dollars
from asides.values.notices import escape_controls
from asides.values.usage import find_cost
from asides_gateway.access.budget_store import MOST_SPENT, format_day
from asides_gateway.request_record import RequestRecord

Row: TypeAlias = tuple[Any, ...]
Group: TypeAlias = Literal["key", "tenant", "model", "day", "client"]

COLUMNS: tuple[str, ...] = (
    "id",
    "at",
    "day",
    "instance",
    "key",
    "tenant",
    "client",
    "dialect",
    "action",
    "asked",
    "model",
    "mode",
    "status",
    "ended",
    "input",
    "cached",
    "output",
    "thinking",
    "cost",
    "first_thought",
    "first_answer",
    "total",
    "restored",
    "missed",
    "attempts",
)
_LONGEST = 200
_MOST_TOKENS = 10**12
"""Small enough that sums fit into the numbers of both engines."""


def build_row(record: RequestRecord, instance: str) -> Row:
    """The row of a request. Looks up prices, which takes a moment."""
    usage = record.usage
    cost = find_cost(usage, record.models, record.priced_by)
    return (
        record.id,
        record.at,
        format_day(record.at),
        instance,
        record.key_id,
        record.tenant,
        _clean(record.client),
        record.dialect,
        _find_action(record),
        _clean(record.asked),
        _clean(record.model),
        record.mode or "",
        record.status,
        record.ended,
        _fit(usage.input),
        _fit(usage.cached),
        _fit(usage.output),
        _fit(usage.thinking),
        _fit_cost(None if cost is None else cost.amount),
        _to_ms(record.first_thought),
        _to_ms(record.first_answer),
        round(record.seconds * 1000, 1),
        record.restored,
        record.missed,
        record.attempts,
    )


def _find_action(record: RequestRecord) -> str:
    if record.dialect == "page":
        return "turn"
    try:
        return find_endpoint(record.method, record.path, "", {}, record.dialect).action
    except NoEndpoint:
        return "none"


def _clean(text: str) -> str:
    """A text that a client chose: short, without keys, and without what a database or a terminal does not take."""
    return escape_controls(redact_keys(text[:_LONGEST])).encode("utf-8", "replace").decode()


def _fit(number: int | None) -> int | None:
    return None if number is None else max(min(number, _MOST_TOKENS), 0)


def _fit_cost(cost: Decimal | None) -> int | None:
    if cost is None:
        return None
    return max(min(to_billionths(cost), MOST_SPENT), 0) if cost.is_finite() else 0


def _to_ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 1)


# --- work on the database ---------------------------------------------------------------------------------------------

_NAMES = ", ".join(COLUMNS)
_INSERT = (
    f"INSERT INTO gateway_requests ({_NAMES}) VALUES ({', '.join('?' * len(COLUMNS))}) ON CONFLICT (id) DO NOTHING"  # noqa: S608 - names of ours
)
_LIST = f"SELECT {_NAMES} FROM gateway_requests WHERE tenant = ? ORDER BY at DESC LIMIT ?"  # noqa: S608
_OLD = "SELECT id FROM gateway_requests WHERE at < ? ORDER BY at LIMIT ?"
_DELETE = f"DELETE FROM gateway_requests WHERE id IN ({_OLD})"  # noqa: S608
# SKIP LOCKED: instances that delete at the same time delete different rows.
_DELETE_UNLOCKED = f"DELETE FROM gateway_requests WHERE id IN ({_OLD} FOR UPDATE SKIP LOCKED)"  # noqa: S608


def insert_rows(rows: Sequence[Row]) -> Queries[None]:
    """Write rows. Rows that are there already stay, so writing them again after a lost connection does no harm."""
    yield QueryMany(_INSERT, rows)


def delete_old(before: float, most: int) -> Queries[int]:
    """Delete rows of requests before a time, the oldest first, at most `most` of them. Returns how many."""
    result = yield Query(_DELETE, (before, most), _DELETE_UNLOCKED, is_alone=True)
    return result.changed


def list_rows(tenant: str, limit: int) -> Queries[list[dict[str, Any]]]:
    """The last requests of a tenant, the newest first, as dicts by column."""
    result = yield Query(_LIST, (tenant, limit), is_alone=True)
    return [dict(zip(COLUMNS, row, strict=True)) for row in result.rows]


class UsageSum(NamedTuple):
    """The sums of a group of requests."""

    group: str
    requests: int
    failed: int
    """Those that ended with an error, were refused, or whose client left."""
    input: int
    cached: int
    output: int
    thinking: int
    cost: Decimal
    """In US dollars."""
    unpriced: int
    """The requests with tokens of unknown price."""


_SUMS = (
    "count(*), sum(CASE WHEN ended = 'done' THEN 0 ELSE 1 END), sum(coalesce(input, 0)), sum(coalesce(cached, 0)), "
    "sum(coalesce(output, 0)), sum(coalesce(thinking, 0)), sum(coalesce(cost, 0)), "
    "sum(CASE WHEN cost IS NULL AND coalesce(input, 0) + coalesce(output, 0) > 0 THEN 1 ELSE 0 END)"
)


def sum_usage(since: float, by: Group) -> Queries[list[UsageSum]]:
    """The sums of the requests since a time, by group: days in order, others by cost, then by tokens."""
    order = "1" if by == "day" else "8 DESC, 6 DESC, 2 DESC, 1"
    sql = f"SELECT {by}, {_SUMS} FROM gateway_requests WHERE at >= ? GROUP BY {by} ORDER BY {order}"  # noqa: S608
    result = yield Query(sql, (since,), is_alone=True)
    sums: list[UsageSum] = []
    for group, *counts in result.rows:
        # In PostgreSQL a sum of bigint is a Decimal.
        requests, failed, sent, cached, received, thinking, cost, unpriced = map(int, counts)
        dollars = to_dollars(cost)
        sums.append(UsageSum(str(group), requests, failed, sent, cached, received, thinking, dollars, unpriced))
    return sums


def list_key_names() -> Queries[Mapping[str, str]]:
    """The names of keys, by their ids."""
    result = yield Query("SELECT id, name FROM gateway_keys", is_alone=True)
    return {str(key): str(name) for key, name in result.rows}
