"""Who may ask: keys in every place, browsers of strangers, pages that are allowed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asides.database import StoreUnavailable
from asides.relay.relay_request import RelayRequest
from asides.settings import load_settings
from asides.values.errors import ConfigError
from asides_gateway.access.key_cache import KeyCache
from asides_gateway.access.key_store import make_key, revoke_key
from asides_gateway.authenticate import (
    Authenticator,
    Identified,
    Identity,
    Refusal,
    derive_record_tenant,
    derive_tenant,
    remove_credentials,
    remove_key,
)
from asides_gateway.gateway_settings import GatewaySettings, check_address, is_loopback
from asides_gateway.request_record import RequestRecord
from asides_gateway.service import Service
from asides_gateway.watcher import RequestWatcher
from asides_gateway.web import Headers
from asides_stage import Say, Stage
from tests.gateway.access.key_records import add_key, open_place
from tests.gateway.http_client import ask, chat, gateway_before

KEY = "sk-asides-7f3a9c"
OTHER = "sk-asides-other"


def make_headers(*headers: tuple[str, str]) -> Headers:
    return Headers((name.lower().encode(), value.encode("utf-8", "surrogateescape")) for name, value in headers)


def identify(
    *headers: tuple[str, str], query: str = "", method: str = "GET", is_open: bool = False, **settings: object
) -> Identified:
    own = GatewaySettings(**settings)  # type: ignore[arg-type]
    return Authenticator(own).identify(make_headers(*headers), query, method=method, is_open=is_open)


def status(found: Identified) -> int:
    return found.status if isinstance(found, Refusal) else 200


PLACES = [
    (("Authorization", f"Bearer {KEY}"),),
    (("authorization", f"bearer  {KEY} "),),
    (("x-api-key", KEY),),
    (("Api-Key", KEY),),
    (("X-Goog-Api-Key", KEY),),
    # Clients that send two credentials, of which one is somebody else's.
    (("x-api-key", "sk-ant-of-someone"), ("authorization", f"Bearer {KEY}")),
    (("authorization", "Bearer wrong"), ("authorization", f"Bearer {KEY}")),
]


@pytest.mark.parametrize("headers", PLACES, ids=lambda headers: headers[-1][0])
def test_a_key_is_found_wherever_a_client_puts_it(headers: tuple[tuple[str, str], ...]) -> None:
    assert identify(*headers, keys=(OTHER, KEY)) == Identity(derive_tenant(KEY))
    assert status(identify(*headers, keys=(OTHER,))) == 401


@pytest.mark.parametrize("query", [f"key={KEY}", f"alt=sse&key={KEY}", "%4BEY=sk%2Dasides%2D7f3a9c&beta=true"])
def test_a_key_in_the_query(query: str) -> None:
    assert identify(query=query, keys=(KEY,)) == Identity(derive_tenant(KEY))
    assert status(identify(query=query, keys=(OTHER,))) == 401
    left = remove_key(query)
    assert "7f3a9c" not in left
    assert "alt=sse" in left or "alt" not in query
    assert "beta=true" in left or "beta" not in query


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("authorization", f"Basic {KEY}"),),
        (("authorization", KEY),),
        (("authorization", "Bearer "),),
        (("x-api-key", ""),),
        (("x-api-key", KEY[:-1]),),
        (("x-api-key", KEY + "x"),),
        (("x-api-key", "\udcff\udcfe"),),
        (("cookie", f"key={KEY}"),),
    ],
    ids=str,
)
def test_anything_else_is_no_key(headers: tuple[tuple[str, str], ...]) -> None:
    found = identify(*headers, keys=(KEY,))
    assert isinstance(found, Refusal)
    assert (found.status, found.code) == (401, "invalid_api_key")
    assert found.headers["www-authenticate"] == "Bearer"
    assert KEY not in repr(found)


def test_an_empty_key_in_the_settings_opens_nothing() -> None:
    assert status(identify(("x-api-key", ""), keys=("",))) == 401
    assert status(identify(keys=("",))) == 401


def test_what_is_open_needs_no_key_but_no_stranger_either() -> None:
    assert identify(keys=(KEY,), is_open=True) == Identity()
    assert status(identify(("origin", "https://evil.example"), keys=(KEY,), is_open=True)) == 403


def test_tenants_are_digests_of_keys() -> None:
    assert derive_tenant(KEY) != derive_tenant(OTHER)
    assert KEY not in derive_tenant(KEY)
    assert identify() == Identity(tenant="")
    own = Authenticator(GatewaySettings(keys=(KEY,)))
    assert KEY not in repr(own) + repr(vars(own))


def test_without_keys_any_credential_is_ignored() -> None:
    assert identify(("x-api-key", "sk-whatever")) == Identity("")


def test_a_name_of_a_credential_stays_without_its_value() -> None:
    headers = {"x-goog-api-key": KEY, "authorization": f"Bearer {KEY}", "accept": "*/*"}
    remove_credentials(headers)
    assert headers == {"x-goog-api-key": "", "authorization": "", "accept": "*/*"}


# --- browsers ---------------------------------------------------------------------------------------------------------

LOCAL = [
    "localhost",
    "localhost:4242",
    "LOCALHOST:1",
    "127.0.0.1",
    "127.9.9.9:80",
    "[::1]:4242",
    "[::1]",
    "a.localhost",
]
STRANGE = [
    "evil.example",
    "evil.example:4242",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "10.0.0.1",
    "0.0.0.0",
]


@pytest.mark.parametrize("host", [*LOCAL, "host.docker.internal:4242"])
def test_names_of_this_machine(host: str) -> None:
    assert identify(("host", host)) == Identity()


@pytest.mark.parametrize("host", STRANGE)
def test_a_name_that_leads_here_from_elsewhere_is_refused(host: str) -> None:
    found = identify(("host", host))
    assert isinstance(found, Refusal)
    assert (found.status, found.code) == (403, "host_not_allowed")
    assert "allowed_hosts" in found.message
    assert identify(("host", host), allowed_hosts=(host.partition(":")[0],)) == Identity()
    assert identify(("host", host), ("x-api-key", KEY), keys=(KEY,)) == Identity(derive_tenant(KEY))


def test_names_are_checked_with_keys_too_if_some_are_set() -> None:
    given = (("host", "evil.example"), ("x-api-key", KEY))
    assert status(identify(*given, keys=(KEY,), allowed_hosts=("llm.example",))) == 403
    assert status(identify(("host", "llm.example"), given[1], keys=(KEY,), allowed_hosts=("llm.example",))) == 200


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "http://localhost:3000", "http://127.0.0.1:4243", "null", "file://", "http://[bad"],
)
def test_a_page_of_another_site_is_refused(origin: str) -> None:
    found = identify(("host", "127.0.0.1:4242"), ("origin", origin))
    assert isinstance(found, Refusal)
    assert (found.status, found.code) == (403, "origin_not_allowed")


@pytest.mark.parametrize("origin", ["http://127.0.0.1:4242", "HTTP://127.0.0.1:4242", "https://127.0.0.1:4242"])
def test_our_own_page_may_ask(origin: str) -> None:
    assert identify(("host", "127.0.0.1:4242"), ("origin", origin)) == Identity()


def test_a_page_that_is_allowed() -> None:
    given = (("host", "localhost:4242"), ("origin", "https://Chat.example"))
    assert identify(*given, allowed_origins=("https://chat.example/",)) == Identity("", "https://Chat.example")
    assert identify(*given, allowed_origins=("*",)) == Identity("", "https://Chat.example")
    assert status(identify(*given, allowed_origins=("https://other.example",))) == 403


def test_requests_across_sites_without_an_origin() -> None:
    site = ("sec-fetch-site", "cross-site")
    assert status(identify(site, ("sec-fetch-mode", "no-cors"))) == 403
    assert status(identify(site, ("sec-fetch-mode", "navigate"))) == 200  # a link to the page
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):  # a form, which sends no key and changes something
        assert status(identify(site, ("sec-fetch-mode", "navigate"), method=method)) == 403
    assert status(identify(site, ("sec-fetch-mode", "navigate"), method="HEAD")) == 200
    other_port = ("sec-fetch-site", "same-site")
    assert status(identify(other_port, ("sec-fetch-mode", "no-cors"))) == 403
    assert status(identify(other_port, ("sec-fetch-mode", "navigate"))) == 200
    assert status(identify(("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate"))) == 200
    assert status(identify(("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "cors"))) == 200


def test_a_gateway_that_others_reach_needs_a_key() -> None:
    for host in ("0.0.0.0", "::", "192.168.0.7", "gateway.example"):
        with pytest.raises(ConfigError, match="It needs a key"):
            check_address(GatewaySettings(host=host))
        check_address(GatewaySettings(host=host, keys=(KEY,)))
    assert all(is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "[::1]"))
    with pytest.raises(ConfigError):
        Service(GatewaySettings(host="0.0.0.0", keys=("",)), load_settings(environ={}, files=[]))


# --- over HTTP --------------------------------------------------------------------------------------------------------

ERRORS: dict[str, Callable[[Any], bool]] = {
    "/v1/chat/completions": lambda body: body["error"]["code"] == "invalid_api_key",
    "/v1/responses": lambda body: body["error"]["code"] == "invalid_api_key",
    "/v1/messages": lambda body: body["type"] == "error" and body["error"]["type"] == "authentication_error",
    "/v1beta/models/gemini-3-pro:generateContent": lambda body: body["error"]["status"] == "UNAUTHENTICATED",
    "/model/a.b/converse": lambda body: "gateway" in body["message"],
    "/api/chat": lambda body: "gateway" in body["error"],
    "/v2/chat": lambda body: "gateway" in body["message"],
}


@pytest.mark.parametrize("path", ERRORS)
def test_a_wrong_key_is_refused_in_the_callers_dialect(path: str) -> None:
    with Stage([Say(text="42")]) as stage, gateway_before(stage, keys=(KEY,)) as gateway:
        answer = ask(gateway, "POST", f"{path}?key=sk-canary", chat(), [("authorization", "Bearer sk-canary")])
        assert not stage.requests
    assert answer.status == 401
    assert ERRORS[path](answer.json), answer.body
    assert b"sk-canary" not in answer.body
    assert any("request-id" in name or name == "x-amzn-requestid" for name in answer.headers)


class _Seen(RequestWatcher):
    def __init__(self) -> None:
        self.seen: list[tuple[RequestRecord, RelayRequest]] = []

    def begin(self, record: RequestRecord, request: RelayRequest | None) -> None:
        assert request is not None
        self.seen.append((record, request))


def test_a_key_goes_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    seen = _Seen()
    with caplog.at_level(logging.DEBUG), Stage([Say(text="42")]) as stage:
        with gateway_before(stage, seen, keys=(KEY,)) as gateway:
            for headers, query in (([("x-goog-api-key", KEY)], ""), ([], f"?key={KEY}&alt=sse")):
                path = f"/v1beta/models/gemini:gemini-3-pro-preview:streamGenerateContent{query}"
                body = {"contents": [{"role": "user", "parts": [{"text": "?"}]}]}
                answer = ask(gateway, "POST", path, body, headers)
                assert answer.status == 200, answer.body
        for received in stage.requests:
            assert KEY not in repr(received) + repr(received.headers) + received.path
    assert len(stage.requests) == 2
    assert KEY not in caplog.text
    assert [record.tenant for record, _ in seen.seen] == [derive_tenant(KEY)] * 2
    for record, request in seen.seen:
        shown = repr(msgspec.structs.astuple(record))
        assert KEY not in shown + repr(request) + repr(request.headers) + request.query


def test_what_needs_no_key() -> None:
    with Stage([Say(text="42")]) as stage, gateway_before(stage, keys=(KEY,)) as gateway:
        assert ask(gateway, "HEAD", "/").status == 200
        assert ask(gateway, "GET", "/ui/").status == 200
        assert ask(gateway, "GET", "/").status == 401
        assert ask(gateway, "GET", "/v1/models").status == 401
        assert ask(gateway, "GET", "/ui/api/conversations").json["error"]["code"] == "invalid_api_key"
        known = ask(gateway, "GET", "/ui/api/nothing-is-here", headers=[("authorization", f"Bearer {KEY}")])
        assert known.status == 404
        assert known.json["error"]["code"] == "not_found"


def test_a_stranger_s_page_reaches_nothing_without_a_key() -> None:
    with Stage([Say(text="42")]) as stage, gateway_before(stage) as gateway:
        for path in ("/v1/chat/completions", "/ui/api/conversations", "/ui/"):
            answer = ask(gateway, "POST", path, chat(), [("origin", "https://evil.example")])
            assert answer.status == 403, path
            assert "access-control-allow-origin" not in answer.headers
        preflight = [("origin", "https://evil.example"), ("access-control-request-method", "POST")]
        assert ask(gateway, "OPTIONS", "/v1/chat/completions", headers=preflight).status == 403
        assert not stage.requests


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_page_that_is_allowed_reads_the_answer(stream: bool) -> None:
    page = ("origin", "https://chat.example")
    own: dict[str, Any] = {"keys": (KEY,), "allowed_origins": ("https://chat.example",)}
    with Stage([Say(text="42")]) as stage, gateway_before(stage, **own) as gateway:
        asked = [
            page,
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "authorization, content-type"),
            ("access-control-request-private-network", "true"),
        ]
        for path in ("/v1/chat/completions", "/ui/api/conversations"):
            allowed = ask(gateway, "OPTIONS", path, headers=asked)
            assert allowed.status == 204
            assert allowed.headers["access-control-allow-origin"] == "https://chat.example"
            assert allowed.headers["access-control-allow-headers"] == "authorization, content-type"
            assert allowed.headers["access-control-allow-private-network"] == "true"
            assert "POST" in allowed.headers["access-control-allow-methods"]
        credential = ("authorization", f"Bearer {KEY}")
        answer = ask(gateway, "POST", "/v1/chat/completions", chat(stream), [page, credential])
        refused = ask(gateway, "POST", "/v1/chat/completions", chat(stream), [page])
    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == "https://chat.example"
    assert "origin" in answer.headers["vary"].lower()
    assert refused.status == 401


# --- keys of the database ---------------------------------------------------------------------------------------------


class Records:
    """A gateway's keys in a folder."""

    def __init__(self, folder: Path) -> None:
        self.database = open_place(str(folder))
        self.cache = KeyCache(self.database)

    def authenticator(self, **settings: Any) -> Authenticator:
        self.cache.load()
        return Authenticator(GatewaySettings(**settings), self.cache)


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(tmp_path)


def bearer(key: str) -> Headers:
    return make_headers(("Authorization", f"Bearer {key}"))


async def test_a_key_of_the_database_is_known_with_its_limits(records: Records) -> None:
    added = add_key(records.database, rpm=5)
    authenticator = records.authenticator(keys=(KEY,))
    found = authenticator.identify(bearer(added.key))
    assert isinstance(found, Identity)
    assert (found.key, found.tenant) == (added.record, derive_record_tenant(added.record))
    static = authenticator.identify(bearer(KEY))
    assert static == Identity(derive_tenant(KEY))
    assert added.key not in repr(authenticator)


async def test_a_key_that_was_made_since_is_looked_for(records: Records) -> None:
    authenticator = records.authenticator(keys=(KEY,))
    added = add_key(records.database)
    assert status(authenticator.identify(bearer(added.key))) == 401
    found = await authenticator.admit(bearer(added.key))
    assert isinstance(found, Identity)
    assert found.key == added.record
    assert status(await authenticator.admit(bearer(make_key().key))) == 401
    assert status(await authenticator.admit(bearer("sk-somebody-elses"))) == 401
    by_query = await authenticator.admit(bearer("no key"), f"a=b&key={added.key}")
    assert isinstance(by_query, Identity)


def test_this_machine_needs_a_key_once_one_was_made(records: Records) -> None:
    authenticator = records.authenticator()
    assert not authenticator.needs_key
    added = add_key(records.database)
    records.cache.load()
    assert authenticator.needs_key
    assert status(authenticator.identify(bearer("nothing"))) == 401
    records.database.run(lambda: revoke_key(added.record.id, 1.0))
    records.cache.load()
    assert authenticator.needs_key, "a gateway whose last key is revoked is not open"


class Silent:
    """A database that does not answer."""

    is_shared = True
    problem = "does not answer"

    def run(self, *_: object, **__: object) -> Any:
        raise StoreUnavailable("it does not answer.")

    async def run_async(self, *_: object, **__: object) -> Any:
        return self.run()


async def test_while_the_database_is_away_unknown_keys_get_503_and_nobody_gets_in_without_one() -> None:
    cache = KeyCache(Silent())  # type: ignore[arg-type]
    authenticator = Authenticator(GatewaySettings(), cache)
    cache.load()
    assert authenticator.needs_key
    found = await authenticator.admit(bearer(make_key().key))
    assert isinstance(found, Refusal)
    assert (found.status, found.headers["retry-after"]) == (503, "5")
    assert status(await authenticator.admit(bearer("sk-other"))) == 401
    closed = Authenticator(GatewaySettings(keys=(KEY,)), cache)
    assert isinstance(await closed.admit(bearer(KEY)), Identity), "keys of the settings need no database"


def test_an_address_that_others_reach_needs_a_key_of_either_kind(records: Records, tmp_path: Path) -> None:
    settings = GatewaySettings(host="0.0.0.0", folder=tmp_path)
    with pytest.raises(ConfigError, match="asides gateway key create"):
        check_address(settings)
    assert not list(tmp_path.iterdir()), "looking makes no file"
    add_key(records.database)
    check_address(settings)
    authenticator = records.authenticator(host="0.0.0.0")
    assert authenticator.needs_key
    # A server that does not answer may have keys; without an answer nobody gets in.
    check_address(GatewaySettings(host="0.0.0.0", store="postgresql://127.0.0.1:1/x"))


async def test_a_request_has_only_a_few_keys_looked_for(tmp_path: Path) -> None:
    database = open_place(str(tmp_path))
    add_key(database)
    cache = KeyCache(database)
    cache.load()
    looked: list[bytes] = []

    async def look_up(digest: bytes) -> bool:
        looked.append(digest)
        return True

    cache.look_up = look_up  # type: ignore[method-assign]
    gate = Authenticator(GatewaySettings(), cache)
    headers = make_headers(*[("x-api-key", make_key().key) for _ in range(60)])
    query = "&".join(f"key={make_key().key}" for _ in range(60))
    assert isinstance(await gate.admit(headers, query), Refusal)
    assert 0 < len(looked) <= 8
    database.close()


async def test_a_key_that_nobody_could_look_for_is_not_called_wrong(tmp_path: Path) -> None:
    database = open_place(str(tmp_path))
    add_key(database)
    cache = KeyCache(database)
    cache.load()
    gate = Authenticator(GatewaySettings(), cache)
    new = add_key(database, "new")
    headers = make_headers(("x-api-key", new.key))
    waiting = {bytes([number]): asyncio.create_task(asyncio.sleep(30)) for number in range(200)}
    cache._lookups.update(waiting)  # As many strangers' keys are looked for.
    refused = await gate.admit(headers)
    assert isinstance(refused, Refusal)
    assert (refused.status, refused.code) == (503, "keys_unavailable")
    for digest, task in waiting.items():
        task.cancel()
        del cache._lookups[digest]
    assert isinstance(await gate.admit(headers), Identity)
    database.close()
