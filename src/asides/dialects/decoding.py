"""What decoders of documents share: the way from bytes to documents, and how a body ends or breaks.

Not here: any dialect. A dialect takes one document at a time and says when the reply is over.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from asides.errors import AsidesError, ConnectionLost, ProtocolError
from asides.events import Event, ReplyEnded, ReplyStarted, Stop, Warned
from asides.notices import Notice
from asides.providers.provider import Target
from asides.wire.framing import Framing
from asides.wire.lenient import INVALID_TEXT, legible, read_leniently
from asides.wire.sse import DONE

Read = TypeVar("Read")


class DocumentDecoder:
    """Bytes of one response in, events out. Any chunking gives the same events.

    A subclass has `take`, which reads one document, and `flush`, which gives what was held for certainty. It sets
    `stop` when the server says why the model stopped, `ended` when the reply is whole, and `failure` when it broke:
    what stands behind an error belongs to no reply.
    """

    dialect = ""

    def __init__(self, target: Target, framing: Framing) -> None:
        self.payloads: list[bytes] = []
        self.failure: AsidesError | None = None
        self.target = target
        self.origin = target.origin
        self.stop: Stop | None = None
        self.ended = False
        self.truncated_thought = False
        self._framing = framing
        self._started = False
        self._mended = False
        self._early: list[Event] = []
        """What was found worth knowing before it was known who answers."""
        self._warned: set[str] = set()

    @property
    def streamed(self) -> bool:
        """Whether the body came as a stream."""
        return self._framing.form != "json"

    @property
    def done(self) -> bool:
        """Whether the server said that nothing follows."""
        return self.ended

    def take(self, payload: bytes, events: list[Event]) -> None:
        """Read one document. Raises `ProtocolError` when it breaks the dialect."""
        raise NotImplementedError

    def flush(self, events: list[Event]) -> None:
        """What was held for certainty, now that nothing more comes."""

    def feed(self, data: bytes) -> list[Event]:
        """Take the next bytes; return every event they complete."""
        events: list[Event] = []
        if self.failure is None:
            try:
                self._take_all(self._framing.feed(data), events)
            except ProtocolError as problem:
                self._fail(problem)
        return events

    def finish(self) -> list[Event]:
        """The end of the bytes: the last events; ReplyEnded is the very last, unless there is a failure."""
        events: list[Event] = []
        if self.failure is None:
            try:
                self._take_all(self._framing.finish(), events)
            except ProtocolError as problem:
                self._fail_at_end(problem)
        self.flush(events)
        if self.failure is None:
            self._check_whole()
        if self.failure is None:
            self.start(events)
            if self._mended:
                self.warn(*INVALID_TEXT, events)
            events.append(ReplyEnded(self.stop or Stop(), self.truncated_thought))
        return events

    def _take_all(self, payloads: list[bytes], events: list[Event]) -> None:
        for payload in payloads:
            if self.failure is not None:
                return
            if payload == DONE:
                self.ended = True
                continue
            document = legible(payload)
            self.payloads.append(document)
            self._mended = self._mended or document is not payload
            self.take(document, events)

    def _fail(self, problem: ProtocolError) -> None:
        if self._framing.cut:
            self._fail_cut()
            return
        told = f"{self.target.provider.name}: {problem}"
        self.failure = ProtocolError(told, dialect=self.dialect, payload=problem.payload)

    def _fail_at_end(self, problem: ProtocolError) -> None:
        if self._framing.cuts(problem.payload):
            self.payloads.pop()
            self._fail_cut()
        else:
            self._fail(problem)

    def _check_whole(self) -> None:
        who = self.target.provider.name
        if not self.payloads and self._framing.begun:
            self._fail_cut()
        elif not self.payloads and self._framing.head:
            told = "the body is neither JSON nor a stream of events; check the base URL."
            self._fail(ProtocolError(told, payload=self._framing.head))
        elif not self.payloads:
            self.failure = ConnectionLost(f"{who} sent an empty body; try again, or check the base URL.")
        elif not self.ended:
            self._fail_cut()

    def _fail_cut(self) -> None:
        self.failure = ConnectionLost(
            f"the stream from {self.target.provider.name} ended before the reply did; try again (.partial has what "
            "came)."
        )

    # --- for the subclass -------------------------------------------------------------------------------------------

    def start(self, events: list[Event], model: str | None = None, reply_id: str | None = None) -> None:
        """The first event, once: who answers."""
        if self._started:
            return
        self._started = True
        events.append(ReplyStarted(model or self.target.model or None, reply_id or None, self.origin))
        events += self._early

    def warn(self, code: str, detail: str, events: list[Event]) -> None:
        """Something was not understood; told once, behind the first event."""
        if detail not in self._warned:
            self._warned.add(detail)
            (events if self._started else self._early).append(Warned(Notice(code, detail)))

    def read(self, payload: bytes, decoder: msgspec.json.Decoder[Read], events: list[Event]) -> Read:
        """The document as this type; what does not fit is left out and told."""
        try:
            return decoder.decode(payload)
        except msgspec.ValidationError as problem:
            read, left_out = read_leniently(payload, decoder, problem)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise ProtocolError(f"a document is not JSON ({problem}).", payload=payload) from None
        for path in left_out:
            self.warn("malformed_field", f"{path} is of another type than expected and was left out", events)
        return read
