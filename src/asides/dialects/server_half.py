"""The shared parts of every server half: the fields of a client's request (`RequestFields`), and the base of the
writers (`ReplyWriter`).

Not here: the fields and the bytes of one dialect (its folder `server`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self, TypeVar
from uuid import uuid4

import msgspec

from asides.dialects.block_order import BlockOrder, ContentEvent
from asides.values.errors import ConfigError
from asides.values.events import (
    Event,
    ReplyEnded,
    ReplyStarted,
    StopReason,
    UsageReported,
    Warned,
)
from asides.values.messages import Message, Sampling
from asides.values.usage import Usage

Value = TypeVar("Value")

# The servers that say what they take stop at about a hundred.
_MOST_LEVELS = 100

# --- reading requests -------------------------------------------------------------------------------------------------


class RequestFields:
    """The fields of one JSON object. A reader takes out those that it understands; the others become the prompt's
    `extra`.

    A field that is null counts as not set.
    """

    def __init__(self, fields: Mapping[str, Any], path: str = "") -> None:
        self.remaining: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
        self._path = path

    @classmethod
    def parse_body(cls, body: bytes) -> Self:
        """Parse a request. Raises ConfigError with a message for the client."""
        try:
            document = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            raise ConfigError(f"the body is not JSON: {problem}.") from None
        if not isinstance(document, dict):
            raise ConfigError("the body is not a JSON object.")
        if _is_deep(document):
            raise ConfigError(f"the body is nested deeper than {_MOST_LEVELS} levels.")
        return cls(document)

    def take(self, name: str, kind: type[Value]) -> Value | None:
        """Take a field out; None if it is not set. Raises ConfigError if it has another type."""
        if name not in self.remaining:
            return None
        try:
            return msgspec.convert(self.remaining.pop(name), kind)
        except msgspec.ValidationError as problem:
            raise ConfigError(f"{self._path}{name}: {problem}.") from None

    def take_model(self) -> str:
        """Take the model's name out. Raises ConfigError if there is none."""
        model = self.take("model", str)
        if not model:
            raise ConfigError("model is missing.")
        return model

    def take_messages(self, read: Callable[[Mapping[str, Any]], Message]) -> tuple[Message, ...]:
        """Take the history out; `read` reads each message. Raises ConfigError if there is none, or with the index of
        the message that is wrong.
        """
        documents = self.take("messages", list[dict[str, Any]])
        if not documents:
            raise ConfigError("messages is missing or empty.")
        messages: list[Message] = []
        for index, document in enumerate(documents):
            try:
                messages.append(read(document))
            except ConfigError as problem:
                raise ConfigError(f"messages[{index}]: {problem}") from None
        return tuple(messages)

    def take_object(self, name: str) -> RequestFields:
        """Take an inner object out; it is empty if it is not set. `put_back` restores its remaining fields."""
        return RequestFields(self.take(name, dict[str, Any]) or {}, f"{self._path}{name}.")

    def put_back(self, name: str, inner: RequestFields) -> None:
        """Put the remaining fields of an inner object back under its name."""
        if inner.remaining:
            self.remaining[name] = inner.remaining


def _is_deep(document: Any) -> bool:
    """Whether a document has too many levels for code that calls itself for each of them."""
    level = [document]
    for _ in range(_MOST_LEVELS):
        level = [
            item
            for value in level
            for item in (value.values() if isinstance(value, dict) else value)
            if isinstance(item, (dict, list))
        ]
        if not level:
            return False
    return True


def read_sampling(settings: Mapping[str, Any]) -> Sampling:
    """Read sampling settings, by our names. Raises ConfigError if one has another type."""
    try:
        return msgspec.convert(settings, Sampling)
    except msgspec.ValidationError as problem:
        raise ConfigError(f"a sampling setting is invalid: {problem}.") from None


# --- writing replies --------------------------------------------------------------------------------------------------


class CallerTool(msgspec.Struct, frozen=True):
    """A tool as the caller knows it, where a provider was sent another name for it."""

    name: str
    namespace: str = ""
    custom: bool = False
    """It takes free text: the provider was sent a function whose one argument, `input`, is that text."""


class ReplyWriter:
    """Events of one reply in, bytes of a response out.

    A subclass implements `_write_event`, for the events of a block, and `_write_end`. Warnings are not written.
    """

    def __init__(self, model: str, content_type: str, *, shows_usage: bool) -> None:
        self.content_type = content_type
        self.created = 0
        """When the reply was made, in seconds since 1970, for the dialects that say so. Whoever has a clock sets it."""
        self._started = ReplyStarted(model)
        self._own_id = ""
        self._shows_usage = shows_usage
        self._usage: Usage | None = None
        self._ended = False
        self._order: BlockOrder | None = None
        """For a dialect in which one block is open at a time."""

    def write(self, events: Iterable[Event]) -> bytes:
        """Write these events. A whole response appears with ReplyEnded, and nothing follows it."""
        written: list[bytes] = []
        for event in events:
            if self._ended:
                break
            match event:
                case ReplyStarted():
                    self._started = msgspec.structs.replace(event, model=event.model or self._started.model)
                case UsageReported():
                    self._usage = event.usage if self._usage is None else self._usage.merge(event.usage)
                case ReplyEnded():
                    self._ended = True
                    if self._order is not None:
                        written += map(self._write_event, self._order.finish())
                    written.append(self._write_end(event.stop))
                case Warned():
                    pass
                case _ if self._order is not None:
                    written += map(self._write_event, self._order.add(event))
                case _:
                    written.append(self._write_event(event))
        return b"".join(written)

    def _find_id(self, prefix: str) -> str:
        """Return the id of the reply; a new one, unlike any other, if no event gives it. Clients take two replies with
        one id for the same reply.
        """
        if not self._own_id:
            self._own_id = self._started.id or f"{prefix}{uuid4().hex}"
        return self._own_id

    @property
    def _shown_usage(self) -> Usage | None:
        """The counts so far; None if the client did not ask for them."""
        return self._usage if self._shows_usage else None

    def _write_event(self, event: ContentEvent) -> bytes:
        raise NotImplementedError

    def _write_end(self, stop: StopReason) -> bytes:
        raise NotImplementedError
