"""`asides providers`: all of them, or one in full."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asides.cli.app import main
from asides.providers.find import find_provider, list_providers

KEY = "gsk_verysecretkey"


def test_every_provider_has_a_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    assert main(["providers"]) == 0
    out = capsys.readouterr().out
    head, *lines = out.splitlines()
    assert head.split() == ["PROVIDER", "KEY", "ADDRESS", "FACTS"]
    assert [line.split()[0] for line in lines] == [row.name for row in list_providers()]
    (groq,) = (line for line in lines if line.startswith("groq "))
    assert "GROQ_API_KEY (set)" in groq
    assert KEY not in out


def test_one_provider_is_shown_with_the_date_and_source_of_its_facts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["providers", "DeepSeek"]) == 0
    out = capsys.readouterr().out
    row = find_provider("deepseek")
    for fact in (row.name, row.base_url, row.key_env[0], row.docs, row.models[0].models, row.models[0].source):
        assert fact in out
    assert row.replay[0].source in out
    assert row.replay[0].since in out
    assert main(["providers", "deepsek"]) == 2
    assert "Did you mean deepseek?" in capsys.readouterr().err


def test_the_users_own_providers_are_shown_without_secrets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "asides.toml"
    settings.write_text(
        "[providers.mine]\n"
        'base_url = "https://me:hunter2@example.com/v1"\n'
        'headers = { X-Token = "hunter2" }\n'
        'query = { token = "hunter2", version = "$VERSION" }\n'
    )
    monkeypatch.setenv("ASIDES_CONFIG", str(settings))
    for arguments in (["providers"], ["providers", "mine"], ["providers", "mine", "--json"], ["config"]):
        assert main(arguments) == 0
        out = capsys.readouterr().out
        assert "mine" in out
        assert "hunter2" not in out
    main(["providers", "mine", "--json"])
    fields = json.loads(capsys.readouterr().out)
    assert fields["headers"] == [["X-Token", "***"]]
    assert fields["query"] == [["token", "***"], ["version", "$VERSION"]]
