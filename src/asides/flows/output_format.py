"""Runs whose answer is not plain text, or whose tools are called in text: typed answers, ReAct, or both."""

from __future__ import annotations

from typing import Generic

import msgspec

from asides.agents.outputs.expected_output import ExpectedOutput
from asides.agents.outputs.output_type import OutputMismatch
from asides.agents.outputs.parse_output import find_pending_calls, parse_output, postpone_answer
from asides.agents.outputs.strategy import (
    Strategy,
    apply_strategy,
    ask_for_correction,
    ask_for_json,
    choose_strategy,
)
from asides.agents.react.calls import build_correction, find_problem
from asides.agents.react.encode_prompt import encode_prompt
from asides.agents.react.translator import Translator
from asides.flows.call import Call
from asides.flows.exchange import Exchange, make_nonce
from asides.flows.run_config import RunConfig
from asides.flows.steps import Done, Emit, Flow, Now, advance
from asides.values.errors import InvalidOutput, TransportError
from asides.values.fold import Fold
from asides.values.messages import Message, Prompt
from asides.values.notices import Notice
from asides.values.parts import ToolCall, ToolResult
from asides.values.reply import Output, Reply
from asides.values.usage import ReplyTimer


class Answer(msgspec.Struct, Generic[Output], frozen=True):
    """The result of a reply without calls to run: an answer, or messages to ask again with."""

    output: Output | None = None
    messages: tuple[Message, ...] = ()
    """Messages to add to the conversation."""
    ask_again: bool = False


class OutputFormat(Generic[Output]):
    """Builds the prompts and parses the answers of one run."""

    __slots__ = (
        *("_attempts_left", "_call", "_config", "_formed", "_is_final", "_problem", "_strategy"),
        *("expected", "notices"),
    )

    def __init__(self, call: Call, config: RunConfig[Output]) -> None:
        self._call = call
        self._config = config
        self._attempts_left = config.attempts
        self._is_final = False
        self._problem: str | None = None
        self._formed: tuple[Prompt, bool, Prompt] | None = None
        """The last prompt without its messages, whether it was the final one, and the prompt built from it."""
        self._strategy: Strategy | None = None
        self.notices: tuple[Notice, ...] = ()
        self._choose_strategy()

    def use_call(self, call: Call) -> None:
        """Continue with another model, which may need another way to ask for the output type."""
        if call.target is not self._call.target:
            self._call = call
            self._formed = None
            self._choose_strategy()

    def _choose_strategy(self) -> None:
        call, config = self._call, self._config
        if config.output_type is not None:
            in_text = config.mode == "react"
            self._strategy = choose_strategy(config.output_type, call.prompt, call.target, in_text=in_text)
            self.notices = self._strategy.notices
        self.expected: ExpectedOutput | None = None
        """Expected output type of the last reply."""
        if config.output_type is not None and self._strategy is not None:
            self.expected = ExpectedOutput(config.output_type.source, self._strategy)

    @property
    def expected_now(self) -> ExpectedOutput | None:
        """Expected output type of the next reply, if it has no calls; None: text, as in the first of two phases."""
        is_later = self._strategy is not None and self._strategy.two_phase and not self._is_final
        return None if is_later and self._call.prompt.tools else self.expected

    def build_prompt(self, prompt: Prompt) -> Prompt:
        """The prompt of the next step. The form is built once; most steps differ only in their messages."""
        if self._config.output_type is None or self._strategy is None:
            return prompt
        bare = msgspec.structs.replace(prompt, messages=())
        if self._formed is None or self._formed[:2] != (bare, self._is_final):
            formed = apply_strategy(bare, self._config.output_type, self._strategy, final=self._is_final)
            self._formed = bare, self._is_final, formed
        return msgspec.structs.replace(self._formed[2], messages=prompt.messages)

    def start_exchange(self, call: Call) -> Exchange | ReactExchange:
        """The exchange of the next step."""
        if self._config.mode != "react":
            return Exchange(call)
        return ReactExchange(call, keeps_objects=self._config.output_type is not None or call.prompt.output is not None)

    def find_calls(self, reply: Reply) -> tuple[ToolCall, ...]:
        """The calls of a reply that must run: without the one with the answer, and without unparsable ones."""
        if self._config.mode == "react":
            self._problem = find_problem(reply, self._call.prompt.tools)
            if self._problem is not None:
                return ()
        return reply.tool_calls if self._strategy is None else find_pending_calls(reply, self._strategy)

    def postpone_answer(self, reply: Reply) -> tuple[Message, ...]:
        """The message that rejects an answer given together with other calls."""
        results = () if self._strategy is None else postpone_answer(reply, self._strategy)
        return (Message("tool", results),) if results else ()

    def take_answer(self, reply: Reply) -> Answer[Output]:
        """The answer of a reply for which `find_calls` found none. Raises NoAnswer or InvalidOutput."""
        if self._problem is not None:
            return self._ask_again(reply, build_correction(self._problem))
        output_type = self._config.output_type
        if output_type is None or self._strategy is None:
            return Answer(reply.text)  # type: ignore[arg-type] # without an output type, Output is str
        if self._strategy.two_phase and not self._is_final and self._call.prompt.tools:
            self._is_final = True
            return Answer(messages=(ask_for_json(output_type),), ask_again=True)
        try:
            parsed = parse_output(reply, output_type, self._strategy)
        except OutputMismatch as problem:
            return self._ask_again(reply, ask_for_correction(problem))
        return Answer(parsed.value, () if parsed.message is None else (parsed.message,))

    def _ask_again(self, reply: Reply, message: Message) -> Answer[Output]:
        if self._attempts_left == 0:
            target = self._call.target
            error = InvalidOutput(
                f"{target.provider.name}:{target.model} gave no answer in the requested form in "
                f"{self._config.attempts + 1} attempts. Raise attempts=, ask for something simpler, or use "
                "another model; .partial has its last reply.",
            )
            error.partial = reply
            error.feedback = message.text or "\n".join(
                part.text for part in message.parts if isinstance(part, ToolResult)
            )
            raise error
        self._attempts_left -= 1
        return Answer(messages=(message,), ask_again=True)


class ReactExchange:
    """An exchange with a model that writes ReAct: the prompt is encoded as text, the events are translated back."""

    __slots__ = ("_exchange", "_fold", "_translator")

    def __init__(self, call: Call, *, keeps_objects: bool = False) -> None:
        self._translator = Translator(call.prompt.tools, keeps_objects=keeps_objects)
        self._exchange = Exchange(msgspec.structs.replace(call, prompt=encode_prompt(call.prompt, call.target)))
        self._fold = Fold(make_nonce())

    @property
    def partial(self) -> Reply | None:
        """The reply so far; None when nothing has arrived."""
        received = self._exchange.partial
        return None if received is None else self._translate(received)

    @property
    def emitted(self) -> bool:
        """Whether the caller got an event."""
        return self._exchange.emitted

    def steps(self, began: float | None = None) -> Flow[Reply]:
        """Run the flow of the exchange and translate its events. `began`: start of the call, if it is not now."""
        flow = self._exchange.steps(began)
        if began is not None:
            self._fold.timer = ReplyTimer(began)
        try:
            step = advance(flow)
            while not isinstance(step, Done):
                value = None
                error: TransportError | None = None
                if isinstance(step, Emit):
                    events = self._translator.feed(step.events)
                    self._fold.feed(events)
                    if self._fold.ended and self._fold.unnamed:
                        named = self._fold.name_calls()
                        self._fold.feed(named)
                        events = [*events[:-1], *named, *events[-1:]]
                    if events:
                        if self._fold.moves:
                            self._fold.stamp((yield Now()))
                        yield Emit(events)
                else:
                    try:
                        value = yield step
                    except TransportError as problem:
                        error = problem
                    if isinstance(step, Now) and self._fold.timer is None and value is not None:
                        self._fold.timer = ReplyTimer(value)  # the first step of the exchange
                step = advance(flow, value, error)
            return self._translate(step.result)
        finally:
            flow.close()

    def _translate(self, received: Reply) -> Reply:
        given = {name: getattr(received.call, name) for name in ("revealed", "expected", "priced_by", "visibility")}
        return self._fold.reply(received.payloads, streamed=received.streamed).with_call(**given)
