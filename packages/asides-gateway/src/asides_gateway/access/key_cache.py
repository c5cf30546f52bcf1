"""The keys of the database, in memory: only the first request with a new key waits for the database.

`KeyCache.find(digest)`. Revocations are read every three seconds, and immediately when Redis reports one. While the
database does not answer, known keys stay valid for a while.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import Callable
from contextlib import suppress

from asides.database import Database, StoreError
from asides.values.outage_log import OutageLog
from asides_gateway.access import KeyRecord
from asides_gateway.access.key_store import find_key, has_keys, list_keys, list_revoked_since, note_use

_log = logging.getLogger("asides.gateway")

GRACE_SECONDS = 3600.0
"""How long known keys stay valid while the database does not answer."""
_REFRESH_SECONDS = 3.0
"""The pause between two reads of revocations."""
_RELOAD_SECONDS = 60.0
"""The pause between two reads of all keys."""
_SKEW_SECONDS = 900.0
"""How far the clocks of machines may differ. Revocations are read again from this long before the last read."""
_MOST_UNKNOWN = 10_000
"""How many unknown keys are remembered, so that none of them is looked up again and again."""
_UNKNOWN_SECONDS = 30.0
_MOST_LOOKUPS = 8
"""How many lookups run at once."""
_MOST_WAITING = 200
_LOOKUP_SECONDS = 5.0


class KeyCache:
    """The valid keys. It belongs to one event loop; only `load` may run in a thread."""

    def __init__(
        self, database: Database, *, grace_seconds: float = GRACE_SECONDS, clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._grace = grace_seconds
        self._clock = clock
        self._records: dict[bytes, KeyRecord] = {}
        self._unknown: dict[bytes, float] = {}
        self._lookups: dict[bytes, asyncio.Task[None]] = {}
        self._used: dict[str, float] = {}
        self._read_at: float | None = None
        """When the database last answered; None: never."""
        self._full_at = 0.0
        self._lookup_slots: asyncio.Semaphore | None = None
        self._wake = asyncio.Event()
        self.has_keys: bool | None = None
        """Whether a key was ever made; None until the database has answered."""
        self._outage = OutageLog(
            _log.warning,
            "the database of the gateway's keys does not answer ({reason}): known keys keep working for "
            f"{grace_seconds:.0f} s, others get 503",
            "the database of the gateway's keys answers again",
        )
        self.on_change: Callable[[], None] | None = None
        """Called when `has_keys` has changed."""

    def __repr__(self) -> str:
        return f"KeyCache({len(self._records)} keys)"

    @property
    def is_down(self) -> bool:
        """Whether the database did not answer when it was last asked."""
        return self._outage.is_down

    def __len__(self) -> int:
        return len(self._records)

    def list_records(self) -> list[KeyRecord]:
        """The keys that are known now."""
        return list(self._records.values())

    # --- asking -------------------------------------------------------------------------------------------------------

    def find(self, digest: bytes) -> KeyRecord | None:
        """The valid key with this digest; None if it is not in memory, or not valid."""
        now = self._clock()
        record = self._records.get(digest)
        if record is None or not hmac.compare_digest(record.digest, digest) or not record.is_valid(now):
            return None
        if self._outage.is_down and (self._read_at is None or now - self._read_at > self._grace):
            return None  # It may have been revoked meanwhile.
        self._used[record.id] = now
        return record

    def can_look_up(self, digest: bytes) -> bool:
        """Whether to look for a key in the database: not if it was just found to be unknown."""
        return self._unknown.get(digest, 0.0) <= self._clock()

    def is_unsure(self, digest: bytes) -> bool:
        """True if the key is unknown and the database is down."""
        return self._outage.is_down and self.can_look_up(digest)

    async def look_up(self, digest: bytes) -> bool:
        """Look for a key in the database; afterwards `find` finds it if it is valid. Several requests with one key
        share one lookup. An invalid key takes as long as an unknown one. False: too many lookups wait, and none was
        made.
        """
        task = self._lookups.get(digest)
        if task is None:
            if len(self._lookups) >= _MOST_WAITING:
                return False
            task = self._lookups[digest] = asyncio.create_task(self._look_up(digest))
            task.add_done_callback(lambda _: self._lookups.pop(digest, None))
        # A client that leaves must not cancel the lookup for the others.
        await asyncio.shield(task)
        return True

    async def _look_up(self, digest: bytes) -> None:
        self._lookup_slots = self._lookup_slots or asyncio.Semaphore(_MOST_LOOKUPS)
        try:
            async with self._lookup_slots:
                async with asyncio.timeout(_LOOKUP_SECONDS):
                    record = await self._database.run_async(lambda: find_key(digest), writes=False)
        except (StoreError, TimeoutError) as problem:
            self._outage.begin(problem)
            return
        self._note_success()
        if record is not None:
            self._note_keys(True)
        if record is not None and record.is_valid(self._clock()):
            self._records[digest] = record
        else:
            self._remember_unknown(digest)

    # --- keeping current ----------------------------------------------------------------------------------------------

    def load(self) -> None:
        """Read all keys, before the first request. A database that does not answer is asked again later."""
        try:
            known = self._database.run(has_keys, writes=False)
            records = self._database.run(lambda: list_keys(valid_at=self._clock()), writes=False) if known else []
        except StoreError as problem:
            self._outage.begin(problem)
            return
        self._note_success()
        self._replace(records, known)

    async def run(self) -> None:
        """Keep the keys current, until the task is cancelled."""
        while True:
            try:
                async with asyncio.timeout(_REFRESH_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            try:
                await self.refresh()
            except Exception as problem:  # noqa: BLE001 - without this task no revocation would be read
                self._outage.begin(problem)

    async def refresh(self) -> None:
        """Read revocations, and once a minute all keys. Write which keys were used."""
        now = self._clock()
        try:
            if self._outage.is_down or self.has_keys is None or now - self._full_at >= _RELOAD_SECONDS:
                known = await self._database.run_async(has_keys, writes=False)
                records = await self._database.run_async(lambda: list_keys(valid_at=now), writes=False) if known else []
                self._note_success()
                self._replace(records, known)
            elif not self.has_keys:
                self._note_keys(await self._database.run_async(has_keys, writes=False))
                self._note_success()
            else:
                since = (self._read_at or now) - _SKEW_SECONDS
                revoked = set(await self._database.run_async(lambda: list_revoked_since(since), writes=False))
                self._note_success()
                self._drop(revoked)
            await self._write_use()
        except StoreError as problem:
            self._outage.begin(problem)
        self._unknown = {digest: until for digest, until in self._unknown.items() if until > now}

    async def _write_use(self) -> None:
        used, self._used = self._used, {}
        if used:
            await self._database.run_async(lambda: note_use(used), durable=False, repeatable=True)

    def on_revoked(self, key_id: str) -> None:
        """Forget a key that was revoked, and refresh soon."""
        self._drop({key_id})
        self._wake.set()

    async def close(self) -> None:
        """Write which keys were used, and cancel lookups."""
        for task in list(self._lookups.values()):
            task.cancel()
        with suppress(StoreError):  # Only the times of the last use are lost.
            await self._write_use()

    def _drop(self, key_ids: set[str]) -> None:
        for digest in [digest for digest, record in self._records.items() if record.id in key_ids]:
            del self._records[digest]

    def _replace(self, records: list[KeyRecord], known: bool) -> None:
        self._records = {record.digest: record for record in records}
        self._full_at = self._clock()
        self._note_keys(known)

    def _remember_unknown(self, digest: bytes) -> None:
        while len(self._unknown) >= _MOST_UNKNOWN:
            del self._unknown[next(iter(self._unknown))]
        self._unknown[digest] = self._clock() + _UNKNOWN_SECONDS

    def _note_keys(self, known: bool) -> None:
        before, self.has_keys = self.has_keys, known
        if before != known and self.on_change is not None:
            self.on_change()

    def _note_success(self) -> None:
        self._read_at = self._clock()
        self._outage.end()
