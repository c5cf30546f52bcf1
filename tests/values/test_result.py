"""The result of a run: its thinking, usage and metadata are those of all steps."""

from __future__ import annotations

from asides.values.parts import Text
from asides.values.reply import Reply
from asides.values.result import Result, Step, sum_usage
from asides.values.thinking import Thought
from asides.values.usage import Usage

FIRST = Step(1, Reply((Thought("I look."),), usage=Usage(10, 5)))
LAST = Step(2, Reply((Thought("I see."), Text("Cold.")), usage=Usage(20, 3), model="made-up"))
RESULT = Result("Cold.", steps=(FIRST, LAST))


def test_the_text_is_that_of_the_last_reply_and_never_thinking() -> None:
    assert RESULT.text == str(RESULT) == "Cold."
    assert RESULT.reply is LAST.reply


def test_thinking_and_usage_are_those_of_all_steps() -> None:
    assert RESULT.thinking
    assert RESULT.thinking.text == "I look.\n\nI see."
    assert (RESULT.usage.input, RESULT.usage.output) == (30, 8)
    assert RESULT.metadata["thinking"] == "I look.\n\nI see."
    assert (RESULT.metadata["steps"], RESULT.metadata["usage"]) == (2, RESULT.usage)


def test_a_run_without_steps_has_an_empty_reply_and_no_thinking() -> None:
    empty = Result(None)
    assert (empty.text, empty.thinking.text, empty.usage) == ("", "", Usage())
    assert not empty.thinking
    assert not empty.reply.complete
    assert empty.metadata["thinking_source"] == "none"
    assert sum_usage(()) == Usage()


def test_the_repr_shows_nothing_of_the_answer() -> None:
    assert "Cold" not in repr(RESULT)


def test_a_notebook_shows_the_answer_of_a_run_with_the_thinking_of_all_steps_folded_above_it() -> None:
    steps = tuple(Step(number, Reply((Thought(f"plan {number}"), Text("Yes.")))) for number in (1, 2))
    assert Result("Yes.", steps=steps)._repr_markdown_() == (
        "<details><summary>Thinking</summary>plan 1<br><br>plan 2</details>\n\nYes."
    )
