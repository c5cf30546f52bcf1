"""The one way in which the command line asks: a question goes out, the reply is shown while it comes, notes follow.

Not here: what is asked (question), and what a command makes of the reply (ask, chat).
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from asides.cli.inputs import Asked
from asides.cli.progress import Progress, elapsed_line, usage_line
from asides.cli.render import Display
from asides.cli.terminal import Terminal
from asides.client import Client
from asides.values.errors import AsidesError
from asides.values.messages import Message
from asides.values.reply import Reply
from asides.values.simulate import simulate

if TYPE_CHECKING:
    # An agent brings much along that a plain question has no use for.
    from asides.agents.config import AgentOptions, ConversationLike
    from asides.values.result import Result

_IN_ONE_PIECE = 1 << 30


class Asking:
    """One question under way. `partial` is what has come, also when it ended badly."""

    def __init__(self, client: Client, asked: Asked, terminal: Terminal, *, shows_answer: bool = True) -> None:
        self._client = client
        self._asked = asked
        self.progress = Progress()
        self.partial: Reply | None = None
        self.result: Result[Any] | None = None
        """What a run came to, with all its steps; of a question without tools there is none."""
        self._terminal = terminal
        self._shows_answer = shows_answer
        self._display = Display(terminal, self.progress, shows_thinking=asked.gate.shows, shows_answer=shows_answer)

    def run(
        self,
        messages: Sequence[Message],
        *,
        stream: bool,
        tools: AgentOptions | None = None,
        conversation: ConversationLike | None = None,
    ) -> Reply:
        """The reply; with tools, the last one of the run. However this ends, nothing is left half-drawn, none open."""
        if tools is not None:
            return self._watched(lambda: self._steps(tools, messages, conversation, stream=stream))
        return self._watched(lambda: self._stream(messages) if stream else self._whole(messages))

    def _watched(self, ask: Callable[[], Reply]) -> Reply:
        self._display.begin()
        try:
            return ask()
        except AsidesError as error:
            self.partial = error.partial or self.partial
            raise
        finally:
            self.progress.end()
            self._display.end()

    def _steps(
        self, tools: AgentOptions, messages: Sequence[Message], conversation: ConversationLike | None, *, stream: bool
    ) -> Reply:
        from asides.agents.sync import Agent

        options: Any = {**self._asked.options, **tools, "stream": stream}
        # Somebody who watches sees words as they come. A program gets the answer alone, which is the last step's.
        live = self._shows_answer and self._terminal.out_is_terminal
        self._display.shows_answer = live
        agent = Agent(self._asked.model, client=self._client, **options)
        with agent.stream(messages, conversation=conversation) as run:
            try:
                for batch in run.batches():
                    self.progress.take(batch)
                    self._display.take(batch)
                self.result = run.result
            finally:
                if self.result is None:
                    self.result = run.partial
                self.partial = self.result.reply
                if self._shows_answer and not live:
                    self._terminal.answer(self.partial.text)
        return self.partial

    def _stream(self, messages: Sequence[Message]) -> Reply:
        with self._client.stream(self._asked.model, messages, **self._asked.options) as events:
            try:
                for batch in events.batches():
                    self.progress.take(batch)
                    self._display.take(batch)
                return events.reply
            finally:
                self.partial = events.partial

    def _whole(self, messages: Sequence[Message]) -> Reply:
        reply = self.partial = self._client.ask(self._asked.model, messages, **self._asked.options)
        events = simulate(reply, _IN_ONE_PIECE)
        self.progress.take(events)
        self._display.take(events)
        return reply


def tell_figures(reply: Reply, progress: Progress, arguments: Namespace, terminal: Terminal) -> None:
    """The figures that were asked for."""
    if arguments.usage:
        terminal.figure(usage_line(reply))
    if arguments.elapsed:
        terminal.figure(elapsed_line(progress))


def read_tools(arguments: Namespace, terminal: Terminal) -> AgentOptions | None:
    """What a run with the tools that are named needs; None where none are, and then nothing is loaded for them."""
    if not arguments.tools:
        return None
    from asides.cli.tools import read_tooling

    return read_tooling(arguments, terminal)
