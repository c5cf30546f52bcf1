"""The pieces of a ReAct text: thoughts, calls, the answer, and warnings."""

from __future__ import annotations

from asides.agents.react.calls import ActionCall
from asides.agents.react.parser import ActionStarted, AnswerText, ParserWarning, Piece, ReactParser, ThoughtText
from tests.agents.react.translating import TOOLS


def parse(text: str) -> list[Piece]:
    parser = ReactParser(TOOLS)
    return [*parser.feed(text), *parser.finish()]


def test_a_thought_and_a_call() -> None:
    pieces = parse('Thought: I look.\nAction: get_weather\nAction Input: {"city": "Oslo"}\n')
    assert pieces == [
        ThoughtText("I look.", begins=True),
        ActionStarted(),
        ActionCall("get_weather", '{"city": "Oslo"}'),
    ]


def test_an_answer_streams_before_its_end() -> None:
    parser = ReactParser(TOOLS)
    assert parser.feed("Final Answer: It is ") == [AnswerText("It is")]
    assert parser.feed("cold.") == [AnswerText(" cold.")]
    assert parser.finish() == []


def test_a_made_up_observation_and_all_after_it_is_left_out() -> None:
    pieces = parse("Action: now\nObservation: noon\nFinal Answer: noon")
    assert pieces == [ActionStarted(), ActionCall("now", ""), ParserWarning("observation_invented")]


def test_an_answer_beside_an_action_is_a_warning() -> None:
    assert ParserWarning("answer_and_action") in parse("Action: now\nFinal Answer: noon")


def test_prose_that_begins_like_an_action_is_text() -> None:
    assert parse("Action: Bob sends the mail") == [ActionStarted(), AnswerText("Action: Bob sends the mail")]


def test_a_text_that_ends_inside_a_thinking_tag_is_truncated() -> None:
    parser = ReactParser(TOOLS)
    parser.feed("<think>I look")
    parser.finish()
    assert parser.truncated
