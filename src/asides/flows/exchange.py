"""One request → one reply: plan, encode, open, try again, decode, fold. A flow: it asks, the shells do.

Not here: sockets, clocks and waiting (shells), and when to try again (retry).
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import msgspec

from asides.dialects import find as find_dialect
from asides.dialects.dialect import Decoder, Dialect
from asides.errors import AsidesError, ProviderError, TransportError, redacted
from asides.events import Event, Warned
from asides.flows.call import Call
from asides.flows.retry import Retry, verdict, wait_demanded
from asides.flows.steps import Emit, Flow, Head, Open, Read, Sleep
from asides.notices import Notice
from asides.plan import Plan, plan
from asides.providers.provider import Target
from asides.reply import Fold, Reply

ERROR_BODY_LIMIT = 64 * 1024

# Counts and names only: never content, thinking, seals or keys, not even at DEBUG (contract, §4.10).
_log = logging.getLogger("asides")

_READ = Read()
# Behind its last word a server ends the body or hangs up; some forget to do either.
_READ_THE_REST = Read(patience=0.5)
_NO_HEAD = Head(0, {})


class Exchange:
    """A call under way. `steps()` is its flow; `partial` may be asked at any time, also when nobody drives it on."""

    __slots__ = ("_call", "_decoder", "_fold", "_jitter", "_thinks", "_to_the_end", "emitted")

    def __init__(self, call: Call, *, jitter: Callable[[], float] = random.random) -> None:
        self._call = call
        self._jitter = jitter
        self._fold = Fold()
        self._decoder: Decoder | None = None
        self._to_the_end = False
        self._thinks = True
        self.emitted = False
        """Whether the caller was handed an event: from then on nothing is tried again."""

    @property
    def partial(self) -> Reply | None:
        """What has arrived; None when nothing had started."""
        if self._fold.started is None or self._decoder is None:
            return None
        return self._fold.reply(self._payloads(self._decoder), streamed=self._decoder.streamed)

    def steps(self) -> Flow[Reply]:
        """The flow. Every AsidesError that leaves it carries what had arrived."""
        call = self._call
        with self._telling_partial():
            planned = plan(call.prompt, call.target, on_conflict=call.policy.on_conflict)
            dialect = find_dialect(call.target.dialect)
            request, spelled = dialect.encode(planned.prompt, call.target)
            warned: list[Event] = [Warned(notice) for notice in (*call.notices, *planned.notices, *spelled)]
            self._thinks = planned.prompt.thinking.mode != "off"
            _log_plan(call.target.provider.name, planned)
            attempt = 0
            while True:
                attempt += 1
                head = _NO_HEAD
                try:
                    _log.debug("%s: attempt %d, %d bytes", call.target.provider.name, attempt, len(request.body))
                    head = yield Open(request)
                    _log.debug("%s: status %d", call.target.provider.name, head.status)
                    if 200 <= head.status < 300:
                        return (yield from self._receive(dialect, warned))
                    raise (yield from self._refusal(dialect, head))
                except (TransportError, ProviderError) as error:
                    seconds = self._wait_before_next(attempt, head, error)
                _log.debug("%s: trying again in %.2f s", call.target.provider.name, seconds)
                yield Sleep(seconds)

    def reading(self, head: Head, notices: Sequence[Notice] = ()) -> Flow[Reply]:
        """The second half of the flow alone, for a response that is there already."""
        dialect = find_dialect(self._call.target.dialect)
        # Nobody waits for bytes that are there: what follows an error is read too, so that any chunking gives the same.
        self._to_the_end = True
        with self._telling_partial():
            if 200 <= head.status < 300:
                return (yield from self._receive(dialect, [Warned(notice) for notice in notices]))
            raise (yield from self._refusal(dialect, head))

    @contextmanager
    def _telling_partial(self) -> Generator[None, None, None]:
        try:
            yield
        except AsidesError as error:
            if error.partial is None:
                error.partial = self.partial
            raise

    def _wait_before_next(self, attempt: int, head: Head, error: AsidesError) -> float:
        """The seconds until the next attempt; raises the error when there is to be none."""
        if self.emitted:
            raise error
        settled = verdict(
            head.status if head.status >= 300 else error,
            head.headers,
            attempt=attempt,
            policy=self._call.policy,
            jitter=self._jitter(),
            received=head.received,
        )
        if isinstance(settled, Retry):
            return settled.seconds
        if settled.why:
            error.args = (f"{error} {settled.why}", *error.args[1:])
        raise error

    def _receive(self, dialect: Dialect, warned: list[Event]) -> Flow[Reply]:
        self._fold = fold = Fold()
        self._decoder = decoder = dialect.decoder(self._target_answering())
        keep_raw = self._call.policy.keep_raw
        feed, take = decoder.feed, fold.take
        lost: TransportError | None = None
        at_end = False
        step = _READ
        while not at_end:
            try:
                data: bytes = yield step
            except TransportError as problem:
                lost, data = problem, b""
            events = feed(data) if data else []
            at_end = not data or (decoder.failure is not None and not self._to_the_end)
            if at_end:
                events = [*events, *_last_events(decoder, lost)]
            elif getattr(decoder, "done", False):
                step = _READ_THE_REST
            if not keep_raw:
                decoder.payloads.clear()
            if events:
                if warned:
                    # Behind ReplyStarted, which stays the first event.
                    events = [events[0], *warned, *events[1:]]
                    warned = []
                take(events)
                self.emitted = True
                yield Emit(events)
        if decoder.failure is not None:
            # Of two accounts of the same end, the shell's says more: it knows how the connection ended.
            raise decoder.failure if lost is None else lost
        reply = fold.reply(self._payloads(decoder), streamed=decoder.streamed)
        _log.debug("%s: %s, %s", self._call.target.provider.name, reply.stop.reason, reply.usage)
        return reply

    def _target_answering(self) -> Target:
        """The target as its answer is to be read: without thinking, no template has opened a tag."""
        target = self._call.target
        if self._thinks or not target.rule.starts_inside:
            return target
        return msgspec.structs.replace(target, rule=msgspec.structs.replace(target.rule, starts_inside=False))

    def _refusal(self, dialect: Dialect, head: Head) -> Flow[ProviderError]:
        """The error that a bad status is, from as much of its body as is worth reading."""
        target = self._call.target
        if 300 <= head.status < 400:
            return _redirected(target.provider.name, head)
        body = b""
        try:
            while len(body) < ERROR_BODY_LIMIT and (data := (yield _READ)):
                body += data
        except TransportError:
            pass  # The status is what counts; the body only says it in words.
        error = dialect.error(head.status, head.headers, body[:ERROR_BODY_LIMIT], target)
        if error.retry_after is None:
            error.retry_after = wait_demanded(head.headers, head.received)
        return error

    def _payloads(self, decoder: Decoder) -> list[bytes]:
        return decoder.payloads if self._call.policy.keep_raw else []


def _log_plan(who: str, planned: Plan) -> None:
    if planned.decisions and _log.isEnabledFor(logging.DEBUG):
        kept = sum(decision.action == "keep" for decision in planned.decisions)
        _log.debug("%s: of %d earlier parts %d go back", who, len(planned.decisions), kept)


def _last_events(decoder: Decoder, lost: TransportError | None) -> list[Event]:
    """What the end of the bytes brings. Many servers hang up without ceremony behind their last word; if it was that,
    nothing is missing, and it is only worth a notice.
    """
    events = decoder.finish()
    if lost is None or decoder.failure is not None:
        return events
    notice = Notice("connection_lost_at_end", "the connection broke behind the last word; nothing is missing")
    return [*events[:-1], Warned(notice), events[-1]]


def _redirected(provider: str, head: Head) -> ProviderError:
    where = redacted(head.headers.get("location", "another address"))
    return ProviderError(
        f"{provider} answered {head.status} and points to {where}. Redirects are not followed, since the key would "
        "travel along. To do: set base_url= to the new address.",
        status=head.status,
    )


def exchange(call: Call, *, jitter: Callable[[], float] = random.random) -> Flow[Reply]:
    """The flow of one call; `Exchange` is for those who also want `partial` while it runs."""
    return Exchange(call, jitter=jitter).steps()
