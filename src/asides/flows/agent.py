"""The loop: ask, run the tools, ask again, until there is an answer or a limit. A flow: it asks, the shells do.

Not here: one question (asking), the calls of one reply (tool_turn), the form of a typed answer (forming).
"""

from __future__ import annotations

import logging
from typing import Generic, cast

import msgspec

from asides.flows.call import Call
from asides.flows.output_format import Form
from asides.flows.run_config import RunConfig
from asides.flows.step_request import Asking
from asides.flows.steps import Allow, Emit, Flow, Now
from asides.flows.tool_turn import ToolTurn
from asides.history.finish_turn import finish_turn
from asides.history.pair import add_missing_results
from asides.values.errors import AsidesError, IdleTimeout, LimitReached, TooManyTurns
from asides.values.messages import Message, Part, ToolCall, ToolResult
from asides.values.reply import Reply
from asides.values.result import Output, Result, RunEnded, RunOutcome, Step, StepEnded, StepStarted, sum_usage
from asides.values.usage import Usage

_log = logging.getLogger("asides")


class Run(Generic[Output]):
    """A run under way. `steps()` is its flow; `so_far()` may be asked at any time, also when nobody drives it on."""

    __slots__ = (
        "_asking",
        "_began",
        "_calls_run",
        "_counted",
        "_done",
        "_form",
        "_handed_over",
        "_known",
        "_messages",
        "_turn",
        "call",
        "errand",
        "outcome",
    )

    def __init__(self, call: Call, errand: RunConfig[Output], *, known: int = 0) -> None:
        """`call` is the first; later ones differ in their messages. `known` is how many of those the conversation has
        already.
        """
        self.call = call
        self.errand = errand
        self.outcome: RunOutcome = "cancelled"
        self._messages: tuple[Message, ...] = call.prompt.messages
        self._known = known
        self._form = Form(call, errand)
        self._done: list[Step] = []
        self._asking: Asking | None = None
        self._turn: ToolTurn | None = None
        self._handed_over = False
        self._calls_run = 0
        self._counted = 0
        self._began = 0.0

    # --- what there is of it ------------------------------------------------------------------------------------------

    def so_far(self) -> Result[Output | None]:
        """What the run has come to; its messages can be sent on as they are."""
        steps = tuple(self._done)
        if self._asking is not None and (partial := self._asking.partial) is not None:
            steps = (*steps, Step(len(steps) + 1, partial))
        elif self._turn is not None:
            steps = (*steps[:-1], msgspec.structs.replace(steps[-1], results=self._turn.results))
        warnings = tuple(dict.fromkeys(notice for step in steps for notice in step.reply.warnings))
        return Result(self._form.output, self._whole_messages(), steps, self.outcome, warnings)

    def news(self) -> tuple[Message, ...]:
        """The messages that the conversation does not have yet; it is taken to have them now."""
        fresh = self._messages[self._known :]
        self._known = len(self._messages)
        return fresh

    def spent(self) -> Usage | None:
        """What the steps cost that this was not asked for yet; None where there is none."""
        fresh, self._counted = self._done[self._counted :], len(self._done)
        return sum_usage(fresh) if fresh else None

    def seal(self) -> None:
        """The run goes no further: what came of the turn under way becomes part of the messages, so that they can be
        sent. A question that nothing came of is no news.
        """
        messages = self._whole_messages()
        self._done = list(self.so_far().steps)
        self._asking = self._turn = None
        given = len(self.call.prompt.messages)
        if not any(message.role == "assistant" for message in messages[given:]):
            self._known = len(messages)
        self._messages = messages

    def _whole_messages(self) -> tuple[Message, ...]:
        messages = self._messages
        if self._asking is not None and (left := self._sealed(self._asking.partial)) is not None:
            messages = (*messages, left)
        elif self._turn is not None:
            messages = (*messages, *_told(self._turn.results))
        # Calls that the caller runs himself are still to be answered, by him.
        return messages if self._handed_over else add_missing_results(messages)

    def _sealed(self, reply: Reply | None) -> Message | None:
        return finish_turn(reply, rows=(self.call.target.provider,))

    def __repr__(self) -> str:
        target = self.call.target
        return f"{target.provider.name}:{target.model}, {len(self._done)} steps, {self.outcome}"

    # --- the flow -----------------------------------------------------------------------------------------------------

    def steps(self) -> Flow[Result[Output]]:
        """The flow. Every AsidesError that leaves it carries what the run had come to."""
        try:
            yield from self._work()
        except AsidesError as error:
            self.outcome = "limit" if isinstance(error, LimitReached) else "failed"
            error.result = self.so_far()
            yield Emit([self._ended()])
            raise
        except Exception:
            # Not ours: code of the caller's that runs in here, such as the validators of his types.
            self.outcome = "failed"
            yield Emit([self._ended()])
            raise
        yield Emit([self._ended()])
        return cast("Result[Output]", self.so_far())

    def _ended(self) -> RunEnded:
        result = self.so_far()  # with the step that broke off, if one did
        _log.debug("run: %s after %d steps", self.outcome, len(result.steps))
        return RunEnded(self.outcome, len(result.steps), result.usage)

    def _work(self) -> Flow[None]:
        self._began = yield Now()
        going_on = True
        while going_on:
            number = len(self._done) + 1
            yield from self._check_limits()
            yield Emit([StepStarted(number)])
            reply = yield from self._ask(number)
            if calls := self._form.calls(reply):
                yield from self._run_tools(calls, reply, number)
            yield Emit([StepEnded(number, reply.outcome, reply.usage)])
            self.outcome = reply.outcome
            if self._handed_over:
                return
            if _is_blank(reply) and number > 1 and self._done[-2].results:
                # Some models fall silent behind the results of tools, and speak when they are asked once more.
                continue
            going_on = bool(calls) or reply.stop.reason == "pause" or self._take(reply)

    def _take(self, reply: Reply) -> bool:
        """Take the answer; whether the model is to be asked again, for another form of what it said."""
        taking = self._form.take(reply)
        self._messages = (*self._messages, *taking.messages)
        if not taking.again and reply.outcome == "tool_calls":
            self.outcome = "answered"  # by the call that brings the answer
        return taking.again

    def _ask(self, number: int) -> Flow[Reply]:
        self._asking = Asking(self._call(), self.errand.mode)
        try:
            reply = yield from self._asking.steps()
        except IdleTimeout:
            # The shell knows one clock; whose time is over, the call's or the run's, is known here.
            yield from self._check_seconds()
            raise
        reply = _with_own_ids(reply, self._messages)
        message = self._sealed(reply)
        self._asking = None
        self._done.append(Step(number, reply))
        if message is not None and not _is_blank(reply):
            self._messages = (*self._messages, message)
        return reply

    def _call(self) -> Call:
        call = self.call
        prompt = msgspec.structs.replace(call.prompt, messages=self._messages)
        if self._done:
            last = self._done[-1].reply
            if prompt.tool_choice not in (None, "none"):
                # What was forced has been called; forced again it would be called for ever.
                prompt = msgspec.structs.replace(prompt, tool_choice="auto")
            if prompt.state.previous_response_id is not None and last.stored and last.id:
                state = msgspec.structs.replace(prompt.state, previous_response_id=last.id)
                prompt = msgspec.structs.replace(prompt, state=state)
        notices = () if self._done else (*call.notices, *self._form.notices)  # told once
        return msgspec.structs.replace(call, prompt=self._form.dress(prompt), notices=notices)

    def _run_tools(self, calls: tuple[ToolCall, ...], reply: Reply, number: int) -> Flow[None]:
        turn = ToolTurn(calls, self.errand, number)
        most = self.errand.limits.tool_calls
        if most is not None and self._calls_run + turn.runs > most:
            raise LimitReached(
                f"{self.who} asked for more than {most} calls of tools. To do: raise Limits(tool_calls=…); .result has "
                "what there is.",
                limit="tool_calls",
            )
        self._calls_run += turn.runs
        self._turn = turn
        yield from self._check_seconds()
        yield from turn.steps(self._check_seconds)
        self._turn = None
        self._done[-1] = msgspec.structs.replace(self._done[-1], results=turn.results)
        self._messages = (*self._messages, *_told(turn.results), *self._form.put_off(reply))
        self._handed_over = turn.handed_over

    # --- limits -------------------------------------------------------------------------------------------------------

    @property
    def who(self) -> str:
        """The model, for messages."""
        return f"{self.call.target.provider.name}:{self.call.target.model}"

    def _check_limits(self) -> Flow[None]:
        limits = self.errand.limits
        if limits.turns is not None and len(self._done) >= limits.turns:
            raise TooManyTurns(
                f"{self.who} came to no end in {limits.turns} turns. To do: raise Limits(turns=…), or go on from "
                ".result.messages.",
                limit="turns",
            )
        spent = sum(_tokens(step.usage) for step in self._done)
        if limits.tokens is not None and spent >= limits.tokens:
            raise LimitReached(
                f"{self.who} has used {spent} tokens of {limits.tokens}. To do: raise Limits(tokens=…), or go on from "
                ".result.messages.",
                limit="tokens",
            )
        left = yield from self._check_seconds()
        total = self.call.policy.timeout.total
        yield Allow(min((seconds for seconds in (left, total) if seconds is not None), default=None))

    def _check_seconds(self) -> Flow[float | None]:
        """What is left of the run's time; None where it has no limit."""
        most = self.errand.limits.seconds
        if most is None:
            return None
        now: float = yield Now()
        left = most - (now - self._began)
        if left <= 0:
            raise LimitReached(
                f"{self.who} came to no end within {most:g} seconds. To do: raise Limits(seconds=…), or go on from "
                ".result.messages.",
                limit="seconds",
            )
        return left


def _is_blank(reply: Reply) -> bool:
    """Whether it has neither words nor calls, though nothing hindered it."""
    return reply.outcome == "unterminated" and reply.stop.reason != "pause"


def _tokens(usage: Usage) -> int:
    return usage.total if usage.total is not None else (usage.input or 0) + (usage.output or 0)


def _told(results: tuple[ToolResult, ...]) -> tuple[Message, ...]:
    return tuple(Message("tool", (result,)) for result in results)


def _with_own_ids(reply: Reply, messages: tuple[Message, ...]) -> Reply:
    """The reply, its calls told apart from all earlier ones and from one another: some servers give no ids, and some
    begin anew with every reply.
    """
    taken = {call.id for message in messages for call in message.tool_calls}
    parts: list[Part] = []
    for part in reply.parts:
        if isinstance(part, ToolCall):
            name, count = part.id, 1
            while name in taken:
                count += 1
                name = f"{part.id}_{count}"
            taken.add(name)
            part = part if name == part.id else msgspec.structs.replace(part, id=name)
        parts.append(part)
    return msgspec.structs.replace(reply, parts=tuple(parts))
