"""Keys in the database of a gateway: add, list, find and revoke them. A key itself is shown once and kept nowhere.

Each function is work for `Database.run`.
"""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from asides.database import Queries, Query, QueryMany
from asides.values.errors import ConfigError
from asides.values.money import to_billionths, to_dollars
from asides.values.notices import escape_controls
from asides_gateway.access import KeyRecord

_log = logging.getLogger("asides.gateway")

PREFIX = "sk-asides-"
_ID_CHARACTERS = "abcdefghijkmnpqrstuvwxyz23456789"
_ID_LENGTH = 8
_SECRET_BYTES = 32
KEY_FORM = re.compile(rf"{PREFIX}[{_ID_CHARACTERS}]{{{_ID_LENGTH}}}-[A-Za-z0-9_-]{{32,100}}", re.ASCII)
"""The form of a key. Nothing else is looked up in the database."""
MOST_MONEY = Decimal(10**9)
"""The largest budget, in US dollars."""

_COLUMNS = "id, digest, name, tenant, models, rpm, tpm, budget_day, budget_month, created, expires, revoked, used"
_SELECT = f"SELECT {_COLUMNS} FROM gateway_keys"  # noqa: S608


MAX_NAME = 100
MAX_PATTERNS = 100
MAX_PATTERN = 200
MAX_COUNT = 10**9
"""The most requests or tokens in a minute."""
_ID = re.compile(rf"[{_ID_CHARACTERS}]{{{_ID_LENGTH}}}", re.ASCII)


class NewKey(NamedTuple):
    """A key that was just made: the only time that its secret is known."""

    key: str
    id: str
    digest: bytes

    def __repr__(self) -> str:
        return f"NewKey({self.id})"


def make_key() -> NewKey:
    """Make a key: 256 random bits, after an id that is not secret."""
    key_id = "".join(secrets.choice(_ID_CHARACTERS) for _ in range(_ID_LENGTH))
    key = f"{PREFIX}{key_id}-{secrets.token_urlsafe(_SECRET_BYTES)}"
    return NewKey(key, key_id, digest_key(key))


def digest_key(key: str) -> bytes:
    """The SHA-256 of a key. A slow hash would add nothing: a key has 256 random bits."""
    return hashlib.sha256(key.encode(errors="surrogatepass")).digest()


def check_record(record: KeyRecord) -> None:
    """Raise ConfigError for a key from elsewhere that could not be made here."""
    limits = record.limits
    texts = (record.name, record.tenant)
    counts = [count for count in (limits.rpm, limits.tpm) if count is not None]
    money = [amount for amount in (limits.budget_day, limits.budget_month) if amount is not None]
    problem = (
        "its id"
        if not _ID.fullmatch(record.id)
        else "its digest"
        if len(record.digest) != hashlib.sha256().digest_size
        else "its name or its tenant"
        if not record.name or any(len(text) > MAX_NAME or not text.isprintable() for text in texts)
        else "its models"
        if len(limits.models) > MAX_PATTERNS or any(not 1 <= len(each) <= MAX_PATTERN for each in limits.models)
        else "its rate"
        if any(not 1 <= count <= MAX_COUNT for count in counts)
        else "its budget"
        if any(not amount.is_finite() or not 0 < amount <= MOST_MONEY for amount in money)
        else None
    )
    if problem is not None:
        raise ConfigError(f"the key is not valid: {problem} is wrong.")


# --- work on the database ---------------------------------------------------------------------------------------------


def insert_key(record: KeyRecord) -> Queries[None]:
    """Add a key. Raises ConfigError if a valid one has its name."""
    # If two are added at once, the unique index on names refuses one.
    found = yield Query("SELECT id FROM gateway_keys WHERE name = ? AND revoked IS NULL", (record.name,))
    if found.first is not None:
        raise ConfigError(
            f"there is a key with the name {record.name!r} already ({found.first[0]}). Use another name, or "
            f"revoke it with `asides gateway key revoke {found.first[0]}`."
        )
    limits = record.limits
    yield Query(
        f"INSERT INTO gateway_keys ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        (
            record.id,
            record.digest,
            record.name,
            record.tenant,
            msgspec.json.encode(limits.models).decode(),
            limits.rpm,
            limits.tpm,
            None if limits.budget_day is None else to_billionths(limits.budget_day),
            None if limits.budget_month is None else to_billionths(limits.budget_month),
            record.created,
            record.expires,
            record.revoked,
            record.used,
        ),
    )


def list_keys(*, valid_at: float | None = None) -> Queries[list[KeyRecord]]:
    """All keys, the oldest first. `valid_at`: those that are neither revoked nor expired then."""
    if valid_at is None:
        found = yield Query(f"{_SELECT} ORDER BY created, id", is_alone=True)
    else:
        found = yield Query(
            f"{_SELECT} WHERE revoked IS NULL AND (expires IS NULL OR expires > ?)",
            (valid_at,),
            is_alone=True,
        )
    return _read_records(found.rows)


def find_key(digest: bytes) -> Queries[KeyRecord | None]:
    """The key with this digest, whatever its state; None if there is none."""
    found = yield Query(f"{_SELECT} WHERE digest = ?", (digest,), is_alone=True)
    return next(iter(_read_records(found.rows)), None)


def find_id(key_id: str) -> Queries[KeyRecord | None]:
    """The key with this id, whatever its state, as a part of a larger work; None if there is none."""
    found = yield Query(f"{_SELECT} WHERE id = ?", (key_id,))
    return next(iter(_read_records(found.rows)), None)


def has_keys() -> Queries[bool]:
    """Whether a key was ever made. Revoked ones count: a gateway whose last key is revoked is not open to all."""
    found = yield Query("SELECT 1 FROM gateway_keys LIMIT 1", is_alone=True)
    return found.first is not None


def list_revoked_since(when: float) -> Queries[list[str]]:
    """The ids of the keys that were revoked at this time or later."""
    found = yield Query("SELECT id FROM gateway_keys WHERE revoked >= ?", (when,), is_alone=True)
    return [key_id for (key_id,) in found.rows]


def find_named(word: str) -> Queries[list[KeyRecord]]:
    """The keys with this id or this name: the one with the id first, then valid ones."""
    found = yield Query(
        f"{_SELECT} WHERE id = ? OR name = ? ORDER BY CASE WHEN id = ? THEN 0 ELSE 1 END, "
        "CASE WHEN revoked IS NULL THEN 0 ELSE 1 END, created DESC",
        (word, word, word),
        is_alone=True,
    )
    return _read_records(found.rows)


def revoke_key(key_id: str, now: float) -> Queries[bool]:
    """Revoke a key for good. False if it is revoked already, or unknown."""
    done = yield Query("UPDATE gateway_keys SET revoked = ? WHERE id = ? AND revoked IS NULL", (now, key_id))
    return done.changed > 0


def note_use(used: Mapping[str, float]) -> Queries[None]:
    """Note when keys were last used."""
    # In one order, so that two processes never wait for each other.
    rows = [(when, key_id, when) for key_id, when in sorted(used.items())]
    yield QueryMany("UPDATE gateway_keys SET used = ? WHERE id = ? AND (used IS NULL OR used < ?)", rows)


def list_damaged_keys() -> Queries[list[str]]:
    """The ids of the keys whose rows cannot be read."""
    found = yield Query(f"{_SELECT} ORDER BY created, id", is_alone=True)
    return [str(row[0]) for row in found.rows if _read_record(row) is None]


def _read_records(rows: Sequence[Sequence[Any]]) -> list[KeyRecord]:
    """The keys that can be read. A damaged row is not a valid key, and is skipped."""
    records: list[KeyRecord] = []
    for row in rows:
        if (record := _read_record(row)) is not None:
            records.append(record)
        else:
            name = escape_controls(str(row[0])[:_ID_LENGTH])
            _log.error("the key %s is damaged in the database, and is not valid. Make another.", name)
    return records


def _read_record(row: Sequence[Any]) -> KeyRecord | None:
    """The key of a row; None if it is damaged."""
    key_id, digest, name, tenant, models, rpm, tpm, day, month, created, expires, revoked, used = row
    try:
        limits = {
            "rpm": rpm,
            "tpm": tpm,
            "budget_day": None if day is None else to_dollars(day),
            "budget_month": None if month is None else to_dollars(month),
            "models": msgspec.json.decode(models, type=tuple[str, ...]),
        }
        times = {"created": created, "expires": expires, "revoked": revoked, "used": used}
        fields = {"id": key_id, "digest": bytes(digest), "name": name, "tenant": tenant, "limits": limits, **times}
        return msgspec.convert(fields, KeyRecord, builtin_types=(bytes, Decimal))
    except (msgspec.MsgspecError, ArithmeticError, TypeError, ValueError):
        return None
