"""ReAct as a text dialect, by requirement: a stage that plays it as text, asked over sockets in four wire languages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import asides
from asides.agents.react.calls import build_correction, find_problem
from asides.agents.react.encode_prompt import encode_prompt
from asides.agents.react.translator import Translator
from asides.providers.find import find_target
from asides.values.events import Event, StopReason, TextDelta, ThinkingDelta, ToolCallDelta
from asides.values.fold import fold
from asides.values.messages import Message, Prompt, user
from asides.values.parts import ToolResult
from asides.values.reply import Reply
from asides.values.thinking import read_thinking
from asides_stage.stage import OpenStage, Say, Stage
from tests.agents.react.translating import TOOLS, codes, shown

MODELS = [
    "openai-compatible:made-up",
    "anthropic:claude-3-haiku-20240307",
    "gemini:gemini-2.0-flash",
    "ollama:gemma3",
]
CANARY = "canary7f3a"
OSLO = {"city": "Oslo"}
each = pytest.mark.parametrize("model", MODELS)


@pytest.fixture
def client() -> Iterator[asides.Client]:
    with asides.Client() as client:
        yield client


def asked(client: asides.Client, stage: Stage, model: str, prompt: Prompt, **options: Any) -> list[Event]:
    """The translated events of one encoded prompt."""
    target = find_target(model, base_url=stage.url)
    translator = Translator(prompt.tools)
    events: list[Event] = []
    options = {"base_url": stage.url, "api_key": "made-up", "max_tokens": 500, **options}
    with client.stream(model, encode_prompt(prompt, target), **options) as stream:
        for event in stream:
            events += translator.feed([event])
    return events


def replies(client: asides.Client, stage: OpenStage, model: str, text: str) -> Reply:
    """The reply that the text of a model is, streamed and whole, in pieces of any size, which must all be equal."""
    prompt = Prompt((user("How is Oslo?"),), tools=TOOLS)
    sizes = (1, 3, 1000)
    server = stage(*[Say(text=text, piece=piece, id="reply_1") for piece in sizes], Say(text=text, id="reply_1"))
    found = [
        fold(asked(client, server, model, prompt, stream=streamed)) for streamed in (*[True for _ in sizes], False)
    ]
    assert all(reply == found[0] for reply in found)
    assert "Action" not in found[0].text
    return found[0]


@each
def test_O1_FT_37_a_thought_and_an_action_in_json_are_a_thought_and_a_call(
    client: asides.Client, stage: OpenStage, model: str
) -> None:
    text = f'Thought: {CANARY}\nAction:\n```json\n{{"name": "get_weather", "arguments": {{"city": "Oslo"}}}}\n```'
    reply = replies(client, stage, model, text)
    assert shown(reply) == [("thought", CANARY), ("get_weather", OSLO)]
    assert reply.stop.reason == "tool_calls"
    assert reply.thinking
    assert (reply.thinking.kind, reply.thinking.source) == ("raw", "tags")
    assert reply.text == ""
    assert find_problem(reply, TOOLS) is None


@each
def test_O2_FT_37_an_action_and_its_input_are_a_call(client: asides.Client, stage: OpenStage, model: str) -> None:
    reply = replies(client, stage, model, 'Thought: look\nAction: get_weather\nAction Input: {"city": "Oslo"}\n')
    assert shown(reply) == [("thought", "look"), ("get_weather", OSLO)]
    assert find_problem(reply, TOOLS) is None


@each
def test_O3_FT_37_no_thought_is_fine_and_so_is_a_plain_answer(
    client: asides.Client, stage: OpenStage, model: str
) -> None:
    reply = replies(client, stage, model, "Action: get_weather\nAction Input: Oslo")
    assert shown(reply) == [("get_weather", OSLO)]
    assert find_problem(reply, TOOLS) is None
    for text in ("Sunny.", "Final Answer: Sunny."):
        plain = replies(client, stage, model, text)
        assert shown(plain) == [("text", "Sunny.")]
        assert plain.outcome == "answered"
        assert find_problem(plain, TOOLS) is None


@each
def test_O4_FT_37_two_actions_are_rejected_with_words_for_the_model(
    client: asides.Client, stage: OpenStage, model: str
) -> None:
    reply = replies(client, stage, model, "Action: now\nAction Input: {}\nAction: get_weather\nAction Input: Oslo")
    words = find_problem(reply, TOOLS)
    assert words is not None
    assert "2 Actions" in words
    assert "one Action" in words


@each
@pytest.mark.parametrize("given", ["{'city': 'Oslo'}", '{"city": "Oslo"', '{"city": Oslo}', "Oslo, Norway"])
def test_O5_FT_37_bad_json_is_rejected_and_the_right_form_is_shown(
    client: asides.Client, stage: OpenStage, model: str, given: str
) -> None:
    name = "add" if given.startswith("O") else "get_weather"
    reply = replies(client, stage, model, f"Thought: {CANARY}\nAction: {name}\nAction Input: {given}")
    assert reply.tool_calls[0].raw_arguments == given
    words = str(find_problem(reply, TOOLS))
    assert f'Action: {name}\nAction Input: {{"' in words
    assert CANARY not in words
    assert build_correction(words).role == "user"


@each
@pytest.mark.parametrize("inside", [f"Thought: {CANARY}", CANARY])
@pytest.mark.parametrize("tag", ["thinking", "think"])
def test_O6_S1_40_FT_37_a_thinking_block_before_an_action_is_fine_with_or_without_a_thought_in_it(
    client: asides.Client, stage: OpenStage, model: str, inside: str, tag: str
) -> None:
    for text in (
        f"<{tag}>{inside}</{tag}>\nAction: get_weather\nAction Input: Oslo",
        f"Thought: <{tag}>{CANARY}</{tag}>\nAction: get_weather\nAction Input: Oslo",
        f"Thought: {CANARY}\nAction: get_weather\nAction Input: Oslo",
    ):
        reply = replies(client, stage, model, text)
        assert [call.arguments for call in reply.tool_calls] == [OSLO]
        assert reply.text == ""
        assert reply.thinking
        # What a decoder has already set apart it tells verbatim.
        assert reply.thinking.text.removeprefix("Thought: ") == CANARY
        assert find_problem(reply, TOOLS) is None


@each
def test_S1_41_actions_and_answers_are_values_and_thinking_is_beside_them(
    client: asides.Client, stage: OpenStage, model: str
) -> None:
    prompt = Prompt((user("How is Oslo?"),), tools=TOOLS)
    server = stage(
        Say(text=f"Thought: {CANARY}\nAction: get_weather\nAction Input: Oslo"),
        Say(text=f"Thought: {CANARY}\nFinal Answer: Sunny,\n5 °C."),
    )
    first = fold(asked(client, server, model, prompt))
    (call,) = first.tool_calls
    turn = first.to_message()
    assert turn is not None
    told = Message("tool", (ToolResult(call.id, "sunny, 5 °C", call.name),))
    after = asides.Prompt((*prompt.messages, turn, told), tools=TOOLS)
    events = asked(client, server, model, after)
    answer = fold(events)
    assert answer.text == "Sunny,\n5 °C."
    assert answer.metadata["thinking"] == CANARY
    assert CANARY not in "".join(event.text for event in events if isinstance(event, TextDelta))
    # The second question carried the first turn without its thought.
    sent = server.requests[1].served
    assert sent is not None
    texts = [message.text for message in sent.prompt.messages if message.role != "system"]
    assert texts == ["How is Oslo?", 'Action: get_weather\nAction Input: {"city":"Oslo"}', "Observation: sunny, 5 °C"]
    assert sent.prompt.tools == ()
    assert CANARY.encode() not in server.requests[1].body


@each
def test_pain_G3_the_thought_of_a_text_protocol_never_leaks_and_the_answer_streams(
    client: asides.Client, stage: OpenStage, model: str
) -> None:
    text = f"Thought: {CANARY} {CANARY}\nFinal Answer: one two three"
    events = asked(client, stage(Say(text=text, piece=5)), model, Prompt((user("?"),), tools=TOOLS))
    said = [event.text for event in events if isinstance(event, TextDelta)]
    assert "".join(said) == "one two three"
    assert len(said) > 1
    assert "".join(event.text for event in events if isinstance(event, ThinkingDelta)) == f"{CANARY} {CANARY}"


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("deepseek:deepseek-reasoner", None),
        ("openai-chat:o3", None),
        ("gemini:gemini-2.5-flash", None),
        ("anthropic:claude-sonnet-4-5", 2048),
        ("ollama:qwen3:8b", "high"),
    ],
)
def test_pain_G3_a_native_reasoner_is_not_asked_to_write_its_thoughts(
    client: asides.Client, stage: OpenStage, model: str, thinking: Any
) -> None:
    server = stage(Say(thinking=CANARY, text="Action: get_weather\nAction Input: Oslo"))
    setting = read_thinking(thinking)[0]
    prompt = Prompt((user("?"),), tools=TOOLS, thinking=setting)
    reply = fold(asked(client, server, model, prompt, max_tokens=5000))
    sent = server.requests[0].served
    assert sent is not None
    told = (sent.prompt.system or "") + "".join(
        message.text for message in sent.prompt.messages if message.role == "system"
    )
    assert "Action Input: " in told
    assert "Thought" not in told
    assert [call.arguments for call in reply.tool_calls] == [OSLO]
    assert reply.thinking
    assert reply.thinking.source != "tags"


@each
def test_pain_B3_a_call_that_was_drafted_in_thinking_is_not_made(
    client: asides.Client, stage: OpenStage, model: str
) -> None:
    draft = "Action: now\nAction Input: {}"
    reply = replies(client, stage, model, f"<think>\n{draft}\n</think>\nAction: get_weather\nAction Input: Oslo")
    assert [call.name for call in reply.tool_calls] == ["get_weather"]
    alone = replies(client, stage, model, f"<think>\n{draft}\n</think>")
    assert alone.tool_calls == ()
    assert alone.text == ""
    assert find_problem(alone, TOOLS) is not None


def test_pain_B3_a_draft_in_the_field_for_thinking_is_not_a_call(client: asides.Client, stage: OpenStage) -> None:
    server = stage(Say(thinking="Action: now\nAction Input: {}", text="Final Answer: 42"))
    events = asked(client, server, MODELS[0], Prompt((user("?"),), tools=TOOLS))
    assert not any(isinstance(event, ToolCallDelta) for event in events)
    assert fold(events).text == "42"


@each
def test_FT_37_an_observation_that_the_model_made_up_is_left_out(
    client: asides.Client, stage: OpenStage, model: str
) -> None:
    text = "Action: get_weather\nAction Input: Oslo\nObservation: rain\nThought: rain\nFinal Answer: It rains."
    reply = replies(client, stage, model, text)
    assert shown(reply) == [("get_weather", OSLO)]
    assert codes(reply)[-1:] == ["observation_invented"]


def test_FT_37_a_reply_that_ran_out_of_tokens_says_so(client: asides.Client, stage: OpenStage) -> None:
    server = stage(Say(text="Thought: and then", stop="length"))
    reply = fold(asked(client, server, MODELS[0], Prompt((user("?"),), tools=TOOLS)))
    assert reply.stop == StopReason("length", "length")
    assert reply.outcome == "starved"


# --- the agent ------------------------------------------------------------------------------------------------------


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


@each
@pytest.mark.parametrize("streamed", [True, False])
def test_S1_40_S1_41_FT_37_an_agent_in_react_mode_runs_tools_that_were_asked_for_in_text(
    client: asides.Client, stage: OpenStage, model: str, streamed: bool
) -> None:
    server = stage(
        Say(text=f"Thought: {CANARY} one\nAction: get_weather\nAction Input: Oslo"),
        Say(text=f"Thought: {CANARY} two\nFinal Answer: It is sunny."),
    )
    agent = asides.Agent(
        model, tools=[get_weather], mode="react", base_url=server.url, api_key="made-up", client=client, max_tokens=500
    )
    result = agent.send("How is Oslo?", stream=streamed)
    assert result.output == "It is sunny."
    assert [one.text for step in result.steps for one in step.results] == ["sunny in Oslo"]
    assert result.thinking
    assert result.thinking.text == f"{CANARY} one\n\n{CANARY} two"
    assert all(CANARY not in message.text for message in result.messages)
    assert all(CANARY.encode() not in request.body for request in server.requests)


@each
def test_O4_O5_FT_37_an_agent_tells_the_model_what_was_wrong_and_gives_up_in_the_end(
    client: asides.Client, stage: OpenStage, model: str
) -> None:
    bad = Say(text="Action: get_weather\nAction Input: {'city': 'Oslo'}")
    two = Say(text="Action: get_weather\nAction Input: Oslo\nAction: get_weather\nAction Input: Rome")
    server = stage(bad, two, Say(text="Final Answer: I do not know."))
    agent = asides.Agent(
        model, tools=[get_weather], mode="react", base_url=server.url, api_key="made-up", client=client, max_tokens=500
    )
    result = agent.send("How is Oslo?")
    assert result.output == "I do not know."
    assert all(step.results == () for step in result.steps)
    assert b"valid JSON" in server.requests[1].body
    assert b"2 Actions" in server.requests[2].body
    with pytest.raises(asides.InvalidOutput):
        agent.send("How is Oslo?", attempts=0, base_url=stage(bad).url)


def test_S1_41_without_being_asked_for_the_mode_is_off(client: asides.Client, stage: OpenStage) -> None:
    server = stage(Say(text="Action: get_weather\nAction Input: Oslo"))
    agent = asides.Agent(MODELS[0], tools=[get_weather], base_url=server.url, api_key="made-up", client=client)
    assert agent.send("How is Oslo?").output == "Action: get_weather\nAction Input: Oslo"
    sent = server.requests[0].served
    assert sent is not None
    assert [tool.name for tool in sent.prompt.tools] == ["get_weather"]
    assert b"Action Input" not in server.requests[0].body
