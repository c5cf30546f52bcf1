"""Requests of keys with limits through a gateway: counted, reserved, settled, refused, and given back."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from asides.database import Database, StoreUnavailable
from asides.dialects.dialect import ServedRequest
from asides.relay.error_response import RelayRefusal
from asides.relay.relay_request import CallerLimits
from asides.relay.steps import ReserveUse, Use
from asides.values.money import to_dollars
from asides.values.usage import Usage
from asides_gateway.access import key_meter
from asides_gateway.access.budget_store import Spending, list_spending
from asides_gateway.access.key_meter import KeyMeter, Meters, build_caller_limits
from asides_gateway.access.key_store import revoke_key
from asides_gateway.access.memory_windows import MemoryWindows
from asides_stage import Fail, Say
from asides_stage.stage import Raw
from asides_stage.stage.script import Scene
from tests.gateway.access.key_records import add_key, build_record, open_place
from tests.gateway.access.limited_gateway import CLAUDE, PlayedStage, limited
from tests.gateway.http_client import Client, Held, chat, message, wait_for

DOLLAR = 10**9


@pytest.fixture(autouse=True)
def _relay_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASIDES_RELAY_KEY", "00" * 32)


# --- money ------------------------------------------------------------------------------------------------------------

FORWARDED = ("/v1/messages", {**message(), "model": CLAUDE})
TRANSLATED = ("/v1/chat/completions", {**chat(), "model": CLAUDE, "max_tokens": 99})


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("path", "body"), [FORWARDED, TRANSLATED], ids=["forwarded", "translated"])
def test_a_reply_is_settled_at_its_price_before_it_ends(
    stage: PlayedStage, place: str, path: str, body: dict[str, Any], stream: bool
) -> None:
    stage.play(Say(text="42"))
    with limited(stage, place) as gateway:
        added = gateway.add_key(budget_day="1")
        answer = gateway.ask(added, path, {**body, "stream": stream})
        assert answer.status == 200, answer.body
        # Whoever has the end of the reply may ask for the sum at once.
        spent = gateway.spending(added)
    assert spent.reserved == 0
    assert 0 < spent.day == spent.month
    assert to_dollars(spent.day) < Decimal("0.01")


def test_while_a_reply_is_under_way_its_bound_is_reserved(stage: PlayedStage, tmp_path: Path) -> None:
    held = Held(Say(text="42"))
    stage.play(held)
    with limited(stage, str(tmp_path)) as gateway:
        added = gateway.add_key(budget_day="1")
        with Client(gateway.gateway) as client:
            client.send("POST", *TRANSLATED, [("authorization", f"Bearer {added.key}")])
            assert wait_for(lambda: gateway.spending(added).reserved > 0)
            # 99 tokens at 15 dollars for a million, and the question.
            assert 0.0014 < to_dollars(gateway.spending(added).reserved) < 0.01
            held.let()
            assert client.read().status == 200
        assert gateway.spending(added).reserved == 0
        assert gateway.spending(added).day > 0


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {**chat(), "model": CLAUDE}),
        ("/v1/messages", {**message(), "model": CLAUDE, "max_tokens": 64000}),
        ("/v1/responses", {"model": CLAUDE, "input": "six times seven?", "max_output_tokens": 64000}),
        ("/v1beta/models/anthropic:claude-sonnet-4-5:generateContent", {"contents": [{"parts": [{"text": "?"}]}]}),
    ],
)
def test_what_does_not_fit_is_refused_in_the_callers_dialect_and_asks_nobody(
    stage: PlayedStage, tmp_path: Path, path: str, body: dict[str, Any]
) -> None:
    stage.play(Say(text="never"))
    with limited(stage, str(tmp_path)) as gateway:
        added = gateway.add_key(budget_day="0.01", budget_month="0.02")
        before = stage.count
        answer = gateway.ask(added, path, body)
        assert stage.count == before
        assert gateway.spending(added) == Spending()
    assert answer.status == 429
    words = answer.body.decode()
    assert "budget" in words
    assert "T00:00:00Z" in words
    assert re.search(r"\. [A-Z]", words)
    assert 0 < int(answer.headers["retry-after"]) <= 31 * 86400
    assert answer.headers["x-should-retry"] == "false"
    error = answer.json["error"]
    match path:
        case "/v1/messages":
            assert (answer.json["type"], error["type"]) == ("error", "rate_limit_error")
        case "/v1/chat/completions" | "/v1/responses":
            assert error["code"] == "insufficient_quota"
        case _:
            assert (error["code"], error["status"]) == (429, "RESOURCE_EXHAUSTED")


def test_an_error_of_the_provider_costs_nothing(stage: PlayedStage, tmp_path: Path) -> None:
    with limited(stage, str(tmp_path)) as gateway:
        added = gateway.add_key(budget_day="1")
        for path, body in (FORWARDED, TRANSLATED):
            stage.play(*[Fail(status=400)] * 3)
            assert gateway.ask(added, path, body).status == 400
            assert gateway.spending(added) == Spending()


UNREADABLE = [
    b"<html>it works</html>",
    b"\x0a\x04\x08\x01proto",
    b"{}",
    b'{"type": "message"',
    b"[" * 500,
    b"data: {\n\n",
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("path", "body"), [FORWARDED, TRANSLATED], ids=["forwarded", "translated"])
def test_an_answer_that_cannot_be_decoded_costs_what_it_may_have_cost(
    stage: PlayedStage, tmp_path: Path, path: str, body: dict[str, Any], stream: bool
) -> None:
    """Its provider charges for it, and its client may have it."""
    body = {**body, "max_tokens": 4000, "stream": stream}
    with limited(stage, str(tmp_path)) as gateway:
        for number, data in enumerate(UNREADABLE):
            added = gateway.add_key(str(number), budget_day="1")
            stage.play(Raw(body=data))
            gateway.ask(added, path, body)
            assert wait_for(lambda key=added: gateway.spending(key).reserved == 0)
            assert Decimal("0.06") <= to_dollars(gateway.spending(added).day) < Decimal("0.07"), data


def test_a_fallback_is_paid_beside_an_answer_that_could_not_be_decoded(stage: PlayedStage, tmp_path: Path) -> None:
    toml = f'[routes.both]\ntargets = ["{CLAUDE}", "openai:gpt-4o-mini"]\nretries = 0\n'
    with limited(stage, str(tmp_path), toml=toml) as gateway:
        added = gateway.add_key(budget_day="1")
        stage.play(Raw(body=b"<html>it works</html>"), Say(text="42"))
        answer = gateway.ask(added, "/v1/chat/completions", {**chat(), "model": "both", "max_tokens": 4000})
        assert answer.status == 200, answer.body
        assert Decimal("0.06") <= to_dollars(gateway.spending(added).day) < Decimal("0.07")


def test_a_fallback_is_reserved_at_its_own_price(stage: PlayedStage, tmp_path: Path) -> None:
    toml = f'[routes.both]\ntargets = ["{CLAUDE}", "openai:gpt-4o-mini"]\nretries = 0\n'
    with limited(stage, str(tmp_path), toml=toml) as gateway:
        added = gateway.add_key(budget_day="1")
        stage.play(Fail(status=500), Say(text="42"))
        answer = gateway.ask(added, "/v1/chat/completions", {**chat(), "model": "both", "max_tokens": 50})
        assert answer.status == 200, answer.body
        spent = gateway.spending(added)
        assert spent.reserved == 0
        assert 0 < to_dollars(spent.day) < Decimal("0.0005"), "at the price of the second"


def test_a_client_that_leaves_pays_for_what_came(stage: PlayedStage, tmp_path: Path) -> None:
    stage.play(Say(text="word " * 2000, pause=0.002))
    with limited(stage, str(tmp_path)) as gateway:
        added = gateway.add_key(budget_day="1")
        with Client(gateway.gateway) as client:
            body = {**TRANSLATED[1], "stream": True, "max_tokens": 4000}
            client.send("POST", TRANSLATED[0], body, [("authorization", f"Bearer {added.key}")])
            client.read_head()
            next(client.read_chunks())
        assert wait_for(lambda: gateway.spending(added).day > 0)
        assert wait_for(lambda: gateway.spending(added).reserved == 0)
        assert to_dollars(gateway.spending(added).day) < Decimal("0.06")


@pytest.mark.parametrize(("path", "body"), [FORWARDED, TRANSLATED], ids=["forwarded", "translated"])
def test_what_a_provider_may_work_on_is_paid_though_its_caller_does_not_wait(
    stage: PlayedStage, tmp_path: Path, path: str, body: dict[str, Any]
) -> None:
    body = {**body, "max_tokens": 4000}
    with limited(stage, str(tmp_path)) as gateway:
        left, impatient = gateway.add_key("left", budget_day="1"), gateway.add_key("impatient", budget_day="1")
        held, arrived = Held(Say(text="42")), threading.Event()

        def answer_late(served: ServedRequest) -> Scene:
            arrived.set()
            return held(served)

        stage.play(answer_late)
        with Client(gateway.gateway) as client:
            client.send("POST", path, body, [("authorization", f"Bearer {left.key}")])
            assert arrived.wait(30)
        assert wait_for(lambda: gateway.spending(left).reserved == 0)
        held.let()
        held = Held(Say(text="42"))
        stage.play(held)
        answer = gateway.ask(impatient, path, {**body, "asides": {"timeout": 1, "retries": 0}})
        held.let()
        assert answer.status == 504, answer.body
        for key in (left, impatient):
            # 4000 tokens at 15 dollars for a million, and the question.
            assert Decimal("0.06") <= to_dollars(gateway.spending(key).day) < Decimal("0.07")


@pytest.mark.parametrize("limit", [-1, 0])
def test_a_limit_of_nothing_reserves_what_a_reply_may_have(stage: PlayedStage, tmp_path: Path, limit: int) -> None:
    with limited(stage, str(tmp_path)) as gateway:
        added = gateway.add_key(budget_day="0.1")
        answer = gateway.ask(added, FORWARDED[0], {**FORWARDED[1], "max_tokens": limit})
    assert (answer.status, answer.json["error"]["type"]) == (429, "rate_limit_error")


def test_the_larger_of_two_limits_is_reserved(stage: PlayedStage, tmp_path: Path) -> None:
    body = {**TRANSLATED[1], "max_completion_tokens": 1, "max_tokens": 1_000_000}
    with limited(stage, str(tmp_path)) as gateway:
        answer = gateway.ask(gateway.add_key(budget_day="1"), TRANSLATED[0], body)
    assert (answer.status, answer.json["error"]["code"]) == (429, "insufficient_quota")


@pytest.mark.parametrize("limits", [{"budget_day": "1"}, {"tpm": 1000}, {"models": ("anthropic:*",)}])
@pytest.mark.parametrize(("path", "body"), [FORWARDED, TRANSLATED], ids=["forwarded", "translated"])
def test_fields_behind_the_back_of_a_limit_are_refused(
    stage: PlayedStage, tmp_path: Path, path: str, body: dict[str, Any], limits: dict[str, Any]
) -> None:
    with limited(stage, str(tmp_path)) as gateway:
        before = stage.count
        for extra in ({"max_tokens": 1_000_000}, {"preset": "any"}):
            answer = gateway.ask(gateway.add_key(str(extra), **limits), path, {**body, "asides": {"extra": extra}})
            assert answer.status == 400
            assert "asides.extra" in answer.body.decode()
        assert stage.count == before


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("path", "body"), [FORWARDED, TRANSLATED], ids=["forwarded", "translated"])
def test_counts_that_nobody_could_owe_cost_no_reply_and_lock_the_key(
    stage: PlayedStage, place: str, path: str, body: dict[str, Any], stream: bool
) -> None:
    with limited(stage, place) as gateway:
        for number, count in enumerate((10**16, 10**30)):
            added = gateway.add_key(f"k{number}", budget_day="1")
            stage.play(Say(text="42", usage=Usage(count, count)))
            answer = gateway.ask(added, path, {**body, "stream": stream})
            assert answer.status == 200, answer.body
            assert b"failed" not in answer.body
            assert gateway.spending(added).reserved == 0
            assert gateway.spending(added).day == 10**15
            assert gateway.ask(added, path, body).status == 429


def test_a_stream_whose_client_wants_no_counts_is_paid_for_with_its_hidden_thinking(
    stage: PlayedStage, tmp_path: Path
) -> None:
    # Without tags, thinking never stands in the answer, so that requests could be forwarded.
    body = {**chat(), "model": "openai:gpt-5", "stream": True, "asides": {"tags": []}}
    stage.play(*[Say(text="42", usage=Usage(100, 10_000, 9_990))] * 3)
    with limited(stage, str(tmp_path), toml='[visibility]\ngateway = ["raw", "summary"]\n') as gateway:
        added = gateway.add_key(budget_day="10")
        answer = gateway.ask(added, "/v1/chat/completions", body)
        assert answer.status == 200, answer.body
        assert b'"usage":{' not in answer.body
        assert to_dollars(gateway.spending(added).day) == Decimal("0.100125")
        free = gateway.add_key("by the minute", rpm=9)
        gateway.ask(free, "/v1/chat/completions", body)
        assert "stream_options" not in stage.stage.requests[-1].body.decode()


def test_a_model_without_a_price_is_not_for_keys_with_a_budget(stage: PlayedStage, tmp_path: Path) -> None:
    stage.play(Say(text="42"))
    with limited(stage, str(tmp_path)) as gateway:
        added = gateway.add_key("budget", budget_day="1")
        body = {**chat(), "model": "ollama:somebodys-model"}
        answer = gateway.ask(added, "/v1/chat/completions", body)
        assert (answer.status, answer.json["error"]["code"]) == (403, "model_without_price")
        assert "asides[prices]" in answer.json["error"]["message"]
        assert gateway.ask(gateway.add_key("free", rpm=9), "/v1/chat/completions", body).status == 200


def test_counting_tokens_is_free_but_is_a_request(stage: PlayedStage, tmp_path: Path) -> None:
    with limited(stage, str(tmp_path)) as gateway:
        added = gateway.add_key(budget_day="0.000001", rpm=1)
        body = {"model": CLAUDE, "messages": [{"role": "user", "content": "hello"}]}
        assert gateway.ask(added, "/v1/messages/count_tokens", body).status == 200
        assert gateway.spending(added) == Spending()
        assert gateway.ask(added, "/v1/messages/count_tokens", body).status == 429


def test_a_reply_in_the_background_is_paid_by_its_key(stage: PlayedStage, tmp_path: Path) -> None:
    stage.play(Say(text="42"))
    with limited(stage, str(tmp_path)) as gateway:
        added = gateway.add_key(budget_day="1")
        body = {"model": "openai:gpt-5", "input": "?", "background": True, "max_output_tokens": 9}
        began = gateway.ask(added, "/v1/responses", body)
        assert (began.status, began.json.get("status")) == (200, "in_progress"), began.body
        ends = time.monotonic() + 20
        path = f"/v1/responses/{began.json['id']}"
        while (ended := gateway.ask(added, path, method="GET")).json["status"] != "completed":
            assert time.monotonic() < ends, ended.body
            time.sleep(0.02)
        while (spent := gateway.spending(added)).reserved:
            assert time.monotonic() < ends, spent
            time.sleep(0.02)
    assert 0 < spent.day == spent.month


# --- rates ------------------------------------------------------------------------------------------------------------


def test_more_requests_than_fit_into_a_minute_are_told_when_to_come_back(stage: PlayedStage, tmp_path: Path) -> None:
    stage.play(*[Say(text="42")] * 2)
    with limited(stage, str(tmp_path)) as gateway:
        added, other = gateway.add_key("one", rpm=2), gateway.add_key("other", rpm=2)
        statuses = [gateway.ask(added, *TRANSLATED).status for _ in range(2)]
        answer = gateway.ask(added, *TRANSLATED)
        assert statuses == [200, 200]
        assert (answer.status, answer.json["error"]["code"]) == (429, "rate_limit_exceeded")
        assert 0 < int(answer.headers["retry-after"]) <= 61
        assert 0 < int(answer.headers["retry-after-ms"]) <= 61_000
        stage.play(Say(text="42"))
        assert gateway.ask(other, *TRANSLATED).status == 200


def test_tokens_are_corrected_to_what_was_used(stage: PlayedStage, tmp_path: Path) -> None:
    """A thousand are reserved for a reply without a limit; the few that were used leave room for the next."""
    stage.play(*[Say(text="42")] * 5)
    with limited(stage, str(tmp_path)) as gateway:
        added = gateway.add_key(tpm=2000)
        body = {**chat(), "model": CLAUDE}
        assert [gateway.ask(added, "/v1/chat/completions", body).status for _ in range(5)] == [200] * 5
        long = {**body, "messages": [{"role": "user", "content": "word " * 8000}]}
        answer = gateway.ask(added, "/v1/chat/completions", long)
        assert (answer.status, answer.json["error"]["code"]) == (429, "rate_limit_exceeded")


# --- the meter itself -------------------------------------------------------------------------------------------------


class Away:
    """A database that is away when it is told to be."""

    is_shared = False
    problem = None

    def __init__(self, database: Database) -> None:
        self._database = database
        self.is_away = False

    async def run_async(self, work: Any, **how: Any) -> Any:
        if self.is_away:
            raise StoreUnavailable("it is away.")
        return self._database.run(work, **how)


def step(cost: str | None, tokens: int = 10) -> ReserveUse:
    return ReserveUse(CLAUDE, tokens, None if cost is None else Decimal(cost), lambda _: Use(5, Decimal("0.1"), True))


async def open_meter(place: str, **limits: Any) -> tuple[Away, Meters, KeyMeter, Database, str]:
    database = open_place(place)
    record = (await asyncio.to_thread(lambda: add_key(database, **limits))).record
    away = Away(database)
    meters = Meters(away, MemoryWindows())  # type: ignore[arg-type]
    meter = meters.open(record)
    assert meter is not None
    return away, meters, meter, database, record.id


def read(database: Database, key: str) -> Spending:
    return database.run(lambda: list_spending(time.time()), writes=False).get(key, Spending())


async def test_while_the_database_is_away_a_budget_cannot_be_reserved_and_what_was_used_is_settled_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    away, meters, meter, database, key = await open_meter(str(tmp_path), budget_day="1")
    assert await meter.reserve(step("0.5")) is None
    away.is_away = True
    refused = await KeyMeter(meters, meter._record).reserve(step("0.1"))
    assert isinstance(refused, RelayRefusal)
    assert (refused.status, refused.headers) == (503, {"retry-after": "5"})
    await meter.settle(Use(7, Decimal("0.2")))
    assert read(database, key).day == 0
    away.is_away = False
    caplog.set_level(logging.INFO)
    await meters._settle_late()
    assert read(database, key) == Spending(DOLLAR // 5, DOLLAR // 5, 0)
    await meters._settle_late()
    assert read(database, key).day == DOLLAR // 5
    assert "again" in caplog.text


async def test_one_that_cannot_be_settled_keeps_no_other_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    away, meters, meter, database, key = await open_meter(str(tmp_path), budget_day="1")
    second = KeyMeter(meters, meter._record)
    assert await meter.reserve(step("0.1")) is None
    assert await second.reserve(step("0.1")) is None
    monkeypatch.setattr(key_meter, "MOST_SPENT", 10**30)  # More than a column takes.
    away.is_away = True
    await meter.settle(Use(7, Decimal(10**15)))
    await second.settle(Use(7, Decimal("0.2")))
    away.is_away = False
    await meters._settle_late()
    assert read(database, key).day == DOLLAR // 5


async def test_what_waits_to_be_settled_is_renewed(tmp_path: Path) -> None:
    away, meters, meter, database, key = await open_meter(str(tmp_path), budget_day="1")
    meters.lease = 1.0
    assert await meter.reserve(step("0.5")) is None
    away.is_away = True
    await meter.settle(Use(7, Decimal("0.5")))
    away.is_away = False
    await asyncio.sleep(1.2)
    assert read(database, key).reserved == 0
    await meters.renew()
    assert read(database, key).reserved == DOLLAR // 2


@pytest.mark.parametrize("ahead", [-3600, 3600])
async def test_clocks_of_instances_that_differ_end_no_lease(place: str, ahead: int) -> None:
    _, _, meter, database, key = await open_meter(place, budget_month="1")
    other = Meters(Away(database), MemoryWindows(), clock=lambda: time.time() + ahead)  # type: ignore[arg-type]
    assert await KeyMeter(other, meter._record).reserve(step("0.6")) is None
    assert isinstance(await meter.reserve(step("0.6")), RelayRefusal)
    await other.renew()
    assert read(database, key).reserved == 6 * DOLLAR // 10
    assert isinstance(await KeyMeter(other, meter._record).reserve(step("0.6")), RelayRefusal)


async def test_one_key_takes_few_connections_whatever_it_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    away, meters, meter, _, _ = await open_meter(str(tmp_path), budget_day="100")
    at_once, most, goes_on = 0, 0, asyncio.Event()

    async def run_slowly(work: Any, **how: Any) -> Any:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await goes_on.wait()
        at_once -= 1
        return True

    monkeypatch.setattr(away, "run_async", run_slowly)
    monkeypatch.setattr(key_meter, "_WAIT_SECONDS", 0.2)
    tasks = [asyncio.create_task(KeyMeter(meters, meter._record).reserve(step("0.1"))) for _ in range(40)]
    await asyncio.sleep(0.5)
    assert most == 2
    goes_on.set()
    found = await asyncio.gather(*tasks)
    assert sum(each is None for each in found) == 2
    assert {each.status for each in found if isinstance(each, RelayRefusal)} == {503}
    assert await KeyMeter(meters, meter._record).reserve(step("0.1")) is None, "no turn is lost"


async def test_another_target_replaces_what_was_reserved(tmp_path: Path) -> None:
    _, meters, meter, database, key = await open_meter(str(tmp_path), budget_day="1")
    assert await meter.reserve(step("0.9")) is None
    assert await meter.reserve(step("0.3")) is None
    assert read(database, key).reserved == 3 * DOLLAR // 10
    assert len(meters.reserved) == 1
    await meter.settle(Use(1, Decimal("0.25")))
    assert read(database, key) == Spending(DOLLAR // 4, DOLLAR // 4, 0)
    assert meters.reserved == {}
    meter.leave()
    await meters.close()
    assert read(database, key).day == DOLLAR // 4


async def test_whoever_leaves_is_settled_with_what_was_used_so_far(tmp_path: Path) -> None:
    _, meters, meter, database, key = await open_meter(str(tmp_path), budget_day="1")
    await meter.reserve(step("0.9"))
    meter.leave()
    await meters.close()
    assert read(database, key) == Spending(DOLLAR // 10, DOLLAR // 10, 0)


async def test_a_lease_is_renewed_as_long_as_a_request_lives(tmp_path: Path) -> None:
    database = open_place(str(tmp_path))
    record = (await asyncio.to_thread(lambda: add_key(database, budget_day="1"))).record
    meters = Meters(database, MemoryWindows(), lease_seconds=1.5)
    meter = KeyMeter(meters, record)
    task = asyncio.create_task(meters.run())
    await meter.reserve(step("0.5"))
    await asyncio.sleep(2.0)
    assert read(database, record.id).reserved == DOLLAR // 2
    task.cancel()
    async with asyncio.timeout(20):  # Whoever is killed renews nothing.
        while read(database, record.id).reserved:
            await asyncio.sleep(0.05)


async def test_a_clock_that_is_set_back_ends_no_lease(tmp_path: Path) -> None:
    database = open_place(str(tmp_path))
    record = (await asyncio.to_thread(lambda: add_key(database, budget_day="1"))).record
    ahead = [0.0]
    meters = Meters(database, MemoryWindows(), lease_seconds=1.5, clock=lambda: time.time() + ahead[0])
    task = asyncio.create_task(meters.run())
    await KeyMeter(meters, record).reserve(step("0.5"))
    ahead[0] = -3600.0
    await asyncio.sleep(2.5)
    assert read(database, record.id).reserved == DOLLAR // 2
    task.cancel()


async def test_whoever_leaves_after_the_clock_was_set_back_pays_for_all_of_the_time(tmp_path: Path) -> None:
    _, meters, meter, _, _ = await open_meter(str(tmp_path), budget_day="1")
    asked: list[float] = []

    def find_used(seconds: float) -> Use:
        asked.append(seconds)
        return Use()

    await meter.reserve(ReserveUse(CLAUDE, 10, Decimal("0.5"), find_used))
    meters.clock = lambda: time.time() - 3600
    await asyncio.sleep(0.2)
    meter.leave()
    await meters.close()
    assert 0.1 < asked[0] < 60


async def test_what_could_not_be_renewed_is_renewed_as_soon_as_the_database_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(key_meter, "_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(key_meter, "time", SimpleNamespace(monotonic=lambda: now[0]))
    away, meters, meter, _, _ = await open_meter(str(tmp_path), budget_day="1")
    assert await meter.reserve(step("0.5")) is None
    attempts: list[bool] = []
    run = away.run_async

    async def note(work: Any, **how: Any) -> Any:
        attempts.append(away.is_away)
        return await run(work, **how)

    monkeypatch.setattr(away, "run_async", note)
    task = asyncio.create_task(meters.run())
    await asyncio.sleep(0)
    away.is_away, now[0] = True, meters.lease / 4
    async with asyncio.timeout(20):
        while not attempts:
            await asyncio.sleep(0.01)
        # No clock moves: others could reserve the money if it took another quarter of a lease.
        away.is_away = False
        while attempts[-1]:
            await asyncio.sleep(0.01)
    done = len(attempts)
    await asyncio.sleep(0.1)
    assert len(attempts) == done
    task.cancel()


async def test_an_error_of_ours_ends_no_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_meter, "_RETRY_SECONDS", 0.02)
    _, meters, meter, database, key = await open_meter(str(tmp_path), budget_day="1")
    meters.lease = 1.0
    assert await meter.reserve(step("0.5")) is None
    failures = iter([RuntimeError("a fault")] * 3)
    run = meters.database.run_async

    async def fail_first(work: Any, **how: Any) -> Any:
        if (problem := next(failures, None)) is not None:
            raise problem
        return await run(work, **how)

    monkeypatch.setattr(meters.database, "run_async", fail_first)
    task = asyncio.create_task(meters.run())
    await asyncio.sleep(2.0)
    assert read(database, key).reserved == DOLLAR // 2
    task.cancel()


async def test_a_reply_that_costs_more_than_its_bound_is_settled_in_full_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _, meters, meter, database, key = await open_meter(str(tmp_path), budget_day="1")
    await meter.reserve(step("0.1"))
    await meter.settle(Use(7, Decimal("1.5")))
    assert read(database, key).day == 3 * DOLLAR // 2
    assert "settled in full" in caplog.text
    refused = await KeyMeter(meters, meter._record).reserve(step("0.000001"))
    assert isinstance(refused, RelayRefusal)
    assert "$0 of it is left" in str(refused)


async def test_a_key_that_was_revoked_elsewhere_is_refused_and_forgotten(tmp_path: Path) -> None:
    database = open_place(str(tmp_path))
    record = (await asyncio.to_thread(lambda: add_key(database, budget_day="1"))).record
    told: list[str] = []
    meters = Meters(database, MemoryWindows(), on_revoked=told.append)
    database.run(lambda: revoke_key(record.id, time.time()))
    refused = await KeyMeter(meters, record).reserve(step("0.1"))
    assert isinstance(refused, RelayRefusal)
    assert (refused.status, refused.code, told) == (401, "invalid_api_key", [record.id])


async def test_a_request_that_is_cancelled_while_it_reserves_gives_it_back(tmp_path: Path) -> None:
    away, meters, meter, database, key = await open_meter(str(tmp_path), budget_day="1")
    run = away.run_async

    async def slow(work: Any, **more: Any) -> Any:
        done = await run(work, **more)
        await asyncio.sleep(0.05)
        return done

    away.run_async = slow  # type: ignore[method-assign]
    task = asyncio.create_task(meter.reserve(step("0.5")))
    await asyncio.sleep(0.02)
    assert read(database, key).reserved == DOLLAR // 2
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await meters.close()
    assert read(database, key) == Spending()


def test_a_key_without_limits_has_no_meter() -> None:
    meters = Meters(None, MemoryWindows())  # type: ignore[arg-type]
    assert meters.open(None) is None
    assert meters.open(build_record(models=("a",)).record) is None
    assert build_caller_limits(None) is None
    assert build_caller_limits(build_record().record) is None
    assert build_caller_limits(build_record(models=("a",)).record) == CallerLimits(("a",))
    assert build_caller_limits(build_record(tpm=3).record) == CallerLimits((), True, True)
    assert build_caller_limits(build_record(budget_month="3").record) == CallerLimits((), False, False, True)
