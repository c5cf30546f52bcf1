"""A gateway whose PostgreSQL goes away and comes back: every request is answered, and state is there again after it."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from asides.relay.vault.database_vault import PATIENCE
from asides_stage import Stage
from tests.gateway.served import KEY, Served, ask_first, ask_second, find_thinking, play_turns, serve, write_settings
from tests.servers import PostgresServer

RELAY_KEY = "0a" * 32


@pytest.fixture
def environment(own_postgres_url: str) -> dict[str, str]:
    return {"ASIDES_STORE": own_postgres_url, "ASIDES_RELAY_KEY": RELAY_KEY}


def read_figure(served: Served, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", served.get("/metrics")[1], re.MULTILINE)
    return 0.0 if found is None else float(found[1])


class Load:
    """Clients that hold conversations of two turns, one after the other, until they are told to stop."""

    def __init__(self, url: str) -> None:
        self._url = f"{url}/v1/chat/completions"
        self.statuses: list[int] = []
        self.longest = 0.0
        self.is_over = False
        self._number = 0

    async def run(self, clients: int) -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            await asyncio.gather(*(self._converse(session) for _ in range(clients)))

    async def _converse(self, session: aiohttp.ClientSession) -> None:
        while not self.is_over:
            self._number += 1
            first = ask_first(self._number)
            answer = await self._ask(session, first)
            await self._ask(session, ask_second(first, answer["choices"][0]["message"]))

    async def _ask(self, session: aiohttp.ClientSession, body: dict[str, Any]) -> Any:
        began = time.monotonic()
        async with session.post(self._url, json=body) as response:
            self.statuses.append(response.status)
            document = await response.json()
        self.longest = max(self.longest, time.monotonic() - began)
        assert response.status == 200, document
        return document


def hold_conversation(served: Served, stage: Stage, number: int, **headers: str) -> list[str]:
    """The thinking that the provider gets back in the second turn."""
    first = ask_first(number)
    status, answer = served.post("/v1/chat/completions", first, **headers)
    assert status == 200, answer
    second = ask_second(first, answer["choices"][0]["message"])
    status, answer = served.post("/v1/chat/completions", second, **headers)
    assert status == 200, answer
    return find_thinking(stage.requests[-1].json)


@pytest.mark.parametrize("how", ["fast", pytest.param("hung", marks=pytest.mark.thorough)])
def test_every_request_is_answered_while_the_store_is_out(
    tmp_path: Path, own_postgres: PostgresServer, environment: dict[str, str], how: str
) -> None:
    with Stage(play_turns()) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path, env=environment) as served:
            assert hold_conversation(served, stage, 1_000_001) == ["plan of question 1000001"]
            assert served.get("/readyz") == (200, '{"status": "ready"}')
            load = Load(served.url)

            async def stop_and_start() -> None:
                running = asyncio.create_task(load.run(6))
                await asyncio.sleep(0.7)
                await asyncio.to_thread(own_postgres.suspend if how == "hung" else own_postgres.stop)
                # A server that is silent is waited for, once; one that is gone is not.
                await asyncio.sleep(PATIENCE + 1.5 if how == "hung" else 1.5)
                status, body = await asyncio.to_thread(served.get, "/readyz")
                assert (status, body) == (200, '{"status": "ready", "degraded": ["store"]}')
                await asyncio.sleep(0.5)
                await asyncio.to_thread(own_postgres.start_again)
                await asyncio.to_thread(served.wait_for_log, "works again")
                await asyncio.sleep(0.5)
                load.is_over = True
                await running

            asyncio.run(stop_and_start())
            assert set(load.statuses) == {200}
            # A busy machine takes its time too.
            assert load.longest < (2 * PATIENCE if how == "hung" else 0) + 5
            assert hold_conversation(served, stage, 1_000_002) == ["plan of question 1000002"]
            assert read_figure(served, "asides_store_failures_total") > 0
            assert served.get("/readyz") == (200, '{"status": "ready"}')
            log = served.log
            assert served.end(signal.SIGTERM) == 0
    # Once when it went, and once when it came back.
    assert len(re.findall("warning: the database 127", log)) == 2, log
    assert log.count("works again") == 1
    assert "Traceback" not in log
    assert "Z error:" not in log, log


def test_a_gateway_starts_without_its_store_and_uses_it_as_soon_as_it_can(
    tmp_path: Path, own_postgres: PostgresServer, environment: dict[str, str]
) -> None:
    own_postgres.stop()
    with Stage(play_turns()) as stage:
        write_settings(tmp_path, stage.url)
        # Without its store nobody knows whether it has keys of its own, so a caller needs one.
        with serve(tmp_path, env={**environment, "ASIDES_GATEWAY_KEY": KEY}) as served:
            status, answer = served.post("/v1/chat/completions", ask_first(1), authorization=f"Bearer {KEY}")
            assert status == 200, answer
            assert served.get("/readyz") == (200, '{"status": "ready", "degraded": ["store"]}')
            own_postgres.start_again()
            served.wait_for_log("the tables of the store are ready")
            until = time.monotonic() + 20
            while "degraded" in served.get("/readyz")[1] and time.monotonic() < until:
                time.sleep(0.05)
            found = hold_conversation(served, stage, 2, authorization=f"Bearer {KEY}")
            assert found == ["plan of question 2"]
            assert served.end(signal.SIGTERM) == 0
            assert "Traceback" not in served.log


def test_the_master_key_has_to_be_given(tmp_path: Path, environment: dict[str, str]) -> None:
    write_settings(tmp_path, "http://127.0.0.1:1")
    with serve(tmp_path, env={**environment, "ASIDES_RELAY_KEY": ""}, waits=False) as served:
        assert served.process.wait(40) != 0
        assert "ASIDES_RELAY_KEY" in served.log
        assert "Traceback" not in served.log


def test_two_gateways_are_one(tmp_path: Path, environment: dict[str, str]) -> None:
    """The second turn comes to another instance, and so do questions about stored responses."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    with Stage(play_turns()) as stage:
        for name in ("one", "two"):
            write_settings(tmp_path / name, stage.url)
        with serve(tmp_path / "one", env=environment) as one, serve(tmp_path / "two", env=environment) as two:
            first = ask_first(5)
            _, answer = one.post("/v1/chat/completions", first)
            status, _ = two.post("/v1/chat/completions", ask_second(first, answer["choices"][0]["message"]))
            assert status == 200
            assert find_thinking(stage.requests[-1].json) == ["plan of question 5"]
            body = {"model": "thinker", "input": "question 6"}
            status, stored = one.post("/v1/responses", body)
            assert status == 200, stored
            assert two.get(f"/v1/responses/{stored['id']}")[0] == 200
            calls = [item for item in stored["output"] if item["type"] == "function_call"]
            results = [{"type": "function_call_output", "call_id": call["call_id"], "output": "42"} for call in calls]
            later = {**body, "input": results or "go on", "previous_response_id": stored["id"]}
            status, answer = two.post("/v1/responses", later)
            assert status == 200, answer
            assert find_thinking(stage.requests[-1].json) == ["plan of question 6"]
