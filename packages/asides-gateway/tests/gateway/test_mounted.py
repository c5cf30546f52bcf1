"""A gateway inside an application of FastAPI or Starlette, on a real uvicorn."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI
from openai import OpenAI
from starlette.applications import Starlette
from starlette.routing import Mount

import asides_gateway
from asides.options import Options
from asides.settings import load_settings
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.mounted import MountedGateway
from asides_stage import Hang, Say, Stage
from tests.gateway.http_client import Answer, Client, chat, wait_for

KEY = "sk-gateway-0123456789"


class Served:
    """Where an application answers."""

    def __init__(self, url: str) -> None:
        self.url = url


@contextmanager
def serve(application: Any, **options: Any) -> Generator[Served, None, None]:
    """Run an application on uvicorn, as people do."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(application, log_config=None, **options))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            assert wait_for(lambda: server.started)
            yield Served(f"http://127.0.0.1:{listening.getsockname()[1]}")
        finally:
            server.should_exit = True
            thread.join(20)
            assert not thread.is_alive()


def make_gateway(stage: Stage, **settings: Any) -> MountedGateway:
    options = Options(base_url=stage.url, api_key="sk-upstream")
    given: dict[str, Any] = {"keys": (KEY,), **settings}
    return asides_gateway.app(GatewaySettings(**given), load_settings(environ={}, files=[]), options=options)


def ask(served: Served, method: str, path: str, body: object = None, *, key: str = KEY) -> Answer:
    headers = [("authorization", f"Bearer {key}"), ("content-type", "application/json")]
    with Client(served) as client:  # type: ignore[arg-type] # all that it needs is the URL
        return client.ask(method, path, body, headers)


def mount_in_fastapi(gateway: MountedGateway) -> Any:
    application = FastAPI(lifespan=gateway.lifespan)
    application.mount("/llm", gateway)

    @application.get("/own")
    def answer() -> str:
        return "own"

    return application


def mount_in_starlette(gateway: MountedGateway) -> Any:
    return Starlette(routes=[Mount("/llm", gateway)], lifespan=gateway.lifespan)


@pytest.mark.parametrize("mount", [mount_in_fastapi, mount_in_starlette])
@pytest.mark.parametrize("http", ["httptools", "h11"])
def test_an_official_client_talks_to_a_mounted_gateway(mount: Any, http: str) -> None:
    with (
        Stage(Say(thinking="hm", text="forty-two")) as stage,
        serve(mount(make_gateway(stage)), http=http) as served,
        OpenAI(base_url=f"{served.url}/llm/v1", api_key=KEY, max_retries=0) as client,
    ):
        model, question = "deepseek:deepseek-v4-pro", [{"role": "user", "content": "?"}]
        whole: Any = client.chat.completions.create(model=model, messages=question)  # type: ignore[arg-type]
        assert whole.choices[0].message.content == "forty-two"
        stream: Any = client.chat.completions.create(model=model, messages=question, stream=True)  # type: ignore[arg-type]
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices) == "forty-two"


def test_its_paths_are_below_its_root(tmp_path: Any) -> None:
    with Stage(Say(text="42")) as stage, serve(mount_in_fastapi(make_gateway(stage, folder=tmp_path))) as served:
        assert ask(served, "GET", "/own").body == b'"own"'
        assert ask(served, "GET", "/llm/healthz").json == {"status": "alive"}
        assert ask(served, "GET", "/v1/models").status == 404
        assert ask(served, "GET", "/llm/ui").headers["location"] == "/llm/ui/"
        assert ask(served, "GET", "/llm/ui/app.js").status == 200
        assert ask(served, "GET", "/llm/ui/api/session").json["needs_key"]
        assert ask(served, "GET", "/llm/ui/api/session", key="wrong").status == 401
        assert ask(served, "POST", "/llm/v1/chat/completions", chat()).status == 200
        assert ask(served, "GET", "/llm/v1/%6dodels").status == 404
        told = ask(served, "GET", "/llm/ui/api/requests").json["requests"]
        assert [each["path"] for each in told] == ["/v1/%6dodels", "/v1/chat/completions"]
        detail = ask(served, "GET", f"/llm/ui/api/requests/{told[1]['id']}").json
        assert f"{served.url}/llm/v1/" in detail["curl"]


def test_a_root_path_of_the_server_is_no_part_of_its_paths() -> None:
    """A proxy in front takes the prefix away, and uvicorn is told of it."""
    with Stage(Say(text="42")) as stage, serve(make_gateway(stage), root_path="/proxied") as served:
        assert ask(served, "POST", "/v1/chat/completions", chat()).status == 200
        assert ask(served, "GET", "/ui").headers["location"] == "/proxied/ui/"


def test_a_client_that_leaves_ends_the_request_to_the_provider() -> None:
    with Stage([Hang()]) as stage, serve(mount_in_fastapi(make_gateway(stage))) as served:
        with Client(served) as client:  # type: ignore[arg-type]
            client.send("POST", "/llm/v1/chat/completions", chat(True), [("authorization", f"Bearer {KEY}")])
            assert stage.wait_until(lambda: len(stage.requests) == 1, 30)
        assert stage.wait_until(lambda: stage.closed_early == 1, 30)


def test_without_its_lifespan_it_says_what_to_do() -> None:
    application = FastAPI()
    with Stage() as stage:
        application.mount("/llm", make_gateway(stage))
        with serve(application) as served:
            answer = ask(served, "POST", "/llm/v1/chat/completions", chat())
    assert answer.status == 503
    assert "lifespan=gateway.lifespan" in answer.json["error"]["message"]


def test_a_gateway_that_cannot_start_stops_its_server() -> None:
    gateway = asides_gateway.app(GatewaySettings(host="0.0.0.0"), load_settings(environ={}, files=[]))
    server = uvicorn.Server(uvicorn.Config(gateway, log_config=None, port=0))
    with pytest.raises(SystemExit):
        server.run()


async def test_without_keys_it_answers_this_machine_only() -> None:
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    gateway = asides_gateway.app(None, load_settings(environ={}, files=[]))
    async with gateway.lifespan():
        for client, status in ((("127.0.0.1", 1), 200), (("10.0.0.7", 1), 401), (None, 401)):
            scope = {"type": "http", "method": "GET", "path": "/healthz", "raw_path": b"/healthz", "query_string": b""}
            await gateway({**scope, "headers": [(b"host", b"localhost")], "client": client}, receive, send)
            assert sent[-2]["status"] == status


def test_it_has_no_websockets() -> None:
    upgrade = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ]
    with (
        Stage() as stage,
        serve(mount_in_fastapi(make_gateway(stage))) as served,
        Client(served) as client,  # type: ignore[arg-type]
    ):
        client.send("GET", "/llm/v1/responses", None, upgrade)
        assert client.read_head()[0] == 426


def test_the_server_around_it_ends_while_replies_are_under_way() -> None:
    words = " ".join(f"word{number}" for number in range(30))
    with Stage(Say(text=words, pause=0.02)) as stage, serve(mount_in_fastapi(make_gateway(stage))) as served:
        client = Client(served)  # type: ignore[arg-type]
        client.send("POST", "/llm/v1/chat/completions", chat(True), [("authorization", f"Bearer {KEY}")])
        client.read_head()
        time.sleep(0.1)
    with client:
        assert b"word29" in b"".join(client.read_chunks())
