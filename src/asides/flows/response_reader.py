"""The bytes of one response on their way to a reply: decoder, fold, and what went wrong. Asks for nothing.

Not here: where the bytes come from. A flow feeds it read by read, `decode` all at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from asides.dialects.dialect import Decoder, Dialect
from asides.flows.retry import wait_demanded
from asides.flows.steps import Head
from asides.providers.provider import Target
from asides.values.errors import AsidesError, ProviderError, TransportError, redact_keys
from asides.values.events import Event, Warned
from asides.values.fold import Fold
from asides.values.notices import Notice
from asides.values.reply import Reply, Revealed

ERROR_BODY_LIMIT = 64 * 1024


class ResponseReader:
    """One response being read. `take` and `end` return the events; nothing raises before `reply`."""

    __slots__ = ("_decoder", "_feed", "_fold", "_keep_raw", "_lost", "_revealed", "_take", "_warned")

    def __init__(
        self,
        decoder: Decoder,
        notices: Sequence[Notice] = (),
        *,
        keep_raw: bool = True,
        revealed: tuple[Revealed, ...] = (),
    ) -> None:
        self._decoder = decoder
        self._feed = decoder.feed
        self._fold = Fold()
        self._take = self._fold.take
        self._keep_raw = keep_raw
        self._revealed = revealed
        self._warned: list[Event] = [Warned(notice) for notice in notices]
        self._lost: TransportError | None = None

    @property
    def failed(self) -> bool:
        """Whether there is no more to hope for."""
        return self._decoder.failure is not None

    @property
    def done(self) -> bool:
        """Whether the server has said its last word, though it may not have hung up."""
        return bool(getattr(self._decoder, "done", False))

    @property
    def partial(self) -> Reply | None:
        """What has arrived; None when nothing had started."""
        return None if self._fold.started is None else self._reply()

    def take(self, data: bytes) -> list[Event]:
        """Take the next bytes; the events they complete."""
        return self._folded(self._feed(data))

    def end(self, lost: TransportError | None = None) -> list[Event]:
        """The end of the bytes, by the server's will or by an accident: the last events.

        Many servers hang up without ceremony behind their last word. If it was that, nothing is missing, and it is only
        worth a notice.
        """
        self._lost = lost
        events = self._decoder.finish()
        if lost is not None and self._decoder.failure is None:
            notice = Notice("connection_lost_at_end", "the connection broke behind the last word; nothing is missing")
            events = [*events[:-1], Warned(notice), events[-1]]
        return self._folded(events)

    def _folded(self, events: list[Event]) -> list[Event]:
        if not self._keep_raw:
            # The last one stays: a decoder that has read nothing yet has another thing to say about the end.
            del self._decoder.payloads[:-1]
        if events:
            if self._warned:
                # Behind ReplyStarted, which stays the first event.
                events = [events[0], *self._warned, *events[1:]]
                self._warned = []
            self._take(events)
        return events

    def reply(self) -> Reply:
        """The whole reply; raises what went wrong, with what had arrived."""
        failure: AsidesError | None = self._decoder.failure
        if failure is not None:
            # Of two accounts of the same end, the shell's says more: it knows how the connection ended.
            failure = self._lost or failure
            if failure.partial is None:
                failure.partial = self.partial
            raise failure
        return self._reply()

    def _reply(self) -> Reply:
        payloads = self._decoder.payloads if self._keep_raw else ()
        reply = self._fold.reply(payloads, streamed=self._decoder.streamed)
        return msgspec.structs.replace(reply, revealed=self._revealed) if self._revealed else reply


def refusal(dialect: Dialect, head: Head, body: bytes, target: Target) -> ProviderError:
    """The error that a response with a bad status is."""
    if 300 <= head.status < 400:
        where = redact_keys(head.headers.get("location", "another address"))
        return ProviderError(
            f"{target.provider.name} answered {head.status} and points to {where}. Redirects are not followed, since "
            "the key would travel along. To do: set base_url= to the new address.",
            status=head.status,
        )
    error = dialect.error(head.status, head.headers, body[:ERROR_BODY_LIMIT], target)
    if error.retry_after is None:
        error.retry_after = wait_demanded(head.headers, head.received)
    return error
