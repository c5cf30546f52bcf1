"""llama.cpp's server over /v1/chat/completions: however it is told to send thinking, whole or streamed, one reply."""

from __future__ import annotations

import itertools

import pytest

import asides
from tests.engine.engines import MODEL, PRODUCT, SUM, WEATHER, WEATHER_TOOL, Essence, essence
from tests.local.processes import needs_engine

pytestmark = [needs_engine, pytest.mark.engine]

FORMATS = ("none", "auto", "deepseek", "deepseek-legacy")
WAYS = pytest.mark.parametrize(
    ("reasoning_format", "stream"),
    list(itertools.product(FORMATS, (False, True))),
    ids=lambda value: str(value).lower(),
)
SOURCES = {"none": "tags", "auto": "field", "deepseek": "field", "deepseek-legacy": "field"}


@WAYS
def test_an_answer_and_its_thinking_come_apart(reasoning_format: str, stream: bool) -> None:
    reply = asides.ask(MODEL, SUM, stream=stream, extra={"reasoning_format": reasoning_format})
    text, thinking, *rest = essence(reply)
    assert "132" in text
    assert thinking is not None
    assert thinking.startswith("I need the sum of 47 and 85.")
    assert thinking.endswith("So 47 + 85 = 132.")
    assert "think>" not in text + thinking
    assert rest == [(), "answered", "stop"]
    assert reply.thinking
    assert (reply.thinking.kind, reply.thinking.source) == ("raw", SOURCES[reasoning_format])
    assert reply.usage.output is not None
    assert reply.usage.output > 50


def test_every_format_streamed_and_whole_gives_the_same_reply() -> None:
    replies = {
        (reasoning_format, stream): essence(
            asides.ask(MODEL, SUM, stream=stream, extra={"reasoning_format": reasoning_format})
        )
        for reasoning_format, stream in itertools.product(FORMATS, (False, True))
    }
    assert len(set(replies.values())) == 1, replies


@WAYS
def test_a_reply_cut_inside_its_thought_is_all_thinking(reasoning_format: str, stream: bool) -> None:
    reply = asides.ask(MODEL, SUM, max_tokens=20, stream=stream, extra={"reasoning_format": reasoning_format})
    assert essence(reply) == Essence("", "I need the sum of 47 and 85.\nOnes: 7 +", (), "starved", "length")
    assert reply.usage.output == 20
    assert reply.thinking
    with pytest.raises(asides.NoAnswer):
        reply.require_answer()


@WAYS
def test_a_call_of_a_tool_has_its_arguments_and_its_thought(reasoning_format: str, stream: bool) -> None:
    reply = asides.ask(
        MODEL, WEATHER, tools=[WEATHER_TOOL], stream=stream, extra={"reasoning_format": reasoning_format}
    )
    text, thinking, calls, outcome, stop = essence(reply)
    assert (text, calls, outcome, stop) == ("", (("get_weather", {"location": "Paris"}),), "tool_calls", "tool_calls")
    assert thinking is not None
    assert thinking.startswith("The user wants the weather in Paris.")
    assert "tool_call" not in thinking


@pytest.mark.parametrize("stream", [False, True])
def test_two_calls_are_two_calls(stream: bool) -> None:
    reply = asides.ask(MODEL, "What is the weather in Paris and Tokyo?", tools=[WEATHER_TOOL], stream=stream)
    assert [call.arguments for call in reply.tool_calls] == [{"location": "Paris"}, {"location": "Tokyo"}]
    assert len({call.id for call in reply.tool_calls}) == 2


@pytest.mark.parametrize("stream", [False, True])
def test_a_forced_tool_is_called(stream: bool) -> None:
    reply = asides.ask(MODEL, WEATHER, tools=[WEATHER_TOOL], tool_choice="required", stream=stream)
    assert essence(reply).tool_calls == (("get_weather", {"location": "Paris"}),)


@pytest.mark.parametrize("stream", [False, True])
def test_an_effort_changes_how_much_is_thought(stream: bool) -> None:
    lengths: list[int] = []
    for effort in ("low", "medium", "high"):
        reply = asides.ask(MODEL, PRODUCT, thinking=effort, stream=stream)
        assert "1081" in reply.text
        assert reply.thinking
        lengths.append(len(reply.thinking.text))
    assert lengths == sorted(set(lengths))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("reasoning_format", FORMATS)
def test_without_thinking_there_is_none(reasoning_format: str, stream: bool) -> None:
    reply = asides.ask(MODEL, PRODUCT, thinking="off", stream=stream, extra={"reasoning_format": reasoning_format})
    assert not reply.thinking
    assert reply.metadata["thinking_source"] == "none"
    assert "1081" in reply.text
    assert "think>" not in reply.text


@pytest.mark.parametrize("stream", [False, True])
def test_a_budget_ends_the_thought_and_not_the_answer(stream: bool) -> None:
    reply = asides.ask(MODEL, PRODUCT, thinking=12, max_tokens=400, stream=stream)
    assert reply.thinking
    assert reply.thinking.text == "I have to work out 23 times 4"
    assert reply.outcome == "answered"
    assert "1081" in reply.text


def test_the_answer_fits_a_schema() -> None:
    schema = {"type": "object", "properties": {"answer": {"type": "integer"}}, "required": ["answer"]}
    reply = asides.ask(MODEL, f"{SUM} Answer in JSON.", output=schema)
    assert reply.text.replace(" ", "") == '{"answer":132}'
    assert reply.thinking


def test_events_come_one_by_one_and_thinking_comes_first() -> None:
    with asides.stream(MODEL, SUM) as events:
        kinds = [type(event) for event in events if isinstance(event, asides.ThinkingDelta | asides.TextDelta)]
    assert kinds == sorted(kinds, key=[asides.ThinkingDelta, asides.TextDelta].index)
    assert kinds.count(asides.ThinkingDelta) > 40
    assert kinds.count(asides.TextDelta) > 3


def test_a_conversation_that_does_not_fit_is_said_to() -> None:
    with pytest.raises(asides.ContextTooLong):
        asides.ask(MODEL, "What is 2 + 3? " * 500)


# --- the next turn ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reasoning_format", FORMATS)
@pytest.mark.parametrize("stream", [False, True])
def test_the_turn_behind_a_tool_is_accepted_and_uses_its_result(reasoning_format: str, stream: bool) -> None:
    said: list[asides.Message | asides.Reply] = [asides.user(WEATHER)]
    first = asides.ask(MODEL, said, tools=[WEATHER_TOOL], stream=stream, extra={"reasoning_format": reasoning_format})
    (call,) = first.tool_calls
    result = asides.ToolResult(call.id, '{"temperature": 18, "condition": "sunny"}', call.name)
    said += [first, asides.Message("tool", (result,))]
    sent = asides.explain(MODEL, said, tools=[WEATHER_TOOL]).body["messages"][1]
    assert sent["reasoning_content"].strip().startswith("The user wants the weather in Paris.")
    second = asides.ask(MODEL, said, tools=[WEATHER_TOOL], stream=stream, extra={"reasoning_format": reasoning_format})
    assert second.outcome == "answered"
    assert "18 degrees and sunny in Paris" in second.text
    said += [second, asides.user("What is the weather in Tokyo?")]
    third = asides.ask(MODEL, said, tools=[WEATHER_TOOL], stream=stream)
    assert essence(third).tool_calls == (("get_weather", {"location": "Tokyo"}),)


def test_a_follow_up_refers_to_what_was_said() -> None:
    first = asides.ask(MODEL, "What is 12 + 30?")
    assert "42" in first.text
    second = asides.ask(MODEL, [asides.user("What is 12 + 30?"), first, asides.user("And times 2?")])
    assert "84" in second.text


@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_that_ran_out_of_tokens_goes_on_from_its_thinking(stream: bool) -> None:
    starved = asides.ask(MODEL, SUM, max_tokens=24, stream=stream)
    assert starved.outcome == "starved"
    reply = asides.ask(MODEL, SUM, max_tokens=24, stream=stream, recover=asides.RecoverPolicy(steps=("continue",)))
    assert [notice.code for notice in reply.warnings] == ["recover_continue"]
    assert reply.outcome == "answered"
    assert starved.thinking
    assert reply.thinking
    assert reply.thinking.text == starved.thinking.text
    assert "think>" not in reply.text
