"""How the laws read bytes: in any pieces, as events and as a reply, and what of a reply can be compared or be seen.

Not here: the laws themselves, and which bytes they are tried on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import Any

import msgspec

from asides.dialects.dialect import Dialect
from asides.providers.provider import Target
from asides.values.errors import AsidesError
from asides.values.events import Event
from asides.values.fold import Fold
from asides.values.messages import Part
from asides.values.reply import Reply


class Decoded(msgspec.Struct, frozen=True):
    """What became of a body."""

    events: list[Event]
    reply: Reply
    """What came of it, whole or not."""
    failure: AsidesError | None = None


def decode_pieces(pieces: Iterable[bytes], target: Target, dialect: Dialect) -> Decoded:
    """The events of a body in these pieces, their fold, and what went wrong."""
    decoder = dialect.decoder(target)
    folding = Fold()
    events: list[Event] = []
    for piece in pieces:
        events += decoder.feed(piece)
    events += decoder.finish()
    folding.feed(events)
    return Decoded(events, folding.reply(decoder.payloads, streamed=decoder.streamed), decoder.failure)


def split_body(body: bytes, sizes: Sequence[int]) -> list[bytes]:
    """The body in pieces of these sizes, over and over."""
    pieces: list[bytes] = []
    start = 0
    for size in cycle(sizes):
        if start >= len(body):
            return pieces
        pieces.append(body[start : start + size])
        start += size
    return [body]


def list_chunkings(body: bytes) -> list[list[bytes]]:
    """Whole, byte by byte, in threes, and in halves with an empty read between."""
    half = len(body) // 2
    return [[body], split_body(body, (1,)), split_body(body, (3,)), [body[:half], b"", body[half:]]]


def remove_origins(reply: Reply) -> Reply:
    """The reply without where it came from, which only the reader knows, and without what only the reader found odd."""
    parts = tuple(_anonymous_part(part) for part in reply.parts)
    return msgspec.structs.replace(reply, parts=parts, origin=None, warnings=())


def _anonymous_part(part: Part) -> Part:
    changes: dict[str, Any] = {"origin": None} if hasattr(part, "origin") else {}
    if (seals := getattr(part, "seals", None)) is not None:
        changes["seals"] = tuple(msgspec.structs.replace(seal, origin=None) for seal in seals)
    return msgspec.structs.replace(part, **changes)


def visible_texts(decoded: Decoded) -> dict[str, str]:
    """Every place where a person may read something of a reply without asking for its thinking."""
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
