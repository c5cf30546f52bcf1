"""Libraries that take an HTTP client or an official client: pydantic-ai, LangChain's ChatOpenAI, and makers' SDKs."""

from __future__ import annotations

from typing import Any

import httpx
import httpx2
import pytest

from asides.openai import AsidesTransport, AsyncAsidesTransport, AsyncOpenAI
from asides_stage import OpenStage
from tests.integrations.upstreams import (
    ANSWER,
    CANARY,
    DONE,
    EVERY_STATE,
    QUESTION,
    SCHEMA,
    STEPS,
    SUM,
    Behind,
    count_states,
    for_each_upstream,
    report_weather,
    walk,
)


def get_weather(place: str) -> str:
    """The weather of a place."""
    return report_weather(int(place.rpartition(" ")[2]))


# --- pydantic-ai ------------------------------------------------------------------------------------------------------


def build_pydantic_model(kind: str, model: str) -> Any:
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    if kind == "chat":
        return OpenAIChatModel(model, provider=OpenAIProvider(openai_client=AsyncOpenAI()))
    if kind == "responses":
        return OpenAIResponsesModel(model, provider=OpenAIProvider(openai_client=AsyncOpenAI()))
    client = httpx2.AsyncClient(transport=AsyncAsidesTransport())
    return OpenAIChatModel(model, provider=OpenAIProvider(api_key="none", http_client=client))


@for_each_upstream
@pytest.mark.parametrize("kind", ["chat", "responses", "chat over http_client"])
async def test_an_agent_of_pydantic_ai(behind: Behind, stage: OpenStage, model: str, kind: str) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ThinkingPart

    opened = behind(walk)
    stage.expect_no_refusals()
    settings: Any = {"openai_reasoning_effort": "high", "openai_reasoning_summary": "auto"}
    agent = Agent(build_pydantic_model(kind, model), tools=[get_weather], model_settings=settings)
    first = await agent.run(QUESTION)
    thoughts = [part for message in first.all_messages() for part in message.parts if isinstance(part, ThinkingPart)]
    assert (first.output, len(thoughts) >= STEPS) == (DONE, True)
    # Raw thinking of Responses is not put into the content there.
    assert any(CANARY in f"{thought.content} {thought.provider_details}" for thought in thoughts)
    second = await agent.run("And tomorrow?", message_history=first.all_messages())
    assert second.output == DONE
    assert count_states(opened)[: STEPS + 1] == EVERY_STATE
    stage.assert_no_leak(CANARY)


@for_each_upstream
async def test_a_streamed_run_of_pydantic_ai(behind: Behind, stage: OpenStage, model: str) -> None:
    from pydantic_ai import Agent

    behind(walk)
    stage.expect_no_refusals()
    agent = Agent(build_pydantic_model("chat", model), tools=[get_weather])
    async with agent.run_stream(QUESTION) as run:
        assert [text async for text in run.stream_text()][-1] == DONE


# --- LangChain's ChatOpenAI -------------------------------------------------------------------------------------------


@for_each_upstream
@pytest.mark.parametrize("responses", [False, True], ids=["chat", "responses"])
def test_langchains_chat_openai(behind: Behind, stage: OpenStage, model: str, responses: bool) -> None:
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_openai import ChatOpenAI

    opened = behind(walk)
    stage.expect_no_refusals()
    with httpx2.Client(transport=AsidesTransport()) as client:
        chat: Any = ChatOpenAI(
            model=model,
            api_key="none",  # type: ignore[arg-type]
            http_client=client,
            use_responses_api=responses,
            reasoning_effort="high",
        ).bind_tools([{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}])
        history: list[Any] = [HumanMessage(QUESTION)]
        for number in range(STEPS):
            history.append(chat.invoke(history))
            [call] = history[-1].tool_calls
            assert call["args"] == {"place": f"place {number}"}
            history.append(ToolMessage(report_weather(number), tool_call_id=call["id"]))
        assert chat.invoke(history).text == DONE
        assert "".join(chunk.text for chunk in chat.stream(history)) == DONE
    assert count_states(opened)[: STEPS + 1] == EVERY_STATE


# --- other makers' clients --------------------------------------------------------------------------------------------


def test_ollamas_client(behind: Behind) -> None:
    import ollama

    behind()
    client = ollama.Client(transport=AsidesTransport())
    reply = client.chat("anthropic:claude-opus-5-5", [{"role": "user", "content": SUM}], think="high")
    assert (reply.message.content, "920" in (reply.message.thinking or "")) == (ANSWER, True)
    pieces = client.chat("anthropic:claude-opus-5-5", [{"role": "user", "content": SUM}], stream=True)
    assert "".join(piece.message.content or "" for piece in pieces) == ANSWER


def test_coheres_client(behind: Behind) -> None:
    import cohere

    behind()
    with httpx.Client(transport=AsidesTransport()) as http:
        client = cohere.ClientV2(api_key="none", httpx_client=http)
        reply: Any = client.chat(model="gemini:gemini-3-pro-preview", messages=[{"role": "user", "content": SUM}])  # type: ignore[list-item]
        assert reply.message.content[-1].text == ANSWER


def test_googles_client(behind: Behind) -> None:
    from google import genai

    behind()
    client = genai.Client(
        api_key="none", http_options=genai.types.HttpOptions(client_args={"transport": AsidesTransport()})
    )
    reply = client.models.generate_content(model="anthropic:claude-opus-5-5", contents=SUM)
    assert reply.text == ANSWER
    pieces = client.models.generate_content_stream(model="anthropic:claude-opus-5-5", contents=SUM)
    assert "".join(piece.text or "" for piece in pieces) == ANSWER
    client.close()
