"""The settings of a relay, and the caller's side of one request: `Caller`."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from asides.flows.steps import Flow, Open
from asides.options import Options
from asides.relay.endpoints import Endpoint, name_request_id_header
from asides.relay.relay_request import CallerLimits, RelayMode, RelayOutcome, RelayRequest, ResponseStart
from asides.relay.state.relay_keys import RelayKeys
from asides.relay.state.turn_state import StateMode
from asides.relay.steps import UnconfirmedRecord
from asides.values.errors import AsidesError
from asides.values.notices import Notice
from asides.values.visibility import Sink

if TYPE_CHECKING:
    from asides.dialects.dialect import HttpRequest, ServedRequest
    from asides.flows.build_call import CallBuilder
    from asides.flows.call import Call
    from asides.history.plan import Decision
    from asides.relay.allowed_models import AllowedModels
    from asides.relay.known_calls import KnownCalls
    from asides.relay.listed_models import ListedModels
    from asides.relay.metered_use import MeteredUse
    from asides.relay.observer import RelayObserver
    from asides.relay.state.thinking_origins import ThinkingOrigins
    from asides.relay.state.turn_state import RestoredTurn
    from asides.values.events import Event
    from asides.values.reply import Reply

_log = logging.getLogger("asides")

ThinkingField = Literal["reasoning_content", "reasoning", "thinking", "reasoning_details"]

NOTICE_HEADER = "x-asides-notice"
STREAM_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}
"""Headers of a stream: no proxy on the way keeps it, or holds it back."""
_MOST_NOTICES = 20
_MOST_CHARACTERS = 1000


class RelayConfig(msgspec.Struct, frozen=True):
    """The settings of a relay."""

    home: str = ""
    """The provider of a model that is named without one; "": the maker of the caller's dialect."""
    home_options: Options = msgspec.field(default_factory=Options)
    """Options of the calls to `home` alone: its key and its address, which belong to no other provider."""
    options: Options = msgspec.field(default_factory=Options)
    """Options of every call. Those of a request win."""
    forwards: bool = True
    """Whether requests may be forwarded as they are, where nothing has to be translated."""
    sink: Sink = "app"
    """Whose visibility holds for thinking: "app" for clients in this program, "gateway" for those of a server."""
    reports_cuts: bool = True
    """Whether a forwarded stream that breaks off ends with an error of its dialect. In process the caller gets an
    exception instead, as from the connection that broke."""
    trusts_callers: bool = False
    """Whether a request may name the address and the key of a provider, and its organisation. In process it may."""
    thinking_field: ThinkingField = "reasoning_content"
    """The field for thinking in chat completions, whatever the provider called it."""
    keys: RelayKeys | None = None
    """What encrypts the state of callers; None: a key of this process, whose state ends with it."""
    state_mode: StateMode = "carry-only"
    """Where reasoning state is kept. "memory" and "store" need a store of records beside the transport."""
    lists_home: bool = True
    """Whether lists of models hold those of the home provider too, which takes a request."""
    listed: ListedModels | None = None
    """What providers list for the configured keys, for lists of a relay without a home. None: such lists hold the
    models that our rows name."""
    shown_models: tuple[str, ...] = ()
    """Patterns of the models that such lists show, as provider:model; (): all. Others can still be asked."""
    fallback_model: str = ""
    """The model that answers for names which no provider with a key has; "": such a request fails."""
    stores_responses: bool = True
    """Whether responses can be continued with `previous_response_id`, unless their request says `store: false`."""


class OptionLayers(msgspec.Struct, frozen=True):
    """What a relay and one of its routes say about every request, merged once."""

    options: Options
    """Without those of the settings, which reach each call by themselves."""
    of_prompt: frozenset[str]
    """Those, with the settings', that a request may say something else about."""


class Caller:
    """The caller's side of one request: the request, and the head of its response, which is sent once."""

    def __init__(
        self,
        request: RelayRequest,
        endpoint: Endpoint,
        builder: CallBuilder,
        config: RelayConfig,
        layers: dict[str, OptionLayers] | None = None,
        observer: RelayObserver | None = None,
        known_calls: KnownCalls | None = None,
        origins: ThinkingOrigins | None = None,
    ) -> None:
        """`layers`: by the names of routes, what earlier requests have merged. `known_calls`: those they built.
        `origins`: who made the thinking of earlier replies.
        """
        self.observer = observer
        """The observer of this request; None if there is none, or it failed."""
        self.request = request
        self.layers: dict[str, OptionLayers] = {} if layers is None else layers
        self.known_calls = known_calls
        self.origins = origins
        self.now: float | None = None
        """The time, once it was asked for; calls that were built before count only then."""
        self.endpoint = endpoint
        self.builder = builder
        self.config = config
        self.started = False
        """Whether the response has begun. After that no other target is asked."""
        self.opened_early = False
        """Whether the head has left before a provider answered: then its status is 200, whatever happens."""
        self.allowed: AllowedModels | None = None
        """The models that the caller may ask; None: all."""
        self.use: MeteredUse | None = None
        """What the request uses of the caller's limits; None: it has none."""
        if request.limits is not None:
            self._limit(request.limits)
        self.other_call: Call | None = None
        """The call to the other endpoint of the same server, if it is unknown whether it has the client's own."""
        self.notices: list[Notice] = []
        """Notices in addition to those of the reply."""
        self.unconfirmed: list[UnconfirmedRecord] = []
        """Records that are confirmed when the caller has what follows: earlier turns that it gave back, and its own."""
        self.attempts = 0
        """The requests that were sent to providers."""
        self.restored = 0
        """The earlier turns whose state was put back."""
        self.missed = 0
        """Those whose state was wanted and not found."""

    def _limit(self, limits: CallerLimits) -> None:
        # Callers in process have no limits.
        from asides.relay.allowed_models import AllowedModels
        from asides.relay.metered_use import MeteredUse

        self.allowed = AllowedModels(limits.models) if limits.models else None
        self.use = MeteredUse(limits) if limits.has_rate or limits.has_token_rate or limits.has_budget else None

    @property
    def dialect(self) -> str:
        """The dialect of the response."""
        return self.endpoint.dialect

    def start(self, status: int, headers: dict[str, str], notices: Iterable[Notice] = ()) -> list[ResponseStart]:
        """The head of the response, if it has not left yet: its headers, and one with the notices so far."""
        if self.started:
            return []
        self.started = True
        return [] if self.opened_early else [self._make_head(status, headers, notices)]

    def open_early(self, headers: dict[str, str]) -> ResponseStart:
        """The head of a stream before a provider has answered. Only pings follow until one has."""
        self.opened_early = True
        return self._make_head(200, headers)

    def _make_head(self, status: int, headers: dict[str, str], notices: Iterable[Notice] = ()) -> ResponseStart:
        name = name_request_id_header(self.dialect)
        own = {} if name in headers else {name: self.request.id or make_request_id()}
        if codes := write_codes([*self.notices, *notices]):
            own[NOTICE_HEADER] = codes
        return ResponseStart(status, {**own, **headers})

    def count_request(self, request: HttpRequest) -> None:
        """Count a request that leaves for a provider, and show it to the observer."""
        self.attempts += 1
        if self.use is not None:
            self.use.note_asked()
        if self.observer is not None:
            self._show(self.observer.see_request, request)

    def count_requests(self, flow: Flow[Any]) -> Flow[Any]:
        """A flow with every request of it counted. Not for streams: each step passes here."""
        value: Any = None
        error: BaseException | None = None
        try:
            while True:
                step = flow.send(value) if error is None else flow.throw(error)
                value = error = None
                if type(step) is Open:
                    self.count_request(step.request)
                try:
                    value = yield step
                except AsidesError as problem:
                    error = problem
        except StopIteration as end:
            return end.value
        finally:
            flow.close()

    def reserve(self, call: Call, served: ServedRequest | None, find_partial: Callable[[], Reply | None]) -> Flow[None]:
        """Reserve what a call may use, if the caller has limits. Raises the error for the caller if it may not."""
        if self.use is not None:
            extra = {} if served is None else served.prompt.extra
            yield from self.use.reserve(call, self.request.body, extra, find_partial)

    def note_problem(self, problem: AsidesError) -> None:
        """A target has failed: settle what it may have cost."""
        if self.use is not None:
            self.use.note_problem(problem)

    def settle(self, reply: Reply | None, *, has_failed: bool = False) -> Flow[None]:
        """Settle what a reply used. It is done before the caller gets its end."""
        if self.use is not None:
            yield from self.use.settle(reply, has_failed=has_failed)

    def count_turns(self, turns: Sequence[RestoredTurn]) -> None:
        """Count the earlier turns whose state was looked for, and show them to the observer."""
        found = sum(turn.is_found for turn in turns)
        self.restored += found
        self.missed += len(turns) - found
        if self.observer is not None and turns:
            self._show(self.observer.see_restored, turns)

    def show_asked(self, asked: ServedRequest) -> None:
        """Show what is asked for to the observer."""
        if self.observer is not None:
            self._show(self.observer.see_asked, asked)

    def show_target(self, call: Call, mode: RelayMode, reason: str) -> None:
        """Show a target to the observer."""
        if self.observer is not None:
            self._show(self.observer.see_target, call, mode, reason)

    def show_plan(self, decisions: Sequence[Decision]) -> None:
        """Show the decisions of a plan to the observer."""
        if self.observer is not None:
            self._show(self.observer.see_plan, decisions)

    def show_events(self, events: Sequence[Event]) -> None:
        """Show events to the observer."""
        if self.observer is not None and events:
            self._show(self.observer.see_events, events)

    def _show(self, see: Callable[..., None], *what: object) -> None:
        """Call a method of the observer. If it raises, the observer is dropped."""
        try:
            see(*what)
        except Exception as problem:  # noqa: BLE001 - an observer must not break a reply
            _log.error("the observer of a request failed: %s", type(problem).__name__)
            self.observer = None

    def add_counts(self, outcome: RelayOutcome) -> RelayOutcome:
        """The outcome with what was counted here."""
        return msgspec.structs.replace(outcome, attempts=self.attempts, restored=self.restored, missed=self.missed)


def make_request_id() -> str:
    """A new name for a request."""
    return f"req_{secrets.token_hex(16)}"


def write_codes(notices: Iterable[Notice]) -> str:
    """The value of the notices header: each code once, with the setting it concerns."""
    codes = [f"{notice.code};{notice.setting}" if notice.setting else notice.code for notice in notices]
    clean = [code for code in dict.fromkeys(codes) if code.isascii() and code.isprintable()]
    return ", ".join(clean[:_MOST_NOTICES])[:_MOST_CHARACTERS]
