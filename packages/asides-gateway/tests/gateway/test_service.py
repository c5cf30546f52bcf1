"""What the requests of a gateway share: what thinking they show, and settings that change while they run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asides.options import Options
from asides.relay.relay_request import RelayRequest
from asides.settings import Settings, load_settings
from asides.values.visibility import Visibility
from asides_gateway.gateway_settings import GatewaySettings
from asides_gateway.service import Service
from asides_stage import Say, Stage
from tests.gateway.http_client import MODEL, Client, ask, chat, gateway_before

SHOWN = ("raw", "summary")


def load(**tables: Any) -> Settings:
    return load_settings(environ={}, files=[], **tables)


def find_visible(settings: GatewaySettings, call_settings: Settings) -> tuple[str, ...]:
    service = Service(settings, call_settings)
    try:
        return service.builder.visibility.gateway
    finally:
        asyncio.run(service.close())


def test_thinking_is_shown_to_whoever_started_the_gateway_and_not_to_others() -> None:
    assert find_visible(GatewaySettings(), load()) == SHOWN
    assert find_visible(GatewaySettings(keys=("k",)), load()) == Visibility().gateway == ("summary",)
    assert find_visible(GatewaySettings(host="0.0.0.0", keys=("k",)), load()) == ("summary",)


def test_a_setting_about_thinking_wins() -> None:
    none = load(visibility={"gateway": ()})
    raw = load(visibility={"gateway": ("raw",)})
    for settings in (GatewaySettings(), GatewaySettings(keys=("k",))):
        assert find_visible(settings, none) == ()
        assert find_visible(settings, raw) == ("raw",)


def test_other_places_see_what_they_saw() -> None:
    service = Service(GatewaySettings(), load(visibility={"app": ("summary",)}))
    assert service.builder.visibility.app == ("summary",)
    asyncio.run(service.close())


def test_raw_thinking_over_http() -> None:
    """DeepSeek's thinking is the model's own words."""
    with Stage([Say(thinking="SECRET THOUGHT", text="42")]) as stage:
        with gateway_before(stage) as gateway:
            assert b"SECRET THOUGHT" in ask(gateway, "POST", "/v1/chat/completions", chat()).body
        with gateway_before(stage, keys=("k",)) as gateway:
            for stream in (False, True):
                answer = ask(gateway, "POST", "/v1/chat/completions", chat(stream), [("authorization", "Bearer k")])
                assert answer.status == 200
                assert b"SECRET THOUGHT" not in answer.body


def test_new_settings_hold_for_new_requests_and_leave_the_others_alone() -> None:
    """A reply that began under a route goes on after the route is gone."""
    routes = {"best": {"targets": [MODEL]}}
    slow = Say(thinking="hm", text="one two three four", piece=4, pause=0.1)
    with (
        Stage([slow], rules="lenient") as stage,
        gateway_before(stage, tables={"routes": routes}) as gateway,
        Client(gateway) as client,
    ):
        client.send("POST", "/v1/chat/completions", chat(True, model="best"))
        client.read_head()
        first = next(client.read_chunks())
        gateway.service.use(load(routes={"best": {"targets": ["openrouter:another"]}}))
        other = ask(gateway, "POST", "/v1/chat/completions", chat(model="best"))
        assert other.status == 200
        assert [each.json["model"] for each in stage.requests] == [MODEL.partition(":")[2], "another"]
        body = first + b"".join(client.read_chunks())
        assert client.ended
    assert body.endswith(b"data: [DONE]\n\n")
    assert b'"model":"best"' in body


def test_new_keys_hold_for_new_requests() -> None:
    with Stage([Say(text="42")]) as stage, gateway_before(stage, keys=("old",)) as gateway:
        assert ask(gateway, "GET", "/v1/models", headers=[("x-api-key", "old")]).status == 200
        service = gateway.service
        service.use(load(), msgspec.structs.replace(service.settings, keys=("new",)))
        assert ask(gateway, "GET", "/v1/models", headers=[("x-api-key", "old")]).status == 401
        assert ask(gateway, "GET", "/v1/models", headers=[("x-api-key", "new")]).status == 200


async def test_a_request_without_a_server() -> None:
    """A service carries a request out wherever there is an event loop."""
    with Stage([Say(text="42")]) as stage:
        service = Service(GatewaySettings(), load(), options=Options(base_url=stage.url, api_key="k"))
        body = msgspec.json.encode(chat())
        stream = service.begin(RelayRequest("", "POST", "/v1/chat/completions", body=body))
        start = await stream.start()
        answer = msgspec.json.decode(b"".join([piece async for piece in stream]))
        await stream.close()
        await service.close()
    assert start.status == 200
    assert answer["choices"][0]["message"]["content"] == "42"


@pytest.mark.parametrize(("mode", "kind"), [("store", "sqlite"), ("memory", "memory"), ("carry-only", "none")])
def test_where_state_is_kept(mode: Any, kind: str, tmp_path: Path) -> None:
    service = Service(GatewaySettings(folder=tmp_path, state_mode=mode), load())
    assert service.vault.mode == mode
    assert type(service.vault.store).__name__.lower().startswith(kind)
    asyncio.run(service.close())
    kept_nowhere = Service(GatewaySettings(folder=None, state_mode="store"), load())
    assert kept_nowhere.vault.mode == "memory"
    asyncio.run(kept_nowhere.close())
