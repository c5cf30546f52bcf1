"""`Ledger`: the queries on the tables of a batch. A change is on the disk when `Database.run` has returned.

Every method is a generator of queries, one transaction, for `Database.run`. All of them lock the batch's own row first,
so that several processes may share a ledger.
"""
# ruff: noqa: S608 - the parts of statements are names of columns and question marks

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, cast

from asides.database import LEASE_SECONDS, NOW_POSTGRES, Queries, Query, QueryMany
from asides.values.errors import ConfigError
from asides_batch.ledger_values import (
    BatchRecord,
    Claim,
    ExchangeResult,
    JoinedRow,
    LoadedRow,
    Outcome,
    RequestEstimate,
    RequestState,
    RunLimits,
    decode_id,
    encode_id,
    read_columns,
    read_object,
    read_record,
    split_hashes,
)


class _Running(NamedTuple):
    state: RequestState
    owner: str | None
    requests: int


class _Result(NamedTuple):
    result: bytes | None


class _Joined(NamedTuple):
    place: int
    hash: str
    request: bytes
    id: str | None
    rest: bytes | None
    state: RequestState
    result: bytes | None


class _Claimable(NamedTuple):
    hash: str
    number: int
    request: bytes
    reserved: int


class _Held(NamedTuple):
    hash: str
    state: RequestState
    owner: str | None
    reserved: int


class _Leased(NamedTuple):
    hash: str
    owner: str | None
    lease: float | None


_COLUMNS = BatchRecord.__struct_fields__
_SELECT = f"SELECT {', '.join(_COLUMNS)}, ? FROM batches WHERE name = ?"
_SERVER_TIME = f"COALESCE({NOW_POSTGRES}, ?)"
_LOCK = _SELECT.replace("?", _SERVER_TIME, 1) + " FOR UPDATE"
_MARKS = ", ".join("?" * len(_COLUMNS))
_INSERT = f"INSERT INTO batches ({', '.join(_COLUMNS)}) VALUES ({_MARKS}) ON CONFLICT DO NOTHING"
_CHANGED = [name for name in _COLUMNS if name not in ("name", "created")]
_UPDATE = f"UPDATE batches SET {', '.join(f'{name} = ?' for name in _CHANGED)} WHERE name = ?"
_COUNTS = [name for name in _CHANGED if name not in ("plan", "plan_digest", "source", "source_digest", "output", "via")]
_UPDATE_COUNTS = f"UPDATE batches SET {', '.join(f'{name} = ?' for name in _COUNTS)} WHERE name = ?"

_ADD_REQUEST = (
    "INSERT INTO batch_requests (batch, hash, number, request, state, attempts, reserved) "
    "VALUES (?, ?, ?, ?, 'waiting', 0, 0) ON CONFLICT (batch, hash) DO NOTHING"
)
_ADD_ROW = (
    "INSERT INTO batch_rows (batch, place, hash, id, rest) VALUES (?, ?, ?, ?, ?) ON CONFLICT (batch, place) "
    "DO UPDATE SET hash = excluded.hash, id = excluded.id, rest = excluded.rest"
)
_IS_ASKED = "EXISTS (SELECT 1 FROM batch_rows WHERE batch_rows.batch = ? AND batch_rows.hash = batch_requests.hash)"
_SETTLE = (
    "UPDATE batch_requests SET state = ?, result = ?, owner = ?, lease = NULL, reserved = 0 "
    "WHERE batch = ? AND hash = ?"
)
_CLAIM = (
    "UPDATE batch_requests SET state = 'claimed', owner = ?, lease = ?, reserved = ?, attempts = attempts + 1 "
    "WHERE batch = ? AND hash = ?"
)
_RELEASE = (
    "UPDATE batch_requests SET state = 'waiting', owner = NULL, lease = NULL, reserved = 0 WHERE batch = ? AND hash = ?"
)
_JOIN = (
    "SELECT r.place, r.hash, q.request, r.id, r.rest, q.state, q.result FROM batch_rows r JOIN batch_requests q "
    "ON q.batch = r.batch AND q.hash = r.hash WHERE r.batch = ? AND r.place >= ? ORDER BY r.place LIMIT ?"
)
_LIST_RUNNING = (
    "SELECT state, owner, count(*) FROM batch_requests WHERE ? <= COALESCE(lease, 1e11) AND batch = ? "
    "AND state IN ('claimed', 'sent') GROUP BY state, owner"
)
_HORIZON_SECONDS = 2.0
"""How far ahead to claim requests that have to wait for `rpm` or `tpm`."""
_FIRST_OUTPUT = 500
"""The output tokens to expect of a request before the first reply."""


class Ledger:
    """The ledger of the batch with this name."""

    def __init__(self, name: str, clock: Callable[[], float] = time.time) -> None:
        self.name = name
        self._clock = clock

    # --- the batch ----------------------------------------------------------------------------------------------------

    def find(self) -> Queries[BatchRecord | None]:
        """The batch; None if there is none."""
        row = (yield Query(_SELECT, (0.0, self.name), is_alone=True)).first
        return None if row is None else read_record(row[:-1])

    def _lock(self) -> Queries[tuple[BatchRecord, float]]:
        """Lock the batch until the end of the transaction; returns it with the time of the database."""
        row = (yield Query(_SELECT, (self._clock(), self.name), postgres=_LOCK)).first
        if row is None:
            raise ConfigError(f"the ledger has no batch {self.name!r}. Check the name of the output.")
        return read_record(row[:-1]), row[-1]

    def _save(self, record: BatchRecord, now: float) -> Queries[None]:
        record.updated = now
        yield Query(_UPDATE_COUNTS, (*(getattr(record, name) for name in _COUNTS), self.name))

    def begin(self, wanted: BatchRecord, has_ended: Callable[[str], bool]) -> Queries[BatchRecord]:
        """Begin a run of a batch: a new one, the same again, or one with other rows or another plan.

        The state of the record says whether its rows have to be loaded. Requests that failed wait again. Raises a
        ConfigError if another process works on the batch with other rows or another plan.
        """
        wanted.created = wanted.updated = self._clock()
        yield Query(_INSERT, tuple(getattr(wanted, name) for name in _COLUMNS))
        record, now = yield from self._lock()
        yield from self._release_ended(record, now, has_ended)
        is_busy = yield from self._count("claimed")
        is_same = (record.plan_digest, record.source_digest) == (wanted.plan_digest, wanted.source_digest)
        if not is_same or not record.is_loaded:
            if is_busy and not is_same:
                raise ConfigError(
                    f"another process works on the batch {self.name!r} with other rows, another model or other "
                    "options. Wait for it or cancel it, or name another output."
                )
            record.state, record.version = "loading", record.version + (not is_same)
            record.row_count = record.row_count if is_same else 0
        else:
            record.state = "open"
        yield from self._ask_failed_again(record)
        if not is_busy:
            record.began, record.done_before = now, record.done
        for name in ("plan", "plan_digest", "source", "source_digest", "output", "via", "model"):
            setattr(record, name, getattr(wanted, name))
        record.updated = now
        yield Query(_UPDATE, (*(getattr(record, name) for name in _CHANGED), self.name))
        return record

    def resume(self, has_ended: Callable[[str], bool], plan: bytes | None = None) -> Queries[BatchRecord]:
        """Begin a run of a batch as it is in the ledger. Requests that failed wait again. `plan`: the same plan, with
        other settings of the run.
        """
        record, now = yield from self._lock()
        yield from self._release_ended(record, now, has_ended)
        is_busy = yield from self._count("claimed")
        if record.state == "cancelled":
            record.state = "open"
        yield from self._ask_failed_again(record)
        if not is_busy:
            record.began, record.done_before = now, record.done
        if plan is not None:
            record.plan = plan
            yield Query("UPDATE batches SET plan = ? WHERE name = ?", (plan, self.name))
        yield from self._save(record, now)
        return record

    def cancel(self) -> Queries[BatchRecord]:
        """Cancel the batch, unless all is answered: no request can be claimed any more. Replies under way are still
        written. A process that loads its rows stops, and the next run loads them from the beginning.
        """
        record, now = yield from self._lock()
        if record.state == "open" and record.done == record.requests:
            return record
        if record.state == "loading":
            record.version, record.row_count = record.version + 1, 0
        record.state = "cancelled"
        yield from self._save(record, now)
        return record

    def _ask_failed_again(self, record: BatchRecord) -> Queries[None]:
        if record.failed:
            yield Query(
                "UPDATE batch_requests SET state = 'waiting', owner = NULL WHERE batch = ? AND state = 'failed'",
                (self.name,),
            )
            record.failed = 0

    def _count(self, state: RequestState) -> Queries[int]:
        query = "SELECT count(*) FROM batch_requests WHERE batch = ? AND state = ?"
        return cast("int", (yield Query(query, (self.name, state))).rows[0][0])

    def count_running(self, has_ended: Callable[[str], bool]) -> Queries[int]:
        """The requests that are being asked now: by a process that has not ended, or by a vendor."""
        query = Query(_LIST_RUNNING, (self._clock(), self.name), _LIST_RUNNING.replace("?", _SERVER_TIME, 1), True)
        rows = [read_columns(row, _Running, "a request") for row in (yield query).rows]
        return sum(count for state, owner, count in rows if state == "sent" or not has_ended(owner or ""))

    def find_failure(self) -> Queries[bytes | None]:
        """The result of the first request that failed; None if none did."""
        query = "SELECT result FROM batch_requests WHERE batch = ? AND state = 'failed' ORDER BY number LIMIT 1"
        row = (yield Query(query, (self.name,), is_alone=True)).first
        return None if row is None else read_columns(row, _Result, "a result").result or b"{}"

    def count_sent(self) -> Queries[int]:
        """The requests that are in batches of a vendor."""
        return (yield from self._count("sent"))

    # --- the rows -----------------------------------------------------------------------------------------------------

    def load(self, rows: Sequence[LoadedRow], version: int) -> Queries[BatchRecord]:
        """Add rows, in order and without gaps. They replace rows of an earlier load at the same places.

        A load that broke off can go on after the `row_count` of the record that this returns. So can one that another
        process does too: the rows of a version are the same for both. Nothing is added when all rows are loaded, when
        the batch was cancelled, or when there is another version.
        """
        record, now = yield from self._lock()
        if record.state != "loading" or record.version != version:
            return record
        yield QueryMany(_ADD_REQUEST, [(self.name, row.hash, row.place, row.request) for row in rows])
        yield QueryMany(
            _ADD_ROW,
            [(self.name, row.place, row.hash, encode_id(row.id), row.rest) for row in rows],
        )
        if rows:
            record.row_count = max(record.row_count, rows[-1].place + 1)
        yield from self._save(record, now)
        return record

    def finish_loading(self, row_count: int, version: int) -> Queries[BatchRecord]:
        """All rows are loaded: forget those of an earlier load that are gone, and open the batch.

        Answers to questions that are gone are kept, in case they come back. Raises a ConfigError for an id that two
        rows have. Changes nothing where `load` adds nothing.
        """
        record, now = yield from self._lock()
        if record.state != "loading" or record.version != version:
            return record
        yield Query("DELETE FROM batch_rows WHERE batch = ? AND place >= ?", (self.name, row_count))
        twice = (
            yield Query(
                "SELECT min(place), max(place) FROM batch_rows WHERE batch = ? AND id IS NOT NULL GROUP BY id "
                "HAVING count(*) > 1 ORDER BY 1 LIMIT 1",
                (self.name,),
            )
        ).first
        if twice is not None:
            raise ConfigError(f"rows {twice[0] + 1} and {twice[1] + 1} have the same id. Give each its own, or none.")
        yield Query(
            f"DELETE FROM batch_requests WHERE batch = ? AND state IN ('waiting', 'failed') AND NOT {_IS_ASKED}",
            (self.name, self.name),
        )
        states = dict(
            (
                yield Query(
                    f"SELECT state, count(*) FROM batch_requests WHERE batch = ? AND {_IS_ASKED} GROUP BY state",
                    (self.name, self.name),
                )
            ).rows
        )
        record.row_count, record.requests = row_count, sum(states.values())
        record.done, record.failed = states.get("done", 0), states.get("failed", 0)
        record.state, record.done_before = "open", record.done
        yield from self._save(record, now)
        return record

    def join(self, first: int, count: int) -> Queries[list[JoinedRow]]:
        """`count` rows from a place on, each with the result of its request."""
        rows = (yield Query(_JOIN, (self.name, first, count), is_alone=True)).rows
        return [
            JoinedRow(place, hash_, request, decode_id(id_), read_object(rest), state, read_object(result))
            for place, hash_, request, id_, rest, state, result in (read_columns(row, _Joined, "a row") for row in rows)
        ]

    # --- the requests -------------------------------------------------------------------------------------------------

    def exchange(
        self,
        owner: str,
        outcomes: Sequence[Outcome],
        want: int,
        limits: RunLimits,
        *,
        version: int,
        released: Sequence[str] = (),
        pause: float = 0.0,
        renew: bool = False,
    ) -> Queries[ExchangeResult]:
        """Write outcomes, and claim as many requests as are wanted and allowed.

        `released`: claimed requests that were not asked. `pause`: seconds during which no process should send. `renew`:
        extend the leases of this owner. Nothing is claimed from a batch that was reloaded or cancelled.
        """
        record, now = yield from self._lock()
        if outcomes:
            yield from self._settle(record, owner, outcomes, limits)
        if released:
            yield from self._release(record, released)
        if pause:
            record.paused_until = max(record.paused_until, now + pause)
        if renew:
            yield Query(
                "UPDATE batch_requests SET lease = ? WHERE batch = ? AND state = 'claimed' AND owner = ?",
                (now + LEASE_SECONDS, self.name, owner),
            )
        exchange = ExchangeResult(record, [], now)
        if want and record.state == "open" and record.version == version and record.left:
            exchange = yield from self._claim(record, now, owner, want, limits)
        yield from self._save(record, now)
        return exchange

    def _settle(self, record: BatchRecord, owner: str, outcomes: Sequence[Outcome], limits: RunLimits) -> Queries[None]:
        known = yield from self._read_states([outcome.hash for outcome in outcomes])
        settled: list[tuple[Any, ...]] = []
        for outcome in outcomes:
            state, holder, reserved = known.get(outcome.hash, (None, None, 0))
            if state in ("done", "failed") and holder == owner:
                continue  # It was written before, but the answer of the database was lost.
            record.input_tokens += outcome.input_tokens
            record.output_tokens += outcome.output_tokens
            record.thinking_tokens += outcome.thinking_tokens
            # Where a limit is set, a reply of unknown cost counts with the most that it may have cost.
            record.cost += reserved if outcome.cost is None else outcome.cost
            record.unpriced += outcome.cost is None
            if limits.tpm:
                record.next_token += (outcome.tokens - outcome.estimated) * 60.0 / limits.tpm
            if state is None or state == "done":
                continue  # Its rows are gone, or another owner answered it after this one had lost its lease.
            record.reserved -= reserved
            record.failed += (not outcome.is_answered) - (state == "failed")
            record.done += outcome.is_answered
            new = "done" if outcome.is_answered else "failed"
            settled.append((new, outcome.result, owner, self.name, outcome.hash))
        if settled:
            yield QueryMany(_SETTLE, settled)

    def _read_states(self, hashes: Sequence[str]) -> Queries[dict[str, tuple[str | None, str | None, int]]]:
        query = (
            "SELECT hash, state, owner, reserved FROM batch_requests WHERE batch = ? AND hash IN "
            f"({', '.join('?' * len(hashes))})"
        )
        rows = (yield Query(query, (self.name, *hashes))).rows
        read = (read_columns(row, _Held, "a request") for row in rows)
        return {hash_: (state, owner, reserved) for hash_, state, owner, reserved in read}

    def _release(self, record: BatchRecord, hashes: Sequence[str]) -> Queries[None]:
        known = yield from self._read_states(hashes)
        held = [(hash_, reserved) for hash_, (state, _, reserved) in known.items() if state == "claimed"]
        record.reserved -= sum(reserved for _, reserved in held)
        yield QueryMany(_RELEASE, [(self.name, hash_) for hash_, _ in held])

    def _claim(
        self, record: BatchRecord, now: float, owner: str, want: int, limits: RunLimits
    ) -> Queries[ExchangeResult]:
        query = (
            "SELECT hash, number, request, reserved FROM batch_requests WHERE batch = ? AND state = ? "
            "AND (lease IS NULL OR lease < ?) ORDER BY number LIMIT ?"
        )
        found = (yield Query(query, (self.name, "waiting", now, want))).rows
        if len(found) < want:
            found = [*found, *(yield Query(query, (self.name, "claimed", now, want - len(found)))).rows]
        claims: list[Claim] = []
        changes: list[tuple[Any, ...]] = []
        has_reached_max_cost, wait = False, 0.0
        expected = record.output_tokens // record.done if record.done else _FIRST_OUTPUT
        for hash_, number, request, reserved in (read_columns(row, _Claimable, "a request") for row in found):
            estimate = RequestEstimate() if limits.estimate is None else limits.estimate(request)
            spent = record.cost + record.reserved - reserved
            if limits.max_cost is not None and spent + estimate.most_cost > limits.max_cost:
                has_reached_max_cost = True
                break
            start = limits.find_slot(record, now)
            if start > now + _HORIZON_SECONDS:
                wait = start - now - _HORIZON_SECONDS
                break
            tokens = estimate.tokens + min(expected, estimate.most_output or expected)
            limits.take_slot(record, now, tokens)
            bound = 0 if limits.max_cost is None else estimate.most_cost
            record.reserved += bound - reserved
            claims.append(Claim(hash_, number, request, start, tokens))
            changes.append((owner, now + LEASE_SECONDS, bound, self.name, hash_))
        if changes:
            yield QueryMany(_CLAIM, changes)
        return ExchangeResult(record, claims, now, has_reached_max_cost, wait)

    def release(self, owner: str, kept: Collection[str] = ()) -> Queries[None]:
        """Release the requests that this owner has claimed, except those in `kept`."""
        record, now = yield from self._lock()
        query = "SELECT hash FROM batch_requests WHERE batch = ? AND state = 'claimed' AND owner = ?"
        rows = (yield Query(query, (self.name, owner))).rows
        for group in split_hashes([hash_ for (hash_,) in rows if hash_ not in kept]):
            yield from self._release(record, group)
        yield from self._save(record, now)

    def release_ended(self, has_ended: Callable[[str], bool]) -> Queries[int]:
        """Release the requests of owners that are known to have ended. Returns how many are still claimed."""
        record, now = yield from self._lock()
        yield from self._release_ended(record, now, has_ended)
        yield from self._save(record, now)
        return (yield from self._count("claimed"))

    def _release_ended(self, record: BatchRecord, now: float, has_ended: Callable[[str], bool]) -> Queries[None]:
        query = "SELECT hash, owner, lease FROM batch_requests WHERE batch = ? AND state = 'claimed'"
        rows = [read_columns(row, _Leased, "a request") for row in (yield Query(query, (self.name,))).rows]
        ended = {owner for owner in {owner for _, owner, _ in rows} if has_ended(owner or "")}
        for group in split_hashes([hash_ for hash_, owner, lease in rows if owner in ended or (lease or 0) < now]):
            yield from self._release(record, group)


def list_records() -> Queries[list[BatchRecord]]:
    """All batches of a ledger, the one that changed last at the end."""
    query = f"SELECT {', '.join(_COLUMNS)} FROM batches ORDER BY updated, name"
    return [read_record(row) for row in (yield Query(query, is_alone=True)).rows]
