"""The budgets of keys in the database of a gateway: reserve before a provider is asked, settle when the cost is known.

A reservation is made only if everything spent and reserved stays within the budgets of the day and the month. It has a
lease: if its process is killed, it expires, and the money is free again. Each function is work for `Database.run`. Not
here: what a request costs (asides/flows/cost_bounds, asides/relay/metered_use), and renewing the leases (key_meter).
"""

from __future__ import annotations

import secrets
import time
from calendar import monthrange
from datetime import UTC, datetime, timedelta
from typing import Literal

import msgspec

from asides.database import LEASE_SECONDS, NOW_POSTGRES, NOW_SQLITE, Queries, Query, QueryMany

_KEPT_SECONDS = 86_400.0
"""How long a reservation is kept after its lease, so that a slow process, or one that had lost its database, can still
settle it."""
MOST_SPENT = 10**15
"""The most that one reply is settled with: more than any reply costs, and small enough for sums in both engines."""


class Reservation(msgspec.Struct, frozen=True):
    """Money that a request under way may spend. In billionths of a US dollar."""

    id: str
    key: str
    day: str
    """The day of UTC that it was made on, and that it is settled on."""
    amount: int


class BudgetExceeded(msgspec.Struct, frozen=True):
    """A budget that a request does not fit into."""

    period: Literal["day", "month"]
    budget: int
    left: int
    """What is neither spent nor reserved, in billionths of a US dollar."""
    resets: float
    """When the next day or month begins, in seconds since 1970."""


class Spending(msgspec.Struct, frozen=True):
    """What a key has spent and reserved, in billionths of a US dollar."""

    day: int = 0
    month: int = 0
    reserved: int = 0
    """Of requests that are under way now, in this month."""


def make_reservation(key_id: str, amount: int, now: float | None = None) -> Reservation:
    """A reservation, not stored yet. Storing it twice changes nothing, since its id is unique."""
    return Reservation(secrets.token_hex(12), key_id, format_day(time.time() if now is None else now), amount)


def format_day(now: float) -> str:
    """The day of UTC."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")


def find_reset(period: Literal["day", "month"], now: float) -> float:
    """When the next day, or the next month, of UTC begins."""
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    days = 1 if period == "day" else monthrange(today.year, today.month)[1] - today.day + 1
    return (today + timedelta(days=days)).timestamp()


# --- work on the database ---------------------------------------------------------------------------------------------

_LOCK = "SELECT budget_day, budget_month, {now} FROM gateway_keys WHERE id = ? AND revoked IS NULL"
_NOW = f"coalesce(?, {NOW_SQLITE})"
_NOW_POSTGRES = f"coalesce(CAST(? AS double precision), {NOW_POSTGRES})"
_LOCK_POSTGRES = f"{_LOCK.format(now=_NOW_POSTGRES)} FOR NO KEY UPDATE"
_RENEW = "UPDATE gateway_reservations SET expires = {now} + ? WHERE id = ?"
_SUMS = """
SELECT
    (SELECT coalesce(sum(spent), 0) FROM gateway_spending WHERE key = ? AND day = ?),
    (SELECT coalesce(sum(spent), 0) FROM gateway_spending WHERE key = ? AND day >= ? AND day <= ?),
    (SELECT coalesce(sum(amount), 0) FROM gateway_reservations WHERE key = ? AND day = ? AND expires > ? AND id <> ?),
    (SELECT coalesce(sum(amount), 0) FROM gateway_reservations
        WHERE key = ? AND day >= ? AND day <= ? AND expires > ? AND id <> ?),
    (SELECT count(*) FROM gateway_reservations WHERE key = ? AND expires <= ?)
"""


def reserve(
    reservation: Reservation, now: float | None = None, lease: float = LEASE_SECONDS
) -> Queries[BudgetExceeded | bool]:
    """Store a reservation if it fits. True: it is stored; False: the key is revoked or unknown. `now`: None for the
    clock of the database.

    The row of the key is locked first, so that the reservations of one key are made one after the other. Other keys do
    not wait.
    """
    key, day = reservation.key, reservation.day
    # Reading the sums is a statement of its own: it sees what those before it have written.
    locked = yield Query(_LOCK.format(now=_NOW), (now, key), postgres=_LOCK_POSTGRES)
    if locked.first is None:
        return False
    now = float(locked.first[2])
    first, last, name = f"{day[:7]}-01", f"{day[:7]}-31", reservation.id
    values = (key, day, key, first, last, key, day, now, name, key, first, last, now, name, key, now - _KEPT_SECONDS)
    sums = (yield Query(_SUMS, values)).rows[0]
    spent_day, spent_month, reserved_day, reserved_month, old = map(int, sums)
    budgets = (
        ("day", locked.first[0], spent_day + reserved_day),
        ("month", locked.first[1], spent_month + reserved_month),
    )
    exceeded: BudgetExceeded | None = None
    for period, budget, used in budgets:
        if budget is not None and used + reservation.amount > budget:
            # The month wins over the day: waiting for the next day would not help.
            exceeded = BudgetExceeded(period, budget, max(0, budget - used), find_reset(period, now))  # type: ignore[arg-type]
    if exceeded is not None:
        return exceeded
    if old:
        yield Query("DELETE FROM gateway_reservations WHERE key = ? AND expires <= ?", (key, now - _KEPT_SECONDS))
    yield Query(
        "INSERT INTO gateway_reservations (id, key, day, amount, expires) VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET expires = excluded.expires",
        (name, key, day, reservation.amount, now + lease),
    )
    return True


def renew(reservation_ids: list[str], now: float | None = None, lease: float = LEASE_SECONDS) -> Queries[None]:
    """Prolong reservations of requests that are still under way."""
    # In one order, so that two processes never wait for each other.
    rows = [(now, lease, name) for name in sorted(reservation_ids)]
    yield QueryMany(_RENEW.format(now=_NOW), rows, postgres=_RENEW.format(now=_NOW_POSTGRES))


def settle(reservation: Reservation, spent: int) -> Queries[bool]:
    """Replace a reservation with what was spent; 0 gives all of it back. False if that was done before: settling
    again changes nothing.
    """
    gone = yield Query("DELETE FROM gateway_reservations WHERE id = ?", (reservation.id,))
    if not gone.changed:
        return False
    if spent > 0:
        yield Query(
            "INSERT INTO gateway_spending (key, day, spent, requests) VALUES (?, ?, ?, 1) ON CONFLICT (key, day) "
            "DO UPDATE SET spent = gateway_spending.spent + excluded.spent, requests = gateway_spending.requests + 1",
            (reservation.key, reservation.day, spent),
        )
    return True


def list_spending(now: float) -> Queries[dict[str, Spending]]:
    """What each key has spent today and in this month, and what is reserved now. Keys without any are left out."""
    day = format_day(now)
    first, last = f"{day[:7]}-01", f"{day[:7]}-31"
    spent = yield Query(
        "SELECT key, sum(CASE WHEN day = ? THEN spent ELSE 0 END), sum(spent) FROM gateway_spending "
        "WHERE day >= ? AND day <= ? GROUP BY key",
        (day, first, last),
    )
    found = {key: Spending(int(today), int(month)) for key, today, month in spent.rows}
    reserved = yield Query(
        "SELECT key, sum(amount) FROM gateway_reservations WHERE day >= ? AND day <= ? AND expires > ? GROUP BY key",
        (first, last, now),
    )
    for key, amount in reserved.rows:
        before = found.get(key, Spending())
        found[key] = msgspec.structs.replace(before, reserved=int(amount))
    return found
