"""The clients that can be connected: every one has an address, a key and a model where it looks for them."""

from __future__ import annotations

import json
import runpy
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from asides.cli.connect_clients import CLIENTS, DIALECTS, Access, FromVariable, Setup
from asides.cli.connect_files import format_file
from asides.cli.edit_env import parse_env
from asides.dialects import DIALECTS as WIRE_DIALECTS
from asides.values.errors import ConfigError

URL = "http://127.0.0.1:4242"
MODEL = "deepseek:deepseek-v4-pro"
SMALL = "groq:small"
SECRET = "sk-asides-very-secret"
HOME = Path("/home/ada")
ACCESS = Access(URL, MODEL, SMALL)
SCRIPT: dict[str, Any] = runpy.run_path(str(Path(__file__).resolve().parents[2] / "scripts" / "clients.py"))


def build(name: str, access: Access = ACCESS, environ: Mapping[str, str] | None = None) -> Setup:
    return CLIENTS[name].build(access, HOME, environ or {})


def write(setup: Setup) -> str:
    return "\n".join([*map(str, setup.variables.values()), *map(format_file, setup.files)])


@pytest.mark.parametrize("name", CLIENTS)
def test_every_client_learns_the_address(name: str) -> None:
    assert URL in write(build(name))
    assert CLIENTS[name].dialect in WIRE_DIALECTS


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "opencode", "qwen"])
def test_the_command_lines_learn_the_model_and_are_checked_in_the_installed_version(name: str) -> None:
    assert MODEL in write(build(name))
    client = SCRIPT["CLIENTS"][name]
    assert CLIENTS[name].checked == f"{client.package} {client.version}"


@pytest.mark.parametrize("name", CLIENTS)
def test_a_key_in_a_variable_is_written_nowhere(name: str) -> None:
    setup = build(name, ACCESS._replace(key=FromVariable("MY_KEY")), environ={"MY_KEY": SECRET})
    assert SECRET not in write(setup)
    assert "MY_KEY" in write(setup)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_key_that_was_given_is_used_and_a_gateway_without_keys_gets_a_placeholder(name: str) -> None:
    assert SECRET in write(build(name, ACCESS._replace(key=SECRET)))
    assert SECRET not in write(build(name))


def test_side_requests_of_claude_code_have_the_small_model() -> None:
    [file] = build("claude").files
    variables = json.loads(format_file(file))["env"]
    assert file.path == HOME / ".claude" / "settings.json"
    assert variables["ANTHROPIC_DEFAULT_HAIKU_MODEL"] == SMALL
    assert {variables[f"ANTHROPIC_DEFAULT_{name}_MODEL"] for name in ("OPUS", "SONNET", "FABLE")} == {MODEL}


def test_claude_code_fetches_a_key_with_a_command() -> None:
    [file] = build("claude", ACCESS._replace(key=FromVariable("MY_KEY"))).files
    document = json.loads(format_file(file))
    assert document["apiKeyHelper"] == "printenv MY_KEY"
    assert "ANTHROPIC_AUTH_TOKEN" not in document["env"]


def test_codex_asks_for_responses() -> None:
    [file] = build("codex", ACCESS._replace(key=FromVariable("MY_KEY"))).files
    assert tomllib.loads(format_file(file)) == {
        "model": MODEL,
        "model_provider": "asides",
        "model_reasoning_effort": "medium",
        "check_for_update_on_startup": False,
        "analytics": {"enabled": False},
        "model_providers": {
            "asides": {"name": "asides", "base_url": f"{URL}/v1", "wire_api": "responses", "env_key": "MY_KEY"}
        },
    }


def test_gemini_cli_has_a_model_for_every_side_request() -> None:
    settings, variables = build("gemini").files
    presets = json.loads(format_file(settings))["modelConfigs"]["customAliases"]
    assert {name: preset["modelConfig"]["model"] for name, preset in presets.items()} == {
        **dict.fromkeys(presets, SMALL),
        MODEL: MODEL,
    }
    assert parse_env(format_file(variables)) == {"GOOGLE_GEMINI_BASE_URL": URL, "GEMINI_API_KEY": "asides"}


@pytest.mark.parametrize(
    ("dialect", "package", "base"),
    [
        ("chat", "@ai-sdk/openai-compatible", "/v1"),
        ("responses", "@ai-sdk/openai", "/v1"),
        ("anthropic", "@ai-sdk/anthropic", "/v1"),
        ("gemini", "@ai-sdk/google", "/v1beta"),
    ],
)
def test_opencode_speaks_the_dialect_that_was_asked_for(dialect: str, package: str, base: str) -> None:
    assert dialect in DIALECTS
    [file] = build("opencode", ACCESS._replace(dialect=dialect)).files
    document = json.loads(format_file(file))
    row = document["provider"]["asides"]
    assert (row["npm"], row["options"]["baseURL"]) == (package, f"{URL}{base}")
    assert sorted(row["models"]) == sorted([MODEL, SMALL])
    assert (document["model"], document["small_model"]) == (f"asides/{MODEL}", f"asides/{SMALL}")


def test_files_are_where_the_variables_of_a_client_say() -> None:
    moved = {
        "claude": ("CLAUDE_CONFIG_DIR", "settings.json"),
        "codex": ("CODEX_HOME", "config.toml"),
        "gemini": ("GEMINI_CLI_HOME", ".gemini/settings.json"),
        "opencode": ("XDG_CONFIG_HOME", "opencode/opencode.json"),
    }
    for name, (variable, place) in moved.items():
        assert build(name, environ={variable: "/elsewhere"}).files[0].path == Path("/elsewhere") / place


def test_an_opencode_file_with_comments_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "opencode"
    folder.mkdir()
    (folder / "opencode.jsonc").write_text("{}")
    assert build("opencode", environ={"XDG_CONFIG_HOME": str(tmp_path)}).files[0].path == folder / "opencode.jsonc"


@pytest.mark.parametrize("name", ["opencode", "qwen"])
def test_a_client_without_models_of_its_own_needs_one(name: str) -> None:
    with pytest.raises(ConfigError, match=r"needs the name of a model\. Add --model"):
        build(name, ACCESS._replace(model=None, small_model=None))


@pytest.mark.parametrize("name", sorted(CLIENTS.keys() - {"opencode", "qwen"}))
def test_the_others_choose_for_themselves(name: str) -> None:
    assert MODEL not in write(build(name, ACCESS._replace(model=None, small_model=None)))


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("http://127.0.0.1:4242", "http://host.docker.internal:4242/v1"),
        ("http://localhost:80", "http://host.docker.internal:80/v1"),
        ("https://gateway.example.org", "https://gateway.example.org/v1"),
    ],
)
def test_open_webui_learns_the_address_that_a_container_sees(url: str, seen: str) -> None:
    assert any(
        f"In a container, {seen} is the URL" in note for note in build("openwebui", ACCESS._replace(url=url)).notes
    )
