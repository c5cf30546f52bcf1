"""`reply.output` of `ask` and `stream`, and the output while it arrives: over real sockets, sync and async."""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict, assert_type

import msgspec
import pytest

import asides
from asides.agents.outputs.expected_output import ExpectedOutput, PartialOutput
from asides.agents.outputs.strategy import Strategy
from asides.values.events import TextDelta, ThinkingDelta, ToolCallDelta
from asides.values.result import StepStarted
from asides.wire.partial_json import PartialJson
from asides_stage.stage import OpenStage, Say
from tests.shells import KEY, MODEL, Shell, both_shells

TEXT = '{"city": "Oslo", "degrees": -3.5}'
OSLO = {"city": "Oslo", "degrees": -3.5}
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "number"}},
    "required": ["city", "degrees"],
}


@dataclass
class Weather:
    city: str
    degrees: float


class Sky(msgspec.Struct):
    city: str
    degrees: float


class Wind(TypedDict):
    city: str
    degrees: float


class Cold(msgspec.Struct):
    city: str
    degrees: float

    def __post_init__(self) -> None:
        if self.degrees > 0:
            raise ValueError("it is warm")


def output_of(shell: Shell, stage: OpenStage, scene: Say, output: Any, *, stream: bool = True) -> asides.Reply:
    outcome = shell(stage(scene).url, "?", output=output, stream=stream)
    assert outcome.reply is not None
    return outcome.reply


@both_shells
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("output", "text", "value"),
    [
        (Weather, TEXT, Weather("Oslo", -3.5)),
        (Sky, TEXT, Sky("Oslo", -3.5)),
        (Wind, TEXT, OSLO),
        (SCHEMA, TEXT, OSLO),
        (asides.OutputSchema("w", SCHEMA), TEXT, OSLO),
        ({"type": "json_schema", "json_schema": {"name": "w", "schema": SCHEMA}}, TEXT, OSLO),
        ("json", TEXT, OSLO),
        (list[int], '{"value": [1, 2]}', [1, 2]),
        (list[int], "[1, 2]", [1, 2]),
        (Literal["red", "green"], '{"value": "red"}', "red"),
        (int, '{"value": 42}', 42),
        (Weather, f"```json\n{TEXT}\n```", Weather("Oslo", -3.5)),
        (str, TEXT, TEXT),
        (None, TEXT, TEXT),
    ],
    ids=str,
)
def test_the_output_is_a_value_of_the_type(
    shell: Shell, stage: OpenStage, stream: bool, output: Any, text: str, value: Any
) -> None:
    reply = output_of(shell, stage, Say(text=text, thinking='{"city": "Rome", "degrees": 30}'), output, stream=stream)
    assert reply.output == value
    assert type(reply.output) is type(value)
    assert reply.output is reply.output, "it is read once"
    assert reply.text == text


def test_a_model_of_pydantic_is_an_output(stage: OpenStage) -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Place", city=(str, ...), degrees=(float, ...))
    reply = asides.ask(MODEL, "?", output=model, base_url=stage(Say(text=TEXT)).url, api_key=KEY)
    assert (reply.output.city, type(reply.output)) == ("Oslo", model)
    assert reply.to_dict()["output"] == OSLO


@both_shells
@pytest.mark.parametrize(
    ("output", "text"),
    [
        (Weather, '{"city": "Oslo", "degrees": "secret-canary"}'),
        (Weather, "It is secret-canary."),
        (Weather, f"{TEXT} secret-canary {TEXT}"),
        (Cold, '{"city": "Oslo", "degrees": 3}'),
        (SCHEMA, '{"city": "secret-canary"}'),
        ("json", "[1]"),
    ],
)
def test_an_answer_that_does_not_fit_raises_when_it_is_read_and_is_not_lost(
    shell: Shell, stage: OpenStage, output: Any, text: str
) -> None:
    reply = output_of(shell, stage, Say(text=text), output)
    for _ in range(2):
        with pytest.raises(asides.InvalidOutput) as raised:
            _ = reply.output
        assert raised.value.partial is reply
        assert raised.value.feedback
        assert "canary" not in str(raised.value)
    assert reply.text == text
    assert reply.to_dict()["output"] is None


@both_shells
def test_why_there_is_no_answer_is_said(shell: Shell, stage: OpenStage) -> None:
    starved = output_of(shell, stage, Say(thinking="hm", stop="length"), Weather)
    with pytest.raises(asides.NoAnswer, match="ran out of tokens"):
        _ = starved.output
    cut = output_of(shell, stage, Say(text=TEXT[:9], stop="length"), Weather)
    with pytest.raises(asides.NoAnswer, match="cut off"):
        _ = cut.output
    thought = output_of(shell, stage, Say(thinking=TEXT), Weather)
    with pytest.raises(asides.AnswerInThinking):
        _ = thought.output
    refused = output_of(shell, stage, Say(refusal="no"), Weather)
    with pytest.raises(asides.NoAnswer, match="refused"):
        _ = refused.output
    calls = output_of(shell, stage, Say(tool_calls=(asides.ToolCall("c", "look"),)), Weather)
    with pytest.raises(asides.NoAnswer, match="asked for tools"):
        _ = calls.output


def test_an_error_in_code_of_the_caller_is_the_callers_and_json_survives_it(stage: OpenStage) -> None:
    class Broken(msgspec.Struct):
        city: str
        degrees: float

        def __post_init__(self) -> None:
            raise RuntimeError("mine")

    reply = asides.ask(MODEL, "?", output=Broken, base_url=stage(Say(text=TEXT)).url, api_key=KEY)
    with pytest.raises(RuntimeError, match="mine"):
        _ = reply.output
    assert reply.to_dict()["output"] is None


def test_a_copy_of_a_reply_has_its_output_and_equality_knows_nothing_of_it(stage: OpenStage) -> None:
    opened = stage(Say(text=TEXT, id="r"))
    reply = asides.ask(MODEL, "?", output=Weather, base_url=opened.url, api_key=KEY)
    plain = asides.ask(MODEL, "?", base_url=opened.url, api_key=KEY)
    assert pickle.loads(pickle.dumps(reply)).output == Weather("Oslo", -3.5)
    assert reply == plain


@pytest.mark.parametrize("output", [Weather, Sky, Wind, SCHEMA, list[Sky]])
def test_a_reply_with_an_output_can_be_encoded_and_has_its_text_afterwards(stage: OpenStage, output: Any) -> None:
    opened = stage(Say(text=TEXT))
    with asides.Client(base_url=f"{opened.url}/v1", api_key=KEY) as client:
        reply = client.ask(MODEL, "?", output=output)
    assert msgspec.to_builtins(reply)["parts"][0]["text"] == TEXT
    for codec in (msgspec.json, msgspec.msgpack):
        again = codec.decode(codec.encode(reply), type=asides.Reply)
        assert again == reply
        assert again.output == TEXT
        assert "output" not in again.to_dict()


def test_the_schema_of_a_prompt_is_checked_too_and_its_instructions_stay(stage: OpenStage) -> None:
    opened = stage(Say(text=TEXT))
    prompt = asides.Prompt((asides.user("?"),), output=asides.OutputSchema("w", SCHEMA))
    assert asides.ask(MODEL, prompt, base_url=opened.url, api_key=KEY).output == OSLO
    assert [message["role"] for message in opened.requests[0].json["messages"]] == ["user"]


def test_a_model_that_takes_no_schema_gets_it_in_its_instructions() -> None:
    told = asides.explain("groq:llama-3.3-70b-versatile", "hi", output=Weather, api_key="k", system="Be brief.")
    system = told.body["messages"][0]["content"]
    assert system.startswith("Be brief.")
    assert "degrees" in system
    assert {"output_instructed", "schema_not_sent"} <= {notice.code for notice in told.notices}
    native = asides.explain("openai:gpt-5", "hi", output=Weather, api_key="k")
    assert "output_instructed" not in {notice.code for notice in native.notices}


def test_bounds_that_a_host_refuses_are_not_sent_and_are_checked_all_the_same() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 3}}, "required": ["n"]}
    told = asides.explain(
        "anthropic:claude-opus-4-5", "hi", output={**schema, "additionalProperties": False}, api_key="k"
    )
    assert '"maximum":' not in msgspec.json.encode(told.body).decode()
    with pytest.raises(asides.InvalidOutput):
        ExpectedOutput(schema).read(asides.Reply((asides.Text('{"n": 4}'),)))


def test_conversations_have_outputs_too(stage: OpenStage) -> None:
    chat = asides.Conversation(MODEL, base_url=stage(Say(text=TEXT, piece=9)).url, api_key=KEY)
    assert chat.ask("?", output=Weather).output == Weather("Oslo", -3.5)
    with chat.stream("?", output=Weather) as events:
        assert events.reply.output == events.partial_output == Weather("Oslo", -3.5)


# --- while it arrives -------------------------------------------------------------------------------------------------


def test_the_output_so_far_grows_with_the_events_and_is_of_the_type_at_last(stage: OpenStage) -> None:
    opened = stage(Say(text=TEXT, thinking='{"city": "Rome"}', piece=6))
    seen: list[Any] = []
    with asides.stream(MODEL, "?", output=Weather, base_url=opened.url, api_key=KEY) as events:
        assert events.partial_output is None
        for event in events:
            if isinstance(event, ThinkingDelta):
                assert events.partial_output is None, "never from the thinking"
            if isinstance(event, TextDelta):
                seen.append(events.partial_output)
    assert seen == [
        {},
        {"city": "Os"},
        {"city": "Oslo"},
        {"city": "Oslo"},
        {"city": "Oslo", "degrees": -3},
        Weather("Oslo", -3.5),
    ]
    assert events.partial_output is events.reply.output


def test_the_output_so_far_awaited_in_batches_and_after_a_drain(stage: OpenStage) -> None:
    opened = stage(Say(text=TEXT, piece=12, pause=0.15))

    async def run() -> tuple[list[Any], Any]:
        async with asides.AsyncClient(base_url=opened.url, api_key=KEY, output=SCHEMA) as client:
            async with client.stream(MODEL, "?") as events:
                seen = [events.partial_output async for _ in events.batches()]
            async with client.stream(MODEL, "?") as drained:
                await drained.drain()
                return seen, drained.partial_output

    seen, drained = asyncio.run(run())
    assert {"city": "Os"} in seen or {"city": "Oslo"} in seen
    assert seen[-1] == drained == OSLO


def test_a_stream_that_is_left_early_keeps_its_output_so_far(stage: OpenStage) -> None:
    opened = stage(Say(text=TEXT, piece=12, pause=0.05))
    with asides.stream(MODEL, "?", output=Weather, base_url=opened.url, api_key=KEY) as events:
        for event in events:
            if isinstance(event, TextDelta):
                break
    assert events.partial_output == {"city": "Os"}


def test_without_an_output_it_is_the_text_so_far(stage: OpenStage) -> None:
    with asides.stream(MODEL, "?", base_url=stage(Say(text="4 2")).url, api_key=KEY) as events:
        before = events.partial_output
        assert (before, events.reply.output, events.partial_output) == (None, "4 2", "4 2")


def test_an_agent_shows_its_output_so_far(stage: OpenStage) -> None:
    opened = stage(Say(text='{"city": 3}', piece=4), Say(text=TEXT, piece=6))
    agent = asides.Agent(MODEL, output=Weather, base_url=opened.url, api_key=KEY)
    with agent.stream("?") as events:
        seen = [events.partial_output for event in events if isinstance(event, (TextDelta, StepStarted))]
    assert seen[0] is None
    assert seen[seen.index({"city": 3}) + 1] is None, "each step begins anew"
    assert seen[-1] == events.result.output == events.partial_output == Weather("Oslo", -3.5)
    assert events.result.reply.output == Weather("Oslo", -3.5)


def test_the_call_of_the_final_tool_is_shown_and_no_other() -> None:
    partial = PartialOutput(ExpectedOutput(Weather, Strategy("tool")))
    partial.add([TextDelta("I call {it}"), ToolCallDelta(1, "a", "look", '{"city": "Rome"}')])
    partial.add([ToolCallDelta(2, "b", "final_answer"), ToolCallDelta(2, arguments='{"city": "Os')])
    assert partial.show() == {"city": "Os"}
    partial.add([ToolCallDelta(1, arguments="x"), ToolCallDelta(2, arguments='lo", "degrees": -3.5}')])
    assert partial.show() == Weather("Oslo", -3.5)


def test_the_model_that_took_over_decides_where_the_answer_is() -> None:
    expected = ExpectedOutput(Weather)
    partial = PartialOutput(expected, lambda: expected)
    expected = ExpectedOutput(Weather, Strategy("tool"))
    partial.add([ToolCallDelta(0, "a", "final_answer"), ToolCallDelta(0, arguments='{"city": "Oslo"')])
    assert partial.show() == {"city": "Oslo"}


def test_words_around_the_json_do_not_matter_and_shown_values_do_not_change() -> None:
    partial = PartialOutput(ExpectedOutput(list[dict[str, int]]))
    partial.add([TextDelta('Here it is:\n```json\n{"value": [{"a": 1}, {"b"')])
    first = partial.show()
    partial.add([TextDelta(": 2}]}\n```\nDone.")])
    assert (first, partial.show()) == ([{"a": 1}, {}], [{"a": 1}, {"b": 2}])
    bare = PartialOutput(ExpectedOutput(list[int]))
    bare.add([TextDelta(" [1, 2")])
    assert bare.show() == [1, 2]


def test_asking_at_every_event_reads_each_character_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fed: list[int] = []
    feed = PartialJson.feed

    def count(self: PartialJson, text: str) -> None:
        fed.append(len(text))
        feed(self, text)

    monkeypatch.setattr(PartialJson, "feed", count)
    partial = PartialOutput(ExpectedOutput({"type": "object"}))
    pieces = ["{", *(f'"{number}": [{number}], ' for number in range(500)), '"last": 1}']
    for piece in pieces:
        partial.add([TextDelta(piece)])
        assert partial.show() is not None
    assert sum(fed) == sum(map(len, pieces))
    assert partial.show()["499"] == [499]


def test_only_what_is_open_is_copied() -> None:
    document = PartialJson()
    document.feed('{"a": {"n": [1]}, "b": [{"c": 1}, {"d": "x')
    first = document.snapshot()
    document.feed('y"}]}')
    assert first == {"a": {"n": [1]}, "b": [{"c": 1}, {"d": "x"}]}
    assert document.snapshot() == {"a": {"n": [1]}, "b": [{"c": 1}, {"d": "xy"}]}
    assert first["a"] is document.snapshot()["a"]
    assert document.is_closed


if TYPE_CHECKING:
    # The type checkers of the house read this: the output of a reply has the type that was asked for.
    assert_type(asides.ask(MODEL, "?", output=Weather), asides.Reply[Weather])
    assert_type(asides.ask(MODEL, "?", output=list[int], seed=1).output, list[int])
    assert_type(asides.ask(MODEL, "?", output=SCHEMA).output, Any)
    assert_type(asides.ask(MODEL, "?").output, Any)
    assert_type(asides.stream(MODEL, "?", output=Weather).reply.output, Weather)
    assert_type(asides.aio.stream(MODEL, "?", output=Weather).reply.output, Weather)
    assert_type(asides.Client().ask(MODEL, "?", output=Weather).output, Weather)
    assert_type(asides.AsyncClient().stream(MODEL, "?", output=Weather).reply.output, Weather)
    assert_type(asides.Conversation().ask("?", output=Weather).output, Weather)
    assert_type(asides.Conversation().stream("?", output=Weather).reply.output, Weather)
    assert_type(asides.AsyncConversation().stream("?", output=Weather).reply.output, Weather)
