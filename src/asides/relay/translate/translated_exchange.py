"""Translate a request: an exchange with the provider in its dialect, and its events as bytes of the caller's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from asides.dialects import find_dialect
from asides.dialects.dialect import ServedRequest, Writer
from asides.dialects.server_half import ReplyWriter
from asides.flows.call import Call
from asides.flows.exchange import Exchange, RefusedBody
from asides.flows.steps import Emit, Flow, Open
from asides.providers.provider import Target
from asides.relay.answers.stored_responses import can_store, store_response
from asides.relay.endpoints import MakeWriter
from asides.relay.error_response import ErrorResponse, write_stream_error
from asides.relay.relay_config import STREAM_HEADERS, Caller
from asides.relay.relay_request import ResponseStart
from asides.relay.state.caller_state import CallerState
from asides.relay.translate.call_ids import CallerIds
from asides.relay.translate.translate_fields import find_tool_map, fit_prompt
from asides.relay.translate.visible_events import JsonOnly, NoThinking, hide_thinking
from asides.values.errors import AsidesError, TransportError
from asides.values.events import Event, ReplyEnded, ReplyStarted, TextDelta, Warned
from asides.values.notices import Notice
from asides.values.reply import Reply
from asides.values.visibility import Visibility

_INSTRUCTED = ("schema_instructed", "output_instructed")


class WrittenExchange:
    """An exchange whose reply is written in the caller's dialect: what a translated and a compacted one share."""

    def __init__(self, caller: Caller, call: Call, writer: Any, refused: RefusedBody | None = None) -> None:
        self._caller = caller
        self._call = call
        self._exchange = Exchange(call, refused=refused)
        self._writer = writer
        self.status = 0
        """The status that the caller got."""

    @property
    def partial(self) -> Reply | None:
        """The reply so far."""
        return self._exchange.partial

    @property
    def emitted(self) -> bool:
        """Whether the caller got the head of the response."""
        return self._caller.started

    def write_last_error(self, response: ErrorResponse) -> bytes:
        """The error that ends a stream which has begun."""
        return write_stream_error(self._writer, response)

    def _write_head(self, notices: Iterable[Notice], *, stream: bool) -> list[ResponseStart]:
        """The head of a good response, if it has not left yet."""
        self.status = 200
        more = STREAM_HEADERS if stream else {}
        return self._caller.start(200, {"content-type": self._writer.content_type, **more}, notices)


class TranslatedExchange(WrittenExchange):
    """A translated request to one target in progress."""

    def __init__(
        self,
        call: Call,
        caller: Caller,
        served: ServedRequest,
        state: CallerState,
        make_writer: MakeWriter,
        notices: tuple[Notice, ...] = (),
        *,
        visibility: Visibility,
        shows_thinking: bool = True,
        refused: RefusedBody | None = None,
    ) -> None:
        """`served`: the request, with the state of earlier turns. `notices`: those of targets that failed before.
        `shows_thinking`: whether the caller asked for thinking. `refused`: the caller's own body, where the provider
        refused that.
        """
        self._served = served
        self._state = state
        asked = msgspec.structs.replace(served, prompt=call.prompt)
        prompt, changes = fit_prompt(asked, caller.dialect, call.target)
        all_notices = (*notices, *call.notices, *changes)
        # The reply repeats which response it continues, though the provider is not told of it.
        with_state = msgspec.structs.replace(asked.prompt, state=served.prompt.state)
        repeated = msgspec.structs.replace(asked, prompt=with_state)
        writer = open_writer(repeated, caller.dialect, call.target, make_writer)
        fitted = msgspec.structs.replace(call, prompt=prompt, notices=all_notices, expected=None)
        super().__init__(caller, fitted, writer, refused)
        if hasattr(self._writer, "use_thinking_field"):
            field = caller.config.thinking_field
            # Hosts with details write the text beside them under this name.
            self._writer.use_thinking_field("reasoning" if field == "reasoning_details" else field)
        self._ids = CallerIds()
        self._carrier = state.make_carrier(hides=not shows_thinking)
        self._no_thinking = None if shows_thinking else NoThinking()
        self._visibility = visibility
        sees_all = all(visibility.allows(caller.config.sink, kind) for kind in ("raw", "summary"))
        self._hides = not sees_all
        self._json_only = JsonOnly() if any(notice.code in _INSTRUCTED for notice in changes) else None
        self.is_between_events = True
        """Whether something may follow what the caller has: always whole events, until the last one."""
        self._known: Reply | None = None
        """The reply up to the current batch, once it was asked for."""

    def steps(self, began: float | None = None) -> Flow[Reply]:
        """The flow: it emits the head of the response and its bytes."""
        caller = self._caller
        yield from caller.reserve(self._call, self._served, lambda: self.partial)
        flow = self._exchange.steps(began)
        writer, send, write = self._writer, flow.send, self._writer.write
        is_first = True
        value: Any = None
        error: BaseException | None = None
        try:
            while True:
                step = send(value) if error is None else flow.throw(error)
                value = error = None
                if type(step) is Emit:
                    self._known = None
                    events: list[Event] = step.events
                    if caller.observer is not None:
                        caller.show_events(events)
                    if is_first:
                        is_first = False
                        events = self._begin_reply(events)
                    events = self._fit(events)
                    if events and isinstance(last := events[-1], ReplyEnded):
                        events = [*events[:-1], self._end(last)]
                        yield from self._finish()
                        self.is_between_events = False
                    if written := write(events):
                        yield Emit([written] if caller.started else [*self._start(step.events), written])
                    continue
                if type(step) is Open:
                    self._count(step)
                try:
                    value = yield step
                except TransportError as problem:
                    caller.note_problem(problem)
                    error = problem
                if type(step) is Open and value is not None:
                    # A flow has no clock; the head of the response has the time.
                    writer.created = int(value.received)
        except StopIteration as end:
            reply: Reply = end.value
            return reply
        except AsidesError as problem:
            caller.note_problem(problem)
            raise
        finally:
            flow.close()

    def _count(self, step: Open) -> None:
        """Count a request that leaves, and show what was decided for it."""
        self._caller.show_plan(self._exchange.decisions)
        self._caller.count_request(step.request)

    def _begin_reply(self, events: list[Event]) -> list[Event]:
        """Name the model as the caller does, and tell the carrier what is known of the turn."""
        if (partial := self._look()) is not None:
            self._carrier.set_turn_facts(prefix=partial.prefix, learned=partial.learned, effort=partial.effort)
        if not isinstance(first := events[0], ReplyStarted):
            return events
        is_stored = can_store(self._caller, self._state)
        return [msgspec.structs.replace(first, model=self._served.model, stored=is_stored), *events[1:]]

    def _look(self) -> Reply | None:
        """The reply up to the current batch. Made once for a batch: a whole reply is one."""
        if self._known is None:
            self._known = self._exchange.partial
        return self._known

    def _fit(self, events: list[Event]) -> list[Event]:
        """The events as the caller gets them."""
        if type(events[0]) is not TextDelta or len(events) > 1:
            # Most batches are one piece of the answer, and have no id.
            events = self._ids.fit(events)
        events = self._carrier.carry(events)
        if self._no_thinking is not None:
            events = self._no_thinking.hide(events)
        elif self._hides:
            events = hide_thinking(events, self._visibility, self._caller.config.sink)
        return events if self._json_only is None else self._json_only.fit(events)

    def _start(self, events: Sequence[Event]) -> list[Any]:
        if (partial := self._look()) is not None:
            notices = [*partial.warnings]
        else:
            notices = [event.notice for event in events if isinstance(event, Warned)]
        notices += getattr(self._writer, "notices", ())
        notices += self._carrier.notices
        return [*self._write_head(notices, stream=self._served.stream)]

    def _end(self, end: ReplyEnded) -> ReplyEnded:
        """The end without the word of another dialect: one of ours may mean less by the same word."""
        if self._call.target.dialect == self._caller.dialect and end.stop.reason != "tool_calls":
            return end
        return msgspec.structs.replace(end, stop=msgspec.structs.replace(end.stop, raw=None))

    def _finish(self) -> Flow[None]:
        """Store what has to be kept, and settle what was used, before the caller gets the end of the reply."""
        yield from self._caller.settle(self._look())
        if (reply := self._look()) is None:
            return
        yield from self._state.record(self._carrier, reply, self._ids.originals)
        if not self._state.has_store:
            return
        yield from store_response(
            self._caller,
            self._state,
            self._served,
            reply,
            self._writer,
            self._ids.originals,
            visibility=self._visibility,
        )


def open_writer(
    served: ServedRequest,
    caller: str,
    target: Target,
    make_writer: MakeWriter | None = None,
    *,
    foreign: bool | None = None,
) -> Writer:
    """Make the writer of one reply: it writes the events of any provider in the caller's dialect, with the caller's
    names of its tools. Our dialects give a ReplyWriter; a registered one gives its own. `make_writer`: for a second
    form of the caller's dialect. `foreign`: whether the events are of another dialect; None: as the target's is.
    """
    make = make_writer or find_dialect(caller).writer
    writer = make(model=served.model, stream=served.stream, include_usage=served.include_usage)
    if isinstance(writer, ReplyWriter):
        tools = find_tool_map(served, caller, target).received
        writer.serve(served, tools, foreign=caller != target.dialect if foreign is None else foreign)
    return writer
