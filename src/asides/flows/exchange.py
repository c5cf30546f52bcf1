"""One request → one reply: plan, encode, open, try again, decode, fold. A flow: drivers carry out its steps.

`ResponseReader` decodes and folds a response; `Exchange` sends the request and drives the reader.
"""

from __future__ import annotations

import logging
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from asides.dialects import find_dialect
from asides.dialects.dialect import Decoder, Dialect, HttpRequest
from asides.dialects.document_decoder import explain_problem
from asides.dialects.input_reports import is_report
from asides.flows.call import Call, SentRequest, encode_request
from asides.flows.retry import NO_HEAD, clean_error, fetch_key, receive_error, wait_before_next
from asides.flows.steps import Allow, Emit, Flow, Head, Now, Open, Read, Sleep, traced
from asides.options import ReplyLimits
from asides.providers.credentials import KeySource, Secret, collect_secrets
from asides.providers.learned_rules import recall
from asides.providers.provider import Target
from asides.providers.settle import settle
from asides.values.errors import (
    AsidesError,
    AuthError,
    BadRequest,
    ContextTooLong,
    ProtocolError,
    ProviderError,
    ReplayRejected,
    TransportError,
)
from asides.values.events import Event, Warned, has_content, is_thinking
from asides.values.fold import Fold
from asides.values.messages import Prompt
from asides.values.notices import Notice
from asides.values.raw_documents import FEW_UNPACKED, PackedDocuments
from asides.values.redaction import Redact, build_redactor
from asides.values.reply import Reply, Revealed
from asides.values.traits import HAS_THOUGHTS, find_traits
from asides.values.usage import ReplyTimer

if TYPE_CHECKING:
    from asides.flows.heal.repair import Healer  # loaded when a request is refused
    from asides.flows.pace import Pace
    from asides.history.plan import Decision

# Counts and names only: never content, thinking, seals or keys, not even at DEBUG (contract, §4.10).
_log = logging.getLogger("asides")

_READ = Read()
# After its last event a server ends the body or closes the connection; some do neither.
_READ_THE_REST = Read(patience=0.5)
_USUAL_LIMITS = ReplyLimits()
# How often a waiting request checks whether its list has ended.
_LOOK_SECONDS = 1.0


class ResponseReader:
    """Reads one response: decoder, fold, and failures. `feed` and `finish` return events; only `reply` raises.

    An exchange feeds it read by read, `decode` in one call.
    """

    __slots__ = (
        *("_broken", "_feed", "_feed_fold", "_fields", "_fold", "_in_step", "_keep_raw", "_left", "_limits", "_lost"),
        *("_most_unpacked", "_off", "_packed", "_provider", "_redact", "_warned", "_warnings"),
        *("decoder", "moves", "stamp"),
    )

    def __init__(
        self,
        decoder: Decoder,
        provider: str,
        notices: Sequence[Notice] = (),
        *,
        keep_raw: bool = True,
        limits: ReplyLimits = _USUAL_LIMITS,
        fields: Mapping[str, Any] | None = None,
        off: bool = False,
        nonce: str = "",
        redact: Callable[[], Redact] | None = None,
        began: float | None = None,
    ) -> None:
        """`off`: warn if the reply has thinking. `began`: start of the call, if it is timed."""
        self.decoder = decoder
        self._provider = provider
        self._redact = redact
        self._warned = 0
        self._feed = decoder.feed
        self._fold = Fold(nonce, max_calls=limits.tool_calls, max_argument_bytes=limits.argument_bytes)
        self._fold.timer = None if began is None else ReplyTimer(began)
        self.moves, self.stamp = self._fold.moves, self._fold.stamp
        self._feed_fold = self._fold.feed
        self._keep_raw = keep_raw
        self._limits = limits
        self._left = sys.maxsize if limits.reply_bytes is None else limits.reply_bytes
        if hasattr(decoder, "max_documents"):  # optional, like `done`
            decoder.max_documents = sys.maxsize if limits.events is None else limits.events  # pyright: ignore[reportAttributeAccessIssue]
        self._packed: PackedDocuments | None = None  # the documents before those still in the decoder
        self._most_unpacked = FEW_UNPACKED
        self._fields = fields or {}
        self._off = off
        self._warnings: list[Event] = [Warned(notice) for notice in notices]
        self._lost: TransportError | None = None
        self._broken = self._in_step = False

    @property
    def partial(self) -> Reply | None:
        """The reply so far; None before it has started."""
        return None if self._fold.started is None else self._build_reply()

    @property
    def is_over(self) -> bool:
        """Whether more bytes would change nothing. Usage counts may follow an error of the server."""
        return self.decoder.failure is not None and not getattr(self.decoder, "reads_on", False)

    def feed(self, data: bytes) -> list[Event]:
        """Take the next bytes. Returns the events they complete."""
        self._left -= len(data)
        if self._left < 0:
            return self._feed_last(data)
        try:
            return self._fold_events(self._feed(data))
        except Exception as problem:  # noqa: BLE001 - the guard: a decoder of others may raise
            self._break(explain_problem(problem, b""))
            return []

    def _feed_last(self, data: bytes) -> list[Event]:
        """Take the bytes up to the limit, where the reply ends."""
        data = data[: self._left]
        self._left = len(data)
        events = self.feed(data) if data and not self._broken else []
        if not self._broken:
            problem = f"the reply has more than {self._limits.reply_bytes} bytes, the limit for one"
            self._break(ProtocolError(f"{problem}. Set reply_limits= if you expect more."), in_step=True)
        self._left = -1
        return events

    @property
    def continuation(self) -> Mapping[str, Any] | None:
        """The fields of the request that continues the reply; None if the reply is complete."""
        return None if self.decoder.failure is not None else getattr(self.decoder, "continuation", None)

    def end_body(self) -> list[Event]:
        """Take the end of a body that another one may continue. Returns the events before it."""
        end: Callable[[], list[Event]] | None = getattr(self.decoder, "end_body", None)
        return [] if end is None or self._broken else self._fold_events(end())

    def resume(self) -> None:
        """Take the next body of the same reply from now on."""
        getattr(self.decoder, "resume")()  # noqa: B009 - optional, like `done`

    def finish(self, lost: TransportError | None = None) -> list[Event]:
        """Take the end of the bytes, sent by the server or caused by a lost connection. Returns the last events.

        Many servers close the connection right after their last event. Then nothing is missing, and a notice is enough.
        """
        if self._broken and not self._in_step:
            # The decoder is ahead of the reply: what it holds came after the limit.
            return []
        if self.decoder.failure is None:
            self._lost = lost
        try:
            events = self.decoder.finish()
            if lost is not None and self.decoder.failure is None:
                notice = Notice(
                    "connection_lost_at_end", "the connection broke after the last event; nothing is missing"
                )
                events = [*events[:-1], Warned(notice), events[-1]]
            if self._off and events and (self._fold.has_thinking or any(map(is_thinking, events))):
                notice = Notice(
                    "thought_though_off", "thinking was turned off, and the reply has some", "thinking", "off"
                )
                events = [*events[:-1], Warned(notice), events[-1]]
            events = self._fold_events(events)
            if self._fold.unnamed and self.decoder.failure is None:
                named = self._fold.name_calls()
                self._feed_fold(named)
                events = [*events[:-1], *named, *events[-1:]]
            return events
        except Exception as problem:  # noqa: BLE001 - the guard
            self._break(explain_problem(problem, b""))
            return []

    def _break(self, problem: ProtocolError, *, in_step: bool = False) -> None:
        """End the reply here: the failure is this problem, unless there is one. `in_step`: the decoder has read no
        further than the reply goes.
        """
        self._broken, self._in_step, self._left = True, in_step, 0
        if self.decoder.failure is None:
            self.decoder.failure = ProtocolError(
                f"{self._provider}: {problem}", dialect=getattr(self.decoder, "dialect", None), payload=problem.payload
            )
            self.decoder.failure.__cause__ = problem.__cause__

    def _fold_events(self, events: list[Event]) -> list[Event]:
        payloads = self.decoder.payloads
        if not self._keep_raw:
            # The last one stays: a decoder that has read nothing yet reports the end differently.
            del payloads[:-1]
        elif len(payloads) > self._most_unpacked:
            packed = self._packed = self._packed or PackedDocuments()
            if packed.take(payloads, len(events)):
                self._fold.join_pieces()
            self._most_unpacked = packed.most_unpacked
        if events:
            if self._warnings:
                # After ReplyStarted, which stays the first event.
                events = [events[0], *self._warnings, *events[1:]]
                self._warnings = []
            try:
                self._feed_fold(events)
            except ProtocolError as problem:
                refused = self._fold.refused
                self._break(problem)
                return events[: next(place for place, event in enumerate(events) if event is refused)]
            if self._redact is not None and self._fold.warning_count != self._warned:
                events = self._redact_warnings(events, self._redact())
        return events

    def _redact_warnings(self, events: list[Event], redact: Redact) -> list[Event]:
        """Redact secrets in the warnings: they quote field names and types of the server."""

        def clean(notice: Notice) -> Notice:
            return msgspec.structs.replace(notice, detail=redact(notice.detail))

        self._warned = self._fold.warning_count
        self._fold.replace_warnings(clean)
        return [Warned(clean(event.notice)) if isinstance(event, Warned) else event for event in events]

    def reply(self) -> Reply:
        """The whole reply. Raises the failure of the response, with the reply so far as `.partial`."""
        failure: AsidesError | None = self.decoder.failure
        if failure is not None:
            # The transport's error is more precise than the decoder's: it knows how the connection ended.
            failure = self._lost or failure
            if failure.partial is None:
                failure.partial = self.partial
            raise failure
        return self._build_reply()

    def _build_reply(self) -> Reply:
        payloads: Sequence[bytes] = self.decoder.payloads if self._keep_raw else ()
        if self._packed is not None:
            payloads = self._packed.add(payloads)
        reply = self._fold.reply(payloads, streamed=self.decoder.streamed)
        return reply.with_call(**self._fields) if self._fields else reply


def make_nonce() -> str:
    """Make the nonce of a reply: ids of its calls differ from those of every other reply in a conversation."""
    return f"{random.getrandbits(64):016x}|"


class Exchange:
    """A call in progress. `steps()` is its flow; `partial` works at any time, also when the flow was abandoned."""

    __slots__ = (
        *("_call", "_continues", "_encode", "_healer", "_jitter", "_may_plan", "_may_retry", "_nonce", "_reader"),
        *("_verbatim", "decisions", "emitted", "is_planned"),
    )

    def __init__(
        self,
        call: Call,
        *,
        verbatim: HttpRequest | None = None,
        may_plan: bool = True,
        may_retry: bool = False,
        continues: bool = True,
        encode: Callable[[Prompt, Target], SentRequest] | None = None,
        jitter: Callable[[], float] = random.random,
        nonce: Callable[[], str] = make_nonce,
    ) -> None:
        """`verbatim`: a request that is sent as it is. If it is refused in a known way before the first event, the
        planned request follows, or its repair; other refusals are raised immediately. `may_plan`: False if nothing may
        follow it. `may_retry`: whether it is sent again after other errors, as planned ones are. `continues`: whether
        further requests may continue a reply that the provider ends before its end.
        `encode`: plans and encodes a prompt; None: `encode_request`, with the policy of the call.
        """
        self._call = call
        self._verbatim = verbatim
        self._may_plan = may_plan
        self._may_retry = may_retry
        self._continues = continues
        self._encode = encode or partial(encode_request, on_conflict=call.policy.on_conflict)
        self._jitter = jitter
        self._nonce = nonce
        self._reader: ResponseReader | None = None
        self._healer: Healer | None = None
        self.emitted = False
        """Whether the caller got an event. After that nothing is retried or repaired."""
        self.is_planned = verbatim is None
        """Whether the current request was planned; False while it is the verbatim one."""
        self.decisions: tuple[Decision, ...] = ()
        """What the plan of the last request decided about earlier turns."""

    @property
    def partial(self) -> Reply | None:
        """The reply so far; None before it has started."""
        return None if self._reader is None else self._reader.partial

    @property
    def is_complete(self) -> bool:
        """Whether the last event of the response was decoded, though its body may not have ended."""
        decoder = None if self._reader is None else self._reader.decoder
        return decoder is not None and decoder.failure is None and getattr(decoder, "done", False)

    @traced
    def steps(self, began: float | None = None) -> Flow[Reply]:
        """Run the flow. Its errors carry the reply so far, but no key and no prompt. `began`: its start, if not now."""
        call = self._call
        try:
            sent = self._plan() if self._verbatim is None else self._wrap_verbatim(self._verbatim)
            target, dialect = sent.target, find_dialect(sent.target.dialect)
            if began is None:
                began = yield Now()
            attempt = limited = 0
            pace, seconds = call.policy.pace, 0.0
            while True:
                if pace is not None:
                    yield from _wait_for_turn(pace, seconds, call.policy.timeout.total)
                attempt += 1
                head = NO_HEAD
                try:
                    if isinstance(call.key, KeySource):
                        yield from fetch_key(call.key)
                    _log.debug("%s: attempt %d, %d bytes", target.provider.name, attempt, len(sent.request.body))
                    self.decisions = sent.decisions
                    head = yield Open(sent.request)
                    _log.debug("%s: status %d", target.provider.name, head.status)
                    if 200 <= head.status < 300:
                        reply = yield from self._receive(dialect, sent, began)
                        if pace is not None:
                            pace.note_reply()
                        return reply
                    raise (yield from receive_error(dialect, head, sent.target))
                except (TransportError, ProviderError) as error:
                    if not self.is_planned and isinstance(error, ProviderError):
                        repaired = self._plan_after(error, attempt)
                    else:
                        repaired = self._repair(error, sent, may_retry=attempt <= call.policy.retries)
                    seconds = 0.0
                    if repaired is None and pace is not None and pace.is_limit(error) and not self.emitted:
                        # The whole list waits, and this attempt does not count.
                        attempt, limited, now = attempt - 1, limited + 1, (yield Now())
                        if not pace.note_limit(error, now, limited=limited, max_wait=call.policy.max_wait):
                            raise
                    elif repaired is None:
                        seconds = self._wait_before_next(attempt, head, error)
                if repaired is not None:
                    # A different request: it gets all attempts again.
                    attempt, sent, dialect, seconds = 0, repaired, find_dialect(repaired.target.dialect), 0.0
                    continue
                _log.debug("%s: trying again in %.2f s", target.provider.name, seconds)
                if pace is None:
                    yield Sleep(seconds)
        except AsidesError as error:
            if error.partial is None:
                error.partial = self.partial
            clean_error(error, call.target, call.key, call.prompt)
            raise

    def _plan(self) -> SentRequest:
        call = self._call
        target = settle(call.target, learned=recall(call.target, call.prompt.messages))
        return self._encode(call.prompt, target)

    def _wrap_verbatim(self, request: HttpRequest) -> SentRequest:
        prompt = self._call.prompt
        has_state = bool(find_traits(prompt.messages) & HAS_THOUGHTS)
        return SentRequest(prompt, self._call.target, prompt, request, (), has_state=has_state)

    def _plan_after(self, refusal: ProviderError, attempt: int) -> SentRequest | None:
        """The request to send after a refusal of the verbatim one: the planned one, or its repair if both are the same.
        None: retry the same, later or with another key. Raises the refusal if there is no other request.
        """
        request = self._verbatim
        if isinstance(self._call.key, KeySource) and attempt == 1 and isinstance(refusal, AuthError):
            return None
        if self._may_retry and not self.emitted and not _can_repair(refusal):
            return None
        if request is None or self.emitted or not self._may_plan or not _can_repair(refusal):
            raise refusal
        try:
            planned = self._plan()
        except AsidesError:
            raise refusal from None
        if _says_same(request.body, planned.request.body):
            repaired = self._repair(refusal, planned, may_retry=False)
            if repaired is None:
                raise refusal
            planned = repaired
        self.is_planned = True
        return planned

    def _repair(self, error: AsidesError, sent: SentRequest, *, may_retry: bool) -> SentRequest | None:
        """The repaired request after a refusal; None if there is no repair, or the caller has an event."""
        if self.emitted or not isinstance(error, ProviderError):
            return None
        if self._healer is None:
            if error.kind is None and not isinstance(error, BadRequest):
                return None
            from asides.flows.heal.repair import Healer

            self._healer = Healer(self._encode)
        return self._healer.repair(error, sent, may_retry=may_retry)

    def _wait_before_next(self, attempt: int, head: Head, error: AsidesError) -> float:
        """The seconds until the next attempt. Raises the error if there is none."""
        if self.emitted:
            raise error
        return wait_before_next(error, head, attempt, self._call.policy, self._jitter(), self._call.key)

    def _receive(self, dialect: Dialect, sent: SentRequest, began: float | None) -> Flow[Reply]:
        decoder = dialect.decoder(_choose_decode_target(sent))
        policy = self._call.policy
        repairs = () if self._healer is None else self._healer.begin_response()
        self._reader = reader = ResponseReader(
            decoder,
            sent.target.provider.name,
            (*self._call.notices, *repairs, *(notice for notice in sent.notices if notice not in repairs)),
            keep_raw=policy.keep_raw,
            limits=policy.reply_limits,
            fields=self._collect_reply_fields(sent),
            off=sent.is_off,
            nonce=self._nonce(),
            # Not a method: with it, reader and exchange would hold each other, and with them the key.
            redact=partial(_make_redactor, self._call.target, self._call.key),
            began=began,
        )
        feed, moves = reader.feed, reader.moves
        step, data = _READ, b"?"
        held: list[Event] = []
        left = policy.continuations if self._continues else 0
        while data and (decoder.failure is None or not reader.is_over):
            lost: TransportError | None = None
            try:
                data = yield step
            except TransportError as problem:
                lost, data = problem, b""
            events = feed(data) if data else reader.end_body() if lost is None and left else []
            more = None if data or lost is not None or not left else reader.continuation
            if not data and more is None:
                events = [*events, *reader.finish(lost)]
            if not self.emitted and sent.has_state:
                # A stream may begin before the server has checked the history, and may still refuse before content.
                events = held = [*held, *events]
                if data and not has_content(events):
                    events = []
            if events and (data or self.emitted or decoder.failure is None or has_content(events)):
                if moves or not self.emitted:
                    reader.stamp((yield Now()))
                if not self.emitted:
                    self._begin_delivery()
                yield Emit(events)
            if more is not None:
                left -= 1
                yield from self._open_next(dialect, sent, more)
                reader.resume()
                step, data = _READ, b"?"
            if data and (decoder.failure is not None or getattr(decoder, "done", False)):
                step = _READ_THE_REST
        if data and (events := reader.finish()) and (self.emitted or has_content(events)):
            events = events if self.emitted else [*held, *events]
            reader.stamp((yield Now()))
            self._begin_delivery()
            yield Emit(events)
        reply = reader.reply()
        if sent.has_state and any(map(is_report, reply.warnings)):
            from asides.flows.heal.repair import learn_from_reports

            learned = learn_from_reports(sent, reply.warnings)
            reply = reply.with_call(learned=(*reply.learned, *(fact for fact in learned if fact not in reply.learned)))
        _log.debug("%s: %s, %s", sent.target.provider.name, reply.stop.reason, reply.usage)
        return reply

    def _open_next(self, dialect: Dialect, sent: SentRequest, fields: Mapping[str, Any]) -> Flow[None]:
        """Open the request that continues a reply: the one that was sent, with these fields. None removes a field."""
        call, attempt = self._call, 0
        body: dict[str, Any] = msgspec.json.decode(sent.request.body, type=dict[str, msgspec.Raw]) | dict(fields)
        body = {name: value for name, value in body.items() if value is not None}
        request = msgspec.structs.replace(sent.request, body=msgspec.json.encode(body))
        while True:
            attempt += 1
            head = NO_HEAD
            try:
                if isinstance(call.key, KeySource):
                    yield from fetch_key(call.key)
                head = yield Open(request)
                if 200 <= head.status < 300:
                    return
                raise (yield from receive_error(dialect, head, sent.target))
            except (TransportError, ProviderError) as error:
                seconds = wait_before_next(error, head, attempt, call.policy, self._jitter(), call.key)
            yield Sleep(seconds)

    def _begin_delivery(self) -> None:
        """Call when the request was accepted. Remembers its repairs, even if the caller leaves the stream."""
        self.emitted = True
        if self._healer is not None:
            self._healer.remember()

    def _collect_reply_fields(self, sent: SentRequest) -> dict[str, Any]:
        """The fields of the reply that the call decides."""
        call, revealed = self._call, list[Revealed]()
        learned = sent.target.learned
        if learned:
            from asides.flows.heal.repair import select_new_facts

            learned = select_new_facts(sent, () if self._healer is None else self._healer.temporary)
        if call.target.shows_raw:
            revealed.append("thinking_raw")
        if call.policy.thinking_encrypted:
            revealed.append("thinking_encrypted")
        fields = (
            *(("revealed", tuple(revealed)), ("expected", call.expected), ("priced_by", call.target.provider.prices)),
            *(("learned", learned), ("prefix", sent.prefix), ("effort", sent.effort)),
            ("visibility", call.policy.visibility),
        )
        return {name: value for name, value in fields if value}


# Clients act on a conversation that is too long, and a gateway that hides the reason may have any.
_NOT_REPAIRED = frozenset({"context_length", "opaque_provider_error"})
# The statuses of a request that is wrong in itself. Its words need not be known: the plan may have changed just that.
_REFUSALS = frozenset({400, 422})


def _can_repair(refusal: ProviderError) -> bool:
    """Whether another request may get through what this refusal refused."""
    from asides.providers.refusals import find_other_kind, read_rejection

    rejection = read_rejection(refusal)
    if rejection is not None:
        return rejection.kind not in _NOT_REPAIRED
    if isinstance(refusal, ReplayRejected) or refusal.status in _REFUSALS:
        return not isinstance(refusal, ContextTooLong)
    return find_other_kind(str(refusal)) is not None


def _says_same(one: bytes, other: bytes) -> bool:
    """Whether two bodies are equivalent: the same JSON, except for empty fields."""
    try:
        return bool(_drop_silent(msgspec.json.decode(one)) == _drop_silent(msgspec.json.decode(other)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return one == other


def _drop_silent(body: Any) -> Any:
    """The body without members that are false, null or empty."""
    if not isinstance(body, dict):
        return body
    return {name: value for name, value in body.items() if value not in (None, False, [], {}, "")}


def _wait_for_turn(pace: Pace, seconds: float, total: float | None) -> Flow[None]:
    """Wait so long, and until the list may send again. Raises the error that ended the list meanwhile.

    The wait of the list is not that of the request, which has its `total` time again.
    """
    now: float = yield Now()
    until = now + seconds
    is_paused = False
    while True:
        if pace.error is not None:
            raise copy(pace.error)
        if pace.paused_until > max(until, now) and total is not None and not is_paused:
            is_paused = True
            yield Allow()
        left = max(until, pace.paused_until) - now
        if left <= 0:
            break
        yield Sleep(min(left, _LOOK_SECONDS))
        now = yield Now()
    if is_paused:
        yield Allow(total)


def _choose_decode_target(sent: SentRequest) -> Target:
    """The target for the decoder. With thinking off, the chat template does not open a thinking tag."""
    target = sent.target
    if not sent.is_off or not target.facts.starts_inside or target.rule.thinks_though_off:
        return target
    return settle(target, overrides={"starts_inside": False})


def _make_redactor(target: Target, key: Secret | None) -> Redact:
    return build_redactor(collect_secrets(target, key))
