"""`asides config`: every value and its origin."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asides.cli.app import main

KEY = "gsk_verysecretkey"


def test_config_shows_each_value_and_its_origin_and_never_a_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "asides.toml"
    settings.write_text('model = "groq:m"\nretries = 5\n')
    monkeypatch.setenv("ASIDES_CONFIG", str(settings))
    monkeypatch.setenv("ASIDES_RETRIES", "7")
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    assert main(["config"]) == 0
    out = capsys.readouterr().out
    lines = {line.split()[0]: line.split(maxsplit=2)[1:] for line in out.splitlines() if line[:1].isalpha()}
    assert lines["model"] == ["groq:m", f"file {settings}"]
    assert lines["retries"] == ["7", "environment ASIDES_RETRIES"]
    assert lines["on_conflict"] == ["raise", "default"]
    assert "  groq  GROQ_API_KEY\n" in out
    assert KEY not in out
    assert main(["config", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields["settings"]["retries"] == {"value": 7, "origin": "environment ASIDES_RETRIES"}
    assert fields["keys"] == {"groq": "GROQ_API_KEY"}
    assert fields["files"] == [str(settings)]


def test_config_lists_the_names_of_the_users_tables_and_every_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "asides.toml"
    settings.write_text(
        '[aliases]\nfast = "groq:m"\n[templates.review]\nprompt = "{input}"\n[mcp.notes]\ncommand = "notes"\n'
        '[providers.mine]\nbase_url = "https://llm.example.com/v1"\n'
    )
    monkeypatch.setenv("ASIDES_CONFIG", str(settings))
    monkeypatch.setenv("ASIDES_STATE", str(tmp_path))
    assert main(["config"]) == 0
    out = capsys.readouterr().out
    for line in ("your providers: mine", "your aliases: fast", "your templates: review", "your mcp: notes"):
        assert f"{line}\n" in out
    assert str(tmp_path / "input-history.jsonl") in out
    assert main(["config", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert [fields[name] for name in ("providers", "aliases", "templates", "mcp")] == [
        *(["mine"], ["fast"], ["review"], ["notes"])
    ]


def test_a_broken_settings_file_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "asides.toml"
    settings.write_text("modle = 'x'\n")
    monkeypatch.setenv("ASIDES_CONFIG", str(settings))
    assert main(["config"]) == 2
    assert "did you mean model?" in capsys.readouterr().err


def test_passwords_of_servers_are_not_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ASIDES_STORE", "postgresql://me:canary@db.example/asides?password=canary")
    monkeypatch.setenv("ASIDES_GATEWAY_REDIS", "redis://:canary@cache.example")
    Path("asides.toml").write_text('store = "postgresql://you:canary@other.example/x"\n', encoding="utf-8")
    for arguments, shown in (
        ([], "postgresql://me:***@db.example/asides?password=***"),
        (["--json"], "redis://:***@cache.example"),
        (["get", "store"], "postgresql://me:***@db.example/asides?password=***"),
        (["get", "gateway.redis"], "redis://:***@cache.example"),
        (["get", "gateway"], "redis://:***@cache.example"),
        (["trust", "--yes"], "postgresql://you:***@other.example/x"),
    ):
        assert main(["config", *arguments]) == 0
        captured = capsys.readouterr()
        assert shown in captured.out + captured.err, arguments
        assert "canary" not in captured.out + captured.err
