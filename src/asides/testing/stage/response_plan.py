"""A scene as the bytes of a response and the times between them. Pure: the connection is what plays it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from asides.dialects.dialect import Dialect, ServedRequest
from asides.testing.stage.script import Delivery, Fail, Hang, Raw, Refuse, Say, Scene
from asides.values.events import Event, StopReason
from asides.values.messages import Part, Refusal, Text
from asides.values.reply import Reply
from asides.values.simulate import simulate
from asides.values.thinking import Thought
from asides.values.usage import Usage

Ending: TypeAlias = Literal["whole", "cut", "reset", "hang"]
"""The body is all there · the connection closes before · it is reset · it stays open in silence."""


class ResponsePlan(msgspec.Struct, frozen=True):
    """What is sent, when, and how it ends."""

    status: int | None
    """None: not even a head."""
    headers: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    pieces: tuple[bytes, ...] = ()
    """The writes of the body; each is an HTTP chunk when the length is not known beforehand."""
    length: int | None = None
    """The length that the head promises; None: unknown, as of a stream."""
    delay: float = 0.0
    pause: float = 0.0
    ending: Ending = "whole"
    hang_seconds: float | None = None

    def __repr__(self) -> str:
        return f"Performance({self.status}, <{sum(map(len, self.pieces))} bytes>, ending={self.ending!r})"


Sealing: TypeAlias = Callable[[list[Event]], list[Event]]
"""What a strict provider does to its replies before they go out."""


def perform(scene: Scene, request: ServedRequest, dialect: Dialect, sealing: Sealing | None = None) -> ResponsePlan:
    """What this scene answers to this request."""
    match scene:
        case Say():
            writer = dialect.writer(
                model=scene.model or request.model, stream=request.stream, include_usage=request.include_usage
            )
            events = _events_of(scene, request)
            if sealing is not None:
                events = sealing(events)
            pieces = [writer.write([event]) for event in events] if request.stream else [writer.write(events)]
            return _deliver(scene, 200, writer.content_type, pieces, streamed=request.stream)
        case Fail():
            return fail(scene, dialect)
        case Raw():
            streamed = scene.content_type.startswith("text/event-stream")
            return _deliver(scene, scene.status, scene.content_type, [scene.content], streamed=streamed)
        case Refuse():
            return ResponsePlan(None, ending="reset" if scene.reset else "cut")
        case Hang():
            return ResponsePlan(None, ending="hang", hang_seconds=scene.seconds)


def fail(scene: Fail, dialect: Dialect) -> ResponsePlan:
    """The answer that a `Fail` is; it needs no request."""
    body = dialect.write_error(scene.status, scene.message, scene.kind) if scene.body is None else scene.body.encode()
    performance = _deliver(scene, scene.status, "application/json", [body], streamed=False)
    if scene.retry_after is None:
        return performance
    wait = scene.retry_after if isinstance(scene.retry_after, str) else f"{scene.retry_after:g}"
    return msgspec.structs.replace(performance, headers={"retry-after": wait, **performance.headers})


def document(content: object, status: int = 200, headers: dict[str, str] | None = None) -> ResponsePlan:
    """A JSON document of the stage's own."""
    return of_bytes(msgspec.json.encode(content), status, headers)


def of_bytes(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> ResponsePlan:
    """A JSON document that is written already."""
    return ResponsePlan(status, {"content-type": "application/json", **(headers or {})}, (body,), len(body))


def count_words(text: str) -> int:
    """The stage's tokens: words."""
    return len(text.split())


def _events_of(scene: Say, request: ServedRequest) -> list[Event]:
    if scene.events is not None:
        return list(scene.events)
    parts: list[Part] = []
    if scene.thinking is not None:
        parts.append(Thought(scene.thinking, via=scene.thinking_field))
    if scene.text:
        parts.append(Text(scene.text))
    if scene.refusal is not None:
        parts.append(Refusal(scene.refusal))
    parts += scene.tool_calls
    stop = StopReason(scene.stop or ("tool_calls" if scene.tool_calls else "stop"))
    usage = _count(scene, request) if scene.usage is None else scene.usage
    reply = Reply(tuple(parts), usage, stop, model=scene.model or request.model, id=scene.id or "stage-reply")
    return simulate(reply, scene.piece)


def _count(scene: Say, request: ServedRequest) -> Usage:
    heard = sum(count_words(message.text) for message in request.prompt.messages) + count_words(
        request.prompt.system or ""
    )
    thought = count_words(scene.thinking or "")
    calls = sum(1 + len(call.arguments) for call in scene.tool_calls)
    said = count_words(scene.text) + count_words(scene.refusal or "") + calls + thought
    return Usage(input=heard, output=said, thinking=thought, total=heard + said)


def _deliver(
    delivery: Delivery, status: int, content_type: str, pieces: list[bytes], *, streamed: bool
) -> ResponsePlan:
    # An empty HTTP chunk would be the end of the body.
    pieces = [piece for piece in pieces if piece]
    length = sum(map(len, pieces))
    ending: Ending = "whole"
    stop_at = delivery.cut_after if delivery.cut_after is not None else delivery.hang_after
    if stop_at is not None and stop_at <= length:
        ending = "hang" if delivery.cut_after is None else "reset" if delivery.reset else "cut"
        pieces = _first_bytes(pieces, stop_at)
    if delivery.chunk is not None:
        body = b"".join(pieces)
        pieces = [body[start : start + delivery.chunk] for start in range(0, len(body), delivery.chunk)]
    headers = {"content-type": content_type, **{name.lower(): value for name, value in delivery.headers.items()}}
    return ResponsePlan(
        status,
        headers,
        tuple(pieces),
        None if streamed else length,
        delivery.delay,
        delivery.pause,
        ending,
    )


def _first_bytes(pieces: list[bytes], count: int) -> list[bytes]:
    kept: list[bytes] = []
    for piece in pieces:
        if count <= 0:
            break
        kept.append(piece[:count])
        count -= len(piece)
    return kept
