"""The lists of models of a gateway: asked from providers in the background, each provider once."""

from __future__ import annotations

import json
import socket
import threading
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from asides.providers.find import list_providers
from asides.providers.provider import ModelRule, Provider
from asides_gateway.embedded import Gateway
from asides_gateway.gateway_settings import GatewaySettings
from tests.gateway.http_client import wait_for
from tests.gateway.page_client import PageClient, without_settings
from tests.loopback import ReceivedRequest, serving, whole_response


class _Host:
    """A host with a list of models, which it may hold back."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.asked: list[str] = []
        self.status = 200
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.url = ""

    def row(self, name: str, **more: Any) -> Provider:
        return Provider(name=name, base_url=f"{self.url}/v1", key="optional", **more)


@contextmanager
def _serve(*names: str) -> Generator[_Host]:
    host = _Host(*names)

    def answer(request: ReceivedRequest, connection: socket.socket) -> bool:
        host.asked.append(request.line.split(" ")[1])
        host.may_answer.wait(20)
        body = json.dumps({"object": "list", "data": [{"id": name} for name in host.names]}).encode()
        connection.sendall(whole_response(body, status=f"{host.status} Answer"))
        return True

    with serving(answer) as server:
        host.url = f"http://127.0.0.1:{server.port}"
        try:
            yield host
        finally:
            host.may_answer.set()


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in list_providers():
        for name in row.key_env:
            monkeypatch.delenv(name, raising=False)


@contextmanager
def _gateway(*rows: Provider, **settings: Any) -> Generator[Gateway]:
    with Gateway(GatewaySettings(port=0, **settings), without_settings(providers=rows)) as gateway:
        yield gateway


def _list(gateway: Gateway, path: str = "/v1/models") -> list[str]:
    with urllib.request.urlopen(gateway.url + path, timeout=30) as response:
        names = [model["id"] for model in json.load(response)["data"]]
    return [name for name in names if not name.startswith("local:")]


def test_clients_and_the_page_see_what_the_keys_can_use_and_each_provider_is_asked_once() -> None:
    with _serve("big", "small") as first, _serve("other", "text-embedding-3-small") as second:
        rows = first.row("acme"), second.row("zeta", models=(ModelRule(models="known", thinking="always"),))
        with _gateway(*rows) as gateway:
            assert not first.asked
            expected = ["acme:big", "acme:small", "zeta:other"]
            assert _list(gateway) == _list(gateway) == expected
            page = PageClient(gateway.url).get("/models")["models"]
            assert [model["id"] for model in page if model["provider"] != "local"] == expected
            assert _list(gateway, "/v1/models?search=small") == ["acme:small"]
    assert (first.asked, second.asked) == (["/v1/models"], ["/v1/models"])


def test_a_slow_list_is_replaced_by_what_the_row_knows_until_it_comes() -> None:
    row_rules = (ModelRule(models="known", thinking="always"),)
    with _serve("listed") as host:
        host.may_answer.clear()
        with _gateway(host.row("acme", models=row_rules)) as gateway:
            gateway.service.model_lists._first_wait = 0.05
            assert _list(gateway) == ["acme:known"]
            host.may_answer.set()
            assert wait_for(lambda: _list(gateway) == ["acme:listed"])
            assert len(host.asked) == 1


def test_a_provider_without_a_list_costs_nothing_but_its_names() -> None:
    with _serve("listed") as host:
        host.status = 500
        with _gateway(host.row("acme", models=(ModelRule(models="known", thinking="always"),))) as gateway:
            assert _list(gateway) == _list(gateway) == ["acme:known"]
            assert len(host.asked) == 1


def test_a_setting_chooses_what_lists_show() -> None:
    with _serve("big", "small") as host, _gateway(host.row("acme"), shown_models=("*:big",)) as gateway:
        assert _list(gateway) == ["acme:big"]
        page = PageClient(gateway.url).get("/models")["models"]
        assert [model["id"] for model in page] == ["acme:big"]
