"""The stage's batches over files: uploads, states, results in two files, and what is refused."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from asides_stage import BatchScript, Fail, Hang, OpenStage, Say, Stage
from tests.testing.stage.http_client import Answer, connected

KEY = {"authorization": "Bearer sk-1"}
CHAT = "/v1/chat/completions"


def send(stage: Stage, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> Answer:
    with connected(stage) as connection:
        connection.request(method, path, body, {**KEY, **(headers or {})})
        return Answer(connection.getresponse())


def upload(stage: Stage, content: bytes, purpose: str = "batch", name: str = "in.jsonl") -> Answer:
    body = (
        b'--x\r\nContent-Disposition: form-data; name="purpose"\r\n\r\n' + purpose.encode() + b"\r\n"
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="' + name.encode() + b'"\r\n\r\n'
        + content + b"\r\n--x--\r\n"
    )  # fmt: skip
    return send(stage, "POST", "/v1/files", body, {"content-type": "multipart/form-data; boundary=x"})


def row(name: str, question: str = "hi", url: str = CHAT, method: str = "POST", **fields: Any) -> bytes:
    body = {"model": "gpt-4.1", "messages": [{"role": "user", "content": question}], **fields}
    return json.dumps({"custom_id": name, "method": method, "url": url, "body": body}).encode()


def create(stage: Stage, *rows: bytes, **fields: Any) -> Answer:
    file = upload(stage, b"\n".join(rows)).json["id"]
    body = {"input_file_id": file, "endpoint": CHAT, "completion_window": "24h", **fields}
    return send(stage, "POST", "/v1/batches", json.dumps(body).encode())


def wait(stage: Stage, batch: str) -> dict[str, Any]:
    for _ in range(200):
        shown: dict[str, Any] = send(stage, "GET", f"/v1/batches/{batch}").json
        if shown["status"] in ("completed", "failed", "expired", "cancelled"):
            return shown
        time.sleep(0.02)
    raise AssertionError("the batch does not end")


def read(stage: Stage, file: str) -> list[dict[str, Any]]:
    body = send(stage, "GET", f"/v1/files/{file}/content").body
    return [json.loads(line) for line in body.splitlines()]


def test_a_batch_is_validated_then_runs_then_has_two_files(stage: OpenStage) -> None:
    opened = stage(
        lambda served: Fail(status=400) if "bad" in served.prompt.messages[-1].text else Say("good"),
        batches=BatchScript(seconds=0.3),
    )
    created = create(opened, row("a"), row("b", "bad"), row("c"), metadata={"mine": "1"}).json
    assert (created["status"], created["output_file_id"], created["metadata"]) == ("validating", None, {"mine": "1"})
    time.sleep(0.15)
    assert send(opened, "GET", f"/v1/batches/{created['id']}").json["status"] == "in_progress"
    ended = wait(opened, created["id"])
    assert (ended["status"], ended["request_counts"]) == ("completed", {"total": 3, "completed": 2, "failed": 1})
    good, bad = read(opened, ended["output_file_id"]), read(opened, ended["error_file_id"])
    assert sorted(each["custom_id"] for each in good) == ["a", "c"]
    assert good[0]["response"]["body"]["choices"][0]["message"]["content"] == "good"
    assert [(each["custom_id"], each["response"]["status_code"]) for each in bad] == [("b", 400)]
    assert opened.batches[0].answered in (("a", "c"), ("c", "a"))


def test_rows_that_hang_expire_and_have_their_code(stage: OpenStage) -> None:
    opened = stage(
        lambda served: Hang() if "slow" in served.prompt.messages[-1].text else Say("good"),
        batches=BatchScript(seconds=0.02),
    )
    ended = wait(opened, create(opened, row("a"), row("b", "slow")).json["id"])
    assert ended["status"] == "expired"
    (bad,) = read(opened, ended["error_file_id"])
    assert (bad["custom_id"], bad["response"], bad["error"]["code"]) == ("b", None, "batch_expired")


def test_a_cancelled_batch_keeps_what_was_answered(stage: OpenStage) -> None:
    opened = stage(Say("good"), batches=BatchScript(seconds=0.5, cancel_seconds=0.1))
    name = create(opened, *(row(f"r{number}") for number in range(20))).json["id"]
    time.sleep(0.2)
    assert send(opened, "POST", f"/v1/batches/{name}/cancel").json["status"] == "cancelling"
    ended = wait(opened, name)
    assert ended["status"] == "cancelled"
    counts = ended["request_counts"]
    assert 0 < counts["completed"] < 20
    assert {each["error"]["code"] for each in read(opened, ended["error_file_id"])} == {"batch_cancelled"}
    assert len(read(opened, ended["output_file_id"])) == counts["completed"]
    assert send(opened, "POST", f"/v1/batches/{name}/cancel").status in (200, 409)


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([row("a"), row("a")], "duplicate_custom_id"),
        ([row("a", url="/v1/responses")], "invalid_url"),
        ([row("a", method="GET")], "invalid_method"),
        ([b"{nonsense"], "invalid_json_line"),
        ([b'{"custom_id": "a", "method": "POST", "url": "/v1/chat/completions"}'], "missing_required_parameter"),
        ([row("a"), row("b", model="gpt-4.1-mini")], "mismatched_model"),
        ([row("a", stream=True)], "invalid_request"),
        ([row(f"r{number}") for number in range(6)], "too_many_tasks"),
        ([b""], "empty_file"),
    ],
)
def test_a_batch_with_a_bad_line_fails_as_a_whole(stage: OpenStage, rows: list[bytes], code: str) -> None:
    opened = stage(Say("good"), batches=BatchScript(seconds=0.02, most_requests=5))
    ended = wait(opened, create(opened, *rows).json["id"])
    assert ended["status"] == "failed"
    assert code in {problem["code"] for problem in ended["errors"]["data"]}
    assert (ended["output_file_id"], opened.batches[0].answered) == (None, ())


def test_wrong_uploads_and_creations_are_refused(stage: OpenStage) -> None:
    opened = stage(Say("good"), batches=BatchScript(most_bytes=1000))
    assert upload(opened, b"x" * 2000).status == 413
    assert upload(opened, b"{}", purpose="nonsense").status == 400
    assert upload(opened, b"{}", name="in.csv").status == 400
    assert create(opened, row("a"), completion_window="1h").status == 400
    assert create(opened, row("a"), endpoint="/v1/nonsense").status == 400
    assert create(opened, row("a"), input_file_id="file-none").status == 404
    assert create(opened, row("a"), metadata={"long": "x" * 600}).status == 400
    assert create(opened, row("a"), input_file_id=upload(opened, b"{}", purpose="user_data").json["id"]).status == 400
    assert send(opened, "GET", "/v1/batches/batch_none").status == 404
    assert opened.batches == []


def test_the_list_has_pages_and_the_newest_first(stage: OpenStage) -> None:
    opened = stage(Say("good"), batches=BatchScript(seconds=0))
    names = [create(opened, row("a")).json["id"] for _ in range(3)]
    page = send(opened, "GET", "/v1/batches?limit=2").json
    assert ([each["id"] for each in page["data"]], page["has_more"]) == (names[:0:-1], True)
    rest = send(opened, "GET", f"/v1/batches?limit=2&after={page['last_id']}").json
    assert ([each["id"] for each in rest["data"]], rest["has_more"]) == (names[:1], False)


def test_accounts_see_only_their_own(stage: OpenStage) -> None:
    opened = stage(Say("good"), batches=BatchScript(seconds=0))
    name = create(opened, row("a")).json["id"]
    other = {"authorization": "Bearer sk-2"}
    assert send(opened, "GET", f"/v1/batches/{name}", headers=other).status == 404
    assert send(opened, "GET", "/v1/batches", headers=other).json["data"] == []
