"""Several models in order: the next one is asked when one fails before its first event. Also the default model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, cast

import msgspec

from asides.flows.call import Call
from asides.flows.exchange import Exchange
from asides.flows.steps import Flow, Now, UseCall
from asides.history.check import check_request
from asides.options import ModelLike, Options, PromptLike, read_options
from asides.values.errors import (
    AsidesError,
    ConfigError,
    MissingKey,
    ProtocolError,
    ProviderError,
    TransportError,
    UnknownModel,
    UnknownProvider,
    Unsupported,
)
from asides.values.notices import Notice
from asides.values.reply import Reply

if TYPE_CHECKING:
    from asides.flows.build_call import CallBuilder

# Errors that another model may not have. A contradiction in the caller's options is raised before anything is sent.
_OF_ONE_MODEL = (TransportError, ProviderError, ProtocolError, Unsupported, MissingKey)
# State stored at one provider. Another provider would answer without the conversation.
_STORED_THERE = ("previous_response_id", "conversation_id")


def can_fall_back(error: AsidesError) -> bool:
    """Whether another model may answer despite this error."""
    return isinstance(error, _OF_ONE_MODEL)


# --- building ---------------------------------------------------------------------------------------------------------


def build_in_order(
    builder: CallBuilder,
    model: ModelLike | None,
    prompt: PromptLike | None,
    options: Options,
    *,
    stream: bool,
    needs_key: bool,
) -> Call:
    """Build the call of the first model, with those of the others as its `fallbacks`. Raises before a byte is sent.

    Each call has the key and the address of its own provider: `api_key=` and `base_url=` hold for the provider of the
    first model. Models without a key are left out, with a notice, as long as one has a key.
    """
    given, _ = read_options(builder.defaults, options)
    asked: Any = "" if prompt is None and given.files else prompt
    _check_prompt(model, asked)
    names, notices = _read_names(builder, model)
    if isinstance(asked, Iterator):
        asked = tuple(asked)  # it is read for each model

    def build(name: str, **changed: Any) -> Call | MissingKey:
        try:
            call = builder.build_for(
                name,
                asked,
                cast("Options", {**options, **changed}),
                stream=stream,
                needs_key=needs_key,
                is_elsewhere=not _is_same_place(builder, name, names[0], given.base_url),
            )
        except MissingKey as problem:
            return problem
        return call

    begun = build(names[0])
    first = begun
    if isinstance(first, MissingKey):
        first = builder.build_for(names[0], asked, options, stream=stream, needs_key=False)
    calls = [begun, *(build(name) for name in names[1:])]
    for call in calls:
        if len(calls) > 1 and isinstance(call, Call):
            # Report contradictions now, and not only when the first model fails.
            check_request(call.prompt, call.target, call.policy.on_conflict, [])
    stored = [name for name in _STORED_THERE if getattr(given, name) is not None]
    if stored and any(not _is_same_place(builder, name, names[0], given.base_url) for name in names[1:]):
        raise _explain_stored(stored[0], first)
    if (model is None or isinstance(model, str)) and given.base_url is None:
        try:
            more = [
                name
                for name in _find_fallbacks(builder, first)
                if not stored or _is_same_place(builder, name, names[0], None)
            ]
            # The settings name these models, not the caller: each gets the nearest request that it allows.
            calls += [build(name, on_conflict="adjust") for name in more]
        except ConfigError as problem:
            problem.args = (f"[fallbacks] of the settings: {problem}", *problem.args[1:])
            raise
        names = (*names, *more)
    return join_calls(names, calls, notices)


def _explain_stored(option: str, call: Call) -> ConfigError:
    return ConfigError(
        f"{option}= is known to {call.target.provider.name} alone; another provider would answer without the "
        "conversation. Pass the messages, or name models of one provider."
    )


def _check_prompt(model: ModelLike | None, prompt: PromptLike | None) -> None:
    if prompt is not None:
        return
    if model is None:
        raise ConfigError("there is no prompt. Pass one, as ask(model, prompt), or ask(prompt=…).")
    raise ConfigError(
        "there is no prompt: the first argument is the model. Write ask(model, prompt); for the model of the "
        "settings, ask(prompt=…)."
    )


def _read_names(builder: CallBuilder, model: ModelLike | None) -> tuple[tuple[str, ...], tuple[Notice, ...]]:
    """The models in order. Without a name, the model of the settings, with a single notice."""
    if model is None:
        return _choose_default(builder)
    given: Any = model
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
        return (model,), ()  # type: ignore[return-value] # find_target explains what is wrong with it
    if not model:
        raise UnknownModel("the list of models is empty. Name at least one, as provider:model.")
    return tuple(model), ()


def raise_for_no_model() -> NoReturn:
    """Raise the error of a call without a model."""
    raise UnknownModel(
        "no model was named. Name one as provider:model, in the call (model=), for the conversation or the "
        'agent, or in the settings (ASIDES_MODEL, or model = "…" in asides.toml).'
    )


def _choose_default(builder: CallBuilder) -> tuple[tuple[str, ...], tuple[Notice, ...]]:
    settings = builder.settings
    if settings.model is None:
        raise_for_no_model()
    if settings.model in builder.reported:
        return (settings.model,), ()
    builder.reported.add(settings.model)
    detail = f"no model was named, so that of the settings was asked ({settings.origin('model')})"
    return (settings.model,), (Notice("default_model", detail, "model", None, settings.model),)


def _find_fallbacks(builder: CallBuilder, call: Call) -> tuple[str, ...]:
    """The models that [fallbacks] of the settings names for the model of this call."""
    table: Mapping[str, tuple[str, ...]] = builder.settings.fallbacks
    for name, others in table.items():
        try:
            found = builder.find_target(name)
        except (UnknownProvider, UnknownModel):
            raise
        except ConfigError:
            continue  # Its address is not set here, so it is not the model of this call.
        if (found.provider.name, found.model) == (call.target.provider.name, call.target.model):
            return others
    return ()


def _is_same_place(builder: CallBuilder, name: str, first: str, base_url: str | None) -> bool:
    """Whether two models are at one provider, or at one address under two names of providers."""
    if name == first:
        return True
    one, other = (builder.find_target(model, base_url).provider for model in (name, first))
    return one.name == other.name or (one.base_url == other.base_url and bool(one.base_url))


def join_calls(names: Sequence[str], calls: Sequence[Call | MissingKey], notices: tuple[Notice, ...]) -> Call:
    """One call with its fallbacks. Raises MissingKey when no model has a key."""
    ready: list[tuple[str, Call]] = []
    for name, call in zip(names, calls, strict=True):
        # A model that has failed, and had its retries, is not asked again under another name.
        if isinstance(call, Call) and not any(_is_same_model(call, other) for _, other in ready):
            ready.append((name, call))
    missing = [(name, call) for name, call in zip(names, calls, strict=True) if isinstance(call, MissingKey)]
    if not ready:
        error = missing[0][1]
        for _, other in missing[1:]:
            if str(other) not in str(error):
                error.args = (f"{error} {other}",)
        raise error
    skipped = (*ready[0][1].skipped, *missing)
    notices = (*notices, *(_report_failure(name, problem, ready[0][0]) for name, problem in missing))
    if ready[0][1].policy.pace is not None:
        # A list waits for its last model only: before that, the next one is asked instead.
        ready = [*((name, _without_pace(call)) for name, call in ready[:-1]), ready[-1]]
    first, *others = (
        msgspec.structs.replace(call, notices=(*notices, *call.notices), skipped=skipped) for _, call in ready
    )
    return msgspec.structs.replace(first, fallbacks=tuple(others))


def _without_pace(call: Call) -> Call:
    return msgspec.structs.replace(call, policy=msgspec.structs.replace(call.policy, pace=None))


def _is_same_model(one: Call, other: Call) -> bool:
    first, second = one.target, other.target
    return (first.provider.name, first.dialect, first.model) == (second.provider.name, second.dialect, second.model)


def _report_failure(model: str, error: AsidesError, then: str) -> Notice:
    """The notice of a model that did not answer, without the server's words."""
    what = "has no API key" if isinstance(error, MissingKey) else f"failed with {type(error).__name__}"
    status = getattr(error, "status", None)
    return Notice("fell_back", f"{model} {what}{f' ({status})' if status else ''}", "model", model, then)


# --- asking -----------------------------------------------------------------------------------------------------------


class OneExchange(Protocol):
    """One attempt: an `Exchange`, or one whose events are translated."""

    @property
    def partial(self) -> Reply | None:
        """The reply so far."""
        ...

    @property
    def emitted(self) -> bool:
        """Whether the caller got an event."""
        ...

    def steps(self, began: float | None = None) -> Flow[Reply]:
        """Run the flow. `began`: start of the whole call."""
        ...


class ExchangeInOrder:
    """A call with fallbacks in progress. `steps()` is its flow."""

    __slots__ = ("_begun", "_calls", "_place", "_start")

    def __init__(self, call: Call, start: Callable[[Call, tuple[Notice, ...]], OneExchange] | None = None) -> None:
        """`start` begins an attempt, with notices of the attempts before it. It plans the history for its target."""
        self._calls = (msgspec.structs.replace(call, fallbacks=()), *call.fallbacks)
        self._start = _start_exchange if start is None else start
        self._begun: OneExchange | None = None
        self._place = 0

    @property
    def call(self) -> Call:
        """The current call, or the one that answered."""
        return self._calls[self._place]

    @property
    def partial(self) -> Reply | None:
        """The reply so far; None before it has started."""
        return None if self._begun is None else self._begun.partial

    @property
    def emitted(self) -> bool:
        """Whether the caller got an event. After that there is no fallback."""
        return self._begun is not None and self._begun.emitted

    @property
    def next_call(self) -> Call:
        """The call for the next step of a run: first the model that answered, then the others in their order."""
        place = self._place
        return msgspec.structs.replace(self.call, fallbacks=(*self._calls[place + 1 :], *self._calls[:place]))

    def steps(self) -> Flow[Reply]:
        """Run the flow. Raises the error of the last model; `earlier` has the others."""
        total = self._calls[0].policy.timeout.total
        began: float = yield Now()
        notices: list[Notice] = []
        earlier: list[AsidesError] = []
        for place, call in enumerate(self._calls):
            self._place = place
            yield UseCall(call)
            self._begun = self._start(call, tuple(notices))
            try:
                return (yield from self._begun.steps(began))
            except AsidesError as error:
                if place + 1 == len(self._calls) or self._begun.emitted or not can_fall_back(error):
                    _attach(error, earlier, notices, call.skipped)
                    raise
                failure = error
            if total is not None and isinstance(failure, TransportError):
                now: float = yield Now()
                if now - began >= total:  # No time is left for another model.
                    _attach(failure, earlier, notices, call.skipped)
                    raise failure
            earlier.append(failure)
            notices.append(_report_failure(call.model, failure, self._calls[place + 1].model))
        raise AssertionError("the last model answers or raises")


def _start_exchange(call: Call, notices: tuple[Notice, ...]) -> Exchange:
    return Exchange(msgspec.structs.replace(call, notices=(*notices, *call.notices)) if notices else call)


def _attach(
    error: AsidesError,
    earlier: Sequence[AsidesError],
    notices: Sequence[Notice],
    skipped: Sequence[tuple[str, MissingKey]],
) -> None:
    """Add the earlier failed models to an error, and those that were not asked."""
    error.earlier = (*(problem for _, problem in skipped), *earlier)
    sentences = [str(error)]
    if notices:
        sentences.append(f"Before it: {'; '.join(notice.detail for notice in notices)}.")
    if skipped:
        sentences.append(f"Not asked: {'; '.join(_describe_skipped(*each) for each in skipped)}.")
    error.args = (" ".join(sentences), *error.args[1:])


def _describe_skipped(model: str, problem: MissingKey) -> str:
    return f"{model} (no API key{': set ' + ' or '.join(problem.variables) if problem.variables else ''})"
