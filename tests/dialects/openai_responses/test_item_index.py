"""Which item an event belongs to: by index, by id, or the last one."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

import asides
from asides.dialects.openai_responses.items import ItemIndex, find_first_block
from asides.dialects.openai_responses.wire import Entry, Item, StreamEvent
from tests.decoding import target


def test_the_index_decides_before_the_id() -> None:
    index = ItemIndex(target())
    message = index.begin(0, Item(type="message", id="a"))
    assert index.find(StreamEvent(output_index=0, item_id="another"), "message") is message
    assert message.block == find_first_block(0)


def test_the_id_decides_without_an_index_and_else_it_is_the_last_item() -> None:
    index = ItemIndex(target())
    first, second = (index.begin(None, Item(type="message", id=name)) for name in ("a", "b"))
    assert index.find(StreamEvent(item_id="a"), "message") is first
    assert index.find(StreamEvent(), "message") is second


def test_an_item_that_was_not_announced_is_added() -> None:
    index = ItemIndex(target())
    call = index.find(StreamEvent(output_index=3), "function_call")
    assert (index.items, call.block) == ([call], find_first_block(3))


def test_an_index_that_is_used_twice_is_two_items_in_order() -> None:
    index = ItemIndex(target())
    blocks = [index.begin(0, Item(type="message", id=name)).block for name in ("a", "b")]
    assert blocks == [find_first_block(0), find_first_block(1)]


def test_the_last_response_object_adds_only_items_that_the_stream_did_not_finish() -> None:
    index = ItemIndex(target())
    finished = index.begin(0, Item(type="message", id="a"))
    finished.done = True
    begun = index.begin(1, Item(type="reasoning", id="b"))
    items = [Item(type="message", id="a"), Item(type="reasoning", id="b"), Item(type="function_call", id="c")]
    unfinished = [state for state, _, _ in index.match_response([(item, Entry(b"{}", {})) for item in items])]
    assert unfinished == [finished, begun, index.items[-1]]  # the message has no text yet


def count_steps(deltas: int) -> int:
    """The steps of the interpreter for texts of items that were never announced, each with an index of its own."""
    lines = [
        f'data: {{"type":"response.output_text.delta","item_id":"i{n}","output_index":{n},"delta":"a"}}\n\n'
        for n in range(deltas)
    ]
    steps = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal steps
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with pytest.raises(asides.ConnectionLost):
            asides.decode("openai_responses", "".join(lines))
    finally:
        sys.settrace(before)
    return steps


def test_items_that_were_never_announced_cost_the_same_however_many_there_are() -> None:
    count_steps(10)  # what is loaded once is loaded
    few, many = count_steps(100), count_steps(400)
    assert many < 5 * few
