"""Replies and errors as the fields of a row. What a person sees is tested with the command line."""

from __future__ import annotations

import pytest

import asides
from asides.flows.reply_fields import ThinkingVisibility, encode_answer, encode_error, encode_failed, is_answered
from asides.settings import Settings
from asides.values.visibility import read_visibility


def build_reply() -> asides.Reply:
    return asides.Reply(parts=(asides.Thought("canary"), asides.Text("yes")))


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        (Settings(), None),
        (Settings(show_reasoning_thinking=True), "canary"),
        (Settings(show_reasoning_thinking=True, reasoning_allowed_models=("other",)), None),
        (Settings(show_reasoning_thinking=True, visibility=read_visibility({"user": []})), None),
    ],
)
def test_a_row_has_the_thinking_only_where_it_is_asked_for_and_allowed(settings: Settings, shown: str | None) -> None:
    fields = encode_answer(build_reply(), ThinkingVisibility(settings, "groq:m"))
    assert (fields["text"], fields.get("thinking")) == ("yes", shown)
    assert ("canary" in repr(fields)) is (shown is not None)
    assert is_answered(fields)


def test_an_error_has_no_body_of_the_provider() -> None:
    error = asides.RateLimited("slow down", status=429, code="limit", retry_after=2.0, body=b"secret")
    fields = encode_failed(error)
    assert not is_answered(fields)
    assert fields["error"] == encode_error(error)
    assert fields["error"] | {"type": "RateLimited", "status": 429, "retry_after": 2.0} == fields["error"]
    assert "secret" not in repr(fields)


@pytest.mark.parametrize("outcome", ["starved", "unterminated", None])
def test_a_reply_without_an_answer_is_none(outcome: str | None) -> None:
    assert not is_answered({"outcome": outcome})
