"""Strict stages that play every house, and one way to ask any of them: streamed or whole, blocking or awaiting, whole,
cancelled or cut. What the laws about whole conversations are tried on; no law is here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import count
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

import asides
from asides.providers.find import find_provider
from asides.values.errors import ProviderError, TransportError
from asides.values.events import Event, StopReason
from asides.values.fold import simulate
from asides.values.messages import Message
from asides.values.parts import Part, ToolCall
from asides.values.reply import Reply
from asides.values.tools import Tool
from asides.values.usage import Usage
from asides_stage.stage import Say, Scene, Stage

KEY = "sk-made-up-271828"
SYSTEM = "You look around."
TOOLS = [
    Tool(name, f"to {name}", {"type": "object", "properties": {"at": {"type": "integer"}}}) for name in ("look", "feel")
]

Chat: TypeAlias = asides.Conversation | asides.AsyncConversation
Returns: TypeAlias = Literal["seals", "thinking_on_tool_turns", "nothing"]


class House(NamedTuple):
    """A model, as a provider serves it, and what has to go back to it."""

    model: str
    returns: Returns
    """Of its own turns: every seal · what was thought before calls of tools · nothing of it."""
    thinking: Any = "low"
    base: str = "/v1"
    """What follows the host in the base URL."""
    redacts: bool = False
    bound: bool = False
    """Its seals hold only behind the very same history."""

    @property
    def provider(self) -> str:
        """The name of the row."""
        return self.model.partition(":")[0]


HOUSES: dict[str, House] = {
    "responses": House("openai-responses:gpt-5", "seals"),
    "messages with a budget": House("anthropic:claude-sonnet-4-5", "seals", 2000, redacts=True),
    "messages, adaptive": House("anthropic:claude-opus-4-6", "seals", "auto", redacts=True),
    "messages, hidden": House("anthropic:claude-opus-5", "seals", "high", redacts=True),
    "messages, bound": House("anthropic:claude-opus-5-5", "seals", "high", redacts=True, bound=True),
    "converse": House("bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0", "seals", 2000, redacts=True),
    "gemini 3": House("google:gemini-3-pro-preview", "seals", base="/v1beta"),
    "interactions": House("google-interactions:gemini-3-pro-preview", "seals", base="/v1beta"),
    "gemini 3 over chat": House("google-openai:gemini-3-pro-preview", "seals"),
    "chat that wants it back": House("deepseek:deepseek-v4-pro", "thinking_on_tool_turns", "high"),
    "chat, the older name": House("deepseek:deepseek-reasoner", "thinking_on_tool_turns", None),
    "chat without blanks": House("moonshot:kimi-k2.6", "thinking_on_tool_turns", "on"),
    "chat inside the loop": House("zai:glm-4.7", "thinking_on_tool_turns", "on"),
    "chat with plain details": House("minimax:minimax-m3", "seals", "on"),
    "chat with nine letters": House("mistral:magistral-medium-latest", "nothing", None),
    "a gateway to signed text": House("openrouter:anthropic/claude-sonnet-4.5", "seals", "high"),
    "a gateway to tokens": House("openrouter:openai/gpt-5", "seals", "high"),
    "a gateway to hidden tokens": House("openrouter:google/gemini-3-pro", "seals", "high"),
    "chat lines": House("ollama:qwen3", "thinking_on_tool_turns", "on"),
    "chat with plans": House("cohere:command-a-reasoning-08-2025", "thinking_on_tool_turns", "on"),
    "plain chat": House("openai-chat:gpt-5", "nothing", None),
}

# Other generations and hosts. Most laws hold for all if they hold for those above, and are tried on pairs of them.
ALL_HOUSES: dict[str, House] = {
    **HOUSES,
    "messages, first to think": House("anthropic:claude-3-7-sonnet-20250219", "seals", 2000, redacts=True),
    "messages, haiku 4.5": House("anthropic:claude-haiku-4-5", "seals", 2000, redacts=True),
    "messages, opus 4.7": House("anthropic:claude-opus-4-7", "seals", "high", redacts=True),
    "messages, fable 5.1": House("anthropic:claude-fable-5-1", "seals", "high", redacts=True, bound=True),
    "messages, sonnet 5.5": House("anthropic:claude-sonnet-5-5", "seals", "high", redacts=True, bound=True),
    "messages, haiku 5.5": House("anthropic:claude-haiku-5-5", "seals", "high", redacts=True, bound=True),
    "converse, opus 4.6": House("bedrock:us.anthropic.claude-opus-4-6-v1", "seals", "high", redacts=True),
    "converse, nova": House("bedrock:us.amazon.nova-2-lite-v1:0", "nothing", "low"),
    "gemini 2.5": House("google:gemini-2.5-pro", "seals", 2000, base="/v1beta"),
    "gemini 3 flash": House("google:gemini-3-flash-preview", "seals", "low", base="/v1beta"),
    "responses, o3": House("openai-responses:o3", "seals"),
    "responses, 5.6": House("openai-responses:gpt-5.6", "seals", "high"),
    "responses, grok": House("xai:grok-4.3", "seals", "high"),
    "chat, 5.4": House("openai-chat:gpt-5.4", "nothing", None),
    "chat, deepseek 3.2": House("deepseek:deepseek-chat", "thinking_on_tool_turns", None),
    "chat, kimi 3": House("moonshot:kimi-k3", "thinking_on_tool_turns", "on"),
    "chat, glm 5.3": House("zai:glm-5.3", "nothing", "on"),
    "chat, qwen": House("qwen:qwen3-max", "nothing", "on"),
    "chat, groq": House("groq:openai/gpt-oss-120b", "nothing", "low", base="/as-groq/v1"),
    "chat, cerebras": House("cerebras:zai-glm-4.7", "nothing", None, base="/as-cerebras/v1"),
    "chat, vllm": House("vllm:Qwen/Qwen3-32B", "nothing", "on", base="/as-vllm/v1"),
    "chat, a relay": House("litellm-proxy:claude-sonnet-4-5", "nothing", None, base="/as-litellm/v1"),
    "a gateway to deepseek": House("openrouter:deepseek/deepseek-v4-pro", "seals", "high"),
    "a gateway to kimi": House("openrouter:moonshotai/kimi-k2.6", "seals", "high"),
    "converse, llama": House("bedrock:us.meta.llama4-maverick-17b-instruct-v1:0", "nothing", None),
    "converse, mistral": House("bedrock:mistral.mistral-large-2407-v1:0", "nothing", None),
    "converse, minimax": House("bedrock:minimax.minimax-m2", "thinking_on_tool_turns", None),
    "converse, kimi": House("bedrock:moonshot.kimi-k2-thinking", "thinking_on_tool_turns", None),
    "converse, gpt-oss": House("bedrock:openai.gpt-oss-120b-1:0", "nothing", "low"),
    "converse, a new maker": House("bedrock:maker.new-model-v1:0", "nothing", None),
    "chat, minimax 2": House("minimax:MiniMax-M2", "seals", None, base="/as-minimax/v1"),
    "chat, qwen 3.7": House("qwen:qwen3.7-max", "thinking_on_tool_turns", "on", base="/as-dashscope/v1"),
    "chat, gemma": House("vllm:google/gemma-3-27b-it", "nothing", None, base="/as-vllm/v1"),
    "chat, qwen 3.5": House("vllm:Qwen/Qwen3.5-27B", "thinking_on_tool_turns", "on", base="/as-vllm/v1"),
    "chat, llama.cpp": House("llamacpp:Qwen3.5-9B", "thinking_on_tool_turns", "on", base="/as-llama-cpp/v1"),
    "chat, gpt-oss at llama.cpp": House("llamacpp:gpt-oss-20b", "nothing", "low", base="/as-llama-cpp/v1"),
    "chat, gemma at llama.cpp": House("llamacpp:gemma-3-12b-it", "nothing", None, base="/as-llama-cpp/v1"),
    "chat, xai": House("xai:grok-3-mini", "nothing", "low", base="/as-xai/v1"),
    "chat, fireworks": House("fireworks:glm-4p6", "thinking_on_tool_turns", "on", base="/as-fireworks/v1"),
    "chat, groq qwen": House("groq:qwen/qwen3.6-27b", "thinking_on_tool_turns", None, base="/as-groq/v1"),
    "messages, deepseek": House("deepseek-anthropic:deepseek-v4-pro", "seals", "high"),
    "messages, minimax": House("minimax-anthropic:MiniMax-M2", "seals", None),
    "cohere, plain": House("cohere:command-a-03-2025", "nothing", None),
}


# At their own rows: the stage answers for every provider, and no request names an address (ASIDES_STAGE).
HOME_HOUSES: dict[str, House] = {
    **ALL_HOUSES,
    **{
        model: House(model, "nothing", None)
        for model in (
            *("bedrock:us.deepseek.r1-v1:0", "bedrock:zai.glm-4.7", "bedrock:ai21.jamba-1-5-large-v1:0"),
            *("bedrock:qwen.qwen3-32b-v1:0", "bedrock:writer.palmyra-x5-v1:0", "bedrock:cohere.command-r-plus-v1:0"),
            *("openai:gpt-5.6", "azure:gpt-5", "github-copilot:claude-sonnet-4.5", "openai-compatible:some-model"),
            *("vertex:gemini-3-pro-preview", "gemini-compatible:gemini-3-pro-preview", "meta-ai:muse-wonder-1"),
            *("anthropic-openai:claude-opus-4-6", "bedrock-anthropic:us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
            *("vertex-anthropic:claude-opus-5-5", "foundry-anthropic:claude-opus-5", "anthropic-compatible:claude-x"),
            *("kimi-anthropic:kimi-k2.6", "zai-anthropic:glm-4.7", "ollama-anthropic:qwen3"),
            *("llamacpp-anthropic:qwen3", "vllm-anthropic:qwen3", "bedrock-mantle:openai.gpt-6-sol"),
            *("bedrock-openai:openai.gpt-oss-120b-1:0", "ollama-openai:qwen3", "ollama-cloud:gpt-oss:120b"),
            *("perplexity:sonar", "perplexity:sonar-reasoning-pro", "together:google/gemma-3-27b-it"),
            *("together:deepseek-ai/DeepSeek-R1", "huggingface:deepseek-ai/DeepSeek-R1", "deepinfra:zai-org/GLM-4.6"),
            *("huggingface:mistralai/Mixtral-8x7B-Instruct-v0.1", "huggingface:openai/gpt-oss-120b"),
            *("sambanova:gpt-oss-120b", "nvidia:meta/llama-3.3-70b-instruct", "nvidia:openai/gpt-oss-120b"),
            *("openrouter:minimax/minimax-m2", "openrouter:z-ai/glm-4.6", "openrouter:meta-llama/llama-4-maverick"),
            *("sglang:Qwen/Qwen3.5-27B", "lmstudio:google/gemma-3-12b", "lmstudio:openai/gpt-oss-20b"),
            *("mistralrs:Qwen/Qwen3-8B", "gpustack:qwen3", "vllm:google/gemma-2-9b-it", "mimo:mimo-v2.5-pro"),
            *("zai-coding:glm-4.7", "zai:glm-5.2", "mistral:mistral-medium-latest", "cerebras:gpt-oss-120b"),
            *("novita:minimax/minimax-m2", "nebius:openai/gpt-oss-120b", "baseten:zai-org/GLM-4.6"),
            *("fireworks:accounts/fireworks/models/gpt-oss-120b", "wandb:openai/gpt-oss-120b", "venice:qwen3-235b"),
            *("avian:deepseek/deepseek-v3.2", "cloudflare:@cf/openai/gpt-oss-120b", "crusoe:qwen3-32b"),
            *("doubleword:qwen3-32b", "doubao:doubao-seed-1.6", "tencent:hunyuan-t1", "watsonx:openai/gpt-oss-120b"),
            *("vercel-gateway:anthropic/claude-sonnet-4.5", "snowflake:claude-sonnet-4-5", "heroku:claude-4-5-sonnet"),
            *("databricks:databricks-claude-sonnet-4-5", "writer:palmyra-x5", "portkey:gpt-5"),
            *("pydantic-gateway:gpt-5", "mirascope-router:gpt-5"),
        )
    },
}


class Target(NamedTuple):
    """A house on one of the stages."""

    house: str
    stage: int

    @property
    def origin(self) -> tuple[str, int]:
        """Who the thoughts of this house belong to: a provider at an address, whichever of its endpoints is asked."""
        name = HOME_HOUSES[self.house].provider
        return find_provider(name).host or name, self.stage


class Manner(NamedTuple):
    """How a reply is fetched."""

    streamed: bool = True
    awaited: bool = False
    stop_after: int | None = None
    """Leave the stream behind this many events."""
    cut_after: int | None = None
    """The server hangs up behind this many bytes."""


AT_ONCE = Manner()


class Settings(NamedTuple):
    """What else a request says."""

    key: str = KEY
    system: str | None = SYSTEM
    tools: tuple[Tool, ...] = tuple(TOOLS)
    thinking: Any = None
    """None: as the house is usually asked."""
    more: tuple[tuple[str, Any], ...] = ()


AS_USUAL = Settings()


class Act(NamedTuple):
    """What came of one request."""

    reply: Reply | None
    """What the client has of it: more than was handed out, where it was left early."""
    body: bytes
    """The request, as the stage received it."""
    events: list[Event]
    """What was handed out."""
    refusals: tuple[str, ...] = ()
    """Why earlier forms of the request were refused, where that may be."""
    bodies: tuple[bytes, ...] = ()
    """Every form of the request."""


class Refused(AssertionError):
    """A house did not take a request at once."""


class Theatre:
    """Three strict stages, each with a secret of its own, that play whatever is put on."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._scene: Scene = Say(text="nothing was put on")
        self._runner = runner
        self._stages = [Stage(lambda _: self._scene) for _ in range(3)]
        self._seen = [0, 0, 0]
        self._client = asides.Client()
        self._awaiting = asides.AsyncClient()
        self.heals = False
        """Whether a request may be refused and repaired."""
        self.at_home = False
        """Whether requests name no address: ASIDES_STAGE names the first stage."""

    @property
    def first_url(self) -> str:
        """The address of the first stage."""
        return self._stages[0].url

    def open(self) -> None:
        """Open the doors."""
        for stage in self._stages:
            stage.start()

    def close(self) -> None:
        """Close them, and raise what a stage raised."""
        self._client.close()
        self._runner.run(self._awaiting.close())
        for stage in self._stages:
            stage.close()

    def address(self, target: Target) -> str:
        """The base URL of a house on its stage."""
        return self._stages[target.stage].url.removesuffix("/v1") + ALL_HOUSES[target.house].base

    def ask(
        self,
        target: Target,
        history: tuple[Message, ...],
        scene: Say,
        manner: Manner = AT_ONCE,
        settings: Settings = AS_USUAL,
    ) -> Act:
        """What came of it. Raises `Refused` where the house did not take the first and only request."""
        house = HOME_HOUSES[target.house]
        options: dict[str, Any] = self.options(target, settings)
        options |= {"system": settings.system, "tools": list(settings.tools) or None, **dict(settings.more)}
        events: list[Event] = []

        def asking() -> Reply | None:
            if manner.awaited:
                return self._runner.run(self._awaited(house.model, history, manner, options, events))
            return self._blocking(house.model, history, manner, options, events)

        return self._act(target, scene, manner, asking, events)

    def conversation(self, *, awaited: bool) -> Chat:
        """A conversation that asks with a client of this theatre's."""
        if awaited:
            return asides.AsyncConversation(system=SYSTEM, client=self._awaiting, tools=TOOLS)
        return asides.Conversation(system=SYSTEM, client=self._client, tools=TOOLS)

    def talk(
        self,
        chat: Chat,
        target: Target,
        question: tuple[Message, ...],
        scene: Say,
        manner: Manner,
        settings: Settings = AS_USUAL,
    ) -> Act:
        """The same, asked by a conversation, which keeps what comes of it."""
        options: dict[str, Any] = {**self.options(target, settings), "model": ALL_HOUSES[target.house].model}
        if settings is not AS_USUAL:
            options |= {"tools": list(settings.tools) or None, **dict(settings.more)}
        events: list[Event] = []

        async def awaited(chat: asides.AsyncConversation) -> Reply | None:
            if not manner.streamed:
                return await chat.ask(question, **options)
            async with chat.stream(question, **options) as stream:
                return await _awaited(stream, manner, events)

        def asking() -> Reply | None:
            if isinstance(chat, asides.AsyncConversation):
                return self._runner.run(awaited(chat))
            if not manner.streamed:
                return chat.ask(question, **options)
            with chat.stream(question, **options) as stream:
                return _heard(stream, manner, events)

        return self._act(target, scene, manner, asking, events)

    def options(self, target: Target, settings: Settings = AS_USUAL) -> dict[str, Any]:
        """What a house needs to be told."""
        return {
            **({} if self.at_home else {"base_url": self.address(target)}),
            "api_key": settings.key,
            "thinking": HOME_HOUSES[target.house].thinking if settings.thinking is None else settings.thinking,
            "retries": 0,
            "timeout": 20,
        }

    def _act(
        self, target: Target, scene: Say, manner: Manner, asking: Callable[[], Reply | None], events: list[Event]
    ) -> Act:
        self._scene = msgspec.structs.replace(scene, cut_after=manner.cut_after if manner.streamed else None)
        refused: ProviderError | None = None
        reply: Reply | None = None
        try:
            reply = asking()
        except ProviderError as problem:
            refused = problem
        received = self._stages[target.stage].requests[self._seen[target.stage] :]
        self._seen[target.stage] += len(received)
        told = [request.problem for request in received]
        bodies = tuple(request.body for request in received)
        if refused is not None or told[-1:] != [None] or (told != [None] and not self.heals):
            raise Refused(f"{target.house} on stage {target.stage}: {told}") from refused
        return Act(reply, bodies[-1], events, tuple(str(problem) for problem in told[:-1]), bodies)

    def _blocking(
        self, model: str, history: tuple[Message, ...], manner: Manner, options: dict[str, Any], told: list[Event]
    ) -> Reply | None:
        if not manner.streamed:
            return self._client.ask(model, list(history), **options)
        with self._client.stream(model, list(history), **options) as events:
            return _heard(events, manner, told)

    async def _awaited(
        self, model: str, history: tuple[Message, ...], manner: Manner, options: dict[str, Any], told: list[Event]
    ) -> Reply | None:
        if not manner.streamed:
            return await self._awaiting.ask(model, list(history), **options)
        async with self._awaiting.stream(model, list(history), **options) as events:
            return await _awaited(events, manner, told)


def _heard(stream: asides.Stream | asides.ConversationStream, manner: Manner, told: list[Event]) -> Reply | None:
    try:
        for event in stream:
            told.append(event)
            if len(told) == manner.stop_after:
                break
    except TransportError as lost:
        return lost.partial
    return stream.partial


async def _awaited(
    stream: asides.AsyncStream | asides.AsyncConversationStream, manner: Manner, told: list[Event]
) -> Reply | None:
    try:
        async for event in stream:
            told.append(event)
            if len(told) == manner.stop_after:
                break
    except TransportError as lost:
        return lost.partial
    return stream.partial


@contextmanager
def opened() -> Generator[Theatre, None, None]:
    """A theatre, for as long as the block."""
    with asyncio.Runner() as runner:
        theatre = Theatre(runner)
        theatre.open()
        try:
            yield theatre
        finally:
            theatre.close()


_REPLIES = count(1)


def scene_of(parts: tuple[Part, ...], piece: int = 20) -> Say:
    """A reply of these parts, as a scene. No two replies of a theatre have one id: a house knows its own by them."""
    called = any(isinstance(part, ToolCall) for part in parts)
    stop = StopReason("tool_calls" if called else "stop")
    reply = Reply(parts, Usage(input=1, output=2, total=3), stop, id=f"reply-{next(_REPLIES)}")
    return Say(events=tuple(simulate(reply, piece)))
