"""The dialect is recognised from the bytes: every example of ours, cut bodies, errors, and bodies of no dialect."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import asides
from asides.dialects import DIALECTS, find_dialect, register_temporarily
from asides.intake.detect import (
    DialectDetector,
    detect_dialect,
    detect_history,
    detect_in_pieces,
    find_part_format,
    is_content,
    is_message,
    split_formats,
)
from asides.providers.find import find_provider
from asides.values.errors import ConnectionLost, ProtocolError
from asides.values.fold import simulate
from asides.values.reply import Reply
from tests.testing.conformance.toy import TOY

_EXAMPLES = Path(__file__).parents[1] / "examples"
TOY_PLACE = "tests.testing.conformance.toy:dialect"
BODIES = sorted(path for name in ("whole.json", "stream.*") for path in _EXAMPLES.glob(f"*/*/{name}"))


def make_reply() -> Reply:
    return asides.decode(
        "openai_chat", b'{"id":"x","choices":[{"message":{"content":"42","reasoning":"r"},"finish_reason":"stop"}]}'
    )


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_the_server_half_writes_is_recognised_however_it_is_cut(dialect: str, stream: bool) -> None:
    writer = find_dialect(dialect).writer(model="m", stream=stream)
    body = writer.write(simulate(make_reply(), 3))
    assert detect_dialect(body) == dialect
    assert asides.decode(None, body).text == "42"
    detector = DialectDetector()
    for place in range(len(body)):
        detector.feed(body[place : place + 1])
    assert detector.finish() == dialect


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_error_of_each_dialect_is_read_to_its_message(dialect: str) -> None:
    body = find_dialect(dialect).write_error(429, "slow down, please")
    with pytest.raises(asides.RateLimited, match="slow down, please"):
        asides.decode(None, body, status=429)


@pytest.mark.parametrize("path", BODIES, ids=lambda path: "-".join(path.parts[-3:]))
def test_every_example_is_recognised(path: Path) -> None:
    body = path.read_bytes()
    found = detect_dialect(body)
    assert asides.decode(None, body).text == asides.decode(found, body).text
    row = path.parents[1].name
    try:
        known = find_provider(row)
    except asides.UnknownProvider:
        return
    assert known.with_dialect(found) is not None


def test_no_more_is_read_than_it_takes_and_nothing_is_lost() -> None:
    taken: list[int] = []

    def pieces() -> Iterator[bytes]:
        for number in range(5):
            taken.append(number)
            yield b'data: {"choices":[{"delta":{"content":"%d"}}]}\n\n' % number
        yield b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

    dialect, all_pieces = detect_in_pieces(pieces())
    assert (dialect, taken) == ("openai_chat", [0])
    assert asides.decode(dialect, all_pieces).text == "01234"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'HTTP/1.1 200 OK\r\n\r\n{"choices": []}', "HTTP headers"),
        (b"\x1f\x8b\x08\0", "compressed"),
        (b"<html><body>502</body></html>", "HTML or XML"),
        (b"hello", "neither JSON"),
        (b"{}", "no object with fields"),
        (b"\0\0\0\x10", "AWS frames"),
        (b"data: [DONE]\n\n", "none of them holds a JSON object"),
    ],
)
def test_a_body_that_is_no_response_says_what_it_is(body: bytes, words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        asides.decode(None, body)


def test_a_body_of_no_dialect_says_which_were_tried_and_why_each_did_not_fit() -> None:
    with pytest.raises(ProtocolError) as caught:
        detect_dialect(b'{"object": "text_completion", "choices": [{"text": "hi", "finish_reason": "stop"}]}')
    assert [name for name in DIALECTS if f"{name}: no `" not in str(caught.value)] == []
    assert "hi" not in str(caught.value).split()


def test_an_empty_body_is_a_lost_connection_as_in_a_live_call() -> None:
    with pytest.raises(ConnectionLost, match="empty"):
        asides.decode(None, b" \n")


def test_an_error_page_of_a_proxy_is_the_error_of_its_status() -> None:
    with pytest.raises(asides.ProviderError):
        asides.decode(None, b"<html>Bad Gateway</html>", status=502)


# --- hostile bodies ---------------------------------------------------------------------------------------------------

_FIELDS = (
    "type object id choices message delta content role output response candidates error status code done text "
    "event_type generation_id metadata usage finish_reason detail messageStart contentBlockDelta created_at"
).split()


def make_value(dice: random.Random, depth: int = 0) -> Any:
    words = ["message", "error", "response.x", "chat.completion", "assistant", "msg_1", "", "ping", "message-start"]
    plain: list[Any] = [None, True, 0, 1.5, *words, [], {}]
    if depth > 2 or dice.random() < 0.4:
        return dice.choice(plain)
    if dice.random() < 0.3:
        return [make_value(dice, depth + 1) for _ in range(dice.randint(0, 3))]
    return {name: make_value(dice, depth + 1) for name in dice.sample(_FIELDS, dice.randint(0, 5))}


@pytest.mark.parametrize(
    "framing", ["%s", "data: %s\n\n", "%s\n%s\n", "[%s]", "event: x\ndata: %s\n\ndata: [DONE]\n\n"]
)
def test_any_document_is_a_reply_or_one_of_our_errors_in_any_chunking(framing: str) -> None:
    dice = random.Random(framing)
    for _ in range(300):
        documents = tuple(json.dumps(make_value(dice)) for _ in range(framing.count("%s")))
        body = (framing % documents).encode()
        body = body if dice.random() < 0.7 else body[: dice.randint(0, len(body))]
        found = find_or_none((body,))
        assert find_or_none(body[place : place + 1] for place in range(len(body))) == found, body
        with contextlib.suppress(asides.AsidesError):
            asides.decode(None, body)


def find_or_none(pieces: Iterable[bytes]) -> str | None:
    try:
        return detect_in_pieces(pieces)[0]
    except asides.AsidesError:
        return None


def test_deep_documents_do_not_end_the_process() -> None:
    for text in ("[" * 100_000, '{"object":' * 100_000, '{"object":' + "[" * 900 + "]" * 900 + "}"):
        assert find_or_none((text.encode(),)) is None


def test_a_provider_with_a_dialect_of_a_third_party_speaks_that() -> None:
    body = b'{"by":"pondering-1","ponder":"so","says":"42","over":"done"}'
    with register_temporarily("toy", TOY_PLACE):
        assert asides.decode(None, body, provider=TOY).text == "42"
        with pytest.raises(ProtocolError, match="toy of your packages are never guessed"):
            asides.decode(None, body)


# --- messages ---------------------------------------------------------------------------------------------------------

PLAIN = {"role": "user", "content": "x"}
CALL = {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f"}}]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "x"}
USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]}
THINKING = {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": "s"}]}
BOTH = {"role": "assistant", "content": [{"type": "tool_use", "id": "c1"}], "reasoning_content": "x"}
ITEM = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
CONTENT = {"role": "model", "parts": [{"text": "x"}]}
CONVERSE = {"role": "user", "content": [{"text": "x"}]}
OLLAMA = {"role": "assistant", "content": "x", "thinking": "y"}
NAMELESS = {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}
COHERE = {"role": "assistant", "tool_plan": "x", "tool_calls": []}


@pytest.mark.parametrize(
    ("items", "runs"),
    [
        ([], []),
        ([PLAIN, CALL, RESULT, PLAIN], [("openai_chat", 0, 4)]),
        ([PLAIN, USE, PLAIN], [("anthropic", 0, 3)]),
        ([PLAIN, ITEM], [("openai_responses", 0, 2)]),
        ([PLAIN, CONVERSE, PLAIN], [("bedrock", 0, 3)]),
        ([PLAIN, OLLAMA], [("ollama", 0, 2)]),
        ([PLAIN, NAMELESS], [("ollama", 0, 2)]),
        ([PLAIN, COHERE, RESULT], [("cohere", 0, 2), ("openai_chat", 2, 1)]),
        ([PLAIN, CONTENT, CONTENT, PLAIN], [("openai_chat", 0, 1), ("gemini", 1, 2), ("openai_chat", 3, 1)]),
        ([CALL, RESULT, USE, PLAIN, ITEM], [("openai_chat", 0, 2), ("anthropic", 2, 2), ("openai_responses", 4, 1)]),
        ([CALL, CONVERSE], [("openai_chat", 0, 1), ("bedrock", 1, 1)]),
        # Written for a host of chat completions.
        ([CALL, RESULT, THINKING], [("openai_chat", 0, 3)]),
        ([CALL, BOTH, USE], [("openai_chat", 0, 3)]),
    ],
)
def test_each_run_has_one_format(items: list[Any], runs: list[Any]) -> None:
    assert [(form, place, len(run)) for form, place, run in split_formats(items)] == runs
    assert [item for _, _, run in split_formats(items, 7) for item in run] == items


# --- histories and single dicts ---------------------------------------------------------------------------------------

CACHED = {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]}


@pytest.mark.parametrize(
    ("items", "fields", "list_name", "preferred", "form"),
    [
        ([PLAIN, CALL, RESULT], {}, "messages", "anthropic", "openai_chat"),
        ([PLAIN, USE], {}, "messages", "openai_chat", "anthropic"),
        ([PLAIN, ITEM], {}, "messages", "openai_chat", "openai_responses"),
        ([PLAIN], {"asides": 1}, "messages", "openai_chat", "asides"),
        ([{"role": "user", "parts": [{"type": "text", "text": "x"}]}], {}, "messages", "openai_chat", "asides"),
        ([CONTENT], {}, "messages", "openai_chat", "gemini"),
        ([PLAIN], {}, "contents", "openai_chat", "gemini"),
        ([PLAIN], {"model": "m"}, "input", "openai_chat", "openai_responses"),
        ([PLAIN], {"system": "x"}, "messages", "openai_chat", "anthropic"),
        ([PLAIN], {}, "messages", "openai_responses", "openai_responses"),
        ([PLAIN], {"model": "m"}, "messages", "openai_responses", "openai_chat"),
        # Hosts of chat completions accept cache breakpoints too.
        ([CACHED], {}, "messages", "openai_chat", "anthropic"),
        ([CACHED, CALL], {}, "messages", "openai_chat", "openai_chat"),
    ],
)
def test_a_history_has_the_format_of_its_marks_and_of_the_object_around_it(
    items: list[Any], fields: Any, list_name: str, preferred: str, form: str
) -> None:
    assert detect_history(items, fields, list_name, preferred) == form


@pytest.mark.parametrize(
    ("part", "form"),
    [
        ({"type": "text", "text": "x"}, "anthropic"),
        ({"type": "image", "source": {"type": "url", "url": "https://x"}}, "anthropic"),
        ({"type": "image_url", "image_url": {"url": "https://x"}}, "openai_chat"),
        ({"type": "input_text", "text": "x"}, "openai_chat"),
        ({"inlineData": {"mimeType": "image/png", "data": ""}}, "gemini"),
    ],
)
def test_a_part_on_its_own_has_a_format(part: dict[str, Any], form: str) -> None:
    assert find_part_format(part) == form
    assert is_content(part)
    assert is_message(part)
    assert not is_message({**part, "usage": {}})
