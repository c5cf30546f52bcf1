"""The form of batches of contents: in the body or in a file, both spellings of states, and codes of errors."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.dialects.dialect import HttpRequest
from asides_batch.vendor.forms import FormResponse, VendorRow
from asides_batch.vendor.forms.content_form import FORM

URL = "https://host.example/v1beta/models/some-model:generateContent"


def make_row(name: str = "a") -> VendorRow:
    return VendorRow(name, HttpRequest("POST", URL, {}, b'{"contents":[]}'))


def read_status(state: str, **fields: Any) -> Any:
    metadata = {"state": state, "batchStats": {"requestCount": "5", "successfulRequestCount": "2"}}
    body = {"name": "batches/b", "metadata": {**metadata, **fields.pop("metadata", {})}, **fields}
    return FORM.read_status(msgspec.json.encode(body))


def test_a_small_batch_has_its_requests_in_the_body() -> None:
    lines = [FORM.encode_row(make_row(name)) for name in ("a", "b")]
    with pytest.raises(StopIteration) as end:
        next(FORM.upload(make_row(), "marker", lines, 10_000))
    request = FORM.create(make_row(), "marker", lines, end.value.value)
    assert request.url == "https://host.example/v1beta/models/some-model:batchGenerateContent"
    batch = msgspec.json.decode(request.body)["batch"]
    assert batch["displayName"] == "marker"
    assert batch["inputConfig"]["requests"]["requests"] == [
        {"request": {"contents": []}, "metadata": {"key": name}} for name in ("a", "b")
    ]


@pytest.mark.parametrize(("rows", "most"), [(2, 10), (101, 10_000_000)])
def test_a_larger_batch_has_a_file(rows: int, most: int) -> None:
    lines = [FORM.encode_row(make_row(str(number))) for number in range(rows)]
    upload = FORM.upload(make_row(), "marker", lines, most)
    begun = next(upload)
    assert begun.headers["X-Goog-Upload-Command"] == "start"
    sent = upload.send(FormResponse({"x-goog-upload-url": "https://host.example/upload/v1beta/files?upload_id=1"}, b""))
    assert begun.headers["X-Goog-Upload-Header-Content-Length"] == str(len(sent.body))
    assert sent.body.count(b"\n") == rows
    request = FORM.create(make_row(), "marker", lines, "files/x")
    assert msgspec.json.decode(request.body)["batch"]["inputConfig"] == {"fileName": "files/x"}


@pytest.mark.parametrize("prefix", ["BATCH_STATE_", "JOB_STATE_"])
@pytest.mark.parametrize(
    ("state", "is_ended"),
    [
        ("PENDING", False),
        ("RUNNING", False),
        *((state, True) for state in ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")),
    ],
)
def test_states(prefix: str, state: str, is_ended: bool) -> None:
    status = read_status(prefix + state)
    assert (status.id, status.is_ended, status.state, status.total, status.done) == (
        "batches/b",
        is_ended,
        state,
        5,
        2,
    )
    assert (bool(status.error), status.has_results) == (state == "FAILED", False)


def test_results_are_a_file_or_in_the_description() -> None:
    filed = read_status("BATCH_STATE_SUCCEEDED", metadata={"output": {"responsesFile": "files/batch-1"}})
    assert FORM.has_lines(filed)
    (request,) = FORM.fetch(make_row(), filed)
    assert request.url == "https://host.example/v1beta/files/batch-1:download?alt=media"
    inlined = {"inlinedResponses": {"inlinedResponses": [{"metadata": {"key": "a"}, "response": {"candidates": []}}]}}
    shown = read_status("BATCH_STATE_SUCCEEDED", done=True, response=inlined)
    assert not FORM.has_lines(shown)
    (request,) = FORM.fetch(make_row(), shown)
    assert request.url == "https://host.example/v1beta/batches/b"
    (entry,) = FORM.split(msgspec.json.encode({"name": "batches/b", "response": inlined}))
    outcome = FORM.read_entry(entry)
    assert (outcome.custom_id, outcome.kind, outcome.body) == ("a", "answered", b'{"candidates":[]}')


@pytest.mark.parametrize(("code", "status"), [(3, 400), (8, 429), (14, 503), (99, 500)])
def test_an_error_has_the_status_of_a_live_call(code: int, status: int) -> None:
    outcome = FORM.read_entry(msgspec.json.encode({"key": "a", "error": {"code": code, "message": "no"}}))
    assert (outcome.kind, outcome.status) == ("failed", status)
    assert msgspec.json.decode(outcome.body)["error"]["message"] == "no"
