"""The base of every decoder: bytes to JSON documents, and how a body ends or fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from asides.providers.provider import Target
from asides.values.errors import AsidesError, ConnectionLost, ProtocolError
from asides.values.events import Event, ReplyEnded, ReplyStarted, StopReason, UsageReported, Warned
from asides.values.notices import Notice
from asides.values.parts import MAX_DEPTH, is_too_deep
from asides.wire.framing import Framing
from asides.wire.lenient import INVALID_TEXT, compact_json, read_any, read_leniently, replace_invalid_text
from asides.wire.sse import DONE

Read = TypeVar("Read")

NO_REPLY = "the body is JSON, but no reply of the dialect {dialect}; check the base URL and the dialect."
MAX_DOCUMENTS = 1_000_000
"""The documents of a reply, unless the caller sets another limit: a document per token of the longest replies, eight
times over."""
_MAX_WARNINGS = 100
_MAX_LATE_DOCUMENTS = 100
# So short a document is either flat enough or not JSON: a level takes "[]", or {"":} where the document has no list.
_SURELY_FLAT = 2 * MAX_DEPTH
_FLAT_WITHOUT_LISTS = 5 * MAX_DEPTH


def explain_problem(problem: Exception, payload: bytes) -> ProtocolError:
    """Return the error for whatever a response made a decoder raise; the problem is its cause. The text holds no
    content.
    """
    if isinstance(problem, ProtocolError):
        return problem
    if isinstance(problem, RecursionError):
        message = "a document is nested deeper than can be read."
    else:
        detail = str(problem) if isinstance(problem, msgspec.MsgspecError) else type(problem).__name__
        message = f"a document has a form that cannot be decoded ({detail})."
    error = ProtocolError(message, payload=payload)
    error.__cause__ = problem
    return error


def _says_nothing(event: Event) -> bool:
    """Whether an event adds nothing to a reply, not even its id."""
    return isinstance(event, Warned) or (isinstance(event, ReplyStarted) and not event.id)


class RawItems:
    """The objects of a list as a document has them, for items of unknown types. Read once, when the first is needed.

    Other items are left out, as they are when the list is read leniently.
    """

    __slots__ = ("_find", "_items")

    def __init__(self, find: Callable[[], Any]) -> None:
        self._find = find
        self._items: list[dict[str, Any]] | None = None

    def __getitem__(self, place: int) -> dict[str, Any]:
        if self._items is None:
            self._items = [item for item in self._find() if isinstance(item, dict)]
        return self._items[place]


class DocumentDecoder:
    """Decodes the bytes of one response into events. Any chunking gives the same events.

    A subclass implements `decode_document`, and `flush` if it holds events back. It sets `stop` when the server gives a
    stop reason, `ended` when the server marks the end, and `failure` on an error. Dialects that end or fail differently
    set one of the flags below or override a hook.
    """

    dialect = ""
    reads_past_errors = False
    """Whether the counts may follow an error inside a stream."""
    warning_starts_reply = False
    """Whether a warning may start the reply. In other dialects it waits until the server has named the model."""
    stop_completes = False
    """Whether a stop reason or a whole body completes the reply. Otherwise only the end mark does."""

    max_documents = MAX_DOCUMENTS
    """The most documents that a reply may have; more are a failure."""

    # Class-level defaults: a decoder is created per reply and rarely changes them.
    truncated_thought = False
    late_start: ReplyStarted | None = None
    """The start of the reply as the server named it after the first event."""
    _replaced_text = False
    _says_nothing = False
    """Whether the body is one document without any field of this dialect."""
    _flushed = False
    _late: tuple[Event, ...] = ()
    """The counts that arrived after the failure."""
    _late_documents = 0
    _early_warnings: tuple[Event, ...] = ()
    """Warnings from before the reply started."""
    _warned: frozenset[str] = frozenset()

    def __init__(self, target: Target, framing: Framing) -> None:
        self.payloads: list[bytes] = []
        self.failure: AsidesError | None = None
        self.target = target
        self.origin = target.origin
        self.stop: StopReason | None = None
        self.ended = False
        self._framing = framing
        self._started = False
        self._documents = 0

    @property
    def streamed(self) -> bool:
        """Whether the body came as a stream."""
        return self._framing.form != "json"

    @property
    def done(self) -> bool:
        """Whether the server marked the end, so that nothing follows."""
        return self.ended

    def decode_document(self, payload: bytes, events: list[Event]) -> None:
        """Decode one document. Raises `ProtocolError` when it breaks the dialect."""
        raise NotImplementedError

    def flush(self, events: list[Event]) -> None:
        """Emit the events that were held: no more documents come."""

    # The guard: whatever a body makes our code raise becomes the failure, and the events before it are returned. An
    # error ends the reply: of the documents after it only the counts are read, whatever the chunking.

    def feed(self, data: bytes) -> list[Event]:
        """Add bytes; return every event they complete."""
        events: list[Event] = []
        if self.failure is None or self.reads_on:
            try:
                if payloads := self._framing.feed(data):
                    self._decode_payloads(payloads, events)
                    if self._framing.failure is not None:
                        self._guard(self._framing.failure)
            except Exception as problem:  # noqa: BLE001 - the guard
                self._guard(problem)
        return events

    def finish(self) -> list[Event]:
        """Return the last events: no more bytes come. ReplyEnded is the very last, unless there is a failure."""
        events: list[Event] = []
        if self.failure is None or self.reads_on:
            self._decode_rest(events)
        if not self._flushed:
            try:
                self.flush(events)
            except Exception as problem:  # noqa: BLE001 - the guard
                self._guard(problem)
        events += self._late
        if self.failure is None:
            self._check_complete()
        if self.failure is None:
            if not self._started:
                self.start(events)
            if self._replaced_text:
                self.warn(*INVALID_TEXT, events)
            events.append(ReplyEnded(self.stop or StopReason(), self.truncated_thought, self.late_start))
        return events

    def _decode_rest(self, events: list[Event]) -> None:
        try:
            payloads = self._framing.finish()
        except Exception as problem:  # noqa: BLE001 - the guard
            if self.failure is None and self._framing.is_cut_off:
                self.fail_cut_off()
            self._guard(problem)
            return
        try:
            self._decode_payloads(payloads, events)
        except ProtocolError as problem:
            if self.failure is None:
                self.fail_at_end(problem)
        except Exception as problem:  # noqa: BLE001 - the guard
            self._guard(problem)

    @property
    def reads_on(self) -> bool:
        """Whether bytes after the failure count: the server's counts may follow its error."""
        if self.failure is None or not self.reads_past_errors or self.done:
            return False
        return self._late_documents < _MAX_LATE_DOCUMENTS and not isinstance(self.failure, ProtocolError)

    def _decode_payloads(self, payloads: list[bytes], events: list[Event]) -> None:
        self._documents = documents = self._documents + len(payloads)
        if documents > self.max_documents:
            payloads = payloads[: self.max_documents - documents]
        rest = iter(payloads)
        if self.failure is None:
            before = len(events)
            self._decode_until_failure(rest, events)
            if payloads:
                is_alone = documents == 1 and not self.ended
                self._says_nothing = is_alone and all(map(_says_nothing, events[before:]))
        if self.failure is not None:
            self._decode_late(rest, events)
        if documents > self.max_documents:
            raise ProtocolError(
                f"the reply has more than {self.max_documents} events, the limit for one. Set reply_limits= if "
                "you expect more."
            )

    def _decode_until_failure(self, payloads: Iterator[bytes], events: list[Event]) -> None:
        for payload in payloads:
            size = len(payload)
            if size > _SURELY_FLAT and (size > _FLAT_WITHOUT_LISTS or b"[" in payload):
                self._check_depth(payload)
            self.decode_payload(payload, events)
            if self.failure is not None:
                return

    def _check_depth(self, payload: bytes) -> None:
        if is_too_deep(payload):
            self.payloads.append(payload)
            raise ProtocolError(f"a document is nested deeper than {MAX_DEPTH} levels.", payload=payload)

    def _decode_late(self, payloads: Iterable[bytes], events: list[Event]) -> None:
        """Decode documents after the failure only for their counts."""
        if not self.reads_past_errors:
            return
        if not self._flushed:
            # Now, since what follows must not become part of the reply.
            self._flushed = True
            self.flush(events)
        failure, late = self.failure, list[Event]()
        try:
            for payload in payloads:
                if self.reads_on:
                    self._late_documents += 1
                    self.decode_payload(payload, late)
                    self.failure = failure
        finally:
            self.failure = failure
            counts = [event for event in late if isinstance(event, (ReplyStarted, UsageReported))]
            self._late = (*self._late, *counts)

    def _guard(self, problem: Exception) -> None:
        """Set the failure. After an earlier one, end the reading of counts."""
        if self.failure is None:
            self.fail(explain_problem(problem, self.payloads[-1] if self.payloads else self._framing.head))
        else:
            self._late_documents = _MAX_LATE_DOCUMENTS

    def _check_complete(self) -> None:
        if not self.payloads:
            self.fail_without_documents()
        elif not self.is_complete():
            self.fail_cut_off()
        elif self._says_nothing and self.stop is None:
            # With a good status: an error page of something between, or a server of another dialect.
            self.fail(ProtocolError(NO_REPLY.format(dialect=self.dialect), payload=self.payloads[-1]))

    # --- hooks: a dialect may override these ------------------------------------------------------------------------

    def decode_payload(self, payload: bytes, events: list[Event]) -> None:
        """Decode one frame of the body: a document, or the end mark."""
        if payload == DONE:
            self.ended = True
            return
        self.payloads.append(payload)
        self.decode_document(payload, events)

    @property
    def is_cut_off(self) -> bool:
        """At the end: whether the reply broke off. A reply that the token limit ended did not break off."""
        return self.failure is not None or not self.is_complete()

    def is_complete(self) -> bool:
        """At the end: whether the reply is complete."""
        return self.ended or (self.stop_completes and (self.stop is not None or not self.streamed))

    def fail_without_documents(self) -> None:
        """Set the failure of a body without any document."""
        if self._framing.looks_like_sse:
            self.fail_cut_off()
        elif self._framing.head:
            self.fail_unrecognised()
        else:
            self.fail_lost("sent an empty body")

    def fail_at_end(self, problem: ProtocolError) -> None:
        """Set the failure of a body whose end cannot be decoded: it was cut off, or it breaks the dialect."""
        if self._framing.is_cut_document(problem.payload):
            self.payloads.pop()
            self.fail_cut_off()
        else:
            self.fail(problem)

    # --- for the subclass to call -----------------------------------------------------------------------------------

    def fail(self, problem: ProtocolError) -> None:
        """Set the failure: the body breaks the dialect."""
        message = f"{self.target.provider.name}: {problem}"
        self.failure = ProtocolError(message, dialect=self.dialect, payload=problem.payload)
        self.failure.__cause__ = problem.__cause__

    def fail_unrecognised(self) -> None:
        """Set the failure: the body has no known form."""
        message = "the body is neither JSON nor a stream of events; check the base URL."
        self.fail(ProtocolError(message, payload=self._framing.head))

    def fail_lost(self, reason: str) -> None:
        """Set the failure: no part of a reply arrived. `reason` completes "the provider …"."""
        self.failure = ConnectionLost(f"{self.target.provider.name} {reason}; try again, or check the base URL.")

    def fail_cut_off(self) -> None:
        """Set the failure: the body ended too early."""
        self.failure = ConnectionLost(
            f"the stream from {self.target.provider.name} ended before the reply did; try again (.partial has the "
            "reply so far)."
        )

    def start(
        self, events: list[Event], model: str | None = None, reply_id: str | None = None, *, stored: bool = False
    ) -> None:
        """Emit ReplyStarted, once. An empty id counts as none."""
        if not self._started:
            started = ReplyStarted(model or self.target.model or None, reply_id or None, self.origin, stored)
            self.emit_start(started, events)

    def emit_start(self, started: ReplyStarted, events: list[Event]) -> None:
        """Emit this first event and the warnings that waited for it."""
        self._started = True
        events.append(started)
        events += self._early_warnings

    def warn(self, code: str, detail: str, events: list[Event]) -> None:
        """Emit a warning, once per detail, after the first event."""
        if detail in self._warned or len(self._warned) > _MAX_WARNINGS:
            return
        if len(self._warned) == _MAX_WARNINGS:
            code, detail = "more_warnings", "the reply gave more warnings than are kept"
        self._warned |= {detail}
        if self.warning_starts_reply:
            self.start(events)
        warning = Warned(Notice(code, detail))
        if self._started:
            events.append(warning)
        else:
            self._early_warnings = (*self._early_warnings, warning)

    def read(self, payload: bytes, decoder: msgspec.json.Decoder[Read], events: list[Event]) -> Read:
        """Read a document as this type. Values of another type are left out, and invalid characters are replaced, each
        with a warning.
        """
        try:
            return decoder.decode(payload)
        except msgspec.ValidationError as problem:
            return self.read_leniently(payload, decoder, problem, events)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            if (clean := self.clean(payload)) is payload:
                raise ProtocolError(f"a document is not JSON ({problem}).", payload=payload) from None
        return self.read(clean, decoder, events)

    def read_leniently(
        self, payload: bytes, decoder: msgspec.json.Decoder[Read], problem: msgspec.ValidationError, events: list[Event]
    ) -> Read:
        """Read a document that made `decoder` raise `problem` without the values that do not fit; warn about each."""
        read, removed = read_leniently(self.clean(payload), decoder, problem)
        for path in removed:
            self.warn("malformed_field", f"{path} has an unexpected type and was left out", events)
        return read

    # Decoding checks the characters of the strings that it reads, and those of raw JSON only when that is read too.

    def clean(self, raw: bytes | msgspec.Raw) -> bytes:
        """Replace invalid characters in JSON; a warning at the end of the reply reports it."""
        document = bytes(raw)
        clean = replace_invalid_text(document)
        self._replaced_text = self._replaced_text or clean is not document
        return clean

    def compact(self, raw: msgspec.Raw) -> bytes:
        """Return raw JSON without white space; invalid characters are replaced."""
        return compact_json(self.clean(raw))

    def read_fields(self, raw: bytes | msgspec.Raw) -> Any:
        """Read raw JSON of any type; invalid characters are replaced."""
        return read_any(self.clean(raw))


class ContinuedDecoder(DocumentDecoder):
    """A decoder of replies that may take several requests: a server ends one at its limit, and another continues it."""

    continuation: dict[str, Any] | None = None
    """The fields of the request that continues the reply, where the server has ended it before its end. A field that is
    None is not sent."""
    is_resumed = False
    """Whether this body is not the first of the reply."""
    _form: bool | None = None

    def __init__(self, target: Target, max_event_bytes: int) -> None:
        super().__init__(target, Framing(max_event_bytes=max_event_bytes))
        self._max_event_bytes = max_event_bytes

    @property
    def streamed(self) -> bool:
        """Whether the body came as a stream."""
        return super().streamed if self._form is None else self._form

    def is_complete(self) -> bool:
        """At the end: whether the reply is complete. A body that continues one must have a stop reason."""
        return super().is_complete() and not (self.is_resumed and self.stop is None)

    def end_body(self) -> list[Event]:
        """Take the end of a body that another one may continue: see `continuation`."""
        events: list[Event] = []
        if self.failure is None:
            self._form = self.streamed
            self._decode_rest(events)
            if self.payloads or self.failure is not None:
                # Of a body without a document, the first bytes say what it was.
                self._framing = Framing(max_event_bytes=self._max_event_bytes)
        return events

    def resume(self) -> None:
        """Decode the body of the next request for the same reply."""
        self.continuation, self.stop, self.ended = None, None, False
        self.is_resumed = True

    def report_not_continued(self, events: list[Event]) -> None:
        """Warn that the reply is incomplete, unless it failed."""
        if self.failure is None:
            detail = "the reply stops at the limit of one request; metadata['raw'] has the token that continues it"
            self.warn("reply_not_continued", detail, events)
