"""`attempts=`: an answer that does not fit `output=` is corrected, for one question and for many."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import asides
from asides.values.errors import ConfigError, InvalidOutput
from asides_stage import OpenStage, Say

WRONG, RIGHT = '{"name": "Oslo"}', '{"name": "Oslo", "people": 724290}'


@dataclass
class City:
    name: str
    people: int


def test_an_answer_that_does_not_fit_is_corrected(stage: OpenStage) -> None:
    server = stage(Say(thinking="hm", text=WRONG), Say(thinking="oh", text=RIGHT))
    reply = asides.ask("openai-compatible:m", "Oslo?", output=City, attempts=3, base_url=server.url)
    assert reply.output == City("Oslo", 724290)
    assert reply.text == RIGHT
    assert "output_corrected" in {notice.code for notice in reply.warnings}
    sent = server.requests[1].json["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert sent[1]["content"] == WRONG
    assert "people" in sent[2]["content"]
    assert len(server.requests) == 2


@pytest.mark.parametrize("attempts", [0, 1])
def test_after_the_last_attempt_it_is_an_error_with_the_reply(attempts: int, stage: OpenStage) -> None:
    server = stage(*[Say(text=WRONG)] * 4)
    with pytest.raises(InvalidOutput) as raised:
        asides.ask("openai-compatible:m", "Oslo?", output=City, attempts=attempts, base_url=server.url)
    assert len(server.requests) == attempts + 1
    assert raised.value.partial is not None
    assert raised.value.partial.text == WRONG


def test_of_many_questions_it_is_the_result_of_its_own(stage: OpenStage) -> None:
    server = stage(Say(text=RIGHT), Say(text=WRONG), Say(text=WRONG), Say(text=RIGHT))
    prompts = ["a", "b", "c"]
    found = dict(
        asides.ask_many("openai-compatible:m", prompts, output=City, attempts=1, concurrency=1, base_url=server.url)
    )
    assert [type(found[index]).__name__ for index in range(3)] == ["Reply", "InvalidOutput", "Reply"]


def test_a_stream_shows_only_the_answer_that_fits(stage: OpenStage) -> None:
    server = stage(Say(text=WRONG, piece=3), Say(text=RIGHT, piece=3))
    with asides.stream("openai-compatible:m", "Oslo?", output=City, attempts=2, base_url=server.url) as events:
        text = "".join(event.text for event in events if isinstance(event, asides.TextDelta))
    assert text == RIGHT == events.reply.text


def test_attempts_are_not_below_zero() -> None:
    with pytest.raises(ConfigError, match="attempts"):
        asides.ask("openai-compatible:m", "?", attempts=-1, base_url="http://127.0.0.1:9/v1")


def test_without_attempts_many_answers_still_arrive_as_errors_of_their_prompts(stage: OpenStage) -> None:
    server = stage(Say(text="no json"), Say(text='{"name": "Oslo", "people": "many"}'), Say(text=RIGHT))
    answers = asides.ask_many("openai-compatible:m", ["a", "b", "c"], output=City, concurrency=1, base_url=server.url)
    first, second, third = (answer for _, answer in answers)
    assert isinstance(first, asides.InvalidOutput)
    assert isinstance(second, asides.InvalidOutput)
    assert isinstance(third, asides.Reply)
    assert third.output is not None
    assert len(server.requests) == 3


def test_the_error_says_what_is_wrong_and_quotes_nothing(stage: OpenStage) -> None:
    server = stage(Say(text='{"name": "canary", "people": "canary"}'))
    with pytest.raises(asides.InvalidOutput) as caught:
        asides.ask("openai-compatible:m", "Oslo?", output=City, base_url=server.url).output  # noqa: B018
    assert "($.people: Expected `int`, got `str`)" in str(caught.value)
    assert "canary" not in str(caught.value)
    assert "Agent" not in str(caught.value)
