"""Serves the page's files under /ui/: `add_routes(app, service)`.

The files contain nothing private and need no key; the API that they call does.
"""

from __future__ import annotations

import hashlib
from importlib import resources
from typing import NamedTuple
from urllib.parse import quote

from asides_gateway import web
from asides_gateway.service import Service

FIRST_FILE = "index.html"
CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
}
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # Asked again each time, and answered with 304: a new version never meets modules of an old one.
    "cache-control": "no-cache",
}


class PageFile(NamedTuple):
    """A file of the page, in memory."""

    body: bytes
    content_type: str
    etag: str


def read_page() -> dict[str, PageFile]:
    """The files of the package, by name. Only names in it are ever served, so that no path leads elsewhere."""
    found: dict[str, PageFile] = {}
    for entry in resources.files("asides_gateway").joinpath("page").iterdir():
        content_type = CONTENT_TYPES.get("." + entry.name.rpartition(".")[2])
        if content_type is not None and entry.is_file():
            body = entry.read_bytes()
            found[entry.name] = PageFile(body, content_type, f'"{hashlib.sha256(body).hexdigest()[:32]}"')
    return found


def is_browser_at_root(request: web.Request) -> bool:
    """Whether a person opens the address in a browser. Clients of Ollama ask there too, for any type."""
    return request.method == "GET" and request.raw_path == "/" and "text/html" in request.headers.get("accept", "")


def add_routes(app: web.Application, service: Service) -> None:
    """Serve the page under /ui/, unless the settings turn it off."""
    if not service.settings.page:
        return
    files = read_page()

    async def serve(request: web.Request) -> web.StreamResponse:
        name = request.match.get("name", FIRST_FILE)
        file = files.get(name)
        if file is None:
            return web.Response(status=404, text="The page has no such file.\n", headers=HEADERS)
        known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
        if file.etag in known or "*" in known:
            return web.Response(status=304, headers={**HEADERS, "etag": file.etag})
        return web.Response(body=file.body, headers={**HEADERS, "content-type": file.content_type, "etag": file.etag})

    async def go_to_page(request: web.Request) -> web.StreamResponse:
        # As it was sent: decoded, it may hold what no header can.
        sent = request.raw_query
        query = f"?{sent}" if sent else ""
        return web.Response(status=308, headers={**HEADERS, "location": f"{quote(request.root_path)}/ui/{query}"})

    app.add_get("/ui", go_to_page)
    app.add_get("/ui/", serve)
    app.add_get("/ui/{name}", serve)
