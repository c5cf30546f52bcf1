"""The shared parts of every server half: the fields of a client's request (`RequestFields`), and the base of the
writers (`ReplyWriter`).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Self, TypeAlias, TypeVar

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.dialects.verbatim import keep_request
from asides.values.errors import ConfigError
from asides.values.events import (
    CommentaryDelta,
    Event,
    PartArrived,
    RefusalDelta,
    ReplyEnded,
    ReplyStarted,
    StopKind,
    StopReason,
    TextDelta,
    TextReclassified,
    ThinkingDelta,
    ThoughtSealed,
    ToolCallDelta,
    UsageReported,
    Warned,
    find_stop_word,
    move_reclassified,
)
from asides.values.messages import Message, RequestSource, Sampling, join_system_texts
from asides.values.notices import Notice
from asides.values.parts import File, Image, ServerTool, UnknownPart, read_arguments
from asides.values.tools import Tool, read_tool
from asides.values.usage import Usage
from asides.wire.lenient import read_part_json

Value = TypeVar("Value")

ContentEvent: TypeAlias = TextDelta | ThinkingDelta | ToolCallDelta | ThoughtSealed | RefusalDelta | PartArrived
"""The events of blocks. Each writer has a case for each of them; commentary has its own method."""


# The kind of the seal with a text's citations, in every dialect with citations; the form depends on the dialect.
_CITATIONS = "citations"
# The servers that say what they take stop at about a hundred.
_MAX_LEVELS = 100
_NESTING = frozenset({dict, list})

# --- reading requests -------------------------------------------------------------------------------------------------


class RequestFields:
    """The fields of one JSON object. Readers remove the fields they understand; the others become the prompt's
    `extra`.

    A field that is null counts as not set.
    """

    def __init__(self, fields: Mapping[str, Any], path: str = "") -> None:
        self.remaining: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
        self._path = path
        self._source: RequestSource | None = None

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
            raise ConfigError(f"the body is nested deeper than {_MAX_LEVELS} levels.")
        return cls(document)

    def keep(self, dialect: str) -> Self:
        """Save the current fields as the source of the prompt that is read from them."""
        self._source = keep_request(dialect, self.remaining)
        return self

    def keep_system(self, message: Message) -> str | None:
        """Return the text of the system prompt, and remember the message that it was read from."""
        if self._source is not None and message.source is not None:
            self._source = msgspec.structs.replace(self._source, system=message)
        return join_system_texts(message) or None

    @property
    def source(self) -> RequestSource | None:
        """The source of the prompt: the fields as they came."""
        return self._source

    def take(self, name: str, kind: type[Value]) -> Value | None:
        """Take a field out; None if it is not set. Raises ConfigError if it has another type."""
        if name not in self.remaining:
            return None
        try:
            return msgspec.convert(self.remaining.pop(name), kind)
        except msgspec.ValidationError as problem:
            raise ConfigError(f"{self._path}{name}: {problem}.") from None

    def take_model(self) -> str:
        """Remove and return the model's name. Raises ConfigError if it is missing."""
        model = self.take("model", str)
        if not model:
            raise ConfigError("model is missing.")
        return model

    def take_sampling(self, names: Mapping[str, str], *, strict: bool = True) -> Sampling:
        """Take the sampling settings out. Raises ConfigError if one has another type.

        `names`: the dialect's names for ours. `strict`: numbers in quotes are errors.
        """
        settings = {ours: self.remaining.pop(theirs) for ours, theirs in names.items() if theirs in self.remaining}
        try:
            return msgspec.convert(settings, Sampling, strict=strict)
        except msgspec.ValidationError as problem:
            raise ConfigError(f"a sampling setting is invalid: {problem}.") from None

    def take_stop(self, name: str = "stop") -> tuple[str, ...]:
        """Take the stop texts out: one, or a list."""
        if isinstance(self.remaining.get(name), str):
            return (self.remaining.pop(name),)
        return tuple(self.take(name, list[str]) or ())

    def take_functions(self) -> tuple[Tool, ...]:
        """Take the functions out of the tools. The whole list also stays if only this API knows some of them."""
        tools = self.take("tools", list[dict[str, Any]]) or []
        functions = [tool for tool in tools if tool.get("type") == "function"]
        if len(functions) != len(tools):
            self.remaining["tools"] = tools
        return tuple(map(read_tool, functions))

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
    for _ in range(_MAX_LEVELS):
        below: list[Any] = []
        for value in level:
            below += value.values() if type(value) is dict else value
        level = [item for item in below if type(item) in _NESTING]
        if not level:
            return False
    return True


# --- writing replies --------------------------------------------------------------------------------------------------


class CallerTool(msgspec.Struct, frozen=True):
    """The caller's version of a tool that was sent to the provider under another name."""

    name: str
    namespace: str = ""
    custom: bool = False
    """It takes free text. The provider got a function whose only argument, `input`, is that text."""


class ReplyWriter:
    """Writes the events of one reply as the bytes of a response.

    A subclass implements `_write_event`, for the events of a block, and `_write_end`; and `_write_failure`, if its
    streams have a form for errors. Warnings are not written.
    """

    parts: tuple[type, ...] = (ServerTool, UnknownPart)
    """The kinds of complete parts that this dialect can write."""
    ping = b""
    """What a server sends while the model is silent. b"": the dialect has nothing for it."""
    id_prefix = ""

    def __init__(self, model: str, content_type: str, *, shows_usage: bool, stream: bool = False) -> None:
        self.content_type = content_type
        self.created = 0
        """Unix time of the reply, where the dialect has a field for it; set by the caller."""
        self.notices: list[Notice] = []
        """What could not be written."""
        self.request: ServedRequest | None = None
        """The request of the client, for a reply of another provider (`serve`)."""
        self._stream = stream
        self._started = ReplyStarted(model)
        self._own_id = ""
        self._shows_usage = shows_usage
        self._usage: Usage | None = None
        self._ended = False
        self._whole_events: list[Event] = []
        self._is_foreign = False
        self._tools: Mapping[str, CallerTool] = {}
        self._free_text: _FreeText | None = None
        """The open call whose arguments are being unwrapped."""

    def serve(self, request: ServedRequest, tools: Mapping[str, CallerTool], *, foreign: bool) -> None:
        """Write for the client of this request, before any event: with the names of its tools, and every field that
        strict clients want. `foreign`: the events are of another dialect, whose own parts mean nothing here, and the
        reply gets an id of its own, since small servers give all their replies the same.
        """
        self.request, self._tools, self._is_foreign = request, tools, foreign
        if foreign:
            self._own_id = f"{self.id_prefix}{secrets.token_hex(16)}"

    def write(self, events: Iterable[Event]) -> bytes:
        """Write these events. A whole response appears with ReplyEnded, and nothing follows it."""
        written: list[bytes] = []
        for event in events if self._stream else self._hold_whole(events):
            if self._ended:
                break
            if self._free_text is not None and getattr(event, "block", -1) != self._free_text.block:
                written.append(self._end_free_text())
            written.append(self._write_one(event))
        return written[0] if len(written) == 1 else b"".join(written)

    def _hold_whole(self, events: Iterable[Event]) -> list[Event]:
        """Hold the events of a whole response until its end: text may still turn out to be thinking."""
        now: list[Event] = []
        for event in events:
            if isinstance(event, (ReplyStarted, UsageReported)):
                now.append(event)
                continue
            self._whole_events.append(event)
            if isinstance(event, ReplyEnded):
                now += move_reclassified(self._whole_events)
                self._whole_events = []
        return now

    def _write_one(self, event: Event) -> bytes:
        match event:
            case TextDelta() if event.text or not self._is_foreign:
                return self._write_event(event)
            case TextDelta():
                return b""  # an empty part that carries a seal of another dialect
            case ThinkingDelta():
                return self._write_event(event)
            case ToolCallDelta():
                return self._write_call_event(event)
            case ReplyStarted():
                self._started = msgspec.structs.replace(event, model=event.model or self._started.model)
                return b""
            case UsageReported():
                self._usage = event.usage if self._usage is None else self._usage.merge(event.usage)
                return b""
            case ReplyEnded():
                self._ended = True
                return self._write_end(event.stop)
            case Warned():
                return b""
            case TextReclassified():
                # The client of a stream has the text, and no dialect can take it back.
                detail = "the caller got thinking as text, before its closing tag came"
                if event.channel == "commentary":
                    detail = "the caller got commentary as text, before the server named its phase"
                self.notices.append(Notice("text_not_moved", detail))
                return b""
            case PartArrived():
                return b"" if self._leaves_out(event) else self._write_event(event)
            case CommentaryDelta():
                return self._write_commentary(event) if event.text or not self._is_foreign else b""
            case ThoughtSealed() if self._is_foreign and event.seal.kind == _CITATIONS:
                self._report_unwritten("citations of another dialect")
                return b""
            case _:
                return self._write_event(event)

    def write_error(self, status: int, message: str, kind: str | None = None) -> bytes:
        """Write the error that ends the reply, in the form that a stream has for it. Nothing follows. In place of a
        whole response, the dialect's `write_error` is the body.
        """
        if self._ended:
            return b""
        self._ended = True
        return self._write_failure(status, message, kind)

    def write_ping(self) -> bytes:
        """Write a ping, while the model is silent; b"" where the dialect has none, and for whole responses."""
        return b"" if self._ended or not self._stream else self.ping

    @property
    def reply_id(self) -> str:
        """The id of the reply that the client reads."""
        return self._find_id(self.id_prefix)

    def use_reply_id(self, reply_id: str) -> None:
        """Set the id of the reply, where the client has it already."""
        self._own_id = reply_id

    # --- calls and parts --------------------------------------------------------------------------------------------

    def _write_call_event(self, event: ToolCallDelta) -> bytes:
        """Write a call by the name that the client has for its tool."""
        if self._free_text is not None:
            self._free_text.pieces.append(event.arguments)
            return b""
        tool = self._tools.get(event.name) if event.name else None
        if tool is None:
            return self._write_event(event)
        arguments = "" if tool.custom else event.arguments
        begun = self._write_event(self._name_call(event, tool, arguments))
        if tool.custom:
            self._free_text = _FreeText(event.block, [event.arguments])
        return begun

    def _name_call(self, event: ToolCallDelta, tool: CallerTool, arguments: str) -> ToolCallDelta:
        return msgspec.structs.replace(event, name=tool.name, arguments=arguments, custom=tool.custom)

    def _end_free_text(self) -> bytes:
        """Write the free text of a call whose arguments are complete: the client's tool takes no arguments."""
        waiting, self._free_text = self._free_text, None
        if waiting is None:
            return b""
        raw = "".join(waiting.pieces)
        text = (read_arguments(raw) or {}).get("input")
        return self._write_event(
            ToolCallDelta(waiting.block, arguments=text if isinstance(text, str) else raw, custom=True)
        )

    def _leaves_out(self, event: PartArrived) -> bool:
        """True, with a notice, if the dialect cannot write this part."""
        part = event.part
        is_own = not self._is_foreign or isinstance(part, (Image, File))
        is_object = not isinstance(part, (ServerTool, UnknownPart)) or isinstance(read_part_json(part.json), dict)
        if isinstance(part, self.parts) and is_own and is_object:
            return False
        self._report_unwritten(part.name if isinstance(part, ServerTool) else type(part).__name__)
        return True

    def _report_unwritten(self, name: str) -> None:
        notice = Notice("part_not_written", f"the caller's dialect has no place for this part of the reply: {name}")
        if notice not in self.notices:
            self.notices.append(notice)

    # --- values -----------------------------------------------------------------------------------------------------

    def _find_id(self, prefix: str) -> str:
        """Return the id of the reply; a new one, unlike any other, if no event gives it. Clients take two replies with
        one id for the same reply, and some servers of other dialects give every reply the same.
        """
        if not self._own_id:
            given = "" if self._is_foreign else self._started.id
            self._own_id = given or f"{prefix}{secrets.token_hex(16)}"
        return self._own_id

    @property
    def _shown_usage(self) -> Usage | None:
        """The counts so far; None if the client did not ask for them."""
        return self._usage if self._shows_usage else None

    # --- what a dialect implements ----------------------------------------------------------------------------------

    def _write_commentary(self, event: CommentaryDelta) -> bytes:  # noqa: ARG002 - for subclasses
        """Write commentary. Without a place for it, it is left out: clients take all text for the answer."""
        self._report_unwritten("commentary")
        return b""

    def _write_event(self, event: ContentEvent) -> bytes:
        raise NotImplementedError

    def _write_end(self, stop: StopReason) -> bytes:
        raise NotImplementedError

    def _write_failure(self, status: int, message: str, kind: str | None) -> bytes:  # noqa: ARG002 - for subclasses
        return b""


class _FreeText:
    """A call of a free-text tool, while the arguments of the function that replaces the tool arrive."""

    __slots__ = ("block", "pieces")

    def __init__(self, block: int, pieces: list[str]) -> None:
        self.block = block
        self.pieces = pieces


NO_ARGUMENTS = "{}"
"""The arguments of a call without any, where they are a string of JSON: clients parse it (seen 2026-11-18: an agent of
the maker's own SDK crashes on an empty one)."""


def name_stop(stop: StopReason, known: Collection[str], words: Mapping[StopKind, str], complete: str) -> str:
    """Return a dialect's word for the end of a reply: the provider's own if the dialect knows it, else the one for our
    reason or the nearest, else the word for a reply that is complete.
    """
    if stop.raw is not None and stop.raw in known:
        return stop.raw
    return find_stop_word(words, stop.reason) or complete


def has_all_arguments(pieces: list[str]) -> bool:
    """Whether the arguments of a call are complete: a JSON object ends with its bracket."""
    arguments = "".join(pieces)
    return arguments.rstrip().endswith("}") and read_arguments(arguments) is not None
