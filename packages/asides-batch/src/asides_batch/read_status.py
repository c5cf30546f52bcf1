"""Read from a ledger how far a batch is, and list all batches of a ledger."""

from __future__ import annotations

import time

import msgspec

from asides.database import Database
from asides_batch.batch_status import BatchStatus, build_status
from asides_batch.leases import has_ended
from asides_batch.ledger import Ledger, list_records
from asides_batch.ledger_tables import open_ledger_database
from asides_batch.ledger_values import BatchRecord


def list_statuses(place: str) -> list[BatchStatus]:
    """How far each batch of a ledger is, the latest last. `place`: a file that exists, or a postgresql:// URL."""
    database = open_ledger_database(place)
    try:
        return [read_status(database, record) for record in database.run(list_records, writes=False)]
    finally:
        database.close()


def read_status(database: Database, record: BatchRecord) -> BatchStatus:
    """Progress of a batch, also if another process runs it."""
    ledger = Ledger(record.name)
    running = database.run(lambda: ledger.count_running(has_ended), writes=False)
    failure = database.run(ledger.find_failure, writes=False) if record.failed else None
    status = build_status(record, time.time(), running, failure)
    if record.via != "vendor":
        return status
    from asides_batch.vendor.vendor_ledger import VendorLedger  # Most batches are live.

    found = database.run(VendorLedger(record.name).list_open, writes=False)
    return msgspec.structs.replace(status, vendor_batches=tuple(one.describe() for one in found))
