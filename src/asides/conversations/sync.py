"""`Conversation`: a history that asks, and waits for the answer. `awaiting` is its twin; neither decides anything.

Not here: what can be done to a history (transcript), and what a question leaves behind (turn).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from typing import Any, Self, Unpack

from asides.client import Client, Stream, shared_client
from asides.conversations.compact import Compacting
from asides.conversations.history import Said
from asides.conversations.store.protocol import Store
from asides.conversations.talk import Question, Talk
from asides.conversations.turn import Turn
from asides.options import Options
from asides.values.events import Event
from asides.values.reply import Reply


class Conversation(Talk):
    """A history that is always sendable, and asks.

        chat = Conversation("deepseek:deepseek-reasoner", system="Be brief.")
        chat.ask("Why is the sky blue?").text
        chat.ask("And at night?").text

    Every option of `ask` may be given here for all questions; what a question says wins. `client` asks; without one it
    is the client that all such calls share. `store` and `name` keep it: each turn is there before its answer is handed
    out. `keep_thinking` writes readable thinking along (default: what the settings say, and they say no).
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        system: str | None = None,
        client: Client | None = None,
        store: Store | None = None,
        name: str | None = None,
        keep_thinking: bool | None = None,
        messages: Sequence[Said] = (),
        **options: Any,
    ) -> None:
        self._client = shared_client() if client is None else client
        if client is not None:
            self._call_builder = client._call_builder
        super().__init__(
            model,
            system=system,
            store=store,
            name=name,
            keep_thinking=keep_thinking,
            messages=messages,
            options=options,
        )

    def ask(self, prompt: Question = None, *, model: str | None = None, **options: Unpack[Options]) -> Reply:
        """The reply to a question, which is kept with it. Without a question the model goes on from what is there, such
        as the results of its tools.

        When it raises, the conversation is as it was before.
        """
        turn, name, given = self._question(prompt, model, options)
        turn.begin()
        try:
            reply = self._client.ask(name, turn, **given)
            turn.end(reply)
        finally:
            turn.drop()
        return reply

    def stream(
        self, prompt: Question = None, *, model: str | None = None, **options: Unpack[Options]
    ) -> ConversationStream:
        """The events of the reply to a question. However it ends, the question and what came of the answer are kept."""
        turn, name, given = self._question(prompt, model, options)
        return ConversationStream(turn, self._client.stream(name, turn, **given))

    def compact(
        self, over: int, *, keep_turns: int = 2, model: str | None = None, **options: Unpack[Options]
    ) -> Reply | None:
        """Have the model sum up the older turns, if what would be sent now is more than so many tokens.

        The last `keep_turns` stay as they are; what was before them becomes one note, marked as such. Thinking is not
        shown to whoever sums up. None when there was nothing to do, and then nobody was asked.
        """
        with self._alone():
            work = Compacting(self, over, keep_turns, model, options)
            if work.request is None:
                return None
            reply = self._client.ask(work.model, work.request, **work.options)
            work.finish(reply)
        return reply


class ConversationStream:
    """The events of one answer: those of `Client.stream`. Iterate over it in a `with`; leaving it ends the turn.

    At its end, when it breaks, when it is closed and on Ctrl-C, the question and what came of the answer are put into
    the conversation, once, and into its store. When no answer had begun, nothing is.
    """

    def __init__(self, turn: Turn, stream: Stream) -> None:
        self._turn = turn
        self._stream = stream
        self._batches = _kept(turn, stream)
        self._events = _flattened(self._batches)

    def __iter__(self) -> Iterator[Event]:
        return self._events

    def __next__(self) -> Event:
        return next(self._events)

    def batches(self) -> Iterator[list[Event]]:
        """The events in the lists in which they came, one for each read."""
        return self._batches

    @property
    def reply(self) -> Reply:
        """The whole reply; reads what has not been read yet."""
        for _ in self._batches:
            pass
        return self._stream.reply

    @property
    def partial(self) -> Reply | None:
        """What has come so far; None when nothing has."""
        return self._stream.partial

    def close(self) -> None:
        """Close the connection at once, from any thread. What came is kept."""
        self._stream.close()
        # Another thread may be reading at this moment; it finds the connection closed and ends the turn itself.
        for generator in (self._events, self._batches):
            with suppress(ValueError):
                generator.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"ConversationStream({self._stream!r})"


def _kept(turn: Turn, stream: Stream) -> Generator[list[Event], None, None]:
    turn.begin()
    try:
        yield from stream.batches()
    finally:
        stream.close()
        turn.end(stream.partial)


def _flattened(batches: Iterator[list[Event]]) -> Generator[Event, None, None]:
    for batch in batches:
        yield from batch
