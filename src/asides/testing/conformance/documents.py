"""A body taken apart into its JSON documents, changed and put together again: what servers of tomorrow might send.

Knows the framings of `wire/framing.py` from the first bytes. Not here: what a document says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from asides.wire.aws_frames import Frame, FrameReader, write_frame

_DATA = b"data:"
_STRANGE_FRAME = {":event-type": "madeUp", ":content-type": "application/json", ":message-type": "event"}
# One of each kind that a field might turn out to be.
OTHER_VALUES: tuple[Any, ...] = (None, 7, "made up", [], {}, [None], True)


def documents_of(body: bytes) -> list[Any] | None:
    """The documents of a body, in order; None where its framing is not one that is known here."""
    kind = _framing_of(body)
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


def with_documents(body: bytes, documents: list[Any]) -> bytes:
    """The body with these documents in the places of its own, of which there are as many."""
    left = iter(documents)

    def written() -> bytes:
        return msgspec.json.encode(next(left))

    match _framing_of(body):
        case "aws":
            return b"".join(write_frame(frame.headers, written()) for frame in FrameReader().feed(body))
        case "sse":
            lines = [b"data: " + written() if _is_data(line) else line for line in body.split(b"\n")]
        case _:
            lines = [written() if line.strip() else line for line in body.split(b"\n")]
    return b"\n".join(lines)


def with_stranger(body: bytes, document: Any) -> bytes:
    """The body of a stream with one more event in its middle."""
    told = msgspec.json.encode(document)
    match _framing_of(body):
        case "aws":
            frames: list[Frame] = FrameReader().feed(body)
            frames.insert(len(frames) // 2, Frame(_STRANGE_FRAME, told))
            return b"".join(write_frame(frame.headers, frame.payload) for frame in frames)
        case "sse":
            events = body.split(b"\n\n")
            events.insert(len(events) // 2, b"event: made_up\ndata: " + told)
            return b"\n\n".join(events)
        case _:
            lines = body.split(b"\n")
            lines.insert(len(lines) // 2, told)
            return b"\n".join(lines)


def with_more_fields(document: Any) -> Any:
    """The document with a field in each of its objects that nobody has heard of."""
    match document:
        case dict():
            return {
                **{name: with_more_fields(value) for name, value in document.items()},
                "x_made_up": {"of": [1, {"two": None}]},
            }
        case list():
            return [with_more_fields(value) for value in document]
        case _:
            return document


def renamed(document: Any, name: str, other: str) -> Any:
    """The document with a field under another name, wherever it stands."""
    match document:
        case dict():
            return {other if key == name else key: renamed(value, name, other) for key, value in document.items()}
        case list():
            return [renamed(value, name, other) for value in document]
        case _:
            return document


def with_other_values(document: Any, deepest: int = 6) -> Iterator[Any]:
    """The document again and again, each time with one of its values replaced by one of another kind."""
    if deepest == 0:
        return
    entries: list[tuple[Any, Any]] = []
    if isinstance(document, dict):
        entries = list(document.items())
    elif isinstance(document, list):
        entries = list(enumerate(document))
    for place, value in entries:
        for other in OTHER_VALUES:
            if type(other) is not type(value):
                yield _replaced(document, place, other)
        for inner in with_other_values(value, deepest - 1):
            yield _replaced(document, place, inner)


def _replaced(document: Any, place: Any, value: Any) -> Any:
    changed = document.copy()
    changed[place] = value
    return changed


def _framing_of(body: bytes) -> str | None:
    start = body.lstrip()[:1]
    if body[:1] == b"\0":
        return "aws"
    if start in (b"{", b"["):
        return "lines"
    return "sse" if _DATA in body else None


def _is_data(line: bytes) -> bool:
    # Not the mark that nothing follows.
    return line.startswith(_DATA) and line[len(_DATA) :].strip()[:1] == b"{"
