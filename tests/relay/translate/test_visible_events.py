"""Thinking that a caller may not see, and words around the JSON that it asked for."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.relay.translate.visible_events import JsonOnly, hide_thinking
from asides.values.events import Event, ReplyEnded, ReplyStarted, TextDelta, ThinkingDelta, ThoughtSealed
from asides.values.thinking import Seal
from asides.values.visibility import Visibility

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def _filter(pieces: list[str]) -> str:
    events: list[Event] = [ReplyStarted(), *(TextDelta(piece, 0) for piece in pieces), ReplyEnded()]
    only = JsonOnly()
    fitted = [event for each in events for event in only.fit([each])]
    assert isinstance(fitted[-1], ReplyEnded)
    return "".join(event.text for event in fitted if isinstance(event, TextDelta))


@given(
    value=st.dictionaries(st.text(max_size=5), _JSON, max_size=4) | st.lists(_JSON, max_size=4),
    before=st.sampled_from(["", "Here:\n```json\n", " \n"]),
    after=st.sampled_from(["", "\n```", " Done {.}", '"']),
    cuts=st.sets(st.integers(0, 200), max_size=12),
)
def test_only_the_json_stays_in_any_chunking(value: object, before: str, after: str, cuts: set[int]) -> None:
    document = msgspec.json.encode(value).decode()
    text = before + document + after
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    assert _filter([text[start:end] for start, end in pairwise(places)]) == document


@pytest.mark.parametrize("text", ["No JSON here.", "", "42", "a" * 10_000])
def test_text_without_json_stays(text: str) -> None:
    assert _filter([text[place : place + 100] for place in range(0, len(text), 100)]) == text


def test_json_that_breaks_off_stays_as_it_is() -> None:
    assert _filter(['x {"a": "', "b\\", '" }']) == '{"a": "b\\" }'


def test_thinking_is_left_out_by_its_kind() -> None:
    raw, summary = ThinkingDelta("raw", 0, "raw"), ThinkingDelta("summary", 1, "summary")
    seal = ThoughtSealed(Seal("signature", "asd1.x"), 0)
    events: list[Event] = [raw, seal, summary, TextDelta("answer", 2)]
    assert hide_thinking(events, Visibility(gateway=("summary",)), "gateway") == events[1:]
    assert hide_thinking(events, Visibility(gateway=()), "gateway") == [seal, events[3]]
    assert hide_thinking(events, Visibility(), "app") == events
