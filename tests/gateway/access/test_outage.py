"""The database of the keys is stopped and started under a gateway: who goes on, who gets 503, and that it recovers."""

from __future__ import annotations

import pytest

from asides.database.migrate import migrate
from asides.gateway.access.key_store import make_key
from asides.testing import Say
from tests.gateway.access.key_records import AddedKey
from tests.gateway.access.limited_gateway import CLAUDE, PlayedStage, limited
from tests.gateway.http_client import message, wait_for
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
