"""The endpoints beside replies and lists: counted tokens, one model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides.testing import OpenStage, Say, Stage
from asides.values.model_info import ModelInfo
from tests.testing.stage.http_client import Answer, connected, get

MESSAGES = {"anthropic-version": "2023-06-01"}


def post_json(stage: Stage, path: str, body: Any, headers: dict[str, str] | None = None) -> Answer:
    with connected(stage) as connection:
        connection.request("POST", path, json.dumps(body), headers or {})
        return Answer(connection.getresponse())


# --- counted tokens ---------------------------------------------------------------------------------------------------


def test_counted_tokens_are_those_that_the_reply_reports(stage: OpenStage) -> None:
    opened = stage(Say("hi"))
    body = {"model": "any", "system": "be kind", "messages": [{"role": "user", "content": "one two three"}]}
    counted = post_json(opened, "/v1/messages/count_tokens?beta=true", body)
    reply = post_json(opened, "/v1/messages?beta=true", {**body, "max_tokens": 9})
    assert counted.json == {"input_tokens": 5}
    assert reply.json["usage"]["input_tokens"] == 5


def test_the_tokens_of_a_response_are_counted(stage: OpenStage) -> None:
    counted = post_json(stage(), "/v1/responses/input_tokens", {"model": "any", "input": "one two three"})
    assert counted.json == {"object": "response.input_tokens", "input_tokens": 3}


def test_a_request_that_cannot_be_read_is_not_counted(stage: OpenStage) -> None:
    answer = post_json(stage(), "/v1/messages/count_tokens", {"model": "any"})
    assert (answer.status, answer.json["error"]["type"]) == (400, "invalid_request_error")


# --- one model --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plain", "maker/model", "with space"])
def test_one_model_is_shown_in_the_dialect_of_the_request(stage: OpenStage, name: str) -> None:
    opened = stage(models=("other", ModelInfo(name, context=5)))
    path = f"/v1/models/{name.replace('/', '%2F').replace(' ', '%20')}"
    plain, messages = get(opened, path).json, get(opened, path, headers=MESSAGES).json
    assert (plain["object"], plain["id"]) == ("model", name)
    assert (messages["type"], messages["id"], messages["max_input_tokens"]) == ("model", name, 5)


def test_an_unknown_model_is_refused_in_the_dialect_of_the_request(stage: OpenStage) -> None:
    opened = stage(models=("a",))
    plain, messages = get(opened, "/v1/models/b"), get(opened, "/v1/models/b", headers=MESSAGES)
    assert (plain.status, plain.json["error"]["code"]) == (404, "model_not_found")
    assert (messages.status, messages.json["error"]["type"]) == (404, "not_found_error")
