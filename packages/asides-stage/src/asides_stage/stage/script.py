"""Scenes and scripts: the answers of the stage, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from asides.dialects.dialect import ServedRequest
from asides.values.errors import ConfigError
from asides.values.events import Event, StopKind
from asides.values.parts import ToolCall
from asides.values.usage import Usage


class Delivery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The timing, chunks, cuts and headers with which a scene is sent."""

    delay: float = 0.0
    """Seconds before the head of the response."""
    pause: float = 0.0
    """Seconds between two writes."""
    chunk: int | None = None
    """Bytes of the body per write; 1 is byte by byte. None: a write for each event, or the whole body in one."""
    cut_after: int | None = None
    """Bytes of the body after which the connection closes too early."""
    reset: bool = False
    """Cut with a TCP reset, which may discard bytes that the client has not read yet."""
    hang_after: int | None = None
    """Bytes of the body after which the connection stays open in silence."""
    headers: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Added to the headers of the stage; the same name replaces."""

    def __post_init__(self) -> None:
        if self.chunk is not None and self.chunk < 1:
            raise ValueError(f"chunk is {self.chunk}; a write has at least one byte.")
        if self.delay < 0 or self.pause < 0:
            raise ValueError("delay and pause are seconds and cannot be negative.")
        if self.cut_after is not None and self.hang_after is not None:
            raise ValueError("a reply cannot both be cut and hang; give cut_after or hang_after.")


class Say(Delivery, frozen=True, tag="say"):
    """A good reply: text, thinking, tool calls, or explicit events."""

    text: str = ""
    thinking: str | None = None
    hidden_thinking: str | None = None
    """Thinking that is counted in the usage and not shown, as some models have it."""
    thinking_field: str | None = None
    """The field for thinking, in a dialect with several. None: the most common one."""
    tool_calls: tuple[ToolCall, ...] = ()
    refusal: str | None = None
    usage: Usage | None = None
    """None: words counted as tokens. `Usage()`: the reply reports none."""
    stop: StopKind | None = None
    """None: "tool_calls" when there are any, else "stop"."""
    model: str | None = None
    """None: the requested model."""
    id: str | None = None
    piece: int = 20
    """Characters per delta of a stream."""
    events: tuple[Event, ...] | None = None
    """Exactly these events, instead of all other fields of the reply."""
    commentary: str = ""
    """What the model says before its answer and its calls, in the dialects that have a place for it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.piece < 1:
            raise ValueError(f"piece is {self.piece}; a delta has at least one character.")

    def __repr__(self) -> str:
        thought = "" if self.thinking is None else f", thinking=<{len(self.thinking)} characters>"
        return f"Say(<{len(self.text)} characters>{thought}, tool_calls={[call.name for call in self.tool_calls]})"


class Fail(Delivery, frozen=True, tag="fail"):
    """An error status, with the dialect's error body unless `body` is given."""

    status: int = 500
    message: str = "the stage answers with a failure"
    kind: str | None = None
    """The dialect's word for the kind of error; None: its default for the status."""
    retry_after: float | str | None = None
    """Seconds, or the text of the header, such as a date."""
    body: str | None = None


class Raw(Delivery, frozen=True, tag="raw"):
    """Exactly these bytes, such as a recording or broken events."""

    body: bytes = b""
    """In a script file: base64. `text` is easier there."""
    text: str | None = None
    """The body as text, instead of `body`."""
    content_type: str = "text/event-stream"
    status: int = 200

    @property
    def content(self) -> bytes:
        """The bytes that are sent."""
        return self.body if self.text is None else self.text.encode()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<{len(self.content)} bytes>, status={self.status})"


class Garbage(Raw, frozen=True, tag="garbage"):
    """An HTML page instead of a reply, as proxies send it."""

    body: bytes = b"<html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>\n"
    content_type: str = "text/html"


class Refuse(msgspec.Struct, frozen=True, tag="refuse", forbid_unknown_fields=True):
    """Read the request and close the connection without a byte."""

    reset: bool = False


class Hang(msgspec.Struct, frozen=True, tag="hang", forbid_unknown_fields=True):
    """Read the request and send nothing until the client leaves, the stage closes, or the seconds are over."""

    seconds: float | None = None


Scene: TypeAlias = Say | Fail | Raw | Garbage | Refuse | Hang
Script: TypeAlias = Scene | Sequence[Scene] | Callable[[ServedRequest], Scene]


class ScriptPlayer:
    """Chooses the next scene: a list in order, repeating its last scene; a function is called each time."""

    def __init__(self, script: Script) -> None:
        self._function: Callable[[ServedRequest], Scene] | None = None
        self._scenes: list[Scene] = []
        self._next = 0
        if isinstance(script, Say | Fail | Raw | Refuse | Hang):
            self._scenes = [script]
        elif isinstance(script, Sequence):
            self._scenes = list(script)
            if not self._scenes:
                raise ConfigError("the script has no scene; give at least one, or no script for the stage's own actor.")
        else:
            self._function = script

    def next(self, request: ServedRequest) -> Scene:
        """Return the scene that answers this request."""
        if self._function is not None:
            return self._function(request)
        scene = self._scenes[min(self._next, len(self._scenes) - 1)]
        self._next += 1
        return scene


def load_script(path: Path) -> list[Scene]:
    """Read a script file: a JSON list of objects, each with its "type" and the fields of that scene."""
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
