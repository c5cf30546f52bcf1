"""Logs, metrics and the inspector watch the requests of a gateway: `RequestWatcher`.

`RequestWatch` observes one request for all of them: it fills its record, by one clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, get_args

from asides.providers.credentials import collect_secrets
from asides.relay.error_response import RelayRefusal
from asides.relay.observer import RelayObserver
from asides.relay.relay_request import RelayMode, RelayOutcome, RelayRequest
from asides.telemetry.instrument import get_sources
from asides.values.events import (
    Event,
    OutputEvent,
    ReplyStarted,
    TextReclassified,
    ThinkingDelta,
    UsageReported,
)
from asides.values.redaction import build_redactor
from asides_gateway.black_out import SentHead
from asides_gateway.captured_body import CapturedBody
from asides_gateway.loop_observer import LoopObserver
from asides_gateway.report_fault import report_fault
from asides_gateway.request_record import End, RecordedError, RequestDetails, RequestRecord, State

if TYPE_CHECKING:
    from asides.dialects.dialect import HttpRequest, ServedRequest
    from asides.flows.call import Call
    from asides.history.plan import Decision
    from asides.providers.provider import Target
    from asides.relay.state.turn_state import RestoredTurn
    from asides.values.messages import Prompt

LARGE_BODY = 64 * 1024
"""From this size on a request is planned in a thread: a small one takes less than its way there."""
_MANY_MESSAGES = 100
"""So is one with more messages than these, however short they are."""
_MAX_DECISIONS = 500
_MAX_ATTEMPTS = 20
_MAX_STRETCHES = 24
_MAX_NOTICES = 50
_MAX_NAME = 1000
_MAX_MESSAGE = 2000
_STATES: dict[type, State] = {
    ThinkingDelta: "thinking",
    TextReclassified: "thinking",
    **dict.fromkeys(get_args(OutputEvent), "answering"),
}


def is_large(body: bytes) -> bool:
    """Whether a request is planned in a thread, because planning is slow."""
    # Items of Responses without a role name their call.
    return len(body) >= LARGE_BODY or body.count(b'"role"') + body.count(b'"call_id"') > _MANY_MESSAGES


class RequestWatcher:
    """Sees every relayed request, and every turn of the page. Each method does nothing here, and must be fast.

    If a method raises, that is logged; the reply is unaffected.
    """

    def begin(self, record: RequestRecord, request: RelayRequest | None) -> None:
        """A request goes to the relay, or a turn to its model. `request`: itself, with its body; None for a turn."""

    def begin_reply(self, record: RequestRecord) -> None:
        """The first event of the reply has come."""

    def change(self, record: RequestRecord) -> None:
        """The record has changed in a way that a reader wants to see."""

    def end(self, record: RequestRecord) -> None:
        """A request has ended. One that was refused has no `begin` before it."""


class RequestWatch(RelayObserver):
    """Fills the record of one request, and calls the watchers."""

    __slots__ = ("_last", "_now", "_watchers", "record")

    def __init__(
        self,
        watchers: Sequence[RequestWatcher],
        record: RequestRecord,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.record = record
        self._watchers = watchers
        self._now = now
        self._last = 0
        """The last request to a provider, by its identity."""
        self._target: Target | None = None

    @property
    def elapsed(self) -> float:
        """The seconds since the arrival."""
        return self._now() - self.record.started

    def begin(self, request: RelayRequest | None = None) -> RelayObserver | None:
        """The request goes to the relay, or to its model. Returns its observer; None without watchers."""
        if not self._watchers:
            return None
        record = self.record
        record.has_begun = True
        record.received = 0 if request is None else len(request.body)
        self._tell(lambda watcher: watcher.begin(record, request))
        # What is planned in a thread is observed in this event loop all the same.
        return LoopObserver(self) if request is not None and is_large(request.body) else self

    def end(
        self,
        ended: End,
        *,
        status: int,
        sent_bytes: int = 0,
        first_byte: float | None = None,
        outcome: RelayOutcome | None = None,
    ) -> None:
        """The request has ended. `outcome`: None if the relay did not come to its end."""
        if not self._watchers:
            return
        record = self.record
        record.ended, record.state = ended, "failed" if ended == "refused" else ended
        record.status, record.sent_bytes, record.first_byte = status, sent_bytes, first_byte
        record.seconds = self.elapsed
        if outcome is not None:
            self._take_outcome(outcome)
        self._tell(lambda watcher: watcher.end(record))
        # What is kept of it stays small.
        record.reply, record.notices = None, tuple(dict.fromkeys(record.notices))[:_MAX_NOTICES]

    def _take_outcome(self, outcome: RelayOutcome) -> None:
        record, reply = self.record, outcome.reply
        record.asked = outcome.asked[:_MAX_NAME] or record.asked
        record.mode, record.reason = outcome.mode, outcome.reason
        record.model = outcome.model or record.model
        record.notices, record.reply = outcome.notices, reply
        if (error := outcome.error) is not None:
            code = error.code if isinstance(error, RelayRefusal) else None
            record.error = RecordedError(type(error).__name__, str(error)[:_MAX_MESSAGE], code)
        record.attempts = max(record.attempts, outcome.attempts)
        record.restored, record.missed = outcome.restored, outcome.missed
        if reply is not None:
            record.usage = reply.usage
            origin = None if reply.origin is None else reply.origin.model
            record.models = tuple(dict.fromkeys(name for name in (reply.model, origin, *record.models) if name))

    # --- what the relay shows -----------------------------------------------------------------------------------------

    def see_asked(self, asked: ServedRequest) -> None:  # noqa: D102 - as in RelayObserver
        record = self.record
        record.asked, record.stream = asked.model[:_MAX_NAME], asked.stream
        if record.details is not None:
            record.details.asked = _describe_asked(asked)
        self._change()

    def see_restored(self, turns: Sequence[RestoredTurn]) -> None:  # noqa: D102
        record = self.record
        record.restored = sum(turn.is_found for turn in turns)
        record.missed = len(turns) - record.restored
        if record.details is not None:
            record.details.turns = tuple(turns[-_MAX_DECISIONS:])

    def see_target(self, call: Call, mode: RelayMode, reason: str) -> None:  # noqa: D102
        record, target = self.record, call.target
        record.mode, record.reason, record.model = mode, reason, call.model
        record.provider, record.target_model, record.target_dialect = target.provider, target.model, target.dialect
        record.models = (target.model,)
        if self._target is not target:
            # What follows for the same target is a repair.
            self._target, self._last = target, 0
        if (details := record.details) is not None:
            details.decisions = ()
            if details.capture is not None:
                details.redact = build_redactor((*details.capture.secrets, *collect_secrets(target, call.key)))
        self._change()

    def see_plan(self, decisions: Sequence[Decision]) -> None:  # noqa: D102
        if self.record.details is not None:
            self.record.details.decisions = tuple(decisions[-_MAX_DECISIONS:])

    def see_request(self, request: HttpRequest) -> None:  # noqa: D102
        record = self.record
        record.attempts += 1
        # The same request is sent again as the same object; a repaired one is another while the first still lives.
        is_repaired = self._last not in (0, id(request))
        self._last = id(request)
        record.repairs += is_repaired
        if (details := record.details) is not None and record.attempts <= _MAX_ATTEMPTS:
            _add_sent(details, request, record.model, self.elapsed, is_repaired)
        self._change()

    def see_events(self, events: Sequence[Event]) -> None:  # noqa: D102
        record = self.record
        details = record.details
        if record.first_event is None and events:
            record.first_event = self.elapsed
            self._tell(lambda watcher: watcher.begin_reply(record))
        for event in events:
            kind = type(event)
            if details is not None:
                details.events[kind] = details.events.get(kind, 0) + 1
            state = _STATES.get(kind)
            if state is not None:
                if state is not record.state:
                    self._move(state)
            elif isinstance(event, UsageReported):
                record.usage = record.usage.merge(event.usage)
            elif isinstance(event, ReplyStarted):
                origin = event.origin.model if event.origin is not None else None
                record.models = tuple(model for model in (event.model, origin, *record.models) if model)

    def _move(self, state: State) -> None:
        record, elapsed = self.record, self.elapsed
        record.state = state
        if state == "thinking":
            if record.first_thought is None:
                record.first_thought = elapsed
        elif record.first_answer is None:
            record.first_answer = elapsed
        if (details := record.details) is not None and len(details.stretches) < _MAX_STRETCHES:
            details.stretches.append((state, elapsed))
        self._change()

    def _change(self) -> None:
        record = self.record
        # Few watchers want to see changes, and a request has several.
        listening = [watcher for watcher in self._watchers if type(watcher).change is not RequestWatcher.change]
        if listening:
            self._tell(lambda watcher: watcher.change(record), listening)

    def _tell(self, tell: Callable[[RequestWatcher], object], watchers: Sequence[RequestWatcher] | None = None) -> None:
        for watcher in self._watchers if watchers is None else watchers:
            try:
                tell(watcher)
            except Exception as problem:  # noqa: BLE001 - a log that fails must not fail the request
                report_fault(problem)


def _add_sent(details: RequestDetails, request: HttpRequest, model: str, after: float, is_repaired: bool) -> None:
    figures = {"bytes": len(request.body), "after": round(after, 4), "repaired": is_repaired}
    details.sent.append(SentHead(request.method, request.url, request.headers, model, figures))
    if details.capture is not None:
        details.sent_bodies.append(CapturedBody(request.body, details.capture, details.redact))


def _describe_asked(asked: ServedRequest) -> dict[str, object]:
    prompt = asked.prompt
    return {
        "stream": asked.stream,
        "messages": len(prompt.messages),
        "has_system": bool(prompt.system),
        "tools": len(prompt.tools),
        "thinking": _describe_thinking(prompt),
        "max_tokens": prompt.max_tokens,
    }


def _describe_thinking(prompt: Prompt) -> str:
    thinking = prompt.thinking
    if thinking.effort is not None:
        return thinking.effort
    if thinking.budget is not None:
        return f"{thinking.budget} tokens"
    return thinking.mode or ""


def list_span_watchers() -> list[RequestWatcher]:
    """The watcher that makes spans of requests, if telemetry is on in this process."""
    if (sources := get_sources()) is None:
        return []
    from asides_gateway.request_spans import RequestSpans  # It loads OpenTelemetry.

    return [RequestSpans(*sources)]
