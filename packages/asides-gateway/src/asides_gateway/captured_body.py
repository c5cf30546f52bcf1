"""The bodies that the inspector keeps where a tenant wants them: `CapturedBody`, blacked out when it is looked at."""

from __future__ import annotations

from typing import Any

import msgspec

from asides.values.redaction import Redact
from asides.values.visibility import Readable
from asides_gateway.black_out import black_out

MOST_BODY = 1024 * 1024
"""The most bytes of a body that is captured."""


class BodyCapture(msgspec.Struct, frozen=True):
    """How bodies are kept: which thinking may be seen in them, and which secrets are taken out."""

    shows: tuple[Readable, ...]
    secrets: tuple[str, ...] = ()


class CapturedBody:
    """A body that is kept. It is blacked out when it is first looked at, which takes a while for a large one."""

    __slots__ = ("_raw", "_redact", "_shown", "_shows", "size")

    def __init__(self, body: bytes, capture: BodyCapture, redact: Redact) -> None:
        self.size = len(body) if len(body) <= MOST_BODY else 0
        """The bytes that it takes in memory, about."""
        self._raw: bytes | None = body if self.size else None
        self._shows = capture.shows
        self._redact = redact
        self._shown: Any = f"(not kept: {len(body)} bytes, and at most {MOST_BODY} are)" if body else None

    def show(self) -> Any:
        """The body as JSON that may be shown; a sentence in place of one that is too large, or no JSON; None if it is
        empty. May run in another thread.
        """
        if (raw := self._raw) is not None:
            try:
                self._shown = msgspec.Raw(msgspec.json.encode(black_out(raw, shows=self._shows, redact=self._redact)))
            except ValueError:
                self._shown = f"(not kept: {len(raw)} bytes that are not JSON)"
            self._raw = None
        return self._shown

    def __repr__(self) -> str:
        return f"CapturedBody(<{self.size} bytes>)"
