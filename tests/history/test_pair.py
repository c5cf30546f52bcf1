"""Every tool call gets a result, and existing results stay."""

from __future__ import annotations

from asides.history.pair import add_missing_results
from asides.values.messages import Message, Text, ToolCall, ToolResult, user


def test_results_stand_in_front_of_the_words_that_came_with_others() -> None:
    calls = Message("assistant", (ToolCall("c1", "f"), ToolCall("c2", "f")))
    mixed = user(ToolResult("c1", "42"), "and then?")
    mended = add_missing_results((user("?"), calls, mixed, user("hello?")))
    assert [message.role for message in mended] == ["user", "assistant", "tool", "user", "user"]
    assert (mended[3], add_missing_results(mended)) == (mixed, mended)


def test_results_that_nobody_asked_for_stay() -> None:
    history = (user("?"), Message("tool", (ToolResult("zz", "42"),)), Message("assistant", (Text("a"),)))
    assert add_missing_results(history) == history
