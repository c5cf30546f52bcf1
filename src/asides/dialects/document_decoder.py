"""What decoders of documents share: the way from bytes to documents, and how a body ends or breaks.

Not here: any dialect. A dialect takes one document at a time and says when the reply is over.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from asides.providers.provider import Target
from asides.values.errors import AsidesError, ConnectionLost, ProtocolError
from asides.values.events import Event, ReplyEnded, ReplyStarted, StopReason, Warned
from asides.values.notices import Notice
from asides.wire.framing import Framing
from asides.wire.lenient import INVALID_TEXT, legible, read_leniently
from asides.wire.sse import DONE

Read = TypeVar("Read")


class DocumentDecoder:
    """Bytes of one response in, events out. Any chunking gives the same events.

    A subclass has `take`, which reads one document, and `flush`, which gives what was held for certainty. It sets
    `stop` when the server says why the model stopped, `ended` when it says that nothing follows, and `failure` when it
    broke. Where dialects differ in how a body ends or breaks, the difference is one of the flags and hooks here.
    """

    dialect = ""
    reads_behind_errors = False
    """Whether a stream is read on behind an error that was told inside it, since usage may stand there, for `.partial`.
    Elsewhere what stands behind an error belongs to no reply."""
    warns_at_once = False
    """Whether a warning may begin the reply. Elsewhere it waits until it is known who answers."""
    ends_with_its_stop = False
    """Whether a stream is whole once it said why it stopped, and a whole body always. Elsewhere only the end counts."""
    keeps_bytes = False
    """Whether `payloads` has a document as it came even where characters do not read. Elsewhere others replace them."""

    def __init__(self, target: Target, framing: Framing) -> None:
        self.payloads: list[bytes] = []
        self.failure: AsidesError | None = None
        self.target = target
        self.origin = target.origin
        self.stop: StopReason | None = None
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
        if self.failure is not None and self._is_over():
            return events
        try:
            for payload in self._framing.feed(data):
                self.decode_payload(payload, events)
        except ProtocolError as problem:
            self.fail(problem)
        return events

    def finish(self) -> list[Event]:
        """The end of the bytes: the last events; ReplyEnded is the very last, unless there is a failure."""
        events: list[Event] = []
        if not self._is_over():
            try:
                for payload in self._framing.finish():
                    self.decode_payload(payload, events)
            except ProtocolError as problem:
                self.fail_at_end(problem)
        self.flush(events)
        if self.failure is None:
            self._check_whole()
        if self.failure is None:
            self.start(events)
            if self._mended:
                self.warn(*INVALID_TEXT, events)
            events.append(ReplyEnded(self.stop or StopReason(), self.truncated_thought))
        return events

    def _is_over(self) -> bool:
        if self.reads_behind_errors:
            return isinstance(self.failure, ProtocolError)
        return self.failure is not None

    def _check_whole(self) -> None:
        if not self.payloads:
            self.fail_unread()
        elif not self.is_whole():
            self.fail_cut()

    # --- what a dialect may do in its own way -----------------------------------------------------------------------

    def decode_payload(self, payload: bytes, events: list[Event]) -> None:
        """Take what stands in one frame of the body: a document, or the mark that nothing follows."""
        if self.failure is not None and not self.reads_behind_errors:
            return
        if payload == DONE:
            self.ended = True
            return
        document = legible(payload)
        self._mended = self._mended or document is not payload
        self.payloads.append(payload if self.keeps_bytes else document)
        try:
            self.take(document, events)
        except RecursionError:
            raise ProtocolError("a document is nested deeper than can be read.", payload=document) from None

    @property
    def broke_off(self) -> bool:
        """Whether the reply was cut off, now that nothing more comes. Not by the token limit: most such texts are
        answers.
        """
        return self.failure is not None or not self.is_whole()

    def is_whole(self) -> bool:
        """Whether the reply is all there, now that nothing more comes."""
        return self.ended or (self.ends_with_its_stop and (self.stop is not None or not self.streamed))

    def fail_unread(self) -> None:
        """Not one document came."""
        if self._framing.begun:
            self.fail_cut()
        elif self._framing.head:
            self.fail_unreadable()
        else:
            self.fail_lost("sent an empty body")

    def fail_at_end(self, problem: ProtocolError) -> None:
        """The end of the body broke the dialect; what stops in its middle was lost with the connection instead."""
        if self._framing.cuts(problem.payload):
            self.payloads.pop()
            self.fail_cut()
        elif self._framing.cut:
            self.fail_cut()
        else:
            self.fail(problem)

    # --- for the subclass -------------------------------------------------------------------------------------------

    def fail(self, problem: ProtocolError) -> None:
        """The body breaks the dialect."""
        told = f"{self.target.provider.name}: {problem}"
        self.failure = ProtocolError(told, dialect=self.dialect, payload=problem.payload)

    def fail_unreadable(self) -> None:
        """The body is of no known form."""
        told = "the body is neither JSON nor a stream of events; check the base URL."
        self.fail(ProtocolError(told, payload=self._framing.head))

    def fail_lost(self, what: str) -> None:
        """Nothing of a reply came; `what` the server did instead."""
        self.failure = ConnectionLost(f"{self.target.provider.name} {what}; try again, or check the base URL.")

    def fail_cut(self) -> None:
        """The body ended too early."""
        self.failure = ConnectionLost(
            f"the stream from {self.target.provider.name} ended before the reply did; try again (.partial has what "
            "came)."
        )

    def start(
        self, events: list[Event], model: str | None = None, reply_id: str | None = None, *, stored: bool = False
    ) -> None:
        """The first event, once: who answers. An empty id is none."""
        if not self._started:
            self.begin(ReplyStarted(model or self.target.model or None, reply_id or None, self.origin, stored), events)

    def begin(self, first: ReplyStarted, events: list[Event]) -> None:
        """The first event as it stands here, and what was found before it."""
        self._started = True
        events.append(first)
        events += self._early

    def warn(self, code: str, detail: str, events: list[Event]) -> None:
        """Something was not understood; told once, behind the first event."""
        if detail in self._warned:
            return
        self._warned.add(detail)
        if self.warns_at_once:
            self.start(events)
        (events if self._started else self._early).append(Warned(Notice(code, detail)))

    def read(self, payload: bytes, decoder: msgspec.json.Decoder[Read], events: list[Event]) -> Read:
        """The document as this type; what does not fit is left out and told."""
        try:
            return decoder.decode(payload)
        except msgspec.ValidationError as problem:
            return self.read_leniently(payload, decoder, problem, events)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise ProtocolError(f"a document is not JSON ({problem}).", payload=payload) from None

    def read_leniently(
        self, payload: bytes, decoder: msgspec.json.Decoder[Read], problem: msgspec.ValidationError, events: list[Event]
    ) -> Read:
        """The document as this type without what does not fit it, which is told."""
        read, left_out = read_leniently(payload, decoder, problem)
        for path in left_out:
            self.warn("malformed_field", f"{path} is of another type than expected and was left out", events)
        return read
