"""Differences between dialects after an error, before a warning, and for invalid characters; in any chunking."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator

import pytest

import asides
from asides import dialects
from asides.dialects.document_decoder import DocumentDecoder
from asides.dialects.openai_chat.wire import find_reader
from asides.flows.exchange import ResponseReader
from asides.values.errors import AsidesError, ProtocolError
from asides.values.events import Event, ReplyStarted, TextDelta, UsageReported, Warned
from asides.values.parts import MAX_DEPTH, is_too_deep
from asides.wire.framing import Framing
from asides_stage.conformance.response_bodies import list_chunkings, read_documents, replace_documents
from tests.decoding import events_of, sse, target
from tests.fuzz.bodies import written_bodies
from tests.fuzz.mutations import Raw, list_places, write_json

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
def test_which_dialects_read_past_an_error_in_a_stream(dialect: str, counted: list[int]) -> None:
    for pieces in list_chunkings(sse(*FAILED_THEN_COUNTED[dialect], done=False)):
        events, failure = events_of(pieces, target(), dialect)
        assert "boom" in str(failure)
        assert [event.usage.output for event in events if isinstance(event, UsageReported)] == counted


def test_a_warning_starts_a_response_but_waits_for_the_start_of_a_message() -> None:
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
def test_a_document_with_invalid_characters_is_stored_unchanged(dialect: str) -> None:
    document = b'{"type": "odd", "choices": [], "text": "\xe2\x82"}'
    decoder = dialects.find_dialect(dialect).decoder(target())
    decoder.feed(b"data: " + document + b"\n\n")
    assert decoder.payloads == [document]


# --- the guard --------------------------------------------------------------------------------------------------------

_HOSTILE = {
    "a float out of range": "1e999",
    "an integer of 5,000 digits": "9" * 5000,
    "nesting that only the first step can read": "[" * 700 + "]" * 700,
    "nesting that no step can read": "[" * 5000 + "]" * 5000,
    "half a character": '"\\ud800"',
}


@pytest.mark.parametrize("hostile", _HOSTILE)
@pytest.mark.parametrize("dialect", dialects.DIALECTS)
def test_a_hostile_value_in_any_field_is_a_reply_or_an_error_of_asides(dialect: str, hostile: str) -> None:
    for body in (body for body in written_bodies() if body.dialect == dialect):
        for changed in _replace_each_value(body.data, Raw(_HOSTILE[hostile])):
            try:
                reply = asides.decode(dialect, changed)
            except AsidesError as error:
                if error.partial is None:
                    continue
                reply = error.partial
            assert reply.metadata["raw"] == reply.raw
            repr(reply)


def _replace_each_value(body: bytes, value: Raw) -> Iterator[bytes]:
    """The body, once for each kind of place in its documents, with the value there."""
    documents = read_documents(body)
    assert documents is not None
    seen: set[object] = set()
    for number, document in enumerate(documents):
        for place in list_places(document)[1:]:
            kind = (document.get("type"), tuple(step if isinstance(step, str) else "*" for step in place))
            if kind in seen:
                continue
            seen.add(kind)
            marked = copy.deepcopy(document)
            holder = marked
            for step in place[:-1]:
                holder = holder[step]
            holder[place[-1]] = value
            written = replace_documents(body, [*documents[:number], {"MARK": 1}, *documents[number + 1 :]])
            if body[:1] != b"\0":  # a frame has a checksum
                yield written.replace(b'{"MARK":1}', write_json(marked))


class _Careless(DocumentDecoder):
    dialect = "careless"

    def decode_document(self, payload: bytes, events: list[Event]) -> None:
        self.start(events)
        events.append(TextDelta(json.loads(payload)["text"], 0))

    def flush(self, events: list[Event]) -> None:
        if self.failure is None:
            raise AssertionError("a secret of the reply")


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (sse({"text": "one"}, {"no": "text"}, {"text": "two"}), KeyError),
        (sse({"text": "one"}, [], {"text": "two"}), TypeError),
        (sse({"text": "one"}), AssertionError),
    ],
    ids=lambda value: getattr(value, "__name__", "a body"),
)
def test_a_mistake_in_a_decoder_is_a_protocol_error_with_its_cause_and_what_arrived(
    body: bytes, cause: type[Exception]
) -> None:
    for pieces in list_chunkings(body):
        decoder = _Careless(target(), Framing())
        reader = ResponseReader(decoder, "example")
        for piece in pieces:
            reader.feed(piece)
        reader.finish()
        with pytest.raises(ProtocolError, match="example: a document has a form that cannot be decoded") as caught:
            reader.reply()
        assert isinstance(caught.value.__cause__, cause)
        assert "secret" not in str(caught.value)
        assert caught.value.partial is not None
        assert caught.value.partial.text == "one"


_INPUT = '{"many": 1e999}'
_CALLS = {
    "anthropic": '{"type":"message","content":[{"type":"tool_use","id":"c","name":"f","input":%s}],"stop_reason":"x"}',
    "ollama": '{"message":{"tool_calls":[{"id":"c","function":{"name":"f","arguments":%s}}]},"done":true}',
    "cohere": '{"text":"","tool_calls":[{"name":"f","parameters":%s}],"finish_reason":"COMPLETE"}',
    "bedrock": '{"output":{"message":{"content":[{"toolUse":{"toolUseId":"c","name":"f","input":%s}}]}},'
    '"stopReason":"tool_use"}',
}


@pytest.mark.parametrize("dialect", _CALLS)
def test_arguments_that_cannot_be_parsed_stay_text(dialect: str) -> None:
    reply = asides.decode(dialect, _CALLS[dialect] % _INPUT)
    (call,) = reply.tool_calls
    assert (call.name, call.arguments, call.raw_arguments) == ("f", {}, _INPUT.replace(" ", ""))
    assert "tool_arguments_invalid" in [notice.code for notice in reply.warnings]


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        ("anthropic", '{"type":"message","content":[{"type":"new","n":1e999},{"type":"text","text":"A"}]}'),
        ("bedrock", '{"output":{"message":{"content":[{"new":{"n":1e999}},{"text":"A"}]}},"stopReason":"end_turn"}'),
        ("openai_responses", '{"status":"completed","output":[{"type":"new","n":1e999}],"output_text":"A"}'),
        ("openai_responses", '{"status":"completed","output":[{"type":"message","n":1e999,"content":"A"}]}'),
        ("openai_chat", '{"choices":[{"message":{"content":"A","new":1e999},"finish_reason":"stop"}],"error":null}'),
        ("gemini", '{"candidates":[{"content":{"parts":[{"new":1e999},{"text":"A"}]},"finishReason":"STOP"}]}'),
    ],
    ids=lambda value: value if value.isidentifier() else "",
)
def test_a_number_out_of_range_in_an_unknown_place_leaves_the_answer(dialect: str, body: str) -> None:
    assert asides.decode(dialect, body).text == "A"


def test_only_so_many_warnings_are_kept() -> None:
    body = sse(*({"type": f"odd {number}"} for number in range(500)), {"type": "message_start", "message": {}})
    events, _ = events_of([body], target(), "anthropic")
    notices = [event.notice for event in events if isinstance(event, Warned)]
    assert (len(notices), notices[-1].code) == (101, "more_warnings")


def test_a_server_that_makes_up_a_field_for_every_chunk_is_read_in_linear_time() -> None:
    reader = find_reader(("reasoning",), True)
    for number in range(1000):
        reader, _ = reader.learn(f"made_up_{number}")
    assert len(reader.ignored) < 100
    reader, _ = reader.learn('a "name"')
    assert reader.decode(b'{"choices":[{"delta":{"content":"A","another":1}}]}').choices[0].delta.content == "A"


@pytest.mark.parametrize("size", [0, 600, 2_500, 20_000])
@pytest.mark.parametrize(
    "level", [("[", "]"), ('{"a":', "}"), ("[ ", " ]"), ('{"":', "}"), ('[{"a":[', "]}]")], ids=str
)
@pytest.mark.parametrize("dialect", ["openai_chat", "ollama", "cohere"])
def test_a_document_of_any_size_is_refused_where_it_is_too_deep(
    dialect: str, level: tuple[str, str], size: int
) -> None:
    opening, closing = level
    count = len(opening) - len(opening.replace("[", "").replace("{", ""))
    for levels in range((MAX_DEPTH - 4) // count, (MAX_DEPTH + 4) // count + 1):
        nested = opening * levels + "1" + closing * levels
        document = f'{{"pad":"{"x" * size}","model":"m","odd":{nested}}}'.encode()
        decoder = dialects.find_dialect(dialect).decoder(target())
        body = document + b"\n" if dialect == "ollama" else b"data: " + document + b"\n\n"
        decoder.feed(body)
        assert ("deeper than" in str(decoder.failure)) is is_too_deep(document), levels
