"""`AsyncAgent`: a model with tools. The flow (flows/agent) makes the decisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, Unpack, overload

from asides.agents.config import AgentConfig, AgentOptions, ConversationLike, check_client
from asides.aio import AsyncClient, load, open_client
from asides.option_help import AGENT_TEXT, RUN_MANY_TEXT, RUN_TEXT, describe_options
from asides.options import ModelLike, PromptLike
from asides.transports.run_async import AsyncRunStream
from asides.values.messages import OutputSchema
from asides.values.reply import Output
from asides.values.result import Result

if TYPE_CHECKING:
    from asides.flows.many import OnProgress
    from asides.transports.answers import AsyncAnswers

Requested = TypeVar("Requested")


class AsyncAgent(Generic[Output]):
    """A model with tools. An agent asks the model, runs its calls, and asks again until there is an answer.

    It takes every option of `ask`, and `tools`, `output`, `limits`, `approval`, `approve`, `tool_timeout`, `parallel`,
    `mode`, `attempts`; options of a call override those of the agent. An agent stores no history. Pass a
    `conversation=`, or send `result.messages` with the next prompt. Of several models, each is asked when those before
    it fail. Without a model, that of the conversation is asked, or that of the settings.
    """

    @overload
    def __init__(
        self: AsyncAgent[str],
        model: ModelLike | None = None,
        *,
        output: type[str] | None = None,
        client: AsyncClient | None = None,
        **options: Unpack[AgentOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncAgent[Requested],
        model: ModelLike | None = None,
        *,
        output: type[Requested],
        client: AsyncClient | None = None,
        **options: Unpack[AgentOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncAgent[dict[str, Any]],
        model: ModelLike | None = None,
        *,
        output: Mapping[str, Any] | OutputSchema | Literal["json"],
        client: AsyncClient | None = None,
        **options: Unpack[AgentOptions],
    ) -> None: ...
    def __init__(
        self,
        model: ModelLike | None = None,
        *,
        output: Any = None,
        client: AsyncClient | None = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        """Configure an agent. Raises for invalid options."""
        check_client(client, AsyncClient)
        self._config = AgentConfig(model, output, options)
        self._client = client

    @overload
    async def run(
        self,
        prompt: PromptLike,
        *,
        conversation: ConversationLike | None = None,
        output: None = None,
        **options: Unpack[AgentOptions],
    ) -> Result[Output]: ...
    @overload
    async def run(
        self,
        prompt: PromptLike,
        *,
        conversation: ConversationLike | None = None,
        output: type[Requested],
        **options: Unpack[AgentOptions],
    ) -> Result[Requested]: ...
    @overload
    async def run(
        self,
        prompt: PromptLike,
        *,
        conversation: ConversationLike | None = None,
        output: Mapping[str, Any] | OutputSchema | Literal["json"],
        **options: Unpack[AgentOptions],
    ) -> Result[dict[str, Any]]: ...
    async def run(
        self,
        prompt: PromptLike,
        *,
        conversation: ConversationLike | None = None,
        output: Any = None,
        **options: Unpack[AgentOptions],
    ) -> Result[Any]:
        """Run the agent on a prompt. Replies come in one piece; with `stream=True` the provider streams them."""
        await load()  # async only
        async with self._run(prompt, conversation, output, options, stream=False) as events:
            return await events.drain()

    send = run
    """Alias of `run`."""

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
        output: type[Requested],
        **options: Unpack[AgentOptions],
    ) -> AsyncRunStream[Requested]: ...
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
        """The events of a run, as they arrive. The first request is sent when the first event is read."""
        return self._run(prompt, conversation, output, options, stream=True)

    @overload
    def run_many(
        self,
        prompts: Iterable[PromptLike],
        *,
        concurrency: int = 8,
        on_progress: OnProgress | None = None,
        output: None = None,
        **options: Unpack[AgentOptions],
    ) -> AsyncAnswers[Result[Output]]: ...
    @overload
    def run_many(
        self,
        prompts: Iterable[PromptLike],
        *,
        concurrency: int = 8,
        on_progress: OnProgress | None = None,
        output: type[Requested],
        **options: Unpack[AgentOptions],
    ) -> AsyncAnswers[Result[Requested]]: ...
    @overload
    def run_many(
        self,
        prompts: Iterable[PromptLike],
        *,
        concurrency: int = 8,
        on_progress: OnProgress | None = None,
        output: Mapping[str, Any] | OutputSchema | Literal["json"],
        **options: Unpack[AgentOptions],
    ) -> AsyncAnswers[Result[dict[str, Any]]]: ...
    def run_many(
        self,
        prompts: Iterable[PromptLike],
        *,
        concurrency: int = 8,
        on_progress: OnProgress | None = None,
        output: Any = None,
        **options: Unpack[AgentOptions],
    ) -> AsyncAnswers[Result[Any]]:
        """Run the agent on many prompts, several at a time. Yields an index and a Result, or an AsidesError, for each.

        One failed run does not affect the others: an answer that still does not fit after `attempts` corrections is the
        `InvalidOutput` of its prompt. Prompts are read as they can be run. Errors that concern every prompt are raised
        immediately.
        """
        from asides.flows.many import OpenQuestions, check_prompts

        batch = OpenQuestions(concurrency, on_progress, check_prompts(prompts))
        client = open_client() if self._client is None else self._client
        return client.run_many(partial(self._config.start_runs, prompts, output, options), batch)

    def _run(
        self,
        prompt: PromptLike,
        conversation: ConversationLike | None,
        output: object,
        options: AgentOptions,
        *,
        stream: bool,
    ) -> AsyncRunStream[Any]:
        client = open_client() if self._client is None else self._client
        return client.run(partial(self._config.start_run, prompt, conversation, output, options, stream=stream))

    def __repr__(self) -> str:
        return f"AsyncAgent({self._config.model!r})"


describe_options(AsyncAgent.__init__, first=AGENT_TEXT)
describe_options(AsyncAgent.run, AsyncAgent.stream, first=RUN_TEXT)
describe_options(AsyncAgent.run_many, first=RUN_MANY_TEXT)
