"""The form of message batches: its list, its counts, and results with the status of a live call."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.dialects.dialect import HttpRequest
from asides_batch.vendor.forms import RowOutcome, VendorRow
from asides_batch.vendor.forms.message_form import FORM


def make_row(name: str = "a", **headers: str) -> VendorRow:
    return VendorRow(name, HttpRequest("POST", "https://host.example/v1/messages", headers, b'{"max_tokens":1}'))


def read(result: Any) -> RowOutcome:
    return FORM.read_entry(msgspec.json.encode({"custom_id": "a", "result": result}))


def test_a_batch_is_one_request_with_all_rows() -> None:
    lines = [FORM.encode_row(make_row(name)) for name in ("a", "b")]
    request = FORM.create(make_row(), "marker", lines, None)
    assert request.url == "https://host.example/v1/messages/batches"
    assert msgspec.json.decode(request.body) == {
        "requests": [{"custom_id": name, "params": {"max_tokens": 1}} for name in ("a", "b")]
    }
    assert list(FORM.upload(make_row(), "marker", lines, 0)) == []


def test_rows_with_other_betas_have_batches_of_their_own() -> None:
    assert FORM.group(make_row()) != FORM.group(make_row(**{"anthropic-beta": "x"}))


def test_the_results_come_from_the_known_host() -> None:
    ended = {"id": "msgbatch_1", "processing_status": "ended", "results_url": "https://evil.example/results"}
    status = FORM.read_status(msgspec.json.encode(ended))
    (request,) = FORM.fetch(make_row(), status)
    assert request.url == "https://host.example/v1/messages/batches/msgbatch_1/results"


@pytest.mark.parametrize(("word", "is_ended"), [("in_progress", False), ("canceling", False), ("ended", True)])
def test_states_and_counts(word: str, is_ended: bool) -> None:
    counts = {"processing": 3, "succeeded": 1, "errored": 1, "canceled": 0, "expired": 0}
    status = FORM.read_status(msgspec.json.encode({"id": "m", "processing_status": word, "request_counts": counts}))
    assert (status.is_ended, status.has_results, status.total, status.done) == (is_ended, is_ended, 5, 2)


def test_results_that_are_no_longer_kept_are_told() -> None:
    body = {"id": "m", "processing_status": "ended", "archived_at": "2026-11-01T00:00:00Z"}
    status = FORM.read_status(msgspec.json.encode(body))
    assert (status.has_results, "older" in status.error) == (False, True)


@pytest.mark.parametrize(
    ("kind", "status"),
    [("invalid_request_error", 400), ("rate_limit_error", 429), ("overloaded_error", 529), ("unheard_of", 500)],
)
def test_an_error_has_the_status_of_a_live_call(kind: str, status: int) -> None:
    error = {"type": kind, "message": "no"}
    nested, plain = (
        read({"type": "errored", "error": {"type": "error", "error": error}}),
        read({"type": "errored", "error": error}),
    )
    assert (nested.kind, nested.status) == ("failed", status)
    assert nested.body == plain.body == msgspec.json.encode({"type": "error", "error": error})


def test_results() -> None:
    assert read({"type": "succeeded", "message": {"content": []}}).body == b'{"content":[]}'
    assert read({"type": "expired"}).kind == "expired"
    assert read({"type": "canceled"}).kind == "cancelled"
    assert read({"type": "new"}).kind == "unreadable"


def test_the_list_has_times_and_sizes_and_no_names() -> None:
    counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 1)
    entry = {"id": "msgbatch_1", "created_at": "1970-01-01T00:01:40Z", "request_counts": counts}
    page = FORM.read_list(msgspec.json.encode({"data": [entry], "has_more": False}))
    (found,) = page.batches
    assert (found.marker, found.total, found.created, page.after) == (None, 5, 100.0, None)
