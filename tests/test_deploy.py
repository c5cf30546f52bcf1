"""The files of deploy/ say what is true: their commands parse, their settings exist, their ports and times agree, and
nginx takes its file. Nothing here starts a container.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from asides.cli.arguments import list_commands
from asides.cli.exit_codes import Exit
from asides.cli.parse_arguments import parse_arguments
from asides.gateway_keys import check_keys
from asides.relay.state.relay_keys import RelayKeys
from asides.settings import Settings, load_settings
from asides.values.errors import ConfigError
from asides_gateway.gateway_settings import DEFAULT_PORT, GatewaySettings
from asides_gateway.health import HEALTH_PATHS

_ROOT = Path(__file__).resolve().parent.parent
_DEPLOY = _ROOT / "deploy"
_DOCKERFILE = (_DEPLOY / "Dockerfile").read_text(encoding="utf-8")
_COMPOSE: dict[str, Any] = yaml.safe_load((_DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
_NGINX = (_DEPLOY / "nginx.conf").read_text(encoding="utf-8")
_OBJECTS: dict[str, Any] = {
    document["kind"]: document
    for document in yaml.safe_load_all((_DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8"))
}
_POD: dict[str, Any] = _OBJECTS["Deployment"]["spec"]["template"]["spec"]
_CONTAINER: dict[str, Any] = _POD["containers"][0]
_GATEWAYS = [service for name, service in _COMPOSE["services"].items() if name.startswith("gateway-")]


def _instructions(name: str) -> list[str]:
    """The arguments of an instruction of the Dockerfile, in their order."""
    joined = re.sub(r"\\\n\s*", " ", _DOCKERFILE)
    return re.findall(rf"^{name} (.+)$", joined, re.MULTILINE)


def _image_variables() -> dict[str, str]:
    return dict(word.split("=", 1) for line in _instructions("ENV") for word in shlex.split(line))


def _load(environ: Mapping[str, str], table: str) -> Settings:
    """The settings of a process in a container. A name that nobody knows is a notice."""
    path = {"ASIDES_CONFIG": table}
    settings = load_settings({**environ, **path}, files=[Path(table)])
    assert [notice.detail for notice in settings.notices] == []
    return settings


# --- commands ---------------------------------------------------------------------------------------------------------


def _commands() -> Iterator[list[str]]:
    yield json.loads(_instructions("CMD")[-1].removeprefix("CMD "))
    for name, service in _COMPOSE["services"].items():
        if name.startswith("gateway-") or name == "migrate":
            yield service["command"]
    yield _CONTAINER["args"]
    yield _OBJECTS["Job"]["spec"]["template"]["spec"]["containers"][0]["args"]


@pytest.mark.parametrize("words", list(_commands()), ids=" ".join)
def test_commands_exist_and_parse(words: list[str]) -> None:
    parse_arguments(words[0], list_commands()[words[0]], words[1:])


def test_the_same_step_migrates_everywhere() -> None:
    assert [words for words in _commands() if words[0] == "store"] == [["store", "migrate"]] * 2
    assert json.loads(_instructions("ENTRYPOINT")[0]) == ["asides"]


# --- settings ---------------------------------------------------------------------------------------------------------


def test_variables_and_tables_are_settings() -> None:
    image = _image_variables()
    for service in _GATEWAYS:
        settings = _load({**image, **service["environment"]}, str(_DEPLOY / "gateway.toml"))
        assert settings.gateway.port == DEFAULT_PORT
        assert settings.store == service["environment"]["ASIDES_STORE"]
        assert settings.gateway.redis == service["environment"]["ASIDES_GATEWAY_REDIS"]
        assert list(settings.routes) == ["team"]


def test_variables_and_tables_of_kubernetes_are_settings(tmp_path: Path) -> None:
    table = tmp_path / "asides.toml"
    table.write_text(_OBJECTS["ConfigMap"]["data"]["asides.toml"], encoding="utf-8")
    settings = _load({**_image_variables(), **_OBJECTS["Secret"]["stringData"]}, str(table))
    assert settings.store is not None
    assert settings.gateway.redis is not None


def test_the_example_names_every_secret_that_is_asked_for() -> None:
    example = dict(
        line.split("=", 1) for line in (_DEPLOY / "env.example").read_text().splitlines() if line and line[0] != "#"
    )
    asked = set(re.findall(r"\$\{(\w+):\?", (_DEPLOY / "compose.yaml").read_text(encoding="utf-8")))
    assert asked <= set(example)
    assert set(example.values()) == {""}, "an example with a secret is used as it is"


def test_secrets_that_were_not_filled_in_are_refused() -> None:
    secrets = _OBJECTS["Secret"]["stringData"]
    with pytest.raises(ConfigError):
        RelayKeys.parse(secrets["ASIDES_RELAY_KEY"])
    with pytest.raises(ConfigError, match="easy to guess"):
        check_keys((secrets["ASIDES_GATEWAY_KEY"],))


def test_nginx_finds_the_gateways_by_addresses_that_stay() -> None:
    """It looks them up once. A network that it shares with them and that gives them new addresses would mislead it."""
    services, networks = _COMPOSE["services"], _COMPOSE["networks"]
    (config,) = networks["inside"]["ipam"]["config"]
    for service in _GATEWAYS:
        assert set(service["networks"]) & set(services["nginx"]["networks"]) == {"inside"}
        address = ip_address(service["networks"]["inside"]["ipv4_address"])
        assert address in ip_network(config["subnet"])
        assert address not in ip_network(config["ip_range"])


def test_no_secret_is_in_the_files() -> None:
    for path in _DEPLOY.iterdir():
        text = re.sub(r"--hash=sha256:[0-9a-f]{64}", "", path.read_text(encoding="utf-8"))
        assert not re.search(r"sk-[A-Za-z0-9]{8}|[0-9a-f]{32}", text), path


def test_the_unit_of_systemd_runs_a_command_that_exists() -> None:
    unit = ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string((_DEPLOY / "asides.service").read_text(encoding="utf-8"))
    service = unit["Service"]
    program, command, *words = service["ExecStart"].split()
    assert (Path(program).name, command) == ("asides", "serve")
    parse_arguments(command, list_commands()[command], words)
    assert int(service["TimeoutStopSec"]) > GatewaySettings().drain_seconds
    assert int(service["RestartPreventExitStatus"]) == Exit.USAGE
    assert service["Environment"].split()[0] == f"HOME=/var/lib/{service['StateDirectory']}"


# --- ports, paths and times -------------------------------------------------------------------------------------------


def test_ports_agree() -> None:
    port = str(DEFAULT_PORT)
    assert _instructions("EXPOSE") == [port]
    assert f"127.0.0.1:{port}/healthz" in _DOCKERFILE
    assert re.findall(r"server gateway-\d:(\d+)", _NGINX) == [port] * len(_GATEWAYS)
    assert _CONTAINER["ports"] == [{"name": "http", "containerPort": int(port)}]
    assert _OBJECTS["Service"]["spec"]["ports"][0]["targetPort"] == "http"
    listens = re.findall(r"listen (\d+);", _NGINX)
    assert _COMPOSE["services"]["nginx"]["ports"] == [f"127.0.0.1:{listens[0]}:{listens[0]}"]


def test_probes_ask_paths_that_exist() -> None:
    asked = {_CONTAINER[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert asked == set(HEALTH_PATHS)
    assert _CONTAINER["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert _CONTAINER["livenessProbe"]["httpGet"]["path"] == "/healthz"


def test_replies_may_end_before_a_container_is_killed() -> None:
    drain = tomllib.loads((_DEPLOY / "gateway.toml").read_text(encoding="utf-8"))["gateway"]["drain_seconds"]
    for service in _GATEWAYS:
        assert int(service["stop_grace_period"].removesuffix("s")) > drain
    pod_drain = tomllib.loads(_OBJECTS["ConfigMap"]["data"]["asides.toml"])["gateway"]["drain_seconds"]
    wait = int(_CONTAINER["lifecycle"]["preStop"]["exec"]["command"][1])
    assert _POD["terminationGracePeriodSeconds"] > wait + pod_drain
    # Until a pod is known to end, requests still go there.
    assert wait >= _CONTAINER["readinessProbe"]["periodSeconds"]
    assert _instructions("STOPSIGNAL") == ["SIGTERM"]


def test_one_instance_always_runs() -> None:
    spec = _OBJECTS["Deployment"]["spec"]
    assert spec["replicas"] >= 2
    assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert 1 <= _OBJECTS["PodDisruptionBudget"]["spec"]["minAvailable"] < spec["replicas"]
    labels = spec["template"]["metadata"]["labels"].items()
    for kind in ("PodDisruptionBudget", "Service", "NetworkPolicy"):
        selector = _OBJECTS[kind]["spec"].get("selector") or _OBJECTS[kind]["spec"]["podSelector"]
        assert set(selector.get("matchLabels", selector).items()) <= set(labels)


# --- images -----------------------------------------------------------------------------------------------------------


def test_images_are_pinned() -> None:
    assert {line.split()[0] for line in _instructions("FROM")} == {"${PYTHON_IMAGE}"}
    images = [line.partition("=")[2] for line in _instructions("ARG")]
    images += [service["image"] for service in _COMPOSE["services"].values()]
    images += [_CONTAINER["image"], _OBJECTS["Job"]["spec"]["template"]["spec"]["containers"][0]["image"]]
    assert [image for image in images if not re.search(r":(?!latest\b)[\w.-]+(?:@sha256:[0-9a-f]{64})?$", image)] == []
    assert images[-1] == images[-2]


def test_the_image_is_built_of_files_that_exist() -> None:
    ignored = (_DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert "*" in ignored
    for line in _instructions("COPY"):
        if not line.startswith("--from="):
            for name in line.split()[:-1]:
                assert (_ROOT / name).exists(), name
                assert f"!{name}" in ignored, f"{name} would not be sent to the builder"


def test_nobody_is_root_and_nothing_is_written_to_the_image() -> None:
    (user,) = _instructions("USER")
    assert user == "10001:10001"
    assert _POD["securityContext"]["runAsNonRoot"]
    assert f"{_POD['securityContext']['runAsUser']}:{_POD['securityContext']['runAsGroup']}" == user
    assert _CONTAINER["securityContext"]["readOnlyRootFilesystem"]
    assert _CONTAINER["securityContext"]["capabilities"]["drop"] == ["ALL"]
    written = {_image_variables()["ASIDES_STATE"], "/tmp"}
    assert {mount["mountPath"] for mount in _CONTAINER["volumeMounts"] if not mount.get("readOnly")} == written
    for service in _GATEWAYS:
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert {place.partition(":")[0] for place in service["tmpfs"]} == written
        (mounted,) = service["volumes"]
        assert (_DEPLOY / mounted.split(":")[0]).is_file()
        assert mounted.split(":")[1:] == [service["environment"]["ASIDES_CONFIG"], "ro"]


# --- nginx ------------------------------------------------------------------------------------------------------------


def test_nginx_has_the_settings_that_the_docs_explain() -> None:
    page = (_ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    explained = re.findall(r"^ +((?:proxy|client)_(?!pass)\w+ .+;)$", page.partition("```nginx")[2], re.MULTILINE)
    assert explained
    assert [line for line in explained if line not in _NGINX] == []


def test_nginx_takes_its_file(tmp_path: Path) -> None:
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed")
    text = re.sub(r"gateway-\d:", "127.0.0.1:", _NGINX).replace("/tmp/", f"{tmp_path}/")
    (tmp_path / "nginx.conf").write_text(text, encoding="utf-8")
    words = [program, "-t", "-c", str(tmp_path / "nginx.conf"), "-p", str(tmp_path), "-e", "stderr"]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)
    assert ended.returncode == 0, ended.stderr
