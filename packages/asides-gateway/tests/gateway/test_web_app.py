"""Which handler gets which path."""

from __future__ import annotations

import pytest

from asides_stage import Say, Stage
from tests.gateway.http_client import Client, ask, chat, gateway_before

KEY = "sk-asides-0123456789abcdef"

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


def test_a_browser_at_the_root_goes_to_the_page() -> None:
    browser = [("accept", "text/html,application/xhtml+xml,*/*;q=0.8")]
    with Stage() as stage, gateway_before(stage, keys=(KEY,)) as gateway:
        answer = ask(gateway, "GET", "/", headers=browser)
    assert (answer.status, answer.headers["location"]) == (302, "/ui/")
    with Stage() as stage, gateway_before(stage, page=False) as gateway:
        assert ask(gateway, "GET", "/", headers=browser).status == 200


def test_without_the_page_there_is_neither_page_nor_api() -> None:
    with Stage([Say(text="42")]) as stage, gateway_before(stage, page=False) as gateway:
        for path in ("/ui/", "/ui/index.html", "/ui/api/session", "/ui/api/conversations", "/ui/api/requests"):
            assert ask(gateway, "GET", path).status == 404, path
        assert ask(gateway, "POST", "/v1/chat/completions", chat()).status == 200
        assert ask(gateway, "GET", "/healthz").status == 200


@pytest.mark.parametrize("keys", [(), (KEY,)])
def test_a_usual_path_is_answered_like_any_other_spelling_of_it(keys: tuple[str, ...]) -> None:
    body = chat()
    with Stage(Say(text="42")) as stage, gateway_before(stage, keys=keys) as gateway:
        for headers in ((), (("authorization", f"Bearer {KEY}"),), (("origin", "https://stranger.example"),)):
            usual = ask(gateway, "POST", "/v1/chat/completions", body, headers)
            other = ask(gateway, "POST", "/v1/%63hat/completions", body, headers)
            assert usual.status == ask(gateway, "POST", "//v1/chat/completions", body, headers).status
            assert "nosniff" in usual.headers["x-content-type-options"]
            assert usual.headers.keys() >= other.headers.keys() - {"x-asides-notice"}
        assert ask(gateway, "GET", "/v1/chat/completions", headers=[("authorization", f"Bearer {KEY}")]).status == 405


# --- who may ask ------------------------------------------------------------------------------------------------------

_API = ("session", "models", "conversations", "requests", "requests/events")
_SPELLINGS = ("/ui/%61pi/", "/ui/%61%70%69/", "/%75i/api/", "/%75%69/%61pi/", "http://stranger.example/ui/%61pi/")


@pytest.mark.parametrize("path", [f"{spelling}{name}" for spelling in _SPELLINGS for name in _API])
def test_no_spelling_of_a_path_passes_without_a_key(path: str) -> None:
    with Stage() as stage, gateway_before(stage, keys=(KEY,)) as gateway:
        for method in ("GET", "HEAD", "POST", "DELETE"):
            assert ask(gateway, method, path, headers=[("content-type", "application/json")]).status == 401, method
        assert ask(gateway, "GET", "/ui/%69ndex.html").status == 200  # A file is open however it is spelled.


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("HEAD", "/", ()),
        ("OPTIONS", "/v1/chat/completions", (("access-control-request-method", "POST"),)),
        ("OPTIONS", "/ui/api/conversations", (("access-control-request-method", "POST"),)),
    ],
)
def test_a_body_is_read_from_nobody_without_a_key(method: str, path: str, headers: tuple[tuple[str, str], ...]) -> None:
    with Stage() as stage, gateway_before(stage, keys=(KEY,)) as gateway, Client(gateway, timeout=5) as client:
        client.send(method, path, headers=[*headers, ("content-length", str(60 * 1024 * 1024))])
        assert client.read_head()[0] in (200, 401)  # Before a byte of the body was sent.


def test_a_preflight_without_a_page_is_a_request_like_others() -> None:
    asks = [("access-control-request-method", "POST")]
    with Stage() as stage, gateway_before(stage, keys=(KEY,), allowed_origins=("https://chat.example",)) as gateway:
        for path in ("/v1/chat/completions", "/ui/api/conversations"):
            assert ask(gateway, "OPTIONS", path, headers=asks).status == 401
            own = [*asks, ("origin", gateway.url)]
            assert ask(gateway, "OPTIONS", path, headers=own).status == 401
            allowed = [*asks, ("origin", "https://chat.example")]
            assert ask(gateway, "OPTIONS", path, headers=allowed).status == 204


# --- browsers ---------------------------------------------------------------------------------------------------------

_EVERYWHERE = (
    *("/", "/healthz", "/readyz", "/ui", "/ui/", "/ui/nothing.js", "/ui/deep/nothing", "/ui/api/session"),
    *("/ui/api/nothing", "/ui/api/conversations/nothing", "/v1/models", "/nothing", "/v1/chat/completions"),
)


@pytest.mark.parametrize("path", _EVERYWHERE)
@pytest.mark.parametrize("keys", [(), (KEY,)], ids=["open", "keys"])
def test_no_browser_takes_a_response_for_a_page_of_ours(path: str, keys: tuple[str, ...]) -> None:
    """Whatever a response says, also a provider's: nothing in it runs, and no other page frames it."""
    with Stage() as stage, gateway_before(stage, keys=keys) as gateway:
        for method in ("GET", "POST", "DELETE"):
            headers = ask(gateway, method, path).headers
            assert headers["x-content-type-options"] == "nosniff", method
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy, method
            assert "frame-ancestors 'none'" in policy, method


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n\r\n", b"garbage\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n"]
)
def test_what_is_no_request_gets_the_same_headers(data: bytes) -> None:
    with Stage() as stage, gateway_before(stage, allowed_hosts=("a",)) as gateway, Client(gateway) as client:
        client.write(data)
        status, headers = client.read_head()
    assert 400 <= status < 500
    assert headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in headers["content-security-policy"]
