# Written by scripts/unasync.py from async_.py. Do not edit.
"""`Conversation`: a conversation that asks and waits for the answer."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import suppress
from functools import cached_property
from typing import Any, Generic, Self, Unpack, overload

from asides.client import Client, Stream, get_shared_client
from asides.conversations.compact import (
    CompactBy,
    build_compacted_reply,
    check_compact_by,
    replace_compacted,
)
from asides.conversations.core import ConversationCore
from asides.conversations.message_history import Question
from asides.conversations.turn import Turn
from asides.flows.build_call import CallBuilder
from asides.option_help import describe_options
from asides.options import ModelLike, Options, SharedOptions
from asides.transports.sync import flatten
from asides.values.events import Event
from asides.values.reply import Output, Output_co, Reply
from asides.values.visibility import Visibility


class Conversation(ConversationCore[Client]):
    """A history that can be sent at any time, and that asks and waits for the answer.

        chat = Conversation("deepseek:deepseek-flash", system="Be brief.")
        chat.ask("Why is the sky blue?").text
        chat.ask("And at night?").text

    Every option of `ask` may be given here for all questions; an option of a question wins. `client` sends the
    questions; the default is a shared client.

    With `store` and `name` each turn is stored before its answer is returned. `keep_thinking` saves readable thinking
    too (default: the setting keep_thinking, which is false).
    """

    @overload
    def ask(
        self,
        prompt: Question = None,
        *,
        model: ModelLike | None = None,
        output: type[Output],
        **options: Unpack[SharedOptions],
    ) -> Reply[Output]: ...
    @overload
    def ask(
        self, prompt: Question = None, *, model: ModelLike | None = None, **options: Unpack[Options]
    ) -> Reply[Any]: ...
    def ask(self, prompt: Question = None, *, model: ModelLike | None = None, **options: Unpack[Options]) -> Reply[Any]:
        """Ask a question; returns the reply. Both are added to the conversation. Without a question the model continues
        from the last message, such as a tool result. Of several models, each is asked when those before it fail.

        If it raises, the conversation stays unchanged.
        """
        turn, name, given = self._prepare(prompt, model, options)
        try:
            turn.begin()
            reply = self._asking_client.ask(name, turn, **given)
            turn.end(reply)
        finally:
            turn.drop()
        return reply

    @overload
    def stream(
        self,
        prompt: Question = None,
        *,
        model: ModelLike | None = None,
        output: type[Output],
        **options: Unpack[SharedOptions],
    ) -> ConversationStream[Output]: ...
    @overload
    def stream(
        self, prompt: Question = None, *, model: ModelLike | None = None, **options: Unpack[Options]
    ) -> ConversationStream[Any]: ...
    def stream(
        self, prompt: Question = None, *, model: ModelLike | None = None, **options: Unpack[Options]
    ) -> ConversationStream[Any]:
        """Ask a question; returns the events of the reply. However the stream ends, the question and the answer so far
        are added to the conversation.
        """
        turn, name, given = self._prepare(prompt, model, options)
        return ConversationStream(turn, self._asking_client.stream(name, turn, **given))

    def compact(
        self,
        over: int = 0,
        *,
        keep_turns: int = 2,
        by: CompactBy = "model",
        model: ModelLike | None = None,
        **options: Unpack[Options],
    ) -> Reply | None:
        """Let a model summarize the older turns, if the conversation costs more than `over` tokens even without the
        seals and thoughts of finished turns. They are left out first, and if that is enough, nothing is summed up.

        The last `keep_turns` stay as they are; the turns before them become one note, marked as such. The model that
        sums up sees no thinking. Returns None, without asking a model, when there is nothing to do.

        `by="provider"` lets the provider of the model compact the whole conversation instead, where it can: what it
        returns takes the place of the messages, and only it can read it.
        """
        with self._history.exclusive():
            if check_compact_by(by) == "provider":
                build = self._prepare_provider_compaction(over, model, options)
                if build is None:
                    return None
                compacted = self._asking_client.compact(build)
                replace_compacted(self._history, compacted)
                return build_compacted_reply(compacted)
            compaction = self._prepare_compaction(over, keep_turns, model, options)
            if compaction is None:
                return None
            reply = self._asking_client.ask(compaction.model, compaction.request, **compaction.options)
            compaction.finish(reply)
        return reply

    @property
    def _asking_client(self) -> Client:
        return get_shared_client() if self._client is None else self._client

    @property
    def _asking_builder(self) -> CallBuilder:
        # The shared client may have read the settings earlier.
        return self._asking_client._call_builder


describe_options(Conversation.ask, Conversation.stream)


class ConversationStream(Generic[Output_co]):
    """The events of one answer: those of `Client.stream`. Leaving its `with` ends the turn.

    However it ends (at the last event, on an error, when it is closed, on Ctrl-C),
    the question and the answer so far are added to the conversation and its store, once. If no answer has begun,
    nothing is added.
    """

    def __init__(self, turn: Turn, stream: Stream[Output_co]) -> None:
        self._stream = stream
        self._batches = _read_turn(turn, stream)

    @cached_property
    def _events(self) -> Generator[Event, None, None]:
        return flatten(self._batches)

    def __iter__(self) -> Iterator[Event]:
        return self._events

    def __next__(self) -> Event:
        return next(self._events)

    def batches(self) -> Iterator[list[Event]]:
        """The events in lists, one for each read of the connection."""
        # Where single events were read, the rest of their batch is there.
        return ([event] for event in self._events) if "_events" in self.__dict__ else self._batches

    @property
    def visibility(self) -> Visibility | None:
        """Which thinking of these events each place may see; None: the default."""
        return self._stream.visibility

    @property
    def reply(self) -> Reply[Output_co]:
        """The whole reply. Reads the rest of the events first."""
        for _ in self._batches:
            pass
        return self._stream.reply

    @property
    def partial(self) -> Reply[Output_co] | None:
        """The reply so far; None when nothing has arrived."""
        return self._stream.partial

    @property
    def partial_output(self) -> Any:
        """The output so far; see `Stream.partial_output`."""
        return self._stream.partial_output

    def close(self) -> None:
        """Close the connection immediately, from any thread. The answer so far is added to the conversation."""
        self._stream.close()
        # Another thread may be reading; it finds the connection closed and ends the turn itself.
        for generator in (self._events, self._batches):
            with suppress(ValueError):
                generator.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"ConversationStream({self._stream!r})"


def _read_turn(turn: Turn, stream: Stream[Any]) -> Generator[list[Event], None, None]:
    try:
        turn.begin()
        yield from stream.batches()
    finally:
        try:
            turn.end(stream.partial)
        finally:
            turn.drop()
            stream.close()
