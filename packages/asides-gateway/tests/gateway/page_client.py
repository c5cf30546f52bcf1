"""A client of the page's API, over real sockets, and the gateway that it asks."""

from __future__ import annotations

import http.client
import json
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from asides.settings import Settings, load_settings
from asides_gateway.embedded import Gateway
from asides_gateway.gateway_settings import GatewaySettings

Event = tuple[str, Any]


class Answer(NamedTuple):
    """What the gateway answered."""

    status: int
    body: Any
    headers: dict[str, str]


class PageClient:
    """Asks the API as the page does."""

    def __init__(self, url: str, key: str = "") -> None:
        self.url = url
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 0)
        self._headers = {"authorization": f"Bearer {key}"} if key else {}

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """One request, with its whole answer."""
        connection = http.client.HTTPConnection(*self._address, timeout=50)
        try:
            response = self._request(connection, method, path, body, headers)
            read = response.read()
            found = {name.lower(): value for name, value in response.getheaders()}
            is_json = found.get("content-type", "").startswith("application/json")
            return Answer(response.status, json.loads(read) if is_json else read, found)
        finally:
            connection.close()

    def _request(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: Any, headers: dict[str, str]
    ) -> http.client.HTTPResponse:
        given = {**self._headers}
        if body is not None:
            given["content-type"] = "application/json"
        raw = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, f"/ui/api{path}", raw, given)
        return connection.getresponse()

    def get(self, path: str) -> Any:
        """The body of a good answer."""
        answer = self.send("GET", path)
        assert answer.status == 200, answer
        return answer.body

    def create(self, model: str | None = None, **fields: Any) -> str:
        """A new conversation; returns its id."""
        answer = self.send("POST", "/conversations", {**({} if model is None else {"model": model}), **fields})
        assert answer.status == 201, answer
        identifier: str = answer.body["id"]
        return identifier

    def ask(self, conversation: str, text: str, **fields: Any) -> list[Event]:
        """Ask a question; returns all events."""
        with self.open(conversation, "messages", {"text": text, **fields}) as events:
            return list(events)

    def go_on(self, conversation: str) -> list[Event]:
        """Continue; returns all events."""
        with self.open(conversation, "continue", {}) as events:
            return list(events)

    @contextmanager
    def open(self, conversation: str, action: str, body: Any) -> Generator[Iterator[Event], None, None]:
        """The events of a turn as they arrive. Leaving the block closes the connection."""
        connection = http.client.HTTPConnection(*self._address, timeout=50)
        try:
            response = self._request(connection, "POST", f"/conversations/{conversation}/{action}", body, {})
            assert response.status == 200, response.read()
            assert response.getheader("content-type") == "text/event-stream; charset=utf-8"
            yield read_events(response)
        finally:
            connection.close()

    def show(self, conversation: str, query: str = "") -> Any:
        """A conversation."""
        return self.get(f"/conversations/{conversation}{query}")


def read_events(response: http.client.HTTPResponse) -> Iterator[Event]:
    """The events of a stream; a comment as ("ping", None)."""
    name, data = "", ""
    for line in response:
        text = line.decode().rstrip("\n")
        if text.startswith(":"):
            yield "ping", None
        elif text.startswith("event: "):
            name = text[7:]
        elif text.startswith("data: "):
            data = text[6:]
        elif not text and name:
            yield name, json.loads(data)
            name, data = "", ""


def names(events: list[Event]) -> list[str]:
    """The names of events, neighbours that are alike once."""
    listed = [name for name, _ in events if name != "notice"]
    return [name for place, name in enumerate(listed) if not place or listed[place - 1] != name]


def join(events: list[Event], name: str) -> str:
    """The text of all events of a name."""
    return "".join(data["text"] for each, data in events if each == name)


def find(events: list[Event], name: str) -> Any:
    """The data of the only event of a name."""
    (found,) = [data for each, data in events if each == name]
    return found


def without_settings(**settings: Any) -> Settings:
    """Settings of nobody."""
    return msgspec.structs.replace(load_settings(environ={}, files=[]), **settings)


@contextmanager
def page_gateway(
    folder: Path | None = None, settings: Settings | None = None, **gateway: Any
) -> Generator[PageClient, None, None]:
    """A gateway, and a client of its page."""
    with Gateway(GatewaySettings(port=0, folder=folder, **gateway), settings or without_settings()) as opened:
        yield PageClient(opened.url, (gateway.get("keys") or ("",))[0])
