"""Parsing the answer of a reply: strict first, and never from the thinking."""

from __future__ import annotations

import re
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from asides.agents.outputs.output_type import OutputMismatch, read_output_type
from asides.agents.outputs.parse_output import ParsedOutput, find_pending_calls, parse_output, postpone_answer
from asides.agents.outputs.strategy import Strategy
from asides.values.errors import AnswerInThinking, NoAnswer
from asides.values.events import StopKind, StopReason
from asides.values.messages import Message
from asides.values.parts import Part, Refusal, Text, ToolCall, ToolResult
from asides.values.reply import Reply
from asides.values.thinking import Thought
from tests.agents.outputs.shapes import Colour, Weather

FORM = read_output_type(Weather)
OSLO = '{"city": "Oslo", "degrees": 3}'
ROME = '{"city": "Rome", "degrees": 30}'
NATIVE, TOOL = Strategy("native"), Strategy("tool")


def reply(text: str = "", *parts: Part, thinking: str | None = None, stop: StopKind = "stop") -> Reply:
    thoughts: tuple[Part, ...] = () if thinking is None else (Thought(thinking),)
    words: tuple[Part, ...] = (Text(text),) if text else ()
    return Reply((*thoughts, *words, *parts), stop=StopReason(stop), model="made-up")


def call(arguments: Any, name: str = "final_answer", id: str = "c1", raw: str | None = None) -> ToolCall:  # noqa: A002
    return ToolCall(id, name, arguments, raw)


@pytest.mark.parametrize("strategy", [NATIVE, TOOL, Strategy("instructed")], ids=lambda strategy: strategy.kind)
@pytest.mark.parametrize(
    "text",
    [
        OSLO,
        f"\n  {OSLO}\n\n",
        f"```json\n{OSLO}\n```",
        f"```\n{OSLO}\n```",
        f"Here it is:\n\n```json\n{OSLO}\n```\n\nAnything else?",
        f"The weather is {OSLO}. Ask me more!",
        f'She said "{{" and then: {OSLO}',
        f"With {{placeholders}} and [brackets]: {OSLO}",
        "Here:\n" + OSLO.replace("Oslo", "Os\\u006co"),
    ],
)
def test_L2_one_json_value_is_found_in_the_answer(text: str, strategy: Strategy) -> None:
    assert parse_output(reply(text), FORM, strategy) == ParsedOutput(Weather("Oslo", 3.0))


def test_what_is_fenced_is_the_answer_though_the_words_around_it_quote_other_json() -> None:
    text = f"You gave me {ROME} and [1], so:\n\n```json\n{OSLO}\n```\n"
    assert parse_output(reply(text), FORM, NATIVE).value == Weather("Oslo", 3.0)
    assert parse_output(reply('Here:\n```json\n"red"\n```'), read_output_type(Colour), NATIVE).value == "red"


def test_a_value_that_has_braces_and_fences_in_its_strings_is_one_value() -> None:
    city = 'O } ] " \\ { ``` slo'
    text = "So: " + msgspec.json.encode({"city": city, "degrees": 1}).decode() + " – done"
    assert parse_output(reply(text), FORM, NATIVE).value == Weather(city, 1.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It is warm in Rome.", "not JSON"),
        (f"{OSLO} or {ROME}", "2 JSON values"),
        (f"```json\n{OSLO}\n```\n```json\n{ROME}\n```", "2 JSON values"),
        ('{"city": "Oslo"}', "degrees"),
        ('Sure: {"city": "Oslo", "degrees": "warm"}', "$.degrees"),
        ("[1, 2]", "object"),
        ("null", "object"),
        ("{" * 3000, "not JSON"),
        ("[" * 3000 + "]" * 3000, "object"),
    ],
)
def test_L4_what_does_not_fit_is_told_with_the_schema(text: str, words: str) -> None:
    with pytest.raises(OutputMismatch) as raised:
        parse_output(reply(text), FORM, NATIVE)
    assert words in raised.value.feedback
    assert '"required":["city","degrees"]' in raised.value.feedback
    assert raised.value.results == ()


def test_pain_B4_the_answers_object_wins_over_another_one_in_the_thinking() -> None:
    thought = f"Perhaps {ROME}? Or {{}}? The final answer: {ROME}"
    assert parse_output(reply(OSLO, thinking=thought), FORM, NATIVE).value == Weather("Oslo", 3.0)
    assert parse_output(reply("", call({"city": "Oslo", "degrees": 3}), thinking=ROME), FORM, TOOL).value == Weather(
        "Oslo", 3.0
    )
    with pytest.raises(OutputMismatch):  # nor does the thinking help an answer out
        parse_output(reply("As I said.", thinking=ROME), FORM, NATIVE)


@pytest.mark.parametrize(
    "thought", [OSLO, f"I should say:\n```json\n{OSLO}\n```", f"First {{}}, then [1], at last {OSLO} and that is it."]
)
@pytest.mark.parametrize("strategy", [NATIVE, TOOL, Strategy("instructed")], ids=lambda strategy: strategy.kind)
@pytest.mark.parametrize("stop", ["stop", "length"])
def test_pain_B4_an_answer_in_the_thinking_only_is_an_error_of_its_own(
    thought: str, strategy: Strategy, stop: StopKind
) -> None:
    said = reply("  \n", thinking=thought, stop=stop)
    with pytest.raises(AnswerInThinking) as raised:
        parse_output(said, FORM, strategy)
    assert raised.value.partial is said
    assert "Oslo" not in str(raised.value)
    assert re.search(r"\. [A-Z]", str(raised.value))


def test_a_blank_answer_after_other_thoughts_is_asked_for_again_and_a_starved_one_is_not() -> None:
    with pytest.raises(OutputMismatch, match="form"):
        parse_output(reply("", thinking='Hm. {"city": 1}'), FORM, NATIVE)
    with pytest.raises(OutputMismatch):
        parse_output(reply(""), FORM, NATIVE)
    with pytest.raises(NoAnswer, match="max_tokens") as raised:
        parse_output(reply("", thinking="Hm.", stop="length"), FORM, NATIVE)
    assert not isinstance(raised.value, AnswerInThinking)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (reply("", Refusal("I would rather not.")), "refused"),
        (reply(OSLO, Refusal("I would rather not.")), "refused"),
        (reply(OSLO, stop="content_filter"), "filter"),
        (reply('{"city": "Os', stop="length"), "max_tokens"),
        (reply("", call({}, raw='{"city": "Os'), stop="length"), "max_tokens"),
    ],
)
def test_what_asking_again_would_not_help_is_no_answer(said: Reply, words: str) -> None:
    with pytest.raises(NoAnswer, match=words) as raised:
        parse_output(said, FORM, TOOL)
    assert raised.value.partial is said


def test_an_answer_that_was_whole_when_it_was_cut_off_is_an_answer() -> None:
    assert parse_output(reply(OSLO, stop="length"), FORM, NATIVE).value == Weather("Oslo", 3.0)


def test_a_call_of_the_final_tool_is_the_answer_and_is_answered() -> None:
    taken = parse_output(reply("Let me tell you.", call({"city": "Oslo", "degrees": 3})), FORM, TOOL)
    assert taken.value == Weather("Oslo", 3.0)
    assert taken.message == Message("tool", (ToolResult("c1", "ok", "final_answer"),))
    assert parse_output(reply(OSLO), FORM, TOOL).message is None


def test_of_several_calls_the_first_that_fits_counts_and_all_are_answered() -> None:
    calls = (
        call({"city": 1}),
        call({"city": "Oslo", "degrees": 3}, id="c2"),
        call({"city": "Rome", "degrees": 1}, id="c3"),
    )
    taken = parse_output(reply("", *calls), FORM, TOOL)
    assert taken.value == Weather("Oslo", 3.0)
    assert [(result.call_id, result.text) for result in taken.results] == [("c1", "ok"), ("c2", "ok"), ("c3", "ok")]


@pytest.mark.parametrize("arguments", [call({"city": "Oslo"}), call({}, raw="{oops"), call({})])
def test_L4_a_call_that_does_not_fit_is_told_so_in_its_result(arguments: ToolCall) -> None:
    with pytest.raises(OutputMismatch) as raised:
        parse_output(reply("", arguments), FORM, TOOL)
    (result,) = raised.value.results
    assert (result.call_id, result.name, result.is_error) == ("c1", "final_answer", True)
    assert result.text == raised.value.feedback
    assert "final_answer again" in result.text


def test_beside_other_calls_the_others_come_first() -> None:
    other = call({"where": "out"}, name="look", id="c2")
    said = reply("", call({"city": "Oslo", "degrees": 3}), other)
    assert find_pending_calls(said, TOOL) == (other,)
    (result,) = postpone_answer(said, TOOL)
    assert (result.call_id, result.is_error) == ("c1", True)
    assert "alone" in result.text
    assert find_pending_calls(reply("", call({})), TOOL) == ()
    assert postpone_answer(reply("", other), TOOL) == ()


def test_without_the_way_of_tools_a_tool_of_that_name_is_the_users_own() -> None:
    said = reply("", call({"city": "Oslo", "degrees": 3}))
    assert find_pending_calls(said, NATIVE) == said.tool_calls
    assert find_pending_calls(said, Strategy("tool", tool="final_answer_2")) == said.tool_calls


def test_a_value_that_is_no_object_comes_out_of_its_object() -> None:
    form = read_output_type(list[int])
    assert parse_output(reply('{"value": [1, 2]}'), form, NATIVE).value == [1, 2]
    assert parse_output(reply("Here: [1, 2]"), form, NATIVE).value == [1, 2]
    assert parse_output(reply("", call({"value": [1, 2]})), form, TOOL).value == [1, 2]


@settings(deadline=None)
@given(some.text(alphabet='{}[]"\\` ab:1,\n', max_size=60))
def test_whatever_a_model_says_is_an_answer_or_a_mismatch(text: str) -> None:
    try:
        parse_output(reply(text, thinking=text), read_output_type("json"), NATIVE)
    except (OutputMismatch, AnswerInThinking):
        return


@pytest.mark.parametrize("unit", ["{", "[", '{"a":', '{"a": "', "```json\n", "```json\n{}\n", "[1] ", '\\"', "{} "])
def test_reading_is_linear_in_the_answer(unit: str) -> None:
    def seconds(size: int) -> float:
        said = reply("x " + unit * (size // len(unit)))
        begun = time.process_time()
        with pytest.raises(OutputMismatch):
            parse_output(said, FORM, NATIVE)
        return time.process_time() - begun

    short = min(seconds(8_000) for _ in range(3))
    assert min(seconds(64_000) for _ in range(2)) < 24 * short + 0.02
