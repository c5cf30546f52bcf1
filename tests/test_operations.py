"""The commands that the docs give to operators are carried out: backups and restores. The figures they name exist."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from asides.cli.arguments import list_commands
from asides.cli.parse_arguments import parse_arguments
from asides.settings import load_settings
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.maintenance.check_stores import check_stores
from asides_gateway.maintenance.export_lines import export_lines
from asides_gateway.maintenance.open_stores import open_stores
from asides_gateway.metrics import Metrics
from asides_gateway.service import Service
from tests.cli.children import environment
from tests.maintenance.filled_stores import fill_conversations, fill_gateway, fill_vault
from tests.servers import PostgresServer, find_postgres

_DOCS = Path(__file__).resolve().parent.parent / "docs"
_OPERATIONS = (_DOCS / "operations.md").read_text(encoding="utf-8")
_TEAM = (_DOCS / "team.md").read_text(encoding="utf-8")


def _find_blocks(page: str, *words: str) -> str:
    """The commands of the blocks that have one of these words, and need no container engine."""
    blocks = re.findall(r"^```sh\n(.+?)^```", page, re.MULTILINE | re.DOTALL)
    found = "".join(block for block in blocks if "docker" not in block and any(word in block for word in words))
    assert all(word in found for word in words)
    return found


def _run(commands: str, folder: Path, **variables: str) -> None:
    """Carry out the lines of a block in a shell that stops at the first that fails."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "asides").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m asides "$@"\n', encoding="utf-8")
    (programs / "asides").chmod(0o755)
    path = f"{programs}:{find_postgres()}:{os.environ['PATH']}"
    ended = subprocess.run(
        ["sh", "-e", "-c", commands],
        env=environment({"PATH": path, "HOME": str(folder), "ASIDES_RELAY_KEY": "00" * 32, **variables}),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def _export(place: str | Path) -> str:
    with open_stores(str(place)) as stores:
        return b"".join(line for line in export_lines(stores) if isinstance(line, bytes)).decode()


def test_a_backup_of_postgres_is_restored(tmp_path: Path, postgres_server: PostgresServer, postgres_url: str) -> None:
    names = fill_conversations(postgres_url, 3)
    fill_vault(postgres_url, 4)
    fill_gateway(postgres_url)
    _run(_find_blocks(_OPERATIONS, "pg_dump"), tmp_path, ASIDES_STORE=postgres_url)
    name = f"restored_{secrets.token_hex(6)}"
    restored = postgres_server.create_database(name)
    try:
        _run(_find_blocks(_OPERATIONS, "pg_restore"), tmp_path, ASIDES_STORE=restored)
        assert _export(restored) == _export(postgres_url)
        # What comes next does not meet the numbers of what was restored.
        more = fill_conversations(restored, 1, start=3)
        fill_vault(restored, 1, start=4)
        with open_stores(restored) as stores:
            checks = check_stores(stores)
        assert [problem for check in checks for problem in check.problems] == []
        counts = {table: count for check in checks for table, count in check.counts.items()}
        assert (counts["conversations"], counts["vault_records"], counts["gateway_keys"]) == (4, 5, 1)
        assert all(name in _export(restored) for name in (*names, *more))
    finally:
        postgres_server.drop_database(name)


def test_a_backup_of_sqlite_is_whole(tmp_path: Path) -> None:
    state = tmp_path / ".local" / "state" / "asides"
    state.mkdir(parents=True)
    fill_conversations(state, 3)
    fill_vault(state, 4)
    fill_gateway(state)
    (state / "vault.db.key").write_text("00" * 32)
    (state / "vault.db.key").chmod(0o600)
    commands = _find_blocks(_OPERATIONS, "vault.db.key")
    for _ in range(2):
        _run(commands, tmp_path)
    assert _export(state) == _export(tmp_path / "backup" / "asides")
    with open_stores(str(tmp_path / "backup" / "asides")) as stores:
        checks = {check.area: check for check in check_stores(stores)}
    assert [problem for check in checks.values() for problem in check.problems] == []
    assert checks["vault"].counts["records"] == 4
    assert (tmp_path / "backup" / "asides" / "vault.db.key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("page", [_OPERATIONS, _TEAM], ids=["operations", "team"])
def test_every_command_of_ours_parses(page: str) -> None:
    lines = [
        line for block in re.findall(r"^```sh\n(.+?)^```", page, re.MULTILINE | re.DOTALL) for line in block.split("\n")
    ]
    commands = [line.partition("#")[0].replace("'", "").split() for line in lines if line.startswith("asides ")]
    assert commands
    for words in commands:
        parse_arguments(words[1], list_commands()[words[1]], words[2:])


def test_the_figures_that_the_docs_name_exist() -> None:
    named = set(re.findall(r"`(asides_\w+)`", _TEAM + _OPERATIONS))
    assert named

    async def write() -> str:
        service = Service(GatewaySettings(port=0), load_settings(environ={}, files=[]))
        try:
            return Metrics(service).write().decode()
        finally:
            await service.close()

    figures = asyncio.run(write())
    known = set(re.findall(r"^# TYPE (\w+)", figures, re.MULTILINE))
    assert {name for name in named if name not in known} == set()


def test_the_scrape_settings_are_yaml() -> None:
    (block,) = re.findall(r"^```yaml\n(.+?)^```", _TEAM, re.MULTILINE | re.DOTALL)
    (job,) = yaml.safe_load(block)["scrape_configs"]
    assert job["metrics_path"] == "/metrics"
    assert all(target.endswith(":4242") for target in job["static_configs"][0]["targets"])
