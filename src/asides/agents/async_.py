"""`AsyncAgent`: a model with tools that answers, awaiting. Decides nothing; the flow does. `blocking` is its twin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar, Unpack, overload

from asides import aio
from asides.agents.config import AgentOptions, ConversationLike, Recipe, check_client
from asides.aio import AsyncClient
from asides.flows.build_call import CallBuilder
from asides.options import PromptLike
from asides.transports.run_stream import AsyncRunStream, RunState
from asides.values.messages import OutputSchema
from asides.values.result import Output, Result

Another = TypeVar("Another")


class AsyncAgent(Generic[Output]):
    """A model with tools: it is asked, its calls are run, and it is asked again, until it has an answer.

    Every option of `ask` may be given, and `tools`, `output`, `limits`, `approval`, `approve`, `tool_timeout`,
    `parallel`, `mode`, `attempts`; what a call says wins. An agent remembers nothing: a `conversation=` does, and
    `result.messages` can be sent on.
    """

    @overload
    def __init__(
        self: AsyncAgent[str],
        model: str,
        *,
        output: type[str] | None = None,
        client: AsyncClient | None = None,
        **options: Unpack[AgentOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncAgent[Another],
        model: str,
        *,
        output: type[Another],
        client: AsyncClient | None = None,
        **options: Unpack[AgentOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncAgent[dict[str, Any]],
        model: str,
        *,
        output: Mapping[str, Any] | OutputSchema | Literal["json"],
        client: AsyncClient | None = None,
        **options: Unpack[AgentOptions],
    ) -> None: ...
    def __init__(
        self, model: str, *, output: Any = None, client: AsyncClient | None = None, **options: Unpack[AgentOptions]
    ) -> None:
        check_client(client, AsyncClient, "a Client is for Agent")
        self._recipe = Recipe(model, output, options)
        self._client = client

    @overload
    async def send(
        self,
        prompt: PromptLike,
        *,
        conversation: ConversationLike | None = None,
        output: None = None,
        **options: Unpack[AgentOptions],
    ) -> Result[Output]: ...
    @overload
    async def send(
        self,
        prompt: PromptLike,
        *,
        conversation: ConversationLike | None = None,
        output: type[Another],
        **options: Unpack[AgentOptions],
    ) -> Result[Another]: ...
    @overload
    async def send(
        self,
        prompt: PromptLike,
        *,
        conversation: ConversationLike | None = None,
        output: Mapping[str, Any] | OutputSchema | Literal["json"],
        **options: Unpack[AgentOptions],
    ) -> Result[dict[str, Any]]: ...
    async def send(
        self,
        prompt: PromptLike,
        *,
        conversation: ConversationLike | None = None,
        output: Any = None,
        **options: Unpack[AgentOptions],
    ) -> Result[Any]:
        """What comes of a prompt. Replies are asked for in one piece; `stream=True` has them sent as they are made."""
        async with self._run(prompt, conversation, output, options, stream=False) as events:
            return await events.drain()

    @overload
    def stream(
        self,
        prompt: PromptLike,
        *,
        conversation: ConversationLike | None = None,
        output: None = None,
        **options: Unpack[AgentOptions],
    ) -> AsyncRunStream[Output]: ...
    @overload
    def stream(
        self,
        prompt: PromptLike,
        *,
        conversation: ConversationLike | None = None,
        output: type[Another],
        **options: Unpack[AgentOptions],
    ) -> AsyncRunStream[Another]: ...
    @overload
    def stream(
        self,
        prompt: PromptLike,
        *,
        conversation: ConversationLike | None = None,
        output: Mapping[str, Any] | OutputSchema | Literal["json"],
        **options: Unpack[AgentOptions],
    ) -> AsyncRunStream[dict[str, Any]]: ...
    def stream(
        self,
        prompt: PromptLike,
        *,
        conversation: ConversationLike | None = None,
        output: Any = None,
        **options: Unpack[AgentOptions],
    ) -> AsyncRunStream[Any]:
        """The events of a run, as they come. Nothing is sent before they are asked for."""
        return self._run(prompt, conversation, output, options, stream=True)

    def _run(
        self,
        prompt: PromptLike,
        conversation: ConversationLike | None,
        output: object,
        options: AgentOptions,
        *,
        stream: bool,
    ) -> AsyncRunStream[Any]:
        def begin(defaults: CallBuilder) -> RunState[Any]:
            return self._recipe.progress(prompt, conversation, output, options, defaults, stream=stream)

        # Without a client, one for this run: its connections serve every step and are closed behind the last.
        return aio.run(begin) if self._client is None else self._client.run(begin)

    def __repr__(self) -> str:
        return f"AsyncAgent({self._recipe.model!r})"
