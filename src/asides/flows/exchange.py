"""One request → one reply: plan, encode, open, try again, decode, fold. A flow: drivers carry out its steps.

`ResponseReader` decodes and folds a response; `Exchange` sends the request and drives the reader. Not here: sockets,
clocks and waiting (transports), when to try again (retry), and how to repair a request (heal).
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import msgspec

from asides.dialects import find_dialect
from asides.dialects.dialect import Decoder, Dialect, HttpRequest
from asides.flows.call import Call
from asides.flows.heal import REFUSED_SUMMARIES, Repair, RepairKind, drop_refused_summary, heal, remember_refusal
from asides.flows.retry import NO_HEAD, clean_error, receive_error, wait_before_next
from asides.flows.steps import Emit, Flow, Head, Open, Read, Sleep
from asides.history.plan import Plan, plan
from asides.providers.credentials import collect_secrets
from asides.providers.provider import Target
from asides.values.errors import AsidesError, ProviderError, TransportError
from asides.values.events import Event, Warned
from asides.values.fold import Fold
from asides.values.messages import Prompt
from asides.values.notices import Notice
from asides.values.redaction import Redact, build_redactor
from asides.values.reply import Reply, Revealed

# Counts and names only: never content, thinking, seals or keys, not even at DEBUG (contract, §4.10).
_log = logging.getLogger("asides")

_READ = Read()
# After its last event a server ends the body or closes the connection; some do neither.
_READ_THE_REST = Read(patience=0.5)


class ResponseReader:
    """Reads one response: decoder, fold, and failures. `feed` and `finish` return events; only `reply` raises.

    An exchange feeds it read by read, `decode` all at once.
    """

    __slots__ = (
        "_feed",
        "_feed_fold",
        "_fold",
        "_keep_raw",
        "_lost",
        "_redact",
        "_revealed",
        "_warned",
        "_warnings",
        "decoder",
    )

    def __init__(
        self,
        decoder: Decoder,
        notices: Sequence[Notice] = (),
        *,
        keep_raw: bool = True,
        revealed: tuple[Revealed, ...] = (),
        redact: Redact | None = None,
    ) -> None:
        self.decoder = decoder
        self._redact = redact
        self._warned = 0
        self._feed = decoder.feed
        self._fold = Fold()
        self._feed_fold = self._fold.feed
        self._keep_raw = keep_raw
        self._revealed = revealed
        self._warnings: list[Event] = [Warned(notice) for notice in notices]
        self._lost: TransportError | None = None

    @property
    def partial(self) -> Reply | None:
        """The reply so far; None before it has started."""
        return None if self._fold.started is None else self._build_reply()

    def feed(self, data: bytes) -> list[Event]:
        """Take the next bytes. Returns the events they complete."""
        return self._fold_events(self._feed(data))

    def finish(self, lost: TransportError | None = None) -> list[Event]:
        """Take the end of the bytes, sent by the server or caused by a lost connection. Returns the last events.

        Many servers close the connection right after their last event. Then nothing is missing, and a notice is enough.
        """
        self._lost = lost
        events = self.decoder.finish()
        if lost is not None and self.decoder.failure is None:
            notice = Notice("connection_lost_at_end", "the connection broke after the last event; nothing is missing")
            events = [*events[:-1], Warned(notice), events[-1]]
        return self._fold_events(events)

    def _fold_events(self, events: list[Event]) -> list[Event]:
        if not self._keep_raw:
            # The last one stays: a decoder that has read nothing yet reports the end differently.
            del self.decoder.payloads[:-1]
        if events:
            if self._warnings:
                # After ReplyStarted, which stays the first event.
                events = [events[0], *self._warnings, *events[1:]]
                self._warnings = []
            self._feed_fold(events)
            if self._redact is not None and self._fold.warning_count != self._warned:
                events = self._redact_warnings(events, self._redact)
        return events

    def _redact_warnings(self, events: list[Event], redact: Redact) -> list[Event]:
        """Take secrets out of the warnings: they name fields and types as the server does."""

        def clean(notice: Notice) -> Notice:
            return msgspec.structs.replace(notice, detail=redact(notice.detail))

        self._warned = self._fold.warning_count
        self._fold.replace_warnings(clean)
        return [Warned(clean(event.notice)) if isinstance(event, Warned) else event for event in events]

    def reply(self) -> Reply:
        """The whole reply. Raises the failure of the response, with the reply so far as `.partial`."""
        failure: AsidesError | None = self.decoder.failure
        if failure is not None:
            # The transport's error says more than the decoder's: it knows how the connection ended.
            failure = self._lost or failure
            if failure.partial is None:
                failure.partial = self.partial
            raise failure
        return self._build_reply()

    def _build_reply(self) -> Reply:
        payloads = self.decoder.payloads if self._keep_raw else ()
        reply = self._fold.reply(payloads, streamed=self.decoder.streamed)
        return msgspec.structs.replace(reply, revealed=self._revealed) if self._revealed else reply


class Exchange:
    """A call in progress. `steps()` is its flow; `partial` works at any time, also when the flow was abandoned."""

    __slots__ = ("_call", "_jitter", "_reader", "_thinks", "emitted")

    def __init__(self, call: Call, *, jitter: Callable[[], float] = random.random) -> None:
        self._call = call
        self._jitter = jitter
        self._reader: ResponseReader | None = None
        self._thinks = True
        self.emitted = False
        """Whether the caller got an event. After that there is no retry and no repair."""

    @property
    def partial(self) -> Reply | None:
        """The reply so far; None before it has started."""
        return None if self._reader is None else self._reader.partial

    def steps(self) -> Flow[Reply]:
        """The flow. Every AsidesError that leaves it carries the reply so far, and shows no key and no prompt."""
        call = self._call
        with self._attach_partial():
            dialect = find_dialect(call.target.dialect)
            prompt = call.prompt
            notices = [*call.notices]
            if REFUSED_SUMMARIES:
                prompt, known = drop_refused_summary(prompt, call.target, call.key)
                notices += known
            repairs: list[RepairKind] = []
            request, warnings = self._encode(prompt, dialect, notices)
            attempt = 0
            while True:
                attempt += 1
                head = NO_HEAD
                try:
                    _log.debug("%s: attempt %d, %d bytes", call.target.provider.name, attempt, len(request.body))
                    head = yield Open(request)
                    _log.debug("%s: status %d", call.target.provider.name, head.status)
                    if 200 <= head.status < 300:
                        return (yield from self._receive(dialect, warnings))
                    raise (yield from receive_error(dialect, head, call.target))
                except (TransportError, ProviderError) as error:
                    repair = self._repair(error, prompt, repairs)
                    seconds = self._wait_before_next(attempt, head, error) if repair is None else 0.0
                if repair is not None:
                    # A different request: it gets all attempts again.
                    attempt, prompt = 0, repair.prompt
                    repairs.append(repair.kind)
                    notices.append(repair.notice)
                    request, warnings = self._encode(prompt, dialect, notices)
                    continue
                _log.debug("%s: trying again in %.2f s", call.target.provider.name, seconds)
                yield Sleep(seconds)

    def _encode(
        self, prompt: Prompt, dialect: Dialect, notices: Sequence[Notice]
    ) -> tuple[HttpRequest, Sequence[Notice]]:
        call = self._call
        planned = plan(prompt, call.target, on_conflict=call.policy.on_conflict)
        request, encoder_notices = dialect.encode(planned.prompt, call.target)
        self._thinks = planned.prompt.thinking.mode != "off"
        _log_plan(call.target.provider.name, planned)
        return request, (*notices, *planned.notices, *encoder_notices)

    def _repair(self, error: AsidesError, prompt: Prompt, repairs: Sequence[RepairKind]) -> Repair | None:
        if self.emitted or not isinstance(error, ProviderError):
            return None
        repair = heal(error, prompt, repairs)
        if repair is not None:
            _log.debug("%s: %s; asked again", self._call.target.provider.name, repair.notice.code)
            if repair.kind == "summary":
                remember_refusal(self._call.target, self._call.key)
        return repair

    @contextmanager
    def _attach_partial(self) -> Generator[None, None, None]:
        try:
            yield
        except AsidesError as error:
            if error.partial is None:
                error.partial = self.partial
            clean_error(error, self._call.target, self._call.key, self._call.prompt)
            raise

    def _wait_before_next(self, attempt: int, head: Head, error: AsidesError) -> float:
        """The seconds until the next attempt. Raises the error when there is none."""
        if self.emitted:
            raise error
        return wait_before_next(error, head, attempt, self._call.policy, self._jitter())

    def _receive(self, dialect: Dialect, notices: Sequence[Notice]) -> Flow[Reply]:
        decoder = dialect.decoder(self._choose_decode_target())
        keep_raw = self._call.policy.keep_raw
        self._reader = reader = ResponseReader(
            decoder, notices, keep_raw=keep_raw, revealed=self._list_revealed(), redact=self._redact
        )
        feed = reader.feed
        step = _READ
        data = b"?"
        while data and decoder.failure is None:
            lost: TransportError | None = None
            try:
                data = yield step
            except TransportError as problem:
                lost, data = problem, b""
            events = feed(data) if data else reader.finish(lost)
            if events:
                self.emitted = True
                yield Emit(events)
            if data and getattr(decoder, "done", False):
                step = _READ_THE_REST
        if data and (events := reader.finish()):
            yield Emit(events)
        reply = reader.reply()
        _log.debug("%s: %s, %s", self._call.target.provider.name, reply.stop.reason, reply.usage)
        return reply

    def _redact(self, text: str) -> str:
        return build_redactor(collect_secrets(self._call.target, self._call.key))(text)

    def _choose_decode_target(self) -> Target:
        """The target for the decoder. With thinking off, the chat template does not open a thinking tag."""
        target = self._call.target
        if self._thinks or not target.facts.starts_inside or target.rule.thinks_though_off:
            return target
        return target.override(starts_inside=False)

    def _list_revealed(self) -> tuple[Revealed, ...]:
        revealed: list[Revealed] = []
        if self._call.target.shows_raw:
            revealed.append("thinking_raw")
        if self._call.policy.thinking_encrypted:
            revealed.append("thinking_encrypted")
        return tuple(revealed)


def _log_plan(provider: str, planned: Plan) -> None:
    if planned.decisions and _log.isEnabledFor(logging.DEBUG):
        sent_back = sum(decision.action == "keep" for decision in planned.decisions)
        _log.debug("%s: of %d earlier parts %d go back", provider, len(planned.decisions), sent_back)
