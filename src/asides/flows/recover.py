"""A reply that ended without an answer is recovered: continued, asked again with less effort, or with more tokens. An
answer that does not fit `output=` is corrected, with `attempts=`.

`RecoveringExchange` wraps an exchange. Its attempts are one stream of events and one reply.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import msgspec

from asides.flows.call import Call
from asides.flows.choose_recovery import (
    NextAttempt,
    ask_for_corrected,
    choose_attempt,
    find_limit,
    find_misfit,
    find_need,
)
from asides.flows.steps import Done, Emit, Flow, Now, UseCall, advance
from asides.values.errors import AsidesError, InvalidOutput, TransportError
from asides.values.events import (
    CommentaryDelta,
    Event,
    OutputEvent,
    ReplyEnded,
    ReplyStarted,
    TextReclassified,
    ThinkingDelta,
    ThoughtSealed,
    UsageReported,
    Warned,
)
from asides.values.fold import Fold
from asides.values.learned import Learned
from asides.values.notices import Notice
from asides.values.recover_policy import RecoverPolicy
from asides.values.reply import Reply
from asides.values.thinking import Thought
from asides.values.usage import ReplyTimer, Usage

if TYPE_CHECKING:
    from asides.flows.fallback import OneExchange
    from asides.flows.run_config import Limits


def _is_of_the_answer(event: Event) -> bool:
    return isinstance(event, (OutputEvent, TextReclassified)) and not isinstance(event, CommentaryDelta)


class FirstExchange(Protocol):
    """The first attempt: an exchange, or one with fallbacks."""

    @property
    def partial(self) -> Reply | None:
        """The reply so far."""
        ...

    @property
    def emitted(self) -> bool:
        """Whether the caller got an event."""
        ...

    def steps(self) -> Flow[Reply]:
        """The flow."""
        ...


class RecoveringExchange:
    """A call in progress whose reply is recovered if it ends without an answer. `steps()` is its flow.

    Events continue in the same stream: blocks of a later attempt have higher numbers, usage is the sum, and ReplyEnded
    comes once. Thoughts of abandoned attempts stay in the reply, not replayable. A typed answer is delivered only when
    it is complete, since events cannot be taken back.
    """

    __slots__ = (
        *("_current", "_echo", "_ended", "_first", "_fold", "_get_call", "_held", "_held_blocks", "_holds", "_learned"),
        *(
            "_next_block",
            "_offset",
            "_policy",
            "_seen",
            "_spent",
            "_start",
            "_started",
            "_usage",
            "emitted",
            "requests",
        ),
    )

    def __init__(
        self,
        first: FirstExchange,
        get_call: Callable[[], Call],
        start: Callable[[Call], OneExchange],
        policy: RecoverPolicy,
        *,
        is_typed: bool = False,
    ) -> None:
        """`get_call` returns the answered call, once there is one; `start` begins an attempt with one made from it.
        `is_typed`: the answer has a type.
        """
        self._first = first
        self._get_call = get_call
        self._start = start
        self._policy = policy
        self._holds = is_typed
        self._current: FirstExchange = first
        self._fold = Fold()
        self._held: list[Event] = []
        self._held_blocks: set[int] = set()
        self._seen: set[Notice] = set()
        self._spent = self._usage = Usage()  # of the attempts before, and of the current one
        self._offset = self._next_block = 0
        self._started: ReplyStarted | None = None
        self._ended = ReplyEnded()
        self._echo: _Echo | None = None
        self._learned: list[Learned] = []
        self.emitted = False
        """Whether the caller got an event."""
        self.requests = 0
        """How many requests were made after the first."""

    @property
    def partial(self) -> Reply | None:
        """The reply so far, with the thinking of all attempts; None before it has started."""
        received = self._current.partial
        if self._fold.started is None or received is None:
            return received if self._fold.started is None else self._fold.reply()
        whole = self._join(received)
        answer = tuple(part for part in received.parts if not isinstance(part, Thought)) if self._held else ()
        return msgspec.structs.replace(whole, parts=(*whole.parts, *answer))

    def steps(self) -> Flow[Reply]:
        """The flow. An attempt that fails before its first event leaves the reply as it was, with a notice."""
        began: float = yield Now()
        self._fold.timer = ReplyTimer(began)
        reply = yield from self._run(self._first.steps())
        call = self._get_call()
        if self._policy.steps:
            reply, call = yield from self._recover(reply, call, began)
        reply, problem = yield from self._correct(reply, call, began)
        yield from self._finish()
        whole = self._join(reply)
        if problem is not None:
            problem.partial = whole
            raise problem
        return whole

    def _recover(self, reply: Reply, call: Call, began: float) -> Flow[tuple[Reply, Call]]:
        """Ask again while the reply has no answer, within the limits of the policy."""
        policy = self._policy
        left = list(policy.steps)
        while (need := find_need(reply, call)) is not None:
            found: NextAttempt | None = None
            so_far = msgspec.structs.replace(reply, usage=self._spent + self._usage)
            problem = find_limit(policy, self.requests, so_far) if left else None
            while left and found is None and problem is None:
                found = choose_attempt(left.pop(0), need, call, reply, policy)
            if found is None:
                yield from self._warn(problem or _report_end(need, self.requests))
                break
            answered = yield from self._ask_again(found, began)
            if answered is not None:
                # What one step changed stays for the next one, but for the beginning of the turn.
                reply, call = answered, found.call if found.step != "continue" else call
        return reply, call

    def _correct(self, reply: Reply, call: Call, began: float) -> Flow[tuple[Reply, InvalidOutput | None]]:
        """Ask for a corrected answer while it does not fit, `attempts` times at most. Returns what is still wrong."""
        attempts = call.policy.attempts
        problem = None if attempts is None else find_misfit(reply, call)
        for attempt in range(1, (attempts or 0) + 1):
            if problem is None:
                break
            found = ask_for_corrected(call, reply, problem, attempt)
            answered = yield from self._ask_again(found, began)
            if answered is not None:
                reply, call = answered, found.call
                problem = find_misfit(reply, call)
        return reply, problem

    def _ask_again(self, attempt: NextAttempt, began: float) -> Flow[Reply | None]:
        """Send one more request. Returns its reply; None if it failed before its first event."""
        yield from self._warn(attempt.notice)
        self.requests += 1
        before = self._current, self._held, self._held_blocks, self._fold.void_before
        self._spent, self._usage, self._offset = self._spent + self._usage, Usage(), self._next_block
        self._held, self._held_blocks = [], set()
        begun_thinking = attempt.call.prompt.begun_thinking
        self._echo = None if begun_thinking is None else _Echo(begun_thinking)
        if begun_thinking is None:
            self._fold.void_before = self._offset
        begun = self._start(attempt.call)
        self._current = _Later(begun, began)
        try:
            yield UseCall(attempt.call)
            return (yield from self._run(self._current.steps()))
        except AsidesError as error:
            if begun.emitted:
                error.partial = self.partial
                raise
            self._current, self._held, self._held_blocks, self._fold.void_before = before
            status = getattr(error, "status", None)
            what = f"{type(error).__name__}{f' ({status})' if status else ''}"
            yield from self._warn(Notice("recover_failed", f"the request failed with {what}", "recover", attempt.step))
            return None

    # --- one stream of events -----------------------------------------------------------------------------------------

    def _run(self, flow: Flow[Reply]) -> Flow[Reply]:
        """The steps of an attempt, with its events renumbered."""
        try:
            step = advance(flow)
            while not isinstance(step, Done):
                value = None
                error: TransportError | None = None
                if isinstance(step, Emit):
                    yield from self._emit([event for each in step.events for event in self._take(each)])
                else:
                    try:
                        value = yield step
                    except TransportError as problem:
                        error = problem
                step = advance(flow, value, error)
            # Remember the refusals of every attempt.
            self._learned += [each for each in step.result.learned if each not in self._learned]
            return step.result
        finally:
            flow.close()

    def _take(self, event: Event) -> list[Event]:
        """The event for the caller; None for one that is delivered later, or was delivered before."""
        if isinstance(event, ReplyStarted):
            is_first, self._started = self._started is None, event
            return [event] if is_first else []
        if isinstance(event, ReplyEnded):
            self._ended = event
            return []
        if isinstance(event, UsageReported):
            self._usage = self._usage.merge(event.usage)
            return [UsageReported(self._spent + self._usage)]
        if isinstance(event, Warned):
            is_known = self._echo is not None and event.code == "thought_though_off"  # it is the echo
            is_new = event.notice not in self._seen and not is_known
            self._seen.add(event.notice)
            return [event] if is_new else []
        if self._offset:
            event = msgspec.structs.replace(event, block=event.block + self._offset)
        if isinstance(event, ThinkingDelta) and self._echo is not None:
            text = self._echo.remove(event.text)
            if not text:
                return []
            event = msgspec.structs.replace(event, text=text)
        self._next_block = max(self._next_block, event.block + 1)
        if self._holds and (
            _is_of_the_answer(event) or (isinstance(event, ThoughtSealed) and event.block in self._held_blocks)
        ):
            self._held.append(event)
            self._held_blocks.add(event.block)
            return []
        return [event]

    def _emit(self, events: list[Event]) -> Flow[None]:
        if events:
            self._fold.feed(events)
            if self._fold.moves or not self.emitted:
                self._fold.stamp((yield Now()))
            self.emitted = True
            yield Emit(events)

    def _warn(self, notice: Notice) -> Flow[None]:
        self._seen.add(notice)
        yield from self._emit([Warned(notice)])

    def _finish(self) -> Flow[None]:
        """Deliver the answer that was held back, and the end: with the id of the last attempt, which is the reply's."""
        held, self._held = self._held, []
        started = self._ended.started or (self._started if self._started != self._fold.started else None)
        ended = msgspec.structs.replace(self._ended, started=started, void_before=self._fold.void_before)
        yield from self._emit([*held, ended])

    def _join(self, received: Reply) -> Reply:
        """The reply of the last attempt, with what all of them have in common."""
        folded = self._fold.reply(received.payloads, streamed=received.streamed)
        names = ("parts", "usage", "stop", "warnings", "model", "id", "origin", "complete", "stored")
        changes = {name: getattr(folded, name) for name in names}
        joined = msgspec.structs.replace(received, **changes)
        return joined.with_call(timing=folded.timing, learned=tuple(self._learned) or received.learned)


class _Later:
    """An attempt after the first. Its time counts from the beginning of the call."""

    __slots__ = ("_began", "_exchange")

    def __init__(self, exchange: OneExchange, began: float) -> None:
        self._exchange = exchange
        self._began = began

    @property
    def partial(self) -> Reply | None:
        return self._exchange.partial

    @property
    def emitted(self) -> bool:
        return self._exchange.emitted

    def steps(self) -> Flow[Reply]:
        return self._exchange.steps(self._began)


class _Echo:
    """The thinking that a model continues from. Drops it where a server repeats it: the caller already has it."""

    __slots__ = ("_is_over", "_place", "_text")

    def __init__(self, text: str) -> None:
        self._text = text.strip()
        self._place = 0
        """How much of it was repeated."""
        self._is_over = False

    def remove(self, text: str) -> str:
        """The part of the next thinking that is new."""
        if self._is_over:
            return text
        if not self._place:
            text = text.lstrip()
        rest = len(self._text) - self._place
        if self._text.startswith(text[:rest], self._place):
            self._place += len(text[:rest])
            new = text[rest:].lstrip() if len(text) > rest else ""
            self._is_over = bool(new)
            return new
        self._is_over = True
        return self._text[: self._place] + text


def _report_end(need: str, requests: int) -> Notice:
    tried = f"{requests} more request{'s' * (requests != 1)} did not help" if requests else "no step applies here"
    return Notice("not_recovered", f"the reply has no answer ({need}); {tried}", "recover")


_NOTHING_TO_TRY = RecoverPolicy(steps=())


def begin_recovering(call: Call) -> RecoveringExchange:
    """Begin a call for a reply: its policy says how it is recovered."""
    from asides.flows.exchange import Exchange

    policy = call.policy.recover or _NOTHING_TO_TRY
    is_typed = call.expected is not None
    if not call.is_one_of_several:
        return RecoveringExchange(Exchange(call), lambda: call, Exchange, policy, is_typed=is_typed)
    from asides.flows.fallback import ExchangeInOrder

    in_order = ExchangeInOrder(call)
    return RecoveringExchange(in_order, lambda: in_order.call, Exchange, policy, is_typed=is_typed)


def recover_step(
    first: FirstExchange,
    get_call: Callable[[], Call],
    start: Callable[[Call], OneExchange],
    limits: Limits,
    turns: int,
    tokens: int,
) -> RecoveringExchange:
    """The exchange of an agent's step, recovered within the limits of the run. `turns` and `tokens` are used."""
    call = get_call()
    policy = call.policy.recover or RecoverPolicy()
    if limits.turns is not None:
        policy = msgspec.structs.replace(policy, max_requests=min(policy.max_requests, limits.turns - turns))
    if limits.tokens is not None:
        left = limits.tokens - tokens
        most = left if policy.max_total_tokens is None else min(left, policy.max_total_tokens)
        policy = msgspec.structs.replace(policy, max_total_tokens=most)
    return RecoveringExchange(first, get_call, start, policy, is_typed=call.expected is not None)
