"""Events: grouping by block, and representations that show no content."""

from __future__ import annotations

from asides.values.events import (
    Event,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    TextDelta,
    ThinkingDelta,
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
