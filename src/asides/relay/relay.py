"""The relay: answers a caller's request. `Relay(builder, config).begin(request)`."""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from asides.dialects import plain_row
from asides.flows.call import BareCall, CallLike
from asides.flows.steps import Emit, Flow
from asides.providers.provider import Target
from asides.relay.ambiguous_names import refuse_ambiguous_names, refuse_ambiguous_state
from asides.relay.client_errors import explain_to_client
from asides.relay.endpoints import Endpoint, NoEndpoint, find_endpoint
from asides.relay.error_response import MALFORMED, RelayRefusal, refuse_malformed, write_error_response
from asides.relay.known_calls import KnownCalls
from asides.relay.read_request_body import refuse_many
from asides.relay.relay_config import Caller, OptionLayers, RelayConfig
from asides.relay.relay_request import RelayOutcome, RelayRequest, ResponseStart
from asides.relay.relayed_reply import RelayedReply
from asides.relay.state.caller_state import CallerState
from asides.relay.state.relay_keys import RelayKeys
from asides.relay.state.thinking_origins import ThinkingOrigins
from asides.relay.steps import UnconfirmedRecord
from asides.values.errors import AsidesError, ProtocolError

if TYPE_CHECKING:
    from asides.flows.build_call import CallBuilder
    from asides.relay.observer import RelayObserver

_log = logging.getLogger("asides")
_UNWRITABLE = "the provider's reply could not be written in this dialect. Report it, with the log of asides."

__all__ = ["Relay", "RelayConfig", "RelayExchange"]


@lru_cache(maxsize=32)
def find_no_call(dialect: str) -> BareCall:
    """The call of a request that asks no provider."""
    row = plain_row(dialect)
    return BareCall(Target(row, "", row.base_url))


class Relay:
    """Relays requests. It holds no state of a request, so it is safe to use from many threads."""

    def __init__(self, builder: CallBuilder, config: RelayConfig | None = None) -> None:
        self._builder = builder
        config = config or RelayConfig()
        if config.keys is None:
            config = msgspec.structs.replace(config, keys=RelayKeys.generate())
        self._config = config
        self._layers: dict[str, OptionLayers] = {}
        self._known_calls = KnownCalls()
        self._origins = ThinkingOrigins()

    def begin(self, request: RelayRequest, observer: RelayObserver | None = None) -> RelayExchange:
        """Begin a request. Nothing is sent yet."""
        known = self._known_calls, self._origins
        return RelayExchange(request, self._builder, self._config, self._layers, observer, *known)


class RelayExchange:
    """A relayed request in progress. `steps()` is its flow: it emits the head of the response, then its bytes."""

    def __init__(
        self,
        request: RelayRequest,
        builder: CallBuilder,
        config: RelayConfig,
        layers: dict[str, OptionLayers],
        observer: RelayObserver | None = None,
        known_calls: KnownCalls | None = None,
        origins: ThinkingOrigins | None = None,
    ) -> None:
        self._origins = origins
        self._layers = layers
        self._known_calls = known_calls
        self._observer = observer
        self._request = request
        self._builder = builder
        self._config = config
        self._reply: RelayedReply | None = None
        self.call: CallLike = find_no_call(request.dialect or "openai_chat")
        """Placeholder until a target is chosen."""
        self.unconfirmed: list[UnconfirmedRecord] = []
        """Records that are confirmed when the caller has what was emitted last."""

    @property
    def body(self) -> bytes:
        """The body of the request."""
        return self._request.body

    def steps(self) -> Flow[RelayOutcome]:
        """The flow. It raises nothing that a provider, a store or the caller causes: errors are responses."""
        request = self._request
        try:
            endpoint = find_endpoint(request.method, request.path, request.query, request.headers, request.dialect)
        except NoEndpoint as problem:
            caller = Caller(request, Endpoint(problem.dialect, "reply", request.path, {}), self._builder, self._config)
            return (yield from _fail(caller, _refuse_path(request, problem)))
        known = self._known_calls, self._origins
        caller = Caller(request, endpoint, self._builder, self._config, self._layers, self._observer, *known)
        self.unconfirmed = caller.unconfirmed
        return caller.add_counts((yield from self._answer(caller)))

    def _answer(self, caller: Caller) -> Flow[RelayOutcome]:
        """The response to a request, whatever it asks for."""
        reply: RelayedReply | None = None
        error: AsidesError
        try:
            if not caller.config.trusts_callers:
                refuse_many(caller.request.body)
            if caller.request.limits is not None and caller.request.body:
                refuse_ambiguous_names(caller.request.body, caller.dialect)
            elif caller.request.tenant and caller.request.body:
                refuse_ambiguous_state(caller.request.body, caller.dialect)
            if caller.endpoint.action == "reply":
                reply = self._reply = RelayedReply(caller)
                return (yield from reply.steps())
            if caller.request.tenant:
                yield from CallerState(caller).check_account_ids(with_items=True)
            return (yield from _answer_without_reply(caller))
        except AsidesError as problem:
            error = problem
        except MALFORMED as problem:
            if reply is None or not reply.has_begun:
                # A reader, or a rule, that trusted the type of a field.
                _log.debug("a request could not be read: %s", type(problem).__name__)
                error = refuse_malformed()
            else:
                # Whatever a provider sent, the caller gets the end of its response.
                _log.error("a reply could not be written: %s", type(problem).__name__)
                error = ProtocolError(_UNWRITABLE)
                error.__cause__ = problem
        return (yield from _fail(caller, error, reply))

    def open_early(self) -> ResponseStart | None:
        """Send the head of a stream before its provider has answered, for a caller that waits long: later errors
        are sent inside the stream. Another target may still be asked. None if this is no stream, its head has left, or
        its dialect has no ping that could follow.
        """
        return None if self._reply is None else self._reply.open_early()

    def write_ping(self, now: float) -> bytes:
        """A ping in the caller's dialect, to be sent after everything that was emitted; b"" if the dialect has
        none, or if an event is not whole yet. `now`: in seconds since 1970.
        """
        return b"" if self._reply is None else self._reply.write_ping(now)

    def write_last_error(self, error: AsidesError) -> bytes:
        """The end of a stream that has begun and cannot go on, in the caller's dialect."""
        if self._reply is None:
            return b""
        return self._reply.write_last_error(write_error_response(error, self._reply.dialect), is_cut=True)


def _answer_without_reply(caller: Caller) -> Flow[RelayOutcome]:
    """The response to a request that asks for no reply."""
    match caller.endpoint.action:
        case "count_tokens":
            from asides.relay.answers.token_counts import count_tokens

            return count_tokens(caller)
        case "compact":
            from asides.relay.answers.compaction_answers import answer_compaction

            return answer_compaction(caller)
        case "pass_through":
            from asides.relay.answers.passed_through import pass_through

            return pass_through(caller)
        case "show_response" | "delete_response" | "cancel_response" | "list_input":
            from asides.relay.answers.stored_responses import answer_stored

            return answer_stored(caller)
        case _:
            from asides.relay.answers.model_answers import answer_about_models

            return answer_about_models(caller)


def _refuse_path(request: RelayRequest, problem: NoEndpoint) -> RelayRefusal:
    path = request.path[:200]
    if "websocket" in request.headers.get("upgrade", "").lower():
        # With this status a client falls back to HTTP immediately; others cost retries (Codex 0.166, 2026-11-15).
        message = "this relay does not support WebSockets. Send a POST over HTTP."
        return RelayRefusal(message, status=426, headers={"upgrade": "HTTP/1.1"})
    if problem.allowed:
        allowed = ", ".join(problem.allowed)
        return RelayRefusal(f"{path} takes {allowed}, not {request.method}.", status=405, headers={"allow": allowed})
    return RelayRefusal(
        f"unknown path {path}. Use chat completions, responses, messages, generateContent, converse, or the "
        "chat of Cohere or Ollama.",
        status=404,
        code="unknown_url",
    )


def _fail(caller: Caller, error: AsidesError, reply: RelayedReply | None = None) -> Flow[RelayOutcome]:
    """Send an error to the caller: as a response, or inside a started stream."""
    caller.note_problem(error)
    yield from caller.settle(error.partial, has_failed=True)
    told = error if caller.config.trusts_callers else explain_to_client(error)
    response = write_error_response(told, caller.dialect)
    mode = "own" if reply is None else reply.mode
    model = "" if reply is None else reply.model
    reason = "" if reply is None else reply.reason
    status = response.status
    if not caller.started and not caller.opened_early:
        yield Emit([*caller.start(status, response.headers, caller.notices), response.body])
    elif reply is not None:
        status = reply.status or 200
        if last := reply.write_last_error(response):
            yield Emit([last])
    notices = tuple(caller.notices)
    asked = "" if reply is None else reply.asked
    ended = (status, mode, reason, model, error.partial, notices, error)
    return RelayOutcome(*ended, asked=asked, passed=reply is not None and reply.passes)
