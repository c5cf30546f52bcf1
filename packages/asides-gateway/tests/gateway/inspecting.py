"""A gateway in front of a strict stage, and a reader of its inspector."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import msgspec

from asides.options import Options
from asides.settings import Settings, load_settings
from asides_gateway.embedded import Gateway
from asides_gateway.gateway_settings import GatewaySettings
from asides_stage import Stage
from asides_stage.stage import Script

CLAUDE = "anthropic:claude-opus-4-5"
DEEPSEEK = "deepseek:deepseek-v4-pro"
PROVIDER_KEY = "sk-provider-CANARY-key"
LOOK = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
_PATIENCE = 40.0


class Answer(msgspec.Struct, frozen=True):
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Inspected:
    """A gateway whose requests are looked at."""

    def __init__(self, gateway: Gateway, stage: Stage) -> None:
        self.gateway = gateway
        self.stage = stage
        self.url = gateway.url

    def send(self, method: str, path: str, body: Any = None, key: str = "", **headers: str) -> Answer:
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_PATIENCE)
        sent = {"content-type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
        if key:
            sent["authorization"] = f"Bearer {key}"
        data = body if isinstance(body, bytes | None) else msgspec.json.encode(body)
        try:
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            return Answer(
                response.status, {name.lower(): text for name, text in response.getheaders()}, response.read()
            )
        finally:
            connection.close()

    def ask(self, model: str = DEEPSEEK, *messages: Any, key: str = "", **more: Any) -> Answer:
        """Ask as a client of chat completions does."""
        body = {"model": model, "messages": [{"role": "user", "content": "What is it?"}, *messages], **more}
        return self.send("POST", "/v1/chat/completions", body, key, user_agent="openai-python/2.1 (Linux)")

    def get(self, path: str = "", key: str = "") -> Any:
        """Read from the API of the inspector."""
        answer = self.send("GET", f"/ui/api/requests{path}", key=key)
        assert answer.status == 200, answer.body
        return answer.json

    def last(self, key: str = "") -> Any:
        """The detail of the request that began last."""
        return self.get(f"/{self.get(key=key)['requests'][0]['id']}", key)

    def set_capture(self, is_on: bool, key: str = "") -> Answer:
        return self.send("PUT", "/ui/api/requests/settings", {"captures_bodies": is_on}, key)

    @contextmanager
    def follow(self, after: str = "", key: str = "", **headers: str) -> Generator[Feed]:
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_PATIENCE)
        sent = {name.replace("_", "-"): text for name, text in headers.items()}
        if key:
            sent["authorization"] = f"Bearer {key}"
        connection.request("GET", f"/ui/api/requests/events{f'?after={after}' if after else ''}", headers=sent)
        opened = connection.sock
        feed = Feed(connection.getresponse())
        try:
            yield feed
        finally:
            with suppress(OSError):  # The gateway may have ended first.
                opened.shutdown(socket.SHUT_RDWR)
            connection.close()


class Feed:
    """Server-sent events as they arrive, read by a thread."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.events: list[tuple[str, str, Any]] = []
        """The name, the id and the data of each."""
        self.text = ""
        self.is_over = False
        self._response = response
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        waiting = b""
        try:
            while data := self._response.read1(65536):
                self.text += data.decode()
                *whole, waiting = (waiting + data).split(b"\n\n")
                for block in whole:
                    fields = dict(
                        line.split(": ", 1) for line in block.decode().split("\n") if not line.startswith(":")
                    )
                    if fields:
                        event = (fields["event"], fields["id"], msgspec.json.decode(fields["data"]))
                        self.events.append(event)
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass
        self.is_over = True

    def wait(self, is_there: Callable[[Feed], bool]) -> None:
        """Wait until something has arrived."""
        until = time.monotonic() + _PATIENCE
        while not is_there(self):
            assert time.monotonic() < until, f"it did not come; {len(self.events)} events did"
            time.sleep(0.005)

    def states(self, name: str | None = None) -> list[str]:
        """The states that were told, of one request or of all."""
        return [data["state"] for event, _, data in self.events if event == "request" and name in (None, data["id"])]


@contextmanager
def inspect(script: Script, *, settings: Settings | None = None, **gateway: Any) -> Generator[Inspected]:
    """A gateway in front of a stage that plays this script."""
    with Stage(script) as stage:
        options = Options(base_url=stage.url, api_key=PROVIDER_KEY)
        values: dict[str, Any] = {"port": 0, "drain_seconds": 2.0, **gateway}
        made = GatewaySettings(**values)
        with Gateway(made, settings or load_settings(environ={}, files=[]), options=options) as running:
            yield Inspected(running, stage)
