"""What is decided for a batch of questions, without threads and without sockets."""

from __future__ import annotations

from typing import Any

import pytest

import asides
from asides.flows.build_call import CallBuilder
from asides.flows.many import OpenQuestions, Progress, check_call, check_prompts
from asides.values.fold import fold
from asides.values.reply import Reply


def reply() -> Reply:
    return fold([asides.ReplyStarted(None, None), asides.ReplyEnded(asides.StopReason("stop", "stop"))])


def test_no_more_questions_are_taken_than_are_asked_at_once() -> None:
    batch = OpenQuestions(2)
    assert [batch.has_room_for_more, batch.take(), batch.has_room_for_more, batch.take(), batch.has_room_for_more] == [
        True,
        0,
        True,
        1,
        False,
    ]
    answer = reply()
    assert batch.finish(1, answer) == (1, answer)
    assert batch.has_room_for_more
    batch.exhaust()
    assert not batch.has_room_for_more
    batch.end()


def test_progress_counts_failures_and_what_is_under_way() -> None:
    seen: list[Progress] = []
    batch = OpenQuestions(8, seen.append, 3)
    for _ in range(3):
        batch.take()
    batch.finish(0, reply())
    batch.finish(1, asides.Overloaded("busy"))
    assert seen == [Progress(1, 0, 2, 3), Progress(2, 1, 1, 3)]


def test_an_error_of_no_question_ends_the_batch_when_the_others_have_ended() -> None:
    batch = OpenQuestions(8)
    batch.take()
    batch.take()
    assert batch.finish(0, ZeroDivisionError("a bug")) is None
    assert not batch.has_room_for_more
    batch.fail(ValueError("a later one"))
    assert batch.finish(1, reply()) is not None
    with pytest.raises(ZeroDivisionError, match="a bug"):
        batch.end()


@pytest.mark.parametrize("given", [0, -1, 2.5, True, "8", None])
def test_a_number_of_calls_is_one_or_more(given: Any) -> None:
    with pytest.raises(asides.ConfigError, match="concurrency must be a number of calls"):
        OpenQuestions(given)


def test_progress_is_not_awaited() -> None:
    async def show(_: Progress) -> None:
        """Nobody would await it."""

    with pytest.raises(asides.ConfigError, match="def in place of async def"):
        OpenQuestions(on_progress=show)


def test_progress_goes_to_a_function() -> None:
    with pytest.raises(asides.ConfigError, match="on_progress is a function"):
        OpenQuestions(8, "print")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "prompts", ["a text", b"bytes", {"role": "user"}, asides.user("one"), asides.Conversation(), 7]
)
def test_one_prompt_is_not_many(prompts: Any) -> None:
    with pytest.raises(asides.ConfigError, match="prompts must be a list"):
        check_prompts(prompts)


def test_a_lone_list_is_told_how_to_ask() -> None:
    for many in (asides.ask_many, asides.aio.ask_many):
        with pytest.raises(asides.ConfigError, match=r"ask_many\(prompts=…\)"):
            many(["one", "two"])


def test_the_number_of_prompts_is_known_where_it_can_be() -> None:
    assert (check_prompts(["a", "b"]), check_prompts(name for name in "ab")) == (2, None)


@pytest.mark.parametrize(
    ("model", "options", "error"),
    [
        ("nobody:m", {}, asides.UnknownProvider),
        ("openai:gpt-5", {}, asides.MissingKey),
        ("ollama:m", {"thinking": "much"}, asides.InvalidThinking),
        ("deepseek:deepseek-flash", {"thinking": "high", "temperature": 0.2, "api_key": "k"}, asides.InvalidThinking),
        ("ollama:m", {"tempratur": 1}, TypeError),
        (None, {}, asides.UnknownModel),
    ],
)
def test_what_is_wrong_with_every_question_is_raised_at_once(model: Any, options: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        check_call(CallBuilder(settings=asides.Settings()), model, options)


def test_checking_leaves_the_notice_of_a_default_model_to_the_first_question() -> None:
    builder = CallBuilder(settings=asides.Settings(model="ollama:m"))
    check_call(builder, None, {})
    codes = [
        [notice.code for notice in builder.build(None, "?", {}, stream=False).notices if notice.code == "default_model"]
        for _ in range(2)
    ]
    assert codes == [["default_model"], []]
