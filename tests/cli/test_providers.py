"""`asides providers`, `models`, `config`, `explain` and `stage`: what is known and what would be sent."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from asides.cli.app import main
from asides.providers.find import find_provider, list_providers
from tests.cli.children import here, read_some, started

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


def test_one_provider_is_told_with_the_date_and_source_of_its_facts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["providers", "DeepSeek"]) == 0
    out = capsys.readouterr().out
    row = find_provider("deepseek")
    for fact in (row.name, row.base_url, row.key_env[0], row.docs, row.models[0].models, row.models[0].source):
        assert fact in out
    assert row.replay[0].source in out
    assert row.replay[0].since in out
    assert main(["providers", "deepsek"]) == 2
    assert "Did you mean deepseek?" in capsys.readouterr().err


def test_rows_of_the_user_are_told_without_what_may_be_secret(
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
    told = json.loads(capsys.readouterr().out)
    assert told["headers"] == [["X-Token", "***"]]
    assert told["query"] == [["token", "***"], ["version", "$VERSION"]]


def test_rules_for_models_and_what_is_known_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "-m", "deepseek"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("deepseek\n")
    assert "deepseek-reasoner*" in out
    assert main(["models", "-m", "deepseek:deepseek-reasoner", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["thinking"], told["can_stop"]) == ("always", False)
    assert main(["models", "-m", "groq:nobody-knows-it"]) == 0
    assert "efforts:       not known" in capsys.readouterr().out
    assert main(["models", "--json"]) == 0
    assert json.loads(capsys.readouterr().out).keys() == {row.name for row in list_providers()}


def test_config_tells_each_value_and_where_it_is_from_and_never_a_key(
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
    told = json.loads(capsys.readouterr().out)
    assert told["settings"]["retries"] == {"value": 7, "origin": "environment ASIDES_RETRIES"}
    assert told["keys"] == {"groq": "GROQ_API_KEY"}
    assert told["files"] == [str(settings)]


def test_a_broken_settings_file_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "asides.toml"
    settings.write_text("modle = 'x'\n")
    monkeypatch.setenv("ASIDES_CONFIG", str(settings))
    assert main(["config"]) == 2
    assert "did you mean model?" in capsys.readouterr().err


def test_explain_shows_the_exact_request_and_no_key(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["explain", "-m", "groq:qwen/qwen3-32b", "--thinking", "off", "--max-tokens", "9", "--no-stdin", "Why?"]
    assert main(arguments) == 0
    assert "No key was found; set GROQ_API_KEY." in capsys.readouterr().out
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "POST https://api.groq.com/openai/v1/chat/completions\n" in out
    assert "Authorization: Bearer ***\n" in out
    assert KEY not in out
    assert main([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["body"]["messages"] == [{"role": "user", "content": "Why?"}]
    assert told["body"]["stream"] is True
    assert told["headers"]["Authorization"] == "Bearer ***"
    assert main([*arguments, "--json", "--no-stream"]) == 0
    assert not json.loads(capsys.readouterr().out)["body"].get("stream")


def test_explain_raises_what_ask_would(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["explain", "-m", "deepseek:deepseek-reasoner", "--thinking", "off", "--no-stdin", "?"]
    assert main(arguments) == 2
    assert "--on-conflict adjust" in capsys.readouterr().err
    assert main([*arguments, "--on-conflict", "adjust"]) == 0
    assert "thinking_cannot_stop" in capsys.readouterr().out


def test_the_stage_prints_its_address_and_plays_until_ctrl_c(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.json"
    script.write_text('[{"type": "say", "thinking": "plan", "text": "42"}]')
    with started("stage", "--port", "0", "--script", str(script), "--key", "k") as child:
        url = read_some(child, b"\n").decode().strip()
        asking = ("ask", "-m", "openai-compatible:x", "--base-url", url, "--no-stdin", "-q")
        done = here(capsys, *asking, "--api-key", "k", "?")
        turned_away = here(capsys, *asking, "?")
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=10)
    assert done == (0, "42\n", "")
    assert turned_away.code == 3
    assert child.returncode == 0
    assert out == b""
    assert b"asides ask -m openai-compatible:stage" in err
    assert b"Traceback" not in err


def test_the_stage_says_why_it_cannot_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "script.json"
    script.write_text("[]")
    assert main(["stage", "--port", "0", "--script", str(script)]) == 2
    assert "has no scene" in capsys.readouterr().err
    assert main(["stage", "--host", "0.0.0.0", "--port", "0"]) == 2
    assert "use 127.0.0.1" in capsys.readouterr().err


def test_a_provider_or_model_may_be_named_without_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for arguments in (["models", "deepseek"], ["models", "-m", "deepseek"]):
        assert main(arguments) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    assert told[0].startswith("deepseek\n")


def test_advice_about_code_stays_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "-m", "made-up:x", "hi"]) == 2
    told = capsys.readouterr().err
    assert "Provider(name='made-up', base_url=…)" in told
    assert "with --base-url" in told
