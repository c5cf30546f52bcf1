"""Faults that the conformance suite found in our own dialects: documents nested too deep, unknown events, a dropped
setting without a notice.
"""

from __future__ import annotations

import pytest

import asides
from asides import dialects
from asides.dialects import DIALECTS
from asides_stage.conformance.case import build_case
from tests.decoding import chunk, sse

DEEP = (b"[" * 3000, b'{"x": ' + b"[" * 3000, b"data: " + b"[" * 3000 + b"\n\n", b"[" * 3000 + b"\n")


@pytest.mark.parametrize("name", sorted(DIALECTS))
@pytest.mark.parametrize("body", DEEP, ids=["list", "field", "event", "line"])
def test_a_document_nested_too_deep_is_a_typed_error(name: str, body: bytes) -> None:
    for pieces in ([body], [body[place : place + 1] for place in range(len(body))]):
        with pytest.raises((asides.ProtocolError, asides.ConnectionLost)):
            asides.decode(name, pieces)


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_an_error_and_a_request_nested_too_deep_are_typed_errors(name: str) -> None:
    case = build_case(dialects.plain_row(name), dialect=name)
    assert isinstance(case.dialect.error(400, {}, DEEP[0], case.target), asides.BadRequest)
    with pytest.raises(asides.ConfigError):
        case.dialect.read(DEEP[0], "/v1/models/m:generateContent")


def codes(reply: asides.Reply) -> list[str]:
    return [notice.code for notice in reply.warnings]


def test_an_unknown_document_in_a_chat_stream_gives_a_warning() -> None:
    plain, last = chunk({"content": "42"}), chunk(finish="stop")
    assert codes(asides.decode("openai_chat", sse(plain, {"type": "made_up"}, last))) == ["unknown_event"]
    # Counts, and what filters say before the first word, come with an empty list of choices or with nothing else.
    others: list[dict[str, object]] = [
        {"choices": [], "prompt_filter_results": []},
        {"usage": {"prompt_tokens": 1}},
        {"choices": []},
    ]
    for known in others:
        assert codes(asides.decode("openai_chat", sse(plain, known, last))) == []


def test_an_unknown_chunk_in_a_gemini_stream_gives_a_warning() -> None:
    answer = {"candidates": [{"content": {"parts": [{"text": "42"}]}, "finishReason": "STOP"}]}
    assert codes(asides.decode("gemini", sse({"made_up": 1}, answer, done=False))) == ["unknown_event"]
    others: list[dict[str, object]] = [
        {"responseId": "r"},
        {"usageMetadata": {"promptTokenCount": 1}},
        {"modelVersion": "m"},
    ]
    for known in others:
        assert codes(asides.decode("gemini", sse(known, answer, done=False))) == []


@pytest.mark.parametrize(
    ("model", "codes"), [("moonshotai.kimi-k2.5", ["off_not_sent"]), ("amazon.nova-2-lite-v1:0", [])]
)
def test_converse_reports_that_off_cannot_be_sent_where_the_default_may_be_on(model: str, codes: list[str]) -> None:
    shown = asides.explain(f"bedrock:{model}", "?", thinking="off", base_url="http://127.0.0.1:9")
    assert [notice.code for notice in shown.notices if notice.setting == "thinking"] == codes
