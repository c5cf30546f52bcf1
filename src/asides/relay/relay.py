"""The flow of one relayed request: read it, route it, ask the provider, write the reply in the caller's dialect.

Not here: sockets (transports), and what a request and a response are (relay_request).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from asides.dialects import find_dialect, plain_row
from asides.dialects.dialect import ServedRequest, Writer
from asides.flows.call import Call, CallLike, Policy
from asides.flows.exchange import Exchange
from asides.flows.fallback import ExchangeInOrder
from asides.flows.steps import Done, Emit, Flow, UseCall, advance
from asides.options import Options
from asides.providers.credentials import Secret
from asides.providers.provider import Target
from asides.relay.relay_request import RelayOutcome, RelayRequest, ResponseStart
from asides.values.errors import AsidesError, ConfigError, ProviderError, TransportError
from asides.values.notices import Notice

if TYPE_CHECKING:
    from asides.flows.build_call import CallBuilder


class RelayConfig(msgspec.Struct, frozen=True):
    """The settings of a relay."""

    home: str = ""
    """The provider of a model that is named without one."""
    options: Options = msgspec.field(default_factory=Options)
    """Options of every call. Those of a request win."""


class _NoCall(msgspec.Struct, frozen=True):
    """The call of a request that asks no provider."""

    target: Target
    policy: Policy = Policy()
    key: Secret | None = None


class Relay:
    """Relays requests. It holds no state of a request, so it is safe to use from many threads."""

    def __init__(self, builder: CallBuilder, config: RelayConfig | None = None) -> None:
        self._builder = builder
        self._config = config or RelayConfig()

    def begin(self, request: RelayRequest) -> RelayExchange:
        """Begin a request. Nothing is sent yet."""
        return RelayExchange(request, self._builder, self._config)


class RelayExchange:
    """A relayed request in progress. `steps()` is its flow: it emits the head of the response, then its bytes."""

    def __init__(self, request: RelayRequest, builder: CallBuilder, config: RelayConfig) -> None:
        self._request = request
        self._builder = builder
        self._config = config
        self._started = False
        self._notices: tuple[Notice, ...] = ()
        row = plain_row(request.dialect)
        self.call: CallLike = _NoCall(Target(row, "", row.base_url))
        """The call under way."""

    def steps(self) -> Flow[RelayOutcome]:
        """The flow. It raises nothing that a provider, a store or the caller causes: errors are responses."""
        dialect = find_dialect(self._request.dialect)
        try:
            served = dialect.read(self._request.body, self._request.path)
            call = self._build_call(served)
            yield UseCall(call)
            return (yield from self._translate(call, served))
        except AsidesError as error:
            return (yield from self._fail(error))

    def _build_call(self, served: ServedRequest) -> Call:
        model = served.model
        if ":" not in model and self._config.home:
            model = f"{self._config.home}:{model}"
        options = Options({"on_conflict": "adjust", **self._config.options})
        call = self._builder.build(model, served.prompt, options, stream=served.stream)
        self.call = call
        return call

    def _translate(self, call: Call, served: ServedRequest) -> Flow[RelayOutcome]:
        dialect = find_dialect(self._request.dialect)
        writer: Writer = dialect.writer(model=served.model, stream=served.stream, include_usage=served.include_usage)
        exchange = ExchangeInOrder(call) if call.fallbacks else Exchange(call)
        flow = exchange.steps()
        value: Any = None
        error: BaseException | None = None
        while True:
            step = advance(flow, value, error)
            value = error = None
            if isinstance(step, Done):
                reply = step.result
                break
            if isinstance(step, Emit):
                written = writer.write(step.events)
                if written:
                    yield Emit([*self._start(200, {"content-type": writer.content_type}), written])
                continue
            try:
                value = yield step
            except TransportError as problem:
                error = problem
        return RelayOutcome(200, "translate", call.model, reply, reply.warnings)

    def _start(self, status: int, headers: dict[str, str]) -> list[ResponseStart]:
        if self._started:
            return []
        self._started = True
        return [ResponseStart(status, headers)]

    def _fail(self, error: AsidesError) -> Flow[RelayOutcome]:
        dialect = find_dialect(self._request.dialect)
        status = error.status if isinstance(error, ProviderError) and error.status else 502
        if isinstance(error, ConfigError):
            status = 400
        if not self._started:
            body = dialect.write_error(status, str(error))
            yield Emit([*self._start(status, {"content-type": "application/json"}), body])
        return RelayOutcome(status, "translate", error=error, reply=error.partial)
