"""Whether a gateway lives, and whether it wants requests."""

from __future__ import annotations

import asyncio
import json
import resource
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from asides.settings import load_settings
from asides_gateway.access import KeyLimits
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.service import Service
from asides_gateway.web_app import make_app
from asides_stage import Stage
from tests.gateway.app_client import open_client
from tests.gateway.served import ask_first, play_turns, serve, write_settings

KEY = "sk-gateway-0123456789"


async def _ask(client: ClientSession, path: str, **headers: str) -> tuple[int, Any]:
    response = await client.get(path, headers=headers)
    assert response.headers["cache-control"] == "no-store"
    return response.status, await response.json()


async def test_a_gateway_that_lives_says_so_to_everyone(tmp_path: Path) -> None:
    settings = GatewaySettings(keys=(KEY,), allowed_hosts=("gateway.example.org",), folder=tmp_path)
    service = Service(settings, load_settings({}, files=[]))
    async with open_client(make_app(service)) as client:
        # Whoever watches over processes has no key, and asks by an address.
        assert await _ask(client, "/healthz", host="10.1.2.3") == (200, {"status": "alive"})
        assert await _ask(client, "/readyz", host="10.1.2.3") == (200, {"status": "ready"})
        for path in ("/healthz", "/readyz"):
            head = await client.head(path)
            assert (head.status, await head.read()) == (200, b"")
        assert (await client.get("/v1/models")).status == 401


@pytest.mark.parametrize("mode", ["off", "carry-only", "memory", "store"])
async def test_whatever_is_kept_it_can_be_ready_and_draining_it_is_not(tmp_path: Path, mode: Any) -> None:
    service = Service(GatewaySettings(state_mode=mode, folder=tmp_path), load_settings({}, files=[]))
    app = make_app(service)
    async with open_client(app) as client:
        assert (await _ask(client, "/readyz"))[0] == 200
        app.draining.set()
        status, body = await _ask(client, "/readyz")
        assert (status, body["reason"]) == (503, "the gateway is ending")
        assert (await client.head("/readyz")).status == 503
        assert (await _ask(client, "/healthz"))[0] == 200


async def test_a_store_that_fails_or_hangs_is_not_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(GatewaySettings(folder=tmp_path), load_settings({}, files=[]))
    async with open_client(make_app(service)) as client:
        assert (await _ask(client, "/readyz"))[0] == 200
        service.vault.close()
        for path in tmp_path.glob("vault.db*"):
            path.unlink()
        (tmp_path / "vault.db").write_bytes(b"this is no database, and never was one" * 50)
        status, body = await _ask(client, "/readyz")
        assert (status, body["reason"]) == (503, "the store of reasoning state failed")
        assert str(tmp_path) not in json.dumps(body)

        class Slow:
            async def read_async(self, *_: object) -> tuple[()]:
                await asyncio.sleep(0.4)
                return ()

            async def close_async(self) -> None: ...

        monkeypatch.setattr("asides_gateway.health._STORE_SECONDS", 0.1)
        monkeypatch.setattr(service.vault, "store", Slow())
        status, body = await _ask(client, "/readyz")
        assert status == 503
        assert "did not answer within 0.1 s" in body["reason"]


def test_a_process_that_runs_is_healthy_and_asks_no_provider(tmp_path: Path) -> None:
    with Stage() as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path, env={"PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "of someone else")}) as served:
            assert served.get("/healthz") == (200, '{"status": "alive"}')
            assert served.get("/readyz") == (200, '{"status": "ready"}')
    assert list(stage.requests) == []


async def test_a_redis_that_is_away_is_told_and_costs_no_readiness() -> None:
    service = Service(GatewaySettings(redis="redis://127.0.0.1:1"), load_settings({}, files=[]))
    async with open_client(make_app(service)) as client:
        await service.windows.take("k", KeyLimits(rpm=1), 0)
        status, body = await _ask(client, "/readyz")
        assert (status, body) == (200, {"status": "ready", "degraded": ["redis"]})


@pytest.mark.skipif(sys.platform != "linux", reason="limits the files of another process")
def test_a_full_disk_is_told(tmp_path: Path) -> None:
    """Nothing more can be written to a file: requests are answered, and the state of their turns is lost."""
    with Stage(play_turns()) as stage:
        write_settings(tmp_path, stage.url)
        with serve(tmp_path) as served:
            assert served.post("/v1/chat/completions", ask_first(1))[0] == 200
            assert served.get("/readyz") == (200, '{"status": "ready"}')
            (journal,) = tmp_path.rglob("vault.db-wal")
            limit = journal.stat().st_size
            resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            assert served.post("/v1/chat/completions", ask_first(2))[0] == 200
            assert served.get("/readyz") == (200, '{"status": "ready", "degraded": ["store"]}')
