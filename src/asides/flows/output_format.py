"""What a run's answer has to look like, and what is said when it does not: text, a typed value, a text protocol. Pure.

Not here: how a value is asked for and read (outputs), and the text protocol itself (react).
"""

from __future__ import annotations

from typing import Generic

import msgspec

from asides.agents.outputs.apply_strategy import closing, dressed, repair
from asides.agents.outputs.misfit import Misfit
from asides.agents.outputs.parse_output import pending, postponed, read
from asides.agents.outputs.strategy import Way, way_for
from asides.agents.react.corrections import correction, hint
from asides.flows.call import Call
from asides.flows.run_config import RunConfig
from asides.values.errors import InvalidOutput
from asides.values.messages import Message, Prompt, ToolCall
from asides.values.notices import Notice
from asides.values.reply import Reply
from asides.values.result import Output


class Taking(msgspec.Struct, frozen=True):
    """What became of a reply without calls to run."""

    messages: tuple[Message, ...] = ()
    """What is said because of it."""
    again: bool = False
    """Whether the model is to be asked once more."""


class Form(Generic[Output]):
    """The form of one run's answer. `output` is the answer, once there is one."""

    __slots__ = ("_call", "_errand", "_final", "_left", "_way", "output")

    def __init__(self, call: Call, errand: RunConfig[Output]) -> None:
        self._call = call
        self._errand = errand
        self._left = errand.attempts
        self._final = False
        self._way: Way | None = None
        if errand.wanted is not None:
            self._way = way_for(errand.wanted, call.prompt, call.target, in_text=errand.mode == "react")
        self.output: Output | None = None

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What is worth knowing of how the answer gets its form."""
        return () if self._way is None else self._way.notices

    def dress(self, prompt: Prompt) -> Prompt:
        """The prompt of the next step."""
        if self._errand.wanted is None or self._way is None:
            return prompt
        return dressed(prompt, self._errand.wanted, self._way, final=self._final)

    def calls(self, reply: Reply) -> tuple[ToolCall, ...]:
        """The calls of a reply that are to be run: not the one that brings the answer, and none that cannot be read."""
        if self._errand.mode == "react" and self._problem(reply) is not None:
            return ()
        return reply.tool_calls if self._way is None else pending(reply, self._way)

    def put_off(self, reply: Reply) -> tuple[Message, ...]:
        """What is said of an answer that came beside calls that were run."""
        results = () if self._way is None else postponed(reply, self._way)
        return (Message("tool", results),) if results else ()

    def take(self, reply: Reply) -> Taking:
        """The answer out of a reply that has no calls to run. Raises NoAnswer or InvalidOutput where none comes."""
        if self._errand.mode == "react" and (problem := self._problem(reply)) is not None:
            return self._again(reply, correction(problem))
        if self._errand.wanted is None or self._way is None:
            self.output = reply.text  # type: ignore[assignment] # nothing else was wanted
            return Taking()
        if self._way.two_phase and not self._final and self._call.prompt.tools:
            self._final = True
            return Taking((closing(self._errand.wanted),), again=True)
        try:
            taken = read(reply, self._errand.wanted, self._way)
        except Misfit as problem:
            return self._again(reply, repair(problem))
        self.output = taken.value
        return Taking(() if taken.message is None else (taken.message,))

    def _problem(self, reply: Reply) -> str | None:
        return hint(reply, self._call.prompt.tools)

    def _again(self, reply: Reply, words: Message) -> Taking:
        if self._left == 0:
            target = self._call.target
            error = InvalidOutput(
                f"{target.provider.name}:{target.model} did not bring its answer into the form that was asked for, in "
                f"{self._errand.attempts + 1} attempts. To do: raise attempts=, ask for something simpler, or use "
                "another model; .partial has what it said last.",
            )
            error.partial = reply
            raise error
        self._left -= 1
        return Taking((words,), again=True)
