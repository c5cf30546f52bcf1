"""Messages and Responses: what is read in one pass, or as a plain delta, gives what careful reading gives."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest

from asides.dialects import plain_row
from asides.dialects.anthropic.decode import MessagesDecoder
from asides.dialects.openai_responses.decode import ResponsesDecoder
from asides.providers.provider import Target
from asides.values.errors import ProtocolError
from asides.values.events import Event, TextDelta, ThinkingDelta
from asides.values.fold import fold
from asides.values.parts import ServerTool, Text, ToolCall, UnknownPart
from tests.decoding import target
from tests.fuzz.mutations import mutate_document, write_json


class CarefulMessages(MessagesDecoder):
    """Takes no short way for whole bodies."""

    def decode_whole(self, payload: bytes, events: list[Event]) -> bool:
        return False


class CarefulResponses(ResponsesDecoder):
    """Takes no short way for whole bodies."""

    def decode_whole(self, payload: bytes, events: list[Event]) -> bool:
        return False


Decoder = type[MessagesDecoder] | type[ResponsesDecoder]

BLOCKS: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "so é", "signature": "sig"},
    {"type": "thinking", "thinking": "unsigned"},
    {"type": "text", "text": "Hi <b> there", "citations": [{"type": "c", "place": [1, 2.50]}]},
    {"type": "text", "text": "plain"},
    {"type": "text", "text": " \n"},
    {"type": "text", "text": "<think>hm</think>ok"},
    {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1, "b": [1.50]}, "caller": {"type": "direct"}},
    {"type": "tool_use", "id": "t2", "name": "g", "input": {}, "caller": {"type": "code", "id": "q"}},
    {"type": "redacted_thinking", "data": "abc"},
    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": "x"}},
    {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "r", "u": "é"}]},
    {"type": "made_up", "x": 1},
]
ITEMS: list[dict[str, Any]] = [
    {"id": "r1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "plan"}], "encrypted_content": "e"},
    {"type": "reasoning", "id": "r2", "summary": [], "content": [{"type": "reasoning_text", "text": "raw é"}]},
    {"id": "m1", "type": "message", "content": [{"type": "output_text", "text": "Hello", "annotations": [{"a": 1}]}]},
    {
        "content": [{"type": "output_text", "text": "<think>x</think>y"}, {"type": "refusal", "refusal": "no"}],
        "id": "m2",
        "type": "message",
        "phase": "final",
    },
    {"type": "message", "id": "m3", "content": [{"type": "output_text", "text": ""}]},
    {"type": "message", "content": "bare text"},
    {"type": "function_call", "id": "fc", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'},
    {"type": "custom_tool_call", "id": "ct", "call_id": "xs_1", "name": "x_search", "input": "free"},
    {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"q": 1}},
    {"type": "shell_call", "id": "sh", "call_id": "c9", "action": {"commands": ["ls"]}},
    {"type": "made_up", "id": "o", "z": [1, 2]},
]


def draw_message(rng: random.Random) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "model": "made-up",
        "content": [dict(rng.choice(BLOCKS)) for _ in range(rng.randint(0, 5))],
        "stop_reason": rng.choice(["end_turn", "max_tokens", "tool_use", None]),
        "stop_details": rng.choice([None, {"explanation": "because"}]),
        "usage": {"input_tokens": 5, "output_tokens": 7},
    }


def draw_response(rng: random.Random) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "model": "made-up",
        "status": rng.choice(["completed", "incomplete", "failed", None]),
        "tools": rng.choice([[], [{"type": "function", "name": "f"}]]),
        "output": [dict(rng.choice(ITEMS)) for _ in range(rng.randint(0, 5))],
        "usage": {"input_tokens": 1, "output_tokens": 2},
    }


def merge_deltas(events: list[Event]) -> list[Event]:
    """Join neighbours of one block: the pieces of a text do not count, the text does."""
    merged: list[Event] = []
    for event in events:
        last: Any = merged[-1] if merged else None
        if isinstance(event, (TextDelta, ThinkingDelta)) and type(last) is type(event) and last.block == event.block:
            merged[-1] = msgspec.structs.replace(event, text=last.text + event.text)
        else:
            merged.append(event)
    return merged


def decode(decoder: MessagesDecoder | ResponsesDecoder, body: bytes) -> tuple[Any, ...]:
    events = [*decoder.feed(body), *decoder.finish()]
    return merge_deltas(events), fold(events), repr(decoder.failure), decoder.payloads, decoder.is_cut_off


TARGETS = [target(), *(Target(row, "", row.base_url, row.rule("")) for row in map(plain_row, ("anthropic",)))]
BOTH = pytest.mark.parametrize(
    ("quick", "careful", "draw"),
    [(MessagesDecoder, CarefulMessages, draw_message), (ResponsesDecoder, CarefulResponses, draw_response)],
    ids=["anthropic", "openai_responses"],
)


@BOTH
@pytest.mark.parametrize("to", TARGETS, ids=["no tags", "tags"])
def test_a_whole_body_gives_in_one_pass_what_it_gives_piece_by_piece(
    quick: Decoder, careful: Decoder, draw: Any, to: Target
) -> None:
    rng = random.Random(12)
    for _ in range(400):
        document = draw(rng)
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            document = mutate_document(rng, document)
        body = write_json(document)
        if rng.random() < 0.15:
            place = rng.randrange(len(body))
            odd = rng.choice([b"\xff", b"\xe2\x82", b"\\ud83d", b"\\udc00", b"\\", b'"', b" "])
            body = body[:place] + odd + body[place:]
        assert decode(quick(to), body) == decode(careful(to), body), body


@BOTH
@pytest.mark.parametrize(
    "more",
    [
        {"delta": 5},
        {"index": "x"},
        {"delta": {"type": "text_delta", "text": "no"}},
        {"id": None, "model": None},
        {"id": "", "model": ""},
        {"id": 5},
        {"content": None, "output": None},
        {"content": "text", "output": "text"},
        {"content": [], "output": []},
        {"content": [5], "output": [5]},
        {"content": [{"type": "text", "text": 5}], "output": [{"type": "message", "content": 5}]},
        {"usage": {"input_tokens": "5"}},
        {"error": {"message": "boom"}},
        {"type": "ping", "object": "list"},
        {"reasoning": "a thought", "output_text": "an answer"},
    ],
    ids=str,
)
def test_a_whole_body_with_an_odd_field_is_read_as_before(
    quick: Decoder, careful: Decoder, draw: Any, more: dict[str, Any]
) -> None:
    rng = random.Random(2)
    for _ in range(5):
        body = json.dumps({**draw(rng), **more}).encode()
        assert decode(quick(target()), body) == decode(careful(target()), body)


@BOTH
def test_the_usual_whole_body_is_read_in_one_pass(quick: Decoder, careful: Decoder, draw: Any) -> None:
    rng = random.Random(1)
    events: list[Event] = []
    document = draw(rng)
    while not document.get("content", document.get("output")):
        document = draw(rng)
    decoder = quick(target())
    assert decoder.decode_whole(json.dumps(document).encode(), events)
    assert events
    assert not careful(target()).decode_whole(b"{}", [])


@BOTH
@pytest.mark.parametrize(
    "body", [b"[]", b'"text"', b"{}", b'{"error":{"message":"no"}}', b'{"object":"response","type":"message"}', b"\xff"]
)
def test_another_body_is_not_read_in_one_pass(quick: Decoder, careful: Decoder, draw: Any, body: bytes) -> None:
    decoder = quick(target())
    assert not decoder.decode_whole(body, [])
    assert not decoder.payloads


def test_items_of_a_whole_response_go_back_byte_for_byte() -> None:
    items = [
        b'{ "type":"reasoning" , "id":"r", "summary":[],"encrypted_content":"e", "n": 1.50 }',
        b'{"type": "function_call","call_id":"c","name":"f","arguments":"{}", "x":"\\u00e9\xc3\xa9"}',
        b'{"type":"web_search_call", "id":"w" , "big":1.0e2}',
        b'{"type":"odd", "a" : [ 1 ]}',
    ]
    body = b'{"object":"response","model":"m","status":"completed","output":[' + b" ,".join(items) + b"]}"
    decoder = ResponsesDecoder(target())
    reply = fold([*decoder.feed(body), *decoder.finish()])
    thought, call, search, odd = reply.parts
    assert isinstance(call, ToolCall)
    assert isinstance(search, ServerTool)
    assert isinstance(odd, UnknownPart)
    stored = [thought.seals[0].entry, call.seals[0].entry, search.json, odd.json]  # type: ignore[union-attr]
    assert stored == [item.decode() for item in items]


def test_the_fields_of_a_whole_message_keep_their_order() -> None:
    message = (
        b'{"id":"m","content":[{"type":"output_text","text":"Hi","n":null}],"type":"message","x":null,"phase":"p"}'
    )
    body = b'{"object":"response","model":"m","status":"completed","output":[%b]}' % message
    decoder = ResponsesDecoder(target())
    (part,) = fold([*decoder.feed(body), *decoder.finish()]).parts
    assert isinstance(part, Text)
    entry = '{"id":"m","content":[{"type":"output_text","n":null}],"type":"message","phase":"p"}'
    assert [seal.entry for seal in part.seals] == [entry]


# --- plain deltas -----------------------------------------------------------------------------------------------------


def message_events(rng: random.Random) -> list[dict[str, Any]]:
    kinds = {
        "text": [("text_delta", "text")],
        "thinking": [("thinking_delta", "thinking"), ("signature_delta", "signature")],
        "tool_use": [("input_json_delta", "partial_json")],
        "server_tool_use": [("input_json_delta", "partial_json")],
    }
    found: list[dict[str, Any]] = [{"type": "message_start", "message": {"id": "msg_1", "model": "made-up"}}]
    for index in range(rng.randint(1, 4)):
        kind = rng.choice(list(kinds))
        found.append({"type": "content_block_start", "index": index, "content_block": {"type": kind}})
        for _ in range(rng.randint(0, 6)):
            name, field = rng.choice(kinds[kind if rng.random() < 0.9 else "text"])
            piece = rng.choice(["a", "", " é", "<think>", "</think>", '{"a":', "1}"])
            place = index if rng.random() < 0.9 else rng.randint(0, 5)
            found.append({"type": "content_block_delta", "index": place, "delta": {"type": name, field: piece}})
        if rng.random() < 0.8:
            found.append({"type": "content_block_stop", "index": index})
    return [*found, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]


_DELTAS: dict[str, tuple[str, dict[str, Any]]] = {
    "response.output_text.delta": ("m", {"content_index": 0, "logprobs": []}),
    "response.reasoning_summary_text.delta": ("r", {"summary_index": 0}),
    "response.reasoning_text.delta": ("r", {"content_index": 0}),
    "response.function_call_arguments.delta": ("f", {}),
    "response.refusal.delta": ("m", {"content_index": 1}),
}


def response_events(rng: random.Random) -> list[dict[str, Any]]:
    items = [{"type": "reasoning", "id": "r"}, {"type": "message", "id": "m"}, {"type": "function_call", "id": "f"}]
    found: list[dict[str, Any]] = [
        {"type": "response.output_item.added", "output_index": place, "item": item}
        for place, item in enumerate(items)
        if rng.random() < 0.8
    ]
    for number in range(rng.randint(0, 15)):
        kind = rng.choice(list(_DELTAS))
        own, more = _DELTAS[kind]
        name = rng.choice([own, own, own, None, "other"])
        more = {key: rng.choice([value, 1]) if key.endswith("index") else value for key, value in more.items()}
        where = {"item_id": name, "output_index": rng.choice(["rmf".index(own), None, 2])}
        piece = rng.choice(["a", "", " é", "<think>", "</think>", "\n"])
        found.append({"type": kind, "sequence_number": number, **where, **more, "delta": piece, "obfuscation": "x"})
    end = {
        "type": "response.completed",
        "response": {"id": "resp_1", "model": "m", "status": "completed", "output": []},
    }
    return [*found, end]


@pytest.mark.parametrize(
    ("make", "draw"),
    [(MessagesDecoder, message_events), (ResponsesDecoder, response_events)],
    ids=["anthropic", "openai_responses"],
)
@pytest.mark.parametrize("to", TARGETS, ids=["no tags", "tags"])
def test_a_plain_delta_gives_the_events_of_any_other(make: Decoder, draw: Any, to: Target) -> None:
    rng = random.Random(5)
    plain_count = 0
    for _ in range(300):
        documents = draw(rng)
        quick, careful = make(to), make(to)
        for decoder in (quick, careful):
            decoder.feed(b": a stream\n\n")
        for document in documents:
            changed = mutate_document(rng, document) if rng.random() < 0.1 else document
            payload = write_json(changed)
            expected: list[Event] = []
            found: list[Event] = []
            plain = read_plain(quick, payload)
            try:
                careful.decode_payload(payload, expected)
            except (ProtocolError, RecursionError):
                assert plain is None
                break
            if plain is None or not quick.decode_plain(plain, found):
                assert not found, "a delta that is refused has changed something"
                quick.decode_payload(payload, found)
            else:
                plain_count += 1
            assert found == expected, payload
        else:
            assert quick.finish() == careful.finish()
    assert plain_count > 500


def read_plain(decoder: MessagesDecoder | ResponsesDecoder, payload: bytes) -> Any:
    try:
        return cast("Callable[[bytes], Any]", decoder.plain)(payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


@pytest.mark.parametrize(
    ("make", "payload"),
    [
        (MessagesDecoder, b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a","x":1}}'),
        (MessagesDecoder, b'{"type":"content_block_delta","index":0,"x":[],"delta":{"type":"text_delta","text":"a"}}'),
        (MessagesDecoder, b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\\ud83d"}}'),
        (MessagesDecoder, b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\xff"}}'),
        (MessagesDecoder, b'{"type":"content_block_stop","index":0,"delta":{"type":"text_delta","text":"a"}}'),
        (ResponsesDecoder, b'{"type":"response.output_text.delta","delta":"a","x":1}'),
        (ResponsesDecoder, b'{"type":"response.output_text.delta","delta":"a","logprobs":[{"token":"\xff"}]}'),
        (ResponsesDecoder, b'{"type":"response.output_text.delta","delta":"\\udc00"}'),
        (ResponsesDecoder, b'{"type":"response.output_text.delta","delta":null}'),
        (ResponsesDecoder, b'{"type":"response.output_text.done","delta":"a"}'),
        (ResponsesDecoder, b'{"type":"response.output_text.delta","delta":"a","obfuscation":"\xe2\x82"}'),
    ],
)
def test_a_delta_with_anything_else_in_it_is_not_plain(make: Decoder, payload: bytes) -> None:
    assert read_plain(make(target()), payload) is None
