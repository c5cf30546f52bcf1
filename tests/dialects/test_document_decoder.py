"""What dialects differ in when a body breaks, warns or does not read: each in its own way, in any chunking."""

from __future__ import annotations

import pytest

from asides import dialects
from asides.testing.conformance.response_bodies import list_chunkings
from asides.values.events import ReplyStarted, UsageReported, Warned
from tests.decoding import events_of, sse, target

FAILED_THEN_COUNTED = {
    "openai_chat": (
        {"error": {"message": "boom", "code": 500}},
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
    ),
    "openai_responses": (
        {"type": "error", "code": "server_error", "message": "boom"},
        {"type": "response.failed", "response": {"output": [], "usage": {"input_tokens": 3, "output_tokens": 4}}},
    ),
    "anthropic": (
        {"type": "error", "error": {"type": "api_error", "message": "boom"}},
        {"type": "message_delta", "delta": {}, "usage": {"input_tokens": 3, "output_tokens": 4}},
    ),
}


@pytest.mark.parametrize(
    ("dialect", "counted"), [("openai_chat", [4]), ("openai_responses", [4]), ("anthropic", [])], ids=str
)
def test_what_is_read_behind_an_error_that_a_stream_tells(dialect: str, counted: list[int]) -> None:
    for pieces in list_chunkings(sse(*FAILED_THEN_COUNTED[dialect], done=False)):
        events, failure = events_of(pieces, target(), dialect)
        assert "boom" in str(failure)
        assert [event.usage.output for event in events if isinstance(event, UsageReported)] == counted


def test_a_warning_begins_a_response_and_waits_for_the_start_of_a_message() -> None:
    at_once = (
        dialects.find_dialect("openai_responses").decoder(target()).feed(sse({"type": "response.odd"}, done=False))
    )
    assert [type(event) for event in at_once] == [ReplyStarted, Warned]
    messages = dialects.find_dialect("anthropic").decoder(target())
    assert messages.feed(sse({"type": "odd"}, done=False)) == []
    began = messages.feed(sse({"type": "message_start", "message": {"id": "msg_1", "model": "other"}}, done=False))
    assert [type(event) for event in began] == [ReplyStarted, Warned]
    assert isinstance(began[0], ReplyStarted)
    assert began[0].model == "other"


@pytest.mark.parametrize("dialect", ["openai_chat", "openai_responses", "anthropic"])
def test_a_document_with_characters_that_do_not_read_is_kept_as_it_came(dialect: str) -> None:
    document = b'{"type": "odd", "choices": [], "text": "\xe2\x82"}'
    decoder = dialects.find_dialect(dialect).decoder(target())
    decoder.feed(b"data: " + document + b"\n\n")
    assert decoder.payloads == [document]
