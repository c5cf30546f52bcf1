"""A request for a reply: read it, route it, put its state back, and ask its targets in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from asides.dialects import find_facts
from asides.dialects.dialect import ServedRequest
from asides.flows.call import NO_STATE, Call
from asides.flows.fallback import ExchangeInOrder
from asides.flows.steps import Allow, Emit, Flow, Now, UseCall
from asides.providers.endpoint import RESPONSES
from asides.relay.answers.background_responses import FIELD as BACKGROUND
from asides.relay.answers.background_responses import refuse_foreground
from asides.relay.answers.stored_responses import (
    can_store,
    join_messages,
    read_previous,
    refuse_conversation,
    refuse_previous,
    store_response,
)
from asides.relay.compacted_exchange import CompactedExchange, Store
from asides.relay.endpoints import (
    PLAIN_DIALECT,
    MakeWriter,
    ReadRequest,
    find_reply_form,
    is_load_request,
    write_load_reply,
)
from asides.relay.error_response import (
    ErrorResponse,
    RelayRefusal,
    write_stream_error,
)
from asides.relay.find_calls import find_calls
from asides.relay.find_changes import Asked, Changes, find_changes
from asides.relay.forward import build_forward_request
from asides.relay.pings import Pings
from asides.relay.read_request_body import read_request, read_shallow, refuse_messages
from asides.relay.relay_config import Caller
from asides.relay.relay_request import RelayMode, RelayOutcome, ResponseStart
from asides.relay.relayed_exchange import Claim, RelayedExchange
from asides.relay.request_options import FIELD, RequestOptions, read_request_options
from asides.relay.state.caller_state import CallerState
from asides.relay.state.clean_history import holds_envelopes
from asides.relay.state.response_owners import make_owner_record, read_owner
from asides.relay.state.sealed_summary import has_foreign_compaction, split_trigger, takes_compactions
from asides.relay.translate.visible_events import asks_for_thinking
from asides.relay.written_exchange import open_writer
from asides.values.errors import ConfigError, NotFound
from asides.values.messages import Prompt, ProviderState
from asides.values.notices import Notice
from asides.values.reply import Reply
from asides.values.visibility import Visibility

_MAX_MODEL_NAME = 1000
_NOT_UNIQUE = "the members of the body are not unique"
_REFUSED = "its provider refused it as it was"

AnyExchange: TypeAlias = RelayedExchange | CompactedExchange


class RelayedReply:
    """One request for a reply in progress."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._state = CallerState(caller)
        self._exchange: AnyExchange | None = None
        self._changes: dict[int, Changes] = {}
        """By the id of a target, what changes for it."""
        self._pings: Pings | None = None
        """Writes pings; None for a whole reply."""
        self._compacts = False
        """Whether the request asks for a compaction."""
        self._has_compaction = False
        """Whether it holds one that only the provider which made it can read."""
        self._shows_thinking = True
        """Whether the reply has thinking where it is written here."""
        self._hides_usage = False
        """Whether the key is metered, and the provider would not report usage."""
        self.mode: RelayMode = "own"
        self.reason = ""
        self.model = ""
        """The target that was asked last, as provider:model."""
        self.asked = ""  # the model as the request named it

    @property
    def dialect(self) -> str:
        """The dialect of the response."""
        return self._caller.dialect

    @property
    def has_begun(self) -> bool:
        """Whether a provider is asked."""
        return self._exchange is not None

    @property
    def status(self) -> int:
        """The status that the caller got; 0 before that."""
        return 0 if self._exchange is None else self._exchange.status

    @property
    def passes(self) -> bool:
        """Whether the bytes of the provider are the reply."""
        return isinstance(self._exchange, RelayedExchange) and self._exchange.passes

    def open_early(self) -> ResponseStart | None:
        """The head of a stream before its provider has answered; None where nothing could follow it."""
        return None if self._pings is None else self._pings.open_early()

    def write_ping(self, now: float) -> bytes:
        """A ping, to be sent after everything that was emitted; b"" if none can be sent now."""
        return b"" if self._pings is None else self._pings.write(now, self._exchange)

    def write_last_error(self, response: ErrorResponse, *, is_cut: bool = False) -> bytes:
        """The end of a stream that has begun and failed, in the caller's dialect; b"" if it has already been sent.
        `is_cut`: the stream broke off before its terminal event.
        """
        exchange, caller = self._exchange, self._caller
        written = None if exchange is None else exchange.write_last_error(response)
        if written is not None:
            return written
        # After an early head, the error has not been sent yet.
        is_cut = is_cut or (caller.opened_early and not caller.started)
        is_cut = is_cut or (isinstance(exchange, RelayedExchange) and exchange.is_cut and caller.config.reports_cuts)
        if is_cut:
            writer = self._find_form()[1](model="", stream=True, include_usage=False)
            written = write_stream_error(writer, response)
            # The event that broke off must not swallow this one.
            return b"\n\n" + written if written and writer.content_type == "text/event-stream" else written
        return b""

    def steps(self) -> Flow[RelayOutcome]:
        """Run the flow. The caller turns exceptions into responses."""
        caller = self._caller
        read, make_writer = self._find_form()
        served, unreadable = read_request(read, caller)
        given = served.prompt.extra.pop(FIELD, None) if served else None
        own = read_request_options(given, caller.config, caller.builder.visibility)
        if served is not None and is_load_request(served, caller.dialect):
            return (yield from _answer_load(caller, served, make_writer))
        if unreadable is not None and caller.request.limits is not None:
            raise unreadable  # Its model and cost are unknown.
        asked = served or read_shallow(caller)
        if len(asked.model) > _MAX_MODEL_NAME:
            raise RelayRefusal(f"the name of the model has more than {_MAX_MODEL_NAME} characters.", param="model")
        self.asked = asked.model
        caller.show_asked(asked)
        self._shows_thinking = asks_for_thinking(caller.dialect, asked.prompt, own)
        is_background = bool(asked.prompt.extra.get(BACKGROUND)) and caller.dialect == RESPONSES
        if caller.request.background_id:
            is_background = False
            extra = {**asked.prompt.extra, BACKGROUND: False}
            asked = msgspec.structs.replace(asked, prompt=msgspec.structs.replace(asked.prompt, extra=extra))
        state = asked.prompt.state
        is_counted = caller.use is not None and caller.use.counts_tokens
        if asked.stream:
            self._pings = Pings(caller, make_writer, asked.model)
            # Streams of this dialect have counts only if the request wants them. Thinking is hidden, and paid for.
            self._hides_usage = is_counted and caller.dialect == PLAIN_DIALECT and not asked.include_usage
        self._state.wants_storing = state.store is not False
        if state.previous_response_id is not None:
            asked = yield from self._expand(asked, state.previous_response_id)
        caller.now = yield Now()
        found = find_calls(caller, asked, own)
        call, options = found.call, found.options
        calls: Sequence[Call] = (call,)
        if call.fallbacks:
            calls = (msgspec.structs.replace(call, fallbacks=()), *call.fallbacks)
        calls = tuple(self._keep_state(each, state, options) for each in calls)
        if served is not None:
            asked = yield from self._state.restore(asked, [each.target for each in calls])
            calls = tuple(_replace_messages(each, asked.prompt) for each in calls)
        if caller.dialect == RESPONSES:
            self._compacts = split_trigger(asked.prompt.messages)[1]
            self._has_compaction = has_foreign_compaction(asked.prompt.messages)
        self._state.is_changed = self._state.is_changed or holds_envelopes(caller.request.body)
        for each in calls:
            # The others of a list get what was written for the first.
            is_renamed = found.renames or each is not calls[0]
            self._changes[id(each.target)] = self._find_changes(each, options, asked.model if is_renamed else "")
        # What a key uses is counted while its response runs, so it does not run at the provider.
        if is_background and (is_counted or any(self._changes[id(each.target)] != Changes() for each in calls)):
            refuse_foreground(caller, self._state, asked, compacts=self._compacts)
        if caller.request.tenant:
            yield from self._check_owner(state, calls)
        if unreadable is not None or self._state.has_unknown_previous or state.conversation is not None:
            calls = self._keep_passing(calls, unreadable, _refuse_state(state, caller.dialect))
        first = calls[0]
        yield Allow(first.policy.timeout.total)

        def start(one: Call, notices: tuple[Notice, ...]) -> AnyExchange:
            return self._start(one, asked, options, make_writer, notices, is_last=one is calls[-1])

        reply: Reply
        if len(calls) > 1:
            in_order = ExchangeInOrder(msgspec.structs.replace(first, fallbacks=tuple(calls[1:])), start)
            reply = yield from in_order.steps()
        else:
            yield UseCall(first)
            other = caller.other_call
            try:
                reply = yield from start(first, ()).steps()
            except NotFound:
                if other is None or caller.started:
                    raise
                reply = yield from self._ask_other(_replace_messages(other, asked.prompt), first, options, start)
        notices = (*caller.notices, *reply.warnings)
        ended = (self.status, self.mode, self.reason, self.model, reply, notices)
        return RelayOutcome(*ended, asked=self.asked, passed=self.passes)

    def _ask_other(
        self,
        other: Call,
        first: Call,
        options: RequestOptions,
        start: Callable[[Call, tuple[Notice, ...]], AnyExchange],
    ) -> Flow[Reply]:
        """Ask at the other endpoint of a server that does not know the path of the first."""
        caller = self._caller
        caller.other_call = None
        self._changes[id(other.target)] = self._find_changes(other, options, "")
        yield UseCall(other)
        reply: Reply = yield from start(other, ()).steps()
        if caller.known_calls is not None:
            caller.known_calls.note_no_responses(first.target.base_url)
        return reply

    def _keep_state(self, call: Call, state: ProviderState, options: RequestOptions) -> Call:
        """The call with the stored state of the request, where its provider keeps the conversation."""
        target, caller = call.target, self._caller
        is_own = target.dialect == caller.dialect and target.quirks.transport == "direct"
        if not is_own or state == NO_STATE or can_store(caller, self._state):
            return call
        # Thinking that the caller may not see could be read from what the provider stores.
        is_seen = self._state.find_visibility(options.visibility).allows(caller.config.sink, target.rule.kind)
        store = state.store if is_seen else False
        kept = msgspec.structs.replace(call.prompt.state, store=store, previous_response_id=state.previous_response_id)
        return msgspec.structs.replace(call, prompt=msgspec.structs.replace(call.prompt, state=kept))

    def _keep_passing(
        self, calls: Sequence[Call], unreadable: ConfigError | None, problem: ConfigError
    ) -> tuple[Call, ...]:
        """The calls that can continue what their provider has stored: nothing changes for them, or the plan keeps the
        state. Raises the problem if the first is not one of them.
        """

        def fits(call: Call) -> bool:
            is_planned = unreadable is None and call.prompt.state.previous_response_id is not None
            return is_planned or self._changes[id(call.target)] == Changes()

        if not fits(calls[0]):
            raise unreadable or problem
        return tuple(filter(fits, calls))

    def _expand(self, served: ServedRequest, previous: str) -> Flow[ServedRequest]:
        """Put the conversation before the input, if the relay stored it."""
        records = (yield from read_previous(self._state.keys, previous)) if self._state.has_store else None
        if records is None:
            self._state.has_unknown_previous = True
            return served
        messages = join_messages(records)
        if not self._caller.config.trusts_callers:
            refuse_messages(len(messages) + len(served.prompt.messages))
        self._state.stored_count = len(messages)
        self._state.ancestors = tuple(record.id for record in records)
        self._state.is_changed = True
        prompt = msgspec.structs.replace(served.prompt, messages=(*messages, *served.prompt.messages))
        return msgspec.structs.replace(served, prompt=prompt)

    def _check_owner(self, state: ProviderState, calls: Sequence[Call]) -> Flow[None]:
        """Raise for a conversation, or another id of the provider's account, that is not the caller's own, as for one
        that does not exist.
        """
        with_items = any(call.target.dialect == RESPONSES for call in calls)
        yield from self._state.check_account_ids(with_items=with_items)
        if state.conversation is not None:
            # None is made through a relay, so that none is known to be a tenant's.
            raise refuse_conversation(state.conversation)
        if self._state.has_unknown_previous and state.previous_response_id is not None:
            previous = state.previous_response_id
            owner = (yield from read_owner(self._state.keys, previous)) if self._state.has_store else None
            if owner is None or not all(owner.is_at(call.target) for call in calls):
                raise refuse_previous(previous, self._caller.dialect)

    def _find_form(self) -> tuple[ReadRequest, MakeWriter]:
        endpoint = self._caller.endpoint
        return find_reply_form(endpoint.dialect, endpoint.path, endpoint.query)

    def _find_changes(self, call: Call, options: RequestOptions, model: str) -> Changes:
        """What changes for a target. `model`: the model in the request, if it differs."""
        caller, state = self._caller, self._state
        asked = Asked(
            caller.dialect,
            state.find_visibility(options.visibility),
            caller.config.sink,
            may_pass=caller.config.forwards and options.may_forward and not caller.request.background_id,
            has_options=options.changes_prompt,
            has_state=state.is_changed,
            is_labelled=state.is_labelled,
            traits=state.traits,
            has_developer=b'"developer"' in caller.request.body,
            compacts=self._compacts,
            has_compaction=self._has_compaction,
            hides_usage=self._hides_usage,
            shows_thinking=self._shows_thinking,
            is_stored=can_store(caller, state),
            thinking_field=caller.config.thinking_field,
            carries=state.carries_all,
        )
        return find_changes(call, asked, model=model, known=caller.known_calls)

    def _start(
        self,
        call: Call,
        served: ServedRequest,
        options: RequestOptions,
        make_writer: MakeWriter,
        notices: tuple[Notice, ...],
        *,
        is_last: bool,
    ) -> AnyExchange:
        caller, state, changes = self._caller, self._state, self._changes[id(call.target)]
        self.model = call.model
        can_pass = not changes.request or self._may_keep_bytes(call, options)
        given = build_forward_request(call, caller, served.stream, (FIELD,)) if can_pass else None
        verbatim = None if changes.request else given
        if verbatim is None and not changes.request:
            # Such a body is read differently by different readers: nothing of it passes.
            changes = Changes(_NOT_UNIQUE, changes.reply or _NOT_UNIQUE)
        self._choose_target(call, changes)
        visibility = state.find_visibility(options.visibility)
        if self._compacts and not takes_compactions(call.target):
            writer = open_writer(served, caller.dialect, call.target, make_writer, foreign=False)
            store = self._store_compacted(served, visibility)
            return self._begin(CompactedExchange(call, caller, served, state, writer, notices, store=store))
        has_messages, at_provider = bool(served.prompt.messages), served.prompt.state.conversation is not None
        return self._begin(
            RelayedExchange(
                call,
                caller,
                served,
                state,
                make_writer,
                changes,
                notices,
                visibility=visibility,
                verbatim=verbatim,
                given=given,
                may_plan=has_messages and not at_provider and (bool(changes.request) or not state.has_unknown_previous),
                shows_thinking=self._shows_thinking,
                is_last=is_last,
                has_other=caller.other_call is not None,
                claim=self._claim(call),
                on_repair=lambda: self._choose_target(
                    call, Changes("its provider refused it as it was", changes.reply)
                ),
                on_unchanged=lambda: self._choose_target(call, Changes("", changes.reply)),
            )
        )

    def _may_keep_bytes(self, call: Call, options: RequestOptions) -> bool:
        """Whether a planned request may keep the caller's bytes where the plan changes nothing."""
        target = call.target
        is_own = target.dialect == self._caller.dialect and target.quirks.transport == "direct"
        return is_own and self._caller.config.forwards and options.may_forward

    def _choose_target(self, call: Call, changes: Changes) -> None:
        self.mode = "forward" if changes == Changes() else "translate"
        self.reason = changes.request or changes.reply or f"{call.target.provider.name} speaks this dialect"
        self._caller.show_target(call, self.mode, self.reason)

    def _begin(self, exchange: AnyExchange) -> AnyExchange:
        self._exchange = exchange
        return exchange

    def _claim(self, call: Call) -> Claim | None:
        """Record which tenant owns a response that the provider stores."""
        state = self._state
        is_stored = find_facts(self._caller.dialect).stored_as
        if not is_stored or not state.has_store or not state.wants_storing:
            return None

        def claim(response_id: str) -> Flow[None]:
            yield from state.write(make_owner_record(state.keys, response_id, call.target))

        return claim

    def _store_compacted(self, served: ServedRequest, visibility: Visibility) -> Store | None:
        """How the response of a compaction is stored: a continuation starts from the summary alone."""
        state = self._state
        if not can_store(self._caller, state):
            return None
        state.ancestors, state.history, state.stored_count = (), (), 0
        return lambda reply, writer: store_response(
            self._caller, state, served, reply, writer, {}, visibility=visibility
        )


def _answer_load(caller: Caller, served: ServedRequest, make_writer: MakeWriter) -> Flow[RelayOutcome]:
    """Answer a request that loads a model: here there is nothing to load."""
    content_type, body = write_load_reply(served, make_writer)
    yield Emit([*caller.start(200, {"content-type": content_type}), body])
    return RelayOutcome(200, "own", "a request without a question")


def _refuse_state(state: ProviderState, dialect: str) -> ConfigError:
    if state.previous_response_id is not None:
        return refuse_previous(state.previous_response_id, dialect)
    return RelayRefusal(
        "conversation cannot be translated for this model: it is stored at the provider that made it. Send the "
        "messages, or previous_response_id.",
        param="conversation",
    )


def _replace_messages(call: Call, prompt: Prompt) -> Call:
    """The call with the messages of the restored prompt."""
    if call.prompt.messages == prompt.messages:
        return call
    return msgspec.structs.replace(call, prompt=msgspec.structs.replace(call.prompt, messages=prompt.messages))
