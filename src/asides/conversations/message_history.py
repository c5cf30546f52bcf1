"""`MessageHistory`: the messages of one conversation, their usage, and their copy in a store (`StoredConversation`).

Also `read_question`, for messages as users pass them.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self, TypeAlias

import msgspec

from asides.conversations.store import (
    ConversationHeading,
    ConversationInfo,
    ConversationSnapshot,
    Store,
    StoreConflict,
)
from asides.flows.build_call import CallBuilder
from asides.history.redact import drop_stored_responses, invalidate_seals, redact
from asides.intake.read import read
from asides.options import PromptItem
from asides.providers.provider import Provider
from asides.values.errors import ConfigError
from asides.values.messages import Message
from asides.values.parts import ContentItem, Text, ToolResult
from asides.values.reply import Reply
from asides.values.usage import Usage
from asides.values.visibility import ALL_VISIBLE, Visibility

Messages = tuple[Message, ...]

MessageLike: TypeAlias = PromptItem | Sequence[ContentItem]
"""A message: text or other content of a user, a `Message`, a reply, or a dict or an object that `ask` reads."""

Question: TypeAlias = PromptItem | Sequence[PromptItem | Sequence[ContentItem]] | None
"""A question: a message, several messages such as tool results, or None for no new message."""


class MessageHistory:
    """Messages in order, with the system prompt and the model that belong to them.

    With `stored`, each change is in the store before its method returns, and an existing conversation is loaded.
    Callers hold the history (`exclusive`, or `claim` and `release`) while they change it.
    """

    def __init__(
        self,
        defaults: CallBuilder,
        stored: StoredConversation | None,
        *,
        model: str | None,
        system: str | None,
        keep_thinking: bool | None,
    ) -> None:
        self.model = model
        self.system = system
        self.messages: tuple[Message, ...] = ()
        self.usage = Usage()
        self.stored = stored
        self._call_builder = defaults
        self._keep_thinking = keep_thinking
        if keep_thinking:
            self.visibility.check_keep_thinking(keep_thinking)
        self._lock = threading.Lock()
        # The heading that this process last read from the store or wrote to it.
        self._stored_heading = ConversationHeading()
        snapshot = None if stored is None else stored.open()
        if snapshot is not None:
            heading = snapshot.about.heading
            self._take(snapshot)
            self._stored_heading = heading
            self.model = heading.model if model is None else model
            self.system = heading.system if system is None else system

    @property
    def rows(self) -> tuple[Provider, ...]:
        """The provider rows of the caller."""
        return self._call_builder.rows

    @property
    def visibility(self) -> Visibility:
        """Which thinking a saved conversation may have."""
        return self._call_builder.visibility

    @property
    def keeps_thinking(self) -> bool:
        """Whether readable thinking is saved: as set for the conversation, else by the settings."""
        return self._call_builder.settings.keep_thinking if self._keep_thinking is None else self._keep_thinking

    # --- one change at a time -----------------------------------------------------------------------------------------

    @contextmanager
    def exclusive(self) -> Generator[None, None, None]:
        """Hold the history during the block."""
        self.claim()
        try:
            yield
        finally:
            self.release()

    def claim(self) -> None:
        """Hold the history until `release`. Raises ConfigError when it is held already."""
        if not self._lock.acquire(blocking=False):
            raise ConfigError(
                "this conversation is in use: a question is in progress, or a stream of it is still open. Wait "
                "for the answer or close the stream (use it in a with block); for questions side by side take a fork()."
            )

    def release(self) -> None:
        """Let others change the history again."""
        self._lock.release()

    # --- changes ------------------------------------------------------------------------------------------------------

    def append(self, new: tuple[Message, ...], spent: Usage | None) -> None:
        """Add messages at the end, and `spent` to the usage."""
        if self.stored is None:
            self.messages += new
            self._add_usage(spent)
        elif new or spent is not None:
            heading = self._find_heading_change()
            self._take(self.stored.append(self.messages, new, self._redact(new), heading, spent))
            self._stored_heading = heading or self._stored_heading

    def replace(self, messages: tuple[Message, ...], spent: Usage | None = None) -> None:
        """Replace all messages. Raises StoreConflict when another process changed the stored copy."""
        messages = _keep_learned(self.messages, messages)
        if self.stored is None:
            self.messages = messages
            self._add_usage(spent)
        else:
            heading = self._find_heading_change()
            about = self.stored.replace(self._redact(messages), heading, spent)
            self._take(ConversationSnapshot(about, messages))
            self._stored_heading = heading or self._stored_heading

    def set_system(self, system: str | None) -> None:
        """Change the system prompt, which voids the seals that depend on it."""
        before, self.system = self.system, system
        try:
            if self.messages:
                self.replace(drop_stored_responses(invalidate_seals(self.messages, 0, rows=self.rows)))
        except BaseException:
            self.system = before
            raise

    def refresh(self) -> bool:
        """Read new changes of other processes from the store; returns whether there were any."""
        snapshot = None if self.stored is None else self.stored.read_changes(self.messages)
        if snapshot is None:
            return False
        self._take(snapshot)
        return True

    def fork(self, end: int | None, name: str | None) -> Self:
        """Copy the history with the messages up to `end`. With a `name` the copy is in the same store."""
        other = copy.copy(self)
        other._lock = threading.Lock()
        other._stored_heading = ConversationHeading()
        other.messages = _keep_learned(self.messages, self.messages[:end])
        other.usage = Usage()
        other.stored = None
        if name is not None:
            if self.stored is None:
                raise ConfigError("this conversation has no store for the fork. Omit name=.")
            other.stored = StoredConversation(self.stored.store, name)
            try:
                other.replace(other.messages)
            except StoreConflict as conflict:
                raise StoreConflict(
                    f"there is a conversation {conflict.name!r} in the store already. Pass another name.",
                    name=conflict.name,
                    expected=conflict.expected,
                    found=conflict.found,
                ) from None
        return other

    def _take(self, snapshot: ConversationSnapshot) -> None:
        self.messages = snapshot.messages
        self.usage = snapshot.about.usage

    def _add_usage(self, spent: Usage | None) -> None:
        self.usage = self.usage if spent is None else self.usage + spent

    def _redact(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        kept = self.visibility.find_saved(keep_thinking=self.keeps_thinking)
        return messages if kept == ALL_VISIBLE else redact(messages, rows=self.rows, keep=kept)

    def _find_heading_change(self) -> ConversationHeading | None:
        """The heading to write; None when this process did not change it."""
        heading = ConversationHeading(self.system, self.model)
        return None if heading == self._stored_heading else heading


def _keep_learned(before: Messages, after: Messages) -> Messages:
    """The new messages, which also know what refusals taught the old ones about hosts: another process would have to
    learn it again.
    """
    known = {fact for message in after for fact in message.learned}
    lost = dict.fromkeys(
        msgspec.structs.replace(fact, refused=())
        for message in before
        for fact in message.learned
        if fact.changes and fact not in known
    )
    if not lost or not after:
        return after
    first = after[0]
    return (msgspec.structs.replace(first, learned=(*lost, *first.learned)), *after[1:])


# --- the copy in a store --------------------------------------------------------------------------------------------


class StoredConversation:
    """A conversation in a store, and the version that this process has read. Other processes may write too."""

    def __init__(self, store: Store, name: str) -> None:
        self.store = store
        self.name = name
        self._version = 0

    def open(self) -> ConversationSnapshot | None:
        """Load the conversation; None when it is not in the store yet."""
        snapshot = self.store.load(self.name)
        if snapshot is not None:
            self._version = snapshot.about.version
        return snapshot

    def read_changes(self, known: Messages) -> ConversationSnapshot | None:
        """Load the conversation if other processes changed it; else None. `known` are the messages read so far."""
        about = self.store.about(self.name)
        if about is None:
            if self._version:
                raise self._build_deletion_error()
            return None
        if about.version == self._version:
            return None
        snapshot = self._load(known)
        if snapshot is None:
            raise self._build_deletion_error()
        self._version = snapshot.about.version
        return snapshot

    def append(
        self,
        known: Messages,
        new: Messages,
        written: Messages,
        heading: ConversationHeading | None,
        spent: Usage | None,
    ) -> ConversationSnapshot:
        """Write `written`, the redacted form of `new`, after all stored messages. Returns a snapshot of the `known`
        messages, those that other processes wrote since, and `new`.
        """
        about = self.store.append(self.name, written, heading=heading, spent=spent)
        start = about.length - len(written)
        is_first = self._version == 0 and start == 0
        if start == len(known) and (is_first or about.rewritten <= self._version):
            self._version = about.version
            return ConversationSnapshot(about, (*known, *new))
        earlier = self._load(known)
        self._version = about.version
        # Messages that others wrote after these are read with the next question.
        return ConversationSnapshot(about, (*(() if earlier is None else earlier.messages[:start]), *new))

    def replace(self, written: Messages, heading: ConversationHeading | None, spent: Usage | None) -> ConversationInfo:
        """Replace all messages by `written`. Raises `StoreConflict` when another process changed the conversation."""
        about = self.store.replace(self.name, written, expected=self._version, heading=heading, spent=spent)
        self._version = about.version
        return about

    def _load(self, known: Messages) -> ConversationSnapshot | None:
        """Load all messages. `known` ones are not read again, since they may hold thinking that was not written."""
        more = self.store.load(self.name, len(known))
        if more is None or more.about.rewritten > self._version:
            return self.store.load(self.name)
        return ConversationSnapshot(more.about, (*known, *more.messages))

    def _build_deletion_error(self) -> StoreConflict:
        return StoreConflict(
            f"the conversation {self.name!r} was deleted by another process. Begin another one, or keep "
            "what is known of it with fork(name=…).",
            name=self.name,
            expected=self._version,
            found=None,
        )


# --- messages as users pass them ----------------------------------------------------------------------------------


def read_question(value: Question, *, after: Messages = (), each: bool = False) -> tuple[Message, ...]:
    """Read messages in any form that a user may pass. Plain text is a user message; `after` are those before them.

    With `each`, every text of a list is a message; otherwise texts, pictures and files in a row are one.
    """
    if value is None:
        return ()
    if isinstance(value, Reply):
        value = (value,)
    if isinstance(value, (list, tuple)):
        # Leave out replies without content. An empty prompt would be an error, which it is not here.
        value = [item for item in value if not isinstance(item, Reply) or item.to_message() is not None]
        if not value:
            return ()
    # Read them together: calls in the old format have no ids, and their results are found by order.
    return read(value, after=after, each=each)


def open_messages(messages: Any) -> tuple[Any, Usage | None]:
    """Messages as a user passes them, with the responses of other libraries as replies; and the usage of all replies.

    A generator is read once.
    """
    is_one = isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable)
    is_one = is_one or hasattr(type(messages), "model_dump")  # whose fields can be iterated
    if not is_one and not isinstance(messages, (list, tuple)):
        from asides.intake.prompts import collect_items

        messages = collect_items(messages)
    given = (messages,) if is_one else tuple(messages)
    if not all(map(_is_known, given)):
        from asides.flows.offline import read_replies

        given = tuple(read_replies(given))
    spent: Usage | None = None
    for message in given:
        if isinstance(message, Reply):
            spent = message.usage if spent is None else spent + message.usage
    return given[0] if is_one else given, spent


def _is_known(item: object) -> bool:
    return isinstance(item, (str, Message, Reply)) or (
        isinstance(item, dict) and "role" in item and "usage" not in item
    )


def replace_text(message: Message, text: str) -> Message:
    """Replace the text of a message; the role stays. A tool message stays the result of its call."""
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    if not results:
        return Message(message.role, (Text(text),), message.name)
    if len(results) > 1:
        raise ConfigError(
            "this message answers several calls, so it is not clear which one the text is for. Pass a message "
            "with a ToolResult for each."
        )
    return Message(message.role, (msgspec.structs.replace(results[0], content=text),), message.name)


def find_message(message: Message, messages: tuple[Message, ...]) -> int:
    """Find the index of this very object, else of the last message equal to it."""
    for same in (lambda each: each is message, lambda each: each == message):
        for place in range(len(messages) - 1, -1, -1):
            if same(messages[place]):
                return place
    raise ConfigError("this message is not in the conversation. Pass one of its .messages.")


def check_model(model: object) -> str | None:
    """Return the model. Raises if it is not text: a store and a document hold one name."""
    if model is None or isinstance(model, str):
        return model
    raise ConfigError(
        f"the model of a conversation is text, not {type(model).__name__}. Pass several models to a question "
        "(model=[…]), or name them in [fallbacks] of the settings."
    )


def check_system(text: object) -> str | None:
    """Return the system prompt. Raises if it is not text, since requests would silently leave it out."""
    if text is None or isinstance(text, str):
        return text
    raise ConfigError(f"system is text, not {type(text).__name__}. Join its parts into one.")


def open_stored(store: Store | None, name: str | None) -> StoredConversation | None:
    """The place of a conversation in a store; None without a store. Raises ConfigError for a name without a store."""
    if store is None:
        if name is not None:
            raise ConfigError("name= is the name of a conversation in a store. Pass store= as well.")
        return None
    return StoredConversation(store, _make_name() if name is None else name)


def _make_name() -> str:
    """Make a unique name. Later names sort after it."""
    import secrets
    from datetime import UTC, datetime

    return f"{datetime.now(UTC):%Y-%m-%d-%H%M%S}-{secrets.token_hex(3)}"
