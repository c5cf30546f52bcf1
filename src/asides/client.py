# Written by scripts/unasync.py from aio.py. Do not edit.
"""The sync client: `Client`, and `ask`, `ask_many`, `probe` and `stream`, which share one client.

Requests run on the sockets of the standard library. What a call needs is imported by the first client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self, Unpack, overload

from asides.option_help import ASK_MANY_TEXT, describe_options

if TYPE_CHECKING:
    from asides.flows.build_call import CallBuilder
    from asides.flows.call import Call, CallLike
    from asides.flows.compact_history import CompactedHistory
    from asides.flows.many import OnProgress, OpenQuestions
    from asides.flows.probe.plan_probe import ProbeOptions
    from asides.flows.probe.probe_report import ProbeReport, ProbeStep
    from asides.flows.steps import Flow, Whole
    from asides.options import ListOptions, ModelLike, Options, PromptLike, SharedOptions
    from asides.providers.provider import Provider
    from asides.settings import Settings
    from asides.transports.answers import Answers, Build
    from asides.transports.protocols import Transport
    from asides.transports.run_state import RunState
    from asides.transports.run_sync import RunStream
    from asides.transports.sync import Stream
    from asides.values.model_info import ModelInfo
    from asides.values.reply import Output, Reply
    from asides.values.result import Result
    from asides.values.visibility import Visibility

__all__ = ["Client", "Stream", "ask", "ask_many", "get_shared_client", "probe", "stream"]


class Client:
    """Asks models and waits for the answer. Keeps connections for the next call; safe to use from many threads.

    Every option of `ask` may be given here as a default; the options of a call win. `providers` are your own rows,
    `settings` replaces `asides.toml` and the environment, `transport` carries the bytes.
    `visibility` says what each place may see of thinking.
    """

    def __init__(
        self,
        *,
        settings: Settings | None = None,
        providers: Sequence[Provider] = (),
        transport: Transport | None = None,
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
        _ = self._call_builder, self._transport

    @cached_property
    def _call_builder(self) -> CallBuilder:
        return self._build()

    @cached_property
    def _transport(self) -> Transport:
        if self._given_transport is not None:
            return self._given_transport
        from asides.transports.http_sync import HttpTransport

        return HttpTransport()

    @overload
    def ask(
        self,
        model: ModelLike | None = None,
        prompt: PromptLike | None = None,
        *,
        output: type[Output],
        **options: Unpack[SharedOptions],
    ) -> Reply[Output]: ...
    @overload
    def ask(
        self, model: ModelLike | None = None, prompt: PromptLike | None = None, **options: Unpack[Options]
    ) -> Reply[Any]: ...
    def ask(
        self, model: ModelLike | None = None, prompt: PromptLike | None = None, **options: Unpack[Options]
    ) -> Reply[Any]:
        """Ask a model; returns the whole reply. The provider sends it in one piece, unless `stream=True`.

        Of several models, each is asked when those before it fail. Without a model, that of the settings is asked.
        """
        from asides.transports.sync import Stream

        call = self._call_builder.build(model, prompt, options, stream=False)
        return Stream[Any](call, self._transport).reply

    @overload
    def stream(
        self,
        model: ModelLike | None = None,
        prompt: PromptLike | None = None,
        *,
        output: type[Output],
        **options: Unpack[SharedOptions],
    ) -> Stream[Output]: ...
    @overload
    def stream(
        self, model: ModelLike | None = None, prompt: PromptLike | None = None, **options: Unpack[Options]
    ) -> Stream[Any]: ...
    def stream(
        self, model: ModelLike | None = None, prompt: PromptLike | None = None, **options: Unpack[Options]
    ) -> Stream[Any]:
        """The events of a reply as they arrive. The request is sent when the first event is read."""
        from asides.transports.sync import Stream

        call = self._call_builder.build(model, prompt, options, stream=True)
        return Stream(call, self._transport)

    @overload
    def ask_many(
        self,
        model: ModelLike | None = None,
        prompts: Iterable[PromptLike] | None = None,
        *,
        concurrency: int = 8,
        on_progress: OnProgress | None = None,
        output: type[Output],
        **options: Unpack[SharedOptions],
    ) -> Answers[Reply[Output]]: ...
    @overload
    def ask_many(
        self,
        model: ModelLike | None = None,
        prompts: Iterable[PromptLike] | None = None,
        *,
        concurrency: int = 8,
        on_progress: OnProgress | None = None,
        **options: Unpack[Options],
    ) -> Answers[Reply[Any]]: ...
    def ask_many(
        self,
        model: ModelLike | None = None,
        prompts: Iterable[PromptLike] | None = None,
        *,
        concurrency: int = 8,
        on_progress: OnProgress | None = None,
        **options: Unpack[Options],
    ) -> Answers[Reply[Any]]:
        """Ask many prompts, several at a time. Yields an index and a Reply, or an AsidesError, for each as it arrives.

        One failed prompt does not affect the others. Prompts are read as they can be asked, so a generator may be
        endless. `on_progress` gets a `Progress` after each. Errors that concern every prompt are raised immediately.
        One that only the server knows, such as a wrong key, fails the rest without sending it.
        """
        from asides.flows.many import OpenQuestions, check_call, check_prompts, prepare_calls

        batch = OpenQuestions(concurrency, on_progress, check_prompts(prompts))
        check_call(self._call_builder, model, options)
        return self.answer(partial(prepare_calls, model=model, prompts=prompts, options=options), batch)

    def answer(self, prepare: Callable[[CallBuilder], Iterable[Build]], batch: OpenQuestions) -> Answers[Any]:
        """The answers to the calls that `prepare` makes. `ask_many` and the command line call this."""
        from asides.transports.answers import Answers

        builder = self._call_builder.with_pace(batch.pace)
        return Answers(prepare(builder), self._transport, batch)

    def run_many(self, prepare: Callable[[CallBuilder], Iterable[Build]], batch: OpenQuestions) -> Answers[Result[Any]]:
        """The results of the runs that `prepare` makes. `Agent` calls this."""
        return self.answer(prepare, batch)

    def run(self, begin: Callable[[CallBuilder], RunState[Output]]) -> RunStream[Output]:
        """The events of an agent's run through this client; `begin` creates the run. `Agent` calls this."""
        from asides.transports.run_sync import RunStream

        return RunStream(begin(self._call_builder), self._transport)

    def models(self, provider: str, **options: Unpack[ListOptions]) -> tuple[ModelInfo, ...]:
        """The models that a provider offers today, as the provider describes them."""
        from asides.flows.list_models import list_models

        call = self._call_builder.build_model_list(provider, options)
        return self._run_flow(call, lambda: list_models(call))

    def probe(
        self,
        base_url: str,
        *,
        on_progress: Callable[[ProbeStep], object] | None = None,
        **options: Unpack[ProbeOptions],
    ) -> ProbeReport:
        """Detect how an unknown server returns thinking, with a few small requests; `report.row` is the row for it.

        `on_progress` gets each request before it is sent, with the report so far, and again with its outcome.
        """
        from asides.flows.probe.plan_probe import build_probe
        from asides.flows.probe.run_probe import Probe

        call = build_probe(base_url, options)
        return self._run_flow(call, Probe(call).steps, on_progress)

    def compact(self, build: Callable[[CallBuilder], Call]) -> CompactedHistory:
        """Let a provider compact a history on its own; `build` builds the call. `Conversation` calls this."""
        from asides.flows.compact_history import compact_history

        call = build(self._call_builder)
        return self._run_flow(call, lambda: compact_history(call))

    def _run_flow(
        self, call: CallLike, flow: Callable[[], Flow[Whole]], on_event: Callable[[Any], object] | None = None
    ) -> Whole:
        from asides.transports.sync import run_flow

        return run_flow(call, flow, self._transport, on_event)

    def __repr__(self) -> str:
        # Names only: a value may be a key or a prompt.
        return f"Client({', '.join(f'{name}=…' for name in self._option_names)})"

    def close(self) -> None:
        """Close idle connections. The client may still be used."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_shared = Client()


def get_shared_client() -> Client:
    """The client of calls that are given none."""
    return _shared


@overload
def ask(
    model: ModelLike | None = None,
    prompt: PromptLike | None = None,
    *,
    output: type[Output],
    **options: Unpack[SharedOptions],
) -> Reply[Output]: ...
@overload
def ask(model: ModelLike | None = None, prompt: PromptLike | None = None, **options: Unpack[Options]) -> Reply[Any]: ...
def ask(model: ModelLike | None = None, prompt: PromptLike | None = None, **options: Unpack[Options]) -> Reply[Any]:
    """Ask a model, with the shared client; returns the whole reply: see `Client.ask`."""
    return get_shared_client().ask(model, prompt, **options)


@overload
def ask_many(
    model: ModelLike | None = None,
    prompts: Iterable[PromptLike] | None = None,
    *,
    concurrency: int = 8,
    on_progress: OnProgress | None = None,
    output: type[Output],
    **options: Unpack[SharedOptions],
) -> Answers[Reply[Output]]: ...
@overload
def ask_many(
    model: ModelLike | None = None,
    prompts: Iterable[PromptLike] | None = None,
    *,
    concurrency: int = 8,
    on_progress: OnProgress | None = None,
    **options: Unpack[Options],
) -> Answers[Reply[Any]]: ...
def ask_many(
    model: ModelLike | None = None,
    prompts: Iterable[PromptLike] | None = None,
    *,
    concurrency: int = 8,
    on_progress: OnProgress | None = None,
    **options: Unpack[Options],
) -> Answers[Reply[Any]]:
    """Ask many prompts, with the shared client: see `Client.ask_many`."""
    return get_shared_client().ask_many(model, prompts, concurrency=concurrency, on_progress=on_progress, **options)


def probe(
    base_url: str, *, on_progress: Callable[[ProbeStep], object] | None = None, **options: Unpack[ProbeOptions]
) -> ProbeReport:
    """Detect how a server returns thinking, with the shared client: see `Client.probe`."""
    return get_shared_client().probe(base_url, on_progress=on_progress, **options)


@overload
def stream(
    model: ModelLike | None = None,
    prompt: PromptLike | None = None,
    *,
    output: type[Output],
    **options: Unpack[SharedOptions],
) -> Stream[Output]: ...
@overload
def stream(
    model: ModelLike | None = None, prompt: PromptLike | None = None, **options: Unpack[Options]
) -> Stream[Any]: ...
def stream(model: ModelLike | None = None, prompt: PromptLike | None = None, **options: Unpack[Options]) -> Stream[Any]:
    """The events of a reply as they arrive, with the shared client."""
    return get_shared_client().stream(model, prompt, **options)


describe_options(Client.ask, Client.stream, ask, stream)
describe_options(Client.ask_many, ask_many, first=ASK_MANY_TEXT)


def __getattr__(name: str) -> object:
    if name == "Stream":
        from asides.transports.sync import Stream

        return Stream
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
