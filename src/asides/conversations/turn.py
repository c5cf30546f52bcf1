"""A question under way: what is sent for it, and what it leaves behind however it ends. The same for both shells.

Not here: the sending.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asides.history.finish_turn import finish_turn
from asides.history.pair import add_missing_results
from asides.values.errors import AsidesError, ConfigError
from asides.values.messages import Message, Refusal, Text
from asides.values.reply import Reply
from asides.values.thinking import Thought
from asides.values.usage import Usage, estimate_usage

if TYPE_CHECKING:
    from asides.conversations.history import Transcript


class Turn:
    """One question to a conversation. It is a prompt: `messages` and `system` are what is sent.

    `begin` claims the conversation, `end` gives it back; in between nobody else may change it. What the end finds is
    kept together with the question: a whole answer, or what came of one that broke off. Where there is nothing but
    thoughts nothing is kept, so that asking again does not say it twice.
    """

    def __init__(self, transcript: Transcript, question: tuple[Message, ...]) -> None:
        self._transcript = transcript
        self._before = transcript.messages
        self._under_way = False
        self._over = False
        self.kept = False
        """Whether the question, with what came of its answer, is in the conversation now."""
        if not self._before and not question:
            raise ConfigError("nothing was said yet. To do: ask something.")
        # Calls that nobody answered are answered before something else is said.
        self.messages = add_missing_results((*self._before, *question)) if question else self._before
        self._said = _behind(self._before, self.messages, question)
        self.system = transcript.system

    @property
    def waits_for_disk(self) -> bool:
        """Whether the end has to be written somewhere."""
        return self._transcript.name is not None

    def begin(self) -> None:
        """Claim the conversation, which nobody may have changed since the question was put."""
        self._transcript._claim()
        self._under_way = True
        if self._transcript.messages is not self._before:
            self.drop()
            raise ConfigError(
                "the conversation went on after this stream was made. To do: read a stream before asking the next "
                "question, or make it anew."
            )

    def end(self, reply: Reply | None) -> None:
        """Keep what there is to keep, and give the conversation back. Only the first end of a turn counts."""
        if not self._under_way or self._over:
            return
        self._over = True
        try:
            message = finish_turn(reply, rows=self._transcript._rows)
            if reply is not None:
                self._keep(reply, message if message is not None and _says_something(message) else None)
        except AsidesError as problem:
            # It could not be written; what was said is not lost with it.
            problem.partial = reply
            raise
        finally:
            self.drop()

    def drop(self) -> None:
        """Give the conversation back and keep nothing."""
        if self._under_way:
            self._under_way = False
            self._over = True
            self._transcript._at_work.release()

    def _keep(self, reply: Reply, message: Message | None) -> None:
        reported = None if reply.usage == Usage() else reply.usage
        if message is None:
            self._transcript._keep((), reported)
            return
        said = (*self._said, message)
        if not reply.complete:
            # Nobody will run the calls of an answer that was broken off.
            said = add_missing_results(said)
        self._transcript._keep(said, reported or estimate_usage(self.messages, reply))
        self.kept = True


def _behind(
    before: tuple[Message, ...], sent: tuple[Message, ...], question: tuple[Message, ...]
) -> tuple[Message, ...]:
    """What of the sent was not there before. What was mended further up stays the business of each request."""
    return sent[len(before) :] if sent[: len(before)] == before else question


def _says_something(message: Message) -> bool:
    """Whether there is more than thoughts and blanks."""
    return any(
        bool(part.text.strip()) if isinstance(part, (Text, Refusal)) else not isinstance(part, Thought)
        for part in message.parts
    )
