"""Decoding for every decoder test: whole, byte by byte, in odd pieces and with bytes after the end, always the same."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from asides import dialects
from asides.providers.provider import ModelRule, Provider, Quirks, Target
from asides.values.errors import AsidesError
from asides.values.events import Event
from asides.values.reply import Reply
from asides_stage.conformance.response_bodies import decode_pieces, list_chunkings


def target(
    provider: Provider | None = None,
    model: str = "made-up",
    *,
    quirks: Quirks | None = None,
    rule: ModelRule | None = None,
) -> Target:
    """A target for decoding; its row is made up unless one is given."""
    row = provider or Provider(name="example", base_url="http://127.0.0.1:9/v1", quirks=quirks or Quirks(tags=()))
    return Target(row, model, row.base_url, rule or row.rule(model))


def sse(*documents: object, done: bool = True) -> bytes:
    """A stream of these documents, as servers write it."""
    lines = [b"data: " + json.dumps(document, ensure_ascii=False).encode() + b"\n\n" for document in documents]
    return b"".join(lines) + (b"data: [DONE]\n\n" if done else b"")


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **top: Any) -> dict[str, Any]:
    """One chunk of a chat stream."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "made-up", "choices": [choice], **top}


def stream(*deltas: dict[str, Any], finish: str = "stop", **top: Any) -> bytes:
    """A chat stream of these deltas, with its finish chunk."""
    return sse(*[chunk(delta) for delta in deltas], chunk(finish=finish, **top))


def whole(message: dict[str, Any], finish: str | None = "stop", **top: Any) -> bytes:
    """A whole chat response."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    body = {"id": "chatcmpl-1", "object": "chat.completion", "model": "made-up", "choices": [choice], **top}
    return json.dumps(body, ensure_ascii=False).encode()


def events_of(
    pieces: Iterable[bytes], to: Target, dialect: str = "openai_chat"
) -> tuple[list[Event], AsidesError | None]:
    """The events of a body in these pieces, and the failure."""
    decoded = decode_pieces(pieces, to, dialects.find_dialect(dialect))
    return decoded.events, decoded.failure


def reply_of(pieces: Iterable[bytes], to: Target, dialect: str = "openai_chat") -> tuple[Reply, AsidesError | None]:
    """The reply of a body in these pieces, and the failure."""
    decoded = decode_pieces(pieces, to, dialects.find_dialect(dialect))
    return decoded.reply, decoded.failure


def decoded(body: bytes, to: Target | None = None, dialect: str = "openai_chat") -> Reply:
    """The reply of a body, the same in any chunking; raises the error of a live call, with `.partial`."""
    to = to or target()
    reply, failure = reply_of([body], to, dialect)
    for pieces in list_chunkings(body)[1:]:
        again, failure_again = reply_of(pieces, to, dialect)
        assert again == reply, "the chunking made a difference"
        assert repr(failure_again) == repr(failure), "the chunking made a difference to the error"
    if body.endswith(b"\n\n") and failure is None:
        surprised, _ = reply_of([body, b": a comment after the end\n\n\n", b"event: ping\n\n"], to, dialect)
        assert surprised == reply, "bytes after the end made a difference"
    if failure is not None:
        failure.partial = reply
        raise failure
    return reply
