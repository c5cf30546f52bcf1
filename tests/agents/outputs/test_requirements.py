"""Typed output over real sockets, in every dialect and in every way: the answer's value, its thinking kept apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

import asides
from asides.agents.outputs.output_type import OutputMismatch, read_output_type
from asides.agents.outputs.parse_output import find_pending_calls, parse_output
from asides.agents.outputs.strategy import Strategy, apply_strategy, ask_for_correction, ask_for_json, choose_strategy
from asides.dialects.dialect import ServedRequest
from asides.values.errors import AnswerInThinking
from asides.values.events import TextDelta, ToolCallDelta
from asides.values.messages import Message, OutputSchema, Prompt, user
from asides.values.parts import ToolCall, ToolResult
from asides.values.reply import Reply
from asides.values.thinking import Thinking
from asides.values.tools import Tool
from asides.wire.partial_json import PartialJson, partial
from asides_stage.stage import OpenStage, Say, Scene
from tests.agents.outputs.shapes import Weather, known
from tests.shells import Outcome, both_shells, stream_async, stream_sync

MODELS = {
    "openai_chat": "openai-compatible:made-up",
    "openai_responses": "openai-responses:gpt-5",
    "anthropic": "anthropic:claude-sonnet-4-5",
    "gemini": "google:gemini-3-pro-preview",
    "bedrock": "bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "ollama": "ollama:qwen3",
    "cohere": "cohere:command-a-reasoning-08-2025",
}
STRATEGIES = {"native": Strategy("native"), "tool": Strategy("tool"), "instructed": Strategy("instructed")}
BUDGETED = ("anthropic", "bedrock")

CANARY = "canary-1618"
DRAFT = {"city": CANARY, "degrees": 99}
THOUGHT = f"Perhaps {json.dumps(DRAFT)}? No."
OSLO = {"city": "Oslo", "degrees": 3.5}
FORM = read_output_type(Weather)
LOOK = Tool("look", "Look out of the window.", {"type": "object", "properties": {"at": {"type": "string"}}})

every_dialect = pytest.mark.parametrize("dialect", MODELS)
every_way = pytest.mark.parametrize("kind", STRATEGIES)
whole_and_streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def thinking(dialect: str) -> Thinking:
    return Thinking(budget=2000) if dialect in BUDGETED else Thinking(effort="high")


def prompt(dialect: str, *messages: Message, **fields: Any) -> Prompt:
    return Prompt(messages or (user("How is the sky?"),), thinking=thinking(dialect), max_tokens=4000, **fields)


def play(request: ServedRequest) -> Scene:
    """A model that thinks of another object, and answers in the way that it is asked in."""
    final = next((tool for tool in request.prompt.tools if tool.name == "final_answer"), None)
    if final is not None:
        return Say(thinking=THOUGHT, tool_calls=(ToolCall("call_1", final.name, OSLO),), piece=3)
    return Say(text=json.dumps(OSLO), thinking=THOUGHT, piece=3)


class Recorded:
    """A script that keeps what was asked."""

    def __init__(self, script: Callable[[ServedRequest], Scene]) -> None:
        self.prompts: list[Prompt] = []
        self._script = script

    def __call__(self, request: ServedRequest) -> Scene:
        self.prompts.append(request.prompt)
        return self._script(request)


def reply_of(outcome: Outcome) -> Reply:
    assert outcome.error is None, outcome.error
    assert outcome.reply is not None
    return outcome.reply


@both_shells
@whole_and_streamed
@every_way
@every_dialect
def test_L1_FT_42_pain_B4_the_answers_value_with_its_thinking_kept(
    dialect: str, kind: str, stream: bool, shell: Callable[..., Outcome], stage: OpenStage
) -> None:
    asked, script = prompt(dialect), Recorded(play)
    made = apply_strategy(asked, FORM, STRATEGIES[kind])
    reply = reply_of(shell(stage(script).url, made, model=MODELS[dialect], stream=stream))
    taken = parse_output(reply, FORM, STRATEGIES[kind])
    assert taken.value == Weather("Oslo", 3.5)
    assert reply.thinking
    assert reply.thinking.text == THOUGHT
    assert CANARY not in f"{reply.text} {taken!r} {reply!r} {[call.arguments for call in reply.tool_calls]}"
    (served,) = script.prompts
    assert isinstance(served.output, OutputSchema) == (kind == "native")
    assert [tool.name for tool in served.tools] == (["final_answer"] if kind == "tool" else [])
    assert served.thinking.wanted


@whole_and_streamed
@every_way
@every_dialect
def test_the_conversation_goes_on_after_an_answer_and_after_one_that_did_not_fit(
    dialect: str, kind: str, stream: bool, stage: OpenStage
) -> None:
    """A strict stage: it refuses calls without results, thinking that does not come back, and turns out of order."""
    mismatch: dict[str, Any] = {"city": "Oslo"}

    def first_wrong(request: ServedRequest) -> Scene:
        scene = play(request)
        assert isinstance(scene, Say)
        if sum(message.role == "assistant" for message in request.prompt.messages):
            return scene
        calls = tuple(msgspec.structs.replace(call, arguments=mismatch) for call in scene.tool_calls)
        return msgspec.structs.replace(scene, text=json.dumps(mismatch) if scene.text else "", tool_calls=calls)

    script, strategy = Recorded(first_wrong), STRATEGIES[kind]
    url = stage(script).url

    def ask(*messages: Message) -> Reply:
        made = apply_strategy(prompt(dialect, *messages), FORM, strategy)
        return reply_of(stream_sync(url, made, model=MODELS[dialect], stream=stream))

    said = [user("How is the sky?")]
    reply = ask(*said)
    said.append(_message(reply))
    with pytest.raises(OutputMismatch) as raised:
        parse_output(reply, FORM, strategy)
    said.append(ask_for_correction(raised.value))
    reply = ask(*said)
    said.append(_message(reply))
    taken = parse_output(reply, FORM, strategy)
    assert taken.value == Weather("Oslo", 3.5)
    if taken.message is not None:
        said.append(taken.message)
    ask(*said, user("And tomorrow?"))
    assert "degrees" in _words(script.prompts[1].messages[2])
    assert CANARY not in " ".join(message.text for message in said)


def _message(reply: Reply) -> Message:
    message = reply.to_message()
    assert message is not None
    return message


def _words(message: Message) -> str:
    return message.text + "".join(part.text for part in message.parts if isinstance(part, ToolResult))


@pytest.mark.parametrize(
    "model",
    [
        "google:gemini-2.5-pro",
        "groq:openai/gpt-oss-120b",
        "cohere:command-a-reasoning-08-2025",
        "ollama:qwen3",
        "vllm:qwen3",
    ],
)
@whole_and_streamed
def test_L3_where_schema_and_tools_do_not_go_together_they_come_one_after_the_other(
    model: str, stream: bool, stage: OpenStage
) -> None:
    def look_first(request: ServedRequest) -> Scene:
        asked = request.prompt
        assert not (asked.tools and asked.output), "both in one request"
        if asked.output:
            return Say(text=json.dumps(OSLO), thinking=THOUGHT)
        if asked.messages[-1].role == "user":
            return Say(thinking="I look.", tool_calls=(ToolCall("call_1", "look", {"at": "sky"}),))
        return Say(text="It is cold in Oslo.", thinking="I see.")

    script = Recorded(look_first)
    url = stage(script).url
    asked = Prompt((user("How is the sky?"),), tools=(LOOK,), thinking=Thinking(mode="on"))
    strategy = choose_strategy(FORM, asked, known(model))
    assert (strategy.kind, strategy.two_phase) == ("native", True)

    def ask(*messages: Message, final: bool = False) -> Reply:
        made = apply_strategy(msgspec.structs.replace(asked, messages=messages), FORM, strategy, final=final)
        return reply_of(stream_sync(url, made, model=model, stream=stream))

    said = list(asked.messages)
    reply = ask(*said)
    (call,) = find_pending_calls(reply, strategy)
    said += [_message(reply), Message("tool", (ToolResult(call.id, "snow", call.name),))]
    said += [_message(ask(*said)), ask_for_json(FORM)]
    reply = ask(*said, final=True)
    assert parse_output(reply, FORM, strategy).value == Weather("Oslo", 3.5)
    assert reply.thinking
    assert [bool(each.output) for each in script.prompts] == [False, False, True]


@both_shells
@whole_and_streamed
@pytest.mark.parametrize("kind", ["native", "instructed"])
def test_L2_pain_B4_json_behind_a_thought_in_tags_is_read_and_the_one_inside_is_not(
    kind: str, stream: bool, shell: Callable[..., Outcome], stage: OpenStage
) -> None:
    text = f"<think>{json.dumps(DRAFT)}</think>{json.dumps(OSLO)}"
    made = apply_strategy(prompt("openai_chat"), FORM, STRATEGIES[kind])
    reply = reply_of(shell(stage(Say(text=text, piece=2)).url, made, stream=stream))
    assert parse_output(reply, FORM, STRATEGIES[kind]).value == Weather("Oslo", 3.5)
    assert reply.thinking
    assert json.loads(reply.thinking.text) == DRAFT


@both_shells
@whole_and_streamed
@every_dialect
def test_pain_B4_an_answer_in_the_thinking_only_is_a_typed_error(
    dialect: str, stream: bool, shell: Callable[..., Outcome], stage: OpenStage
) -> None:
    scene = Say(thinking=f"I would say {json.dumps(DRAFT)}")
    reply = reply_of(shell(stage(scene).url, prompt(dialect, output=FORM.schema), model=MODELS[dialect], stream=stream))
    assert reply.text == ""
    with pytest.raises(AnswerInThinking) as raised:
        parse_output(reply, FORM, STRATEGIES["native"])
    assert raised.value.partial is reply
    assert CANARY not in str(raised.value)


@both_shells
@every_dialect
def test_L5_streamed_json_is_the_final_text_and_can_be_shown_on_the_way(
    dialect: str, shell: Callable[..., Outcome], stage: OpenStage
) -> None:
    url = stage(play).url
    made = apply_strategy(prompt(dialect), FORM, STRATEGIES["native"])
    streamed = shell(url, made, model=MODELS[dialect], stream=True)
    reply = reply_of(streamed)
    pieces = [event.text for event in streamed.events if isinstance(event, TextDelta)]
    assert "".join(pieces) == reply.text
    assert reply.text == reply_of(shell(url, made, model=MODELS[dialect], stream=False)).text
    document, cities = PartialJson(), set[str]()
    for piece in pieces:
        document.feed(piece)
        cities.add((document.value or {}).get("city", ""))
    assert document.value == msgspec.json.decode(reply.text) == OSLO
    assert all("Oslo".startswith(city) for city in cities)


@pytest.mark.parametrize("dialect", ["openai_chat", "openai_responses", "anthropic", "bedrock"])
def test_L5_arguments_of_the_final_tool_can_be_shown_on_the_way(dialect: str, stage: OpenStage) -> None:
    made = apply_strategy(prompt(dialect), FORM, STRATEGIES["tool"])
    streamed = stream_async(stage(play).url, made, model=MODELS[dialect], stream=True)
    pieces = [event.arguments for event in streamed.events if isinstance(event, ToolCallDelta)]
    assert partial("".join(pieces)) == OSLO
    assert partial("".join(pieces)[:-4]) in (
        {"city": "Oslo", "degrees": 3.5},
        {"city": "Oslo", "degrees": 3},
        {"city": "Oslo"},
    )


@every_dialect
def test_S3_35_a_request_takes_a_type_or_its_schema_alike(dialect: str) -> None:
    def request(output: Any) -> dict[str, Any]:
        told = asides.explain(MODELS[dialect], "hi", output=output, base_url="http://127.0.0.1:9", api_key="k")
        body: dict[str, Any] = told.body
        return body

    assert isinstance(FORM.schema, OutputSchema)
    assert request(Weather) == request(FORM.schema) == request(FORM.schema.schema)
    assert "degrees" in json.dumps(request(Weather))
    assert '"value"' in json.dumps(request(list[int])).replace('\\"', '"')


def test_S3_35_a_model_that_takes_no_schema_is_told_what_its_host_can_say() -> None:
    told = asides.explain("groq:llama-3.3-70b-versatile", "hi", output=Weather, api_key="k")
    assert told.body["response_format"] == {"type": "json_object"}
    assert "schema_not_sent" in {notice.code for notice in told.notices}


@both_shells
def test_pain_D4_a_model_that_thinks_is_asked_for_the_tool_and_not_forced(
    shell: Callable[..., Outcome], stage: OpenStage
) -> None:
    model, script = "deepseek:deepseek-reasoner", Recorded(play)
    asked = Prompt((user("How is the sky?"),), thinking=Thinking(effort="high"))
    strategy = choose_strategy(FORM, asked, known(model))
    reply = reply_of(shell(stage(script).url, apply_strategy(asked, FORM, strategy), model=model))
    assert parse_output(reply, FORM, strategy).value == Weather("Oslo", 3.5)
    (served,) = script.prompts
    assert (served.tool_choice, served.thinking.effort) == ("auto", "high")
    assert "tool_choice_adjusted" not in {notice.code for notice in reply.warnings}
    assert reply.thinking
