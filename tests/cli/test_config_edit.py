"""`asides config get`, `set` and `unset`: one setting, checked before it is written to the user's own file."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from asides.settings import SETTINGS, load_settings
from tests.cli.children import environment, here

Captured = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: Patch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    return tmp_path / "config" / "asides" / "asides.toml"


EXAMPLES = {
    "model": ("groq:m", "groq:m"),
    "thinking": ("high", None),
    "max_tokens": ("100", 100),
    "timeouts.connect": ("3", 3.0),
    "timeouts.first_byte": ("3.5", 3.5),
    "timeouts.idle": ("20", 20.0),
    "timeouts.total": ("3600", 3600.0),
    "retries": ("0", 0),
    "on_conflict": ("adjust", "adjust"),
    "keep_raw": ("off", False),
    "keep_thinking": ("true", True),
    "show_reasoning_thinking": ("yes", True),
    "reasoning_allowed_models": ("a*, b", ("a*", "b")),
    "thinking_field": ("thoughts", "thoughts"),
    "heuristics": ("no", False),
    "openai_responses_enabled": ("on", True),
    "tools_max_count": ("3", 3),
    "tools_max_json_kb": ("3", 3),
    "visibility.user": ("summary", ("summary",)),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_setting_can_be_set_and_unset(name: str, path: Path, capsys: Captured) -> None:
    text, value = EXAMPLES[name]
    done = here(capsys, "config", "set", name, text)
    assert (done.code, done.out) == (0, "")
    settings = load_settings()
    assert settings.origin(name) == f"file {path}"
    if value is not None:
        assert {entry[0]: entry[1] for entry in settings.entries()}[name] == value
    assert here(capsys, "config", "unset", name).code == 0
    assert load_settings().origin(name) == "default"


def test_the_examples_miss_no_setting() -> None:
    assert set(EXAMPLES) <= set(SETTINGS)


def test_comments_and_all_else_stay(path: Path, capsys: Captured) -> None:
    path.parent.mkdir(parents=True)
    text = '# mine\nmax-tokens = 5 # few\n\n[timeouts]\nidle = 1\n\n[providers.x]\nbase_url = "https://x.example"\n'
    path.write_text(text)
    assert here(capsys, "config", "set", "max_tokens", "9").code == 0
    assert here(capsys, "config", "set", "timeouts.idle", "2").code == 0
    assert path.read_text() == text.replace("= 5", "= 9").replace("idle = 1", "idle = 2")
    assert here(capsys, "config", "unset", "max_tokens").code == 0
    assert path.read_text().startswith("# mine\n\n[timeouts]")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("retries", "-1", "retries is not valid"),
        ("retries", "many", "Expected `int`, got `str`"),
        ("retries", "1.5", "Expected `int`, got `float`"),
        ("keep_raw", "maybe", "keep_raw is not valid: Expected `bool`"),
        ("thinking", "hgih", "thinking"),
        ("on_conflict", "panic", "on_conflict is not valid"),
        ("modle", "x", "did you mean model?"),
        ("timeouts.idel", "3", "did you mean timeouts.idle?"),
        ("timeouts", "3", "timeouts"),
        ("model", "grok4:x", "unknown provider"),
        ("model", "gpt-4o", "without a provider"),
        ("api_key", "sk-0123456789abcdef0123", "unknown setting"),
        ("providers.x.api_key", "sk-0123456789abcdef0123", "asides keys set x"),
        ("a b", "x", "is not a valid name of a setting"),
    ],
)
def test_a_wrong_value_is_refused_and_nothing_is_written(
    name: str, value: str, says: str, path: Path, capsys: Captured
) -> None:
    done = here(capsys, "config", "set", name, value)
    assert done.code == 2
    assert says in done.err
    assert "/tmp/asides-" not in done.err
    assert "0123456789abcdef" not in done.err
    assert not path.exists()


def test_a_value_cannot_bring_others_along(path: Path, capsys: Captured) -> None:
    evil = 'x"\n[providers.openai]\nbase_url = "https://evil.example"'
    here(capsys, "config", "set", "thinking_field", evil)
    assert load_settings().providers == ()
    assert load_settings().thinking_field == evil
    assert here(capsys, "config", "set", "retries", "3 # and more").code == 2
    assert here(capsys, "config", "set", "retries", "3]\nx = [1").code == 2


def test_get_prints_the_value_that_holds(capsys: Captured, monkeypatch: Patch) -> None:
    here(capsys, "config", "set", "model", "groq:m")
    here(capsys, "config", "set", "retries", "5")
    monkeypatch.setenv("ASIDES_RETRIES", "7")
    assert here(capsys, "config", "get", "model").out == "groq:m\n"
    assert here(capsys, "config", "get", "retries").out == "7\n"
    assert here(capsys, "config", "get", "max-tokens").out == "\n"
    assert here(capsys, "config", "get", "timeouts.idle").out == "300.0\n"
    assert json.loads(here(capsys, "config", "get", "timeouts").out)["connect"] == 10.0
    fields = json.loads(here(capsys, "config", "get", "retries", "--json").out)
    assert fields == {"name": "retries", "value": 7, "origin": "environment ASIDES_RETRIES"}
    unknown = here(capsys, "config", "get", "modle")
    assert unknown.code == 2
    assert "did you mean model?" in unknown.err
    rows = here(capsys, "config", "get", "providers.x.headers")
    assert rows.code == 2
    assert "asides providers" in rows.err


@pytest.mark.parametrize("name", ["mcp", "mcp.gh", "mcp.gh.env.TOKEN", "providers", "providers.mine.headers.X-Token"])
def test_get_prints_no_table_that_may_hold_secrets(name: str, path: Path, capsys: Captured) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        '[mcp.gh]\ncommand = "gh"\nenv = { TOKEN = "zebra-1234" }\n[providers.mine]\n'
        'base_url = "https://x.example/v1"\nheaders = { X-Token = "zebra-1234" }\n'
    )
    shown = here(capsys, "config", "get", name)
    assert shown.code == 2
    assert "may hold secrets" in shown.err
    assert "zebra" not in shown.out + shown.err


def test_a_value_that_something_else_overrides_says_so(capsys: Captured, monkeypatch: Patch) -> None:
    monkeypatch.setenv("ASIDES_RETRIES", "7")
    assert "retries comes from environment ASIDES_RETRIES" in here(capsys, "config", "set", "retries", "5").err
    monkeypatch.delenv("ASIDES_RETRIES")
    Path("asides.toml").write_text("retries = 1\n")
    assert "retries comes from file asides.toml" in here(capsys, "config", "set", "retries", "6").err
    assert Path("asides.toml").read_text() == "retries = 1\n"


def test_a_file_that_is_named_is_the_one_that_is_written(path: Path, capsys: Captured, monkeypatch: Patch) -> None:
    named = Path("named.toml").resolve()
    named.write_text("retries = 1\n")
    named.chmod(0o644)
    monkeypatch.setenv("ASIDES_CONFIG", str(named))
    assert here(capsys, "config", "set", "retries", "3").code == 0
    assert named.read_text() == "retries = 3\n"
    assert stat.S_IMODE(named.stat().st_mode) == 0o644
    assert not path.exists()
    assert [entry.name for entry in named.parent.iterdir()] == ["named.toml"]


def test_a_broken_file_is_left_alone(path: Path, capsys: Captured) -> None:
    path.parent.mkdir(parents=True)
    for text in ("broken =\n", "modle = 'x'\n"):
        path.write_text(text)
        done = here(capsys, "config", "set", "retries", "3")
        assert done.code == 2
        assert path.read_text() == text
    assert here(capsys, "config", "unset", "modle").code == 0
    assert path.read_text() == ""


def test_what_is_not_set_cannot_be_unset(path: Path, capsys: Captured) -> None:
    done = here(capsys, "config", "unset", "retries")
    assert done.code == 2
    assert f"{path}: retries is not in the file" in done.err


@pytest.mark.parametrize(
    "words", [["set"], ["set", "retries"], ["set", "a", "b", "c"], ["get"], ["unset"], ["trust", "x"]]
)
def test_the_wrong_number_of_words_shows_the_usage(words: list[str], capsys: Captured) -> None:
    done = here(capsys, "config", *words)
    assert done.code == 2
    assert "config set NAME VALUE" in done.err


def test_many_at_once_lose_no_setting(path: Path) -> None:
    pairs = {"retries": "5", "max_tokens": "7", "tools_max_count": "3", "timeouts.idle": "4", "timeouts.total": "9"}
    children = [
        subprocess.Popen([sys.executable, "-m", "asides", "config", "set", name, value], env=environment())
        for name, value in pairs.items()
    ]
    assert [child.wait(60) for child in children] == [0] * len(children)
    settings = load_settings()
    assert {name: settings.origin(name) for name in pairs} == dict.fromkeys(pairs, f"file {path}")


def test_config_says_where_files_would_go(path: Path, tmp_path: Path, capsys: Captured, monkeypatch: Patch) -> None:
    monkeypatch.setenv("ASIDES_STATE", str(tmp_path / "state"))
    here(capsys, "config", "set", "retries", "3")
    paths = json.loads(here(capsys, "config", "--json").out)["paths"]
    assert paths == {
        "settings": {"path": str(path), "exists": True},
        "settings of this folder": {"path": str(Path.cwd() / "asides.toml"), "exists": False},
        "keys": {"path": str(path.with_name("keys.json")), "exists": False},
        "trusted files": {"path": str(path.with_name("trusted.json")), "exists": False},
        "conversations": {"path": str(tmp_path / "state" / "conversations.db"), "exists": False},
        "input history": {"path": str(tmp_path / "state" / "input-history.jsonl"), "exists": False},
    }
    lines = [line.split() for line in here(capsys, "config").out.splitlines()]
    assert ["settings", str(path)] in lines
    assert ["keys", str(path.with_name("keys.json")), "(none)"] in lines


def test_without_a_home_config_still_works(capsys: Captured, monkeypatch: Patch) -> None:
    for name in ("XDG_CONFIG_HOME", "HOME", "USERPROFILE", "XDG_STATE_HOME", "ASIDES_STATE"):
        monkeypatch.delenv(name, raising=False)
    assert here(capsys, "config").code == 0
    done = here(capsys, "config", "set", "retries", "3")
    assert done.code == 2
    assert "HOME" in done.err
