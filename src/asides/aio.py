"""The async client: `AsyncClient`, and `ask`, `ask_many`, `probe`, `stream` and `run`, each with a client for one call.

Not here: what a call means (flows) and how bytes travel (transports). aiohttp is loaded with the first request.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, Unpack, overload

from asides.flows.build_call import CallBuilder
from asides.options import ListOptions, ModelLike, Options, PromptLike, SharedOptions
from asides.providers.provider import Provider
from asides.settings import Settings
from asides.transports.aiohttp import AiohttpTransport
from asides.transports.async_ import AsyncStream, run_flow
from asides.transports.protocols import AsyncTransport
from asides.values.model_info import ModelInfo
from asides.values.reply import Output, Reply
from asides.values.visibility import Visibility, read_visibility

if TYPE_CHECKING:
    from asides.flows.call import Call
    from asides.flows.compact_history import CompactedHistory
    from asides.flows.many import OnProgress, OpenQuestions
    from asides.flows.probe.plan_probe import ProbeOptions
    from asides.flows.probe.probe_report import ProbeReport, ProbeStep
    from asides.transports.answers import AsyncAnswers
    from asides.transports.flow_state import FlowState
    from asides.transports.run_stream import AsyncRunStream, RunState

__all__ = ["AsyncClient", "AsyncStream", "ask", "ask_many", "probe", "run", "stream"]


class AsyncClient:
    """Asks models without blocking the loop. Keeps connections for the next call, separately for each event loop.

    Every option of `ask` may be given here as a default; the options of a call win. `providers` are your own rows,
    `settings` replaces `asides.toml` and the environment, `transport` carries the bytes.
    `visibility` says what each place may see of thinking.
    """

    def __init__(
        self,
        *,
        settings: Settings | None = None,
        providers: Sequence[Provider] = (),
        transport: AsyncTransport | None = None,
        visibility: Visibility | Mapping[str, Any] | None = None,
        **defaults: Unpack[Options],
    ) -> None:
        self._call_builder = CallBuilder(defaults, providers=providers, settings=settings)
        if visibility is not None:
            self._call_builder.visibility = read_visibility(visibility)
        self._transport: AsyncTransport = AiohttpTransport() if transport is None else transport

    @overload
    async def ask(
        self,
        model: ModelLike | None = None,
        prompt: PromptLike | None = None,
        *,
        output: type[Output],
        **options: Unpack[SharedOptions],
    ) -> Reply[Output]: ...
    @overload
    async def ask(
        self, model: ModelLike | None = None, prompt: PromptLike | None = None, **options: Unpack[Options]
    ) -> Reply[Any]: ...
    async def ask(
        self, model: ModelLike | None = None, prompt: PromptLike | None = None, **options: Unpack[Options]
    ) -> Reply[Any]:
        """Ask a model; returns the whole reply. The provider sends it in one piece, unless `stream=True`.

        Of several models, each is asked when those before it fail. Without a model, that of the settings is asked.
        """
        call = self._call_builder.build(model, prompt, options, stream=False)
        return await AsyncStream(call, self._transport).drain()

    @overload
    def stream(
        self,
        model: ModelLike | None = None,
        prompt: PromptLike | None = None,
        *,
        output: type[Output],
        **options: Unpack[SharedOptions],
    ) -> AsyncStream[Output]: ...
    @overload
    def stream(
        self, model: ModelLike | None = None, prompt: PromptLike | None = None, **options: Unpack[Options]
    ) -> AsyncStream[Any]: ...
    def stream(
        self, model: ModelLike | None = None, prompt: PromptLike | None = None, **options: Unpack[Options]
    ) -> AsyncStream[Any]:
        """The events of a reply as they arrive. The request is sent when the first event is read."""
        return AsyncStream(self._call_builder.build(model, prompt, options, stream=True), self._transport)

    def ask_many(
        self,
        model: ModelLike | None = None,
        prompts: Iterable[PromptLike] | AsyncIterable[PromptLike] | None = None,
        *,
        concurrency: int = 8,
        on_progress: OnProgress | None = None,
        **options: Unpack[Options],
    ) -> AsyncAnswers:
        """Ask many prompts, some at once; returns pairs of an index and a Reply, or an AsidesError, as they arrive.

        A prompt that fails costs no other prompt its reply. Prompts are taken as they can be asked, so a generator may
        have no end. `on_progress` gets a `Progress` after each. What is wrong with all of them is raised at once.
        """
        from asides.flows.many import OpenQuestions, check_prompts

        return self._answer(model, prompts, options, OpenQuestions(concurrency, on_progress, check_prompts(prompts)))

    def _answer(
        self,
        model: ModelLike | None,
        prompts: Iterable[PromptLike] | AsyncIterable[PromptLike] | None,
        options: Options,
        batch: OpenQuestions,
        *,
        ends_transport: bool = False,
    ) -> AsyncAnswers:
        from asides.flows.many import check_call, prepare_call, prepare_calls
        from asides.transports.answers import AsyncAnswers

        builder = self._call_builder
        check_call(builder, model, options)
        if isinstance(prompts, AsyncIterable):
            later = (prepare_call(builder, model, options, prompt) async for prompt in prompts)
            return AsyncAnswers(later, self._transport, batch, ends_transport=ends_transport)
        calls = prepare_calls(builder, model, prompts, options)
        return AsyncAnswers(calls, self._transport, batch, ends_transport=ends_transport)

    async def answer(self, build: Callable[[CallBuilder], Call]) -> Reply[Any]:
        """The whole reply to the call that `build` builds. A batch calls this."""
        return await AsyncStream(build(self._call_builder), self._transport).drain()

    def build(self, build: Callable[[CallBuilder], Call]) -> Call:
        """The call that `build` builds with the options of this client. A vendor's batch calls this."""
        return build(self._call_builder)

    def drive(self, state: FlowState[Any]) -> AsyncGenerator[list[Any], None]:
        """Run a flow with the connections of this client; yields what it emits. A vendor's batch calls this."""
        from asides.transports.async_ import AsyncDriver

        return AsyncDriver(state, self._transport).batches()

    def run(self, begin: Callable[[CallBuilder], RunState[Output]]) -> AsyncRunStream[Output]:
        """The events of an agent's run through this client; `begin` creates the run. `AsyncAgent` calls this."""
        from asides.transports.run_stream import AsyncRunStream

        return AsyncRunStream(begin(self._call_builder), self._transport)

    async def models(self, provider: str, **options: Unpack[ListOptions]) -> tuple[ModelInfo, ...]:
        """The models that a provider offers today, as the provider describes them."""
        from asides.flows.list_models import list_models

        call = self._call_builder.build_model_list(provider, options)
        return await run_flow(call, lambda: list_models(call), self._transport)

    async def probe(
        self,
        base_url: str,
        *,
        on_progress: Callable[[ProbeStep], object] | None = None,
        **options: Unpack[ProbeOptions],
    ) -> ProbeReport:
        """Find out how an unknown server thinks, as `Client.probe` does."""
        from asides.flows.probe.plan_probe import build_probe
        from asides.flows.probe.run_probe import Probe

        call = build_probe(base_url, options)
        return await run_flow(call, Probe(call).steps, self._transport, on_progress)

    async def compact(self, build: Callable[[CallBuilder], Call]) -> CompactedHistory:
        """Let a provider compact a history on its own; `build` builds the call. `AsyncConversation` calls this."""
        from asides.flows.compact_history import compact_history

        call = build(self._call_builder)
        return await run_flow(call, lambda: compact_history(call), self._transport)

    async def close(self) -> None:
        """Close idle connections of this event loop. The client may still be used."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


_reported: set[str] = set()
"""The default models that a notice has reported, for clients that serve one call."""


def _create_builder() -> CallBuilder:
    builder = CallBuilder()
    builder.reported = _reported
    return builder


def _open_client() -> AsyncClient:
    client = AsyncClient()
    client._call_builder = _create_builder()
    return client


@overload
async def ask(
    model: ModelLike | None = None,
    prompt: PromptLike | None = None,
    *,
    output: type[Output],
    **options: Unpack[SharedOptions],
) -> Reply[Output]: ...
@overload
async def ask(
    model: ModelLike | None = None, prompt: PromptLike | None = None, **options: Unpack[Options]
) -> Reply[Any]: ...
async def ask(
    model: ModelLike | None = None, prompt: PromptLike | None = None, **options: Unpack[Options]
) -> Reply[Any]:
    """Ask a model through a client that is closed afterwards; returns the whole reply."""
    async with _open_client() as client:
        return await client.ask(model, prompt, **options)


def ask_many(
    model: ModelLike | None = None,
    prompts: Iterable[PromptLike] | AsyncIterable[PromptLike] | None = None,
    *,
    concurrency: int = 8,
    on_progress: OnProgress | None = None,
    **options: Unpack[Options],
) -> AsyncAnswers:
    """Ask many prompts, some at once, through a client that is closed with them: see `AsyncClient.ask_many`."""
    from asides.flows.many import OpenQuestions, check_prompts

    batch = OpenQuestions(concurrency, on_progress, check_prompts(prompts))
    return _open_client()._answer(model, prompts, options, batch, ends_transport=True)


async def probe(
    base_url: str, *, on_progress: Callable[[ProbeStep], object] | None = None, **options: Unpack[ProbeOptions]
) -> ProbeReport:
    """Find out how an unknown server thinks, through a client that is closed afterwards."""
    async with _open_client() as client:
        return await client.probe(base_url, on_progress=on_progress, **options)


@overload
def stream(
    model: ModelLike | None = None,
    prompt: PromptLike | None = None,
    *,
    output: type[Output],
    **options: Unpack[SharedOptions],
) -> AsyncStream[Output]: ...
@overload
def stream(
    model: ModelLike | None = None, prompt: PromptLike | None = None, **options: Unpack[Options]
) -> AsyncStream[Any]: ...
def stream(
    model: ModelLike | None = None, prompt: PromptLike | None = None, **options: Unpack[Options]
) -> AsyncStream[Any]:
    """The events of a reply, through a client that is closed with them. Use it in an `async with`."""
    call = _create_builder().build(model, prompt, options, stream=True)
    return AsyncStream(call, AiohttpTransport(), ends_transport=True)


def run(begin: Callable[[CallBuilder], RunState[Output]]) -> AsyncRunStream[Output]:
    """The events of an agent's run, through a client that is closed with them. Use it in an `async with`."""
    from asides.transports.run_stream import AsyncRunStream

    return AsyncRunStream(begin(_create_builder()), AiohttpTransport(), ends_transport=True)
