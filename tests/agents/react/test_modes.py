"""ReAct beside everything else: typed answers, and one conversation in both modes, over every strict wire language."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import asides
from asides.values.parts import ToolCall
from asides_stage.stage import OpenStage, Say

MODELS = [
    "openai-compatible:made-up",
    "openai-responses:gpt-5",
    "anthropic:claude-sonnet-4-5",
    "gemini:gemini-2.5-flash",
    "gemini:gemini-3-pro-preview",
    "ollama:qwen3:8b",
    "cohere:command-a-reasoning-08-2025",
    "bedrock:openai.gpt-oss-120b-1:0",
]
each = pytest.mark.parametrize("model", MODELS)


@pytest.fixture(autouse=True)
def _region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")


@dataclass
class Weather:
    city: str
    degrees: int


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"5 degrees in {city}"


@each
def test_a_typed_answer_is_read_from_the_final_answer(model: str, stage: OpenStage) -> None:
    server = stage(
        Say(text="Thought: look\nAction: get_weather\nAction Input: Oslo"),
        Say(text='Thought: {"city": "Rome", "degrees": 30}\nFinal Answer: {"city": "Oslo", "degrees": 5}'),
    )
    with asides.Client() as client:
        agent = asides.Agent(
            model, tools=[get_weather], output=Weather, mode="react", client=client, base_url=server.url, api_key="k"
        )
        assert agent.send("How is Oslo?").output == Weather("Oslo", 5)


@each
def test_one_conversation_goes_on_in_either_mode(model: str, stage: OpenStage) -> None:
    call = ToolCall("c1", "get_weather", {"city": "Rome"})
    native = Say(thinking="canary7f3a", text="Look.", tool_calls=(call,))
    server = stage(
        native,
        Say(thinking="canary7f3a", text="Warm."),
        Say(thinking="canary7f3a", text="Action: get_weather\nAction Input: Oslo"),
        Say(text="Final Answer: Cold."),
        native,
        Say(text="Warm again."),
    )
    chat = asides.Conversation()
    with asides.Client(base_url=server.url, api_key="k", max_tokens=9000, thinking="low") as client:
        calling = asides.Agent(model, tools=[get_weather], client=client)
        writing = asides.Agent(model, tools=[get_weather], client=client, mode="react")
        answers = [
            calling.send("Rome?", conversation=chat).output,
            writing.send("Oslo?", conversation=chat).output,
            calling.send("Rome?", conversation=chat).output,
        ]
    assert answers == ["Warm.", "Cold.", "Warm again."]
    ids = [call.id for message in chat.messages for call in message.tool_calls]
    assert len(ids) == len(set(ids)) == 3
    assert all("canary7f3a" not in message.text for message in chat.messages)


def test_a_final_answer_written_as_an_action_is_read_by_what_was_asked_for(stage: OpenStage) -> None:
    @dataclass
    class Verdict:
        answer: str

    said = Say(text='Thought: I know.\nAction: final_answer\nAction Input: {"answer": "done"}')
    agent = asides.Agent(
        "openai-compatible:made-up", tools=[get_weather], mode="react", base_url=stage(said).url, api_key="k"
    )
    assert agent.send("?").output == "done"
    assert agent.send("?", output=Verdict).output == Verdict("done")


@pytest.mark.parametrize(("model", "bound"), [("anthropic:claude-opus-5-5", True), ("anthropic:claude-opus-5", False)])
def test_thoughts_that_are_bound_to_the_history_do_not_change_modes(model: str, bound: bool, stage: OpenStage) -> None:
    """In ReAct, a model sees other messages and another system prompt than in the conversation. After it, the history
    has calls, and the tools that they need stand before everything.
    """
    written = Say(thinking="b", text="Action: get_weather\nAction Input: Oslo")
    server = stage(Say(thinking="a", text="1"), written, Say(text="Final Answer: 2"), Say(text="3"))
    with asides.Client() as client:
        chat = asides.Conversation(model, client=client, base_url=server.url, api_key="k")
        chat.ask("?", thinking="high")
        agent = asides.Agent(
            model, tools=[get_weather], mode="react", client=client, base_url=server.url, api_key="k", thinking="high"
        )
        agent.send("How is Oslo?", conversation=chat)
        chat.ask("And?", thinking="high")
    first, second = (part for message in chat.messages for part in message.parts if isinstance(part, asides.Thought))
    assert (first.can_replay, second.can_replay) == (True, not bound)
    sent = [request.body.decode() for request in server.requests]
    assert [body.count('"signature"') for body in sent] == ([0, 0, 0, 0] if bound else [0, 1, 2, 2])
