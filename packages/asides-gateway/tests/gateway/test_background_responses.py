"""Responses in the background, over real sockets, with the official client of OpenAI."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import openai
import pytest

from asides.options import Options
from asides.settings import load_settings
from asides_gateway.embedded import Gateway
from asides_gateway.gateway_settings import GatewaySettings
from asides_stage import Say, Stage
from asides_stage.stage import Fail
from tests.gateway.http_client import Client, Held, ask, gateway_before

_MODEL = "deepseek:deepseek-v4-pro"
_KEYS = ("a-key-of-one-0123456789", "a-key-of-two-0123456789")
_PATIENCE = 20.0


def _open(gateway: Gateway, key: str = "any") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=key, max_retries=0)


def _poll(client: openai.OpenAI, name: str) -> Any:
    ends = time.monotonic() + _PATIENCE
    while True:
        found = client.responses.retrieve(name)
        if found.status not in ("queued", "in_progress"):
            return found
        assert time.monotonic() < ends, found
        time.sleep(0.02)


@pytest.mark.parametrize(
    "model", ["deepseek:deepseek-v4-pro", "anthropic:claude-opus-4-5", "gemini:gemini-3-pro-preview"]
)
def test_it_is_answered_at_once_and_polled(model: str) -> None:
    held = Held(Say(text="Forty-two.", thinking="Six times seven."))
    with Stage(held) as stage, gateway_before(stage) as gateway, _open(gateway) as client:
        began = client.responses.create(model=model, input="6 * 7?", background=True)
        assert (began.status, began.background, began.output) == ("in_progress", True, [])
        assert client.responses.retrieve(began.id).status == "in_progress"
        with pytest.raises(openai.BadRequestError, match="in_progress"):
            client.responses.create(model=model, input="And?", previous_response_id=began.id)
        held.let()
        ended = _poll(client, began.id)
        assert (ended.status, ended.id, ended.output_text) == ("completed", began.id, "Forty-two.")
        assert ended.background is True
        assert ended.usage is not None
        assert [item.type for item in client.responses.input_items.list(began.id)] == ["message"]


def test_it_can_be_continued_and_deleted() -> None:
    scenes = [Say(text="One."), Say(text="Two.")]
    with Stage(scenes) as stage, gateway_before(stage) as gateway, _open(gateway) as client:
        began = client.responses.create(model=_MODEL, input="1?", background=True)
        _poll(client, began.id)
        then = client.responses.create(model=_MODEL, input="2?", previous_response_id=began.id, background=True)
        assert _poll(client, then.id).output_text == "Two."
        assert [message["content"] for message in stage.requests[-1].json["messages"]] == ["1?", "One.", "2?"]
        client.responses.delete(began.id)
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(began.id)


def test_it_survives_its_client_and_is_cancelled() -> None:
    held = Held(Say(text="Late."), Say(text="Never."))
    body = {"model": _MODEL, "input": "?", "background": True}
    with Stage(held) as stage, gateway_before(stage) as gateway, _open(gateway) as client:
        connection = Client(gateway)
        connection.send("POST", "/v1/responses", body)
        name = connection.read().json["id"]
        connection.socket.close()
        held.let()
        assert _poll(client, name).output_text == "Late."
        assert client.responses.cancel(name).status == "completed"
        second = client.responses.create(model=_MODEL, input="?", background=True)
        assert client.responses.cancel(second.id).status == "cancelled"
        assert client.responses.cancel(second.id).status == "cancelled"
        held.let()
        assert client.responses.retrieve(second.id).status == "cancelled"


def test_a_failure_is_told_by_its_poll() -> None:
    refusals = [Fail(status=400, body='{"error":{"message":"out of luck"}}')] * 3
    with Stage(refusals, rules="lenient") as stage, gateway_before(stage) as gateway, _open(gateway) as client:
        began = client.responses.create(model=_MODEL, input="?", background=True)
        ended = _poll(client, began.id)
        assert ended.status == "failed"
        assert ended.error is not None
        assert "out of luck" in ended.error.message


def test_only_its_owner_sees_it() -> None:
    with (
        Stage(Say(text="Mine.")) as stage,
        gateway_before(stage, keys=_KEYS) as gateway,
        _open(gateway, _KEYS[0]) as one,
        _open(gateway, _KEYS[1]) as two,
    ):
        began = one.responses.create(model=_MODEL, input="?", background=True)
        for act in (two.responses.retrieve, two.responses.cancel):
            with pytest.raises(openai.NotFoundError):
                act(began.id)
        assert _poll(one, began.id).output_text == "Mine."


@pytest.mark.parametrize(
    ("more", "state", "words"),
    [
        ({"store": False}, "memory", "stored response"),
        ({"stream": True}, "memory", "polled"),
        ({}, "carry-only", "keep reasoning state"),
    ],
)
def test_what_cannot_run_says_why(more: dict[str, Any], state: Any, words: str) -> None:
    body = {"model": _MODEL, "input": "?", "background": True, **more}
    with Stage(Say(text="Hi")) as stage, gateway_before(stage, state_mode=state) as gateway:
        answer = ask(gateway, "POST", "/v1/responses", body)
        assert answer.status == 400, answer.body
        assert words in answer.json["error"]["message"]
        assert not stage.requests


def test_the_end_of_the_gateway_is_told(tmp_path: Path) -> None:
    held = Held(Say(text="Never."))
    settings = GatewaySettings(port=0, folder=tmp_path, state_mode="store", drain_seconds=0.2)
    own = load_settings(environ={}, files=[])
    with Stage(held) as stage:
        options = Options(base_url=stage.url, api_key="sk-test")
        with Gateway(settings, own, options=options) as gateway, _open(gateway) as client:
            began = client.responses.create(model=_MODEL, input="?", background=True)
        with Gateway(settings, own, options=options) as gateway, _open(gateway) as client:
            ended = client.responses.retrieve(began.id)
        held.let()
    assert ended.status == "failed"
    assert ended.error is not None
    assert "shut down" in ended.error.message
