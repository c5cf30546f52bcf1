"""`Turn`: one question in progress. It holds the messages to send, and adds question and answer to the history."""

from __future__ import annotations

from asides.conversations.message_history import MessageHistory
from asides.history.finish import finish_turn
from asides.history.turns import add_missing_results
from asides.values.errors import AsidesError, ConfigError
from asides.values.messages import Message
from asides.values.notices import Notice
from asides.values.parts import Commentary, Refusal, Text
from asides.values.reply import Reply
from asides.values.thinking import Thought
from asides.values.usage import Usage, estimate_usage


class Turn:
    """One question to a conversation. It is a prompt: `messages` and `system` are sent.

    `begin` holds the history and `end` releases it; nothing else changes it in between. `end` adds the question and the
    answer so far. It adds nothing when no text arrived, so that asking again does not repeat the question.
    """

    def __init__(self, history: MessageHistory, question: tuple[Message, ...]) -> None:
        self._history = history
        self._before = history.messages
        self._begun = False
        self._ended = False
        self.notices: tuple[Notice, ...] = ()
        """Notices about the question before it is asked. They become a part of the reply's warnings."""
        self.is_recorded = False
        """Whether the question and the answer are in the conversation now."""
        if not self._before and not question:
            raise ConfigError("the conversation is empty. Ask something.")
        # Calls without a result get one before the new message.
        self._new = add_missing_results(question, after=self._before) if question else ()
        self.messages = (*self._before, *self._new)
        self.system = history.system

    @property
    def writes_to_store(self) -> bool:
        """Whether `end` writes to a store, and so may wait for a disk."""
        return self._history.stored is not None

    def begin(self) -> None:
        """Hold the history. Raises ConfigError when it has changed since the question was made."""
        self._history.claim()
        self._begun = True
        if self._history.messages is not self._before:
            self.drop()
            raise ConfigError(
                "the conversation changed after this stream was made. Read a stream before asking the next "
                "question, or make a new one."
            )

    def end(self, reply: Reply | None) -> None:
        """Add the question and the answer so far, and release the history. A second call does nothing."""
        if not self._begun or self._ended:
            return
        try:
            self._ended = True
            message = finish_turn(reply, rows=self._history.rows)
            if reply is not None:
                self._record(reply, message if message is not None and _has_answer(message) else None)
        except AsidesError as problem:
            # The store failed. The caller still gets the reply.
            problem.partial = reply
            raise
        finally:
            self._release()

    def drop(self) -> None:
        """Release the history and add nothing. Does nothing during or after `end`."""
        if not self._ended:
            self._ended = True
            self._release()

    def _release(self) -> None:
        if self._begun:
            self._begun = False
            self._history.release()

    def _record(self, reply: Reply, message: Message | None) -> None:
        reported = None if reply.usage == Usage() else reply.usage
        if message is None:
            self._history.append((), reported)
            return
        new = (*self._new, message)
        if not reply.complete:
            # The calls of an answer that broke off will not run.
            new = add_missing_results(new)
        self._history.append(new, reported or estimate_usage(self.messages, reply))
        self.is_recorded = True


def _has_answer(message: Message) -> bool:
    """Whether the message has more than thoughts and blank text."""
    return any(
        bool(part.text.strip()) if isinstance(part, (Text, Commentary, Refusal)) else not isinstance(part, Thought)
        for part in message.parts
    )
