"""The vault in a file: what is in its bytes, other processes, kill -9, and files that are no vault.

What it shares with the vault in memory is in test_memory_vault.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asides.conversations.store.sqlite import SqliteStore
from asides.database import StoreError
from asides.providers.find import find_target
from asides.relay.steps import ReadRecords, StoredRecord, WriteRecord
from asides.relay.streams.step_handlers import carry_out
from asides.relay.vault.open_vault import open_vault
from asides.relay.vault.sqlite_vault import SqliteVault
from asides.values.messages import user
from asides.values.parts import Text, ToolCall
from asides.values.reply import Reply
from asides.values.thinking import Seal, Thought
from tests.relay.relayed_turns import Caller

CLAUDE = find_target("anthropic:claude-sonnet-4-5").origin
SECRETS = (
    b"a secret thought",
    b"a secret seal",
    b"call_secret12345",
    b"a secret answer",
    b"secret-tenant",
    b"secret city",
)


def hear_secrets(caller: Caller) -> None:
    thought = Thought("a secret thought", "summary", "block", CLAUDE, (Seal("signature", "a secret seal", CLAUDE),))
    call = ToolCall("call_secret12345", "look_up", {"where": "secret city"})
    caller.say("a secret question")
    caller.hear(Reply((thought, Text("a secret answer"), call), origin=CLAUDE, id="r", model="m"))


def read_files(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


def test_the_bytes_of_the_file_show_nothing(tmp_path: Path) -> None:
    vault = open_vault("store", tmp_path / "vault.db", environ={})
    caller = Caller(
        "openai_chat", mode="store", store=vault.store, keys=vault.keys.find_tenant("secret-tenant"), strips=True
    )
    hear_secrets(caller)
    assert caller.restore().from_vault == 1
    written = read_files(tmp_path)
    assert [secret for secret in (*SECRETS, b"question") if secret in written] == []
    vault.close()
    assert [secret for secret in (*SECRETS, b"question") if secret in read_files(tmp_path)] == []


def test_what_is_deleted_is_gone_from_the_bytes(tmp_path: Path) -> None:
    with SqliteVault(tmp_path / "vault.db") as vault:
        vault.write("a", StoredRecord("one", ("k",), b"payload-one"))
        vault.write("a", StoredRecord("two", ("l",), b"payload-two"))
        assert b"payload-one" in read_files(tmp_path)
        vault.delete("a", ["k"])
        assert b"payload-one" not in read_files(tmp_path)
        vault.delete_tenant("a")
        assert b"payload-two" not in read_files(tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
def test_only_its_owner_can_read_the_file(tmp_path: Path) -> None:
    vault = open_vault("store", tmp_path / "vault.db", environ={})
    hear_secrets(Caller("openai_chat", mode="store", store=vault.store, strips=True))
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    vault.close()


def test_a_restart_changes_nothing(tmp_path: Path) -> None:
    caller = Caller("openai_chat", mode="store", strips=True)
    for _ in range(3):  # a process for each turn
        vault = open_vault("store", tmp_path / "vault.db", environ={})
        caller.store, caller.keys = vault.store, vault.keys.find_tenant("a")
        hear_secrets(caller)
        vault.close()
    vault = open_vault("store", tmp_path / "vault.db", environ={})
    caller.store, caller.keys = vault.store, vault.keys.find_tenant("a")
    assert caller.restore().from_vault == 3
    vault.close()


WRITER = """
import sys
from asides.relay.vault.sqlite_vault import SqliteVault
from asides.relay.steps import StoredRecord

path, name, most = sys.argv[1], sys.argv[2], int(sys.argv[3])
vault = SqliteVault(path)
for number in range(most):
    vault.write("a", StoredRecord(f"{name}-{number}", (f"{name}-{number}", "all"), b"x" * 500))
    print(f"{name}-{number}", flush=True)
"""


def start_writer(path: Path, name: str, most: int) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), name, str(most)], stdout=subprocess.PIPE, text=True, env=environment
    )


def test_processes_write_to_one_file_together(tmp_path: Path) -> None:
    path = tmp_path / "vault.db"
    writers = [start_writer(path, name, 40) for name in ("one", "two")]
    with SqliteVault(path) as vault:
        for number in range(20):
            vault.write("a", StoredRecord(f"three-{number}", (f"three-{number}", "all"), b"x"))
        for writer in writers:
            written, _ = writer.communicate(timeout=60)
            assert writer.returncode == 0
            assert len(written.split()) == 40
        assert len(vault.read("a", ["all"])) == 100


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is of POSIX")
def test_a_process_that_is_killed_loses_no_record_that_it_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "vault.db"
    acknowledged: list[str] = []
    for name in ("one", "two", "three"):
        writer = start_writer(path, name, 100_000)
        assert writer.stdout is not None
        acknowledged += [writer.stdout.readline().strip() for _ in range(30)]
        os.kill(writer.pid, signal.SIGKILL)
        # The last line may be cut: then nobody was told.
        acknowledged += writer.stdout.read().split("\n")[:-1]
        writer.wait(timeout=60)
        writer.stdout.close()
    with SqliteVault(path) as vault:
        found = {record.id for record in vault.read("a", ["all"])}
        assert set(acknowledged) <= found
        # One may be stored that nobody was told of, and it is whole.
        assert len(found) <= len(acknowledged) + 3
        assert all(record.payload == b"x" * 500 for record in vault.read("a", ["all"]))
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        counted = connection.execute("SELECT records, size FROM tenants").fetchone()
        assert counted == connection.execute("SELECT count(*), sum(size) FROM records").fetchone()


RELAY = """
import os, signal, sys
from asides.relay.vault.open_vault import open_vault
from tests.relay.relayed_turns import Caller
from tests.relay.vault.test_sqlite_vault import hear_secrets

vault = open_vault("store", sys.argv[1], environ={})
hear_secrets(Caller("openai_chat", mode="store", store=vault.store, keys=vault.keys.find_tenant("a"), strips=True))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is of POSIX")
def test_another_process_puts_back_what_a_killed_one_has_stored(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parents[3])])}
    done = subprocess.run(
        [sys.executable, "-c", RELAY, str(tmp_path / "vault.db")], env=environment, timeout=60, check=False
    )
    assert done.returncode == -signal.SIGKILL
    # The client has its history; the other relay has the file and the key beside it.
    client = Caller("openai_chat", strips=True)
    hear_secrets(client)
    vault = open_vault("store", tmp_path / "vault.db", environ={})
    client.mode, client.store, client.keys = "store", vault.store, vault.keys.find_tenant("a")
    restored = client.restore()
    assert restored.from_vault == 1
    assert b"a secret seal" in msgspec.json.encode(restored.prompt.messages)
    client.keys = vault.keys.find_tenant("b")
    assert client.restore().from_vault == 0
    vault.close()


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"this is no database at all, is it?" * 99, "not a database"), (b"", "")],
    ids=["text", "empty"],
)
def test_a_file_that_is_no_database_is_an_error_of_ours(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "vault.db"
    path.write_bytes(content)
    vault = SqliteVault(path)
    if not words:
        assert vault.read("a", ["k"]) == ()
    else:
        with pytest.raises(StoreError, match=words):
            vault.read("a", ["k"])
        # A flow is told that the store failed, and goes on.
        assert carry_out(ReadRecords("a", ("k",)), vault) is None
        assert carry_out(WriteRecord("a", StoredRecord("r", ("k",), b"")), vault) is False
    vault.close()


def test_a_file_that_was_damaged_is_an_error_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "vault.db"
    with SqliteVault(path) as vault:
        for number in range(200):
            vault.write("a", StoredRecord(str(number), (f"k{number}",), b"x" * 500))
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xaa" * (len(content) - 4096)
    path.write_bytes(content)
    with SqliteVault(path) as vault, pytest.raises(StoreError, match="damaged"):
        vault.read("a", [f"k{number}" for number in range(200)])


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with SqliteStore(path) as store:
        store.append("talk", [user("hi")])
    with SqliteVault(path) as vault, pytest.raises(StoreError, match="another database"):
        vault.write("a", StoredRecord("r", ("k",), b""))
    with SqliteStore(path) as store:
        assert store.names() == ("talk",)


def test_a_vault_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "vault.db"
    with SqliteVault(path) as vault:
        vault.write("a", StoredRecord("r", ("k",), b""))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 9")
    with SqliteVault(path) as vault, pytest.raises(StoreError, match="newer asides"):
        vault.read("a", ["k"])


def test_a_file_that_another_process_locks_costs_some_patience_and_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "vault.db"
    vault = SqliteVault(path, patience=0.2)
    vault.write("a", StoredRecord("r", ("k",), b""))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        with pytest.raises(StoreError, match="busy"):
            vault.write("a", StoredRecord("s", ("l",), b""))
        assert time.monotonic() - started < 30
        # Readers do not wait for a writer.
        assert [record.id for record in vault.read("a", ["k"])] == ["r"]
    vault.close()


def test_a_folder_that_is_missing_is_an_error_of_ours(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="folder"):
        SqliteVault(tmp_path / "no" / "vault.db").read("a", ["k"])


def test_records_that_wait_at_the_same_time_are_one_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = SqliteVault(tmp_path / "vault.db")
    vault.write("a", StoredRecord("first", ("k",), b"x"))
    inner, sizes = vault._writer._write_group, list[int]()
    entered, may_go_on = threading.Event(), threading.Event()

    def write(together: Any) -> None:
        sizes.append(len(together))
        if len(sizes) == 1:
            entered.set()
            assert may_go_on.wait(10)
        inner(together)

    monkeypatch.setattr(vault._writer, "_write_group", write)
    problems: list[Exception] = []

    def store(number: int) -> None:
        # A key that SQLite cannot store: its writer hears of it, and nobody else.
        keys: Any = (object(),) if number == 5 else (f"k{number}",)
        try:
            vault.write("a", StoredRecord(f"r{number}", keys, b"x"))
        except TypeError as problem:
            problems.append(problem)

    threads = [threading.Thread(target=store, args=(number,)) for number in range(12)]
    threads[0].start()
    assert entered.wait(30)
    for thread in threads[1:]:
        thread.start()
    until = time.monotonic() + 30
    while len(vault._writer.waiting) < 11 and time.monotonic() < until:
        time.sleep(0.005)
    may_go_on.set()
    for thread in threads:
        thread.join(20)
    # All that waited for the first one are written together; one of them cannot be, and so each is written alone.
    assert sizes == [1, 11]
    assert len(problems) == 1
    found = vault.read("a", [f"k{number}" for number in range(12)])
    assert {record.id for record in found} == {f"r{number}" for number in range(12) if number != 5}
    vault.close()


def test_a_file_that_fails_costs_all_who_wait_its_patience_once(tmp_path: Path) -> None:
    path = tmp_path / "vault.db"
    vault = SqliteVault(path, patience=0.6)
    vault.write("a", StoredRecord("first", ("k",), b"x"))
    failures: list[StoreError] = []

    def store(number: int) -> None:
        try:
            vault.write("a", StoredRecord(f"r{number}", (f"k{number}",), b"x"))
        except StoreError as problem:
            failures.append(problem)

    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        threads = [threading.Thread(target=store, args=(number,)) for number in range(8)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        took = time.monotonic() - began
        other.rollback()
    assert len(failures) == 8
    # The first alone, then the others together; not one after the other.
    assert took < 0.6 * 7
    vault.write("a", StoredRecord("last", ("k9",), b"x"))
    vault.close()
