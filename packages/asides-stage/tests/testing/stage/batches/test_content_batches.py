"""The stage's batches of contents: in the body and in a file, states, and what is refused."""

from __future__ import annotations

import json
import time
from typing import Any
from urllib.parse import urlsplit

import pytest

from asides_stage import BatchScript, Fail, Hang, OpenStage, Say, Stage
from tests.testing.stage.http_client import Answer, connected

HEADERS = {"x-goog-api-key": "sk-1"}
CREATE = "/v1beta/models/gemini-3-flash-preview:batchGenerateContent"


def send(stage: Stage, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
    with connected(stage) as connection:
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        connection.request(method, path, data, {**HEADERS, **(headers or {})})
        return Answer(connection.getresponse())


def content(question: str) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": [{"text": question}]}]}


def inline(*questions: str, name: str = "mine") -> dict[str, Any]:
    requests = [{"request": content(question), "metadata": {"key": question}} for question in questions]
    return {"batch": {"displayName": name, "inputConfig": {"requests": {"requests": requests}}}}


def upload(stage: Stage, data: bytes) -> str:
    start = {
        "x-goog-upload-protocol": "resumable",
        "x-goog-upload-command": "start",
        "x-goog-upload-header-content-length": str(len(data)),
        "x-goog-upload-header-content-type": "application/jsonl",
    }
    begun = send(stage, "POST", "/upload/v1beta/files", {"file": {"displayName": "in"}}, start)
    address = urlsplit(begun.headers["x-goog-upload-url"])
    end = {"x-goog-upload-offset": "0", "x-goog-upload-command": "upload, finalize"}
    done = send(stage, "POST", f"{address.path}?{address.query}", data, end)
    assert done.headers["x-goog-upload-status"] == "final"
    name: str = done.json["file"]["name"]
    return name


def wait(stage: Stage, name: str) -> dict[str, Any]:
    for _ in range(200):
        shown: dict[str, Any] = send(stage, "GET", f"/v1beta/{name}").json
        if shown.get("done"):
            return shown
        time.sleep(0.02)
    raise AssertionError("the batch does not end")


def answer(served: Any) -> Any:
    question = served.prompt.messages[-1].text
    return Fail(status=400, message="no") if "bad" in question else Hang() if "slow" in question else Say("good")


def test_requests_in_the_body_are_answered_in_the_description(stage: OpenStage) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.1))
    created = send(opened, "POST", CREATE, inline("a", "bad b")).json
    assert created["metadata"]["state"] == "BATCH_STATE_PENDING"
    assert created["metadata"]["displayName"] == "mine"
    ended = wait(opened, created["name"])
    assert ended["metadata"]["state"] == "BATCH_STATE_SUCCEEDED"
    assert ended["metadata"]["batchStats"]["failedRequestCount"] == "1"
    good, bad = ended["response"]["inlinedResponses"]["inlinedResponses"]
    assert good["metadata"] == {"key": "a"}
    assert good["response"]["candidates"][0]["content"]["parts"][0]["text"] == "good"
    assert (bad["metadata"], bad["error"]["code"]) == ({"key": "bad b"}, 3)


def test_requests_in_a_file_are_answered_in_a_file(stage: OpenStage) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.05))
    lines = [json.dumps({"key": f"k{number}", "request": content("hi")}) for number in range(5)]
    file = upload(opened, "\n".join(lines).encode())
    created = send(opened, "POST", CREATE, {"batch": {"display_name": "x", "input_config": {"file_name": file}}}).json
    output = wait(opened, created["name"])["metadata"]["output"]["responsesFile"]
    body = send(opened, "GET", f"/v1beta/{output}:download?alt=media").body
    assert sorted(json.loads(line)["key"] for line in body.splitlines()) == [f"k{number}" for number in range(5)]
    assert send(opened, "GET", f"/v1beta/{output}:download").status == 400


def test_what_expired_or_was_cancelled_has_no_output(stage: OpenStage) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0.2, cancel_seconds=0.02))
    expired = send(opened, "POST", CREATE, inline("a", "slow b")).json["name"]
    cancelled = send(opened, "POST", CREATE, inline("a", "b")).json["name"]
    assert send(opened, "POST", f"/v1beta/{cancelled}:cancel").json == {}
    for name, state in ((expired, "EXPIRED"), (cancelled, "CANCELLED")):
        ended = wait(opened, name)
        assert ended["metadata"]["state"] == f"BATCH_STATE_{state}"
        assert "output" not in ended["metadata"]


@pytest.mark.parametrize(
    "body",
    [
        {"batch": {"inputConfig": {"requests": {"requests": [{"request": content("a")}]}}}},
        {"batch": {"displayName": "x"}},
        {"batch": {"displayName": "x", "inputConfig": {"fileName": "files/none"}}},
        {"batch": {"displayName": "x", "inputConfig": {"requests": {"requests": []}}}},
        {"batch": {"displayName": "x", "inputConfig": {"requests": {"requests": [{"metadata": {}}]}}}},
        inline("a", "b", "c"),
        inline("long " * 500),
    ],
)
def test_wrong_creations_are_refused(stage: OpenStage, body: Any) -> None:
    opened = stage(answer, batches=BatchScript(most_requests=2, most_bytes=2000))
    refused = send(opened, "POST", CREATE, body)
    assert (refused.status, refused.json["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert opened.batches == []


@pytest.mark.parametrize("line", [b"nonsense", b'{"key": "a"}', b'{"request": {}}', b""])
def test_a_file_with_a_bad_line_is_refused(stage: OpenStage, line: bytes) -> None:
    opened = stage(answer)
    body = {"batch": {"displayName": "x", "inputConfig": {"fileName": upload(opened, line or b"\n")}}}
    assert send(opened, "POST", CREATE, body).status == 400


def test_the_list_has_pages_and_batches_can_be_deleted(stage: OpenStage) -> None:
    opened = stage(answer, batches=BatchScript(seconds=0))
    names = [send(opened, "POST", CREATE, inline("a", name=f"n{number}")).json["name"] for number in range(3)]
    page = send(opened, "GET", "/v1beta/batches?pageSize=2").json
    assert [each["metadata"]["displayName"] for each in page["operations"]] == ["n2", "n1"]
    rest = send(opened, "GET", f"/v1beta/batches?pageSize=2&pageToken={page['nextPageToken']}").json
    assert [each["name"] for each in rest["operations"]] == names[:1]
    assert send(opened, "DELETE", f"/v1beta/{names[0]}").json == {}
    assert send(opened, "GET", f"/v1beta/{names[0]}").status == 404
