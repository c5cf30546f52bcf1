"""The files of the page: served from the package, with the headers that keep strangers out."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from importlib import resources

import aiohttp
import pytest
from yarl import URL

from asides.settings import load_settings
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.serve_page import CONTENT_TYPES, read_page
from asides_gateway.service import Service
from asides_gateway.web_app import make_app
from tests.gateway.app_client import open_client


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_client(make_app(Service(GatewaySettings(), load_settings({}, files=[])))) as opened:
        yield opened


async def test_every_file_comes_with_its_type_and_a_strict_policy(session: aiohttp.ClientSession) -> None:
    for name, file in {**read_page(), "": read_page()["index.html"]}.items():
        async with session.get(f"/ui/{name}") as response:
            assert (response.status, await response.read()) == (200, file.body)
            assert response.headers["content-type"] == file.content_type
            assert response.headers["x-content-type-options"] == "nosniff"
            assert response.headers["referrer-policy"] == "no-referrer"
            assert response.headers["cross-origin-opener-policy"] == "same-origin"
            assert response.headers["cross-origin-resource-policy"] == "same-origin"
            assert response.headers["content-security-policy"] == (
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
                "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
            )


async def test_a_browser_that_has_the_file_gets_304(session: aiohttp.ClientSession) -> None:
    async with session.get("/ui/app.js") as first:
        etag = first.headers["etag"]
    async with session.get("/ui/app.js", headers={"if-none-match": f'"other", {etag}'}) as second:
        assert (second.status, await second.read(), second.headers["etag"]) == (304, b"", etag)
    async with session.get("/ui/app.js", headers={"if-none-match": '"other"'}) as third:
        assert third.status == 200


async def test_head_has_the_headers_and_no_body(session: aiohttp.ClientSession) -> None:
    async with session.head("/ui/page.css") as response:
        assert response.status == 200
        assert int(response.headers["content-length"]) == len(read_page()["page.css"].body)
        assert await response.read() == b""


async def test_ui_leads_to_the_page(session: aiohttp.ClientSession) -> None:
    async with session.get("/ui", allow_redirects=False) as response:
        assert (response.status, response.headers["location"]) == (308, "/ui/")


@pytest.mark.parametrize("query", ["a=1", "a=%0D%0Aset-cookie:%20b=c", "a=%00%FF%C3", "a=%E2%82%AC", "a=%23b"])
async def test_the_way_to_the_page_keeps_the_query_as_it_was_sent(query: str, session: aiohttp.ClientSession) -> None:
    address = URL(f"/ui?{query}", encoded=True)
    async with session.get(address, allow_redirects=False) as response:
        assert (response.status, response.headers["location"]) == (308, f"/ui/?{query}")
        assert "set-cookie" not in response.headers


@pytest.mark.parametrize(
    "path",
    [
        "..%2fserve_page.py",
        "%2e%2e%2f%2e%2e%2fclient.py",
        "..%5cserve_page.py",
        "%2fetc%2fpasswd",
        "app.js%00.css",
        "__init__.py",
        "nothing.js",
        "APP.JS",
    ],
)
async def test_no_path_leads_out_of_the_page(session: aiohttp.ClientSession, path: str) -> None:
    async with session.get(URL(f"/ui/{path}", encoded=True)) as response:
        assert response.status == 404
        assert "def " not in await response.text()


async def test_without_a_page_nothing_is_served() -> None:
    service = Service(GatewaySettings(page=False), load_settings({}, files=[]))
    async with open_client(make_app(service)) as session, session.get("/ui/") as response:
        assert response.status == 404


def test_no_file_is_left_out_for_want_of_a_type() -> None:
    folder = resources.files("asides_gateway").joinpath("page")
    left_out = [entry.name for entry in folder.iterdir() if entry.is_file() and entry.name not in read_page()]
    assert left_out == []
    assert {"." + name.rpartition(".")[2] for name in read_page()} <= set(CONTENT_TYPES)


def test_the_page_names_nothing_outside_of_itself() -> None:
    """No address of another host, no inline script or style, no parser of markup, in any file."""
    for name, file in read_page().items():
        text = file.body.decode()
        addresses = set(re.findall(r"https?://[a-z0-9.-]+", text)) - {"http://www.w3.org"}
        assert not addresses, (name, addresses)
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            " style=",
            " onclick=",
        ):
            assert word not in text, (name, word)
        for module in re.findall(r"from \"\./([^\"]+)\"", text):
            assert module in read_page(), (name, module)
