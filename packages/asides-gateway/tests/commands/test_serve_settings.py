"""The settings of `asides serve`: from everywhere, checked, told of once, and the files to look at."""

from __future__ import annotations

import stat
from argparse import Namespace
from pathlib import Path

import pytest

from asides.cli.arguments import list_commands
from asides.cli.parse_arguments import parse_arguments
from asides.settings import GatewayTable
from asides.values.errors import ConfigError
from asides_gateway.commands.serve_settings import ServeSettings, collect_flags

KEY = "sk-gateway-0123456789"


def _parse(*words: str) -> Namespace:
    return parse_arguments("serve", list_commands()["serve"], words)


def test_arguments_that_are_not_given_say_nothing() -> None:
    assert collect_flags(_parse()) == {}
    every = """--host ::1 --port 1 --workers 2 --key-file k --folder f --state off --no-page --thinking-field reasoning
    --max-body 3 --ping 4 --drain 5 --log json""".split()
    flags = collect_flags(_parse(*every))
    assert flags == {
        "host": "::1",
        "port": 1,
        "workers": 2,
        "key_file": "k",
        "folder": "f",
        "state": "off",
        "page": False,
        "thinking_field": "reasoning",
        "max_body_mb": 3.0,
        "ping_seconds": 4.0,
        "drain_seconds": 5.0,
        "log": "json",
    }
    assert set(flags) <= set(GatewayTable.__struct_fields__)


def test_settings_come_from_arguments_the_environment_and_files(tmp_path: Path) -> None:
    file = tmp_path / "asides.toml"
    file.write_text('[gateway]\nping_seconds = 3\ndrain_seconds = 4\nworkers = 5\n[aliases]\nfast = "openai:x"\n')
    environ = {
        "ASIDES_CONFIG": str(file),
        "ASIDES_STATE": str(tmp_path / "deep" / "state"),
        "ASIDES_GATEWAY_DRAIN_SECONDS": "6",
        "ASIDES_GATEWAY_KEY": KEY,
    }
    source = ServeSettings({"workers": 7}, environ, None)
    loaded = source.load()
    gateway = loaded.gateway
    assert (gateway.ping_seconds, gateway.drain_seconds, gateway.workers, gateway.keys) == (3, 6, 7, (KEY,))
    assert gateway.folder == tmp_path / "deep" / "state"
    assert stat.S_IMODE((tmp_path / "deep" / "state").stat().st_mode) == 0o700
    assert loaded.calls.aliases == {"fast": "openai:x"}
    assert list(source.list_files()) == [file]


def test_all_files_that_settings_come_from_are_looked_at(tmp_path: Path) -> None:
    keys = tmp_path / "keys.txt"
    keys.write_text(KEY)
    keys.chmod(0o600)
    environ = {"HOME": str(tmp_path), "ASIDES_GATEWAY_KEY_FILE": str(keys)}
    source = ServeSettings({}, environ, None)
    source.load()
    own = tmp_path / ".config" / "asides"
    assert list(source.list_files()) == [
        Path("asides.toml"),
        own / "asides.toml",
        own / "trusted.json",
        keys,
        own / "keys.json",
    ]


def test_what_is_ignored_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("asides.toml").write_text('[gateway]\nhost = "0.0.0.0"\n')
    told: list[str] = []
    source = ServeSettings({}, {"HOME": str(tmp_path)}, told.append)
    assert source.load().gateway.host == "127.0.0.1"
    source.load()
    assert len(told) == 1
    assert "gateway.host" in told[0]
    Path("asides.toml").write_text("[gateway]\nport = 1\n")
    source.load()
    assert len(told) == 2


def test_a_folder_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="Name another one with --folder"):
        ServeSettings({"folder": str(tmp_path / "file" / "x")}, {}, None).load()
    with pytest.raises(ConfigError, match="ASIDES_STATE"):
        ServeSettings({}, {}, None).load()


def test_an_unsafe_gateway_is_refused_here_too(tmp_path: Path) -> None:
    environ = {"ASIDES_STATE": str(tmp_path)}
    with pytest.raises(ConfigError, match="needs a key"):
        ServeSettings({"host": "0.0.0.0"}, environ, None).load()
    with pytest.raises(ConfigError, match="easy to guess"):
        ServeSettings({}, {**environ, "ASIDES_GATEWAY_KEY": "hello"}, None).load()
