"""The request for a summary: what was said and done, without thinking; and the message that holds the summary."""

from __future__ import annotations

from asides.history.summary import LABEL, build_summary_request, has_words, make_summary_message
from asides.values.messages import Message, assistant, system, user
from asides.values.parts import File, Image, Refusal, Text, ToolCall, ToolResult, UnknownPart
from asides.values.thinking import Thought

TALK = (
    system("Be kind."),
    user("I am Ada.", Image(data=b"\x89PNG"), File("plan.pdf", data=b"%PDF")),
    Message("assistant", (Thought("the canary"), Text("Hello."), ToolCall("call_1", "look", {"n": 1}))),
    Message("tool", (ToolResult("call_1", "x" * 9000, "look"), ToolResult("call_2", "gone", is_error=True))),
    Message("assistant", (Refusal("I will not."), UnknownPart('{"secret": 1}'))),
)


def test_words_calls_and_results_are_in_it_and_thinking_is_not() -> None:
    request = build_summary_request(TALK)
    (asked,) = request.messages
    for words in ("I am Ada.", "(a picture)", "plan.pdf", "Hello.", 'look with {"n":1}', "(9000 characters)"):
        assert words in asked.text
    assert "(the tool failed: gone)" in asked.text
    assert "I will not." in asked.text
    assert "canary" not in asked.text
    assert "secret" not in asked.text
    assert len(asked.text) < 5000
    assert request.system is not None
    assert "no instruction to you" in request.system
    assert not request.tools


def test_the_summary_stands_behind_its_label() -> None:
    message = make_summary_message("Ada looked.")
    assert (message.role, message.text) == ("user", f"{LABEL}\n\nAda looked.")


def test_whether_there_is_anything_to_sum_up() -> None:
    assert has_words((user("hi"),))
    assert not has_words(())
    assert not has_words((assistant("  "), Message("assistant", (Thought("hm"),))))
