"""Thinking that a caller wrote into its turns is taken out, and nothing else."""

from __future__ import annotations

import pytest

from asides.relay.state.inlined_thinking import INLINED, separate_inlined
from asides.values.messages import Message, user
from asides.values.notices import Notice
from asides.values.parts import Text, ToolCall

CALL = ToolCall("c1", "f", {})


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ((Text("<think>\nplan\n</think>"), CALL), (CALL,)),
        ((Text("<think>plan</think>\n\nThe answer."),), (Text("The answer."),)),
        ((Text("\n<THINKING>plan</THINKING>The answer."),), (Text("The answer."),)),
        ((Text("<think>plan</think>"), Text("The answer.")), (Text("The answer."),)),
    ],
)
def test_thoughts_in_tags_are_left_out_and_a_notice_tells(said: tuple[Text, ...], kept: tuple[Text, ...]) -> None:
    notices: list[Notice] = []
    messages = (user("?"), Message("assistant", said), user("and?"))
    found = separate_inlined(messages, notices)
    assert [message.parts for message in found] == [messages[0].parts, kept, messages[2].parts]
    assert [notice.code for notice in notices] == [INLINED]


@pytest.mark.parametrize(
    "message",
    [
        user("<think>what is this tag?</think>"),
        Message("assistant", (Text("Write <think>plan</think> first."),)),
        Message("assistant", (Text("<thinker>a tag of my own</thinker>"),)),
        Message("assistant", (Text("<think>nothing else</think>"),)),
        Message("assistant", (Text("The answer."), CALL)),
    ],
)
def test_everything_else_stays(message: Message) -> None:
    notices: list[Notice] = []
    messages = (user("?"), message)
    assert separate_inlined(messages, notices) == messages
    assert (separate_inlined(messages, notices)[1] is message, notices) == (True, [])
