"""The database of the keys is stopped and started under a gateway: who goes on, who gets 503, and that it recovers."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from asides.database.migrate import migrate
from asides_gateway.access.budget_store import Spending, list_spending
from asides_gateway.access.key_store import make_key
from asides_gateway.access.unsettled_files import PATTERN
from asides_stage import Say, Stage
from tests.gateway.access.key_records import AddedKey, add_key, open_place
from tests.gateway.access.limited_gateway import CLAUDE, PlayedStage, limited
from tests.gateway.http_client import Held, message, wait_for
from tests.gateway.served import serve, write_settings
from tests.servers import PostgresServer


def test_a_server_that_is_stopped_and_started(
    stage: PlayedStage, own_postgres: PostgresServer, own_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASIDES_RELAY_KEY", "00" * 32)
    migrate(own_postgres_url)
    body = {**message(), "model": CLAUDE}
    stage.play(*[Say(text="42")] * 50)
    with limited(stage, own_postgres_url) as gateway:
        free, budget = gateway.add_key("free", rpm=1000), gateway.add_key("budget", budget_day="1")
        late, static = gateway.add_key("late"), AddedKey("sk-static-0123456789", make_key())  # type: ignore[arg-type]
        stranger = AddedKey(make_key().key, free.record)
        assert [gateway.ask(each, "/v1/messages", body).status for each in (free, budget, static)] == [200] * 3
        spent = gateway.spending(budget).day
        own_postgres.stop("immediate")
        for each, status in ((free, 200), (static, 200), (budget, 503), (late, 503), (stranger, 503)):
            answer = gateway.ask(each, "/v1/messages", body)
            assert answer.status == status, (each.record, answer.body)
            assert status == 200 or answer.headers["retry-after"] == "5"
        own_postgres.start()
        for each, status in ((budget, 200), (late, 200), (free, 200), (stranger, 401)):
            assert wait_for(lambda: gateway.ask(each, "/v1/messages", body).status == status, 20)  # noqa: B023
        assert gateway.spending(budget).day > spent
        assert gateway.spending(budget).reserved == 0


def test_a_gateway_that_is_killed_while_its_database_is_away_forgets_no_money(
    tmp_path: Path, own_postgres: PostgresServer, own_postgres_url: str
) -> None:
    """A real process, killed after its client has the reply, and another one in its place."""
    migrate(own_postgres_url)
    database = open_place(own_postgres_url)
    added = add_key(database, budget_day="1")
    database.close()
    environment = {"ASIDES_STORE": own_postgres_url, "ASIDES_RELAY_KEY": "0a" * 32}
    body = {**message(), "model": CLAUDE}

    def read() -> Spending:
        found = open_place(own_postgres_url)
        try:
            return found.run(lambda: list_spending(time.time()), writes=False).get(added.record.id, Spending())
        finally:
            found.close()

    held = Held(Say(text="42"))
    with Stage(held) as stage:
        settings = write_settings(tmp_path, stage.url)
        settings.write_text(settings.read_text().replace("key_env", 'prices = "anthropic"\nkey_env'))
        with serve(tmp_path, env=environment) as served, ThreadPoolExecutor(1) as pool:
            answer = pool.submit(lambda: served.post("/v1/messages", body, authorization=f"Bearer {added.key}"))
            assert wait_for(lambda: read().reserved > 0, 20)
            own_postgres.stop("immediate")
            held.let()
            assert answer.result(30)[0] == 200
            served.end(signal.SIGKILL)
        own_postgres.start()
        assert read().day == 0
        with serve(tmp_path, env=environment):
            assert wait_for(lambda: read().day > 0, 20)
            assert wait_for(lambda: not list((tmp_path / "state").glob(PATTERN)), 20)
        assert read().reserved == 0
