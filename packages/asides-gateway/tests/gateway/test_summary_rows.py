"""Rows of requests: what is in one, and the work on them, on both engines."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from asides.database import Database
from asides.database.postgres import PostgresDatabase
from asides.providers.find import find_provider
from asides.relay.relay_request import RelayOutcome
from asides.values.money import to_billionths
from asides.values.parts import Text
from asides.values.reply import Reply
from asides.values.usage import Usage, find_cost
from asides_gateway.gateway_database import open_database
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.request_record import RequestRecord
from asides_gateway.summary_rows import (
    COLUMNS,
    UsageSum,
    build_row,
    delete_old,
    insert_rows,
    list_key_names,
    list_rows,
    sum_usage,
)
from tests.gateway.request_records import end_request, make_record

AT = 1_763_300_000.0


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


def _end(number: int = 0, **changed: Any) -> RequestRecord:
    fields: dict[str, Any] = {
        "at": AT + number,
        "key_id": "k1",
        "tenant": "t1",
        "client": "curl/8",
        "dialect": "anthropic",
        "method": "POST",
        "path": "/v1/messages",
        "seconds": 1.5,
        "status": 200,
        "ended": "done",
        "model": "anthropic:m",
    }
    return make_record(f"req_{number}", **{**fields, **changed})


def _write(database: Database, *ended: RequestRecord) -> None:
    rows = [build_row(each, "host:1") for each in ended]
    database.run(lambda: insert_rows(rows))


def test_a_request_is_collected_without_its_content() -> None:
    usage = Usage(input=10, output=20, thinking=5, cached=3, cost=Decimal("0.0123"))
    reply = Reply(parts=(Text("the secret answer"),), usage=usage, model="m-1")
    outcome = RelayOutcome(
        200, "translate", model="anthropic:m", reply=reply, attempts=2, restored=1, missed=3, asked="best"
    )
    times: dict[str, Any] = {"first_event": 0.1, "first_thought": 0.2004, "first_answer": 0.5}
    record = make_record(client="c/1", tenant="t1", at=AT, started=7.0, address="10.0.0.9", key_id="k1", **times)
    ended = end_request(record, seconds=1.25, outcome=outcome, sent_bytes=99)
    row = dict(zip(COLUMNS, build_row(ended, "host:1"), strict=True))
    assert row == {
        "id": "req_1",
        "at": AT,
        "day": "2025-11-16",
        "instance": "host:1",
        "key": "k1",
        "tenant": "t1",
        "client": "c/1",
        "dialect": "anthropic",
        "action": "reply",
        "asked": "best",
        "model": "anthropic:m",
        "mode": "translate",
        "status": 200,
        "ended": "done",
        "input": 10,
        "cached": 3,
        "output": 20,
        "thinking": 5,
        "cost": 12_300_000,
        "first_thought": 200.4,
        "first_answer": 500.0,
        "total": 1250.0,
        "restored": 1,
        "missed": 3,
        "attempts": 2,
    }
    assert "secret answer" not in repr(row)
    assert "10.0.0.9" not in repr(row)


def test_a_request_that_never_reached_the_relay_has_a_row_too() -> None:
    record = make_record(method="GET", path="/nowhere", dialect="openai_chat", at=AT)
    ended = end_request(record, ended="refused", status=404)
    row = dict(zip(COLUMNS, build_row(ended, "i"), strict=True))
    assert (row["action"], row["ended"], row["status"], row["model"], row["input"]) == (
        "none",
        "refused",
        404,
        "",
        None,
    )
    page = build_row(_end(dialect="page", path="/ui/api/x"), "i")
    assert page[COLUMNS.index("action")] == "turn"
    counted = build_row(_end(path="/v1/messages/count_tokens"), "i")
    assert counted[COLUMNS.index("action")] == "count_tokens"


@pytest.mark.parametrize("model", ["gpt-5", "no-such-model"])
def test_a_request_costs_what_the_list_of_prices_says(model: str) -> None:
    pytest.importorskip("genai_prices")
    usage = Usage(input=1000, output=500, thinking=100, cached=200)
    expected = find_cost(usage, [model], "openai")
    record = _end(usage=usage, models=(model,), provider=find_provider("openai"))
    row = dict(zip(COLUMNS, build_row(record, "i"), strict=True))
    assert row["cost"] == (None if expected is None else to_billionths(expected.amount))
    assert (expected is None) == (model == "no-such-model")


def test_whatever_clients_and_providers_send_can_be_written(database: Database) -> None:
    _write(
        database,
        _end(1, asked="a\x00b\ud800" + "x" * 500, model="sk-ant-api03-" + "A" * 40, client="\x1b[31m"),
        _end(2, usage=Usage(input=10**40, output=-5, cost=Decimal("1e40"))),
        _end(3, usage=Usage(cost=Decimal("NaN"))),
    )
    rows = {row["id"]: row for row in database.run(lambda: list_rows("t1", 10), writes=False)}
    assert "\x00" not in rows["req_1"]["asked"]
    assert len(rows["req_1"]["asked"]) < 220
    assert "A" * 20 not in rows["req_1"]["model"]
    assert "\x1b" not in rows["req_1"]["client"]
    assert rows["req_2"]["output"] == 0
    (sums,) = database.run(lambda: sum_usage(0, "key"), writes=False)
    assert sums.requests == 3


def test_rows_are_written_once_however_often_that_is_tried(database: Database) -> None:
    for _ in range(3):
        _write(database, *(_end(number) for number in range(5)))
    assert len(database.run(lambda: list_rows("t1", 100), writes=False)) == 5


def test_a_tenant_sees_its_own_requests_the_newest_first(database: Database) -> None:
    _write(database, _end(1), _end(2, tenant="t2"), _end(3), _end(4))
    found = database.run(lambda: list_rows("t1", 2), writes=False)
    assert [row["id"] for row in found] == ["req_4", "req_3"]
    assert [row["id"] for row in database.run(lambda: list_rows("t2", 9), writes=False)] == ["req_2"]
    assert database.run(lambda: list_rows("", 9), writes=False) == []


def test_old_rows_are_deleted_in_portions_the_oldest_first(database: Database) -> None:
    _write(database, *(_end(number) for number in range(10)))
    assert database.run(lambda: delete_old(AT + 7, 3)) == 3
    assert [row["id"] for row in database.run(lambda: list_rows("t1", 99), writes=False)][-1] == "req_3"
    assert database.run(lambda: delete_old(AT + 7, 30)) == 4
    assert database.run(lambda: delete_old(AT + 7, 30)) == 0
    assert len(database.run(lambda: list_rows("t1", 99), writes=False)) == 3


def test_sums_by_every_group(database: Database) -> None:
    usage = Usage(input=100, output=50, thinking=20, cached=10, cost=Decimal("0.5"))
    _write(
        database,
        _end(1, usage=usage),
        _end(2, usage=usage, key_id="k2", tenant="t2", model="openai:o", client="x", at=AT + 86_400),
        _end(3, usage=usage, key_id="k2", tenant="t2", model="openai:o", client="x", ended="failed"),
        _end(4, usage=Usage(input=7, output=1), key_id="k3"),
        _end(5, key_id="k3", ended="refused", at=AT - 86_400 * 3),
    )
    by_key = database.run(lambda: sum_usage(AT - 86_400, "key"), writes=False)
    assert by_key == [
        UsageSum("k2", 2, 1, 200, 20, 100, 40, Decimal(1), 0),
        UsageSum("k1", 1, 0, 100, 10, 50, 20, Decimal("0.5"), 0),
        UsageSum("k3", 1, 0, 7, 0, 1, 0, Decimal(0), 1),
    ]
    by_day = database.run(lambda: sum_usage(0, "day"), writes=False)
    assert [(each.group, each.requests) for each in by_day] == [("2025-11-13", 1), ("2025-11-16", 3), ("2025-11-17", 1)]
    assert by_day[0].failed == 1
    for group, first in (("tenant", "t2"), ("model", "openai:o"), ("client", "x")):
        assert database.run(lambda by=group: sum_usage(0, by), writes=False)[0].group == first  # type: ignore[misc]
    assert database.run(lambda: sum_usage(AT * 2, "day"), writes=False) == []


def test_the_names_of_keys(database: Database) -> None:
    assert database.run(list_key_names, writes=False) == {}
