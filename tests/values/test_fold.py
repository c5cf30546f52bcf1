"""The fold of events that no decoder of ours makes by itself, and that some server makes it make."""

from __future__ import annotations

import pytest

import asides


@pytest.mark.parametrize("block", [-1, 0, -(10**30), 10**30])
def test_any_number_names_a_block(block: int) -> None:
    assert asides.fold([asides.TextDelta("a", block), asides.TextDelta("b", block)]).text == "ab"


def test_a_server_that_counts_blocks_below_zero_costs_no_reply() -> None:
    body = (
        b'data: {"type":"message_start","message":{"id":"m"}}\n\n'
        b'data: {"type":"content_block_delta","index":-1,"delta":{"type":"text_delta","text":"42"}}\n\n'
        b'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n'
    )
    assert asides.decode("anthropic", body).text == "42"
