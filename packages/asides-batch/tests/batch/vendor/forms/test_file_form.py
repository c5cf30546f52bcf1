"""The form of batches over files: its lines, its states, and results with their codes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.dialects.dialect import HttpRequest
from asides.values.errors import ProtocolError
from asides_batch.vendor.forms import FormResponse, ListedBatch, RowOutcome, VendorRow
from asides_batch.vendor.forms.file_form import FORM


def make_row(path: str = "/openai/v1/responses", model: str = "m") -> VendorRow:
    body = msgspec.json.encode({"model": model})
    return VendorRow("a", HttpRequest("POST", f"https://host.example{path}", {}, body))


def read(**fields: Any) -> RowOutcome:
    return FORM.read_entry(msgspec.json.encode({"id": "x", "custom_id": "a", **fields}))


def test_the_url_of_a_line_is_the_vendors_own_and_not_the_path() -> None:
    line = msgspec.json.decode(FORM.encode_row(make_row()))
    assert line == {"custom_id": "a", "method": "POST", "url": "/v1/responses", "body": {"model": "m"}}
    assert FORM.show(make_row(), "batch_1").url == "https://host.example/openai/v1/batches/batch_1"


def test_models_and_endpoints_have_batches_of_their_own() -> None:
    assert FORM.group(make_row()) != FORM.group(make_row(model="n"))
    assert FORM.group(make_row()) != FORM.group(make_row("/openai/v1/chat/completions"))


def test_another_address_has_no_batches() -> None:
    with pytest.raises(ProtocolError):
        FORM.encode_row(make_row("/v1/embeddings"))


def test_the_upload_is_a_form_with_the_purpose() -> None:
    upload = FORM.upload(make_row(), "asides-1", [b"{}", b"{}"], 0)
    request = next(upload)
    assert request.url.endswith("/openai/v1/files")
    assert b'name="purpose"\r\n\r\nbatch\r\n' in request.body
    assert b'filename="asides-1.jsonl"' in request.body
    assert b"\r\n\r\n{}\n{}\n\r\n--" in request.body
    with pytest.raises(StopIteration) as end:
        upload.send(FormResponse({}, b'{"id": "file-1"}'))
    created = msgspec.json.decode(FORM.create(make_row(), "asides-1", [], end.value.value).body)
    assert created["input_file_id"] == "file-1"
    assert created["metadata"] == {"asides_batch": "asides-1"}


@pytest.mark.parametrize(
    ("word", "is_ended"),
    [("validating", False), ("in_progress", False), ("finalizing", False), ("cancelling", False)]
    + [(word, True) for word in ("completed", "failed", "expired", "cancelled")],
)
def test_states(word: str, is_ended: bool) -> None:
    status = FORM.read_status(msgspec.json.encode({"id": "b-1", "status": word, "output_file_id": "file-o"}))
    assert (status.is_ended, status.state, status.results) == (is_ended, word, ("file-o",))
    assert bool(status.error) == (word == "failed")


def test_a_failed_batch_says_why_and_whether_it_is_only_a_limit() -> None:
    problems: list[dict[str, Any]] = [
        {"code": "token_limit_exceeded", "line": None, "message": "Enqueued token limit reached."}
    ]
    status = FORM.read_status(
        msgspec.json.encode({"id": "b", "status": "failed", "errors": {"object": "list", "data": problems}})
    )
    assert (status.error, status.is_limit) == ("Enqueued token limit reached.", True)
    problems = [{"code": "invalid_json_line", "line": 3, "message": "no JSON"}]
    status = FORM.read_status(msgspec.json.encode({"id": "b", "status": "failed", "errors": {"data": problems}}))
    assert (status.error, status.is_limit) == ("line 3: no JSON", False)


def test_results() -> None:
    good = read(response={"status_code": 200, "body": {"choices": []}})
    assert (good.kind, good.body) == ("answered", b'{"choices":[]}')
    bad = read(response={"status_code": 429, "body": {"error": {"message": "slow"}}})
    assert (bad.kind, bad.status) == ("failed", 429)
    assert read(error={"code": "batch_expired", "message": "late"}).kind == "expired"
    assert read(error={"code": "batch_cancelled", "message": "gone"}).kind == "cancelled"
    timed_out = read(error={"code": "request_timeout", "message": "timed out"})
    assert (timed_out.kind, timed_out.status) == ("failed", 500)
    assert read().kind == "unreadable"


def test_a_batch_of_ours_is_found_by_its_marker() -> None:
    batches = [
        {"id": "b-1", "metadata": {"asides_batch": "asides-1"}, "created_at": 5, "request_counts": {"total": 2}},
        {"id": "b-2", "metadata": None, "created_at": 4},
    ]
    page = FORM.read_list(msgspec.json.encode({"data": batches, "has_more": True}))
    assert page.batches == (ListedBatch("b-1", "asides-1", 2, 5), ListedBatch("b-2", None, None, 4))
    assert page.after == "b-2"
