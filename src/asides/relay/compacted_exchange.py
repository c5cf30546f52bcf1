"""Compact a conversation for a client of Responses where the provider does not: ask the target for a summary, and seal
it into one `compaction` item.

While the model writes, a stream reports progress.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.flows.call import Call
from asides.flows.exchange import Exchange
from asides.flows.steps import Emit, Flow, Open
from asides.history.summary import build_summary_request, has_words
from asides.relay.error_response import RelayRefusal
from asides.relay.relay_config import Caller
from asides.relay.state.caller_state import CallerState
from asides.relay.state.relay_keys import can_encrypt
from asides.relay.state.sealed_summary import KIND, make_item_id, seal_summary, split_trigger
from asides.relay.written_exchange import WrittenExchange
from asides.values.errors import NoAnswer, ProtocolError, TransportError
from asides.values.events import Event, PartArrived, ReplyEnded, ReplyStarted, StopReason, UsageReported
from asides.values.messages import Message
from asides.values.notices import Notice
from asides.values.parts import ServerTool
from asides.values.reply import Reply
from asides.values.usage import Usage, estimate_usage

Store = Callable[[Reply, Any], Flow[None]]
"""Stores the response, with its writer, for `previous_response_id`."""


class CompactedExchange(WrittenExchange):
    """A request for a summary to one target in progress."""

    def __init__(
        self,
        call: Call,
        caller: Caller,
        served: ServedRequest,
        state: CallerState,
        writer: Any,
        notices: tuple[Notice, ...] = (),
        *,
        store: Store | None = None,
    ) -> None:
        """`served`: the request, with the summaries of earlier compactions. Raises RelayRefusal."""
        if not can_encrypt() and not state.has_store:
            raise RelayRefusal(
                "a conversation cannot be compacted here: the package cryptography is missing. Install asides[relay].",
                status=501,
            )
        self._served = served
        self._state = state
        self._store = store
        messages = drop_leading_system(split_trigger(served.prompt.messages)[0])
        if not has_words(messages):
            raise RelayRefusal("there is nothing to compact. Send the conversation as input.", param="input")
        prompt = msgspec.structs.replace(
            build_summary_request(messages), thinking=call.prompt.thinking, stream=call.prompt.stream
        )
        self._prompt = prompt
        detail = f"{call.target.provider.name} wrote a summary, which the relay has sealed"
        all_notices = (*notices, *call.notices, Notice("compaction_summarised", detail, "input"))
        summary_call = msgspec.structs.replace(call, prompt=prompt, notices=all_notices, expected=None)
        super().__init__(caller, summary_call, Exchange(summary_call), writer)
        self._item_id = make_item_id()

    def steps(self, began: float | None = None) -> Flow[Reply]:
        """The flow: it emits the head of the response, signs of work, and at the end the item."""
        caller = self._caller
        yield from caller.reserve(self._call, None, lambda: self.partial)
        flow = caller.count_requests(self._exchange.steps(began))
        value: Any = None
        error: BaseException | None = None
        try:
            while True:
                step = flow.send(value) if error is None else flow.throw(error)
                value = error = None
                if type(step) is Emit:
                    self._caller.show_events(step.events)
                    if self._served.stream:
                        yield from self._write(self._tell_of_work())
                    continue
                try:
                    value = yield step
                except TransportError as problem:
                    caller.note_problem(problem)
                    error = problem
                if type(step) is Open and value is not None:
                    self._writer.created = int(value.received)
        except StopIteration as end:
            return (yield from self._finish(end.value))
        finally:
            flow.close()

    def _tell_of_work(self) -> list[Event]:
        """What a client of a stream gets while the summary is written: nothing of its words."""
        json = msgspec.json.encode({"type": KIND, "id": self._item_id, "encrypted_content": ""}).decode()
        work = PartArrived(ServerTool(KIND, self._item_id, "compacting", json), 0)
        return [work] if self._caller.started else [self._begin(), work]

    def _begin(self) -> ReplyStarted:
        return ReplyStarted(self._served.model, None, None, stored=self._store is not None)

    def _finish(self, reply: Reply) -> Flow[Reply]:
        yield from self._caller.settle(reply)
        try:
            summary = reply.require_answer().text.strip()
        except NoAnswer as problem:
            # What a model says instead of a summary must not become the client's memory.
            message = f"the conversation was not compacted: {problem}"
            # What a filter stops, it stops again.
            is_filtered = reply.outcome == "filtered"
            failure = RelayRefusal(message, code="content_filter") if is_filtered else ProtocolError(message)
            failure.partial = reply
            raise failure from None
        sealed = seal_summary(summary, self._state.keys, self._item_id, has_store=self._state.has_store)
        if sealed.record is not None and not (yield from self._state.write(sealed.record)):
            raise ProtocolError("the conversation was not compacted: the store of the relay failed. Try again.")
        usage = reply.usage if reply.usage != Usage() else estimate_usage(self._prompt.messages, reply)
        made = msgspec.structs.replace(reply, parts=(sealed.item,), usage=usage)
        if self._store is not None:
            yield from self._store(made, self._writer)
        events: list[Event] = [] if self._caller.started else [self._begin()]
        events += [PartArrived(sealed.item, 0), UsageReported(usage), ReplyEnded(StopReason("stop"))]
        yield from self._write(events, reply)
        return made

    def _write(self, events: list[Event], reply: Reply | None = None) -> Flow[None]:
        written = self._writer.write(events)
        if self._caller.started:
            yield Emit([written])
            return
        partial = reply or self.partial
        notices = () if partial is None else partial.warnings
        yield Emit([*self._write_head(notices, stream=self._served.stream), written])


def drop_leading_system(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The conversation without the instructions before it: clients send those with every request."""
    start = next((place for place, each in enumerate(messages) if each.role != "system"), len(messages))
    return messages[start:]
