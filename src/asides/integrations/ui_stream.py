"""`UiStream` and `AsyncUiStream`: read the events of a stream, write the chunks of a protocol, and close the stream
when the reader has gone. Both share `_Output`, which decides everything; they differ in how they wait.
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Generic, Self, TypeVar

import msgspec

from asides.integrations.ui_parts import Chunk
from asides.integrations.ui_writer import UiWriter
from asides.values.error_words import describe_type
from asides.values.errors import (
    AsidesError,
    ConfigError,
    ConnectTimeout,
    ContentFiltered,
    ContextTooLong,
    IdleTimeout,
    InvalidOutput,
    LimitReached,
    NoAnswer,
    Overloaded,
    RateLimited,
    ToolFailed,
    TransportError,
    UnsupportedInput,
)
from asides.values.reply import Reply

_log = logging.getLogger("asides")
Item_co = TypeVar("Item_co", covariant=True)
OnError = Callable[[Exception], "str | None"]
"""Gets the error that ended a stream. Returns words for the reader; None: the ordinary ones."""

SILENCE = b":\n\n"
"""A comment, which readers skip. It keeps proxies from closing a connection while the model thinks unseen."""

# For people who asked a question. They can do nothing about a key or a model's name, so those are not mentioned.
_WORDS: tuple[tuple[type[Exception], str], ...] = (
    (RateLimited, "Too many requests right now. Please try again in a moment."),
    (Overloaded, "The model is busy right now. Please try again later."),
    (ContextTooLong, "This conversation is too long for the model. Please start a new one."),
    (ContentFiltered, "The request was refused by a content filter. Please change it."),
    (UnsupportedInput, "The model cannot read this kind of input. Please leave it out."),
    (ConnectTimeout, "The model could not be reached. Please try again later."),
    (IdleTimeout, "The model did not answer in time. Please try again."),
    (TransportError, "The connection to the model broke. Please try again."),
    (LimitReached, "The answer took more steps than allowed."),
    (ToolFailed, "A tool failed, and the answer could not be finished."),
    (InvalidOutput, "The model did not give a usable answer. Please try again."),
    (NoAnswer, "The model gave no answer. Please try again."),
)
_OTHER_WORDS = "The answer could not be completed."


def describe_error(error: Exception) -> tuple[str, str]:
    """Words for the reader, without anything that a provider or a program said; and a code, as "rate_limited"."""
    words = next((words for kind, words in _WORDS if isinstance(error, kind)), _OTHER_WORDS)
    if not isinstance(error, AsidesError):
        return words, "internal_error"
    return words, re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()


class ChunkFraming(Generic[Item_co]):
    """How chunks leave: as they are, or as server-sent events."""

    def frame(self, chunks: list[Chunk], *, is_last: bool) -> Iterable[Item_co]:
        """What is handed over for these chunks."""
        raise NotImplementedError


class AsChunks(ChunkFraming[Chunk]):
    """Chunks one by one."""

    def frame(self, chunks: list[Chunk], *, is_last: bool) -> Iterable[Chunk]:  # noqa: ARG002 - not framed
        """The chunks."""
        return chunks


class AsEvents(ChunkFraming[bytes]):
    """Server-sent events: the bytes of all chunks of a batch in one piece, so that each batch is one write."""

    def __init__(self, last: bytes = b"") -> None:
        self._last = last

    def frame(self, chunks: list[Chunk], *, is_last: bool) -> Iterable[bytes]:
        """The bytes."""
        written = b"".join([b"data: %b\n\n" % _encode(chunk) for chunk in chunks])
        return (written + self._last if is_last else written or SILENCE,)


_encoder = msgspec.json.Encoder()


def _encode(chunk: Chunk) -> bytes:
    try:
        return _encoder.encode(chunk)
    except UnicodeEncodeError:
        # A lone surrogate, from a tool or from handmade events.
        import json

        return json.dumps(chunk).encode()


class _Output(Generic[Item_co]):
    """What is written for each thing that can happen to a stream."""

    def __init__(self, writer: UiWriter, framing: ChunkFraming[Item_co], on_error: OnError | None) -> None:
        self._writer = writer
        self._framing = framing
        self._on_error = on_error

    def begin(self) -> Iterable[Item_co]:
        return self._framing.frame(self._writer.begin(), is_last=False)

    def feed(self, events: Iterable[Any]) -> Iterable[Item_co]:
        return self._framing.frame(self._writer.feed(events), is_last=False)

    def end(self) -> Iterable[Item_co]:
        return self._framing.frame(self._writer.end(), is_last=True)

    def fail(self, error: Exception) -> Iterable[Item_co]:
        words, code = describe_error(error)
        if self._on_error is not None:
            words = self._on_error(error) or words
        elif isinstance(error, AsidesError):
            _log.warning("a stream to a front end ended: %s: %s", type(error).__name__, error)
        return self._framing.frame(self._writer.fail(words, code), is_last=True)


class UiStream(Generic[Item_co]):
    """What a front end reads, as an iterator for a web framework. `close` closes the stream of the events too."""

    def __init__(
        self, events: Iterable[Any], writer: UiWriter, framing: ChunkFraming[Item_co], on_error: OnError | None
    ) -> None:
        self._events = events
        self._items = _write(events, _Output(writer, framing, on_error))

    def __iter__(self) -> Iterator[Item_co]:
        return self

    def __next__(self) -> Item_co:
        return next(self._items)

    def close(self) -> None:
        """Stop writing, and close the event stream immediately. From any thread."""
        _close(self._events)
        # Another thread may be reading. It finds the stream closed.
        with suppress(ValueError):
            self._items.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncUiStream(Generic[Item_co]):
    """What a front end reads, as an async iterator for a web framework. `aclose` closes the events' stream too."""

    def __init__(self, events: Any, writer: UiWriter, framing: ChunkFraming[Item_co], on_error: OnError | None) -> None:
        self._events = events
        self._items = _write_async(events, _Output(writer, framing, on_error))

    def __aiter__(self) -> AsyncIterator[Item_co]:
        return self

    async def __anext__(self) -> Item_co:
        return await anext(self._items)

    async def aclose(self) -> None:
        """Stop writing, and close the event stream immediately."""
        await _close_async(self._events)
        # Another task may be reading. It finds the stream closed.
        with suppress(RuntimeError):
            await self._items.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _write(events: Iterable[Any], output: _Output[Item_co]) -> Generator[Item_co, None, None]:
    try:
        yield from output.begin()
        try:
            for batch in _read_batches(events):
                yield from output.feed(batch)
        except AsidesError as error:
            yield from output.fail(error)
        except Exception as error:
            yield from output.fail(error)
            raise  # an error of the program: it must reach its log
        else:
            yield from output.end()
    finally:
        _close(events)


async def _write_async(events: Any, output: _Output[Item_co]) -> AsyncGenerator[Item_co, None]:
    try:
        for item in output.begin():
            yield item
        try:
            async for batch in _read_batches_async(events):
                for item in output.feed(batch):
                    yield item
        except AsidesError as error:
            for item in output.fail(error):
                yield item
        except Exception as error:
            for item in output.fail(error):
                yield item
            raise  # an error of the program: it must reach its log
        else:
            for item in output.end():
                yield item
    finally:
        await _close_async(events)


# --- where events come from -------------------------------------------------------------------------------------------


def is_async_source(events: object) -> bool:
    """Whether the events are awaited. Raises ConfigError for what is not a stream of events."""
    if hasattr(type(events), "__aiter__"):
        return True
    if isinstance(events, Reply):
        raise ConfigError("a Reply is not a stream. Pass asides.simulate(reply), or the events of stream().")
    if inspect.iscoroutine(events):
        events.close()  # Otherwise Python warns later that it was never awaited.
        raise ConfigError("a coroutine is not a stream. Await it first.")
    if isinstance(events, (str, bytes, Mapping)) or not isinstance(events, Iterable):
        raise ConfigError(
            f"events must be those of a stream, not {describe_type(events)}. Pass asides.stream(…), a "
            "Conversation's or an Agent's stream(…), or their events."
        )
    return False


def _read_batches(events: Iterable[Any]) -> Iterator[Iterable[Any]]:
    source: Any = events
    return source.batches() if hasattr(events, "batches") else ((event,) for event in events)


def _read_batches_async(events: Any) -> AsyncIterator[Iterable[Any]]:
    return events.batches() if hasattr(events, "batches") else _wrap(events)


async def _wrap(events: Any) -> AsyncIterator[Iterable[Any]]:
    async for event in events:
        yield (event,)


def _close(events: object) -> None:
    close = getattr(events, "close", None)
    if callable(close):
        # A generator that another thread runs now cannot be closed from here.
        with suppress(ValueError):
            close()


async def _close_async(events: object) -> None:
    close = getattr(events, "aclose", None) or getattr(events, "close", None)
    if callable(close):
        # A generator that another task runs now cannot be closed from here.
        with suppress(RuntimeError):
            closing = close()
            if inspect.isawaitable(closing):
                await closing
