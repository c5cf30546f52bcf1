"""What a gateway knows before it starts: of [gateway], checked, and what of it can change later."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from asides.settings import GatewayTable, load_settings
from asides.values.errors import ConfigError
from asides_gateway.gateway_settings import (
    GatewaySettings,
    build_settings,
    check_settings,
    is_loopback,
    merge_changes,
)

KEY = "sk-gateway-0123456789"


def test_the_defaults_of_the_table_are_those_of_a_gateway() -> None:
    assert build_settings(GatewayTable(), (), None) == GatewaySettings()


def test_every_setting_of_the_table_reaches_the_gateway(tmp_path: Path) -> None:
    """A field that someone adds to the table and forgets here has no effect, and nobody would see it."""
    changed = {
        "host": "::1",
        "port": 1,
        "workers": 3,
        "state": "off",
        "page": False,
        "thinking_field": "reasoning",
        "allowed_hosts": ("a",),
        "allowed_origins": ("https://b",),
        "shown_models": ("c:*",),
        "open_metrics": True,
        "max_body_mb": 1.5,
        "max_requests": 5,
        "ping_seconds": 2.0,
        "drain_seconds": 3.0,
        "telemetry": False,
        "telemetry_content": True,
        "trace_hosts": ("*.internal",),
        "log": "json",
        "redis": "redis://127.0.0.1",
        "key_grace_seconds": 5.0,
        "summary_days": 3,
    }
    elsewhere = {"key_file", "key_env", "folder"}
    assert {*changed, *elsewhere} == set(GatewayTable.__struct_fields__)
    default = GatewaySettings()
    for name, value in changed.items():
        table = msgspec.structs.replace(GatewayTable(), **{name: value})
        assert build_settings(table, (), None) != default, name
    assert build_settings(GatewayTable(max_body_mb=1.5), (), None).max_body == 3 * 512 * 1024
    assert build_settings(GatewayTable(), (KEY,), tmp_path).folder == tmp_path


def test_arguments_win_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "asides.toml"
    file.write_text('[gateway]\nport = 1\nhost = "::1"\nworkers = 2\nallowed-hosts = ["a"]\n')
    environ = {"ASIDES_GATEWAY_PORT": "2", "ASIDES_GATEWAY_WORKERS": "3", "ASIDES_GATEWAY_ALLOWED_HOSTS": "b, c"}
    settings = load_settings(environ, files=[file], gateway={"workers": 4})
    table = settings.gateway
    assert (table.host, table.port, table.workers, table.allowed_hosts) == ("::1", 2, 4, ("b", "c"))
    assert settings.origin("gateway.host") == f"file {file}"
    assert settings.origin("gateway.port") == "environment ASIDES_GATEWAY_PORT"
    assert settings.origin("gateway.workers") == "argument"
    assert settings.origin("gateway.log") == "default"
    assert load_settings({"ASIDES_GATEWAY_KEY": KEY}, files=[]).notices == ()


def test_a_file_of_the_current_folder_says_nothing_about_the_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("asides.toml").write_text(
        'thinking = "low"\n[gateway]\nhost = "0.0.0.0"\nopen_metrics = true\nallowed_origins = ["*"]\n'
        '[aliases]\nfast = "evil:x"\n[routes.gpt-5]\ntargets = ["evil:x"]\n'
        '[providers.evil]\nbase_url = "http://evil.example/v1"\n'
    )
    settings = load_settings({})
    assert settings.gateway == GatewayTable()
    assert (settings.routes, settings.aliases, settings.providers) == ({}, {}, ())
    assert settings.thinking.effort == "low", "the file was read"
    ignored = {entry.name for entry in settings.ignored}
    assert ignored >= {"gateway.host", "gateway.open_metrics", "gateway.allowed_origins", "routes.gpt-5"}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "gateway.example.org", "2001:db8::1"])
def test_an_address_that_others_reach_needs_a_key(host: str) -> None:
    with pytest.raises(ConfigError, match="ASIDES_GATEWAY_KEY") as caught:
        check_settings(GatewaySettings(host=host))
    assert re.search(r"\. [A-Z]", str(caught.value))
    check_settings(GatewaySettings(host=host, keys=(KEY,)))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "LOCALHOST", "::1", "[::1]"])
def test_this_machine_needs_none(host: str) -> None:
    assert is_loopback(host)
    check_settings(GatewaySettings(host=host))


@pytest.mark.parametrize("host", ["", " ", "localhost:8000", "http://127.0.0.1", "127.0.0.1 ", "a b"])
def test_what_is_no_address_is_refused(host: str) -> None:
    with pytest.raises(ConfigError, match="is not an address"):
        check_settings(GatewaySettings(host=host, keys=(KEY,)))


def test_several_processes_have_no_memory_in_common() -> None:
    with pytest.raises(ConfigError, match="several answer"):
        check_settings(GatewaySettings(state_mode="memory", workers=2))
    check_settings(GatewaySettings(state_mode="carry-only", workers=2))


def test_a_running_gateway_keeps_what_it_cannot_change() -> None:
    running = GatewaySettings(port=1, log="json")
    loaded = GatewaySettings(port=2, keys=(KEY,), ping_seconds=3.0, max_requests=7)
    merged, fixed = merge_changes(running, loaded)
    assert fixed == ("port", "log")
    assert merged == GatewaySettings(port=1, log="json", keys=(KEY,), ping_seconds=3.0, max_requests=7)
    _, fixed = merge_changes(running, GatewaySettings(port=1, log="json", max_body=5, state_mode="off"))
    assert fixed == ("state", "max_body_mb"), "as they are called in [gateway]"
    assert set(fixed) <= set(GatewayTable.__struct_fields__)


def test_the_keys_are_in_no_repr() -> None:
    assert KEY not in repr(GatewaySettings(keys=(KEY,)))


def test_a_redis_url_that_cannot_be_one_is_refused_at_the_start_without_showing_it() -> None:
    check_settings(GatewaySettings(redis="rediss://user:secret@redis.example:6380/1"))
    with pytest.raises(ConfigError, match="rediss://user:password@host") as caught:
        check_settings(GatewaySettings(redis="https://user:secret@redis.example"))
    assert "secret" not in str(caught.value)
