"""What the three forms share: requests at the row's host, ids that fit a path, and laws over every form."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from asides.dialects.dialect import HttpRequest
from asides.providers.batch_facts import VendorForm
from asides.values.errors import ProtocolError
from asides_batch.vendor.forms import BatchForm, FormResponse, VendorRow, VendorStatus, find_form, parse_time, take_id

PATHS: dict[VendorForm, str] = {
    "files": "/v1/chat/completions",
    "messages": "/v1/messages",
    "contents": "/v1beta/models/some-model:generateContent",
}
for_each_form = pytest.mark.parametrize("name", list(PATHS))


def make_row(name: VendorForm, custom_id: str = "a" * 32) -> VendorRow:
    headers = {"Content-Type": "application/json", "User-Agent": "asides", "x-beta": "one"}
    url = f"https://host.example{PATHS[name]}"
    request = HttpRequest("POST", url, headers, b'{"model":"some-model","n":1}', ("x-key", ""))
    return VendorRow(custom_id, request)


def list_requests(form: BatchForm, row: VendorRow) -> list[HttpRequest]:
    lines = [form.encode_row(row)]
    status = VendorStatus("some-id", True, "ended", results=("file-1",), has_results=True)
    return [
        form.create(row, "marker", lines, "file-1"),
        form.show(row, "some-id"),
        form.cancel(row, "some-id"),
        form.list(row, None),
        form.list(row, "after"),
        *form.fetch(row, status),
    ]


@for_each_form
def test_every_request_goes_to_the_host_of_the_row_with_its_key(name: VendorForm) -> None:
    row = make_row(name)
    for request in list_requests(find_form(name), row):
        assert urlsplit(request.url).netloc == "host.example"
        assert (request.credential_header, request.headers["x-beta"]) == (("x-key", ""), "one")
        assert bool(request.body) == ("Content-Type" in request.headers)


@for_each_form
def test_a_row_is_one_line_with_its_id_and_its_body_unchanged(name: VendorForm) -> None:
    line = find_form(name).encode_row(make_row(name))
    assert b"\n" not in line
    assert b'{"model":"some-model","n":1}' in line
    assert b"a" * 32 in line


@for_each_form
@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"{}", b"\xff", b'{"id": 7}', b"<html>"])
def test_what_is_no_description_of_a_batch_is_an_error(name: VendorForm, body: bytes) -> None:
    with pytest.raises(ProtocolError):
        find_form(name).read_status(body)


@for_each_form
@pytest.mark.parametrize("line", [b"null", b"[]", b"\xff", b"{", b'"text"', b"{}"])
def test_a_line_that_is_no_result_is_an_error(name: VendorForm, line: bytes) -> None:
    with pytest.raises(ProtocolError):
        find_form(name).read_entry(line)


@for_each_form
@pytest.mark.parametrize("value", [7, [], {}, None, "", True])
def test_hostile_types_in_lists_and_results_do_no_harm(name: VendorForm, value: Any) -> None:
    form = find_form(name)
    page = {"data": [{"id": "x-1", "metadata": value, "request_counts": value, "created_at": value}]}
    page |= {"operations": [{"name": "batches/x", "metadata": {"displayName": value, "batchStats": value}}]}
    assert len(form.read_list(msgspec.json.encode(page)).batches) == 1
    assert form.read_list(msgspec.json.encode({"data": value, "operations": value})).batches == ()
    found = {"custom_id": "a", "key": "a", "result": value, "response": value, "error": value}
    outcome = form.read_entry(msgspec.json.encode(found))
    assert outcome.kind == "unreadable" or value == {}


@pytest.mark.parametrize("given", ["../x", "a/../b", "a b", "a?b", "a\nb", "/a", "a/b/c", "a" * 300])
def test_an_id_that_would_change_the_path_is_refused(given: str) -> None:
    with pytest.raises(ProtocolError):
        take_id({"id": given}, "id")


def test_the_upload_goes_to_the_known_host_whatever_the_vendor_names() -> None:
    form, row = find_form("contents"), make_row("contents")
    upload = form.upload(row, "marker", [form.encode_row(row)], 0)
    first = next(upload)
    assert urlsplit(first.url).path == "/upload/v1beta/files"
    second = upload.send(
        FormResponse({"x-goog-upload-url": "https://evil.example/upload/v1beta/files?upload_id=a%2Fb"}, b"")
    )
    assert second.url == "https://host.example/upload/v1beta/files?upload_id=a%2Fb"
    with pytest.raises(StopIteration) as end:
        upload.send(FormResponse({}, b'{"file": {"name": "files/abc"}}'))
    assert end.value.value == "files/abc"


@pytest.mark.parametrize("text", ["", "nonsense", None])
def test_a_date_that_is_none(text: str | None) -> None:
    assert parse_time(text) is None
