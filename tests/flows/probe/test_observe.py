"""What one answer shows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.dialects import DIALECTS
from asides.flows.probe.observe import observe, report_failure
from asides.flows.steps import Head
from asides.values.errors import ConnectionLost

_OK = Head(200, {}, 7.0)


def chat(**message: Any) -> bytes:
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()


def stream(*deltas: dict[str, Any]) -> bytes:
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks).encode() + b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    ("status", "body", "state"),
    [
        (200, chat(content="x"), "answered"),
        (200, b'{"error": {"message": "no credit"}}', "refused"),
        (200, b"<html>", "unreadable"),
        (200, b"", "unreadable"),
        (302, b"", "redirected"),
        (400, b'{"error": {"message": "no"}}', "refused"),
        (401, b"{}", "locked"),
        (403, b"", "locked"),
        (404, b'{"detail": "Not Found"}', "absent"),
        (404, b"<html>model page</html>", "absent"),
        (404, b'{"error": {"message": "The model `x` does not exist"}}', "refused"),
        (405, b"", "absent"),
        (500, b"boom", "refused"),
    ],
)
def test_states(status: int, body: bytes, state: str) -> None:
    seen = observe(Head(status, {"location": "http://x"}), body, "openai_chat")
    assert (seen.state, seen.status) == (state, status)
    assert seen.detail or state == "answered"


def test_fields_are_seen_whatever_their_names() -> None:
    seen = observe(
        _OK, chat(content="42", inner_voice="let me see", citations=["a b c"], id="an id here"), "openai_chat"
    )
    assert (seen.fields, seen.thinks, seen.answer, seen.received) == ((("inner_voice", "let me see"),), True, "42", 7.0)


@pytest.mark.parametrize("name", ["\x1b[31m", 'a"b', "a\\b", "a" * 65, "", "\x85", " a", " "])
def test_a_name_that_no_row_can_have_is_no_field(name: str) -> None:
    assert observe(_OK, chat(content="42", **{name: "let me see"}), "openai_chat").fields == ()


@pytest.mark.parametrize("value", [{"content": "hm so"}, [{"type": "text", "text": "hm so"}], {"text": "hm so"}])
def test_a_field_may_hold_an_object(value: Any) -> None:
    seen = observe(_OK, chat(content="42", reasoning=value), "openai_chat")
    assert (seen.fields, seen.objects) == ((("reasoning", "hm so"),), ("reasoning",))


def test_a_field_that_repeats_the_answer_is_no_thinking() -> None:
    assert observe(_OK, chat(content="it is 42", plain="it is 42"), "openai_chat").fields == ()


def test_snapshots_of_fields_and_of_content() -> None:
    field = observe(
        _OK, stream({"reasoning": "a"}, {"reasoning": "a b"}, {"reasoning": "a b c"}, {"content": "42"}), "openai_chat"
    )
    assert (field.snapshots, field.fields, field.answer) == (True, (("reasoning", "a b c"),), "42")
    text = observe(
        _OK,
        stream({"content": "<think>a"}, {"content": "<think>a</think>4"}, {"content": "<think>a</think>42"}),
        "openai_chat",
    )
    assert (text.snapshots, text.thinking, text.answer) == (True, "a", "42")
    plain = observe(_OK, stream({"reasoning": "a"}, {"reasoning": " b"}, {"content": "42"}), "openai_chat")
    assert (plain.snapshots, plain.streamed) == (False, True)


def test_counts_keep_the_names_of_the_server() -> None:
    body = json.loads(chat(content="x"))
    body["usage"] = {"completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 3}, "cost": None}
    seen = observe(_OK, json.dumps(body).encode(), "openai_chat")
    assert dict(seen.usage) == {"completion_tokens": 5, "completion_tokens_details.reasoning_tokens": 3}
    assert seen.amount == 3


def test_a_reply_that_broke_off_shows_what_came() -> None:
    body = stream({"reasoning": "a plan"}, {"content": "4"}).removesuffix(b"data: [DONE]\n\n")
    seen = observe(_OK, body, "openai_chat", cut_off="the connection broke")
    assert (seen.state, seen.thinking) == ("answered", "a plan")


def test_a_failure_is_a_line() -> None:
    assert report_failure(ConnectionLost("gone\nfor good.")).detail == "gone for good"


@settings(deadline=None)
@given(st.integers(100, 599), st.binary(max_size=300), st.sampled_from(DIALECTS))
def test_anything_is_read(status: int, body: bytes, dialect: str) -> None:
    assert observe(Head(status, {}), body, dialect).status == status


def test_a_field_that_no_row_can_name_is_left_alone() -> None:
    seen = observe(
        _OK, chat(content="42", **{'x"]\n[a]': "a plan", "back\\slash": "a plan", "\x1b[2J": "a plan"}), "openai_chat"
    )
    assert (seen.state, seen.fields) == ("answered", ())


def test_a_reply_without_anything_in_it_is_none() -> None:
    assert observe(_OK, b'{"choices": [{"message": "x"}]}', "openai_chat").state == "unreadable"
    cut = b'{"choices": [{"message": {"content": ""}, "finish_reason": "length"}]}'
    assert observe(_OK, cut, "openai_chat").state == "answered"
