"""The one way in which the command line asks: a question goes out, the reply is shown while it comes, notes follow.

Not here: what is asked (question), and what a command makes of the reply (ask, chat).
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from asides.cli.progress import Progress, elapsed_line, usage_line
from asides.cli.question import Asked
from asides.cli.render import Display
from asides.cli.terminal import Terminal
from asides.client import Client
from asides.errors import AsidesError
from asides.messages import Message
from asides.reply import Reply
from asides.simulation import simulate

_IN_ONE_PIECE = 1 << 30


class Asking:
    """One question under way. `partial` is what has come, also when it ended badly."""

    def __init__(self, client: Client, asked: Asked, terminal: Terminal, *, shows_answer: bool = True) -> None:
        self._client = client
        self._asked = asked
        self.progress = Progress()
        self.partial: Reply | None = None
        self._display = Display(terminal, self.progress, shows_thinking=asked.gate.shows, shows_answer=shows_answer)

    def run(self, messages: Sequence[Message], *, stream: bool) -> Reply:
        """The reply. However this ends, nothing is left half-drawn and nothing half-open."""
        self._display.begin()
        try:
            return self._stream(messages) if stream else self._whole(messages)
        except AsidesError as error:
            self.partial = error.partial or self.partial
            raise
        finally:
            self.progress.end()
            self._display.end()

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
