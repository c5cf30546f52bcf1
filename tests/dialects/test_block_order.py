"""One block at a time, whatever the order in which a server sends them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from asides.dialects.block_order import BlockOrder, ContentEvent
from asides.values.events import TextDelta, ThinkingDelta, ThoughtSealed, ToolCallDelta
from asides.values.thinking import Seal


def arrange(*events: ContentEvent) -> list[ContentEvent]:
    order = BlockOrder()
    ready = [event for given in events for event in order.add(given)]
    return [*ready, *order.finish()]


def test_what_is_in_order_stays_as_it_is() -> None:
    events: list[ContentEvent] = [
        ThinkingDelta("a", 0),
        ThinkingDelta("b", 0),
        ThoughtSealed(Seal("signature", "s"), 0),
        TextDelta("c", 1),
        ToolCallDelta(2, "c1", "f", '{"a":1}'),
        ToolCallDelta(3, "c2", "g", "{}"),
    ]
    order = BlockOrder()
    for event in events:
        (same,) = order.add(event)
        assert same is event
    assert order.finish() == []


def test_text_that_returns_begins_another_block() -> None:
    first, thought, again, more = arrange(
        TextDelta("a", 0), ThinkingDelta("b", 1), TextDelta("c", 0), TextDelta("d", 0)
    )
    assert (first.block, thought.block) == (0, 1)
    assert again.block == more.block
    assert again.block not in (0, 1)


def test_a_late_seal_belongs_to_its_block_and_opens_none() -> None:
    late = arrange(
        ThinkingDelta("a", 0), TextDelta("b", 1), ThoughtSealed(Seal("signature", "s"), 0), TextDelta("c", 1)
    )
    assert [event.block for event in late] == [0, 1, 0, 1]


def test_other_blocks_wait_for_the_arguments_of_a_call() -> None:
    events = arrange(
        ToolCallDelta(0, "c1", "f", '{"a"'),
        ToolCallDelta(1, "c2", "g", '{"b"'),
        TextDelta("meanwhile", 2),
        ToolCallDelta(0, arguments=":1}"),
        ToolCallDelta(1, arguments=":2}"),
    )
    assert [event.block for event in events] == [0, 0, 1, 1, 2]


PIECES = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", ""])),
    max_size=12,
)


@given(PIECES)
def test_law_one_block_at_a_time_and_nothing_is_lost(pieces: Sequence[tuple[int, str]]) -> None:
    """Text of even blocks and thinking of odd ones, in any order: no block is entered twice."""
    events: list[ContentEvent] = [
        ThinkingDelta(text, block) if block % 2 else TextDelta(text, block) for block, text in pieces
    ]
    arranged = arrange(*events)
    entered = [block for block, group in groupby(event.block for event in arranged if not _is_empty(event))]
    assert len(entered) == len(set(entered))
    assert [_read(event) for event in arranged] == [_read(event) for event in events]


def _read(event: ContentEvent) -> str:
    assert isinstance(event, (TextDelta, ThinkingDelta))
    return event.text


def _is_empty(event: ContentEvent) -> bool:
    return not _read(event)
