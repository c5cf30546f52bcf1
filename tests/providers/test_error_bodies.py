"""Wrappers around the body of an error hide nothing, and no body costs much time."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.providers.error_bodies import list_error_messages
from asides.providers.provider_errors import from_status
from asides.providers.refusals import read_rejection
from asides.values.notices import escape_controls
from asides.values.rejections import KINDS
from tests.providers.refusal_bodies import (
    DIALECTS,
    ORDINARY,
    SPEAKING,
    WRAPPERS,
    classify,
    claude,
    encode,
    google,
    openai,
    read_error,
)


@pytest.mark.parametrize("name", WRAPPERS)
def test_a_wrapper_hides_no_kind_and_its_text_shows_the_words_inside(name: str) -> None:
    wrong: list[object] = []
    for kind, _status, body in SPEAKING:
        wrapped = encode(WRAPPERS[name](body))
        error = from_status(400, provider="example", message="", body=wrapped)
        if error.kind != kind:
            wrong.append((kind, error.kind, wrapped))
    assert wrong == []


def test_wrappers_in_wrappers_hide_no_kind() -> None:
    rng = random.Random(7)
    wrong: list[object] = []
    for kind, _status, body in SPEAKING:
        for _ in range(4):
            names = rng.choices([*WRAPPERS], k=rng.randint(2, 3))
            wrapped = body
            for name in names:
                wrapped = WRAPPERS[name](wrapped)
            if (found := classify(encode(wrapped), status=rng.choice((400, 429, 502)))) != kind:
                wrong.append((kind, found, names, body))
    assert wrong == []


@pytest.mark.parametrize("escapes", [False, True])
def test_quotes_in_a_body_that_was_written_as_python_bytes_hide_no_kind(escapes: bool) -> None:
    body = json.dumps(claude('messages: Unexpected role "system". The API accepts a top-level `system` parameter.'))
    shown = repr(body.encode()) if escapes else f"b'{body}'"
    assert classify(f"litellm.BadRequestError: AnthropicException - {shown}") == "system_position"


def test_wrappers_give_no_kind_to_ordinary_errors() -> None:
    wrong = [
        (name, found, body)
        for name, wrap in WRAPPERS.items()
        for status, body in ORDINARY
        if body and (found := classify(encode(wrap(body)), status=status)) is not None
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (
            WRAPPERS["router"](google("Corrupted thought signature.")),
            "Provider returned error: Corrupted thought signature",
        ),
        (
            {
                "error": {
                    "message": "Provider returned error",
                    "code": 400,
                    "metadata": {"raw": "the key sk-abcdefgh12 is bad"},
                }
            },
            "Provider returned error: the key *** is bad",
        ),
        (WRAPPERS["google"](claude("prompt is too long")), "answered 400: prompt is too long"),
        ("Only one of the two, please.", "answered 400: Only one of the two, please"),
        (openai("Plain words."), "answered 400 (invalid_request_error): Plain words"),
        ({"detail": [{"loc": ["body", "thinking"], "msg": "is odd"}]}, ": thinking: is odd"),
    ],
)
def test_people_see_the_innermost_words(body: Any, shown: str) -> None:
    assert shown in str(read_error("openai_chat", 400, encode(body)))


def test_what_a_server_echoes_of_the_request_is_no_message() -> None:
    body = {
        "error": {"message": "no", "input": "secret", "request": {"message": "secret"}, "failed_generation": "secret"}
    }
    assert [message.text for message in list_error_messages(encode(body))] == ["no"]


# --- hostile bodies -----------------------------------------------------------------------------------------------

_SIZE = 64 * 1024
_PIECES = (
    *(
        " ",
        "a",
        "[",
        "{",
        '"',
        "'",
        "`",
        "\\",
        '{"',
        "{'message':'",
        '{"error":',
        '{"message":"',
        "\\u0041",
        "“",
        "&#39;",
    ),
    *(
        "thinking ",
        "reasoning ",
        "signature in thinking block ",
        "encrypted content ",
        "the model returned the following errors: ",
    ),
    *(
        "messages.",
        "messages.1",
        "unsupported value: ",
        "context ",
        "effort ",
        "tool_choice ",
        "property ",
        "budget ",
        "a, ",
    ),
    *(
        "supported values are: ",
        "'a', ",
        "rs_",
        "[1, ",
        "only 1 ",
        "between 1 and ",
        "input[1].id: ",
        "invalid ",
        "not ",
        "be ",
    ),
)


@pytest.mark.parametrize("piece", _PIECES)
def test_a_hostile_body_costs_little_time(piece: str) -> None:
    body = (piece * (_SIZE // len(piece))).encode()[:_SIZE]
    for wrapped in (body, json.dumps({"error": {"message": body.decode("utf-8", "ignore")}}).encode()):
        began = time.process_time()
        error = from_status(400, provider="example", body=wrapped)
        read_rejection(error)
        assert time.process_time() - began < 1.5


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(_PIECES), min_size=1, max_size=40), st.integers(1, 400))
def test_nothing_makes_the_reader_raise_or_take_long(pieces: list[str], times: int) -> None:
    body = ("".join(pieces) * times).encode()[:_SIZE]
    began = time.process_time()
    read_rejection(from_status(400, provider="example", body=body))
    assert time.process_time() - began < 1.5


_LETTERS = st.characters(exclude_categories=("Cn", "Co", "Cs"))
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(_LETTERS, max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["error", "message", "metadata", "raw", "detail", "param", "code", "loc", "x"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(_JSON, st.sampled_from(DIALECTS), st.sampled_from([200, 400, 404, 422, 429, 500, 502]))
def test_any_document_gives_an_error(document: Any, dialect: str, status: int) -> None:
    error = read_error(dialect, status, json.dumps(document).encode())
    assert error.kind is None or error.kind in KINDS
    assert escape_controls(str(error)) == str(error)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_give_an_error(body: bytes) -> None:
    assert classify(body, status=400) in (None, *KINDS)


@pytest.mark.parametrize(
    "body",
    [
        b'data: {"choices":[{"delta":{"reasoning_content":"kumquat"}}]}\n\ndata: [DONE]\n\n',
        b'event: message_start\ndata: {"type":"message_start","message":{"content":"kumquat"}}\n\n',
        b'{"message":{"thinking":"kumquat"}}\n{"message":{"content":"kumquat"},"done":true}\n',
        b'\x00\x00\x01kumquat {"p":"kumquat"}',
        b'data: {"choices":[{"delta":{"reasoning_content":"kumquat kumq',
        b'{"id":"a","choices":[{"message":{"reasoning_content":"kumquat kumq',
    ],
)
def test_what_a_model_says_is_no_message_of_a_server(body: bytes) -> None:
    assert list_error_messages(body) == []
    assert "kumquat" not in str(from_status(500, provider="example", body=body))


def test_an_error_among_the_events_of_a_reply_is_found() -> None:
    body = (
        b'data: {"choices":[{"delta":{"content":"kumquat"}}]}\n\nevent: error\ndata: {"error":{"message":"too long"}}'
    )
    error = from_status(500, provider="example", body=body)
    assert "too long" in str(error)
    assert "kumquat" not in str(error)
