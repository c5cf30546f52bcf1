"""The steps of a run, a line each: which tool is called with what, and what came of it. For people, on stderr."""

from __future__ import annotations

import msgspec

from asides.values.messages import ToolCall
from asides.values.result import RunEvent, ToolFinished, ToolStarted

_LONGEST = 160


def step_line(event: RunEvent) -> str | None:
    """The line that an event of a run is worth; None for most of them."""
    if isinstance(event, ToolStarted):
        return f"→ {call_words(event.call)}"
    if isinstance(event, ToolFinished):
        mark = "✗" if event.result.is_error else "←"
        said = _cut(" ".join(event.result.text.split())) or "(no words)"
        return f"{mark} {event.call.name}: {said} ({event.seconds:.1f} s)"
    return None


def call_words(call: ToolCall, *, whole: bool = False) -> str:
    """A call as one would write it; `whole` for whoever has to decide about it."""
    given = ", ".join(f"{name}={msgspec.json.encode(value).decode()}" for name, value in call.arguments.items())
    return f"{call.name}({given if whole else _cut(given)})"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
