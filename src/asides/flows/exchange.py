"""One request → one reply: plan, encode, open, try again, decode, fold. A flow: it asks, the shells do.

Not here: sockets, clocks and waiting (shells), and when to try again (retry).
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from asides.dialects import find_dialect
from asides.dialects.dialect import Dialect, HttpRequest
from asides.flows.attempts import NO_HEAD, read_refusal, wait_before_next
from asides.flows.call import Call
from asides.flows.heal import MEMORY, Repair, RepairKind, heal, prepare
from asides.flows.response_reader import ResponseReader
from asides.flows.steps import Emit, Flow, Head, Open, Read, Sleep
from asides.history.plan import Plan, plan
from asides.providers.provider import Target
from asides.values.errors import AsidesError, ProviderError, TransportError
from asides.values.messages import Prompt
from asides.values.notices import Notice
from asides.values.reply import Reply, Revealed

# Counts and names only: never content, thinking, seals or keys, not even at DEBUG (contract, §4.10).
_log = logging.getLogger("asides")

_READ = Read()
# Behind its last word a server ends the body or hangs up; some forget to do either.
_READ_THE_REST = Read(patience=0.5)


class Exchange:
    """A call under way. `steps()` is its flow; `partial` may be asked at any time, also when nobody drives it on."""

    __slots__ = ("_call", "_jitter", "_reading", "_thinks", "emitted")

    def __init__(self, call: Call, *, jitter: Callable[[], float] = random.random) -> None:
        self._call = call
        self._jitter = jitter
        self._reading: ResponseReader | None = None
        self._thinks = True
        self.emitted = False
        """Whether the caller was handed an event: from then on nothing is tried again."""

    @property
    def partial(self) -> Reply | None:
        """What has arrived; None when nothing had started."""
        return None if self._reading is None else self._reading.partial

    def steps(self) -> Flow[Reply]:
        """The flow. Every AsidesError that leaves it carries what had arrived."""
        call = self._call
        with self._telling_partial():
            dialect = find_dialect(call.target.dialect)
            prompt, known = prepare(call.prompt, call.target, call.key, MEMORY)
            healed: list[RepairKind] = []
            told: list[Notice] = [*call.notices, *known]
            request, warned = self._request(prompt, dialect, told)
            attempt = 0
            while True:
                attempt += 1
                head = NO_HEAD
                try:
                    _log.debug("%s: attempt %d, %d bytes", call.target.provider.name, attempt, len(request.body))
                    head = yield Open(request)
                    _log.debug("%s: status %d", call.target.provider.name, head.status)
                    if 200 <= head.status < 300:
                        return (yield from self._receive(dialect, warned))
                    raise (yield from read_refusal(dialect, head, call.target))
                except (TransportError, ProviderError) as error:
                    repair = self._repair(error, prompt, healed)
                    seconds = self._wait_before_next(attempt, head, error) if repair is None else 0.0
                if repair is not None:
                    # Another request, not the same one again: it has its attempts to itself.
                    attempt, prompt = 0, repair.prompt
                    healed.append(repair.kind)
                    told.append(repair.notice)
                    request, warned = self._request(prompt, dialect, told)
                    continue
                _log.debug("%s: trying again in %.2f s", call.target.provider.name, seconds)
                yield Sleep(seconds)

    def _request(
        self, prompt: Prompt, dialect: Dialect, told: Sequence[Notice]
    ) -> tuple[HttpRequest, Sequence[Notice]]:
        call = self._call
        planned = plan(prompt, call.target, on_conflict=call.policy.on_conflict)
        request, spelled = dialect.encode(planned.prompt, call.target)
        self._thinks = planned.prompt.thinking.mode != "off"
        _log_plan(call.target.provider.name, planned)
        return request, (*told, *planned.notices, *spelled)

    def _repair(self, error: AsidesError, prompt: Prompt, healed: Sequence[RepairKind]) -> Repair | None:
        if self.emitted or not isinstance(error, ProviderError):
            return None
        repair = heal(error, prompt, healed)
        if repair is not None:
            _log.debug("%s: %s; asked again", self._call.target.provider.name, repair.notice.code)
            if repair.kind == "summary":
                MEMORY.note(self._call.target, self._call.key)
        return repair

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
        return wait_before_next(error, head, attempt, self._call.policy, self._jitter())

    def _receive(self, dialect: Dialect, notices: Sequence[Notice]) -> Flow[Reply]:
        self._reading = reading = ResponseReader(
            dialect.decoder(self._target_answering()),
            notices,
            keep_raw=self._call.policy.keep_raw,
            revealed=self._revealed(),
        )
        take = reading.take
        step = _READ
        data = b"?"
        while data and not reading.failed:
            lost: TransportError | None = None
            try:
                data = yield step
            except TransportError as problem:
                lost, data = problem, b""
            events = take(data) if data else reading.end(lost)
            if events:
                self.emitted = True
                yield Emit(events)
            if reading.done:
                step = _READ_THE_REST
        if data and (events := reading.end()):
            yield Emit(events)
        reply = reading.reply()
        _log.debug("%s: %s, %s", self._call.target.provider.name, reply.stop.reason, reply.usage)
        return reply

    def _target_answering(self) -> Target:
        """The target as its answer is to be read: without thinking, no template has opened a tag."""
        target = self._call.target
        if self._thinks or not target.facts.starts_inside or target.rule.thinks_though_off:
            return target
        return target.override(starts_inside=False)

    def _revealed(self) -> tuple[Revealed, ...]:
        revealed: list[Revealed] = []
        if self._call.target.shows_raw:
            revealed.append("thinking_raw")
        if self._call.policy.thinking_encrypted:
            revealed.append("thinking_encrypted")
        return tuple(revealed)


def _log_plan(who: str, planned: Plan) -> None:
    if planned.decisions and _log.isEnabledFor(logging.DEBUG):
        kept = sum(decision.action == "keep" for decision in planned.decisions)
        _log.debug("%s: of %d earlier parts %d go back", who, len(planned.decisions), kept)
