"""Typed answers through an agent: with tools, streamed, with thinking, in every dialect, sync and async."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

import asides
from asides.agents.outputs.output_type import read_output_type
from asides.agents.outputs.strategy import apply_strategy, choose_strategy
from asides.dialects.dialect import ServedRequest
from asides.flows.call import Call
from asides.flows.output_format import OutputFormat
from asides.flows.run_config import RunConfig
from asides.testing.stage import OpenStage, Say, Scene
from asides.values.messages import Prompt, ProviderState, user
from asides.values.parts import ToolCall
from asides.values.tools import Tool
from tests.agents.outputs.shapes import known
from tests.agents.three_tools import MODELS, Ran, every_stream, every_way, find_results, hour, send_blocking

CANARY = "canary-in-the-thought"


@dataclass
class Place:
    """A place and its hour."""

    name: str
    hour: int


class PlaceStruct(msgspec.Struct):
    name: str
    hour: int


class PlaceDict(TypedDict):
    name: str
    hour: int


class PlaceModel(pydantic.BaseModel):
    name: str
    hour: int


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "hour": {"type": "integer"}},
    "required": ["name", "hour"],
    "additionalProperties": False,
}
ANSWER = '{"name": "Oslo", "hour": 12}'
DRAFT = '{"name": "Bergen", "hour": 11}'


def play(request: ServedRequest) -> Scene:
    """A tool first; then the answer, in whichever way it is asked for. The thought holds another one that fits too."""
    thought = f"{CANARY} {DRAFT}"
    offered = {tool.name for tool in request.prompt.tools}
    if "hour" in offered and not find_results(request):
        return Say(thinking=thought, tool_calls=(ToolCall("call_hour1", "hour", {"place": "Oslo"}),))
    if "final_answer" in offered:
        call = ToolCall("call_final", "final_answer", msgspec.json.decode(ANSWER))
        return Say(thinking=thought, tool_calls=(call,))
    if request.prompt.output is None and "schema" not in (request.prompt.system or "") and "hour" in offered:
        return Say(thinking=thought, text="It is noon in Oslo.")
    return Say(thinking=thought, text=ANSWER, piece=3)


@every_way
@pytest.mark.parametrize("dialect", MODELS)
def test_L1_L3_FT_42_a_typed_answer_with_tools_and_thinking_in_every_language(
    dialect: str, send: Callable[..., Ran], stage: OpenStage
) -> None:
    open_stage = stage(play)
    thinking = "low" if dialect == "openai_responses" else None  # which shows none unless it is asked to
    ran = send(MODELS[dialect], open_stage.url, "?", tools=[hour], output=Place, thinking=thinking)
    assert ran.error is None
    assert ran.result is not None
    assert ran.result.output == Place("Oslo", 12)
    assert ran.result.outcome == "answered"
    assert ran.result.thinking
    assert CANARY in ran.result.thinking.text
    assert [received.problem for received in open_stage.requests] == [None] * len(open_stage.requests)
    assert not any(CANARY in message.text for message in ran.result.messages)
    # The conversation can go on, also behind a call that brought the answer.
    again = send(MODELS[dialect], open_stage.url, [*ran.result.messages, asides.user("And now?")], tools=[hour])
    assert again.error is None


@pytest.mark.parametrize("kind", [Place, PlaceStruct, PlaceModel], ids=lambda kind: kind.__name__)
def test_S3_35_every_kind_of_type_gives_a_value_of_it(kind: type[Any], stage: OpenStage) -> None:
    ran = send_blocking(MODELS["openai_chat"], stage(play).url, "?", output=kind)
    assert ran.result is not None
    assert ran.result.output == kind(name="Oslo", hour=12)


@pytest.mark.parametrize("kind", [PlaceDict, SCHEMA, "json"], ids=["TypedDict", "schema", "json"])
def test_S3_35_a_schema_gives_what_json_gives(kind: Any, stage: OpenStage) -> None:
    ran = send_blocking(MODELS["openai_chat"], stage(play).url, "?", output=kind)
    assert ran.result is not None
    assert ran.result.output == {"name": "Oslo", "hour": 12}


def test_what_is_no_object_is_had_too(stage: OpenStage) -> None:
    ran = send_blocking(MODELS["openai_chat"], stage(Say(text='{"value": [1, 2]}')).url, "?", output=list[int])
    assert ran.result is not None
    assert ran.result.output == [1, 2]


@every_way
def test_L2_json_behind_a_thought_in_tags_is_read(send: Callable[..., Ran], stage: OpenStage) -> None:
    ran = send(
        MODELS["openai_chat"], stage(Say(text=f"<think>{CANARY} {DRAFT}</think>{ANSWER}")).url, "?", output=Place
    )
    assert ran.result is not None
    assert ran.result.output == Place("Oslo", 12)
    assert ran.result.thinking
    assert CANARY in ran.result.thinking.text


@every_way
def test_L4_what_does_not_fit_is_told_and_asked_for_again(send: Callable[..., Ran], stage: OpenStage) -> None:
    open_stage = stage(Say(text='{"name": "Oslo"}'), Say(text='{"name": "Oslo", "hour": "noon"}'), Say(text=ANSWER))
    ran = send(MODELS["openai_chat"], open_stage.url, "?", output=Place)
    assert ran.result is not None
    assert ran.result.output == Place("Oslo", 12)
    assert len(ran.result.steps) == 3
    second = msgspec.json.decode(open_stage.requests[1].body)["messages"]
    assert second[-1]["role"] == "user"
    assert "hour" in second[-1]["content"]


@every_way
def test_L4_attempts_are_bounded(send: Callable[..., Ran], stage: OpenStage) -> None:
    open_stage = stage(Say(text="never mind", thinking=CANARY))
    ran = send(MODELS["openai_chat"], open_stage.url, "?", output=Place, attempts=1)
    assert isinstance(ran.error, asides.InvalidOutput)
    assert len(open_stage.requests) == 2
    assert ran.error.partial is not None
    assert ran.error.partial.text == "never mind"
    assert "never mind" not in str(ran.error)
    assert ran.partial is not None
    assert ran.partial.outcome == "failed"


@every_way
def test_pain_B4_an_answer_that_stands_in_the_thinking_only_is_an_error(
    send: Callable[..., Ran], stage: OpenStage
) -> None:
    ran = send(MODELS["openai_chat"], stage(Say(text="", thinking=f"So it is {DRAFT}")).url, "?", output=Place)
    assert isinstance(ran.error, asides.AnswerInThinking)
    assert "Bergen" not in str(ran.error)
    assert ran.error.partial is not None


@every_stream
def test_L5_streamed_json_is_the_final_text(send: Callable[..., Ran], stage: OpenStage) -> None:
    ran = send(MODELS["openai_chat"], stage(play).url, "?", output=Place)
    assert ran.result is not None
    said = "".join(event.text for event in ran.events if isinstance(event, asides.TextDelta))
    assert said == ran.result.text == ANSWER


def test_a_call_may_want_another_type_than_its_agent(stage: OpenStage) -> None:
    agent = asides.Agent(MODELS["openai_chat"], base_url=stage(play).url)
    assert agent.send("?").output == ANSWER
    typed = agent.send("?", output=Place)
    assert typed.output.hour == 12


def test_pain_D4_thinking_is_not_switched_off_for_the_sake_of_a_form(stage: OpenStage) -> None:
    # This model of the row takes no schema, and while it thinks no forced tool either.
    open_stage = stage(play)
    model = "anthropic:claude-3-7-sonnet-20250219"
    ran = send_blocking(model, open_stage.url, "?", output=Place, thinking=2000)
    assert ran.result is not None
    assert ran.result.output == Place("Oslo", 12)
    assert ran.result.outcome == "answered", "by the call that brings the answer"
    body = msgspec.json.decode(open_stage.requests[0].body)
    assert body["thinking"]["budget_tokens"] == 2000
    assert body.get("tool_choice", {"type": "auto"})["type"] == "auto"


def test_an_answer_beside_other_calls_is_put_off_until_they_are_run(stage: OpenStage) -> None:
    final = ToolCall("call_final", "final_answer", {"name": "Bergen", "hour": 11})
    both = Say(tool_calls=(ToolCall("call_hour1", "hour", {"place": "Oslo"}), final))
    open_stage = stage(both, Say(tool_calls=(ToolCall("call_last", "final_answer", msgspec.json.decode(ANSWER)),)))
    model = "anthropic:claude-3-7-sonnet-20250219"
    ran = send_blocking(model, open_stage.url, "?", output=Place, tools=[hour])
    assert ran.result is not None
    assert ran.result.output == Place("Oslo", 12)
    assert [received.problem for received in open_stage.requests] == [None, None]
    told = [part for message in ran.result.messages for part in message.parts if isinstance(part, asides.ToolResult)]
    assert [(part.call_id, part.is_error) for part in told] == [
        ("call_hour1", False),
        ("call_final", True),
        ("call_last", False),
    ]
    assert "again, alone" in told[1].text


@pytest.mark.parametrize("model", [*MODELS.values(), "deepseek:deepseek-reasoner", "groq:openai/gpt-oss-20b"])
@pytest.mark.parametrize("mode", ["native", "react"])
def test_the_prompt_of_each_step_is_formed_as_if_it_were_the_first(
    model: str, mode: Literal["native", "react"]
) -> None:
    output_type = read_output_type(Place)
    start = Prompt((user("?"),), system="Be brief.", tools=(Tool("hour"),), tool_choice="required")
    call = Call(start, known(model))
    form = OutputFormat(call, RunConfig(output_type=output_type, mode=mode))
    strategy = choose_strategy(output_type, start, call.target, in_text=mode == "react")
    for is_final in (False, True, False):
        form._is_final = is_final
        for choice, stored in ((None, None), ("auto", None), ("auto", "r_1"), ("required", "r_1"), ("auto", "r_2")):
            for count in (1, 2):
                prompt = msgspec.structs.replace(
                    start,
                    messages=(user("?"),) * count,
                    tool_choice=choice,
                    state=ProviderState(previous_response_id=stored),
                )
                assert form.build_prompt(prompt) == apply_strategy(prompt, output_type, strategy, final=is_final)
