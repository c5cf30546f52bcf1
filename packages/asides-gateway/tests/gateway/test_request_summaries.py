"""A row for each request, behind the back of requests: batches, outages of the database, retention."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from asides.database import Database, Queries, StoreUnavailable
from asides.database.migrate import migrate
from asides.database.postgres import PostgresDatabase
from asides.values.events import TextDelta, ThinkingDelta
from asides_gateway import request_summaries
from asides_gateway.gateway_database import GATEWAY_FILE, open_database
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.request_summaries import BATCH_ROWS, RequestSummaries
from asides_gateway.summary_rows import list_rows
from asides_gateway.watcher import RequestWatch
from asides_stage import Say, Stage
from tests.gateway.request_records import make_record
from tests.gateway.served import ROUTE, serve, write_settings
from tests.servers import PostgresServer


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database with the tables, and nothing in them."""
    found: Database
    if request.param == "sqlite":
        found = open_database(GatewaySettings(folder=tmp_path))
    else:
        found = PostgresDatabase(request.getfixturevalue("postgres_url"))
    yield found
    found.close()


class _Counted:
    """Counts what became of rows."""

    def __init__(self, summaries: RequestSummaries) -> None:
        self.written = self.dropped = 0
        summaries.on_written = self._add_written
        summaries.on_dropped = self._add_dropped

    def _add_written(self, number: int) -> None:
        self.written += number

    def _add_dropped(self, number: int) -> None:
        self.dropped += number


class _Away:
    """A database that is away until it is told to be back."""

    def __init__(self, inner: Database) -> None:
        self._inner = inner
        self.is_away = True
        self.is_shared = False

    async def run_async(self, work: Callable[[], Queries[Any]], **how: Any) -> Any:
        if self.is_away:
            raise StoreUnavailable("away")
        return await self._inner.run_async(work, **how)


def _pass(summaries: RequestSummaries, number: int, tenant: str = "t1") -> None:
    watch = RequestWatch((summaries,), make_record(f"req_{number}", tenant=tenant))
    watch.begin()
    watch.see_events([ThinkingDelta("hm")])
    watch.see_events([TextDelta("yes")])
    watch.end("done", status=200, sent_bytes=1)


def _list(database: Database) -> list[dict[str, Any]]:
    return database.run(lambda: list_rows("t1", 100_000), writes=False)


async def _until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.02)


async def test_rows_are_written_within_a_second_and_many_at_once(database: Database) -> None:
    summaries = RequestSummaries(database, lambda: 30)
    counted = _Counted(summaries)
    summaries.start()
    _pass(summaries, 1)
    assert counted.written == 0
    await _until(lambda: counted.written == 1)
    started = time.monotonic()
    for number in range(2, BATCH_ROWS * 2 + 2):
        _pass(summaries, number)
    await _until(lambda: counted.written == BATCH_ROWS * 2 + 1)
    assert time.monotonic() - started < 20
    await summaries.close()
    rows = _list(database)
    assert len(rows) == BATCH_ROWS * 2 + 1
    assert rows[0]["first_thought"] is not None
    assert rows[0]["first_thought"] <= rows[0]["first_answer"]
    await database.close_async()


async def test_what_waits_at_the_end_is_written(database: Database) -> None:
    summaries = RequestSummaries(database, lambda: 30)
    summaries.start()
    for number in range(700):
        _pass(summaries, number)
    await summaries.close()
    assert len(_list(database)) == 700
    await database.close_async()


async def test_an_outage_keeps_the_last_rows_and_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_summaries, "BATCH_SECONDS", 0.05)
    inner = open_database(GatewaySettings(folder=tmp_path))
    away: Any = _Away(inner)
    summaries = RequestSummaries(away, lambda: 30, most_waiting=1000)
    counted = _Counted(summaries)
    summaries.start()
    with caplog.at_level(logging.INFO):
        for number in range(1300):
            _pass(summaries, number)
            if number % 100 == 0:
                await asyncio.sleep(0.03)
        await asyncio.sleep(0.3)
        away.is_away = False
        await _until(lambda: counted.written >= 1000)
        await summaries.close()
    assert counted.dropped == 300
    assert {row["id"] for row in _list(inner)} == {f"req_{number}" for number in range(300, 1300)}
    assert [record.levelname for record in caplog.records if record.name == "asides.gateway"] == ["WARNING"] * 2


async def test_a_gateway_that_ends_in_an_outage_tells_what_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    away: Any = _Away(open_database(GatewaySettings(folder=tmp_path)))
    summaries = RequestSummaries(away, lambda: 30)
    counted = _Counted(summaries)
    summaries.start()
    for number in range(7):
        _pass(summaries, number)
    await summaries.close()
    assert (counted.written, counted.dropped) == (0, 7)
    assert "7 summaries of requests were not written" in caplog.text


async def test_a_server_that_stops_and_starts_loses_no_row(
    monkeypatch: pytest.MonkeyPatch, own_postgres: PostgresServer, own_postgres_url: str
) -> None:
    monkeypatch.setattr(request_summaries, "BATCH_SECONDS", 0.1)
    migrate(own_postgres_url)
    database = PostgresDatabase(own_postgres_url, patience=1.0)
    try:
        summaries = RequestSummaries(database, lambda: 30)
        counted = _Counted(summaries)
        summaries.start()
        for number in range(600):
            _pass(summaries, number)
            if number == 150:
                await asyncio.to_thread(own_postgres.stop, "immediate")
            if number == 450:
                await asyncio.to_thread(own_postgres.start)
            await asyncio.sleep(0.002)
        await _until(lambda: counted.written >= 600)
        await summaries.close()
        assert counted.dropped == 0
        assert {row["id"] for row in _list(database)} == {f"req_{number}" for number in range(600)}
    finally:
        await database.close_async()


async def test_rows_older_than_the_settings_say_are_deleted(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_summaries, "_PORTION", 10)
    monkeypatch.setattr(request_summaries, "_PORTION_PAUSE", 0.0)
    days = 30
    summaries = RequestSummaries(database, lambda: days)
    for number in range(45):
        _pass(summaries, number)
    await summaries.close()
    assert await summaries.sweep() == 0
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 29.9 * 86_400)
    assert await summaries.sweep() == 0
    monkeypatch.setattr(time, "time", lambda: real() + 30.1 * 86_400)
    assert await summaries.sweep() == 45
    assert _list(database) == []
    await database.close_async()


async def test_nobodys_requests_have_no_row_and_none_is_kept_without_days(tmp_path: Path) -> None:
    database = open_database(GatewaySettings(folder=tmp_path))
    days = 30
    summaries = RequestSummaries(database, lambda: days, is_anonymous=lambda tenant: not tenant)
    _pass(summaries, 1, tenant="")
    days = 0
    _pass(summaries, 2)
    days = 1
    _pass(summaries, 3)
    await summaries.close()
    assert [row["id"] for row in _list(database)] == ["req_3"]
    assert database.run(lambda: list_rows("", 10), writes=False) == []
    assert "0 waiting" in repr(summaries)


def test_a_gateway_writes_rows_without_content_and_flushes_them_at_its_end(tmp_path: Path) -> None:
    with Stage(Say(text="the secret answer", thinking="the secret thought")) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path) as served:
            body = {"model": ROUTE, "messages": [{"role": "user", "content": "the secret question"}]}
            for _ in range(3):
                assert served.post("/v1/chat/completions", body)[0] == 200
            # No second passes before it ends.
            assert served.end() == 0
    (file,) = tmp_path.rglob(GATEWAY_FILE)
    database = open_database(GatewaySettings(folder=file.parent))
    rows = database.run(lambda: list_rows("", 10), writes=False)
    database.close()
    assert len(rows) == 3
    assert {(row["ended"], row["asked"], row["action"]) for row in rows} == {("done", ROUTE, "reply")}
    assert all(row["output"] and row["first_answer"] and row["model"].startswith("anthropic:") for row in rows)
    for path in (file, file.with_name(f"{file.name}-wal")):
        assert not path.exists() or b"secret" not in path.read_bytes()


def test_forwarded_replies_are_priced_as_translated_ones_are(tmp_path: Path) -> None:
    pytest.importorskip("genai_prices")
    with Stage(Say(text="42"), rules="lenient") as stage:
        path = write_settings(tmp_path, stage.url)
        # Nobody knows what another server asks for, so that the row has to say it.
        path.write_text(path.read_text(encoding="utf-8").replace("key_env", 'prices = "anthropic"\nkey_env'), "utf-8")
        with serve(tmp_path) as served:
            for where in ("/v1/messages", "/v1/chat/completions"):
                body = {"model": "anthropic:claude-sonnet-4-5", "max_tokens": 99}
                body |= {"messages": [{"role": "user", "content": "Hi"}]}
                assert served.post(where, body)[0] == 200
            assert served.end() == 0
    (file,) = tmp_path.rglob(GATEWAY_FILE)
    database = open_database(GatewaySettings(folder=file.parent))
    rows = database.run(lambda: list_rows("", 10), writes=False)
    database.close()
    assert sorted(row["mode"] for row in rows) == ["forward", "translate"]
    (cost,) = {row["cost"] for row in rows}
    assert cost > 0
