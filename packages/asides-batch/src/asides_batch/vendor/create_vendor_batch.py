"""Create batches at a vendor: requests are grouped and split to the vendor's limits, and no batch is created twice.

The one request that creates a batch is never repeated blindly. Where its answer is lost, the vendor's list shows
whether there is a batch.
"""

from __future__ import annotations

import logging
import secrets
from typing import Any

import msgspec

from asides.values.errors import (
    AsidesError,
    ConfigError,
    ProtocolError,
    ProviderError,
    RateLimited,
    TransportError,
    Unsupported,
)
from asides_batch.leases import has_ended
from asides_batch.ledger_values import Claim, Outcome
from asides_batch.vendor.forms import FormResponse, ListedBatch, VendorRow
from asides_batch.vendor.vendor_channel import VendorChannel
from asides_batch.vendor.vendor_ledger import VendorBatch
from asides_batch.vendor.vendor_requests import VendorTarget, find_target, send, send_upload

_log = logging.getLogger("asides")
_CLAIMS = 500
# A batch is built in memory, so it is kept below what vendors take.
_MOST_BYTES = 100 * 1000 * 1000
# What JSON around the rows takes, and the form of an upload.
_FRAME_BYTES = 10_000
_LIST_PAGES = 50
# Clocks differ; and the creation may have been sent late.
_EARLIER, _LATER = 300.0, 3600.0
_MOST_WAITS = 8


class _Group:
    """Rows that go into one batch."""

    def __init__(self, target: VendorTarget) -> None:
        self.target = target
        self.rows: dict[str, bytes] = {}
        self.size = _FRAME_BYTES

    def add(self, hash_: str, line: bytes) -> None:
        self.rows[hash_] = line
        self.size += len(line) + 1

    def has_room(self, line: bytes) -> bool:
        facts = self.target.facts
        limit = min(facts.most_bytes, _MOST_BYTES)
        return len(self.rows) < facts.most_requests and self.size + len(line) + 1 <= limit


class BatchCreator:
    """Creates the batches of one run."""

    def __init__(self, channel: VendorChannel) -> None:
        self._channel = channel
        self._job = channel.job

    async def create_all(self) -> bool:
        """Create batches of all requests that wait; returns whether there was any."""
        groups: dict[Any, _Group] = {}
        found = False
        while not self._job.stop.is_set():
            held = [hash_ for group in groups.values() for hash_ in group.rows]
            exchange = await self._job.exchange([], _CLAIMS, held=held)
            self._job.has_reached_max_cost = exchange.has_reached_max_cost
            if not exchange.claims:
                break
            found = True
            outcomes = [await self._add(claim, groups) for claim in exchange.claims]
            if failed := [outcome for outcome in outcomes if outcome is not None]:
                await self._job.exchange(failed, 0)
        for group in groups.values():
            if self._job.stop.is_set():
                break
            await self._create(group)
        return found

    async def _add(self, claim: Claim, groups: dict[Any, _Group]) -> Outcome | None:
        """Add a request to its group, and create the batch before it if that is full. Returns the error of a row."""
        try:
            call = self._channel.build(claim)
            target = find_target(call, claim.hash)
        except (Unsupported, ConfigError) as error:
            if is_fatal(error) and self._job.read(claim).model is None:
                raise
            return self._job.encode(claim, error)
        except AsidesError as error:
            return self._job.encode(claim, error)
        line = target.form.encode_row(target.row)
        if len(line) + _FRAME_BYTES > min(target.facts.most_bytes, _MOST_BYTES):
            problem = ConfigError(
                f"the request has {len(line)} bytes, more than a batch of {target.call.target.provider.name} takes. "
                "Make it shorter, or ask it with --via live."
            )
            return self._job.encode(claim, problem)
        key = (target.call.target.provider.name, target.call.target.base_url, *target.form.group(target.row))
        group = groups.get(key)
        if group is not None and not group.has_room(line):
            del groups[key]
            await self._create(group)
            group = None
        if group is None:
            group = groups[key] = _Group(target)
        group.add(claim.hash, line)
        return None

    # --- one batch ----------------------------------------------------------------------------------------------------

    async def _create(self, group: _Group) -> None:
        marker = f"asides-{secrets.token_hex(12)}"
        hashes = await self._channel.store(
            lambda ledger: ledger.intend(self._job.owner, marker, list(group.rows)),
        )
        if not hashes:
            return
        target, lines = group.target, [group.rows[hash_] for hash_ in hashes]
        row = msgspec.structs.replace(target.row, custom_id=hashes[0])
        try:
            file = await self._upload(target, row, marker, lines)
        except AsidesError:
            await self._drop(marker)
            raise
        waits = 0
        while True:
            sent = await self._channel.store(lambda ledger: ledger.begin_creation(marker, self._job.owner))
            if sent is None:
                return  # It took so long that another process has taken the requests back.
            request = target.form.create(row, marker, lines, file)
            try:
                status = await self._channel.send(
                    target, send(target, request, target.form.read_status, "creation", once=True)
                )
            except (ProviderError, TransportError, ProtocolError) as error:
                if not _is_refused(error):
                    _log.warning("the answer to the creation of a batch was lost; checking the vendor's list")
                    await self.search(marker, target, sent, len(hashes))
                    return
                waits += 1
                if not isinstance(error, RateLimited) or waits > _MOST_WAITS or self._job.stop.is_set():
                    await self._drop(marker)
                    raise
                wait = self._channel.pace.first * 2.0**waits if error.retry_after is None else error.retry_after
                await self._channel.sleep(min(wait, self._channel.pace.longest))
                continue
            await self._channel.store(lambda ledger: ledger.store_id(marker, status.id))  # noqa: B023 - awaited here
            _log.info("created a batch of %d requests at %s", len(hashes), target.call.target.provider.name)
            return

    async def _upload(self, target: VendorTarget, row: VendorRow, marker: str, lines: list[bytes]) -> str | None:
        upload = target.form.upload(row, marker, lines, target.facts.most_inline_bytes)
        answered: FormResponse | None = None
        while True:
            try:
                request = next(upload) if answered is None else upload.send(answered)
            except StopIteration as end:
                file: str | None = end.value
                return file
            answered = await self._channel.send(target, send_upload(target, request))

    async def _drop(self, marker: str) -> None:
        """Nothing was created: its requests wait again."""
        await self._channel.write(lambda ledger: ledger.close(marker, "dropped"))

    # --- batches whose creation was not acknowledged ------------------------------------------------------------------

    async def take_over(self, batch: VendorBatch) -> None:
        """Go on with a batch that another process, or this one, did not finish creating."""
        found = await self._channel.store(lambda ledger: ledger.adopt(batch.marker, self._job.owner, has_ended))
        if found is None:
            return
        target = await self._channel.find_target(batch.marker)
        if found.state == "intended" or found.sent is None or target is None:
            await self._drop(batch.marker)  # Nothing was sent.
            return
        await self.search(batch.marker, target, found.sent, found.requests)

    async def search(self, marker: str, target: VendorTarget, sent: float, requests: int) -> None:
        """Look for a batch in the vendor's list. Its requests wait again only when it is surely not there."""
        began = await self._channel.store(lambda ledger: ledger.read_now())
        while not self._job.stop.is_set():
            known = await self._channel.store(lambda ledger: ledger.list_ids())
            listed = [one for one in await self._list(target, sent) if one.id not in known]
            named = [one for one in listed if one.marker == marker]
            if named:
                await self._channel.store(lambda ledger: ledger.store_id(marker, named[0].id))  # noqa: B023 - awaited
                return
            now = await self._channel.store(lambda ledger: ledger.read_now())
            if not target.form.has_marker:
                similar = [one.id for one in listed if one.marker is None and one.total in (None, requests)]
                if similar:
                    # An unrelated batch may have the same size. The results show whose it is.
                    await self._channel.store(lambda ledger: ledger.watch(marker, similar))  # noqa: B023 - awaited
                    return
            # The process that sent the creation may have ended only just now.
            if now - began >= self._channel.pace.settle:
                await self._drop(marker)
                return
            await self._channel.sleep(self._channel.pace.first)

    async def _list(self, target: VendorTarget, sent: float) -> list[ListedBatch]:
        """The batches that were created around this time."""
        form, found, after = target.form, list[ListedBatch](), None
        for _ in range(_LIST_PAGES):
            flow = send(target, form.list(target.row, after), form.read_list, "list")
            page = await self._channel.send(target, flow)
            found += [
                one for one in page.batches if one.created is None or sent - _EARLIER <= one.created <= sent + _LATER
            ]
            oldest = min((one.created for one in page.batches if one.created is not None), default=None)
            after = page.after
            if after is None or (oldest is not None and oldest < sent - _EARLIER):
                break
        return found


def is_fatal(error: AsidesError) -> bool:
    """Whether an error concerns every row, and not one: without a key or a model, none can be asked."""
    from asides.values.errors import MissingKey, UnknownModel, UnknownProvider

    return isinstance(error, (Unsupported, MissingKey, UnknownModel, UnknownProvider))


def _is_refused(error: AsidesError) -> bool:
    """Whether the vendor surely created nothing: it answered, and refused."""
    status = error.status if isinstance(error, ProviderError) else None
    return status is not None and 400 <= status < 500 and status not in (408, 409)
