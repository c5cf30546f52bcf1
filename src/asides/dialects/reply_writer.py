"""What the writers of every dialect share: who answers, the counts so far, and that nothing follows the end.

Not here: the bytes of any dialect. A dialect subclasses `ReplyWriter`.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from asides.values.events import Event, ReplyEnded, ReplyStarted, StopReason, UsageReported, Warned
from asides.values.usage import Usage


class ReplyWriter:
    """Events of one reply in, bytes of a response out.

    A subclass has `_take`, which writes what belongs to a block, and `_end`. Warnings are on no wire.
    """

    def __init__(self, model: str, content_type: str, *, shows_usage: bool) -> None:
        self.content_type = content_type
        self._started = ReplyStarted(model)
        self._shows_usage = shows_usage
        self._usage: Usage | None = None
        self._ended = False

    def write(self, events: Iterable[Event]) -> bytes:
        """The bytes for these events; a whole response appears with ReplyEnded, and nothing follows it."""
        written: list[bytes] = []
        for event in events:
            if self._ended:
                break
            if isinstance(event, ReplyStarted):
                self._started = msgspec.structs.replace(event, model=event.model or self._started.model)
            elif isinstance(event, UsageReported):
                self._usage = event.usage if self._usage is None else self._usage.updated(event.usage)
            elif isinstance(event, ReplyEnded):
                self._ended = True
                written.append(self._end(event.stop))
            elif not isinstance(event, Warned):
                written.append(self._take(event))
        return b"".join(written)

    @property
    def _shown_usage(self) -> Usage | None:
        """The counts so far, where they are to be told."""
        return self._usage if self._shows_usage else None

    def _take(self, event: Event) -> bytes:
        raise NotImplementedError

    def _end(self, stop: StopReason) -> bytes:
        raise NotImplementedError
