"""Which paths belong to batches, in which dialect; and how a scene becomes the result of a row."""

from __future__ import annotations

import pytest

from asides_stage.stage.batches import BatchRow, RowKind
from asides_stage.stage.batches.find_batch_endpoint import answer_row, find_batch_endpoints, is_upload
from asides_stage.stage.http_requests import Request
from asides_stage.stage.response_plan import Ending, ResponsePlan
from asides_stage.stage.side_endpoints import Answer


@pytest.mark.parametrize(
    ("dialect", "path", "methods"),
    [
        ("openai_chat", "/v1/batches", ["POST", "GET"]),
        ("openai_chat", "/v1/files/file-1", ["GET", "DELETE"]),
        ("anthropic", "/v1/messages/batches/b/results", ["GET"]),
        ("gemini", "/v1beta/models/m:batchGenerateContent", ["POST"]),
        ("gemini", "/v1beta/batches/b:cancel", ["POST"]),
        ("anthropic", "/v1/messages", []),
        ("cohere", "/v1/batches", []),
        ("openai_chat", "/v1/batches/a/b/c", []),
    ],
)
def test_the_endpoints_of_a_path(dialect: str, path: str, methods: list[str]) -> None:
    assert [endpoint.method for endpoint, _ in find_batch_endpoints(dialect, path)] == methods


def test_an_upload_is_known_by_its_id() -> None:
    assert is_upload("/upload/v1beta/files", "upload_id=1")
    assert not is_upload("/upload/v1beta/files", "")
    assert not is_upload("/v1/files", "upload_id=1")


@pytest.mark.parametrize(
    ("status", "body", "ending", "kind"),
    [
        (200, b'{"a": 1}', "whole", "answered"),
        (400, b'{"error": {}}', "whole", "failed"),
        (200, b"<html>", "whole", "failed"),
        (200, b"\xff", "whole", "failed"),
        (200, b'{"a": 1}', "cut", "failed"),
        (None, b"", "cut", "failed"),
        (None, b"", "hang", "expired"),
    ],
)
def test_a_scene_becomes_a_result(status: int | None, body: bytes, ending: Ending, kind: RowKind) -> None:
    asked: list[Request] = []

    def answer(request: Request) -> Answer:
        asked.append(request)
        return Answer(ResponsePlan(status, {}, (body,), None, ending=ending))

    creation = Request("POST", "/v1/messages/batches", "", {"x-api-key": "k"}, b"all")
    result = answer_row(answer, creation, BatchRow("a", "/v1/messages", b"{}"))
    assert (result.id, result.kind) == ("a", kind)
    assert (asked[0].path, asked[0].body, asked[0].headers["x-api-key"]) == ("/v1/messages", b"{}", "k")
