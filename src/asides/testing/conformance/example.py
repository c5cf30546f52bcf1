"""A reply of the author's own host, recorded or written from its documents: `Example`, and what it must become."""

from __future__ import annotations

from typing import Any

import msgspec

from asides.values.events import StopKind
from asides.values.reply import Outcome, Reply


class Example(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of a reply, whole, streamed or both, and what they are. What is left out is not looked at.

    Whole and streamed must become the same reply, whatever it is.
    """

    name: str = "an example"
    whole: bytes | None = None
    stream: bytes | None = None
    reply: Reply | None = None
    """The whole reply, where every detail is to be the same."""
    text: str | None = None
    thinking: str | None = None
    """"" where there must be none."""
    tool_calls: tuple[tuple[str, dict[str, Any]], ...] | None = None
    """The names and the arguments of its calls."""
    seals: tuple[str, ...] | None = None
    """The values of its seals."""
    stop: StopKind | None = None
    outcome: Outcome | None = None
    model: str | None = None
    """The model that said it, where it is not the one that is examined."""

    def __repr__(self) -> str:
        sizes = [f"{form}=<{len(body)} bytes>" for form, body in self.bodies().items()]
        return f"Example({self.name!r}, {', '.join(sizes)})"

    def bodies(self) -> dict[str, bytes]:
        """The forms in which it is there."""
        return {form: body for form, body in (("whole", self.whole), ("stream", self.stream)) if body is not None}

    def differences(self, reply: Reply) -> list[str]:
        """The fields in which a reply is not what it must be."""
        found: dict[str, Any] = {
            "text": reply.text,
            "thinking": "" if reply.thinking is None else reply.thinking.text,
            "tool_calls": tuple((call.name, call.arguments) for call in reply.tool_calls),
            "seals": tuple(seal.value for seal in reply.seals),
            "stop": reply.stop.reason,
            "outcome": reply.outcome,
            "reply": reply,
        }
        return [field for field, came in found.items() if getattr(self, field) not in (None, came)]
