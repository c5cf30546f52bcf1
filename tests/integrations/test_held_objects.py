"""What the real clients and libraries hold, on the strict stage: read, sent back in the next turn, and accepted.

Each way asks the stage with another library, and returns the messages before the answer, the answer as the library
holds it, and the result of its tool call as people write it there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import asides
from asides.values.errors import ConfigError
from asides.values.parts import ToolCall
from asides_stage import OpenStage, Say, Stage

# The libraries' own warnings are not ours.
pytestmark = [pytest.mark.clients, pytest.mark.filterwarnings("default")]

QUESTION = {"role": "user", "content": "What is the weather in Kyoto?"}
ARGUMENTS: dict[str, Any] = {"city": "Kyoto", "unit": None}
SCENES = [
    Say(thinking="Look it up.", text="Let me see.", tool_calls=(ToolCall("call_1abcdefgh", "weather", ARGUMENTS),)),
    Say(thinking="Now I know.", text="It is 18 degrees."),
]
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}, "unit": {"type": "string"}}}
FUNCTION: dict[str, Any] = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
MODELS = {
    "chat": "deepseek:deepseek-reasoner",
    "responses": "openai-responses:gpt-5.2",
    "anthropic": "anthropic:claude-opus-4-5",
    "gemini": "gemini:gemini-3-pro-preview",
    "ollama": "ollama:qwen3",
    "cohere": "cohere:command-a-reasoning-08-2025",
    "bedrock": "bedrock:anthropic.claude-opus-4-5-20251101-v1:0",
}
THINKS: dict[str, dict[str, Any]] = {name: {"thinking": 1024, "max_tokens": 3000} for name in ("anthropic", "bedrock")}
KEY = "sk-made-up"
Held = tuple[list[Any], Any, Any]
WAYS: dict[str, tuple[str, Callable[[Stage], Held]]] = {}


def way(name: str, dialect: str) -> Callable[[Callable[[Stage], Held]], Callable[[Stage], Held]]:
    def add(ask: Callable[[Stage], Held]) -> Callable[[Stage], Held]:
        WAYS[name] = dialect, ask
        return ask

    return add


def weather(city: str, unit: str | None = None) -> str:
    """The weather of a city."""
    return "18"


def get_root(stage: Stage) -> str:
    return stage.url.removesuffix("/v1")


# --- openai -----------------------------------------------------------------------------------------------------------

TOOL_MESSAGE = {"role": "tool", "tool_call_id": "call_1abcdefgh", "content": "18"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1abcdefgh", "output": "18"}


def open_openai(stage: Stage) -> Any:
    openai = pytest.importorskip("openai")
    return openai.OpenAI(base_url=stage.url, api_key=KEY, max_retries=0)


def complete(stage: Stage, **options: Any) -> Any:
    client = open_openai(stage)
    return client.chat.completions.create(model="deepseek-reasoner", messages=[QUESTION], tools=[FUNCTION], **options)


@way("openai: completion", "chat")
def _(stage: Stage) -> Held:
    return [QUESTION], complete(stage), TOOL_MESSAGE


@way("openai: message", "chat")
def _(stage: Stage) -> Held:
    return [QUESTION], complete(stage).choices[0].message, TOOL_MESSAGE


@way("openai: chunks", "chat")
def _(stage: Stage) -> Held:
    return [QUESTION], asides.read(list(complete(stage, stream=True))), TOOL_MESSAGE


@way("openai: helper of a stream", "chat")
def _(stage: Stage) -> Held:
    options: dict[str, Any] = {"model": "deepseek-reasoner", "messages": [QUESTION], "tools": [FUNCTION]}
    with open_openai(stage).chat.completions.stream(**options) as stream:
        events = list(stream)
        final = stream.get_final_completion()
    assert asides.read(events) == asides.read(final)
    return [QUESTION], final, TOOL_MESSAGE


RESPONSE_OPTIONS: dict[str, Any] = {
    "model": "gpt-5.2",
    "input": [QUESTION],
    "store": False,
    "reasoning": {"effort": "low", "summary": "auto"},
    "include": ["reasoning.encrypted_content"],
    "tools": [{"type": "function", "name": "weather", "parameters": SCHEMA}],
}


@way("openai: response", "responses")
def _(stage: Stage) -> Held:
    return [QUESTION], open_openai(stage).responses.create(**RESPONSE_OPTIONS), OUTPUT


@way("openai: output items", "responses")
def _(stage: Stage) -> Held:
    response = open_openai(stage).responses.create(**RESPONSE_OPTIONS)
    return [QUESTION], response.output, OUTPUT


@way("openai: events", "responses")
def _(stage: Stage) -> Held:
    events = list(open_openai(stage).responses.create(stream=True, **RESPONSE_OPTIONS))
    return [QUESTION], asides.read(events), OUTPUT


@way("openai: helper of a response's stream", "responses")
def _(stage: Stage) -> Held:
    with open_openai(stage).responses.stream(**RESPONSE_OPTIONS) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert asides.read(events) == asides.read(final)
    return [QUESTION], final, OUTPUT


# --- anthropic --------------------------------------------------------------------------------------------------------

RESULT = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "call_1abcdefgh", "content": "18"}],
}
MESSAGE_OPTIONS: dict[str, Any] = {
    "model": "claude-opus-4-5",
    "max_tokens": 3000,
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "messages": [QUESTION],
    "tools": [{"name": "weather", "input_schema": SCHEMA}],
}


def open_anthropic(stage: Stage) -> Any:
    anthropic = pytest.importorskip("anthropic")
    return anthropic.Anthropic(base_url=get_root(stage), api_key=KEY, max_retries=0)


@way("anthropic: message", "anthropic")
def _(stage: Stage) -> Held:
    return [QUESTION], open_anthropic(stage).messages.create(**MESSAGE_OPTIONS), RESULT


@way("anthropic: beta message", "anthropic")
def _(stage: Stage) -> Held:
    return [QUESTION], open_anthropic(stage).beta.messages.create(**MESSAGE_OPTIONS), RESULT


@way("anthropic: blocks in a dict", "anthropic")
def _(stage: Stage) -> Held:
    message = open_anthropic(stage).messages.create(**MESSAGE_OPTIONS)
    return [QUESTION], {"role": "assistant", "content": message.content}, RESULT


@way("anthropic: events", "anthropic")
def _(stage: Stage) -> Held:
    events = list(open_anthropic(stage).messages.create(stream=True, **MESSAGE_OPTIONS))
    return [QUESTION], asides.read(events), RESULT


@way("anthropic: helper of a stream", "anthropic")
def _(stage: Stage) -> Held:
    with open_anthropic(stage).messages.stream(**MESSAGE_OPTIONS) as stream:
        events = list(stream)
        final = stream.get_final_message()
    assert asides.read(events) == asides.read(final)
    return [QUESTION], final, RESULT


# --- google-genai -----------------------------------------------------------------------------------------------------


def open_google(stage: Stage) -> tuple[Any, Any, dict[str, Any]]:
    pytest.importorskip("google.genai")
    from google import genai
    from google.genai import types

    client = genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=get_root(stage)))
    declared = types.FunctionDeclaration(name="weather", parameters_json_schema=SCHEMA)
    config = types.GenerateContentConfig(
        thinking_config=types.ThinkingConfig(include_thoughts=True),
        tools=[types.Tool(function_declarations=[declared])],
    )
    part = types.Part.from_function_response(name="weather", response={"result": "18"})
    result = types.Content(role="user", parts=[part])
    return client, result, {"model": "gemini-3-pro-preview", "config": config}


@way("google-genai: response", "gemini")
def _(stage: Stage) -> Held:
    client, result, options = open_google(stage)
    return [QUESTION], client.models.generate_content(contents=QUESTION["content"], **options), result


@way("google-genai: content", "gemini")
def _(stage: Stage) -> Held:
    client, result, options = open_google(stage)
    response = client.models.generate_content(contents=QUESTION["content"], **options)
    return [QUESTION], response.candidates[0].content, result


@way("google-genai: chunks", "gemini")
def _(stage: Stage) -> Held:
    client, result, options = open_google(stage)
    chunks = list(client.models.generate_content_stream(contents=QUESTION["content"], **options))
    return [QUESTION], asides.read(chunks), result


@way("google-genai: history of a chat", "gemini")
def _(stage: Stage) -> Held:
    client, result, options = open_google(stage)
    chat = client.chats.create(**options)
    chat.send_message(QUESTION["content"])
    *before, answer = chat.get_history()
    return before, answer, result


# --- ollama, cohere, boto3 --------------------------------------------------------------------------------------------


def open_ollama(stage: Stage, **options: Any) -> Any:
    ollama = pytest.importorskip("ollama")
    client = ollama.Client(host=get_root(stage))
    return client.chat(model="qwen3", messages=[QUESTION], think=True, tools=[FUNCTION], **options)


@way("ollama: response", "ollama")
def _(stage: Stage) -> Held:
    return [QUESTION], open_ollama(stage), {"role": "tool", "tool_name": "weather", "content": "18"}


@way("ollama: message", "ollama")
def _(stage: Stage) -> Held:
    answer = open_ollama(stage).message
    return [QUESTION], answer, type(answer)(role="tool", tool_name="weather", content="18")


@way("ollama: chunks", "ollama")
def _(stage: Stage) -> Held:
    answer = asides.read(list(open_ollama(stage, stream=True)))
    return [QUESTION], answer, {"role": "tool", "tool_name": "weather", "content": "18"}


def open_cohere(stage: Stage) -> tuple[Any, dict[str, Any]]:
    cohere = pytest.importorskip("cohere")
    client = cohere.ClientV2(api_key=KEY, base_url=get_root(stage))
    return client, {"model": "command-a-reasoning-08-2025", "messages": [QUESTION], "tools": [FUNCTION]}


@way("cohere: response", "cohere")
def _(stage: Stage) -> Held:
    client, options = open_cohere(stage)
    return [QUESTION], client.chat(**options), TOOL_MESSAGE


@way("cohere: message", "cohere")
def _(stage: Stage) -> Held:
    client, options = open_cohere(stage)
    return [QUESTION], client.chat(**options).message, TOOL_MESSAGE


@way("cohere: events", "cohere")
def _(stage: Stage) -> Held:
    client, options = open_cohere(stage)
    return [QUESTION], asides.read(list(client.chat_stream(**options))), TOOL_MESSAGE


CONVERSE_QUESTION = {"role": "user", "content": [{"text": QUESTION["content"]}]}
TOOL_RESULT = {
    "role": "user",
    "content": [{"toolResult": {"toolUseId": "call_1abcdefgh", "content": [{"text": "18"}]}}],
}


def open_boto3(stage: Stage) -> tuple[Any, dict[str, Any]]:
    boto3 = pytest.importorskip("boto3")
    names = {"aws_access_key_id": "AKIAMADEUP", "aws_secret_access_key": "made-up", "region_name": "us-east-1"}
    client = boto3.client("bedrock-runtime", endpoint_url=get_root(stage), **names)
    return client, {
        "modelId": "anthropic.claude-opus-4-5-20251101-v1:0",
        "messages": [CONVERSE_QUESTION],
        "inferenceConfig": {"maxTokens": 3000},
        "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        "toolConfig": {"tools": [{"toolSpec": {"name": "weather", "inputSchema": {"json": SCHEMA}}}]},
    }


@way("boto3: response", "bedrock")
def _(stage: Stage) -> Held:
    client, options = open_boto3(stage)
    return [CONVERSE_QUESTION], client.converse(**options), TOOL_RESULT


@way("boto3: message", "bedrock")
def _(stage: Stage) -> Held:
    client, options = open_boto3(stage)
    return [CONVERSE_QUESTION], client.converse(**options)["output"]["message"], TOOL_RESULT


@way("boto3: events", "bedrock")
def _(stage: Stage) -> Held:
    client, options = open_boto3(stage)
    return [CONVERSE_QUESTION], asides.read(list(client.converse_stream(**options)["stream"])), TOOL_RESULT


# --- LangChain --------------------------------------------------------------------------------------------------------


def ask_langchain(stage: Stage, version: str, *, stream: bool) -> Held:
    pytest.importorskip("langchain_openai")
    from langchain_core.messages import HumanMessage, ToolMessage
    from langchain_openai import ChatOpenAI

    options = {name: RESPONSE_OPTIONS[name] for name in ("model", "reasoning", "include", "store")}
    chosen: Any = {**options, "base_url": stage.url, "api_key": KEY, "output_version": version}
    model = ChatOpenAI(use_responses_api=True, **chosen).bind_tools([weather])
    question = HumanMessage(QUESTION["content"])
    answer: Any = list(model.stream([question])) if stream else model.invoke([question])
    answer = asides.read(answer) if stream else answer
    return [question], answer, ToolMessage("18", tool_call_id="call_1abcdefgh", name="weather")


for output_version in ("v0", "responses/v1", "v1"):
    WAYS[f"LangChain {output_version}: message"] = (
        "responses",
        lambda stage, version=output_version: ask_langchain(stage, version, stream=False),  # type: ignore[misc]
    )
    WAYS[f"LangChain {output_version}: chunks"] = (
        "responses",
        lambda stage, version=output_version: ask_langchain(stage, version, stream=True),  # type: ignore[misc]
    )


# --- pydantic-ai ------------------------------------------------------------------------------------------------------


def run_agent(stage: Stage, kind: str, name: str, **settings: Any) -> list[Any]:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai.models import openai as models
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=stage.url, api_key=KEY)
    model = getattr(models, kind)(name, provider=provider)
    agent: Any = Agent(model, model_settings=settings, instructions="Be brief.", system_prompt="Be kind.")  # type: ignore[call-overload]
    agent.tool_plain(weather)
    messages: list[Any] = agent.run_sync(QUESTION["content"]).all_messages()
    return messages


@way("pydantic-ai: responses", "responses")
def _(stage: Stage) -> Held:
    effort = {"openai_reasoning_effort": "low", "openai_reasoning_summary": "auto", "openai_store": False}
    first, answer, result, _last = run_agent(stage, "OpenAIResponsesModel", "gpt-5.2", **effort)
    return [first], answer, result


@way("pydantic-ai: chat", "chat")
def _(stage: Stage) -> Held:
    first, answer, result, _last = run_agent(stage, "OpenAIChatModel", "deepseek-reasoner")
    return [first], answer, result


# --- the next turn ----------------------------------------------------------------------------------------------------


def find_address(stage: Stage, dialect: str) -> str:
    paths = {"gemini": "/v1beta", "cohere": "/v2", "bedrock": "", "ollama": ""}
    return get_root(stage) + paths.get(dialect, "/v1")


@pytest.mark.parametrize("name", WAYS)
def test_the_next_turn_is_accepted_with_the_thinking_of_the_last(stage: OpenStage, name: str) -> None:
    dialect, ask = WAYS[name]
    opened = stage(SCENES)
    before, answer, result = ask(opened)

    reply = asides.read(answer)
    assert reply.thinking
    assert (reply.text, reply.thinking.text, reply.outcome) == ("Let me see.", "Look it up.", "tool_calls")
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("weather", ARGUMENTS)]
    if dialect in ("responses", "anthropic", "gemini", "bedrock"):
        assert reply.seals

    options: dict[str, Any] = {"base_url": find_address(opened, dialect), "api_key": KEY, "tools": [weather]}
    held = answer if isinstance(answer, list) else [answer]
    again = asides.ask(MODELS[dialect], [*before, *held, result], **options, **THINKS.get(dialect, {}))
    assert again.text == "It is 18 degrees."
    assert opened.refusals == []
    sent = str(opened.requests[-1].body)
    assert all(seal.value in sent for seal in reply.seals)
    assert dialect == "gemini" or "Look it up." in sent  # which wants the signature, not the text
    told = {notice.code for notice in again.warnings}
    assert told.isdisjoint({"orphan_tool_result", "dangling_tool_call", "thoughts_rejected", "signature_stand_in"})


@pytest.mark.parametrize("name", ["openai: response", "anthropic: message", "google-genai: response"])
def test_a_conversation_goes_on_where_a_client_ended(stage: OpenStage, name: str) -> None:
    dialect, ask = WAYS[name]
    opened = stage(SCENES)
    before, answer, result = ask(opened)
    options: dict[str, Any] = {"base_url": find_address(opened, dialect), "api_key": KEY, "tools": [weather]}
    chat = asides.Conversation(MODELS[dialect], messages=[*before, answer], **options, **THINKS.get(dialect, {}))
    assert chat.usage.output is not None
    assert (len(chat), chat.ask(result).text, opened.refusals) == (2, "It is 18 degrees.", [])
    assert len(chat) == 4
    found = asides.diagnose([*before, answer, result], MODELS[dialect]).findings
    assert [finding for finding in found if finding.effect == "refused"] == []


def test_an_agent_goes_on_with_what_a_client_holds(stage: OpenStage) -> None:
    opened = stage(SCENES)
    before, answer, result = WAYS["anthropic: message"][1](opened)
    agent = asides.Agent(MODELS["anthropic"], tools=[weather], base_url=opened.url, api_key=KEY, **THINKS["anthropic"])
    assert (agent.send([*before, answer, result]).output, opened.refusals) == ("It is 18 degrees.", [])


# --- too early --------------------------------------------------------------------------------------------------------


def test_what_was_not_awaited_or_read_is_told(stage: OpenStage) -> None:
    opened = stage(SCENES[0])
    openai, anthropic = pytest.importorskip("openai"), pytest.importorskip("anthropic")
    with complete(opened, stream=True) as stream:
        ways: list[Callable[[Any], Any]] = [asides.read]
        ways += [lambda value: asides.ask(MODELS["chat"], value), lambda value: asides.ask(MODELS["chat"], [value])]
        for take in ways:
            with pytest.raises(ConfigError, match=r"a Stream is a stream that was not read. Collect it"):
                take(stream)
        assert asides.read(list(stream)).text == "Let me see."  # nothing of it was read
    with pytest.raises(ConfigError, match="a stream that was not opened"):
        asides.read(open_anthropic(opened).messages.stream(**MESSAGE_OPTIONS))
    raw = open_openai(opened).responses.with_raw_response.create(**RESPONSE_OPTIONS)
    with pytest.raises(ConfigError, match=r"a raw response. Pass what its parse\(\) returns"):
        asides.read(raw)

    async def ask() -> None:
        async with openai.AsyncOpenAI(base_url=opened.url, api_key=KEY) as client:
            coroutine = client.responses.create(**RESPONSE_OPTIONS)
            with pytest.raises(ConfigError, match="a coroutine was not awaited"):
                asides.read(coroutine)
            assert asides.read(await coroutine).text == "Let me see."
        async with anthropic.AsyncAnthropic(base_url=get_root(opened), api_key=KEY) as client:
            stream = await client.messages.create(stream=True, **MESSAGE_OPTIONS)
            with pytest.raises(ConfigError, match="event async for event in stream"):
                asides.read(stream)
            assert asides.read([event async for event in stream]).text == "Let me see."

    asyncio.run(ask())
