"""Bodies of responses: decode them in any pieces, list their visible texts, and change their documents.

Recognises the framings of `wire/framing.py` by the first bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle
from typing import Any

import msgspec

from asides.dialects.dialect import Dialect
from asides.providers.provider import Target
from asides.values.errors import AsidesError
from asides.values.events import Event
from asides.values.fold import Fold
from asides.values.parts import Part
from asides.values.reply import Reply
from asides.wire.aws_frames import Frame, FrameReader, write_frame

_DATA = b"data:"
_UNKNOWN_FRAME = {":event-type": "madeUp", ":content-type": "application/json", ":message-type": "event"}
# One value of each JSON type.
_OTHER_VALUES: tuple[Any, ...] = (None, 7, "made up", [], {}, [None], True)


class Decoded(msgspec.Struct, frozen=True):
    """A decoded body."""

    events: list[Event]
    reply: Reply
    """The reply, complete or partial."""
    failure: AsidesError | None = None


def decode_pieces(pieces: Iterable[bytes], target: Target, dialect: Dialect) -> Decoded:
    """Decode a body in these pieces into events, a reply and a failure."""
    decoder = dialect.decoder(target)
    fold = Fold()
    events: list[Event] = []
    for piece in pieces:
        events += decoder.feed(piece)
    events += decoder.finish()
    fold.feed(events)
    return Decoded(events, fold.reply(decoder.payloads, streamed=decoder.streamed), decoder.failure)


def split_body(body: bytes, sizes: Sequence[int]) -> list[bytes]:
    """Split a body into pieces of these sizes, repeated."""
    pieces: list[bytes] = []
    start = 0
    for size in cycle(sizes):
        if start >= len(body):
            return pieces
        pieces.append(body[start : start + size])
        start += size
    return [body]


def list_chunkings(body: bytes) -> list[list[bytes]]:
    """Return the body whole, byte by byte, in threes, and in halves with an empty read between them."""
    half = len(body) // 2
    return [[body], split_body(body, (1,)), split_body(body, (3,)), [body[:half], b"", body[half:]]]


def remove_origins(reply: Reply) -> Reply:
    """Remove origins and warnings from a reply: only the decoder knows them, no writer writes them."""
    parts = tuple(_remove_origin(part) for part in reply.parts)
    return msgspec.structs.replace(reply, parts=parts, origin=None, warnings=())


def _remove_origin(part: Part) -> Part:
    changes: dict[str, Any] = {"origin": None} if hasattr(part, "origin") else {}
    if seals := part.seals:
        changes["seals"] = tuple(msgspec.structs.replace(seal, origin=None) for seal in seals)
    return msgspec.structs.replace(part, **changes)


def list_visible_texts(decoded: Decoded) -> dict[str, str]:
    """Return every text of a reply that a person may see without asking for its thinking, by place."""
    reply, failure = decoded.reply, decoded.failure
    message = reply.to_message()
    return {
        "reply.text": reply.text,
        "str(reply)": str(reply),
        "repr(reply)": repr(reply),
        "repr(reply.thinking)": repr(reply.thinking),
        "repr(reply.parts)": repr(reply.parts),
        "the text of the message for history": "" if message is None else message.text,
        "the repr of the message for history": repr(message),
        "the arguments of calls": repr([(call.name, call.arguments, call.raw_arguments) for call in reply.tool_calls]),
        "the refusal": reply.refusal or "",
        "the warnings": " ".join(map(str, reply.warnings)),
        "the error": f"{failure} {failure!r}",
        "the repr of an event": repr(decoded.events),
    }


# --- documents --------------------------------------------------------------------------------------------------------


def read_documents(body: bytes) -> list[Any] | None:
    """Return the documents of a body in order; None if its framing is unknown."""
    kind = _detect_framing(body)
    try:
        match kind:
            case "aws":
                return [msgspec.json.decode(frame.payload) for frame in FrameReader().feed(body)]
            case "sse":
                return [msgspec.json.decode(line[len(_DATA) :]) for line in body.split(b"\n") if _is_data(line)]
            case "lines":
                return [msgspec.json.decode(line) for line in body.split(b"\n") if line.strip()]
            case _:
                return None
    except msgspec.DecodeError:
        return None


def replace_documents(body: bytes, documents: list[Any]) -> bytes:
    """Replace the documents of a body by as many others."""
    remaining = iter(documents)

    def encode_next() -> bytes:
        return msgspec.json.encode(next(remaining))

    match _detect_framing(body):
        case "aws":
            return b"".join(write_frame(frame.headers, encode_next()) for frame in FrameReader().feed(body))
        case "sse":
            lines = [b"data: " + encode_next() if _is_data(line) else line for line in body.split(b"\n")]
        case _:
            lines = [encode_next() if line.strip() else line for line in body.split(b"\n")]
    return b"\n".join(lines)


def insert_event(body: bytes, document: Any) -> bytes:
    """Insert one more event into the middle of a stream."""
    encoded = msgspec.json.encode(document)
    match _detect_framing(body):
        case "aws":
            frames: list[Frame] = FrameReader().feed(body)
            frames.insert(len(frames) // 2, Frame(_UNKNOWN_FRAME, encoded))
            return b"".join(write_frame(frame.headers, frame.payload) for frame in frames)
        case "sse":
            events = body.split(b"\n\n")
            events.insert(len(events) // 2, b"event: made_up\ndata: " + encoded)
            return b"\n\n".join(events)
        case _:
            lines = body.split(b"\n")
            lines.insert(len(lines) // 2, encoded)
            return b"\n".join(lines)


def add_unknown_fields(document: Any) -> Any:
    """Add an unknown field to every object of a document."""
    match document:
        case dict():
            return {
                **{name: add_unknown_fields(value) for name, value in document.items()},
                "x_made_up": {"of": [1, {"two": None}]},
            }
        case list():
            return [add_unknown_fields(value) for value in document]
        case _:
            return document


def rename_field(document: Any, name: str, other: str) -> Any:
    """Rename a field everywhere in a document."""
    match document:
        case dict():
            return {other if key == name else key: rename_field(value, name, other) for key, value in document.items()}
        case list():
            return [rename_field(value, name, other) for value in document]
        case _:
            return document


def vary_values(document: Any, deepest: int = 6) -> Iterator[Any]:
    """Yield variants of a document, each with one value replaced by a value of another type."""
    if deepest == 0:
        return
    entries: list[tuple[Any, Any]] = []
    if isinstance(document, dict):
        entries = list(document.items())
    elif isinstance(document, list):
        entries = list(enumerate(document))
    for place, value in entries:
        for other in _OTHER_VALUES:
            if type(other) is not type(value):
                yield _replace_item(document, place, other)
        for inner in vary_values(value, deepest - 1):
            yield _replace_item(document, place, inner)


def _replace_item(document: Any, place: Any, value: Any) -> Any:
    changed = document.copy()
    changed[place] = value
    return changed


def _detect_framing(body: bytes) -> str | None:
    start = body.lstrip()[:1]
    if body[:1] == b"\0":
        return "aws"
    if start in (b"{", b"["):
        return "lines"
    return "sse" if _DATA in body else None


def _is_data(line: bytes) -> bool:
    # This leaves out the end mark [DONE].
    return line.startswith(_DATA) and line[len(_DATA) :].strip()[:1] == b"{"
