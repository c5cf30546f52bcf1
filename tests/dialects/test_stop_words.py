"""Every server half has a word for every reason to stop: its own, or that of the nearest reason."""

from __future__ import annotations

from typing import Any, get_args

import pytest

import asides
from asides.dialects import DIALECTS, find_dialect
from asides.values import events as event_values
from asides.values.events import Event, ReplyEnded, ReplyStarted, StopKind, StopReason, TextDelta

# Dialects in which a refusal is a reply that is complete, though they have a word for filtered content.
_COMPLETES = frozenset({"cohere", "openai_responses"})

every_dialect = pytest.mark.parametrize("name", DIALECTS)


def write(name: str, reason: Any, *, stream: bool) -> bytes:
    events: list[Event] = [
        ReplyStarted("m", "reply_1"),
        TextDelta("42"),
        ReplyEnded(StopReason(reason, "its own word")),
    ]
    return find_dialect(name).writer(model="m", stream=stream).write(events)


@pytest.fixture
def new_reason(monkeypatch: pytest.MonkeyPatch) -> str:
    """A reason that no dialect has a word for."""
    monkeypatch.setitem(event_values.NEAREST_STOPS, "made_up", "length")  # type: ignore[misc]
    return "made_up"


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@every_dialect
def test_a_reason_without_a_word_is_written_as_the_nearest(name: str, stream: bool, new_reason: str) -> None:
    assert write(name, new_reason, stream=stream) == write(name, "length", stream=stream)
    assert write(name, new_reason, stream=stream) != write(name, "stop", stream=stream)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@every_dialect
def test_a_refusal_is_filtered_content_or_complete(name: str, stream: bool) -> None:
    meant: StopKind = "stop" if name in _COMPLETES else "content_filter"
    assert write(name, "refusal", stream=stream) == write(name, meant, stream=stream)


@pytest.mark.parametrize("reason", [*get_args(StopKind), "made_up"])
def test_a_front_end_gets_a_word_for_every_reason(reason: Any, new_reason: str) -> None:
    events: list[Event] = [ReplyStarted("m"), TextDelta("42"), ReplyEnded(StopReason(reason))]
    written = "".join(map(str, asides.ui.vercel(events)))
    words = {
        "stop": "stop",
        "length": "length",
        "tool_calls": "tool-calls",
        "content_filter": "content-filter",
        "error": "error",
    }
    word = words.get(event_values.NEAREST_STOPS.get(reason, reason) or "", "other")
    assert f'"finishReason":"{word}"' in written.replace(" ", "")
