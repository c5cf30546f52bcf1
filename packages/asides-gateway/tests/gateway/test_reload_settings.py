"""Settings that change while a gateway runs: used by the requests that begin then, or told of once."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from asides.settings import load_settings
from asides.values.errors import ConfigError
from asides_gateway import reload_settings
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.reload_settings import LoadedSettings, Reloader
from asides_gateway.service import Service

KEY = "sk-gateway-0123456789"


class _Source:
    """One settings file, and nothing else."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.loads = 0

    def load(self) -> LoadedSettings:
        self.loads += 1
        calls = load_settings({}, files=[self.path] if self.path.exists() else [])
        if calls.gateway.host != "127.0.0.1":
            raise ConfigError("gateway.host is not allowed")
        return LoadedSettings(GatewaySettings(port=calls.gateway.port, max_requests=calls.gateway.max_requests), calls)

    def list_files(self) -> Sequence[Path]:
        return [self.path]


async def _wait_for(condition: Callable[[], object], what: str) -> float:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < 40, what
        await asyncio.sleep(0.01)
    return time.monotonic() - began


def _write_in_place(path: Path, text: str) -> None:
    path.write_text(text)


def _replace(path: Path, text: str) -> None:
    """As `asides config set` and most editors write."""
    new = path.with_name("new")
    new.write_text(text)
    new.replace(path)


def _write_slowly(path: Path, text: str) -> None:
    """As an editor writes that truncates first, over a slow line. Half of it is not what was meant."""
    with path.open("w") as file:
        for start in range(0, len(text), 5):
            file.write(text[start : start + 5])
            file.flush()
            time.sleep(0.03)


def _remove_first(path: Path, text: str) -> None:
    path.unlink()
    time.sleep(0.03)
    path.write_text(text)


@pytest.mark.parametrize("write", [_write_in_place, _replace, _write_slowly, _remove_first])
async def test_a_changed_file_counts_for_the_next_requests(
    tmp_path: Path, write: Callable[[Path, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload_settings, "_SECONDS", 0.05)
    if write in (_write_slowly, _remove_first):
        monkeypatch.setattr(reload_settings, "_SETTLE_SECONDS", 0.8)  # A busy machine writes slowly too.
    path = tmp_path / "asides.toml"
    path.write_text('[aliases]\nfast = "openai:one"\n')
    source = _Source(path)
    counted: list[bool] = []
    service = Service(GatewaySettings(), source.load().calls)
    reloader = Reloader(service, source, count=counted.append)
    task = asyncio.create_task(reloader.run())
    try:
        old = service.relay
        await asyncio.to_thread(write, path, '[aliases]\nfast = "openai:two"\nmore = "openai:three"\n')
        await _wait_for(lambda: "more" in service.builder.settings.aliases, "it was never reloaded")
        assert service.builder.settings.aliases == {"fast": "openai:two", "more": "openai:three"}
        assert service.relay is not old
        assert counted == [True], "half a file was read, or the whole of it twice"
    finally:
        task.cancel()
        await service.close()


async def test_a_change_of_the_same_length_within_the_same_second_counts(tmp_path: Path) -> None:
    path = tmp_path / "asides.toml"
    path.write_text('[aliases]\nfast = "openai:one"\n')
    source = _Source(path)
    status = path.stat()
    service = Service(GatewaySettings(), source.load().calls)
    task = asyncio.create_task(Reloader(service, source).run())
    try:
        path.write_text('[aliases]\nfast = "openai:two"\n')
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        await _wait_for(lambda: service.builder.settings.aliases["fast"] == "openai:two", "it was never reloaded")
    finally:
        task.cancel()
        await service.close()


async def test_a_broken_file_changes_nothing_and_is_told_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload_settings, "_SECONDS", 0.05)
    path = tmp_path / "asides.toml"
    path.write_text("[gateway]\nmax_requests = 5\n")
    source = _Source(path)
    counted: list[bool] = []
    service = Service(source.load().gateway, source.load().calls)
    task = asyncio.create_task(Reloader(service, source, count=counted.append).run())
    try:
        with caplog.at_level(logging.INFO, "asides.gateway"):
            for text, words in (
                ("[gateway\nmax_requests = 6\n", "line 1"),
                ("[gateway]\nmax_requests = 'six'\n", "gateway.max_requests"),
                ('[gateway]\nhost = "0.0.0.0"\n', "not allowed"),
            ):
                caplog.clear()
                before = len(counted)
                path.write_text(text)
                await _wait_for(lambda before=before: len(counted) > before, "nobody noticed")  # type: ignore[misc]
                await asyncio.sleep(0.3)
                told = [record.getMessage() for record in caplog.records]
                assert len(told) == 1, "it is told again and again"
                assert words in told[0]
                assert "the old ones stay" in told[0]
                assert service.settings.max_requests == 5
            path.write_text("[gateway]\nmax_requests = 6\nport = 9\n")
            await _wait_for(lambda: service.settings.max_requests == 6, "it was never reloaded")
        assert counted == [False, False, False, True]
        assert service.settings.port == GatewaySettings().port, "a port does not change"
        assert "these settings need a restart: gateway.port" in caplog.text
    finally:
        task.cancel()
        await service.close()


async def test_asking_reloads_at_once_and_keys_change_too(tmp_path: Path) -> None:
    path = tmp_path / "asides.toml"
    path.write_text("")
    source = _Source(path)
    service = Service(GatewaySettings(), source.load().calls)
    reloader = Reloader(service, source)
    task = asyncio.create_task(reloader.run())
    try:
        assert not service.authenticator.needs_key
        source.load = lambda: LoadedSettings(GatewaySettings(keys=(KEY,)), load_settings({}, files=[]))  # type: ignore[method-assign]
        reloader.ask()
        await _wait_for(lambda: service.authenticator.needs_key, "it was never reloaded")

        def fail() -> LoadedSettings:
            raise RuntimeError(f"a bug that quotes {KEY}")

        source.load = fail  # type: ignore[method-assign]
        assert reloader.reload() is False
        assert service.authenticator.needs_key
    finally:
        task.cancel()
        await service.close()
