"""Replies of other providers for real clients, in every dialect: errors inside a stream, signs of life, foreign parts,
ids, and blocks that come in turns.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from asides.dialects import DIALECTS, find_dialect
from asides.dialects.dialect import ServedRequest
from asides.dialects.gemini.server.write_reply import ContentListWriter
from asides.dialects.ollama.server.write_reply import GenerateLineWriter
from asides.dialects.server_half import CallerTool, ReplyWriter
from asides.providers.provider import Target
from asides.providers.table import plain_row
from asides.values.errors import ProviderError
from asides.values.events import (
    Event,
    PartArrived,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    UsageReported,
)
from asides.values.messages import Message, Prompt
from asides.values.parts import File, Image, ServerTool, Text, UnknownPart
from asides.values.usage import Usage, normalise_usage
from asides.wire.sse import SseReader
from asides_stage.conformance.response_bodies import Decoded, decode_pieces

NAMES = sorted(DIALECTS)
SERVED = ServedRequest(Prompt((Message("user", (Text("hi"),)),)), "m", stream=True)
CALLS = ("call_9hQvL2mXbT7sYwKdPz31RfGc", "call_4bN8cV1xZ6aS3dF7gH2jK5lQ")
END = ReplyEnded(StopReason("stop"))
REPLY: list[Event] = [
    ReplyStarted("upstream", "same-id"),
    ThinkingDelta("let me ", 0, "summary", "block"),
    ThinkingDelta("see", 0, "summary", "block"),
    TextDelta("4", 1),
    TextDelta("2", 1),
    ToolCallDelta(2, CALLS[0], "look", '{"n":'),
    ToolCallDelta(2, arguments="1}"),
    UsageReported(normalise_usage(input=10, output=5)),
    ReplyEnded(StopReason("tool_calls", "tool_calls")),
]


def make_writer(name: str, *, stream: bool = True, foreign: bool = True, tools: Any = None) -> ReplyWriter:
    writer = find_dialect(name).writer(model="m", stream=stream)
    assert isinstance(writer, ReplyWriter)
    writer.serve(SERVED, tools or {}, foreign=foreign)
    return writer


def decode(name: str, data: bytes, size: int = 0) -> Decoded:
    pieces = [data[at : at + size] for at in range(0, len(data), size)] if size else [data]
    return decode_pieces(pieces, Target(plain_row(name), "m", "http://127.0.0.1:1/v1"), find_dialect(name))


# --- errors and signs of life -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [0, 1, 4, 7])
@pytest.mark.parametrize("name", NAMES)
def test_an_error_ends_a_stream_with_the_dialects_own_form(name: str, before: int) -> None:
    writer = make_writer(name)
    written = [writer.write([event]) for event in REPLY[:before]]
    written.append(writer.write_error(529, "the model is overloaded"))
    assert written[-1]
    after = [writer.write(REPLY[before:]), writer.write_error(500, "again"), writer.write_ping()]
    assert after == [b"", b"", b""]
    decoded = decode(name, b"".join(written))
    assert isinstance(decoded.failure, ProviderError)
    assert "overloaded" in str(decoded.failure)
    if before == 4:
        assert "let me" in (decoded.reply.thinking.text if decoded.reply.thinking else "")
    assert not any(isinstance(event, ReplyEnded) for event in decoded.events)


@pytest.mark.parametrize("name", NAMES)
def test_in_place_of_a_whole_response_an_error_is_the_dialects_body(name: str) -> None:
    writer = make_writer(name, stream=False)
    assert writer.write(REPLY[:4]) == b""
    assert writer.write_error(400, "it went wrong") == find_dialect(name).write_error(400, "it went wrong")


def test_a_list_of_chunks_stays_a_list_when_it_fails() -> None:
    writer = ContentListWriter(model="m", stream=True)
    data = b"".join(
        [*(writer.write([event]) for event in REPLY[:5]), writer.write_ping(), writer.write_error(503, "busy")]
    )
    *chunks, last = json.loads(data)
    assert all("candidates" in chunk for chunk in chunks)
    assert last["error"]["code"] == 503


@pytest.mark.parametrize("size", [0, 1, 7])
@pytest.mark.parametrize("name", NAMES)
def test_signs_of_life_change_nothing(name: str, size: int) -> None:
    with_pings, without = make_writer(name), make_writer(name)
    pinged = b"".join(with_pings.write_ping() + with_pings.write([event]) for event in REPLY) + with_pings.write_ping()
    plain = b"".join(without.write([event]) for event in REPLY)
    left, right = decode(name, pinged, size), decode(name, plain)
    assert left.failure is right.failure is None
    calls = [[(call.id, call.name, call.arguments) for call in each.reply.tool_calls] for each in (left, right)]
    assert calls[0] == calls[1]
    assert left.reply.text == right.reply.text == "42"
    assert not left.reply.warnings
    if name != "bedrock":  # frames have none
        assert len(pinged) > len(plain)


@pytest.mark.parametrize("name", NAMES)
def test_a_whole_response_has_no_signs_of_life(name: str) -> None:
    assert make_writer(name, stream=False).write_ping() == b""


def test_lines_of_single_prompts_have_them_too() -> None:
    line = json.loads(GenerateLineWriter(model="m", stream=True).write_ping())
    assert (line["response"], line["done"]) == ("", False)


# --- parts, ids, counts -----------------------------------------------------------------------------------------------

FOREIGN = [
    PartArrived(ServerTool("web_search_call", "ws_1", "completed", '{"type":"web_search_call","secret":1}'), 1),
    PartArrived(UnknownPart('{"type":"made_up","secret":1}'), 2),
]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_parts_of_another_dialect_are_left_out_and_told(name: str, stream: bool) -> None:
    writer = make_writer(name, stream=stream)
    data = writer.write([ReplyStarted("m"), TextDelta("a", 0), *FOREIGN, *FOREIGN, TextDelta("b", 3), END])
    assert b"secret" not in data
    assert decode(name, data).reply.text == "ab"
    assert [notice.code for notice in writer.notices] == ["part_not_written"] * 2
    assert "web_search_call" in writer.notices[0].detail


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_of_the_model_is_written_or_told(name: str) -> None:
    writer = make_writer(name, stream=False)
    data = writer.write([TextDelta("a", 0), PartArrived(Image(data=b"picture"), 1), END])
    assert (b"cGljdHVyZQ==" in data) is not bool(writer.notices)
    assert (b"cGljdHVyZQ==" in data) is (name in ("gemini", "gemini_interactions", "ollama", "openai_responses"))
    writer = make_writer(name, stream=False)
    writer.write([PartArrived(File(data=b"sound", media_type="audio/wav"), 1), END])
    assert bool(writer.notices) is (name not in ("gemini", "gemini_interactions"))


@pytest.mark.parametrize("name", ["anthropic", "cohere", "gemini", "openai_chat", "openai_responses"])
def test_replies_of_a_server_with_one_id_for_all_get_their_own(name: str) -> None:
    writers = [make_writer(name, stream=False) for _ in range(3)]
    bodies = [writer.write(REPLY) for writer in writers]
    assert len({writer.reply_id for writer in writers}) == 3
    assert all(writer.reply_id.encode() in body for writer, body in zip(writers, bodies, strict=True))
    assert all(b"same-id" not in body for body in bodies)
    own = make_writer(name, stream=False, foreign=False)
    assert b"same-id" in own.write(REPLY)


def test_counts_that_clients_require_are_there() -> None:
    only_output: list[Event] = [TextDelta("a"), UsageReported(Usage(output=5)), END]
    chat = json.loads(make_writer("openai_chat", stream=False).write(only_output))["usage"]
    assert {"prompt_tokens", "completion_tokens", "total_tokens"} <= chat.keys()
    message = json.loads(make_writer("anthropic", stream=False).write([TextDelta("a"), END]))
    assert (message["usage"], message["stop_reason"]) == ({"input_tokens": 0, "output_tokens": 0}, "end_turn")
    cached: list[Event] = [UsageReported(normalise_usage(input=5, output=1, cached=9)), END]
    assert json.loads(make_writer("anthropic", stream=False).write(cached))["usage"]["input_tokens"] >= 0


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_an_empty_reply_is_a_reply(name: str, stream: bool) -> None:
    decoded = decode(name, make_writer(name, stream=stream).write([ReplyStarted("m"), ReplyEnded()]))
    assert decoded.failure is None
    assert decoded.reply.text == ""


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_a_refusal_is_no_answer_where_the_dialect_has_a_place_for_it(name: str, stream: bool) -> None:
    data = make_writer(name, stream=stream).write(
        [RefusalDelta("I would rather not.", 0), ReplyEnded(StopReason("refusal"))]
    )
    assert b"rather not" in data
    if name not in ("bedrock", "cohere", "gemini_interactions", "ollama"):
        assert decode(name, data).reply.text == ""


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_a_tool_has_the_callers_name_again(name: str, stream: bool) -> None:
    writer = make_writer(name, stream=stream, tools={"my_tool_1a2b": CallerTool("my.tool")})
    pieces = [ToolCallDelta(0, CALLS[0], "my_tool_1a2b", '{"a"'), ToolCallDelta(0, arguments=":1}")]
    events: list[Event] = [ReplyStarted("m"), *pieces, END]
    (call,) = decode(name, b"".join(writer.write([event]) for event in events)).reply.tool_calls
    assert (call.name, call.arguments) == ("my.tool", {"a": 1})


# --- one block at a time ----------------------------------------------------------------------------------------------


def random_reply(seed: int) -> list[Event]:
    """A reply whose blocks return and whose calls come in turns."""
    chooser = random.Random(seed)
    arguments = {block: list(json.dumps({"n": block, "text": "x" * chooser.randrange(4)})) for block in (7, 8, 9)}
    begun: set[int] = set()
    events: list[Event] = [ReplyStarted("m")]
    for _ in range(chooser.randrange(5, 60)):
        kind = chooser.randrange(4)
        if kind == 0:
            events.append(ThinkingDelta(chooser.choice("abc "), chooser.choice((0, 2)), "summary", "block"))
        elif kind == 1:
            events.append(TextDelta(chooser.choice("xyz "), chooser.choice((1, 3))))
        else:
            block = chooser.choice((7, 8, 9))
            piece = arguments[block].pop(0) if arguments[block] and block in begun else ""
            is_new = block not in begun
            call_id, name = (f"{CALLS[0]}{block}", f"f{block}") if is_new else (None, None)
            events.append(ToolCallDelta(block, call_id, name, piece))
            begun.add(block)
    events += [ToolCallDelta(block, arguments="".join(arguments[block])) for block in sorted(begun)]
    return [*events, UsageReported(normalise_usage(input=1, output=1)), END]


def list_documents(data: bytes) -> list[dict[str, Any]]:
    reader = SseReader()
    return [json.loads(document) for document in (*reader.feed(data), *reader.finish())]


def check_messages(data: bytes) -> None:
    """One block is open at a time, indexes count up, and nothing is written to a block that is not open."""
    is_open, count = False, 0
    for document in list_documents(data):
        match document["type"]:
            case "content_block_start":
                assert not is_open
                assert document["index"] == count
                is_open, count = True, count + 1
            case "content_block_delta":
                assert is_open
                assert document["index"] == count - 1
            case "content_block_stop":
                assert is_open
                assert document["index"] == count - 1
                is_open = False
            case _:
                assert not is_open


def check_responses(data: bytes) -> None:
    """Numbers count up; an item gets its deltas between its beginning and its end; the end repeats the items."""
    documents = list_documents(data)
    assert [document["sequence_number"] for document in documents] == list(range(len(documents)))
    open_items: dict[int, str] = {}
    done: dict[int, Any] = {}
    for document in documents:
        index: Any = document.get("output_index")
        match document["type"]:
            case "response.output_item.added":
                assert index == len(open_items) + len(done)
                open_items[index] = document["item"]["id"]
            case "response.output_item.done":
                assert open_items.pop(index) == document["item"]["id"]
                done[index] = document["item"]
            case _ if index is not None:
                assert open_items[index] == document["item_id"]
            case _:
                pass
    assert not open_items
    assert documents[-1]["response"]["output"] == [done[index] for index in sorted(done)]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("name", NAMES)
def test_blocks_that_come_in_turns_lose_nothing(name: str, seed: int) -> None:
    events = random_reply(seed)
    writer, at_once = make_writer(name), make_writer(name)
    data = b"".join(writer.write([event]) for event in events)
    decoded = decode(name, data)
    assert decoded.failure is None
    expected = {
        event.name: json.loads(
            "".join(
                piece.arguments for piece in events if isinstance(piece, ToolCallDelta) and piece.block == event.block
            )
            or "{}"
        )
        for event in events
        if isinstance(event, ToolCallDelta) and event.name
    }
    assert {call.name: call.arguments for call in decoded.reply.tool_calls} == expected
    assert len(decoded.reply.tool_calls) == len(expected)
    texts = sorted("".join(event.text for event in events if isinstance(event, TextDelta)))
    assert sorted(decoded.reply.text) == texts
    if name == "anthropic":
        check_messages(data)
    if name == "openai_responses":
        check_responses(data)
    assert len(at_once.write(events)) == len(data)


def test_a_response_that_was_cut_or_failed_says_so() -> None:
    cut = list_documents(make_writer("openai_responses").write([TextDelta("a"), ReplyEnded(StopReason("length"))]))
    assert cut[-1]["type"] == "response.incomplete"
    assert cut[-1]["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert cut[-1]["response"]["output"][0]["status"] == "incomplete"
    failed = list_documents(make_writer("openai_responses").write([TextDelta("a"), ReplyEnded(StopReason("error"))]))
    assert failed[-1]["type"] == "response.failed"
    assert failed[-1]["response"]["error"]["code"] == "server_error"
