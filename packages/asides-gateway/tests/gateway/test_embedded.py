"""A gateway in a thread: it opens, answers and ends."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import msgspec
import pytest

from asides.options import Options
from asides.settings import load_settings
from asides.values.errors import ConfigError
from asides_gateway.embedded import Gateway
from asides_gateway.gateway_database import open_database
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.summary_rows import list_rows
from asides_stage import Say, Stage


def test_a_gateway_answers_until_it_is_closed() -> None:
    with Stage([Say(text="42")]) as stage:
        options = Options(base_url=stage.url, api_key="sk-test")
        with Gateway(None, load_settings(environ={}, files=[]), options=options) as gateway:
            body = {"model": "deepseek:deepseek-v4-pro", "messages": [{"role": "user", "content": "?"}]}
            answer = ask(gateway, body)
            assert answer["choices"][0]["message"]["content"] == "42"
            port = int(gateway.url.rpartition(":")[2])
    gateway.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 1).close()


@pytest.mark.parametrize(("days", "rows"), [(30, 2), (0, 0)])
def test_summaries_of_requests_are_kept_where_there_is_a_store(store_place: str, days: int, rows: int) -> None:
    is_file = "://" not in store_place
    settings = GatewaySettings(
        port=0,
        folder=Path(store_place).parent if is_file else None,
        store=None if is_file else store_place,
        state_mode="memory",
        summary_days=days,
    )
    with Stage(Say(text="a secret")) as stage:
        options = Options(base_url=stage.url, api_key="sk-test")
        with Gateway(settings, load_settings(environ={}, files=[]), options=options) as gateway:
            body = {"model": "deepseek:deepseek-v4-pro", "messages": [{"role": "user", "content": "secret"}]}
            for _ in range(2):
                ask(gateway, body)
    database = open_database(settings)
    found = database.run(lambda: list_rows("", 10), writes=False)
    database.close()
    assert [(row["ended"], row["model"]) for row in found] == [("done", "deepseek:deepseek-v4-pro")] * rows
    assert "secret" not in repr(found)


def ask(gateway: Gateway, body: dict[str, Any]) -> Any:
    asked = Request(
        f"{gateway.url}/v1/chat/completions", msgspec.json.encode(body), {"content-type": "application/json"}
    )
    with urlopen(asked) as response:
        return msgspec.json.decode(response.read())


@pytest.mark.parametrize("module", ["httptools", "uvicorn", "prometheus_client"])
def test_without_its_packages_the_error_names_the_extra(module: str) -> None:
    words = f"import sys; sys.modules[{module!r}] = None; import asides_gateway.embedded"
    ran = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert ran.stderr.rstrip().endswith("not installed. Run pip install 'asides[gateway]'.")


def test_a_gateway_is_started_once_and_has_no_address_before() -> None:
    gateway = Gateway(None, load_settings(environ={}, files=[]))
    for look in (lambda: gateway.url, lambda: gateway.service):
        with pytest.raises(RuntimeError, match="not open"):
            look()
    gateway.close()
    with gateway, pytest.raises(RuntimeError, match="started before"):
        gateway.start()


def test_a_port_that_is_taken_is_an_error_of_whoever_starts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port} .* in use"):
            Gateway(GatewaySettings(port=port), load_settings(environ={}, files=[])).start()
