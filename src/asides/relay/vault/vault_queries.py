"""The work of a vault on its tables, in SQLite and in PostgreSQL.

A file has one writer at a time, so the records of a tenant are counted with each write. A server has many: each
statement is one round trip and locks nothing that the next writer needs, and records are counted now and then
(`drop_excess`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from asides.database import Queries, Query, QueryMany
from asides.relay.steps import PENDING, StoredRecord, UnconfirmedRecord
from asides.relay.vault import VaultLimits, find_replaced_span, measure_record

# Older versions of SQLite take at most 999 values in one statement.
_MOST_KEYS = 500
_MOST_DELETED = 200
"""How many old records one statement deletes: a small batch keeps other callers' waits short."""
_NEWEST = 100
"""How many records show which keys gateways write with."""
_SWEEP_LOCK = 0x61736476
"""The number of the advisory lock of those who delete old records: "asdv"."""


class FoundRecord(NamedTuple):
    """A record as it was found: its number in the table, and when it was last used."""

    number: int
    used: float
    record: StoredRecord


def digest_name(tenant: str) -> bytes:
    """The name of a tenant as it is stored."""
    return hashlib.blake2b(tenant.encode("utf-8", "surrogatepass"), digest_size=16, person=b"asides tenant").digest()


# --- PostgreSQL -------------------------------------------------------------------------------------------------------

# Each key is looked up by itself (OFFSET keeps it so), and then each record. Otherwise a plan cached
# while the tables were small would read all keys of a tenant.
_SERVER_NUMBERS = """number = ANY (ARRAY(
    SELECT found.record FROM unnest(string_to_array(?, chr(31))) AS wanted (key) CROSS JOIN LATERAL (
        SELECT record FROM vault_keys
        WHERE tenant = (SELECT id FROM vault_tenants WHERE name = ?) AND key = wanted.key OFFSET 0
    ) AS found
))"""
_SERVER_READ = f"""
SELECT number, used, id, keys, payload FROM vault_records WHERE {_SERVER_NUMBERS} AND used >= ? ORDER BY number
"""  # noqa: S608 - ours
_SERVER_HEADS = """
SELECT DISTINCT substring(payload FROM 1 FOR ?) FROM (
    SELECT payload FROM vault_records ORDER BY number DESC LIMIT ?
) AS newest
"""
# Lock rows in one order, to avoid deadlocks.
_SERVER_ADD = """
WITH given AS MATERIALIZED (
    SELECT (SELECT t.id FROM vault_tenants t WHERE t.name = g.name) AS tenant, g.*
    FROM {source} AS g (name, id, keys, payload, size{columns})
), {replaced} added AS (
    INSERT INTO vault_records (id, tenant, keys, payload, size, used)
    SELECT id, tenant, keys, payload, size, ? FROM given WHERE tenant IS NOT NULL ORDER BY tenant, id
    ON CONFLICT (tenant, id) DO NOTHING RETURNING number, tenant, keys
), keyed AS (
    INSERT INTO vault_keys (tenant, key, record)
    SELECT tenant, unnest(string_to_array(keys, ' ')), number FROM added ON CONFLICT DO NOTHING
)
SELECT DISTINCT name FROM given WHERE tenant IS NULL
"""
# Records of replies that were cut off are replaced by those of the second attempt. One that is confirmed meanwhile is
# locked, or no longer has this key.
_SERVER_REPLACED = """replaced AS (
    DELETE FROM vault_records WHERE number = ANY (ARRAY(
        SELECT old.number FROM given AS g CROSS JOIN LATERAL (
            SELECT record FROM vault_keys WHERE tenant = g.tenant AND key = g.pending AND g.pending <> '' OFFSET 0
        ) AS found CROSS JOIN LATERAL (
            SELECT number FROM vault_records WHERE number = found.record AND used BETWEEN g.since AND g.until
            AND position(g.pending IN keys) > 0 FOR UPDATE SKIP LOCKED
        ) AS old
    ))
),"""
_ONE = "(VALUES (?::bytea, ?::text, ?::text, ?::bytea, ?::bigint{}))"
_MANY = "unnest(?::bytea[], ?::text[], ?::text[], ?::bytea[], ?::bigint[]{})"


def _write_add(source: str, of_pending: str = "") -> str:
    """The statement that adds records. `of_pending`: the values that only pending ones need."""
    columns, replaced = (", pending, since, until", _SERVER_REPLACED) if of_pending else ("", "")
    return _SERVER_ADD.format(source=source.format(of_pending), columns=columns, replaced=replaced)


_SERVER_ADD_ONE, _SERVER_ADD_MANY = _write_add(_ONE), _write_add(_MANY)
_SERVER_ADD_ONE_PENDING = _write_add(_ONE, ", ?::text, ?::float8, ?::float8")
_SERVER_ADD_MANY_PENDING = _write_add(_MANY, ", ?::text[], ?::float8[], ?::float8[]")
# A record that waits to be confirmed has its pending key as the last one.
_SERVER_CONFIRM = f"""
WITH confirmed AS (
    UPDATE vault_records SET keys = regexp_replace(keys, ' *{PENDING}[^ ]*$', '') WHERE number = ANY (ARRAY(
        SELECT found.number FROM unnest(?::bytea[], ?::text[]) AS g (name, id) CROSS JOIN LATERAL (
            SELECT number FROM vault_records
            WHERE tenant = (SELECT id FROM vault_tenants WHERE name = g.name) AND id = g.id OFFSET 0
        ) AS found
    )) RETURNING number
)
DELETE FROM vault_keys WHERE record = ANY (ARRAY(SELECT number FROM confirmed)) AND starts_with(key, '{PENDING}')
"""  # noqa: S608 - ours
_SERVER_TOUCH = """
UPDATE vault_records SET used = ? WHERE number IN (
    SELECT number FROM vault_records WHERE number = ANY (?::bigint[]) FOR UPDATE SKIP LOCKED
)
"""
_SERVER_DELETE = f"DELETE FROM vault_records WHERE {_SERVER_NUMBERS}"  # noqa: S608 - ours
_SERVER_DROP = """
DELETE FROM vault_records WHERE number IN (
    SELECT number FROM (
        SELECT number, row_number() OVER newest AS place, sum(size) OVER newest AS total FROM vault_records
        WHERE tenant = ? WINDOW newest AS (ORDER BY used DESC, number DESC ROWS UNBOUNDED PRECEDING)
    ) AS counted WHERE place > ? OR total > ?
)
"""
_SERVER_SWEEP = """
DELETE FROM vault_records WHERE number IN (
    SELECT number FROM vault_records WHERE used < ? ORDER BY used LIMIT ? FOR UPDATE SKIP LOCKED
)
"""


def read_on_server(tenant: str, keys: Sequence[str], since: float) -> Queries[list[FoundRecord]]:
    """The records of a tenant that have one of these keys and were used since then, each once, in one round trip."""
    found = yield Query(_SERVER_READ, (_join_keys(keys), digest_name(tenant), since), is_alone=True)
    return _read_rows(found.rows)


def list_newest_heads(length: int) -> Queries[list[bytes]]:
    """The first bytes of the payloads of the newest records, each once."""
    found = yield Query(_SERVER_HEADS, (length, _NEWEST), is_alone=True)
    return [bytes(head) for (head,) in found.rows]


def add_on_server(records: Sequence[tuple[str, StoredRecord]], now: float) -> Queries[list[bytes]]:
    """Add records of tenants in one round trip. Returns the tenants that are not known: theirs are not added. Pending
    records take the place of earlier ones.
    """
    rows: list[tuple[Any, ...]] = [
        (digest_name(tenant), record.id, " ".join(record.keys), record.payload, measure_record(record))
        for tenant, record in records
    ]
    one, many = _SERVER_ADD_ONE, _SERVER_ADD_MANY
    if any(record.pending for _, record in records):
        one, many = _SERVER_ADD_ONE_PENDING, _SERVER_ADD_MANY_PENDING
        spans = [(record.pending, *find_replaced_span(record, now)) for _, record in records]
        rows = [(*row, *span) for row, span in zip(rows, spans, strict=True)]
    if len(rows) == 1:
        # An array takes longer to encode than its one value.
        found = yield Query(one, (*rows[0], now), is_alone=True)
    else:
        columns = [list(column) for column in zip(*rows, strict=True)]
        found = yield Query(many, (*columns, now), is_alone=True)
    return [bytes(name) for (name,) in found.rows]


def confirm_on_server(records: Sequence[UnconfirmedRecord]) -> Queries[None]:
    """Confirm records in one round trip."""
    rows = sorted({(digest_name(record.tenant), record.id) for record in records})
    yield Query(_SERVER_CONFIRM, tuple(list(column) for column in zip(*rows, strict=True)), is_alone=True)


def add_tenants(names: Sequence[bytes]) -> Queries[None]:
    """Make tenants known."""
    yield Query(
        "INSERT INTO vault_tenants (name) SELECT unnest(?::bytea[]) ON CONFLICT DO NOTHING",
        (sorted(names),),
        is_alone=True,
    )


def touch_on_server(numbers: Sequence[int], now: float) -> Queries[None]:
    """Prolong the life of records. One that another process has locked is left to that process."""
    yield Query(_SERVER_TOUCH, (now, list(numbers)), is_alone=True)


def drop_excess(tenant: str, limits: VaultLimits) -> Queries[int]:
    """Delete the records of a tenant above its limits, the least recently used first; returns how many."""
    # Writers of the tenant continue meanwhile.
    found = yield Query("SELECT id FROM vault_tenants WHERE name = ? FOR NO KEY UPDATE", (digest_name(tenant),))
    if found.first is None:
        return 0
    (holder,) = found.first
    count = "SELECT count(*), coalesce(sum(size), 0)::bigint FROM vault_records WHERE tenant = ?"
    records, size = (yield Query(count, (holder,))).rows[0]
    dropped = 0
    if records > limits.records or size > limits.size:
        dropped = (yield Query(_SERVER_DROP, (holder, limits.records, limits.size))).changed
        records, size = (yield Query(count, (holder,))).rows[0]
    yield Query("UPDATE vault_tenants SET records = ?, size = ? WHERE id = ?", (records, size, holder))
    return dropped


def sweep_on_server(before: float) -> Queries[bool]:
    """Delete some records not used since then, unless another process does; returns whether there are more."""
    found = yield Query("SELECT pg_try_advisory_xact_lock(?)", (_SWEEP_LOCK,))
    if found.first != (True,):
        return False
    return (yield Query(_SERVER_SWEEP, (before, _MOST_DELETED))).changed >= _MOST_DELETED


def delete_on_server(tenant: str, keys: Sequence[str]) -> Queries[int]:
    """Delete the records of a tenant that have one of these keys; returns how many there were."""
    return (yield Query(_SERVER_DELETE, (_join_keys(keys), digest_name(tenant)), is_alone=True)).changed


def delete_tenant_on_server(tenant: str) -> Queries[int]:
    """Delete all records of a tenant; returns how many there were."""
    name = digest_name(tenant)
    deleted = yield Query(
        "DELETE FROM vault_records WHERE tenant = (SELECT id FROM vault_tenants WHERE name = ?)", (name,)
    )
    yield Query("DELETE FROM vault_tenants WHERE name = ?", (name,))
    return deleted.changed


# --- SQLite -----------------------------------------------------------------------------------------------------------


def read_in_file(tenant: str, keys: Sequence[str], since: float) -> Queries[list[FoundRecord]]:
    """The same in a file."""
    rows: dict[int, tuple[Any, ...]] = {}
    for start in range(0, len(keys), _MOST_KEYS):
        some = keys[start : start + _MOST_KEYS]
        query = f"""
        SELECT r.number, r.used, r.id, r.keys, r.payload FROM keys k JOIN records r ON r.number = k.record
        WHERE k.tenant = (SELECT id FROM tenants WHERE name = ?) AND k.key IN ({", ".join("?" * len(some))})
        AND r.used >= ?
        """  # noqa: S608 - question marks only
        found = yield Query(query, (digest_name(tenant), *some, since))
        rows |= {row[0]: row for row in found.rows}
    return _read_rows([rows[number] for number in sorted(rows)])


def write_in_file(records: Sequence[tuple[str, StoredRecord]], now: float, limits: VaultLimits) -> Queries[None]:
    """Add records of tenants, and delete what is old or too much."""
    tenants: dict[int, None] = {}
    for tenant, record in records:
        name = digest_name(tenant)
        yield Query("INSERT INTO tenants (name) VALUES (?) ON CONFLICT DO NOTHING", (name,))
        (holder,) = (yield Query("SELECT id FROM tenants WHERE name = ?", (name,))).rows[0]
        tenants[holder] = None
        size = measure_record(record)
        if record.pending:
            yield from _remove_replaced(holder, record, now)
        added = yield Query(
            "INSERT INTO records (id, tenant, keys, payload, size, used) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            (record.id, holder, " ".join(record.keys), record.payload, size, now),
        )
        if added.changed:
            (number,) = (yield Query("SELECT last_insert_rowid()")).rows[0]
            yield QueryMany(
                "INSERT INTO keys (tenant, key, record) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                [(holder, key, number) for key in record.keys],
            )
            yield Query("UPDATE tenants SET records = records + 1, size = size + ? WHERE id = ?", (size, holder))
    old = yield Query(
        "SELECT number FROM records WHERE used < ? ORDER BY used LIMIT ?", (now - limits.seconds, _MOST_DELETED)
    )
    yield from _remove(old.rows)
    for holder in tenants:
        yield from _remove_excess(holder, limits)


def _remove_replaced(holder: int, record: StoredRecord, now: float) -> Queries[None]:
    """Delete the records of replies that were cut off and asked for again."""
    found = yield Query(
        "SELECT r.number FROM keys k JOIN records r ON r.number = k.record WHERE k.tenant = ? AND k.key = ? "
        "AND r.used BETWEEN ? AND ?",
        (holder, record.pending, *find_replaced_span(record, now)),
    )
    yield from _remove(found.rows)


def confirm_in_file(records: Sequence[UnconfirmedRecord]) -> Queries[None]:
    """Confirm records."""
    for record in records:
        found = yield Query(
            "SELECT number, keys FROM records WHERE tenant = (SELECT id FROM tenants WHERE name = ?) AND id = ?",
            (digest_name(record.tenant), record.id),
        )
        for number, keys in found.rows:
            left = " ".join(key for key in keys.split() if key != record.pending)
            yield Query("UPDATE records SET keys = ? WHERE number = ?", (left, number))
            yield Query("DELETE FROM keys WHERE record = ? AND key = ?", (number, record.pending))


def touch_in_file(numbers: Sequence[int], now: float) -> Queries[None]:
    """Prolong the life of records."""
    yield QueryMany("UPDATE records SET used = ? WHERE number = ?", [(now, number) for number in numbers])


def delete_in_file(tenant: str, keys: Sequence[str]) -> Queries[int]:
    """Delete the records of a tenant that have one of these keys; returns how many there were."""
    numbers: dict[tuple[Any, ...], None] = {}
    for start in range(0, len(keys), _MOST_KEYS):
        some = keys[start : start + _MOST_KEYS]
        query = (
            "SELECT record FROM keys WHERE tenant = (SELECT id FROM tenants WHERE name = ?) AND key IN "  # noqa: S608
            f"({', '.join('?' * len(some))})"
        )
        numbers |= dict.fromkeys((yield Query(query, (digest_name(tenant), *some))).rows)
    yield from _remove(list(numbers))
    return len(numbers)


def delete_tenant_in_file(tenant: str) -> Queries[int]:
    """Delete all records of a tenant; returns how many there were."""
    name = digest_name(tenant)
    found = yield Query("SELECT count(*) FROM records WHERE tenant = (SELECT id FROM tenants WHERE name = ?)", (name,))
    yield Query("DELETE FROM tenants WHERE name = ?", (name,))
    return int(found.rows[0][0])


def _remove_excess(tenant: int, limits: VaultLimits) -> Queries[None]:
    while True:
        records, size = (yield Query("SELECT records, size FROM tenants WHERE id = ?", (tenant,))).rows[0]
        if records <= limits.records and size <= limits.size:
            return
        oldest = yield Query(
            "SELECT number, size FROM records WHERE tenant = ? ORDER BY used, number LIMIT ?", (tenant, _MOST_DELETED)
        )
        excess: list[tuple[int]] = []
        for number, each in oldest.rows:
            if records <= limits.records and size <= limits.size:
                break
            excess.append((number,))
            records, size = records - 1, size - each
        if not excess:
            return
        yield from _remove(excess)


def _remove(numbers: Sequence[tuple[Any, ...]]) -> Queries[None]:
    for (number,) in numbers:
        row = (yield Query("SELECT size, tenant FROM records WHERE number = ?", (number,))).first
        if row is not None:
            yield Query("DELETE FROM records WHERE number = ?", (number,))
            yield Query("UPDATE tenants SET records = records - 1, size = size - ? WHERE id = ?", row)


def _join_keys(keys: Sequence[str]) -> str:
    """Keys as one value. They are words, so the separator is in none of them."""
    return "\x1f".join(keys)


def _read_rows(rows: Sequence[tuple[Any, ...]]) -> list[FoundRecord]:
    return [
        FoundRecord(number, used, StoredRecord(record_id, tuple(keys.split()), bytes(payload)))
        for number, used, record_id, keys, payload in rows
    ]
