"""Bodies to change: what our server halves write in every dialect, and recordings where a folder of them is there."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any, NamedTuple

import asides
from asides.dialects import DIALECTS, find_dialect
from asides.values.fold import simulate
from asides.values.model_info import ModelInfo
from asides.values.parts import Refusal, Text, ToolCall
from asides.values.reply import Reply
from asides.values.thinking import Seal, Thought
from asides.values.usage import Usage
from asides.wire.aws_frames import Frame, FrameReader, write_frame
from tests.conformance.test_recordings import DIALECTS as RECORDED
from tests.conformance.test_recordings import FOLDER, manifest, target_of
from tests.fuzz.mutations import mutate_bytes, mutate_document, mutate_list, write_json

SECRET = "CANARY of a thought"
_STOP = asides.StopReason("stop", "stop")
_CALL = ToolCall("call_1", "look_up", {"place": "Paris", "days": [1, 2.5], "deep": {"a": None}})
_REPLIES = (
    Reply((Thought(SECRET, seals=(Seal("signature", "c2VhbA=="),)), Text("The answer is 42.")), Usage(3, 9, 4), _STOP),
    Reply((Thought(SECRET), Text("Let me see. "), _CALL, _CALL), Usage(3, 9), asides.StopReason("tool_calls", "x")),
    Reply((Text("é日👋 <b>bold</b>\n"), Refusal("I would rather not.")), Usage(1, 2), _STOP),
)


class Body(NamedTuple):
    """A body of a response, and how to decode it."""

    dialect: str
    data: bytes
    row: Any = None
    model: str = "made-up"


@cache
def written_bodies() -> tuple[Body, ...]:
    """What the server halves write, whole and streamed."""
    return tuple(
        Body(name, find_dialect(name).writer(model="made-up", stream=stream).write(simulate(reply, 7)))
        for name in DIALECTS
        for reply in _REPLIES
        for stream in (True, False)
    )


@cache
def _recorded() -> tuple[dict[str, Any], ...]:
    return tuple(entry for entry in manifest() if entry["status"] < 400)


def draw_body(rng: random.Random, *, dialect: str | None = None) -> Body:
    """Return a body that is whole and valid: ours, or a recording."""
    if _recorded() and dialect is None and rng.random() < 0.6:
        entry = rng.choice(_recorded())
        data = (FOLDER / entry["file"]).read_bytes()
        if len(data) < 60_000:
            return Body(RECORDED[entry["dialect"]], data, target_of(entry).provider, entry["model"] or "")
    return rng.choice([body for body in written_bodies() if dialect in (None, body.dialect)])


# --- documents in a body ----------------------------------------------------------------------------------------------


def mutate_body(rng: random.Random, body: bytes) -> bytes:
    """Return a body with one to three changes: to its documents, to their order, or to its bytes."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        try:
            body = _mutate_once(rng, body)
        except (ValueError, RecursionError, asides.ProtocolError):
            body = mutate_bytes(rng, body)
    return body


def _mutate_once(rng: random.Random, body: bytes) -> bytes:
    if rng.random() < 0.25:
        return mutate_bytes(rng, body)
    if body[:1] == b"\0":
        return _mutate_frames(rng, FrameReader().feed(body))
    separator = b"\n\n" if b"data:" in body[:2000] and b"\n\n" in body else b"\n"
    events = body.split(separator)
    if rng.random() < 0.25:
        return separator.join(mutate_list(rng, events))
    places = [place for place, event in enumerate(events) if b"{" in event]
    if not places:
        return mutate_bytes(rng, body)
    place = rng.choice(places)
    head, mark, document = events[place].rpartition(b"data:")
    if separator == b"\n" and not mark and body.lstrip()[:1] in (b"{", b"[") and not _is_lines(body):
        return write_json(mutate_document(rng, json.loads(body)))
    events[place] = head + mark + b" " * bool(mark) + write_json(mutate_document(rng, json.loads(document)))
    return separator.join(events)


def _is_lines(body: bytes) -> bool:
    try:
        json.loads(body.split(b"\n", 1)[0])
    except ValueError:
        return False
    return True


def _mutate_frames(rng: random.Random, frames: list[Frame]) -> bytes:
    if rng.random() < 0.25 or not frames:
        frames = mutate_list(rng, frames)
    else:
        place = rng.randrange(len(frames))
        headers = dict(frames[place].headers)
        if rng.random() < 0.15:
            headers[rng.choice(list(headers) or [":event-type"])] = rng.choice(
                ("", "exception", "chunk", "é", "x" * 90)
            )
        payload = write_json(mutate_document(rng, json.loads(frames[place].payload)))
        frames = [*frames[:place], Frame(headers, payload), *frames[place + 1 :]]
    return b"".join(write_frame(frame.headers, frame.payload) for frame in frames)


# --- bodies that are no reply -----------------------------------------------------------------------------------------


def draw_error(rng: random.Random) -> tuple[str, bytes]:
    """Return a dialect and an error body, changed."""
    name = rng.choice(DIALECTS)
    kind = rng.choice((None, "rate_limit_error", "invalid_request_error"))
    written = find_dialect(name).write_error(rng.choice((400, 429, 500)), "boom", kind)
    documents = (
        json.loads(written),
        {"error": {"code": 429, "message": "no", "status": "X", "details": [{"reason": "R", "retryDelay": "3s"}]}},
        [{"error": {"message": ["a", {"msg": "b"}], "code": 400}}],
        {"object": "response", "error": {"code": "x", "message": "y"}},
        {"detail": [{"msg": "field required"}], "message": {"error": {"message": "z"}}},
    )
    body = write_json(mutate_document(rng, rng.choice(documents)))
    return name, mutate_bytes(rng, body) if rng.random() < 0.2 else body


def draw_model_list(rng: random.Random) -> tuple[str, bytes]:
    """Return a dialect and a list of models, changed."""
    name = rng.choice([name for name in DIALECTS if name != "bedrock"])  # which has no list
    models = [ModelInfo("a", "A", context=1000, max_output=10), ModelInfo("b", created=1_700_000_000)]
    body = find_dialect(name).write_models(models, {})
    body = write_json(mutate_document(rng, json.loads(body)))
    return name, mutate_bytes(rng, body) if rng.random() < 0.2 else body
