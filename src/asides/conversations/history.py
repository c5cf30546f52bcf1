"""What was said so far, and what can be done to it: the part of a conversation that asks nobody.

It can be sent at any time. Not here: asking (blocking, awaiting), and what goes back to a model (plan).
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self, TypeAlias, get_args

import msgspec

from asides.conversations.store.protocol import ConversationHeading, ConversationSnapshot, Store, StoreConflict
from asides.conversations.stored import StoredConversation
from asides.flows.build_call import read_prompt
from asides.history.redact import invalidate_seals, withheld
from asides.history.strip_thinking import Strip, strip_thinking
from asides.providers.provider import Provider
from asides.settings import Settings, load_settings
from asides.values.errors import ConfigError
from asides.values.messages import Message, Text, ToolResult, user
from asides.values.reply import Reply
from asides.values.usage import Usage, estimate_usage

Said: TypeAlias = str | Message | Reply | Mapping[str, Any]
"""A message: words of a person, one of ours, a reply, or an OpenAI-shaped dict."""


class Transcript:
    """The messages of a conversation, in order, with the system prompt beside them and what they have cost.

    With a `store`, every change is there before its method returns, under `name`; a name that is there already goes on
    from what is kept. Readable thinking is written only with `keep_thinking`; what a provider needs back is always.
    One task at a time: a change while somebody is being asked raises a ConfigError.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        system: str | None = None,
        store: Store | None = None,
        name: str | None = None,
        keep_thinking: bool | None = None,
        messages: Sequence[Said] = (),
    ) -> None:
        self.model = model
        """Who is asked when a question does not say: provider:model. None leaves it to the settings."""
        self._system = _checked_system(system)
        self._keep_thinking = keep_thinking
        self._messages: tuple[Message, ...] = ()
        self._usage = Usage()
        self._at_work = threading.Lock()
        self._shelf = _shelf(store, name)
        self._heading = ConversationHeading()
        """What stands above it in the store, as far as this process knows."""
        kept = None if self._shelf is None else self._shelf.open()
        if kept is not None:
            self._adopt(kept)
            self._heading = kept.about.heading
            self.model = kept.about.heading.model if model is None else model
            self._system = kept.about.heading.system if system is None else system
        if messages:
            if self._messages:
                raise ConfigError(
                    f"the conversation {name!r} is in the store already. To do: leave messages= away to go on with it, "
                    "or give another name."
                )
            self.extend(messages)

    # --- what is there ------------------------------------------------------------------------------------------------

    @property
    def messages(self) -> tuple[Message, ...]:
        """What was said, in order, thoughts and seals in their places."""
        return self._messages

    @property
    def system(self) -> str | None:
        """How the model is to behave. It may be changed at any time."""
        return self._system

    @system.setter
    def system(self, words: str | None) -> None:
        if _checked_system(words) == self._system:
            return
        with self._alone():
            before, self._system = self._system, words
            # Some models bind what they thought to all that stood before it.
            loose = unstored(invalidate_seals(self._messages, 0, rows=self._rows))
            try:
                if self._messages:
                    self._rewrite(loose)
            except BaseException:
                # What was not written is not so.
                self._system = before
                raise

    @property
    def usage(self) -> Usage:
        """What it has cost so far, thinking counted apart; `origin` says whether a guess is in the sum."""
        return self._usage

    @property
    def name(self) -> str | None:
        """What it is called in its store; None without one."""
        return None if self._shelf is None else self._shelf.name

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)

    def __bool__(self) -> bool:
        # One in which nothing was said yet is a conversation too.
        return True

    def __repr__(self) -> str:
        named = "" if self.name is None else f", name={self.name!r}"
        return f"{type(self).__name__}({self.model!r}, messages={len(self._messages)}{named})"

    # --- changes ------------------------------------------------------------------------------------------------------

    def append(self, message: Said) -> Message | None:
        """Put a message behind the others; words alone are a person's. None for a reply that has nothing to keep."""
        read = self._added((message,), message.usage if isinstance(message, Reply) else None)
        return read[0] if read else None

    def extend(self, messages: Sequence[Said], *, usage: Usage | None = None) -> tuple[Message, ...]:
        """Put messages behind the others: in a store all of them or none. `usage` is what they have cost, where they
        are not replies that say so themselves.
        """
        costs = [message.usage for message in messages if isinstance(message, Reply)]
        spent = usage
        for cost in costs:
            spent = cost if spent is None else spent + cost
        return self._added(messages, spent)

    def edit(self, place: int, message: Said) -> Message:
        """Put another message in this place; words alone keep the role of the one that was there."""
        with self._alone():
            if not -len(self._messages) <= place < len(self._messages):
                raise ConfigError(f"there is no message {place}; the conversation has {len(self._messages)}.")
            before = self._messages[place]
            if isinstance(message, str):
                read = _reworded(before, message)
            else:
                (read,) = read_said((message,))
            place %= len(self._messages)
            said = (*self._messages[:place], read, *unstored(self._messages[place + 1 :]))
            self._rewrite(invalidate_seals(said, place + 1, rows=self._rows))
        return read

    def truncate(self, end: int | Message) -> tuple[Message, ...]:
        """Keep so many messages, or those in front of this one; the ones that went. -2 takes the last two away."""
        with self._alone():
            if isinstance(end, Message):
                end = _place_of(end, self._messages)
            gone = self._messages[end:]
            if gone:
                self._rewrite(self._messages[:end])
        return gone

    def clear(self) -> None:
        """Forget all that was said. What it has cost, and how the model is to behave, stays."""
        with self._alone():
            if self._messages:
                self._rewrite(())

    def forget_thinking(self, strip: Strip = "all") -> None:
        """Take the thoughts out, with their seals: all of them, or all but those of the last turn that has any.

        What was said, called and given back stays, and the conversation can be sent as before.
        """
        if strip not in get_args(Strip):
            raise ConfigError(f"thoughts are forgotten by one of {', '.join(get_args(Strip))}, not {strip!r}.")
        with self._alone():
            left = strip_thinking(self._messages, strip, rows=self._rows)
            if left != self._messages:
                self._rewrite(unstored(left))

    def fork(self, end: int | Message | None = None, *, name: str | None = None) -> Self:
        """Another conversation that begins like this one: all of it, so many messages, or those in front of one.

        From then on they know nothing of each other. It is kept in the store only when it is given a name there.
        """
        place = _place_of(end, self._messages) if isinstance(end, Message) else end
        shelf = None
        if name is not None:
            if self._shelf is None:
                raise ConfigError("this conversation has no store to keep the fork in. To do: leave name= away.")
            shelf = StoredConversation(self._shelf.store, name)
        other = self._sibling()
        other._shelf = shelf
        other._at_work = threading.Lock()
        other._messages = self._messages[:place]
        other._usage = Usage()
        other._heading = ConversationHeading()
        if shelf is not None:
            try:
                with other._alone():
                    other._rewrite(other._messages)
            except StoreConflict as conflict:
                raise StoreConflict(
                    f"there is a conversation {conflict.name!r} in the store already. To do: take another name.",
                    name=conflict.name,
                    expected=conflict.expected,
                    found=conflict.found,
                ) from None
        return other

    def refresh(self) -> bool:
        """Read what others wrote into the store since; True when there was something. Every question begins so."""
        with self._alone():
            return self._refresh()

    # --- for the two ways of asking -----------------------------------------------------------------------------------

    def _sibling(self) -> Self:
        """One of the same kind with the same settings; a subclass copies what it adds."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    @property
    def _settings(self) -> Settings:
        return load_settings()

    @property
    def _rows(self) -> tuple[Provider, ...]:
        return self._settings.providers

    @contextmanager
    def _alone(self) -> Generator[None, None, None]:
        """Nobody else changes anything meanwhile."""
        self._claim()
        try:
            yield
        finally:
            self._at_work.release()

    def _claim(self) -> None:
        if not self._at_work.acquire(blocking=False):
            raise ConfigError(
                "this conversation is in use: a question is under way, or a stream of it is still open. To do: wait "
                "for the answer or close the stream (use it in a with block); for questions side by side take a fork()."
            )

    def _refresh(self) -> bool:
        kept = None if self._shelf is None else self._shelf.newer(self._messages)
        if kept is None:
            return False
        self._adopt(kept)
        return True

    def _adopt(self, kept: ConversationSnapshot) -> None:
        self._messages = kept.messages
        self._usage = kept.about.usage

    def _added(self, messages: Sequence[Said], spent: Usage | None) -> tuple[Message, ...]:
        with self._alone():
            read = read_said(messages)
            self._keep(read, spent)
        return read

    def _keep(self, new: tuple[Message, ...], spent: Usage | None) -> None:
        """Put these behind the others, and into the store. Whoever calls has claimed the conversation."""
        if self._shelf is not None and (new or spent is not None):
            written = self._written(new)
            heading = self._new_heading
            self._adopt(self._shelf.append(self._messages, new, written, heading, spent))
            self._heading = heading or self._heading
        elif self._shelf is None:
            self._messages += new
            self._usage = self._usage if spent is None else self._usage + spent

    def _rewrite(self, messages: tuple[Message, ...], spent: Usage | None = None) -> None:
        """Put these in the place of all. Whoever calls has claimed the conversation."""
        if self._shelf is not None:
            heading = self._new_heading
            about = self._shelf.replace(self._written(messages), heading, spent)
            self._adopt(ConversationSnapshot(about, messages))
            self._heading = heading or self._heading
        else:
            self._messages = messages
            self._usage = self._usage if spent is None else self._usage + spent

    @property
    def _new_heading(self) -> ConversationHeading | None:
        """What is to stand above it from now on; None when it is there, or was left to others."""
        heading = ConversationHeading(self.system, self.model)
        return None if heading == self._heading else heading

    def _written(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        return messages if self._keeps_thinking else withheld(messages, rows=self._rows)

    @property
    def _keeps_thinking(self) -> bool:
        return self._settings.keep_thinking if self._keep_thinking is None else self._keep_thinking


def _reworded(before: Message, words: str) -> Message:
    """The same speaker with other words. What a tool gave back stays the answer to its call."""
    results = [part for part in before.parts if isinstance(part, ToolResult)]
    if not results:
        return Message(before.role, (Text(words),), before.name)
    if len(results) > 1:
        raise ConfigError(
            "this message answers several calls, so it is not clear which the words are for. To do: give a message "
            "with a ToolResult for each."
        )
    return Message(before.role, (msgspec.structs.replace(results[0], content=words),), before.name)


def _shelf(store: Store | None, name: str | None) -> StoredConversation | None:
    if store is None:
        if name is not None:
            raise ConfigError("name= is what a store keeps a conversation under. To do: give store= as well.")
        return None
    return StoredConversation(store, _new_name() if name is None else name)


def _checked_system(words: object) -> str | None:
    """What does not read as words would be left out of every request, and nobody told."""
    if words is None or isinstance(words, str):
        return words
    raise ConfigError(f"system is text, not {type(words).__name__}. To do: join its parts into one.")


def _new_name() -> str:
    """A name that nobody else has; that of a later conversation sorts behind it."""
    import secrets
    from datetime import UTC, datetime

    return f"{datetime.now(UTC):%Y-%m-%d-%H%M%S}-{secrets.token_hex(3)}"


def read_said(said: Said | Sequence[Said] | None) -> tuple[Message, ...]:
    """The messages that are meant; words alone are a person's."""
    if said is None:
        return ()
    if isinstance(said, (str, Message)):
        return read_prompt(said, {}, stream=False)[0].messages
    if isinstance(said, (Mapping, Reply)):
        said = (said,)
    if not hasattr(said, "__iter__"):
        raise ConfigError(
            f"what is said is text, a message or a list of messages, not {type(said).__name__}. To do: make it one."
        )
    # A reply that has nothing to keep would leave an empty prompt, which is no error here.
    kept = [each for each in said if not isinstance(each, Reply) or each.to_message() is not None]
    # Read together: calls of the old form have no ids, and their results are found by the place they have in the list.
    spoken = [user(each) if isinstance(each, str) else each for each in kept]
    return read_prompt(spoken, {}, stream=False)[0].messages if spoken else ()


def unstored(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages, as if no provider had stored them: what it has was said behind other words."""
    return tuple(
        message if message.stored is None else msgspec.structs.replace(message, stored=None) for message in messages
    )


def _place_of(message: Message, messages: tuple[Message, ...]) -> int:
    """Where it is: the very one, else the last that is equal to it."""
    for same in (lambda each: each is message, lambda each: each == message):
        for place in range(len(messages) - 1, -1, -1):
            if same(messages[place]):
                return place
    raise ConfigError("this message is not in the conversation. To do: take one of its .messages.")


def cost_of(reply: Reply, sent: tuple[Message, ...]) -> Usage:
    """What a reply cost: what the server says, else a guess that says so."""
    return reply.usage if reply.usage != Usage() else estimate_usage(sent, reply)
