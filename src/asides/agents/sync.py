"""`Agent`: a model with tools that answers, blocking. Decides nothing; the flow does. `awaiting` is its twin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Literal, TypeVar, Unpack, overload

from asides.agents.config import AgentOptions, ConversationLike, Recipe, check_client
from asides.client import Client, shared_client
from asides.options import PromptLike
from asides.transports.run_stream import RunStream
from asides.values.messages import OutputSchema
from asides.values.result import Output, Result

Another = TypeVar("Another")


class Agent(Generic[Output]):
    """A model with tools: it is asked, its calls are run, and it is asked again, until it has an answer.

    Every option of `ask` may be given, and `tools`, `output`, `limits`, `approval`, `approve`, `tool_timeout`,
    `parallel`, `mode`, `attempts`; what a call says wins. An agent remembers nothing: a `conversation=` does, and
    `result.messages` can be sent on.
    """

    @overload
    def __init__(
        self: Agent[str],
        model: str,
        *,
        output: type[str] | None = None,
        client: Client | None = None,
        **options: Unpack[AgentOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: Agent[Another],
        model: str,
        *,
        output: type[Another],
        client: Client | None = None,
        **options: Unpack[AgentOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: Agent[dict[str, Any]],
        model: str,
        *,
        output: Mapping[str, Any] | OutputSchema | Literal["json"],
        client: Client | None = None,
        **options: Unpack[AgentOptions],
    ) -> None: ...
    def __init__(
        self, model: str, *, output: Any = None, client: Client | None = None, **options: Unpack[AgentOptions]
    ) -> None:
        check_client(client, Client, "an AsyncClient is for AsyncAgent")
        self._recipe = Recipe(model, output, options)
        self._client = shared_client() if client is None else client

    @overload
    def send(
        self,
        prompt: PromptLike,
        *,
        conversation: ConversationLike | None = None,
        output: None = None,
        **options: Unpack[AgentOptions],
    ) -> Result[Output]: ...
    @overload
    def send(
        self,
        prompt: PromptLike,
        *,
        conversation: ConversationLike | None = None,
        output: type[Another],
        **options: Unpack[AgentOptions],
    ) -> Result[Another]: ...
    @overload
    def send(
        self,
        prompt: PromptLike,
        *,
        conversation: ConversationLike | None = None,
        output: Mapping[str, Any] | OutputSchema | Literal["json"],
        **options: Unpack[AgentOptions],
    ) -> Result[dict[str, Any]]: ...
    def send(
        self,
        prompt: PromptLike,
        *,
        conversation: ConversationLike | None = None,
        output: Any = None,
        **options: Unpack[AgentOptions],
    ) -> Result[Any]:
        """What comes of a prompt. Replies are asked for in one piece; `stream=True` has them sent as they are made."""
        with self._run(prompt, conversation, output, options, stream=False) as events:
            return events.result

    @overload
    def stream(
        self,
        prompt: PromptLike,
        *,
        conversation: ConversationLike | None = None,
        output: None = None,
        **options: Unpack[AgentOptions],
    ) -> RunStream[Output]: ...
    @overload
    def stream(
        self,
        prompt: PromptLike,
        *,
        conversation: ConversationLike | None = None,
        output: type[Another],
        **options: Unpack[AgentOptions],
    ) -> RunStream[Another]: ...
    @overload
    def stream(
        self,
        prompt: PromptLike,
        *,
        conversation: ConversationLike | None = None,
        output: Mapping[str, Any] | OutputSchema | Literal["json"],
        **options: Unpack[AgentOptions],
    ) -> RunStream[dict[str, Any]]: ...
    def stream(
        self,
        prompt: PromptLike,
        *,
        conversation: ConversationLike | None = None,
        output: Any = None,
        **options: Unpack[AgentOptions],
    ) -> RunStream[Any]:
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
    ) -> RunStream[Any]:
        return self._client.run(
            lambda defaults: self._recipe.progress(prompt, conversation, output, options, defaults, stream=stream)
        )

    def __repr__(self) -> str:
        return f"Agent({self._recipe.model!r})"
