"""The answer to a request: a reply, the list of models, or an error; and the key."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides_stage import OpenStage, Say
from tests.testing.stage.http_client import Answer, body_of, connected, get, post, raw_socket, read_all


def test_models_and_health(stage: OpenStage) -> None:
    opened = stage(models=("a", "b"))
    assert [model["id"] for model in get(opened, "/v1/models").json["data"]] == ["a", "b"]
    assert get(opened, "/health").json["status"] == "ok"
    with raw_socket(opened, b"HEAD /health HTTP/1.1\r\nHost: stage\r\nConnection: close\r\n\r\n") as client:
        head = read_all(client)
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert head.endswith(b"\r\n\r\n"), "a head and no body"


@pytest.mark.parametrize("path", ["/chat/completions", "/v1/chat/completions", "/api/openai/v4/chat/completions/"])
def test_any_prefix_of_the_path_works(stage: OpenStage, path: str) -> None:
    with connected(stage(Say("hi"))) as connection:
        connection.request("POST", path, body_of())
        assert Answer(connection.getresponse()).json["choices"][0]["message"]["content"] == "hi"


def test_unknown_paths_and_wrong_methods_are_refused(stage: OpenStage) -> None:
    opened = stage()
    missing = get(opened, "/v1/nothing")
    assert missing.status == 404
    assert "/v1/nothing" in missing.json["error"]["message"]
    wrong = get(opened, "/v1/chat/completions")
    assert (wrong.status, wrong.headers["allow"]) == (405, "POST")
    assert get(opened, "/v1/models", "DELETE").status == 405
    assert [received.problem is None for received in opened.requests] == [False, False, False]


def test_a_request_that_cannot_be_read_uses_up_no_scene(stage: OpenStage) -> None:
    opened = stage(Say("first"), Say("second"))
    for body in (b"{", b"[]", b'{"model": "x"}'):
        with connected(opened) as connection:
            connection.request("POST", "/v1/chat/completions", body)
            answer = Answer(connection.getresponse())
        assert answer.status == 400
        assert answer.json["error"]["message"]
    assert [received.served for received in opened.requests] == [None] * 3
    assert post(opened).json["choices"][0]["message"]["content"] == "first"


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}, {"x-api-key": "wrong"}]
)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/models"])
def test_a_wrong_key_is_refused(stage: OpenStage, headers: dict[str, str], path: str) -> None:
    answer = get(stage(key="secret"), path, "POST", headers)
    assert answer.status == 401
    assert answer.json["error"]["type"] == "authentication_error"
    assert "secret" not in answer.body.decode()


@pytest.mark.parametrize(
    "headers", [{"Authorization": "Bearer secret"}, {"X-API-Key": "secret"}, {"api-key": "secret"}]
)
def test_the_right_key_is_accepted(stage: OpenStage, headers: dict[str, str]) -> None:
    assert post(stage(Say("hi"), key="secret"), headers=headers).status == 200


# --- the dialect of an error ------------------------------------------------------------------------------------------

MESSAGES = {"anthropic-version": "2023-06-01"}
# A path of each dialect, and the place of the message in its errors.
ERROR_PLACES = [
    ("/v1/messages/nothing", {}, ("error", "message"), "anthropic"),
    ("/v1/nothing", MESSAGES, ("error", "message"), "anthropic"),
    ("/v1/responses/nothing/at/all", {}, ("error", "message"), "openai"),
    ("/v1/nothing", {}, ("error", "message"), "openai"),
    ("/v1beta/nothing", {}, ("error", "message"), "gemini"),
    ("/v1beta/models/m:embedContent", {}, ("error", "message"), "gemini"),
    ("/model/m/invoke", {}, ("message",), "bedrock"),
    ("/api/nothing", {}, ("error",), "ollama"),
    ("/v2/nothing", {}, ("message",), "cohere"),
]


def read_dialect_of_error(document: dict[str, Any]) -> str:
    """Return whose error this is, by the fields that clients read."""
    if document.get("type") == "error":
        return "anthropic"
    error = document.get("error")
    if isinstance(error, dict):
        return "gemini" if "status" in error else "openai"
    return "ollama" if isinstance(error, str) else "flat"


@pytest.mark.parametrize(("path", "headers", "place", "dialect"), ERROR_PLACES)
def test_an_unknown_path_is_refused_in_the_dialect_of_its_caller(
    stage: OpenStage, path: str, headers: dict[str, str], place: tuple[str, ...], dialect: str
) -> None:
    answer = get(stage(), path, "POST", headers)
    message: Any = answer.json
    for name in place:
        message = message[name]
    expected = dialect if dialect not in ("bedrock", "cohere") else "flat"
    assert (answer.status, read_dialect_of_error(answer.json)) == (404, expected)
    assert path in message


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/v1/messages", "POST"), ("/v1/messages/count_tokens", "POST"), ("/v1/responses", "POST")],
)
def test_a_wrong_method_is_refused_in_the_dialect_of_the_path(stage: OpenStage, path: str, allowed: str) -> None:
    answer = get(stage(), path, "GET")
    assert (answer.status, answer.headers["allow"]) == (405, allowed)
    assert read_dialect_of_error(answer.json) == ("anthropic" if "messages" in path else "openai")


def test_a_body_that_is_too_long_is_refused_in_the_dialect_of_the_path(stage: OpenStage) -> None:
    head = b"POST /v1/messages HTTP/1.1\r\nHost: stage\r\nContent-Length: 99999999999\r\n\r\n"
    with raw_socket(stage(), head) as client:
        received = read_all(client)
    assert received.startswith(b"HTTP/1.1 413")
    error = json.loads(received.partition(b"\r\n\r\n")[2])
    assert (error["type"], error["error"]["type"]) == ("error", "request_too_large")


@pytest.mark.parametrize(
    ("path", "headers", "name"),
    [
        ("/v1/messages", {}, "request-id"),
        ("/v1/models", MESSAGES, "request-id"),
        ("/v1/chat/completions", {}, "x-request-id"),
        ("/v1/responses", {}, "x-request-id"),
    ],
)
def test_every_answer_names_its_request_as_the_dialect_does(
    stage: OpenStage, path: str, headers: dict[str, str], name: str
) -> None:
    opened = stage()
    numbers = [get(opened, path, method, headers).headers[name] for method in ("GET", "POST", "PUT")]
    assert len(set(numbers)) == 3


def test_the_root_answers_a_head_request(stage: OpenStage) -> None:
    assert get(stage(), "/", "HEAD").status == 200
