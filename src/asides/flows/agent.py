"""The agent loop: ask, run the tools, ask again, until there is an answer or a limit. Drivers carry out its steps."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, cast

import msgspec

from asides.flows.call import Call
from asides.flows.exchange import Exchange
from asides.flows.run_config import RunConfig
from asides.flows.steps import Allow, Emit, Flow, Now
from asides.flows.tool_turn import ToolTurn
from asides.history.finish import finish_turn
from asides.history.redact import invalidate_seals
from asides.history.turns import CallIds, add_missing_results, add_skipped_results
from asides.values.errors import AsidesError, IdleTimeout, LimitReached, TooManyTurns
from asides.values.messages import Message
from asides.values.parts import ToolCall, ToolResult
from asides.values.reply import Output, Reply
from asides.values.result import Result, RunEnded, RunOutcome, Step, StepEnded, StepStarted, sum_usage
from asides.values.usage import Usage

if TYPE_CHECKING:
    from asides.agents.outputs.expected_output import ExpectedOutput
    from asides.flows.fallback import ExchangeInOrder
    from asides.flows.output_format import OutputFormat, ReactExchange
    from asides.flows.recover import FirstExchange, RecoveringExchange
    from asides.values.notices import Notice

_log = logging.getLogger("asides")


class Save(Protocol):
    """Adds new messages of a run and their usage to a conversation."""

    def __call__(self, messages: Sequence[Message], /, *, usage: Usage | None = None) -> object:
        """Add them."""
        ...


class Run(Generic[Output]):
    """A run in progress. `steps()` is its flow; `so_far()` works at any time, also when the flow was abandoned."""

    __slots__ = (
        "_began",
        "_call_ids",
        "_calls_run",
        "_config",
        "_done",
        "_exchange",
        "_format",
        "_handed_over",
        "_has_replies",
        "_is_paired",
        "_messages",
        "_output",
        "_recovered",
        "_result",
        "_save",
        "_tokens",
        "_turn",
        "_unsaved",
        "_unsaved_steps",
        "call",
        "outcome",
    )

    def __init__(
        self,
        call: Call,
        config: RunConfig[Output],
        *,
        question: tuple[Message, ...] = (),
        save: Save | None = None,
    ) -> None:
        """`call` is the first call; later calls differ in their messages. `save` adds messages to a conversation: the
        `question`, which ends the prompt of the call, and then each message that the run makes.
        """
        self.call = call
        self.outcome: RunOutcome = "cancelled"
        self._config = config
        self._messages: tuple[Message, ...] = call.prompt.messages
        """The messages of the prompt, then those of this run."""
        self._call_ids = CallIds(self._messages)
        self._has_replies = False
        self._is_paired = False
        """Whether the last call is known to have its result. If False, the messages must be searched."""
        self._unsaved: list[Message] = list(question)
        self._unsaved_steps: list[Step] = []
        self._save = save
        self._format: OutputFormat[Output] | None = None
        if config.output_type is not None or config.mode != "native":
            from asides.flows.output_format import OutputFormat

            self._format = OutputFormat(call, config)
        self._output: Output | None = None
        self._result: Result[Output | None] | None = None  # once the flow has ended
        self._done: list[Step] = []
        self._exchange: Exchange | ReactExchange | ExchangeInOrder | RecoveringExchange | None = None
        self._turn: ToolTurn | None = None
        self._handed_over = False
        self._calls_run = self._recovered = 0
        self._tokens = 0
        self._began = 0.0

    # --- the run so far -----------------------------------------------------------------------------------------------

    def so_far(self) -> Result[Output | None]:
        """The result so far; its messages can be sent on as they are."""
        if self._result is not None:
            return self._result
        done, begun, rest = self._find_unfinished()
        steps, messages = (*done, *begun), (*self._messages, *rest)
        if not self._handed_over:  # otherwise the caller must still answer some calls
            messages = add_missing_results(messages)
        warnings = tuple(dict.fromkeys(notice for step in steps for notice in step.reply.warnings))
        return Result(self._output, messages, steps, self.outcome, warnings)

    @property
    def saves(self) -> bool:
        """Whether the messages of the run are added to a conversation."""
        return self._save is not None

    def close(self) -> None:
        """End the run: add its unfinished turn, so that the messages can be sent, and save what is not saved yet. A
        question without any reply is not saved.
        """
        done, begun, rest = self._find_unfinished()
        self._done = [*done, *begun]
        self._unsaved_steps += begun
        self._exchange = self._turn = None
        self._add(rest if self._handed_over else add_missing_results(rest, after=self._messages))
        self._save_new()

    def _find_unfinished(self) -> tuple[list[Step], list[Step], tuple[Message, ...]]:
        """The steps with a complete reply, the one with an incomplete reply, and the messages not added yet."""
        done = self._done
        if self._exchange is not None and (partial := self._exchange.partial) is not None:
            partial = self._call_ids.make_unique(partial)
            message = self._to_message(partial)
            return done, [Step(len(done) + 1, partial)], () if message is None else (message,)
        if self._turn is not None:
            results = self._turn.results
            return [*done[:-1], msgspec.structs.replace(done[-1], results=results)], [], _to_messages(results)
        return done, [], ()

    def _add(self, messages: Sequence[Message]) -> None:
        """Add messages of this run. Earlier calls without a result get one."""
        self._append(add_skipped_results(messages, after=self._messages))

    def _append(self, messages: Sequence[Message]) -> None:
        """Add messages after which no call is without a result."""
        self._messages += tuple(messages)
        self._unsaved += messages
        self._call_ids.add(messages)
        self._has_replies = self._has_replies or any(message.role == "assistant" for message in messages)
        self._is_paired = False

    def _save_new(self) -> None:
        """Save what was added since the last time. Messages that a store refused are not retried: it may have them."""
        messages: list[Message] = []
        if self._has_replies:
            messages, self._unsaved = self._unsaved, []
        steps, self._unsaved_steps = self._unsaved_steps, []
        if self._save is not None and (messages or steps):
            self._save(tuple(messages), usage=sum_usage(steps) if steps else None)

    def _to_message(self, reply: Reply) -> Message | None:
        rows = tuple(call.target.provider for call in (self.call, *self.call.fallbacks))
        message = finish_turn(reply, rows=rows)
        if message is None or self._config.mode != "react":
            return message
        # The model saw the history as text. Its thoughts are void after the history as it is.
        return invalidate_seals((message,), 0, rows=rows)[0]

    def __repr__(self) -> str:
        return f"{self._model}, {len(self._done)} steps, {self.outcome}"

    # --- the flow -----------------------------------------------------------------------------------------------------

    def steps(self) -> Flow[Result[Output]]:
        """The flow. Every AsidesError that leaves it carries the result so far."""
        try:
            yield from self._work()
            self._save_new()
        except AsidesError as error:
            self.outcome = "limit" if isinstance(error, LimitReached) else "failed"
            error.result = self.so_far()
            yield Emit([self._end(error.result)])
            raise
        except Exception:
            # An error in code of the caller, such as a validator of the output type.
            self.outcome = "failed"
            yield Emit([self._end(self.so_far())])
            raise
        self._result = self.so_far()
        yield Emit([self._end(self._result)])
        return cast("Result[Output]", self._result)

    def _end(self, result: Result[Any]) -> RunEnded:
        _log.debug("run: %s after %d steps", self.outcome, len(result.steps))
        return RunEnded(self.outcome, len(result.steps), result.usage)

    def _work(self) -> Flow[None]:
        if self._config.limits.seconds is not None:
            self._began = yield Now()
        ask_again = True
        while ask_again:
            number = len(self._done) + 1
            yield from self._check_limits()
            yield Emit([StepStarted(number)])
            reply = yield from self._ask()
            outcome = reply.outcome
            # No answer and no calls, though nothing prevented them.
            is_blank = outcome in ("unterminated", "unanswered") and reply.stop.reason != "pause"
            self._add_step(Step(number, reply), is_blank=is_blank)
            calls = reply.tool_calls if self._format is None else self._format.find_calls(reply)
            if calls:
                yield from self._run_tools(calls, reply, number)
            problem = self._try_to_save()
            yield Emit([StepEnded(number, outcome, reply.usage)])
            if problem is not None:
                raise problem
            self.outcome = outcome
            if self._handed_over:
                return
            if is_blank and number > 1 and self._done[-2].results:
                # Some models send an empty reply after tool results, and answer when they are asked again.
                continue
            ask_again = bool(calls) or reply.stop.reason == "pause" or self._take_answer(reply)

    def _try_to_save(self) -> Exception | None:
        """Save the step. Returns the error of the store instead of raising: the step has ended anyway."""
        try:
            self._save_new()
        except Exception as problem:  # noqa: BLE001 - a store may raise anything
            return problem
        return None

    def _ask(self) -> Flow[Reply]:
        in_order = None
        if self.call.is_one_of_several:
            from asides.flows.fallback import ExchangeInOrder

            in_order = ExchangeInOrder(self.call, self._start_exchange)
        self._exchange = self._start_exchange(self.call) if in_order is None else in_order
        if self.call.policy.recover is not None:
            self._exchange = self._recover(self._exchange, in_order)
        try:
            reply = yield from self._exchange.steps()
        except IdleTimeout:
            # The driver has one deadline. The run has to check whether it was the deadline of the run or of the call.
            yield from self._check_seconds()
            raise
        if in_order is not None:
            self.call = in_order.next_call  # The run continues with the model that answered.
        return self._call_ids.make_unique(reply)

    def _recover(self, first: FirstExchange, in_order: ExchangeInOrder | None) -> RecoveringExchange:
        from asides.flows.recover import recover_step

        def get_call() -> Call:
            expected = None if self._format is None else self._format.expected_now
            return msgspec.structs.replace(self.call if in_order is None else in_order.call, expected=expected)

        def start(call: Call) -> Exchange | ReactExchange:
            self._recovered += 1
            return self._start_exchange(call)

        turns = len(self._done) + self._recovered + 1
        return recover_step(first, get_call, start, self._config.limits, turns, self._tokens)

    def _start_exchange(self, call: Call, fell_back: tuple[Notice, ...] = ()) -> Exchange | ReactExchange:
        if self._format is not None:
            self._format.use_call(call)
        call = self._build_call(call, fell_back)
        return Exchange(call) if self._format is None else self._format.start_exchange(call)

    def _build_call(self, call: Call, fell_back: tuple[Notice, ...]) -> Call:
        prompt = call.prompt
        changes: dict[str, Any] = {"messages": self._messages}
        if self._done:
            last = self._done[-1].reply
            if prompt.tool_choice not in (None, "none"):
                # The model has called the forced tool. Forced again, it would call it endlessly.
                changes["tool_choice"] = "auto"
            if prompt.state.previous_response_id is not None and last.stored and last.id:
                changes["state"] = msgspec.structs.replace(prompt.state, previous_response_id=last.id)
        prompt = msgspec.structs.replace(prompt, **changes)
        notices = fell_back if self._done else (*fell_back, *call.notices)  # reported once
        expected = call.expected
        if self._format is not None:
            prompt = self._format.build_prompt(prompt)
            notices = notices if self._done else (*notices, *self._format.notices)
            expected = self._format.expected
        return msgspec.structs.replace(call, prompt=prompt, notices=notices, expected=expected)

    @property
    def expected(self) -> ExpectedOutput | None:
        """Expected output type of the last reply; None: text."""
        return None if self._format is None else self._format.expected

    def _add_step(self, step: Step, *, is_blank: bool) -> None:
        message = self._to_message(step.reply)
        self._exchange = None
        self._done.append(step)
        self._unsaved_steps.append(step)
        self._tokens += _count_tokens(step.reply.usage)
        if message is not None and not is_blank:
            (self._append if self._is_paired else self._add)((message,))

    def _run_tools(self, calls: tuple[ToolCall, ...], reply: Reply, number: int) -> Flow[None]:
        turn = ToolTurn(calls, self._config, number)
        most = self._config.limits.tool_calls
        if most is not None and self._calls_run + turn.run_count > most:
            raise LimitReached(
                f"{self._model} asked for more than {most} tool calls. Raise Limits(tool_calls=…); .result has "
                "the run so far.",
                limit="tool_calls",
            )
        self._calls_run += turn.run_count
        self._turn = turn
        yield from self._check_seconds()
        yield from turn.steps(self._check_seconds)
        self._turn = None
        results = turn.results
        self._done[-1] = msgspec.structs.replace(self._done[-1], results=results)
        postponed = () if self._format is None else self._format.postpone_answer(reply)
        self._append((*_to_messages(results), *postponed))
        self._is_paired = len(results) == len(reply.tool_calls)
        self._handed_over = turn.hands_over

    def _take_answer(self, reply: Reply) -> bool:
        """Take the answer. Returns whether the model must be asked again, because its form is wrong or not final."""
        if self._format is None:
            self._output = reply.text  # type: ignore[assignment] # without an output type, Output is str
            return False
        answer = self._format.take_answer(reply)
        self._add(answer.messages)
        if answer.ask_again:
            return True
        self._output = answer.output
        if self.outcome == "tool_calls":
            self.outcome = "answered"  # the call of the final tool carries the answer
        return False

    # --- limits -------------------------------------------------------------------------------------------------------

    @property
    def _model(self) -> str:
        return f"{self.call.target.provider.name}:{self.call.target.model}"

    def _check_limits(self) -> Flow[None]:
        limits = self._config.limits
        if limits.turns is not None and len(self._done) + self._recovered >= limits.turns:
            raise TooManyTurns(
                f"{self._model} did not finish in {limits.turns} turns. Raise Limits(turns=…), or continue from "
                ".result.messages.",
                limit="turns",
            )
        if limits.tokens is not None and self._tokens >= limits.tokens:
            raise LimitReached(
                f"{self._model} has used {self._tokens} tokens of {limits.tokens}. Raise Limits(tokens=…), or "
                "continue from .result.messages.",
                limit="tokens",
            )
        left = yield from self._check_seconds()
        total = self.call.policy.timeout.total
        seconds = [limit for limit in (left, total) if limit is not None]
        if seconds:
            yield Allow(min(seconds))

    def _check_seconds(self) -> Flow[float | None]:
        """The seconds left for the run; None when it has no limit. Raises LimitReached when none are left."""
        most = self._config.limits.seconds
        if most is None:
            return None
        now: float = yield Now()
        left = most - (now - self._began)
        if left <= 0:
            raise LimitReached(
                f"{self._model} did not finish within {most:g} seconds. Raise Limits(seconds=…), or continue from "
                ".result.messages.",
                limit="seconds",
            )
        return left


def _count_tokens(usage: Usage) -> int:
    return usage.total if usage.total is not None else (usage.input or 0) + (usage.output or 0)


def _to_messages(results: tuple[ToolResult, ...]) -> tuple[Message, ...]:
    return tuple(Message("tool", (result,)) for result in results)
