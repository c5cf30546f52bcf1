"""The stage's message batches: states and counts, results in any order, and what is refused."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from asides_stage import BatchScript, Fail, Hang, OpenStage, Say, Stage
from tests.testing.stage.http_client import Answer, connected

HEADERS = {"x-api-key": "sk-1", "anthropic-version": "2023-06-01"}
PATH = "/v1/messages/batches"


def send(stage: Stage, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
    with connected(stage) as connection:
        data = b"" if body is None else json.dumps(body).encode()
        connection.request(method, path, data, HEADERS if headers is None else headers)
        return Answer(connection.getresponse())


def request(name: Any, question: str = "hi", **fields: Any) -> dict[str, Any]:
    params = {"model": "claude-opus-5-5", "max_tokens": 100, "messages": [{"role": "user", "content": question}]}
    return {"custom_id": name, "params": params, **fields}


def wait(stage: Stage, name: str) -> dict[str, Any]:
    for _ in range(200):
        shown: dict[str, Any] = send(stage, "GET", f"{PATH}/{name}").json
        if shown["processing_status"] == "ended":
            return shown
        time.sleep(0.02)
    raise AssertionError("the batch does not end")


def answer(served: Any) -> Any:
    question = served.prompt.messages[-1].text
    return Fail(status=400, message="no") if "bad" in question else Hang() if "slow" in question else Say("good")


def test_counts_move_when_the_batch_has_ended(stage: OpenStage) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.3))
    created = send(opened, "POST", PATH, {"requests": [request("a"), request("b", "bad"), request("c", "slow")]}).json
    assert created["processing_status"] == "in_progress"
    assert created["request_counts"]["processing"] == 3
    assert created["results_url"] is None
    assert send(opened, "GET", f"{PATH}/{created['id']}/results").status == 404
    ended = wait(opened, created["id"])
    assert ended["request_counts"] == {"processing": 0, "succeeded": 1, "errored": 1, "canceled": 0, "expired": 1}
    assert ended["results_url"].endswith(f"{PATH}/{created['id']}/results")
    lines = send(opened, "GET", f"{PATH}/{created['id']}/results").body.splitlines()
    results = {line["custom_id"]: line["result"] for line in map(json.loads, lines)}
    assert results["a"]["message"]["content"][-1]["text"] == "good"
    assert results["b"]["error"]["error"]["type"] == "invalid_request_error"
    assert results["c"] == {"type": "expired"}


def test_results_are_in_another_order_than_requests(stage: OpenStage) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.01))
    names = [f"r{number}" for number in range(30)]
    created = send(opened, "POST", PATH, {"requests": [request(name) for name in names]}).json
    wait(opened, created["id"])
    lines = send(opened, "GET", f"{PATH}/{created['id']}/results").body.splitlines()
    found = [json.loads(line)["custom_id"] for line in lines]
    assert found != names
    assert sorted(found) == sorted(names)


@pytest.mark.parametrize(
    ("requests", "words"),
    [
        ([request("a"), request("a")], "unique"),
        ([request("has space")], "pattern"),
        ([request("x" * 65)], "pattern"),
        ([request(7)], "pattern"),
        ([{"params": {}}], "Field required"),
        ([{"custom_id": "a"}], "params"),
        ([request("a", stream=True)], "Extra inputs"),
        ([], "at least 1"),
        ([request(f"r{number}") for number in range(6)], "at most 5"),
        (None, "Field required"),
    ],
)
def test_a_wrong_list_is_refused_at_once(stage: OpenStage, requests: Any, words: str) -> None:
    opened = stage(answer, batches=BatchScript(most_requests=5))
    refused = send(opened, "POST", PATH, {} if requests is None else {"requests": requests})
    assert (refused.status, refused.json["error"]["type"]) == (400, "invalid_request_error")
    assert words in refused.json["error"]["message"]
    assert opened.batches == []


def test_a_request_that_the_rules_refuse_is_an_error_of_its_row(stage: OpenStage) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.01))
    wrong = request("a")
    wrong["params"]["messages"] = [{"role": "user", "content": []}]
    created = send(opened, "POST", PATH, {"requests": [wrong, request("b")]}).json
    assert wait(opened, created["id"])["request_counts"]["errored"] == 1


def test_the_version_is_required_and_size_is_limited(stage: OpenStage) -> None:
    opened = stage(answer, batches=BatchScript(most_bytes=100))
    assert send(opened, "GET", PATH, headers={"x-api-key": "sk-1"}).status == 400
    refused = send(opened, "POST", PATH, {"requests": [request("a")]})
    assert (refused.status, refused.json["error"]["type"]) == (413, "request_too_large")


def test_cancelling_deleting_and_lists(stage: OpenStage) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.4, cancel_seconds=0.05))
    names = [
        send(opened, "POST", PATH, {"requests": [request(f"r{number}") for number in range(20)]}).json["id"]
        for _ in range(2)
    ]
    assert send(opened, "DELETE", f"{PATH}/{names[0]}").status == 400
    time.sleep(0.1)
    assert send(opened, "POST", f"{PATH}/{names[0]}/cancel").json["processing_status"] == "canceling"
    counts = wait(opened, names[0])["request_counts"]
    assert counts["canceled"] > 0
    assert counts["canceled"] + counts["succeeded"] == 20
    page = send(opened, "GET", f"{PATH}?limit=1").json
    assert ([each["id"] for each in page["data"]], page["has_more"]) == (names[1:], True)
    assert [each["id"] for each in send(opened, "GET", f"{PATH}?after_id={names[1]}").json["data"]] == names[:1]
    assert send(opened, "DELETE", f"{PATH}/{names[0]}").json["type"] == "message_batch_deleted"
    assert send(opened, "GET", f"{PATH}/{names[0]}").status == 404
