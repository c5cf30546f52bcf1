"""Which handler gets which path."""

from __future__ import annotations

import pytest

from asides.testing import Say, Stage
from tests.gateway.http_client import ask, chat, gateway_before

PLACES = [
    ("GET", "/healthz", 200, "application/json"),
    ("GET", "/readyz", 200, "application/json"),
    ("GET", "/ui/", 200, "text/html"),
    ("GET", "/ui/api/session", 200, "application/json"),
    ("GET", "/ui/api/requests", 200, "application/json"),
    ("GET", "/ui/api/nothing", 404, "application/json"),
    ("GET", "/ui/deep/nothing", 404, "application/json"),
    ("DELETE", "/ui/nothing.js", 404, "application/json"),
    ("GET", "/v1/models", 200, "application/json"),
    ("GET", "/", 200, "text/plain"),
    ("GET", "/uixyz", 404, "application/json"),
]


@pytest.mark.parametrize(("method", "path", "status", "kind"), PLACES, ids=[f"{m} {p}" for m, p, *_ in PLACES])
def test_where_a_path_leads(method: str, path: str, status: int, kind: str) -> None:
    with Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway:
        answer = ask(gateway, method, path)
    assert (answer.status, answer.headers["content-type"].partition(";")[0]) == (status, kind)
    assert answer.headers["server"] == "asides"


def test_without_the_page_there_is_neither_page_nor_api() -> None:
    with Stage([Say(text="42")]) as stage, gateway_before(stage, page=False) as gateway:
        for path in ("/ui/", "/ui/index.html", "/ui/api/session", "/ui/api/conversations", "/ui/api/requests"):
            assert ask(gateway, "GET", path).status == 404, path
        assert ask(gateway, "POST", "/v1/chat/completions", chat()).status == 200
        assert ask(gateway, "GET", "/healthz").status == 200
