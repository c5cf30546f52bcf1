"""The async client: `AsyncClient`, and `ask`, `ask_many`, `probe`, `stream` and `run`, each with a client for one call.

Requests run on the sockets of the standard library. What a call needs is imported by the first client.
"""

from __future__ import annotations

import asyncio  # async only
import sys  # async only
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from importlib import import_module  # async only
from typing import TYPE_CHECKING, Any, Self, Unpack, cast, overload

from asides.option_help import ASK_MANY_TEXT, describe_options

if TYPE_CHECKING:
    from asides.flows.build_call import CallBuilder
    from asides.flows.call import Call, CallLike
    from asides.flows.compact_history import CompactedHistory
    from asides.flows.many import OnProgress, OpenQuestions
    from asides.flows.pace import Pace  # async only
    from asides.flows.probe.plan_probe import ProbeOptions
    from asides.flows.probe.probe_report import ProbeReport, ProbeStep
    from asides.flows.steps import Flow, Whole
    from asides.options import ListOptions, ModelLike, Options, PromptLike, SharedOptions
    from asides.providers.provider import Provider
    from asides.settings import Settings
    from asides.transports.answers import AsyncAnswers, Build
    from asides.transports.async_ import AsyncStream
    from asides.transports.flow_state import FlowState
    from asides.transports.protocols import AsyncTransport
    from asides.transports.run_async import AsyncRunStream
    from asides.transports.run_state import RunState
    from asides.values.model_info import ModelInfo
    from asides.values.reply import Output, Reply
    from asides.values.result import Result
    from asides.values.visibility import Visibility

__all__ = ["AsyncClient", "AsyncStream", "ask", "ask_many", "probe", "run", "stream"]  # async only
# sync: __all__ = ["Client", "Stream", "ask", "ask_many", "get_shared_client", "probe", "stream"]


class AsyncClient:
    """Asks models without blocking the event loop. Keeps connections for the next call, separately for each event loop.

    Every option of `ask` may be given here as a default; the options of a call win. `providers` are your own rows,
    `settings` replaces `asides.toml` and the environment, `transport` carries the bytes.
    `visibility` says what each place may see of thinking.
    """

    _ends_transport = False  # async only
    _reported: set[str] | None = None  # async only

    def __init__(
        self,
        *,
        settings: Settings | None = None,
        providers: Sequence[Provider] = (),
        transport: AsyncTransport | None = None,
        visibility: Visibility | Mapping[str, Any] | None = None,
        **defaults: Unpack[Options],
    ) -> None:
        def build() -> CallBuilder:
            from asides.flows.build_call import CallBuilder

            builder = CallBuilder(defaults, providers=providers, settings=settings)
            if visibility is not None:
                from asides.values.visibility import read_visibility

                builder.visibility = read_visibility(visibility)
            return builder

        self._build = build  # A function: the options may hold a key, and an attribute would show it.
        self._option_names = tuple(defaults)
        self._given_transport = transport
        # sync: _ = self._call_builder, self._transport
        if _may_import():  # async only
            _ = self._call_builder, self._transport  # Raises for unknown options. Otherwise the first call does.

    @cached_property
    def _call_builder(self) -> CallBuilder:
        # sync: return self._build()
        builder = self._build()  # async only
        if self._reported is not None:  # async only
            builder.reported = self._reported
        return builder  # async only

    @cached_property
    def _transport(self) -> AsyncTransport:
        if self._given_transport is not None:
            return self._given_transport
        from asides.transports.http_async import AsyncHttpTransport

        return AsyncHttpTransport()

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
        await load()  # async only
        from asides.transports.async_ import AsyncStream

        call = self._call_builder.build(model, prompt, options, stream=False)
        return await AsyncStream[Any](call, self._transport, ends_transport=self._ends_transport).drain()

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
        if not _may_import():  # async only
            return cast("AsyncStream[Any]", _Deferred(lambda: self.stream(model, prompt, **options)))
        from asides.transports.async_ import AsyncStream

        call = self._call_builder.build(model, prompt, options, stream=True)
        return AsyncStream(call, self._transport, ends_transport=self._ends_transport)

    @overload
    def ask_many(
        self,
        model: ModelLike | None = None,
        prompts: Iterable[PromptLike] | AsyncIterable[PromptLike] | None = None,
        *,
        concurrency: int = 8,
        on_progress: OnProgress | None = None,
        output: type[Output],
        **options: Unpack[SharedOptions],
    ) -> AsyncAnswers[Reply[Output]]: ...
    @overload
    def ask_many(
        self,
        model: ModelLike | None = None,
        prompts: Iterable[PromptLike] | AsyncIterable[PromptLike] | None = None,
        *,
        concurrency: int = 8,
        on_progress: OnProgress | None = None,
        **options: Unpack[Options],
    ) -> AsyncAnswers[Reply[Any]]: ...
    def ask_many(
        self,
        model: ModelLike | None = None,
        prompts: Iterable[PromptLike] | AsyncIterable[PromptLike] | None = None,
        *,
        concurrency: int = 8,
        on_progress: OnProgress | None = None,
        **options: Unpack[Options],
    ) -> AsyncAnswers[Reply[Any]]:
        """Ask many prompts, several at a time. Yields an index and a Reply, or an AsidesError, for each as it arrives.

        One failed prompt does not affect the others. Prompts are read as they can be asked, so a generator may be
        endless. `on_progress` gets a `Progress` after each. Errors that concern every prompt are raised immediately.
        One that only the server knows, such as a wrong key, fails the rest without sending it.
        """
        if not _may_import(_ANSWERS):  # async only
            late = partial(self.ask_many, concurrency=concurrency, on_progress=on_progress)
            return cast("AsyncAnswers[Reply[Any]]", _Deferred(lambda: late(model, prompts, **options), _ANSWERS))
        from asides.flows.many import OpenQuestions, check_call, check_prompts, prepare_call, prepare_calls

        batch = OpenQuestions(concurrency, on_progress, check_prompts(prompts))
        check_call(self._call_builder, model, options)
        if isinstance(prompts, AsyncIterable):  # async only
            return self._answer(
                lambda builder: (prepare_call(builder, model, options, prompt) async for prompt in prompts), batch
            )
        return self._answer(partial(prepare_calls, model=model, prompts=prompts, options=options), batch)

    def _answer(
        self, prepare: Callable[[CallBuilder], Iterable[Build] | AsyncIterable[Build]], batch: OpenQuestions
    ) -> AsyncAnswers[Any]:
        """The answers to the calls that `prepare` makes. `ask_many` and the command line call this."""
        from asides.transports.answers import AsyncAnswers

        builder = self._call_builder.with_pace(batch.pace)
        return AsyncAnswers(prepare(builder), self._transport, batch, ends_transport=self._ends_transport)

    async def answer(self, build: Callable[[CallBuilder], Call], pace: Pace) -> Reply[Any]:  # async only
        """The whole reply to the call that `build` builds, at the pace of its list. A batch calls this."""
        from asides.transports.async_ import AsyncStream  # async only

        return await AsyncStream[Any](build(self._call_builder.with_pace(pace)), self._transport).drain()

    def build(self, build: Callable[[CallBuilder], Call]) -> Call:  # async only
        """The call that `build` builds with the options of this client. A vendor's batch calls this."""
        return build(self._call_builder)

    def drive(self, state: FlowState[Any]) -> AsyncGenerator[list[Any], None]:  # async only
        """Run a flow with the connections of this client; yields what it emits. A vendor's batch calls this."""
        from asides.transports.async_ import AsyncDriver

        return AsyncDriver(state, self._transport).batches()

    def run_many(
        self, prepare: Callable[[CallBuilder], Iterable[Build]], batch: OpenQuestions
    ) -> AsyncAnswers[Result[Any]]:
        """The results of the runs that `prepare` makes. `AsyncAgent` calls this."""
        return self._answer(prepare, batch)

    def run(self, begin: Callable[[CallBuilder], RunState[Output]]) -> AsyncRunStream[Output]:
        """The events of an agent's run through this client; `begin` creates the run. `AsyncAgent` calls this."""
        from asides.transports.run_async import AsyncRunStream

        return AsyncRunStream(begin(self._call_builder), self._transport, ends_transport=self._ends_transport)

    async def models(self, provider: str, **options: Unpack[ListOptions]) -> tuple[ModelInfo, ...]:
        """The models that a provider offers today, as the provider describes them."""
        await load()  # async only
        from asides.flows.list_models import list_models

        call = self._call_builder.build_model_list(provider, options)
        return await self._run_flow(call, lambda: list_models(call))

    async def probe(
        self,
        base_url: str,
        *,
        on_progress: Callable[[ProbeStep], object] | None = None,
        **options: Unpack[ProbeOptions],
    ) -> ProbeReport:
        """Detect how an unknown server returns thinking, with a few small requests; `report.row` is the row for it.

        `on_progress` gets each request before it is sent, with the report so far, and again with its outcome.
        """
        await load()  # async only
        from asides.flows.probe.plan_probe import build_probe
        from asides.flows.probe.run_probe import Probe

        call = build_probe(base_url, options)
        return await self._run_flow(call, Probe(call).steps, on_progress)

    async def compact(self, build: Callable[[CallBuilder], Call]) -> CompactedHistory:
        """Let a provider compact a history on its own; `build` builds the call. `AsyncConversation` calls this."""
        from asides.flows.compact_history import compact_history

        call = build(self._call_builder)
        return await self._run_flow(call, lambda: compact_history(call))

    async def _run_flow(
        self, call: CallLike, flow: Callable[[], Flow[Whole]], on_event: Callable[[Any], object] | None = None
    ) -> Whole:
        from asides.transports.async_ import run_flow

        return await run_flow(call, flow, self._transport, on_event, ends_transport=self._ends_transport)

    def __repr__(self) -> str:
        # Names only: a value may be a key or a prompt.
        return f"AsyncClient({', '.join(f'{name}=…' for name in self._option_names)})"

    async def close(self) -> None:
        """Close idle connections of this event loop. The client may still be used."""
        await self._transport.close()

    async def __aenter__(self) -> Self:
        await load()  # async only
        _ = self._call_builder  # async only
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


_CALL_PATH = (  # async only
    "asides.flows.build_call",
    "asides.transports.async_",
    "asides.transports.http_async",
)


_ANSWERS = "asides.transports.answers"  # async only


async def load(*more: str) -> None:  # async only
    """Import what a call needs, in a thread: the first call must not hold the event loop."""
    if not _is_loaded(*more):
        await asyncio.to_thread(lambda: [import_module(name) for name in (*_CALL_PATH, *more)])


def _is_loaded(*more: str) -> bool:  # async only
    return all(name in sys.modules for name in (*_CALL_PATH, *more))


def _may_import(*more: str) -> bool:  # async only
    """True if importing what a call needs holds no event loop: it is imported, or no loop runs in this thread."""
    if _is_loaded(*more):
        return True
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return True
    return False


class _Deferred:  # async only
    """A stream, or the answers of `ask_many`, before what they need is imported: the first await creates them."""

    def __init__(self, build: Callable[[], Any], *more: str) -> None:
        self._build = build
        self._more = more

    @cached_property
    def _built(self) -> Any:
        return self._build()

    async def __aenter__(self) -> Any:
        await load(*self._more)
        return await self._built.__aenter__()

    async def __aexit__(self, *problem: object) -> None:
        await self._built.__aexit__(*problem)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        await load(*self._more)
        return await anext(self._built)

    async def drain(self) -> Any:
        await load(*self._more)
        return await self._built.drain()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._built, name)


class _OneCall(AsyncClient):  # async only
    """A client for one call: it closes its connections when the call ends."""

    _ends_transport = True
    _reported: set[str] | None = set()  # noqa: RUF012 - all of them share it
    """The default models that a notice has reported to such clients."""


def open_client() -> AsyncClient:  # async only
    """A client for one call."""
    return _OneCall()


# sync: _shared = Client()
# sync:
# sync:
# sync: def get_shared_client() -> Client:
# sync:     """The client of calls that are given none."""
# sync:     return _shared


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
    """Ask a model, with a client that is closed afterwards; returns the whole reply: see `AsyncClient.ask`."""
    return await open_client().ask(model, prompt, **options)


@overload
def ask_many(
    model: ModelLike | None = None,
    prompts: Iterable[PromptLike] | AsyncIterable[PromptLike] | None = None,
    *,
    concurrency: int = 8,
    on_progress: OnProgress | None = None,
    output: type[Output],
    **options: Unpack[SharedOptions],
) -> AsyncAnswers[Reply[Output]]: ...
@overload
def ask_many(
    model: ModelLike | None = None,
    prompts: Iterable[PromptLike] | AsyncIterable[PromptLike] | None = None,
    *,
    concurrency: int = 8,
    on_progress: OnProgress | None = None,
    **options: Unpack[Options],
) -> AsyncAnswers[Reply[Any]]: ...
def ask_many(
    model: ModelLike | None = None,
    prompts: Iterable[PromptLike] | AsyncIterable[PromptLike] | None = None,
    *,
    concurrency: int = 8,
    on_progress: OnProgress | None = None,
    **options: Unpack[Options],
) -> AsyncAnswers[Reply[Any]]:
    """Ask many prompts, with a client that is closed afterwards: see `AsyncClient.ask_many`."""
    return open_client().ask_many(model, prompts, concurrency=concurrency, on_progress=on_progress, **options)


async def probe(
    base_url: str, *, on_progress: Callable[[ProbeStep], object] | None = None, **options: Unpack[ProbeOptions]
) -> ProbeReport:
    """Detect how a server returns thinking, with a client that is closed afterwards: see `AsyncClient.probe`."""
    return await open_client().probe(base_url, on_progress=on_progress, **options)


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
    """The events of a reply as they arrive, with a client that is closed with them. Use it in an `async with`."""
    return open_client().stream(model, prompt, **options)


def run(begin: Callable[[CallBuilder], RunState[Output]]) -> AsyncRunStream[Output]:  # async only
    """The events of an agent's run, with a client that is closed with them. Use it in an `async with`."""
    return open_client().run(begin)


describe_options(AsyncClient.ask, AsyncClient.stream, ask, stream)
describe_options(AsyncClient.ask_many, ask_many, first=ASK_MANY_TEXT)


def __getattr__(name: str) -> object:
    if name == "AsyncStream":
        from asides.transports.async_ import AsyncStream

        return AsyncStream
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
