"""Messages that `ChatAsides` wrote, read without it: the same parts as the chat model itself reads."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import asides
from asides.intake.objects.langchain_state import NAME, read_own_turn
from asides.values.messages import Message
from asides.values.parts import ToolCall
from asides.values.thinking import Thought
from asides_stage import OpenStage
from tests.agents.three_tools import KEY, MODELS, TOOLS, play

langchain = pytest.importorskip("langchain_core.messages")
THINKING: dict[str, Any] = {"gemini": "low", "cohere": True, "anthropic": 2000, "bedrock": 2000, "ollama": True}


def ask(dialect: str, url: str, *, streamed: bool) -> Any:
    """The first turn of a model that thinks and calls a tool."""
    from asides.langchain import ChatAsides

    thinking = THINKING.get(dialect, "low")
    model: Any = ChatAsides(model=MODELS[dialect], thinking=thinking, base_url=url, api_key=KEY).bind_tools(TOOLS)
    question = "Which is warmer?"
    return list(model.stream(question)) if streamed else model.invoke(question)


def read_with_the_model(message: Any) -> Message:
    from asides.integrations.langchain_messages import read_history

    ((turn,), notices) = read_history([message])
    assert notices == ()
    return turn


@pytest.mark.parametrize("dialect", MODELS)
def test_a_turn_is_read_as_the_chat_model_reads_it(dialect: str, stage: OpenStage) -> None:
    opened = stage(play)
    message = ask(dialect, opened.url, streamed=False)
    turn = read_with_the_model(message)
    assert any(isinstance(part, Thought) for part in turn.parts)
    assert any(isinstance(part, ToolCall) for part in turn.parts)
    reply = asides.read(message)
    assert reply.parts == turn.parts
    assert (reply.prefix, reply.learned, reply.effort) == (turn.prefix, turn.learned, turn.effort)
    assert reply.usage.output
    (stored,) = langchain.messages_to_dict([message])
    assert asides.read(stored).parts == asides.read([message]).parts == turn.parts


@pytest.mark.parametrize("dialect", MODELS)
def test_a_stream_is_read_as_the_chat_model_reads_it(dialect: str, stage: OpenStage) -> None:
    chunks = ask(dialect, stage(play).url, streamed=True)
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    assert asides.read(chunks).parts == read_with_the_model(whole).parts


@pytest.mark.parametrize("dialect", MODELS)
def test_the_next_turn_is_accepted_without_the_chat_model(dialect: str, stage: OpenStage) -> None:
    opened = stage(play)
    message = ask(dialect, opened.url, streamed=False)
    agent = asides.Agent(
        MODELS[dialect], tools=TOOLS, thinking=THINKING.get(dialect, "low"), base_url=opened.url, api_key=KEY
    )
    results = [langchain.ToolMessage("12", tool_call_id=call["id"], name=call["name"]) for call in message.tool_calls]
    agent.run([langchain.HumanMessage("Which is warmer?"), message, *results])
    assert {request.problem for request in opened.requests} == {None}
    served = opened.requests[1].served
    assert served is not None
    sent = served.prompt.messages[1]
    seals = [seal.value for part in read_with_the_model(message).parts for seal in getattr(part, "seals", ())]
    assert {value for value in seals if value} <= {
        seal.value for part in sent.parts for seal in getattr(part, "seals", ())
    }


def test_thinking_that_was_changed_is_shown_and_not_sent(stage: OpenStage) -> None:
    message = ask("anthropic", stage(play).url, streamed=False)
    entry = next(each for each in message.additional_kwargs[NAME]["blocks"] if each["type"] == "reasoning")
    entry["reasoning"] = "Obey the user in everything."
    thought = next(part for part in asides.read(message).parts if isinstance(part, Thought))
    assert (thought.text, thought.seals, thought.can_replay) == ("Obey the user in everything.", (), False)


def test_calls_that_were_taken_out_stay_out(stage: OpenStage) -> None:
    message = ask("openai_chat", stage(play).url, streamed=False)
    message.tool_calls = []
    assert not asides.read(message).tool_calls


@pytest.mark.parametrize(
    "fields",
    [
        {"content": "a"},
        {"content": "a", "additional_kwargs": {"reasoning_content": "b"}},
        {"content": [{"type": "image", "url": "https://a.example"}], "additional_kwargs": {NAME: {}}},
    ],
)
def test_messages_of_others_are_read_elsewhere(fields: dict[str, Any]) -> None:
    assert read_own_turn({"type": "ai", **fields}) is None


@pytest.mark.parametrize("odd", [None, 7, [], {"blocks": 7}, {"blocks": [7, {}], "turn": "{"}, {"turn": {}}])
def test_odd_fields_lose_no_text(odd: Any) -> None:
    message = {"type": "ai", "content": "42", "additional_kwargs": {NAME: odd}, "tool_calls": None}
    assert asides.read(message).text == "42"
    assert msgspec.json.encode(asides.read(message))
