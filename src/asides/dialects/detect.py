"""Recognises the dialect of a response from its bytes: `detect_dialect(body)`, or from pieces that are still arriving.

The framing is that of the decoders, so a stream, a whole body and one that breaks off are all read. Not here: the
decoding (each dialect's decode.py), and the quirks of a host, which the bytes do not show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, TypeAlias

import msgspec

from asides import dialects
from asides.values.errors import ConnectionLost, ProtocolError
from asides.wire.framing import Framing
from asides.wire.lenient import replace_invalid_text
from asides.wire.partial_json import partial
from asides.wire.sse import DONE

_Document: TypeAlias = dict[str, Any]

_ANTHROPIC_EVENTS = frozenset({
    "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
    "message_stop",
})  # fmt: skip
_COHERE_EVENTS = frozenset({
    "message-start", "content-start", "content-delta", "content-end", "tool-plan-delta", "tool-call-start",
    "tool-call-delta", "tool-call-end", "citation-start", "citation-end", "message-end",
})  # fmt: skip
_COHERE_V1_EVENTS = frozenset({"stream-start", "text-generation", "tool-calls-generation", "stream-end"})
_BEDROCK_EVENTS = frozenset({
    "messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop",
})  # fmt: skip
STREAM_EVENTS = _ANTHROPIC_EVENTS | _COHERE_EVENTS | _COHERE_V1_EVENTS | _BEDROCK_EVENTS
"""The names of the events of streams, in the dialects whose events have names of their own."""
_ID_PREFIXES = {"chatcmpl": "openai_chat", "resp_": "openai_responses", "msg_": "anthropic"}
_GEMINI_FIELDS = ("candidates", "promptFeedback", "usageMetadata")


# --- the marks of each dialect ----------------------------------------------------------------------------------------


def _is_responses(document: _Document) -> bool:
    kind = _get_text(document, "type")
    if kind.startswith("response."):
        return True
    if kind == "error" and "sequence_number" in document:
        return True
    items = document.get("output")
    return document.get("object") == "response" or (isinstance(items, list) and _has_any(items, "type"))


def _is_chat(document: _Document) -> bool:
    choices = document.get("choices")
    return isinstance(choices, list) and (_has_any(choices, "message") or _has_any(choices, "delta"))


def _is_anthropic(document: _Document) -> bool:
    kind, content = _get_text(document, "type"), document.get("content")
    if kind in _ANTHROPIC_EVENTS:
        return True
    is_message = kind == "message" or document.get("role") == "assistant"
    return is_message and isinstance(content, list) and (not content or _has_any(content, "type"))


def _is_gemini(document: _Document) -> bool:
    inner = document.get("response")
    if isinstance(inner, dict) and "candidates" in inner:
        return True
    return any(name in document for name in _GEMINI_FIELDS)


def _is_ollama(document: _Document) -> bool:
    has_text = isinstance(document.get("message"), dict) or isinstance(document.get("response"), str)
    return has_text and ("done" in document or "created_at" in document)


def _is_bedrock(document: _Document) -> bool:
    output = document.get("output")
    if isinstance(output, dict) and "message" in output:
        return True
    if any(isinstance(document.get(name), dict) for name in _BEDROCK_EVENTS):
        return True
    metadata = document.get("metadata")
    return isinstance(metadata, dict) and "metrics" in metadata and "usage" in metadata


def _is_cohere(document: _Document) -> bool:
    if _get_text(document, "type") in _COHERE_EVENTS or _get_text(document, "event_type") in _COHERE_V1_EVENTS:
        return True
    if "generation_id" in document and "text" in document:
        return True
    message = document.get("message")
    return isinstance(message, dict) and "role" in message and ("finish_reason" in document or "usage" in document)


class _Marks(msgspec.Struct, frozen=True):
    fits: Callable[[_Document], bool]
    lacking: str
    """What a body lacks that is not in this dialect."""


# In this order: the later ones have marks that are less their own.
_MARKS: dict[str, _Marks] = {
    "openai_chat": _Marks(_is_chat, "no `choices` with a `message` or a `delta`"),
    "openai_responses": _Marks(_is_responses, "no `object` that is response, no `output` items, no `response.…` event"),
    "anthropic": _Marks(_is_anthropic, "no `content` blocks of a message, no `content_block_…` event"),
    "gemini": _Marks(_is_gemini, "no `candidates`, `promptFeedback` or `usageMetadata`"),
    "bedrock": _Marks(_is_bedrock, "no `output` with a `message`, no `contentBlock…` event"),
    "ollama": _Marks(_is_ollama, "no `message` or `response` beside `done`"),
    "cohere": _Marks(_is_cohere, "no `message` beside `finish_reason`, no `content-…` event"),
}


def find_document_dialect(document: _Document) -> str | None:
    """The dialect that has the marks of a document: a response, or a document of a stream; None if none has."""
    return next((name for name, marks in _MARKS.items() if marks.fits(document)), None)


def _guess(document: _Document) -> str | None:
    """The dialect of an error, or of a document that breaks off early. Several dialects write some errors alike; then
    it is the most common one, and each of them reads the error to the same message.
    """
    error, kind = document.get("error"), document.get("type")
    if kind in ("message", "ping") or (kind == "error" and isinstance(error, dict)):
        return "anthropic"
    if isinstance(error, dict):
        return "gemini" if isinstance(error.get("status"), str) and "code" in error else "openai_chat"
    if isinstance(error, str):
        return "ollama" if len(document) == 1 else "openai_chat"
    named = _get_text(document, "object").startswith(("chat.completion", "error"))
    if named or _can_be_chat(document.get("choices")) or "detail" in document:
        return "openai_chat"
    identity = _get_text(document, "id")
    for prefix, name in _ID_PREFIXES.items():
        if identity.startswith(prefix):
            return name
    if any(name.endswith("Exception") for name in document) or "__type" in document:
        return "bedrock"
    if isinstance(document.get("message") or document.get("Message"), str):
        return "cohere" if "id" in document else "bedrock"
    message = document.get("message")
    return "cohere" if isinstance(message, dict) and "id" in document else None


def _get_text(document: _Document, name: str) -> str:
    """The text in a field; "" for any other value."""
    value = document.get(name)
    return value if isinstance(value, str) else ""


def _can_be_chat(choices: object) -> bool:
    """Whether the choices may be those of a chat. The older completions have `text` in theirs, which is not read."""
    return isinstance(choices, list) and not _has_any(choices, "text")


def _has_any(items: list[Any], name: str) -> bool:
    return any(isinstance(item, dict) and name in item for item in items)


# --- bytes ------------------------------------------------------------------------------------------------------------


class DialectDetector:
    """Reads a body until its dialect is clear. `dialect` is None until then."""

    def __init__(self) -> None:
        self.dialect: str | None = None
        self._framing = Framing(lines=True, named=True)
        self._guess: str | None = None
        """The dialect, should nothing clearer come."""
        self._fields: tuple[str, ...] | None = None
        """The fields of the first document."""
        self._broken = False

    def feed(self, data: bytes) -> None:
        """Add bytes."""
        if self.dialect is None and not self._broken and data:
            self._read(lambda: self._framing.feed(data))

    def finish(self) -> str:
        """Return the dialect: no more bytes come. Raises ProtocolError that says why none fits, and ConnectionLost for
        an empty body.
        """
        if self.dialect is None and not self._broken:
            self._read(self._framing.finish)
        found = self.dialect or self._guess
        if found is None:
            raise self._explain()
        return found

    def _read(self, take: Callable[[], list[bytes]]) -> None:
        try:
            documents = take()
        except ProtocolError:
            self._broken = True  # The decoder of the dialect reports it; the documents before it may be enough.
            return
        for document in documents:
            for value in _parse(document):
                if self.dialect is None:
                    self._judge(value)

    def _judge(self, document: _Document) -> None:
        if self._fields is None:
            self._fields = tuple(document)
        self.dialect = find_document_dialect(document)
        if self.dialect is None:
            self._guess = self._guess or _guess(document)

    def _explain(self) -> ProtocolError | ConnectionLost:
        head = self._framing.head
        if not head:
            return ConnectionLost("the body is empty, so there is nothing to recognise. To do: record it again.")
        own = dialects.list_third_party()
        advice = "name the dialect" + (f" ({', '.join(own)} of your packages are never guessed)" if own else "")
        if self._fields is None:
            what = _describe_bytes(head, self._framing)
            return ProtocolError(f"the body is in no dialect that asides knows: {what}.", payload=head)
        tried = "; ".join(f"{name}: {marks.lacking}" for name, marks in _MARKS.items())
        return ProtocolError(
            f"the body is JSON, but in no dialect that asides knows. Tried {tried}. To do: check that it is a response "
            f"of a chat, or {advice}.",
            payload=head,
        )


def _parse(document: bytes) -> Iterator[_Document]:
    """The objects of a document: it, or those of a list. A document that breaks off is read as far as it came."""
    if document == DONE:
        return
    text = replace_invalid_text(document)
    value: Any
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = partial(text.decode("utf-8", "replace"))
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict) and item:
            yield item


def _describe_bytes(head: bytes, framing: Framing) -> str:
    """What the body is, where it holds no JSON object."""
    if head.startswith(b"HTTP/"):
        return "it begins with HTTP headers. To do: record only what follows them (curl without -i)"
    if head.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x78\x9c")):
        return "it is compressed. To do: decompress it first, or record it with Accept-Encoding: identity"
    if head.lstrip()[:1] == b"<":
        return "it is HTML or XML, such as the page of a proxy. To do: look at it, and check the base URL"
    if framing.looks_like_sse:
        return "it is a stream of events, and none of them holds a JSON object. To do: check that it is whole"
    if framing.form in ("json", "lines", "aws"):
        begins = "AWS frames do" if framing.form == "aws" else "JSON does"
        return f"it begins as {begins}, and holds no object with fields. To do: check that it is whole"
    return "it is neither JSON, nor lines of JSON, nor server-sent events, nor AWS frames. To do: look at it"


def detect_dialect(body: bytes) -> str:
    """The dialect that recorded bytes are in. Raises ProtocolError that says which were tried and why none fits."""
    return detect_in_pieces((body,))[0]


def detect_in_pieces(pieces: Iterable[bytes]) -> tuple[str, Iterator[bytes]]:
    """The dialect of a body in pieces, and all of its pieces. Reads no further than it takes to know."""
    detector = DialectDetector()
    read: list[bytes] = []
    rest = iter(pieces)
    for piece in rest:
        read.append(piece)
        detector.feed(piece)
        if detector.dialect is not None:
            break
    return detector.finish(), chain(read, rest)
