"""`VendorLedger`: the work on a ledger for batches at vendors: which requests are in which, and how far each is.

A batch is intended, with its requests, before anything is sent; it is marked before the one request that creates it;
its id is stored before anybody waits for it.
"""

# ruff: noqa: S608 - the parts of statements are question marks
from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from asides.database import LEASE_SECONDS, Queries, Query, QueryMany
from asides_batch.batch_status import VendorBatchStatus
from asides_batch.ledger import Ledger
from asides_batch.ledger_values import BatchRecord, Claim, Outcome, RunLimits, split_hashes

VendorState: TypeAlias = Literal["intended", "creating", "searching", "created", "ended", "dropped"]
"""Nothing is created · the creation was sent · batches that may be ours are watched · the id is known · its results are
written · there is no such batch, and its requests wait again."""


class VendorBatch(msgspec.Struct, frozen=True):
    """A batch at a vendor, as the ledger has it."""

    marker: str
    """Our name for it."""
    state: VendorState
    requests: int
    owner: str | None
    lease: float | None
    sent: float | None
    """When the request that creates it was sent. Unix time of the database."""
    vendor_id: str | None
    candidates: tuple[str, ...]
    """Ids of batches that may be ours, where the vendor keeps no name of ours."""
    vendor_state: str
    """How far it is, in the vendor's word; "" before that is known."""
    done: int | None
    created: float

    def describe(self, provider: str = "") -> VendorBatchStatus:
        """How far it is."""
        return VendorBatchStatus(
            self.vendor_id, self.vendor_state or self.state, self.requests, self.done or None, provider
        )


_SELECT = (
    "SELECT marker, state, requests, owner, lease, sent, vendor_id, candidates, vendor_state, done, created "
    "FROM vendor_batches WHERE batch = ?"
)
_SEND = (
    "UPDATE batch_requests SET state = 'sent', vendor_batch = ?, owner = NULL, lease = NULL "
    "WHERE batch = ? AND hash = ?"
)
_RELEASE = (
    "UPDATE batch_requests SET state = 'waiting', result = ?, owner = NULL, lease = NULL, reserved = 0, "
    "vendor_batch = NULL WHERE batch = ? AND hash = ?"
)


class VendorLedger(Ledger):
    """The ledger of a batch that vendors answer."""

    # --- batches at the vendor ----------------------------------------------------------------------------------------

    def intend(self, owner: str, marker: str, hashes: Sequence[str]) -> Queries[list[str]]:
        """Put claimed requests into a batch that is about to be created; returns those that are still this owner's."""
        record, now = yield from self._lock()
        held: list[str] = []
        for group in split_hashes(hashes):
            known = yield from self._read_states(group)
            held += [hash_ for hash_ in group if known.get(hash_, (None, None, 0))[:2] == ("claimed", owner)]
        if held:
            yield Query(
                "INSERT INTO vendor_batches (batch, marker, state, requests, owner, lease, vendor_state, created) "
                "VALUES (?, ?, 'intended', ?, ?, ?, '', ?)",
                (self.name, marker, len(held), owner, now + LEASE_SECONDS, now),
            )
            yield QueryMany(_SEND, [(marker, self.name, hash_) for hash_ in held])
        yield from self._save(record, now)
        return held

    def begin_creation(self, marker: str, owner: str) -> Queries[float | None]:
        """Mark that the creation is about to be sent; returns when. None if the batch is not this owner's any more."""
        _, now = yield from self._lock()
        changed = (
            yield Query(
                "UPDATE vendor_batches SET state = 'creating', sent = ?, lease = ? WHERE batch = ? AND marker = ? "
                "AND owner = ? AND state IN ('intended', 'creating')",
                (now, now + LEASE_SECONDS, self.name, marker, owner),
            )
        ).changed
        return now if changed else None

    def store_id(self, marker: str, vendor_id: str) -> Queries[None]:
        """Store the vendor's id. From now on anybody may wait for the batch."""
        yield from self._lock()
        yield Query(
            "UPDATE vendor_batches SET state = 'created', vendor_id = ?, candidates = NULL, owner = NULL, lease = NULL "
            "WHERE batch = ? AND marker = ?",
            (vendor_id, self.name, marker),
        )

    def watch(self, marker: str, candidates: Sequence[str]) -> Queries[None]:
        """Store the ids of batches that may be this one. Their results will show which one is."""
        yield from self._lock()
        yield Query(
            "UPDATE vendor_batches SET state = 'searching', candidates = ?, owner = NULL, lease = NULL "
            "WHERE batch = ? AND marker = ?",
            (json.dumps(list(candidates)), self.name, marker),
        )

    def note(self, marker: str, vendor_state: str, done: int | None) -> Queries[None]:
        """Store what the vendor says about a batch, for status queries."""
        yield Query(
            "UPDATE vendor_batches SET vendor_state = ?, done = ? WHERE batch = ? AND marker = ?",
            (vendor_state, done, self.name, marker),
            is_alone=True,
        )

    def adopt(self, marker: str, owner: str, has_ended: Callable[[str], bool]) -> Queries[VendorBatch | None]:
        """Take over the creation of a batch from an ended owner; returns it as it was. None if its owner runs."""
        _, now = yield from self._lock()
        found = next((batch for batch in (yield from self.list_open()) if batch.marker == marker), None)
        if found is None or found.state not in ("intended", "creating"):
            return None
        is_ours = found.owner == owner
        if not is_ours and not has_ended(found.owner or "") and (found.lease or 0.0) >= now:
            return None
        yield Query(
            "UPDATE vendor_batches SET owner = ?, lease = ? WHERE batch = ? AND marker = ?",
            (owner, now + LEASE_SECONDS, self.name, marker),
        )
        return found

    def renew(self, owner: str) -> Queries[None]:
        """Lengthen the leases of an owner: of its claims, and of the batches that it creates."""
        _, now = yield from self._lock()
        for table in ("batch_requests", "vendor_batches"):
            query = f"UPDATE {table} SET lease = ? WHERE batch = ? AND owner = ? AND lease IS NOT NULL"
            yield Query(query, (now + LEASE_SECONDS, self.name, owner))

    def release_batches(self, owner: str) -> Queries[None]:
        """Let anybody go on with the batches that this owner has not finished creating."""
        yield from self._lock()
        yield Query("UPDATE vendor_batches SET lease = 0 WHERE batch = ? AND owner = ?", (self.name, owner))

    def list_open(self) -> Queries[list[VendorBatch]]:
        """The batches that have not ended, the oldest first."""
        rows = (yield Query(f"{_SELECT} AND state NOT IN ('ended', 'dropped') ORDER BY created", (self.name,))).rows
        return [_read_batch(row) for row in rows]

    def list_ids(self) -> Queries[set[str]]:
        """The ids of all batches of this ledger at the vendor."""
        rows = (yield Query("SELECT vendor_id FROM vendor_batches WHERE batch = ?", (self.name,), is_alone=True)).rows
        return {vendor_id for (vendor_id,) in rows if vendor_id is not None}

    def read_now(self) -> Queries[float]:
        """The time of the database."""
        _, now = yield from self._lock()
        return now

    # --- their requests -----------------------------------------------------------------------------------------------

    def find_example(self, marker: str) -> Queries[Claim | None]:
        """One request of a batch; None if it has none."""
        query = "SELECT hash, number, request FROM batch_requests WHERE batch = ? AND vendor_batch = ? LIMIT 1"
        row = (yield Query(query, (self.name, marker), is_alone=True)).first
        return None if row is None else Claim(row[0], row[1], bytes(row[2]), 0.0)

    def list_sent(self, marker: str) -> Queries[dict[str, int]]:
        """The requests of a batch that have no result yet, and how often each was tried."""
        query = "SELECT hash, attempts FROM batch_requests WHERE batch = ? AND vendor_batch = ? AND state = 'sent'"
        return dict((yield Query(query, (self.name, marker), is_alone=True)).rows)

    def read_requests(self, hashes: Sequence[str]) -> Queries[dict[str, Claim]]:
        """The requests of these hashes."""
        marks = ", ".join("?" * len(hashes))
        query = f"SELECT hash, number, request FROM batch_requests WHERE batch = ? AND hash IN ({marks})"
        rows = (yield Query(query, (self.name, *hashes), is_alone=True)).rows
        return {hash_: Claim(hash_, number, bytes(request), 0.0) for hash_, number, request in rows}

    def settle(
        self, marker: str, outcomes: Sequence[Outcome], returned: Sequence[Outcome], limits: RunLimits
    ) -> Queries[BatchRecord]:
        """Write outcomes of a batch. Requests in `returned` wait again, with their error. What was written before, or
        is in another batch by now, stays as it is.
        """
        record, now = yield from self._lock()
        hashes = [outcome.hash for outcome in (*outcomes, *returned)]
        marks = ", ".join("?" * len(hashes))
        query = (
            "SELECT hash, reserved FROM batch_requests WHERE batch = ? AND vendor_batch = ? AND state = 'sent' "
            f"AND hash IN ({marks})"
        )
        sent = dict((yield Query(query, (self.name, marker, *hashes))).rows) if hashes else {}
        if kept := [outcome for outcome in outcomes if outcome.hash in sent]:
            yield from self._settle(record, marker, kept, limits)
        if back := [outcome for outcome in returned if outcome.hash in sent]:
            record.reserved -= sum(sent[outcome.hash] for outcome in back)
            yield QueryMany(_RELEASE, [(outcome.result, self.name, outcome.hash) for outcome in back])
        yield from self._save(record, now)
        return record

    def close(self, marker: str, state: VendorState, result: bytes | None = None) -> Queries[BatchRecord]:
        """End a batch: it has `ended`, or was `dropped` (not an attempt). Requests without a result wait again."""
        record, now = yield from self._lock()
        query = "SELECT hash, reserved FROM batch_requests WHERE batch = ? AND vendor_batch = ? AND state = 'sent'"
        left = (yield Query(query, (self.name, marker))).rows
        record.reserved -= sum(reserved for _, reserved in left)
        if left:
            again = _RELEASE.replace(" SET ", " SET attempts = attempts - 1, ") if state == "dropped" else _RELEASE
            yield QueryMany(again, [(result, self.name, hash_) for hash_, _ in left])
        yield Query(
            "UPDATE vendor_batches SET state = ?, owner = NULL, lease = NULL WHERE batch = ? AND marker = ?",
            (state, self.name, marker),
        )
        yield from self._save(record, now)
        return record


def _read_batch(row: tuple[Any, ...]) -> VendorBatch:
    marker, state, requests, owner, lease, sent, vendor_id, candidates, vendor_state, done, created = row
    ids = tuple(json.loads(candidates)) if candidates else ()
    return VendorBatch(marker, state, requests, owner, lease, sent, vendor_id, ids, vendor_state, done, created)
