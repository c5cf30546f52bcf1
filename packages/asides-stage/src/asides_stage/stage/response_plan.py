"""Turns a scene into the bytes of a response and the times between them. Pure; the connection sends it."""

from __future__ import annotations

from collections.abc import Callable
from time import time
from typing import Literal, TypeAlias
from uuid import uuid4

import msgspec

from asides.dialects.dialect import Dialect, ServedRequest, Writer
from asides.dialects.server_half import ReplyWriter
from asides.values.events import Event, ReplyStarted, StopReason, UsageReported
from asides.values.fold import simulate
from asides.values.messages import Prompt
from asides.values.parts import Commentary, Part, Refusal, Text
from asides.values.reply import Reply
from asides.values.thinking import Thought
from asides.values.usage import Usage
from asides_stage.stage.prompt_cache import CacheUse
from asides_stage.stage.script import Delivery, Fail, Hang, Raw, Refuse, Say, Scene

Ending: TypeAlias = Literal["whole", "cut", "reset", "hang"]
"""The body is complete · the connection closes before that · is reset before that · stays open in silence."""


class ResponsePlan(msgspec.Struct, frozen=True):
    """The bytes of a response, their timing, and how the response ends."""

    status: int | None
    """None: not even a head is sent."""
    headers: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    pieces: tuple[bytes, ...] = ()
    """The writes of the body; each is one HTTP chunk if the length is unknown."""
    length: int | None = None
    """The length that the head promises; None: unknown, as of a stream."""
    delay: float = 0.0
    pause: float = 0.0
    ending: Ending = "whole"
    hang_seconds: float | None = None

    def __repr__(self) -> str:
        return f"ResponsePlan({self.status}, <{sum(map(len, self.pieces))} bytes>, ending={self.ending!r})"


SealEvents: TypeAlias = Callable[[list[Event]], list[Event]]
"""Adds the seals that a strict provider puts on a reply."""


def plan_response(
    scene: Scene,
    request: ServedRequest,
    dialect: Dialect,
    seal: SealEvents | None = None,
    make_writer: Callable[..., Writer] | None = None,
    cache: CacheUse | None = None,
) -> ResponsePlan:
    """Plan the response of this scene to this request. `make_writer` replaces the dialect's own writer. `cache`: what
    the prompt cache did for the request."""
    match scene:
        case Say():
            writer = (make_writer or dialect.writer)(
                model=scene.model or request.model, stream=request.stream, include_usage=request.include_usage
            )
            if isinstance(writer, ReplyWriter):
                writer.created = int(time())
            events = _build_events(scene, request, cache)
            if seal is not None:
                events = seal(events)
            events = _add_id(events)
            pieces = [writer.write([event]) for event in events] if request.stream else [writer.write(events)]
            return _plan_delivery(scene, 200, writer.content_type, pieces, streamed=request.stream)
        case Fail():
            return plan_failure(scene, dialect)
        case Raw():
            streamed = scene.content_type.startswith("text/event-stream")
            return _plan_delivery(scene, scene.status, scene.content_type, [scene.content], streamed=streamed)
        case Refuse():
            return ResponsePlan(None, ending="reset" if scene.reset else "cut")
        case Hang():
            return ResponsePlan(None, ending="hang", hang_seconds=scene.seconds)


def plan_failure(scene: Fail, dialect: Dialect) -> ResponsePlan:
    """Plan the response of a `Fail`."""
    body = dialect.write_error(scene.status, scene.message, scene.kind) if scene.body is None else scene.body.encode()
    plan = _plan_delivery(scene, scene.status, "application/json", [body], streamed=False)
    if (write_headers := getattr(dialect, "write_error_headers", None)) is not None:
        headers = write_headers(scene.status, scene.kind)
        plan = msgspec.structs.replace(plan, headers={**headers, **plan.headers})
    if scene.retry_after is None:
        return plan
    wait = scene.retry_after if isinstance(scene.retry_after, str) else f"{scene.retry_after:g}"
    return msgspec.structs.replace(plan, headers={"retry-after": wait, **plan.headers})


def plan_json(body: bytes, status: int = 200) -> ResponsePlan:
    """Plan a response with this JSON document."""
    return ResponsePlan(status, {"content-type": "application/json"}, (body,), len(body))


def count_input(prompt: Prompt) -> int:
    """Count the words of a prompt, which the stage reports as its tokens."""
    return sum(map(_count_words, [prompt.system or "", *(message.text for message in prompt.messages)]))


def _count_words(text: str) -> int:
    return len(text.split())


def _build_events(scene: Say, request: ServedRequest, cache: CacheUse | None) -> list[Event]:
    if scene.events is not None:
        return list(scene.events)
    parts: list[Part] = []
    if scene.thinking is not None:
        parts.append(Thought(scene.thinking, via=scene.thinking_field))
    if scene.commentary:
        parts.append(Commentary(scene.commentary))
    if scene.text:
        parts.append(Text(scene.text))
    if scene.refusal is not None:
        parts.append(Refusal(scene.refusal))
    parts += scene.tool_calls
    stop = StopReason(scene.stop or ("tool_calls" if scene.tool_calls else "stop"))
    usage = _count_usage(scene, request, cache) if scene.usage is None else scene.usage
    reply = Reply(tuple(parts), usage, stop, model=scene.model or request.model, id=scene.id)
    started, *later = simulate(reply, scene.piece)
    # Some dialects begin a reply with the counts of the request.
    counted = Usage(input=usage.input, cached=usage.cached, cache_written=usage.cache_written)
    early = [] if usage.input is None else [UsageReported(counted)]
    return [started, *early, *later]


def _add_id(events: list[Event]) -> list[Event]:
    """Give a reply an id of its own if the script gives it none: clients take equal ids for the same reply."""
    if not events or not isinstance(events[0], ReplyStarted) or events[0].id is not None:
        return events
    return [msgspec.structs.replace(events[0], id=uuid4().hex[:12]), *events[1:]]


def _count_usage(scene: Say, request: ServedRequest, cache: CacheUse | None) -> Usage:
    """Count words as tokens."""
    received = count_input(request.prompt)
    thought = _count_words(scene.thinking or scene.hidden_thinking or "")
    calls = sum(1 + len(call.arguments) for call in scene.tool_calls)
    sent = _count_words(scene.text) + _count_words(scene.refusal or "") + calls + thought
    usage = Usage(input=received, output=sent, thinking=thought, total=received + sent)
    if cache is None or not cache.is_reported:
        return usage
    read = min(cache.read, received)
    written = min(cache.written, received - read) if cache.is_marked else None
    return msgspec.structs.replace(usage, cached=read, cache_written=written)


def _plan_delivery(
    delivery: Delivery, status: int, content_type: str, pieces: list[bytes], *, streamed: bool
) -> ResponsePlan:
    # An empty HTTP chunk would end the body.
    pieces = [piece for piece in pieces if piece]
    length = sum(map(len, pieces))
    ending: Ending = "whole"
    stop_at = delivery.cut_after if delivery.cut_after is not None else delivery.hang_after
    if stop_at is not None and stop_at <= length:
        ending = "hang" if delivery.cut_after is None else "reset" if delivery.reset else "cut"
        pieces = _take_bytes(pieces, stop_at)
    if delivery.chunk is not None:
        body = b"".join(pieces)
        pieces = [body[start : start + delivery.chunk] for start in range(0, len(body), delivery.chunk)]
    headers = {"content-type": content_type, **{name.lower(): value for name, value in delivery.headers.items()}}
    promised = None if streamed else length
    return ResponsePlan(status, headers, tuple(pieces), promised, delivery.delay, delivery.pause, ending)


def _take_bytes(pieces: list[bytes], count: int) -> list[bytes]:
    """Return the first bytes of the pieces, still in pieces."""
    taken: list[bytes] = []
    for piece in pieces:
        if count <= 0:
            break
        taken.append(piece[:count])
        count -= len(piece)
    return taken
