"""The inspector's list where several processes answer: requests of all of them, each tenant's own."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from asides.options import Options
from asides.settings import load_settings
from asides.values.usage import Usage
from asides_gateway.authenticate import derive_tenant
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.service import Service
from asides_gateway.shared_requests import shares_requests, to_summary
from asides_gateway.summary_rows import COLUMNS, build_row, insert_rows
from asides_gateway.web_app import make_app
from asides_stage import Say, Stage
from tests.gateway.app_client import open_client
from tests.gateway.request_records import make_record

KEYS = ("sk-gateway-0123456789", "sk-gateway-9876543210")


@asynccontextmanager
async def _serving(settings: GatewaySettings, url: str) -> AsyncGenerator[tuple[ClientSession, Service]]:
    options = Options(base_url=url, api_key="sk-upstream")
    service = Service(settings, load_settings({}, files=[]), options=options)
    async with open_client(make_app(service)) as client:
        yield client, service


def _make_row(number: int, tenant: str, **changed: Any) -> tuple[Any, ...]:
    fields: dict[str, Any] = {
        "at": time.time() + number,
        "key_id": "",
        "tenant": tenant,
        "client": "curl/8",
        "dialect": "anthropic",
        "method": "POST",
        "path": "/v1/messages",
        "seconds": 1.5,
        "status": 200,
        "ended": "done",
        "first_thought": 0.25,
        "first_answer": 1.0,
        "model": "anthropic:m",
        "mode": "forward",
        "usage": Usage(input=10, output=5),
    }
    return build_row(make_record(f"req_{number}", **{**fields, **changed}), "elsewhere:7")


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_the_list_has_the_requests_of_all_processes_and_of_one_tenant(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASIDES_RELAY_KEY", "0123456789abcdef" * 4)
    store = request.getfixturevalue("postgres_url") if engine == "postgres" else None
    settings = GatewaySettings(keys=KEYS, folder=tmp_path, workers=1 if store else 2, store=store)
    one, other = (derive_tenant(key) for key in KEYS)
    headers = {"authorization": f"Bearer {KEYS[0]}"}
    with Stage(Say(text="hello")) as stage:
        async with _serving(settings, stage.url) as (client, service):
            body = {"model": "anthropic:m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
            answer = await client.post("/v1/messages", json=body, headers=headers)
            assert answer.status == 200
            rows = [_make_row(1, one), _make_row(2, other), _make_row(3, one, ended="failed", status=500)]
            await service.database.run_async(lambda: insert_rows(rows))
            told = await (await client.get("/ui/api/requests", headers=headers)).json()
            assert told["shares_requests"] is True
            listed = told["requests"]
            assert [each["id"] for each in listed][:2] == ["req_3", "req_1"]
            assert len(listed) == 3
            assert "instance" not in listed[2], "its own"
            assert set(listed[2]) <= set(listed[0]), "the same fields as its own have"
            few = await (await client.get("/ui/api/requests?limit=1", headers=headers)).json()
            assert [each["id"] for each in few["requests"]] == ["req_3"]
            missing = await client.get("/ui/api/requests/req_1", headers=headers)
            assert missing.status == 404
            error = (await missing.json())["error"]
            assert error["code"] == "request_elsewhere"
            assert "elsewhere:7" in error["message"]
            foreign = await client.get("/ui/api/requests/req_2", headers=headers)
            assert (await foreign.json())["error"]["code"] == "no_request"


async def test_the_list_goes_on_without_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASIDES_RELAY_KEY", "0123456789abcdef" * 4)
    settings = GatewaySettings(keys=KEYS, folder=tmp_path, store="postgresql://asides@127.0.0.1:1/nothing")
    headers = {"authorization": f"Bearer {KEYS[0]}"}
    with Stage(Say(text="hello")) as stage:
        async with _serving(settings, stage.url) as (client, _):
            body = {"model": "anthropic:m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
            assert (await client.post("/v1/messages", json=body, headers=headers)).status == 200
            told = await (await client.get("/ui/api/requests", headers=headers)).json()
            assert len(told["requests"]) == 1


def test_a_row_becomes_a_line_of_the_list() -> None:
    row: dict[str, Any] = dict(zip(COLUMNS, _make_row(1, "t", ended="refused", status=429), strict=True))
    found = to_summary(row)
    assert found["state"] == "failed"
    assert found["timing"] == {"first_event": None, "first_thought": 0.25, "first_answer": 1.0, "total": 1.5}
    assert found["spans"] == [["waiting", 0.0], ["thinking", 0.25], ["answering", 1.0]]
    assert found["usage"] == {"input": 10, "output": 5, "thinking": None, "cached": None}
    assert found["provider"] == "anthropic"
    assert found["cost"] is None


@pytest.mark.parametrize(
    ("changed", "shares"),
    [({}, False), ({"workers": 2}, True), ({"workers": 2, "summary_days": 0}, False), ({"summary_days": 0}, False)],
)
def test_who_shares_requests(changed: dict[str, Any], shares: bool, tmp_path: Path) -> None:
    service = Service(GatewaySettings(folder=tmp_path, **changed), load_settings({}, files=[]))
    assert shares_requests(service) is shares
