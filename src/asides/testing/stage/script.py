"""What the stage plays: scenes, and the script that says which one comes next.

Not here: how a scene becomes bytes (performance), and what is played when there is no script (actor).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.values.errors import ConfigError
from asides.values.events import Event, StopKind
from asides.values.messages import ToolCall
from asides.values.usage import Usage


class Delivery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the bytes of a scene are sent, whatever they say."""

    delay: float = 0.0
    """Seconds before the head of the response."""
    pause: float = 0.0
    """Seconds between two writes."""
    chunk: int | None = None
    """Bytes of the body per write; 1 is byte by byte. None: a write for each event, or the whole body in one."""
    cut_after: int | None = None
    """Bytes of the body after which the connection is closed, though more was promised."""
    reset: bool = False
    """Cut with a TCP reset, which may also take back what the client has not read yet."""
    hang_after: int | None = None
    """Bytes of the body after which nothing more comes and the connection stays open."""
    headers: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Laid over the ones the stage sends."""

    def __post_init__(self) -> None:
        if self.chunk is not None and self.chunk < 1:
            raise ValueError(f"chunk is {self.chunk}; a write has at least one byte.")
        if self.delay < 0 or self.pause < 0:
            raise ValueError("delay and pause are seconds from now on, not before.")
        if self.cut_after is not None and self.hang_after is not None:
            raise ValueError("a reply cannot both be cut and hang; give cut_after or hang_after.")


class Say(Delivery, frozen=True, tag="say"):
    """A good reply: text, thinking, calls, or events of your own."""

    text: str = ""
    thinking: str | None = None
    thinking_field: str | None = None
    """Where the dialect has several fields for thinking: the one to use. None: its most usual one."""
    tool_calls: tuple[ToolCall, ...] = ()
    refusal: str | None = None
    usage: Usage | None = None
    """None: words counted as tokens. `Usage()`: the reply reports none."""
    stop: StopKind | None = None
    """None: "tool_calls" when there are any, else "stop"."""
    model: str | None = None
    """None: the model that was asked for."""
    id: str | None = None
    piece: int = 20
    """Characters per delta of a stream."""
    events: tuple[Event, ...] | None = None
    """Exactly these events instead of all of the above."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.piece < 1:
            raise ValueError(f"piece is {self.piece}; a delta has at least one character.")

    def __repr__(self) -> str:
        thought = "" if self.thinking is None else f", thinking=<{len(self.thinking)} characters>"
        return f"Say(<{len(self.text)} characters>{thought}, tool_calls={[call.name for call in self.tool_calls]})"


class Fail(Delivery, frozen=True, tag="fail"):
    """A refusal by status code, with the dialect's error body unless `body` is given."""

    status: int = 500
    message: str = "the stage was told to fail"
    kind: str | None = None
    """The dialect's own word for the error; None leaves it to the dialect."""
    retry_after: float | str | None = None
    """Seconds, or the header's own text, such as a date."""
    body: str | None = None


class Raw(Delivery, frozen=True, tag="raw"):
    """Exactly these bytes: a recording, broken events, ten megabytes without a line end."""

    body: bytes = b""
    """In a script file base64; `text` is easier there."""
    text: str | None = None
    """The body as text, instead of `body`."""
    content_type: str = "text/event-stream"
    status: int = 200

    @property
    def content(self) -> bytes:
        """What is sent."""
        return self.body if self.text is None else self.text.encode()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<{len(self.content)} bytes>, status={self.status})"


class Garbage(Raw, frozen=True, tag="garbage"):
    """A page where a reply was due, as proxies send it."""

    body: bytes = b"<html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>\n"
    content_type: str = "text/html"


class Refuse(msgspec.Struct, frozen=True, tag="refuse", forbid_unknown_fields=True):
    """Hear the request and close the connection without a byte."""

    reset: bool = False


class Hang(msgspec.Struct, frozen=True, tag="hang", forbid_unknown_fields=True):
    """Hear the request and say nothing: until the client leaves, the stage closes, or the seconds are over."""

    seconds: float | None = None


Scene: TypeAlias = Say | Fail | Raw | Garbage | Refuse | Hang
Script: TypeAlias = Scene | Sequence[Scene] | Callable[[ServedRequest], Scene]


class ScriptPlayer:
    """Which scene is next: those of a list in order, the last one again and again; a function is asked each time."""

    def __init__(self, script: Script) -> None:
        self._ask: Callable[[ServedRequest], Scene] | None = None
        self._scenes: list[Scene] = []
        self._next = 0
        if isinstance(script, Say | Fail | Raw | Refuse | Hang):
            self._scenes = [script]
        elif isinstance(script, Sequence):
            self._scenes = list(script)
            if not self._scenes:
                raise ConfigError("the script has no scene; give at least one, or no script for the stage's own actor.")
        else:
            self._ask = script

    def next(self, request: ServedRequest) -> Scene:
        """The scene that answers this request."""
        if self._ask is not None:
            return self._ask(request)
        scene = self._scenes[min(self._next, len(self._scenes) - 1)]
        self._next += 1
        return scene


def load_script(path: Path) -> list[Scene]:
    """The scenes of a script file: a JSON list of objects, each with its "type" and the fields of that scene."""
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise ConfigError(f"the script {path} cannot be read: {problem.strerror or problem}.") from None
    try:
        scenes = msgspec.json.decode(content, type=list[Scene])
    except msgspec.DecodeError as problem:
        raise ConfigError(
            f"the script {path} does not read: {problem}. "
            'It is a JSON list of scenes, such as [{"type": "say", "text": "hi"}].'
        ) from None
    if not scenes:
        raise ConfigError(f"the script {path} has no scene.")
    return scenes
