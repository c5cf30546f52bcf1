"""Gateways with different master keys: the log says so, once. A key that was replaced and kept is no other one."""

from __future__ import annotations

import asyncio
import logging

import pytest

from asides.database.migrate import MigratedPostgres
from asides.relay.state.relay_keys import RelayKeys
from asides.relay.state.vault_records import write_payload
from asides.relay.steps import StoredRecord
from asides.relay.vault.open_vault import open_shared_vault
from asides.settings import Settings
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.relay_key_watch import has_other_keys, watch_relay_key
from asides_gateway.service import Service

OURS, THEIRS = "11" * 32, "22" * 32
WORDS = "encrypted with another ASIDES_RELAY_KEY than that of this process"


async def _write(url: str, key: str) -> None:
    """Write a record as a gateway with this key does."""
    vault = open_shared_vault(MigratedPostgres(url), key=key)
    assert vault.store is not None
    keys = vault.keys.find_tenant("tenant")
    payload = write_payload(b"{}", f"turn_{key}", keys)
    await vault.store.write_async("tenant", StoredRecord(f"turn_{key}", (keys.make_lookup_key("call", "a"),), payload))
    await vault.close_async()


async def test_a_record_of_another_key_is_noticed(postgres_url: str) -> None:
    await _write(postgres_url, OURS)
    database = MigratedPostgres(postgres_url)
    assert not await has_other_keys(database, RelayKeys.parse(OURS))
    await _write(postgres_url, THEIRS)
    assert await has_other_keys(database, RelayKeys.parse(OURS))
    assert not await has_other_keys(database, RelayKeys.parse(f"{THEIRS},{OURS}"))
    await database.close_async()


async def test_the_log_says_it_once_and_shows_no_key(postgres_url: str, caplog: pytest.LogCaptureFixture) -> None:
    database = MigratedPostgres(postgres_url)
    await _write(postgres_url, OURS)
    watching = asyncio.create_task(watch_relay_key(database, RelayKeys.parse(OURS), seconds=0.01))
    await asyncio.sleep(0.1)
    assert not watching.done()
    await _write(postgres_url, THEIRS)
    await asyncio.wait_for(watching, 30)
    assert [WORDS in record.getMessage() for record in caplog.records] == [True]
    assert not any(key[:8] in caplog.text for key in (OURS, THEIRS))
    await database.close_async()


async def test_a_store_that_does_not_answer_ends_nothing() -> None:
    database = MigratedPostgres("postgresql://me@127.0.0.1:1/none")
    watching = asyncio.create_task(watch_relay_key(database, RelayKeys.parse(OURS), seconds=0.01))
    await asyncio.sleep(0.2)
    assert not watching.done()
    watching.cancel()
    await asyncio.wait({watching})
    await database.close_async()


async def test_a_gateway_watches(
    postgres_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASIDES_RELAY_KEY", OURS)
    caplog.set_level(logging.WARNING, "asides.gateway")
    await _write(postgres_url, THEIRS)
    service = Service(GatewaySettings(store=postgres_url), Settings())
    await service.start()
    async with asyncio.timeout(30):
        while WORDS not in caplog.text:
            await asyncio.sleep(0.05)
    await service.close()
