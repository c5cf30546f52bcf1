"""Keys in the database: what is kept of them, and what is not."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from asides.database import Database
from asides.values.errors import ConfigError
from asides_gateway.access.key_store import (
    KEY_FORM,
    digest_key,
    find_key,
    find_named,
    has_keys,
    insert_key,
    list_damaged_keys,
    list_keys,
    list_revoked_since,
    make_key,
    note_use,
    revoke_key,
)
from asides_gateway.gateway_database import GATEWAY_FILE
from tests.gateway.access.key_records import add_key, build_record, open_place


def test_a_key_has_an_id_and_more_bits_than_anyone_guesses() -> None:
    made = {make_key().key for _ in range(100)}
    assert len(made) == 100
    assert all(KEY_FORM.fullmatch(key) for key in made)
    assert all(len(key.split("-", 3)[3]) >= 43 for key in made)
    one = make_key()
    assert one.key.startswith(f"sk-asides-{one.id}-")
    assert one.digest == digest_key(one.key)
    assert one.key not in repr(one)


@pytest.mark.parametrize("other", ["", "sk-asides-", "sk-asides-abcdefgh-short", "sk-proj-" + "a" * 60, "é" * 60])
def test_what_is_no_key_is_not_looked_for(other: str) -> None:
    assert KEY_FORM.fullmatch(other) is None


def test_all_that_a_key_may_do_comes_back_as_it_was(database: Database) -> None:
    added = add_key(
        database,
        tenant="team",
        expires=5e9,
        rpm=5,
        tpm=700,
        budget_day="0.000000001",
        budget_month="1000000000",
        models=("a:*", "fast"),
    )
    bare = add_key(database, "bare")
    assert database.run(lambda: find_key(added.record.digest), writes=False) == added.record
    assert database.run(list_keys, writes=False) == [added.record, bare.record]
    assert database.run(lambda: find_key(b"0" * 32), writes=False) is None


def test_nothing_of_the_secret_is_in_the_file(tmp_path: Path) -> None:
    database = open_place(str(tmp_path))
    added = add_key(database)
    database.close()
    secret = added.key.rpartition("-")[2] if "-" not in added.key[19:] else added.key[19:]
    content = b"".join(path.read_bytes() for path in tmp_path.glob(f"{GATEWAY_FILE}*"))
    assert added.record.id.encode() in content
    assert secret.encode() not in content


def test_a_name_is_free_again_after_its_key_was_revoked(database: Database) -> None:
    first = add_key(database, "build")
    with pytest.raises(ConfigError, match="already"):
        database.run(lambda: insert_key(build_record("build").record))
    assert database.run(lambda: revoke_key(first.record.id, 7.0))
    second = add_key(database, "build")
    named = database.run(lambda: find_named("build"), writes=False)
    assert [each.id for each in named] == [second.record.id, first.record.id]
    assert [each.id for each in database.run(lambda: find_named(first.record.id), writes=False)] == [first.record.id]


def test_a_key_is_revoked_once_and_for_good(database: Database) -> None:
    one, other = add_key(database, "one"), add_key(database, "other")
    assert database.run(has_keys, writes=False)
    assert database.run(lambda: revoke_key(one.record.id, 100.0))
    assert not database.run(lambda: revoke_key(one.record.id, 200.0))
    assert not database.run(lambda: revoke_key("nobody", 200.0))
    kept = database.run(lambda: find_key(one.record.digest), writes=False)
    assert kept is not None
    assert kept.revoked == 100.0
    assert not kept.is_valid(1.0)
    assert database.run(lambda: list_revoked_since(100.0), writes=False) == [one.record.id]
    assert database.run(lambda: list_revoked_since(100.1), writes=False) == []
    database.run(lambda: revoke_key(other.record.id, 300.0))
    assert database.run(has_keys, writes=False), "a gateway without a valid key is not open"


def test_only_valid_keys_are_read_for_requests(database: Database) -> None:
    good = add_key(database, "good", expires=2000.0)
    add_key(database, "expired", expires=1000.0)
    revoked = add_key(database, "revoked").record.id
    database.run(lambda: revoke_key(revoked, 1.0))
    assert database.run(lambda: list_keys(valid_at=1000.0), writes=False) == [good.record]


def test_the_last_use_only_goes_forward(database: Database) -> None:
    one, other = add_key(database, "one"), add_key(database, "other")
    database.run(lambda: note_use({one.record.id: 20.0, other.record.id: 5.0, "gone": 1.0}))
    database.run(lambda: note_use({one.record.id: 10.0}))
    assert [each.used for each in database.run(list_keys, writes=False)] == [20.0, 5.0]


@pytest.mark.parametrize(
    "damage", ["models = 'x'", "models = '[1]'", "models = '{}'", "budget_day = 'x'", "rpm = 'x'", "digest = 'x'"]
)
def test_a_damaged_row_is_no_key_and_keeps_nobody_from_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    database = open_place(str(tmp_path))
    damaged, sound = add_key(database, "damaged", models=("a",)), add_key(database, "sound")
    with closing(sqlite3.connect(tmp_path / GATEWAY_FILE)) as connection, connection:
        connection.execute(f"UPDATE gateway_keys SET {damage} WHERE name = 'damaged'")
    assert database.run(list_keys, writes=False) == [sound.record]
    assert database.run(lambda: list_keys(valid_at=1.0), writes=False) == [sound.record]
    assert database.run(lambda: find_key(damaged.record.digest), writes=False) is None
    assert database.run(lambda: find_named("damaged"), writes=False) == []
    assert database.run(list_damaged_keys, writes=False) == [damaged.record.id]
    assert f"the key {damaged.record.id} is damaged" in caplog.text
    database.close()
