"""Write replies as a server of chat completions does: chunks and whole documents from the same events."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from asides.dialects import find_dialect
from asides.dialects.openai_chat import dialect
from asides.dialects.openai_chat.server.write_reply import ChatWriter, write_error
from asides.providers.provider import Provider, Target
from asides.values.errors import AuthError, ContextTooLong, Overloaded, RateLimited
from asides.values.events import (
    Event,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
    Warned,
)
from asides.values.fold import fold
from asides.values.notices import Notice
from asides.values.parts import ToolCall
from asides.values.reply import Reply
from asides.values.thinking import Seal
from asides.values.usage import Usage

TARGET = Target(Provider(name="host"), "m", "https://host.test/v1")
STARTED = ReplyStarted("m", "chatcmpl-1", TARGET.origin)
USAGE = Usage(10, 7, 5, 3, 17)
STOPPED = ReplyEnded(StopReason("stop", "stop"))


def events_of(*events: Event, stop: StopReason = STOPPED.stop) -> list[Event]:
    return [STARTED, *events, ReplyEnded(stop)]


def written(events: list[Event], created: int = 0, **settings: Any) -> bytes:
    chosen: dict[str, Any] = {"model": "m", "stream": True, **settings}
    writer = ChatWriter(**chosen)
    writer.created = created
    return b"".join(writer.write([event]) for event in events)


def chunks(body: bytes) -> list[Any]:
    """The documents of a stream, which ends as it should."""
    *documents, done, rest = body.split(b"\n\n")
    assert (done, rest) == (b"data: [DONE]", b"")
    return [msgspec.json.decode(document.removeprefix(b"data: ")) for document in documents]


def deltas(body: bytes) -> list[Any]:
    return [document["choices"][0]["delta"] for document in chunks(body) if document["choices"]]


def message(body: bytes) -> Any:
    return msgspec.json.decode(body)["choices"][0]["message"]


def decoded(body: bytes) -> Reply:
    decoder = dialect.decoder(TARGET)
    events = decoder.feed(body) + decoder.finish()
    assert decoder.failure is None
    return fold(events)


FULL = events_of(
    ThinkingDelta("pl", 0, via="reasoning_content"),
    ThinkingDelta("an", 0, via="reasoning_content"),
    TextDelta("4", 1),
    TextDelta("2", 1),
    ToolCallDelta(2, "call_1", "f"),
    ToolCallDelta(2, arguments='{"a":'),
    ToolCallDelta(3, "call_2", "g", "{}"),
    ToolCallDelta(2, arguments="1}"),
    UsageReported(Usage(input=10)),
    UsageReported(USAGE),
    stop=StopReason("tool_calls", "tool_calls"),
)

# --- the forms ----------------------------------------------------------------------------------------------------


def test_a_stream() -> None:
    body = written(FULL, created=5)
    first, *_ = documents = chunks(body)
    assert first == {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 5,
        "model": "m",
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}],
    }
    assert deltas(body) == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "pl"},
        {"reasoning_content": "an"},
        {"content": "4"},
        {"content": "2"},
        {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": {"name": "f", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a":'}}]},
        {
            "tool_calls": [
                {"index": 1, "id": "call_2", "type": "function", "function": {"name": "g", "arguments": "{}"}}
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]},
        {},
    ]
    assert [document["choices"][0]["finish_reason"] for document in documents[-3:-1]] == [None, "tool_calls"]
    assert documents[-1] == {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 5,
        "model": "m",
        "choices": [],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 7,
            "total_tokens": 17,
            "prompt_tokens_details": {"cached_tokens": 3},
            "completion_tokens_details": {"reasoning_tokens": 5},
        },
    }


def test_a_whole_reply() -> None:
    assert msgspec.json.decode(written(FULL, stream=False, created=5)) == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 5,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "42",
                    "reasoning_content": "plan",
                    "tool_calls": [
                        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}},
                        {"id": "call_2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
                    ],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {
            "prompt_tokens": 10,
            "completion_tokens": 7,
            "total_tokens": 17,
            "prompt_tokens_details": {"cached_tokens": 3},
            "completion_tokens_details": {"reasoning_tokens": 5},
        },
    }


def test_a_whole_reply_appears_with_its_end() -> None:
    writer = ChatWriter(model="m", stream=False)
    assert writer.write(FULL[:-1]) == b""
    assert message(writer.write(FULL[-1:]))["content"] == "42"


@pytest.mark.parametrize("stream", [True, False])
def test_events_may_come_in_any_batches_and_nothing_follows_the_end(stream: bool) -> None:
    writer = ChatWriter(model="m", stream=stream)
    assert writer.write(FULL) == written(FULL, stream=stream)
    assert writer.write([TextDelta("more"), STOPPED]) == b""


def test_the_content_type_of_the_response() -> None:
    assert ChatWriter(model="m", stream=True).content_type == "text/event-stream"
    assert ChatWriter(model="m", stream=False).content_type == "application/json"


@pytest.mark.parametrize("stream", [True, False])
def test_a_reply_that_never_started_is_named_for_the_writers_model(stream: bool) -> None:
    reply = decoded(written([TextDelta("42"), STOPPED], model="mine", stream=stream))
    assert (reply.model, reply.text) == ("mine", "42")


@pytest.mark.parametrize("stream", [True, False])
def test_the_reply_names_its_model_and_the_writer_only_where_it_does_not(stream: bool) -> None:
    for given, model in (("theirs", "theirs"), (None, "mine")):
        body = written([ReplyStarted(given), STOPPED], model="mine", stream=stream)
        assert b'"object":"chat.completion' in body
        assert f'"model":"{model}"'.encode() in body


def test_usage_is_left_out_of_a_stream_that_did_not_ask_for_it() -> None:
    assert b"usage" not in written(FULL, include_usage=False)
    assert b"usage" in written(FULL, include_usage=False, stream=False)


@pytest.mark.parametrize("stream", [True, False])
def test_usage_that_was_not_reported_is_absent_and_zero_is_zero(stream: bool) -> None:
    assert b"usage" not in written(events_of(TextDelta("a")), stream=stream)
    body = written(events_of(UsageReported(Usage(input=0))), stream=stream)
    assert b'"usage":{"prompt_tokens":0}' in body


def test_warnings_are_not_written() -> None:
    warning = Warned(Notice("effort_mapped", "x"))
    assert written([STARTED, warning, STOPPED]) == written([STARTED, STOPPED])


def test_an_empty_reply_has_null_for_content() -> None:
    assert message(written(events_of(), stream=False)) == {"role": "assistant", "content": None}


# --- back again ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "events",
    [
        FULL,
        events_of(),
        events_of(TextDelta("  "), TextDelta("a \n"), TextDelta("")),
        events_of(ThinkingDelta("\n", via="reasoning"), ThinkingDelta(" a", via="reasoning"), TextDelta("b", 1)),
        events_of(RefusalDelta("I would "), RefusalDelta("rather not")),
        events_of(ToolCallDelta(0, "c", "f", "{broken")),
        events_of(ToolCallDelta(0, "c"), ToolCallDelta(0, name="f"), ToolCallDelta(0, arguments="{}")),
        events_of(TextDelta("a"), stop=StopReason("length", "length")),
        events_of(TextDelta("a"), stop=StopReason("content_filter", "content_filter")),
        events_of(TextDelta("a"), stop=StopReason()),
    ],
    ids=["full", "empty", "blanks", "thought", "refusal", "broken", "slow call", "length", "filter", "no reason"],
)
def test_a_written_reply_decodes_to_the_fold_of_its_events(events: list[Event], stream: bool) -> None:
    assert decoded(written(events, stream=stream)) == fold(events)


@pytest.mark.parametrize("stream", [True, False])
def test_entries_of_details_are_written_verbatim(stream: bool) -> None:
    entries = ('{"type":"reasoning.text","text":"plan","signature":"s","index":0}', '{"type":"x","data":"d","index":1}')
    seals = [
        ThoughtSealed(Seal("reasoning_details", value, TARGET.origin, entry), 0)
        for value, entry in zip(("s", "d"), entries, strict=True)
    ]
    events = events_of(ThinkingDelta("plan", 0, via="reasoning"), TextDelta("42", 1), *seals)
    body = written(events, stream=stream)
    assert all(entry.encode() in body for entry in entries)
    assert decoded(body) == fold(events)


@pytest.mark.parametrize("stream", [True, False])
def test_signatures_stay_with_the_call_or_the_message_that_had_them(stream: bool) -> None:
    carrier = '{"google":{"thought_signature":"c2ln"}}'
    seal = Seal("thought_signature", "c2ln", TARGET.origin, carrier)
    bare = Seal("thought_signature", "c2ln", TARGET.origin)
    on_call = events_of(ToolCallDelta(5, "c", "f", "{}"), ThoughtSealed(seal, 5))
    on_message = events_of(ThoughtSealed(seal, 0), TextDelta("42", 1))
    on_field = events_of(ThoughtSealed(bare, 0), TextDelta("42", 1))
    for events in (on_call, on_message, on_field):
        assert decoded(written(events, stream=stream)) == fold(events)


def test_seals_of_other_dialects_are_not_written() -> None:
    foreign = ThoughtSealed(Seal("signature", "opaque-seal", None, '{"x":"opaque-seal"}'), 0)
    without_entry = ThoughtSealed(Seal("reasoning_details", "opaque-seal"), 0)
    assert b"opaque-seal" not in written(events_of(foreign, without_entry, TextDelta("42", 1)))


@pytest.mark.parametrize("stream", [True, False])
def test_a_call_without_an_id_gets_the_id_of_the_fold(stream: bool) -> None:
    carrier = '{"google":{"thought_signature":"c2ln"}}'
    events = events_of(
        ToolCallDelta(3, None, "f", '{"a":'),
        TextDelta("x", 1),
        ToolCallDelta(3, arguments="1}"),
        ToolCallDelta(4, None, "f", '{"a":1}'),
        ThoughtSealed(Seal("thought_signature", "c2ln", TARGET.origin, carrier), 3),
        stop=StopReason("tool_calls", "tool_calls"),
    )
    first, second = fold(events).tool_calls
    assert first.id != second.id
    assert decoded(written(events, stream=stream)) == fold(events)


@pytest.mark.parametrize("stream", [True, False])
def test_an_id_that_comes_late_is_still_the_id(stream: bool) -> None:
    events = events_of(ToolCallDelta(3, None, "f", "{"), ToolCallDelta(3, "late"), ToolCallDelta(3, arguments="}"))
    assert decoded(written(events, stream=stream)).tool_calls == (ToolCall("late", "f"),)
    events = events_of(ToolCallDelta(3), ToolCallDelta(3, "late", "f", "{}"))
    assert decoded(written(events, stream=stream)).tool_calls == (ToolCall("late", "f"),)


# --- thinking -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("via", "field"),
    [
        ("reasoning", "reasoning"),
        ("thinking", "thinking"),
        ("reasoning_content", "reasoning_content"),
        (None, "mine"),
        ("content", "mine"),
        ("reasoning_details", "mine"),
    ],
)
def test_thinking_is_written_in_the_field_that_it_came_in(via: str | None, field: str) -> None:
    events = events_of(ThinkingDelta("plan", via=via), TextDelta("42", 1))
    assert {field: "plan"} in deltas(written(events, thinking_field="mine"))


def test_one_reply_has_one_field_for_thinking() -> None:
    events = events_of(ThinkingDelta("a", 0, via="reasoning"), ThinkingDelta("b", 1, via="reasoning_content"))
    assert message(written(events, stream=False)) == {"role": "assistant", "content": None, "reasoning": "a\n\nb"}


@pytest.mark.parametrize("stream", [True, False])
def test_blocks_of_thinking_are_joined_with_a_blank_line_between(stream: bool) -> None:
    events = events_of(
        ThinkingDelta(" \n", 0),
        ThinkingDelta("first", 1),
        TextDelta("4", 2),
        ThinkingDelta(" ", 3),
        ThinkingDelta("", 4),
        ThinkingDelta("\n", 5),
        ThinkingDelta("second", 5),
        ThinkingDelta("", 5),
        TextDelta("2", 6),
    )
    reply, original = decoded(written(events, stream=stream)), fold(events)
    assert reply.thinking
    assert original.thinking
    assert reply.thinking.text == original.thinking.text == "first\n\n\nsecond"
    assert reply.text == original.text == "42"


def test_a_thought_of_blanks_is_not_written() -> None:
    assert deltas(written(events_of(ThinkingDelta(" "), ThinkingDelta("\n"), TextDelta("42", 1)))) == [
        {"role": "assistant", "content": ""},
        {"content": "42"},
        {},
    ]


# --- the end ------------------------------------------------------------------------------------------------------

CALL = ToolCallDelta(1, "c", "f", "{}")


@pytest.mark.parametrize(
    ("stop", "events", "reason"),
    [
        (StopReason("stop", "stop"), [CALL], "stop"),
        (StopReason("tool_calls", "function_call"), [], "function_call"),
        (StopReason("stop", "end_turn"), [], "stop"),
        (StopReason("stop", "STOP"), [CALL], "tool_calls"),
        (StopReason("length", "max_tokens"), [], "length"),
        (StopReason("tool_calls", "tool_use"), [CALL], "tool_calls"),
        (StopReason("content_filter", "SAFETY"), [], "content_filter"),
        (StopReason("refusal", "refusal"), [], "content_filter"),
        (StopReason("refusal", "refusal"), [RefusalDelta("no"), RefusalDelta("")], "stop"),
        (StopReason("pause", "pause_turn"), [], "stop"),
        (StopReason("error", "overloaded"), [], "error"),
        (StopReason("unknown", "weird"), [], "stop"),
        (StopReason(), [], None),
    ],
)
def test_the_finish_reason(stop: StopReason, events: list[Event], reason: str | None) -> None:
    body = written(events_of(*events, stop=stop))
    assert chunks(body)[-1]["choices"][0]["finish_reason"] == reason
    whole = written(events_of(*events, stop=stop), stream=False)
    assert msgspec.json.decode(whole)["choices"][0]["finish_reason"] == reason


# --- errors and the door ------------------------------------------------------------------------------------------


def test_an_error_body() -> None:
    assert msgspec.json.decode(write_error(400, "too long", "context_length_exceeded")) == {
        "error": {
            "message": "too long",
            "type": "invalid_request_error",
            "param": None,
            "code": "context_length_exceeded",
        }
    }


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (400, "context_length_exceeded", ContextTooLong),
        (401, None, AuthError),
        (429, None, RateLimited),
        (503, None, Overloaded),
    ],
)
def test_an_error_body_reads_as_the_error_that_it_is(status: int, kind: str | None, error: type[Exception]) -> None:
    error_read = dialect.error(status, {}, dialect.write_error(status, "what happened", kind), TARGET)
    assert type(error_read) is error
    assert "what happened" in str(error_read)


def test_the_dialect_is_found_by_its_name_and_has_both_halves() -> None:
    found = find_dialect("openai_chat")
    assert found is dialect
    assert found.name == "openai_chat"
    assert found.read(b'{"model":"m","messages":[{"role":"user","content":"hi"}]}').model == "m"
    writer = found.writer(model="m", stream=False)
    assert message(writer.write([TextDelta("42"), STOPPED]))["content"] == "42"


@pytest.mark.parametrize("stream", [True, False])
def test_calls_without_an_id_have_other_ids_in_every_reply(stream: bool) -> None:
    events: list[Event] = [ToolCallDelta(0, name="f", arguments="{}"), STOPPED]
    first, second = (decoded(written(events, stream=stream)).tool_calls[0].id for _ in range(2))
    assert first != second
