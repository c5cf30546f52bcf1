"""One request to one target: an exchange that changes request and reply only where necessary.

An unchanged request goes out in the caller's bytes, and an unchanged reply comes back in the provider's while the
decoder watches, for usage, thinking and the record of the turn. The two directions are independent (find_changes).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from asides.dialects.dialect import HttpRequest, ServedRequest
from asides.flows.call import Call, SentRequest, encode_request
from asides.flows.exchange import Exchange
from asides.flows.retry import ERROR_BODY_LIMIT
from asides.flows.steps import Emit, Flow, Head, Open, Read
from asides.history.plan import OnConflict
from asides.providers.credentials import collect_secrets
from asides.providers.endpoint import RESPONSES
from asides.providers.provider import Target
from asides.providers.table import is_maker
from asides.relay.answers.stored_responses import can_store, store_response
from asides.relay.endpoints import MakeWriter
from asides.relay.error_response import ErrorResponse
from asides.relay.find_changes import Changes
from asides.relay.forward import add_caller_headers, select_response_headers
from asides.relay.relay_config import STREAM_HEADERS, Caller
from asides.relay.splice_body import keep_bytes
from asides.relay.state.caller_state import CallerState
from asides.relay.state.carry_state import StateCarrier
from asides.relay.translate.call_ids import CallerIds
from asides.relay.translate.hosted_tools import Report
from asides.relay.translate.tool_names import TOOL_NOT_SENT
from asides.relay.translate.translate_fields import fit_prompt
from asides.relay.translate.visible_events import JsonOnly, NoThinking, hide_thinking
from asides.relay.whole_events import EventSplitter, find_splitter
from asides.relay.written_exchange import WrittenExchange, open_writer
from asides.values.errors import AsidesError, AuthError, ConfigError, NotFound, TransportError
from asides.values.events import (
    CommentaryDelta,
    Event,
    PartArrived,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    TextDelta,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    Warned,
)
from asides.values.messages import Prompt
from asides.values.notices import Notice
from asides.values.parts import Text
from asides.values.redaction import build_redactor, redact_bytes
from asides.values.reply import Reply
from asides.values.visibility import Visibility

# A reply that begins with one of these, and not with a thought, begins as its client expects.
_WORDS = (
    TextDelta,
    ToolCallDelta,
    ThinkingDelta,
    ThoughtSealed,
    CommentaryDelta,
    RefusalDelta,
    PartArrived,
    ReplyEnded,
)
_INSTRUCTED = ("schema_instructed", "output_instructed")
# After its last event, or an error in its stream, a server ends the body or closes the connection; some do neither.
_READ_THE_REST = Read(patience=0.5)
_MOST_AFTER_ERROR = 16 * 1024 * 1024

Claim = Callable[[str], Flow[None]]
"""Records the owner of a reply that its provider stores, by the id of the reply."""


def _encode_like(given: bytes, on_conflict: OnConflict, prompt: Prompt, target: Target) -> SentRequest:
    """Plan and encode a prompt. What says the same as in the caller's request keeps the caller's bytes."""
    sent = encode_request(prompt, target, on_conflict=on_conflict)
    body = keep_bytes(given, sent.request.body, target.quirks.refused_fields)
    return msgspec.structs.replace(sent, request=msgspec.structs.replace(sent.request, body=body))


def _holds_thought(events: Sequence[Event]) -> bool:
    """Whether there is a thought, also one without words. Seals of texts and calls do not count."""
    others = {event.block for event in events if isinstance(event, (TextDelta, ToolCallDelta, PartArrived))}
    return any(
        isinstance(event, ThinkingDelta) or (isinstance(event, ThoughtSealed) and event.block not in others)
        for event in events
    )


class _Response:
    """The response of a provider while it arrives: the bytes that have not left yet."""

    __slots__ = ("head", "is_verbatim", "pieces")

    def __init__(self, head: Head, *, is_verbatim: bool) -> None:
        self.head = head
        self.is_verbatim = is_verbatim
        """Whether it answers the caller's own bytes."""
        self.pieces: list[bytes] = []

    @property
    def is_refused(self) -> bool:
        """Whether it refuses the caller's own bytes."""
        return self.is_verbatim and not 200 <= self.head.status < 300


class RelayedExchange(WrittenExchange):
    """A relayed request to one target in progress."""

    def __init__(
        self,
        call: Call,
        caller: Caller,
        served: ServedRequest,
        state: CallerState,
        make_writer: MakeWriter,
        changes: Changes,
        notices: tuple[Notice, ...] = (),
        *,
        visibility: Visibility,
        verbatim: HttpRequest | None = None,
        given: HttpRequest | None = None,
        may_plan: bool = True,
        shows_thinking: bool = True,
        is_last: bool = True,
        has_other: bool = False,
        claim: Claim | None = None,
        on_repair: Callable[[], None] | None = None,
        on_unchanged: Callable[[], None] | None = None,
    ) -> None:
        """`served`: the request, with the state of earlier turns. `notices`: those of targets that failed before.
        `verbatim`: the request in the caller's bytes, where nothing changes in it. `given`: the same, where a plan
        decides what changes. `may_plan`: False if it cannot be
        planned, since it was not read or continues what its provider has stored. `shows_thinking`: whether the caller
        asked for thinking. `is_last`: no other target follows. `has_other`: the same server may have it at another
        endpoint. `claim`: called with the id of a reply before the caller knows it. `on_repair`: called when a planned
        request follows the refused bytes of the caller. `on_unchanged`: called when the plan changed nothing.
        """
        self._served = served
        self._state = state
        self._make_writer = make_writer
        self._verbatim = verbatim
        self._is_last = is_last
        self._has_other = has_other
        self._claim = claim
        self._claim_later = claim
        self._on_repair = on_repair
        self._given = given
        self._planned: tuple[HttpRequest, HttpRequest] | None = None
        """The last planned request, without the headers of the caller and with them."""
        self._on_unchanged = on_unchanged
        self._shows_thinking = shows_thinking
        self._visibility = visibility
        asked = msgspec.structs.replace(served, prompt=call.prompt)
        quirks = call.target.quirks
        kept = call.prompt.state
        self._is_kept = kept.store or (kept.store is None and kept.previous_response_id is not None)
        """Whether the provider stores the reply to a planned request."""
        self._is_own_dialect = call.target.dialect == caller.dialect and quirks.transport == "direct"
        self._passes = not changes.reply
        """Whether the provider's bytes are the reply."""
        may_think = call.target.thinks(call.prompt.thinking) is not False
        self._waits_for_words = self._passes and not shows_thinking and may_think
        """Whether unrequested thinking may come first; then the reply is rewritten."""
        self._waiting: list[Event] = []
        changed: tuple[Notice, ...] = ()
        prompt = call.prompt
        try:
            prompt, changed = fit_prompt(asked, caller.dialect, call.target, is_passed=self._passes)
        except ConfigError:
            if verbatim is None or not self._passes:
                raise
            may_plan = False
        self._is_instructed = any(notice.code in _INSTRUCTED for notice in changed)
        """Whether the answer may have words around the JSON that the caller asked for."""
        if verbatim is not None:
            changed = ()  # That would be changed by a plan.
        elif self._is_instructed:
            self._passes = False
        all_notices = (*notices, *call.notices, *changed)
        fitted = msgspec.structs.replace(call, prompt=prompt, notices=all_notices, expected=None)
        encode = None if given is None else partial(_encode_like, given.body, call.policy.on_conflict)
        super().__init__(
            caller,
            fitted,
            Exchange(
                fitted,
                verbatim=verbatim,
                may_plan=may_plan,
                # Clients of a maker's own API retry by its rules.
                may_retry=not is_maker(call.target.provider, caller.dialect),
                continues=not self._passes,
                encode=encode,
            ),
        )
        self._asked = asked
        self._report = self._find_report(changed)
        self._ids = CallerIds()
        self._carrier: StateCarrier | None = None
        self._no_thinking: NoThinking | None = None
        self._hides = False
        self._json_only: JsonOnly | None = None
        if not self._passes:
            self._prepare_writing()
        self._response: _Response | None = None
        """What the provider has sent since the last request."""
        self._refused: _Response | None = None
        """The refusal of the caller's own bytes."""
        self._was_refused = False
        """Whether the caller has that refusal as its response."""
        self._splitter: EventSplitter | None = None
        """Finds whole events in a reply that passes; None before it has begun."""
        self._has_begun = False
        """Whether something was written."""
        self._is_over = False
        """Whether the caller has the last event."""
        self.is_cut = False
        """Whether a stream that passes has begun and broke off, so that an error has to end it."""
        self._known: Reply | None = None
        """The reply up to the current batch, once it was asked for."""

    @property
    def passes(self) -> bool:
        """Whether the provider's bytes are the reply."""
        return self._passes

    @property
    def is_between_events(self) -> bool:
        """Whether the caller has whole events so far, and more may follow."""
        if not self._passes:
            return not self._is_over  # always whole events
        return not self._exchange.is_complete and (self._splitter is None or self._splitter.is_between)

    def write_last_error(self, response: ErrorResponse) -> bytes | None:
        """The error that ends a stream which has begun; None if the provider's bytes are the stream."""
        if self._was_refused:
            return b""
        return None if self._passes else super().write_last_error(response)

    def steps(self, began: float | None = None) -> Flow[Reply]:
        """The flow: it emits the head of the response and its bytes. If the caller's bytes were refused, and no other
        target follows, that refusal is the response.
        """
        caller = self._caller
        yield from caller.reserve(self._call, self._served, lambda: self.partial)
        flow = self._exchange.steps(began)
        send = flow.send
        value: Any = None
        error: BaseException | None = None
        try:
            while True:
                step = send(value) if error is None else flow.throw(error)
                value = error = None
                if type(step) is Emit:
                    self._known = None
                    yield from self._pass(step.events) if self._passes else self._write(step.events)
                    continue
                if type(step) is Open:
                    if self._exchange.is_planned and self._is_own_dialect:
                        step = Open(self._add_headers(step.request))
                    self._begin_request(step.request)
                elif type(step) is Read and self._has_more():
                    # The bytes between events: pings, comments, and what we do not know.
                    yield from self._send_whole_events()
                try:
                    value = yield step
                except TransportError as problem:
                    caller.note_problem(problem)
                    error = problem
                    continue
                if type(step) is Read:
                    if value and (response := self._response) is not None and (self._passes or response.is_refused):
                        response.pieces.append(value)
                elif type(step) is Open:
                    self._begin_response(value)
        except StopIteration as end:
            reply: Reply = end.value
            return reply
        except AsidesError as problem:
            caller.note_problem(problem)
            yield from self._pass_failure(problem)
            raise
        finally:
            flow.close()

    # --- the request --------------------------------------------------------------------------------------------------

    def _add_headers(self, planned: HttpRequest) -> HttpRequest:
        """The planned request with the headers of the caller: the same object each time it is sent."""
        if self._planned is None or self._planned[0] is not planned:
            self._planned = (planned, add_caller_headers(planned, self._caller))
        return self._planned[1]

    def _begin_request(self, request: HttpRequest) -> None:
        """Count a request that leaves, and show what was decided for it."""
        caller = self._caller
        if self._verbatim is not None and self._exchange.is_planned and self._refused is None:
            self._refused = self._response
            if self._on_repair is not None:
                self._on_repair()
            must_write = self._is_instructed or not self._shows_thinking or can_store(caller, self._state)
            if self._passes and must_write:
                self._passes = False
                self._prepare_writing()
        self._response = None
        if self._exchange.is_planned:
            if self._given is not None and request.body is self._given.body and self._on_unchanged is not None:
                self._on_unchanged()
            caller.show_plan(self._exchange.decisions)
        caller.count_request(request)

    def _begin_response(self, head: Head) -> None:
        self._response = _Response(head, is_verbatim=not self._exchange.is_planned)
        if self._passes:
            self.status = head.status
            self._splitter = find_splitter(head.headers.get("content-type", "")) if self._served.stream else None
        if not self._passes:
            # A flow has no clock; the head of the response has the time.
            self._writer.created = int(head.received)

    # --- a reply that passes ------------------------------------------------------------------------------------------

    def _has_more(self) -> bool:
        """Whether bytes have come that may leave before the next event."""
        response = self._response
        return (
            self._passes
            and not self._waits_for_words
            and self._splitter is not None
            and response is not None
            and bool(response.pieces)
            and self._exchange.emitted
            and not self._exchange.is_complete
        )

    def _pass(self, events: list[Event]) -> Flow[None]:
        """Hand the provider's bytes to the caller. The last ones leave after the record of the turn."""
        caller = self._caller
        if self._waits_for_words and events:
            events = self._waiting = [*self._waiting, *events]
            if not any(isinstance(event, _WORDS) for event in events):
                return
            self._waits_for_words, self._waiting = False, []
            if _holds_thought(events):
                self._passes = False
                self._prepare_writing()
                self._writer.created = 0 if self._response is None else int(self._response.head.received)
                yield from self._write(events)
                return
        caller.show_events(events)
        if self._claim is not None:
            yield from self._claim_reply(events)
        if events and isinstance(events[-1], ReplyEnded):
            yield from self._finish()
            yield from self._send_all(events)
        elif self._splitter is not None and not self._exchange.is_complete:
            yield from self._send_whole_events(events)

    def _claim_reply(self, events: list[Event]) -> Flow[None]:
        """Record the owner once: the id alone is enough to read a stored reply."""
        started = next((event for event in events if isinstance(event, ReplyStarted)), None)
        response = self._response
        is_there = response is not None and (response.is_verbatim or self._is_kept)
        if started is not None and started.id and is_there:
            claim, self._claim = self._claim, None
            if claim is not None:
                yield from claim(started.id)

    def _send_whole_events(self, events: Sequence[Event] = ()) -> Flow[None]:
        response, splitter = self._response, self._splitter
        if response is None or splitter is None:
            return
        pieces = response.pieces
        whole = splitter.feed(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        pieces.clear()
        if whole:
            yield Emit([whole] if self._caller.started else [*self._start_passing(events), whole])

    def _send_all(self, events: Sequence[Event] = ()) -> Flow[None]:
        """Send what is left, whole or not."""
        response, splitter = self._response, self._splitter
        if response is None:
            return
        body, started = b"".join(response.pieces), self._caller.started
        response.pieces.clear()
        if splitter is not None:
            body = splitter.feed(body) + splitter.flush()
        if body or not started:
            start = [] if started else self._start_passing(events)
            yield Emit([*start, body] if body else start)

    def _start_passing(self, events: Sequence[Event]) -> list[Any]:
        """The head of a reply that passes."""
        response = self._response
        headers = {} if response is None else select_response_headers(response.head.headers)
        if self._splitter is not None:
            headers |= STREAM_HEADERS
        return [*self._caller.start(self.status, headers, self._list_notices(events))]

    def _pass_failure(self, problem: AsidesError) -> Flow[None]:
        """Hand what a provider sent instead of a whole reply to the caller, where no other target follows."""
        caller = self._caller
        refused = self._refused or self._response
        if refused is not None and refused.is_refused and not caller.started:
            yield from self._return_refusal(refused, problem)
            return
        if not self._passes or self._response is None or not (self._is_last or caller.started):
            return
        if isinstance(problem, TransportError):
            self.is_cut = caller.started
            if not caller.started or caller.config.reports_cuts:
                return
        elif self._splitter is not None:
            yield from self._read_on(self._response)
        yield from caller.settle(self.partial, has_failed=True)
        yield from self._send_all()

    def _read_on(self, response: _Response) -> Flow[None]:
        """Read the rest of a stream after its error, or of an error that is larger than what explains it."""
        size = 0
        try:
            while size < _MOST_AFTER_ERROR and (data := (yield _READ_THE_REST)):
                response.pieces.append(data)
                size += len(data)
        except TransportError:
            pass

    def _return_refusal(self, response: _Response, problem: AsidesError) -> Flow[None]:
        """Hand the refusal of the caller's own bytes to the caller, unless it concerns another party's key."""
        caller, status = self._caller, response.head.status
        yield from caller.settle(None, has_failed=True)
        is_own = isinstance(problem, AuthError) and not caller.config.trusts_callers
        is_own = is_own or (self._has_other and isinstance(problem, NotFound))
        if not self._is_last or not 400 <= status < 600 or caller.opened_early or is_own:
            return
        if response is self._response and sum(map(len, response.pieces)) >= ERROR_BODY_LIMIT:
            yield from self._read_on(response)
        self.status, self._was_refused = status, True
        redact = build_redactor(collect_secrets(self._call.target, self._call.key))
        headers = select_response_headers(response.head.headers, redact)
        start = caller.start(status, headers, self._call.notices)
        body = redact_bytes(b"".join(response.pieces), redact)
        yield Emit([*start, body] if body else [*start])

    # --- a reply that is written --------------------------------------------------------------------------------------

    def _prepare_writing(self) -> None:
        caller = self._caller
        # Echo previous_response_id; the provider never sees it.
        with_state = msgspec.structs.replace(self._asked.prompt, state=self._served.prompt.state)
        repeated = msgspec.structs.replace(self._asked, prompt=with_state)
        writer: Any = open_writer(repeated, caller.dialect, self._call.target, self._make_writer)
        if hasattr(writer, "use_thinking_field"):
            field = caller.config.thinking_field
            # Hosts with details write the text beside them under this name.
            writer.use_thinking_field("reasoning" if field == "reasoning_details" else field)
        if caller.request.background_id:
            writer.use_reply_id(caller.request.background_id)
        self._writer = writer
        self._carrier = self._state.make_carrier(hides=not self._shows_thinking)
        self._no_thinking = None if self._shows_thinking else NoThinking()
        self._hides = not all(self._visibility.allows(caller.config.sink, kind) for kind in ("raw", "summary"))
        self._json_only = JsonOnly() if self._is_instructed else None

    def _write(self, events: list[Event]) -> Flow[None]:
        """Write events in the caller's dialect."""
        caller, shown = self._caller, events
        if caller.observer is not None:
            caller.show_events(events)
        if not self._has_begun:
            if self._is_kept and self._claim is not None:
                yield from self._claim_reply(events)
            self._has_begun = True
            events = self._begin_reply(events)
        events = self._fit(events)
        if events and isinstance(last := events[-1], ReplyEnded):
            last = self._end(last)
            events = [*events[:-1], last]
            if self._claim_later is not None and last.started is not None and last.started.id:
                yield from self._claim_later(last.started.id)
            yield from self._finish()
            self._is_over = True
        if written := self._writer.write(events):
            yield Emit([written] if caller.started else [*self._start_writing(shown), written])

    def _begin_reply(self, events: list[Event]) -> list[Event]:
        """Name the model as the caller does, and pass facts about the turn to the carrier."""
        if self._carrier is not None and (partial := self._look()) is not None:
            self._carrier.set_turn_facts(prefix=partial.prefix, learned=partial.learned, effort=partial.effort)
        if not isinstance(first := events[0], ReplyStarted):
            return events
        is_stored = can_store(self._caller, self._state) or (self._is_kept and first.stored)
        return [msgspec.structs.replace(first, model=self._served.model, stored=is_stored), *events[1:]]

    def _fit(self, events: list[Event]) -> list[Event]:
        """The events as the caller gets them."""
        if type(events[0]) is not TextDelta or len(events) > 1:
            # Most batches are one piece of the answer, and have no id.
            events = self._ids.fit(events)
        if self._carrier is not None:
            events = self._carrier.carry(events)
        if self._no_thinking is not None:
            events = self._no_thinking.hide(events)
        elif self._hides:
            events = hide_thinking(events, self._visibility, self._caller.config.sink)
        if self._report is not None:
            events = self._report.add(events)
        return events if self._json_only is None else self._json_only.fit(events)

    def _find_report(self, notices: Sequence[Notice]) -> Report | None:
        """What the first words of a conversation say about tools that were left out; None if no tool was left out,
        or no person reads the reply.
        """
        names = [str(notice.asked) for notice in notices if notice.code == TOOL_NOT_SENT]
        if not names or self._caller.config.trusts_callers or self._asked.prompt.output is not None:
            return None
        as_commentary = self._caller.dialect == RESPONSES
        turns = [message for message in self._asked.prompt.messages if message.role == "assistant"]
        if any(as_commentary or any(isinstance(part, Text) for part in message.parts) for message in turns):
            return None
        return Report(names, self._call.target.provider.name, as_commentary=as_commentary)

    def _start_writing(self, events: Sequence[Event]) -> list[Any]:
        notices = [*self._list_notices(events), *getattr(self._writer, "notices", ())]
        if self._carrier is not None:
            notices += self._carrier.notices
        return [*self._write_head(notices, stream=self._served.stream)]

    def _end(self, end: ReplyEnded) -> ReplyEnded:
        """The end without the word of another dialect: one of ours may mean less by the same word. It names the reply
        where its provider stores that.
        """
        if not self._is_kept and end.started is not None:
            end = msgspec.structs.replace(end, started=None)
        if self._call.target.dialect == self._caller.dialect and end.stop.reason != "tool_calls":
            return end
        return msgspec.structs.replace(end, stop=msgspec.structs.replace(end.stop, raw=None))

    # --- both ---------------------------------------------------------------------------------------------------------

    def _look(self) -> Reply | None:
        """The reply up to the current batch. Made once for a batch: a whole reply is one."""
        if self._known is None:
            self._known = self._exchange.partial
        return self._known

    def _list_notices(self, events: Sequence[Event]) -> list[Notice]:
        if (partial := self._look()) is not None:
            return [*partial.warnings]
        return [event.notice for event in events if isinstance(event, Warned)]

    def _finish(self) -> Flow[None]:
        """Store what has to be kept, and settle what was used, before the caller gets the end of the reply."""
        reply = self._look()
        yield from self._caller.settle(reply)
        if reply is None:
            return
        if self._carrier is None:
            if self._served.prompt.messages:
                # Some callers return less than they got, and one that returns everything may ask another provider next.
                yield from self._state.record(self._state.make_carrier(), reply)
            return
        yield from self._state.record(self._carrier, reply, self._ids.originals)
        if self._state.has_store:
            yield from store_response(
                self._caller,
                self._state,
                self._served,
                reply,
                self._writer,
                self._ids.originals,
                visibility=self._visibility,
            )
