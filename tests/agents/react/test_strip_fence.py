"""A reply inside a code fence is read without the fence; fences inside the answer stay."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides.agents.react.translator import FenceStripper
from tests.agents.react.translating import cut, in_pieces


def stripped(pieces: list[str]) -> str:
    stripper = FenceStripper()
    return "".join([*(stripper.feed(piece) for piece in pieces), stripper.finish()])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```\nThought: a\nFinal Answer: b\n```", "Thought: a\nFinal Answer: b\n"),
        ("```text\n\nFinal Answer: b\n```\n", "Final Answer: b\n"),
        ("\n~~~\r\nAction: now\r\n~~~\r\nmore", "Action: now\r\nmore"),
        ("````\nFinal Answer:\n```py\nx\n```\n````", "Final Answer:\n```py\nx\n```\n"),
        ("```\nFinal Answer:\n```py\nx\n```\nbehind\n```", "Final Answer:\n```py\nx\n```\nbehind\n"),
        ("```\nThought: cut", "Thought: cut"),
        ("```py\nprint(1)\n```", "```py\nprint(1)\n```"),
        ("```", "```"),
        ("```\n", "```\n"),
        ("`code` is inline", "`code` is inline"),
        ("Final Answer: ```\nx\n```", "Final Answer: ```\nx\n```"),
        ("", ""),
        ("  \n", "  \n"),
    ],
)
def test_the_fence_around_a_reply_goes_and_any_other_stays(text: str, expected: str) -> None:
    assert stripped([text]) == expected
    assert stripped(list(text)) == expected


_PIECES = ("```", "````", "~~~", "json", "\n", "\r\n", " ", "Thought: a", "Final Answer: b", "`", "x", "Act")
_TEXTS = st.lists(st.sampled_from(_PIECES), max_size=14).map("".join)


@given(text=_TEXTS, sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_law_any_chunking_gives_the_same(text: str, sizes: list[int]) -> None:
    assert stripped(cut(text, sizes)) == stripped([text])
    wrapped = f"```\n{text}\n```"
    assert in_pieces(cut(wrapped, sizes)) == in_pieces([wrapped])


def test_a_thought_in_a_fence_is_no_answer() -> None:
    reply = in_pieces(["```\nThought: I have to look.\nFinal Answer: Take a coat.\n```"])
    assert reply.text.strip() == "Take a coat."
    assert reply.thinking
    assert reply.thinking.text.strip() == "I have to look."


def test_a_long_beginning_is_not_waited_for() -> None:
    stripper = FenceStripper()
    assert stripper.feed("```" + "\n" * 5000) != ""
