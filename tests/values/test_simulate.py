"""A whole reply as events: in pieces of a size, folding to the same reply."""

from __future__ import annotations

import pytest

import asides
from asides.values.events import TextDelta, ThinkingDelta
from asides.values.fold import simulate
from asides.values.messages import Text
from asides.values.reply import Reply
from asides.values.thinking import Seal, Thought


def test_texts_come_in_pieces_of_the_size() -> None:
    reply = Reply((Thought("plan it"), Text("The answer")), complete=True)
    events = [event for event in simulate(reply, 4) if isinstance(event, (ThinkingDelta, TextDelta))]
    assert [event.text for event in events] == ["plan", " it", "The ", "answ", "er"]
    assert [event.block for event in events] == [0, 0, 1, 1, 1]


def test_an_empty_text_with_a_seal_stays_a_part() -> None:
    reply = Reply((Text("", (Seal("thought_signature", "s"),)),), complete=True)
    assert asides.fold(simulate(reply)) == reply


def test_a_piece_has_at_least_one_character() -> None:
    with pytest.raises(ValueError, match="at least one character"):
        simulate(Reply(), 0)
