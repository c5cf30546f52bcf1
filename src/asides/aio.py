"""The async client: `AsyncClient`, and the functions `ask`, `stream` and `run`, which open a client for one call.

Not here: what a call means (flows) and how bytes travel (transports). aiohttp is loaded with the first request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self, Unpack, overload

from asides.flows.build_call import CallBuilder
from asides.options import ListOptions, Options, PromptLike, SharedOptions
from asides.providers.provider import Provider
from asides.settings import Settings
from asides.transports.aiohttp import AiohttpTransport
from asides.transports.async_ import AsyncStream, run_flow
from asides.transports.protocols import AsyncTransport
from asides.values.model_info import ModelInfo
from asides.values.reply import Output, Reply

if TYPE_CHECKING:
    from asides.transports.run_stream import AsyncRunStream, RunState

__all__ = ["AsyncClient", "AsyncStream", "ask", "run", "stream"]


class AsyncClient:
    """Asks models without blocking the loop. Keeps connections for the next call, separately for each event loop.

    Every option of `ask` may be given here as a default; the options of a call win. `providers` are your own rows,
    `settings` replaces `asides.toml` and the environment, `transport` carries the bytes.
    """

    def __init__(
        self,
        *,
        settings: Settings | None = None,
        providers: Sequence[Provider] = (),
        transport: AsyncTransport | None = None,
        **defaults: Unpack[Options],
    ) -> None:
        self._call_builder = CallBuilder(defaults, providers=providers, settings=settings)
        self._transport: AsyncTransport = AiohttpTransport() if transport is None else transport

    @overload
    async def ask(
        self, model: str, prompt: PromptLike, *, output: type[Output], **options: Unpack[SharedOptions]
    ) -> Reply[Output]: ...
    @overload
    async def ask(self, model: str, prompt: PromptLike, **options: Unpack[Options]) -> Reply[Any]: ...
    async def ask(self, model: str, prompt: PromptLike, **options: Unpack[Options]) -> Reply[Any]:
        """Ask a model; returns the whole reply. The provider sends it in one piece, unless `stream=True`."""
        call = self._call_builder.build(model, prompt, options, stream=False)
        return await AsyncStream(call, self._transport).drain()

    @overload
    def stream(
        self, model: str, prompt: PromptLike, *, output: type[Output], **options: Unpack[SharedOptions]
    ) -> AsyncStream[Output]: ...
    @overload
    def stream(self, model: str, prompt: PromptLike, **options: Unpack[Options]) -> AsyncStream[Any]: ...
    def stream(self, model: str, prompt: PromptLike, **options: Unpack[Options]) -> AsyncStream[Any]:
        """The events of a reply as they arrive. The request is sent when the first event is read."""
        return AsyncStream(self._call_builder.build(model, prompt, options, stream=True), self._transport)

    def run(self, begin: Callable[[CallBuilder], RunState[Output]]) -> AsyncRunStream[Output]:
        """The events of an agent's run through this client; `begin` creates the run. `AsyncAgent` calls this."""
        from asides.transports.run_stream import AsyncRunStream

        return AsyncRunStream(begin(self._call_builder), self._transport)

    async def models(self, provider: str, **options: Unpack[ListOptions]) -> tuple[ModelInfo, ...]:
        """The models that a provider offers today, as the provider describes them."""
        from asides.flows.list_models import list_models

        call = self._call_builder.build_model_list(provider, options)
        return await run_flow(call, lambda: list_models(call), self._transport)

    async def close(self) -> None:
        """Close idle connections of this event loop. The client may still be used."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


@overload
async def ask(
    model: str, prompt: PromptLike, *, output: type[Output], **options: Unpack[SharedOptions]
) -> Reply[Output]: ...
@overload
async def ask(model: str, prompt: PromptLike, **options: Unpack[Options]) -> Reply[Any]: ...
async def ask(model: str, prompt: PromptLike, **options: Unpack[Options]) -> Reply[Any]:
    """Ask a model through a client that is closed afterwards; returns the whole reply."""
    async with AsyncClient() as client:
        return await client.ask(model, prompt, **options)


@overload
def stream(
    model: str, prompt: PromptLike, *, output: type[Output], **options: Unpack[SharedOptions]
) -> AsyncStream[Output]: ...
@overload
def stream(model: str, prompt: PromptLike, **options: Unpack[Options]) -> AsyncStream[Any]: ...
def stream(model: str, prompt: PromptLike, **options: Unpack[Options]) -> AsyncStream[Any]:
    """The events of a reply, through a client that is closed with them. Use it in an `async with`."""
    call = CallBuilder().build(model, prompt, options, stream=True)
    return AsyncStream(call, AiohttpTransport(), ends_transport=True)


def run(begin: Callable[[CallBuilder], RunState[Output]]) -> AsyncRunStream[Output]:
    """The events of an agent's run, through a client that is closed with them. Use it in an `async with`."""
    from asides.transports.run_stream import AsyncRunStream

    return AsyncRunStream(begin(CallBuilder()), AiohttpTransport(), ends_transport=True)
