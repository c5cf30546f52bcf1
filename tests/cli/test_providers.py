"""`asides providers`: all of them, or one in full."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asides.cli.app import main
from asides.providers.find import find_provider, list_providers
from tests.cli.children import show_at_terminal

KEY = "gsk_verysecretkey"


def test_every_provider_has_a_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    assert main(["providers"]) == 0
    out = capsys.readouterr().out
    head, *lines = out.splitlines()
    assert head.split() == ["PROVIDER", "KEY", "ADDRESS", "FACTS"]
    names = [line.split()[0] for line in lines]
    assert sorted(names) == sorted(row.name for row in list_providers())
    assert names[0] == "groq", "those with a key come first"
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


@pytest.mark.parametrize("columns", [40, 80, 100, 200])
def test_a_terminal_gets_groups_that_fit_it_with_the_found_keys_first(columns: int) -> None:
    shown = show_at_terminal("providers", env={"COLUMNS": str(columns), "GROQ_API_KEY": KEY, "OPENAI_API_KEY": ""})
    assert shown.code == 0
    lines = [line for line in shown.screen if not line.startswith("Keys:")]
    assert max(map(len, lines)) <= columns
    headings = [line for line in lines if line and not line.startswith((" ", "`"))]
    assert [heading[:13] for heading in headings] == ["key found", "no key needed", "no key found"]
    assert [line.split()[:2] for line in lines[1 : lines.index("no key needed")]] == [["groq", "GROQ_API_KEY"]]
    names = [line.split()[0] for line in lines if line.startswith("  ")]
    assert sorted(names) == sorted(row.name for row in list_providers())
    openai = next(line for line in lines if line.startswith("  openai "))
    address = {40: "", 80: "api.openai.com", 100: "api.openai.com", 200: "https://api.openai.com/v1"}[columns]
    assert openai.split()[1:] == [word for word in ("OPENAI_API_KEY", address) if word]


@pytest.mark.parametrize(
    "arguments", [("providers", "anthropic"), ("models", "anthropic"), ("models", "groq:qwen3-32b")]
)
def test_details_fit_the_terminal_and_lose_nothing(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    shown = show_at_terminal(*arguments, env={"COLUMNS": "80"})
    assert shown.code == 0
    assert max(map(len, shown.screen)) <= 80
    main(arguments)
    piped = capsys.readouterr().out
    first = [line.split()[0] for line in piped.splitlines() if line.strip()]
    text = "".join("".join(shown.screen).split())
    assert [word for word in first if word not in text] == []


def test_json_says_where_a_key_comes_from(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "GROQ_API_KEY"):
        monkeypatch.setenv(name, KEY)
    main(["providers", "--json"])
    found = {row["name"]: (row["key_set_by"], row["key_state"]) for row in json.loads(capsys.readouterr().out)}
    assert found["groq"] == ("GROQ_API_KEY", "found")
    assert found["bedrock"] == ("AWS_ACCESS_KEY_ID", "found")
    assert found["ollama"] == (None, "not needed")
    assert found["cohere"] == (None, "not found")
