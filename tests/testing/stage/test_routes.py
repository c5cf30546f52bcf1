"""The answer to a request: a reply, the list of models, or an error; and the key."""

from __future__ import annotations

import pytest

from asides.testing import OpenStage, Say
from tests.testing.stage.http_client import Answer, body_of, connected, get, post, raw_socket, read_all


def test_models_and_health(stage: OpenStage) -> None:
    opened = stage(models=("a", "b"))
    assert [model["id"] for model in get(opened, "/v1/models").json["data"]] == ["a", "b"]
    assert get(opened, "/health").json["status"] == "ok"
    with raw_socket(opened, b"HEAD /health HTTP/1.1\r\nConnection: close\r\n\r\n") as client:
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
