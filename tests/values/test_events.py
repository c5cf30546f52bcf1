"""Events: grouping by block, and representations that show no content."""

from __future__ import annotations

from typing import get_args

from asides.values.events import (
    Event,
    OutputEvent,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    TextDelta,
    TextReclassified,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    blocks,
)


def test_neighbouring_events_of_one_block_are_grouped_and_others_are_single() -> None:
    events: list[Event] = [
        ReplyStarted(),
        ThinkingDelta("a", 0),
        ThinkingDelta("b", 0),
        TextDelta("c", 1),
        ReplyEnded(),
    ]
    assert [(block, len(group)) for block, group in blocks(events)] == [(-1, 1), (0, 2), (1, 1), (-1, 1)]
    assert list(blocks([])) == []


def test_the_representation_of_a_delta_shows_its_length_and_not_its_text() -> None:
    for event in (
        ThinkingDelta("secret"),
        TextDelta("secret"),
        RefusalDelta("secret"),
        ToolCallDelta(0, "i", "n", "secret"),
    ):
        assert "secret" not in repr(event)
        assert "<6 characters>" in repr(event)


def test_every_event_of_a_block_is_output_or_thinking() -> None:
    of_blocks = {kind for kind in get_args(Event) if "block" in kind.__struct_fields__}
    thinking = {ThinkingDelta, ThoughtSealed, TextReclassified}
    assert of_blocks == {*get_args(OutputEvent), *thinking}, "add the new event to OutputEvent"
