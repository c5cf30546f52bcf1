"""`PostgresStore`: what only a server can get wrong, and its errors. test_database_store has the rest."""

from __future__ import annotations

import asyncio
import gc
import re
import secrets
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any, cast

import psycopg
import pytest

import asides
from asides.conversations.async_ import AsyncConversation
from asides.conversations.store import ConversationHeading
from asides.conversations.store.postgres_store import PostgresStore
from asides.database import StoreError, StoreUnavailable
from asides.database.migrate import check
from asides.values.errors import ConfigError
from asides.values.messages import user
from asides_stage.stage import OpenStage, Say
from tests.conversations.both_shells import PLAIN, options
from tests.servers import PostgresServer, find_free_port


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    with PostgresStore(postgres_url) as opened:
        yield opened


def complaint(store: PostgresStore) -> str:
    with store, pytest.raises(StoreError) as caught:
        store.append("talk", [user("canary")])
    assert re.search(r"\. [A-Z]", str(caught.value))
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None
    return str(caught.value)


def test_it_is_public_and_shows_no_password() -> None:
    store = asides.PostgresStore("postgresql://me:canary@127.0.0.1:1/mine?password=canary&sslpassword=canary")
    assert "127.0.0.1:1/mine" in repr(store)
    assert "canary" not in repr(store)
    assert isinstance(store, PostgresStore)


def test_nothing_is_opened_before_it_is_needed_and_a_closed_one_opens_again(postgres_server: PostgresServer) -> None:
    name = f"test_{secrets.token_hex(6)}"
    store = PostgresStore(postgres_server.make_url(name))
    url = postgres_server.create_database(name)
    assert store.names() == (), "its tables are created when it is first used"
    assert check(url).is_current
    store.append("talk", [user("a")])
    store.close()
    store.close()
    assert store.append("talk", [user("b")]).length == 2
    store.close()
    postgres_server.drop_database(name)


def test_a_store_that_is_let_go_of_is_closed_quietly(postgres_url: str) -> None:
    program = (
        "import sys; from asides import PostgresStore, user; s = PostgresStore(sys.argv[1]); "
        "s.append('talk', [user('a')]); print(s.names())"
    )
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, postgres_url], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("('talk',)\n", "")
    assert time.monotonic() - started < 40
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store = PostgresStore(postgres_url)
        store.append("talk", [user("a")])
        del store
        gc.collect()


# --- texts that a server cannot hold ----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["a\0b", "half \ud800"], ids=["NUL", "half a character"])
def test_a_text_that_it_cannot_hold_is_an_error_and_nothing_is_written(store: PostgresStore, text: str) -> None:
    kind = "NUL" if "\0" in text else "half a character"
    with pytest.raises(StoreError, match=f"{kind}") as caught:
        store.append(text, [user("a")])
    assert text not in str(caught.value)
    for heading in (ConversationHeading(text), ConversationHeading(None, text)):
        with pytest.raises(StoreError, match=f"{kind}"):
            store.append("talk", [user("a")], heading=heading)
    with pytest.raises(StoreError, match=kind):
        store.rename("talk", text)
    assert store.names() == ()


def test_a_name_has_a_length_that_an_index_can_hold(store: PostgresStore) -> None:
    rest = secrets.token_hex(3000)
    for name in (rest[:2000], "日本語" * 222):
        store.append(name, [user("a")])
        assert store.about(name) is not None
    for name in (rest[:2001], "日本語" * 223):
        with pytest.raises(StoreError, match=r"at most 2000 bytes"):
            store.append(name, [user("a")])
        with pytest.raises(StoreError, match=r"at most 2000 bytes"):
            store.replace(name, [], expected=0)
        assert store.load(name) is None
    assert len(store.names()) == 2


def test_names_differ_in_every_character(store: PostgresStore) -> None:
    names = ("talk", "Talk", "talk ", "tälk", "ta\u0308lk", "%", "'; DROP TABLE messages; --", "talk\n", "😀")
    for name in names:
        store.append(name, [user(name)])
    assert store.names() == names[::-1]
    for name in names:
        first = store.load_first(name)
        assert first is not None
        assert first.text == name


# --- complaints -------------------------------------------------------------------------------------------------------


def test_a_server_that_does_not_answer_is_told_at_once() -> None:
    store = PostgresStore(f"postgresql://me:canary@127.0.0.1:{find_free_port()}/mine")
    started = time.monotonic()
    with pytest.raises(StoreUnavailable, match="does not answer"):
        store.names()
    assert "does not answer" in complaint(store)
    assert time.monotonic() - started < 5


def test_another_database_and_newer_tables_are_told(postgres_url: str, postgres_server: PostgresServer) -> None:
    assert 'database "nowhere" does not exist' in complaint(PostgresStore(postgres_server.make_url("nowhere")))
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("INSERT INTO asides.migrations (number, name, oldest) VALUES (9001, 'later', 9001)")
    assert "newer asides" in complaint(PostgresStore(postgres_url))


@pytest.mark.parametrize("url", ["store.db", "mysql://me@127.0.0.1/x", "postgresql://127.0.0.1:port/x", ""])
def test_what_is_no_address_is_told(url: str) -> None:
    with pytest.raises(ConfigError, match=r"\. [A-Z]"):
        PostgresStore(url).names()


def test_a_message_that_does_not_read(store: PostgresStore, postgres_url: str) -> None:
    store.append("talk", [user("a"), user("b")])
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("UPDATE asides.messages SET message = %s WHERE place = 1", (b'{"role":"canary"}',))
    with pytest.raises(StoreError, match="message 1 of the conversation 'talk' cannot be read") as caught:
        store.load("talk")
    assert "canary" not in str(caught.value)


def test_a_conversation_that_others_hold_for_too_long(postgres_url: str) -> None:
    with PostgresStore(postgres_url) as store:
        store.append("talk", [user("a")])
    with psycopg.connect(postgres_url) as other:
        other.execute("SELECT 1 FROM asides.conversations FOR UPDATE")
        started = time.monotonic()
        complaint(PostgresStore(postgres_url, patience=0.3))
        assert time.monotonic() - started < 10
        with PostgresStore(postgres_url, patience=0.3) as store:
            # Who only reads waits for nobody, and other conversations go on.
            assert store.names() == ("talk",)
            store.append("another", [user("a")])


def test_a_server_that_ends_and_comes_back_is_used_again(own_postgres: PostgresServer, own_postgres_url: str) -> None:
    with PostgresStore(own_postgres_url) as store:
        store.append("talk", [user("a")])
        own_postgres.stop("immediate")
        with pytest.raises(StoreUnavailable):
            store.append("talk", [user("b")])
        with pytest.raises(StoreUnavailable):
            store.load("talk")
        own_postgres.start()
        deadline = time.monotonic() + 20
        while True:
            try:
                info = store.append("talk", [user("c")])
                break
            except StoreUnavailable:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        assert info.length == 2


def test_a_reader_sees_one_moment(store: PostgresStore, postgres_url: str) -> None:
    """The head and the messages are two queries; what others write between them is not seen."""
    ended = threading.Event()

    def rewrite() -> None:
        with PostgresStore(postgres_url) as other:
            version = 0
            for number in range(60):
                version = other.replace("talk", [user("x")] * (number % 5), expected=version).version
        ended.set()

    writer = threading.Thread(target=rewrite)
    writer.start()
    looks = 0
    while not ended.is_set():
        kept = store.load("talk")
        if kept is not None:
            assert kept.about.length == len(kept.messages)
            looks += 1
    writer.join()
    assert looks > 3


def test_a_conversation_goes_with_all_that_is_its(store: PostgresStore, postgres_url: str) -> None:
    store.append("talk", [user("a")] * 3)
    assert store.delete("talk")
    with psycopg.connect(postgres_url) as connection:
        for table in ("conversations", "messages", "page_conversations", "page_notes"):
            count = cast("Any", f"SELECT count(*) FROM asides.{table}")
            assert connection.execute(count).fetchone() == (0,)


async def test_an_event_loop_goes_on_while_a_question_waits_for_the_server(
    stage: OpenStage, store: PostgresStore, postgres_url: str
) -> None:
    theatre = stage(Say(text="First."), Say(text="Second."))
    chat = AsyncConversation(PLAIN, store=store, name="talk", **options(PLAIN, theatre))
    await chat.ask("one?")
    with psycopg.connect(postgres_url) as other:
        other.execute("LOCK TABLE asides.conversations")
        waiting = asyncio.create_task(chat.ask("two?"))
        for _ in range(10):
            started = time.monotonic()
            await asyncio.sleep(0.01)
            assert time.monotonic() - started < 3
        assert not waiting.done()
        assert len(theatre.requests) == 1, "what others wrote is read before the question is sent"
        other.rollback()
    assert (await waiting).text == "Second."
    assert len(chat) == 4
